"""What the screen knows besides its panels: the newest pictures, why runs ended, what was cleared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .messages import DiagnosisReady, RequestAnswered, SettingsMistaken
from .rows import clean

if TYPE_CHECKING:
    from ..core.diagnosis.model import EvidenceLine, Finding
    from ..core.model.snapshot import RunSnapshot
    from ..wire.records import Ack


class Board:
    """State that outlives the screen that shows it."""

    def __init__(self, explain: Callable[[RunSnapshot], None]) -> None:
        self.snapshots: tuple[RunSnapshot, ...] | None = None
        """None until the first picture."""
        self.paused_groups: tuple[str, ...] = ()
        """Queues that start nothing."""
        self.cleared: dict[str, Ack] = {}
        """The newest answer to "clear cache", by run."""
        self._explain = explain
        self._findings: dict[tuple[str, int], Sequence[Finding] | None] = {}
        self._mistakes: set[str] = set()
        self._exceptions: dict[tuple[str, int], EvidenceLine | None] = {}

    def findings(self, snapshot: RunSnapshot) -> Sequence[Finding] | None:
        """Why its newest attempt ended; None while that is being found out, which the first call begins."""
        key = snapshot.run, snapshot.attempt
        if key not in self._findings:
            self._findings[key] = None
            self._explain(snapshot)
        return self._findings[key]

    def known_findings(self, snapshot: RunSnapshot) -> Sequence[Finding] | None:
        """:meth:`findings`, where somebody has asked for them already: nothing is begun."""
        return self._findings.get((snapshot.run, snapshot.attempt))

    def note_diagnosis(self, message: DiagnosisReady) -> None:
        """Keep what was found out."""
        self._findings[message.run, message.attempt] = message.findings
        self._exceptions[message.run, message.attempt] = message.exception

    def last_exception(self, snapshot: RunSnapshot) -> EvidenceLine | None:
        """The last exception of an attempt whose end nothing explains."""
        return self._exceptions.get((snapshot.run, snapshot.attempt))

    def is_news(self, mistake: SettingsMistaken) -> bool:
        """Whether it is told for the first time: whatever needs the settings stumbles over the same one."""
        told = mistake.sentence in self._mistakes
        self._mistakes.add(mistake.sentence)
        return not told

    def note_answer(self, message: RequestAnswered) -> None:
        """Keep what a cleared cache gave back."""
        if message.request.action == "clear_cache" and message.ack is not None and message.ack.ok:
            self.cleared[message.run] = message.ack

    def named(self, run: str | None, in_view: RunSnapshot | None) -> str:
        """``CIFAR-10: `` before what is said of a run that is not the one in view."""
        if run is None or (in_view is not None and in_view.run == run):
            return ""
        return next((f"{clean(item.name, 40)}: " for item in self.snapshots or () if item.run == run), "")

    def neighbour(self, run: str, by: int) -> str | None:
        """The run ``by`` places further down the list."""
        order = [item.run for item in self.snapshots or ()]
        place = order.index(run) + by if run in order else -1
        return order[place] if 0 <= place < len(order) else None
