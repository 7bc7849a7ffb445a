"""What every screen is given: the core, what is known of the runs, toasts, the worker for requests, other screens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .messages import DiagnosisReady, RequestAnswered, SettingsMistaken
from .rows import clean

if TYPE_CHECKING:
    from ..core.actions import Question
    from ..core.diagnosis.model import EvidenceLine, Finding
    from ..core.launching.cure import Cure
    from ..core.launching.rehearsal import Rehearsed
    from ..core.model.snapshot import RunSnapshot
    from ..wire.records import Ack
    from .graphics import Graphics
    from .messages import Severity
    from .services import Services
    from .toasts import Toasts, Undo
    from .workers.requests import RequestWorker


class UnderWay(Protocol):
    """What is on its way to another machine: a run, or a launch and its checkpoint."""

    over: bool

    def cancel(self) -> None:
        """Have it end; the run goes on where it was, the launch is none."""

    @property
    def before_leaving(self) -> Question:
        """What leaving the screen would do to it."""


class Context(NamedTuple):
    """Handed to each screen by the app, which no screen knows."""

    services: Services
    state: AppState
    toasts: Toasts
    requests: RequestWorker
    moves: RequestWorker
    """For what may take minutes: nothing that acts on a run waits for it."""
    sends: RequestWorker
    """For launches on other machines, and what these say of them before."""
    undo: Undo
    blocks: bool
    """Draw with blocks, for fonts without braille."""
    open_run: Callable[..., None]
    """Show a run, by its id; a metric of it may be named."""
    close_run: Callable[[], None]
    """Back to the list of runs."""
    launch: Callable[[RunSnapshot | None, Cure | None], None]
    """Choose a profile and launch it; with a run, change its launch (as a cure does) and restart it."""
    focus: Callable[[], None]
    """Have the workers read what the screen in view shows."""
    redraw: Callable[[], None]
    """Hand the newest snapshots to the screen in view."""
    hurried: Callable[[], Awaitable[bool]]
    """Whether the key that is looked at came with others in one piece, as of a paste."""

    def say(self, text: str, severity: Severity = "information", about: str | None = None) -> None:
        """Tell the user something in passing."""
        self.toasts.say(text, severity, about)


class AppState:
    """What outlives the screen that shows it: the newest snapshots, why runs ended, what was cleared."""

    def __init__(self, explain: Callable[[RunSnapshot], None]) -> None:
        self.snapshots: tuple[RunSnapshot, ...] | None = None
        """None until the first reading."""
        self.paused_queues: tuple[str, ...] = ()
        """Queues that start nothing."""
        self.graphics: Graphics | None = None
        """How the terminal shows pixels, where it was asked and can."""
        self.troubles: tuple[str, ...] = ()
        """What is wrong with the ways to other machines."""
        self.carriage: UnderWay | None = None
        """What was begun last; one at a time is shown."""
        self.cleared: dict[str, Ack] = {}
        """The newest answer to "clear cache", by run."""
        self._explain = explain
        self._findings: dict[tuple[str, int], Sequence[Finding] | None] = {}
        self._exceptions: dict[tuple[str, int], EvidenceLine | None] = {}
        self._cures: dict[tuple[str, int], Cure | None] = {}
        self._rehearsed: dict[tuple[str, int], Rehearsed | None] = {}
        self._mistakes: set[tuple[str, ...]] = set()

    def findings(self, snapshot: RunSnapshot) -> Sequence[Finding] | None:
        """Why its newest attempt ended; None while that is being found out, which the first call begins."""
        key = snapshot.run, snapshot.attempts
        if key not in self._findings:
            self._findings[key] = None
            self._explain(snapshot)
        return self._findings[key]

    def known_findings(self, snapshot: RunSnapshot) -> Sequence[Finding] | None:
        """:meth:`findings`, where they have been asked for already: nothing is begun."""
        return self._findings.get((snapshot.run, snapshot.attempts))

    def is_diagnosing(self, snapshot: RunSnapshot) -> bool:
        """Whether why its newest attempt ended is just being found out."""
        return self._findings.get((snapshot.run, snapshot.attempts), ()) is None

    def last_exception(self, snapshot: RunSnapshot) -> EvidenceLine | None:
        """The last exception of an attempt whose end nothing explains."""
        return self._exceptions.get((snapshot.run, snapshot.attempts))

    def shown_by(self, snapshot: RunSnapshot) -> EvidenceLine | None:
        """The line of the log that shows best why it ended, as far as that is known."""
        findings = self.known_findings(snapshot)
        return findings[0].shown_by if findings else self.last_exception(snapshot)

    def cure(self, snapshot: RunSnapshot) -> Cure | None:
        """What the remedy of its diagnosis would change, as far as it is known."""
        return self._cures.get((snapshot.run, snapshot.attempts))

    def rehearsed(self, snapshot: RunSnapshot) -> Rehearsed | None:
        """What trying a changed launch of it has shown, as far as it is known."""
        return self._rehearsed.get((snapshot.run, snapshot.attempts))

    def note_diagnosis(self, message: DiagnosisReady) -> None:
        self._findings[message.run, message.attempts] = message.findings
        self._exceptions[message.run, message.attempts] = message.exception
        self._cures[message.run, message.attempts] = message.cure
        self._rehearsed[message.run, message.attempts] = message.rehearsed

    def note_answer(self, message: RequestAnswered) -> None:
        """Keep what a cleared cache gave back."""
        if message.request.action == "clear_cache" and message.ack is not None and message.ack.ok:
            self.cleared[message.run] = message.ack

    def is_new(self, mistake: SettingsMistaken) -> bool:
        """Whether it is told for the first time: whatever needs the settings stumbles over the same one."""
        new = mistake.mistakes not in self._mistakes
        self._mistakes.add(mistake.mistakes)
        return new

    def prefix(self, run: str | None, in_view: RunSnapshot | None) -> str:
        """``CIFAR-10: `` before what is said of a run that is not the one in view."""
        if run is None or (in_view is not None and in_view.run == run):
            return ""
        return next((f"{clean(item.name, 40)}: " for item in self.snapshots or () if item.run == run), "")

    def neighbour(self, run: str, by: int) -> str | None:
        """The run ``by`` places further down the list."""
        order = [item.run for item in self.snapshots or ()]
        place = order.index(run) + by if run in order else -1
        return order[place] if 0 <= place < len(order) else None
