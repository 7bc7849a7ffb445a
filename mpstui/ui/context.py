"""What the app gives every screen: the core, the state of the runs, toasts, workers, and ways to other screens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..core.actions import BY_ID
from ..core.model.snapshot import Availability
from .messages import DiagnosisReady, RequestAnswered, SettingsMistaken
from .rows import clean

if TYPE_CHECKING:
    from ..core.actions import Action, Question
    from ..core.diagnosis.model import EvidenceLine, Finding
    from ..core.launching.cure import Cure
    from ..core.launching.rehearsal import Rehearsed
    from ..core.model.snapshot import RunSnapshot
    from ..wire.records import Ack
    from .graphics import Graphics
    from .messages import Severity
    from .services import Services
    from .toasts import Toasts, Undo
    from .widgets.failure_card import Failure
    from .workers.requests import RequestWorker


class UnderWay(Protocol):
    """A run, or a launch with its checkpoint, that is being sent to another machine."""

    over: bool

    def cancel(self) -> None:
        """Cancel it: the run continues where it was, or the launch does not happen."""

    @property
    def before_leaving(self) -> Question:
        """The question that says what leaving the screen would do to it."""


class Context(NamedTuple):
    """What the app gives each screen, so that screens do not depend on the app."""

    services: Services
    state: AppState
    toasts: Toasts
    requests: RequestWorker
    moves: RequestWorker
    """For moves, which may take minutes, so that no other action waits for them."""
    sends: RequestWorker
    """For launches on other machines, and for questions to these machines about them."""
    undo: Undo
    blocks: bool
    """Draw with blocks, for fonts without braille."""
    open_run: Callable[..., None]
    """Show a run, by id; a metric of it may be named."""
    close_run: Callable[[], None]
    """Return to the list of runs."""
    launch: Callable[[RunSnapshot | None, Cure | None], None]
    """Open the launch form: to choose a profile, or to change a run's launch, perhaps by a cure, and restart it."""
    focus: Callable[[], None]
    """Make the workers read what the screen in view shows."""
    redraw: Callable[[], None]
    """Pass the newest snapshots to the screen in view."""
    hurried: Callable[[], Awaitable[bool]]
    """True if the key being handled arrived together with others, as in a paste."""

    def say(self, text: str, severity: Severity = "information", about: str | None = None) -> None:
        """Show a toast."""
        self.toasts.say(text, severity, about)


class AppState:
    """State that outlives the screens: the newest snapshots, why runs ended, what was cleared."""

    def __init__(self, explain: Callable[[RunSnapshot], None]) -> None:
        self.snapshots: tuple[RunSnapshot, ...] | None = None
        """None until the first reading."""
        self.paused_queues: tuple[str, ...] = ()
        """Queues that are not starting anything."""
        self.graphics: Graphics | None = None
        """How the terminal shows pixels; None if it cannot, or has not been asked."""
        self.troubles: tuple[str, ...] = ()
        """Problems with the connections to other machines."""
        self.carriage: UnderWay | None = None
        """The newest run or launch being sent away: only one is shown."""
        self.cleared: dict[str, Ack] = {}
        """The newest answer to "clear cache", by run."""
        self._explain = explain
        self._findings: dict[tuple[str, int], Sequence[Finding] | None] = {}
        self._exceptions: dict[tuple[str, int], EvidenceLine | None] = {}
        self._cures: dict[tuple[str, int], Cure | None] = {}
        self._rehearsed: dict[tuple[str, int], Rehearsed | None] = {}
        self._mistakes: set[tuple[str, ...]] = set()

    def findings(self, snapshot: RunSnapshot) -> Sequence[Finding] | None:
        """Why its newest attempt ended; None while that is being diagnosed. The first call starts the diagnosis."""
        key = snapshot.run, snapshot.attempts
        if key not in self._findings:
            self._findings[key] = None
            self._explain(snapshot)
        return self._findings[key]

    def known_findings(self, snapshot: RunSnapshot) -> Sequence[Finding] | None:
        """:meth:`findings` as far as known; starts no diagnosis."""
        return self._findings.get((snapshot.run, snapshot.attempts))

    def is_diagnosing(self, snapshot: RunSnapshot) -> bool:
        """True while the end of its newest attempt is being diagnosed."""
        return self._findings.get((snapshot.run, snapshot.attempts), ()) is None

    def last_exception(self, snapshot: RunSnapshot) -> EvidenceLine | None:
        """The last exception in the log, if no rule explains why the attempt ended."""
        return self._exceptions.get((snapshot.run, snapshot.attempts))

    def shown_by(self, snapshot: RunSnapshot) -> EvidenceLine | None:
        """The line of the log that best shows why it ended, if known."""
        findings = self.known_findings(snapshot)
        return findings[0].shown_by if findings else self.last_exception(snapshot)

    def cure(self, snapshot: RunSnapshot) -> Cure | None:
        """What the remedy of its diagnosis would change, if known."""
        return self._cures.get((snapshot.run, snapshot.attempts))

    def rehearsed(self, snapshot: RunSnapshot) -> Rehearsed | None:
        """The result of rehearsing a changed launch, if that was done."""
        return self._rehearsed.get((snapshot.run, snapshot.attempts))

    def failure(self, snapshot: RunSnapshot) -> Failure:
        """Return what the card of a failed run shows."""
        from .widgets.failure_card import Failure  # most first frames show no such card

        return Failure(
            snapshot,
            self.findings(snapshot),
            on_cpu=allowed(snapshot, BY_ID["restart_cpu"]).ok,
            exception=self.last_exception(snapshot),
            cure=self.cure(snapshot),
            fixable=allowed(snapshot, BY_ID["fix"]).ok,
            tried=self.rehearsed(snapshot),
        )

    def note_diagnosis(self, message: DiagnosisReady) -> None:
        self._findings[message.run, message.attempts] = message.findings
        self._exceptions[message.run, message.attempts] = message.exception
        self._cures[message.run, message.attempts] = message.cure
        self._rehearsed[message.run, message.attempts] = message.rehearsed

    def note_answer(self, message: RequestAnswered) -> None:
        """Remember how much memory clearing the cache freed."""
        if message.request.action == "clear_cache" and message.ack is not None and message.ack.ok:
            self.cleared[message.run] = message.ack

    def is_new(self, mistake: SettingsMistaken) -> bool:
        """True if this mistake was not reported before: everything that reads the settings reports the same one."""
        new = mistake.mistakes not in self._mistakes
        self._mistakes.add(mistake.mistakes)
        return new

    def prefix(self, run: str | None, in_view: RunSnapshot | None) -> str:
        """``CIFAR-10: `` for a toast about a run that is not in view; empty for any other."""
        if run is None or (in_view is not None and in_view.run == run):
            return ""
        return next((f"{clean(item.name, 40)}: " for item in self.snapshots or () if item.run == run), "")

    def neighbour(self, run: str, by: int) -> str | None:
        """Return the run ``by`` places further down in the list, if there is one."""
        order = [item.run for item in self.snapshots or ()]
        place = order.index(run) + by if run in order else -1
        return order[place] if 0 <= place < len(order) else None


def allowed(snapshot: RunSnapshot, action: Action) -> Availability:
    """Return whether an action can work for a run, as determined when the run was read."""
    return snapshot.available.get(action.id, Availability(False, "the run is still being read"))
