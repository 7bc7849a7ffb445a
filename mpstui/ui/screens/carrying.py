"""Moving a run to another machine: choose it, ask what may be sent, do it; and sending what a launch needs there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.screen import ModalScreen

from ...core import present as shown
from ...core.actions import Question
from ...core.hosts.moving import MovePlan
from ...core.hosts.progress import Cancelled, Progress
from ..messages import Launched, MoveExamined, Toast
from ..rows import EMPTY, Row, bar, clean, fit, row, wrap
from ..widgets.lines import LinePanel
from .dialogs import Confirm
from .palette import Entry, Palette

if TYPE_CHECKING:
    from textual.app import App, ComposeResult

    from ...core.model.snapshot import RunSnapshot
    from ..context import Context
    from .acting import ActingScreen

_NONE = "no other machine is known: name one in [hosts.NAME] of settings.toml (docs/moving.md)"
_WIDTH, _SHARE = 64, 7
_LOOK_SECONDS = 0.25


class Words(NamedTuple):
    """The texts about something that is being sent."""

    title: str
    leaving: str
    """The question to ask before the screen is left."""
    called_off: str
    """What happens to it if it is cancelled, and if the screen is left."""
    decided: str
    """What happens to it if the screen is left once it can no longer be cancelled."""


class Carriage:
    """A move in progress, or a launch whose checkpoint or code is being sent."""

    def __init__(
        self,
        words: Words,
        work: Callable[[Callable[[Progress], None]], Launched | Toast],
        cancel: Callable[[], object],
        close: Callable[[], object] = lambda: None,
    ) -> None:
        """``work`` does it, and reports its progress."""
        self._work, self._cancel, self._close, self.words = work, cancel, close, words
        self.now = Progress("it begins")
        """Its progress."""
        self.over = self._is_cancelled = False

    def carry_out(self) -> Launched | Toast:
        """Do it; call from a worker."""
        try:
            return self._work(self._hear)
        except Cancelled as cancelled:
            return Toast(clean(cancelled.sentence, 600), "warning")
        finally:
            self.over = True
            self._close()

    def _hear(self, now: Progress) -> None:
        self.now = now

    def cancel(self) -> None:
        """Ask it to end as soon as it can."""
        self._is_cancelled = True
        self._cancel()

    @property
    def before_leaving(self) -> Question:
        """Return the question that says what leaving the screen would do to it."""
        after = f"It ends: {self.words.called_off}." if self.now.can_cancel else self.words.decided
        return Question(self.words.leaving, (after,), "leave")

    def lines(self, width: int) -> list[Row]:
        """Return its progress, and what can be done."""
        now = self.now
        share = shown.ratio(now.done_bytes, now.total_bytes) if now.total_bytes else None
        drawn = row(*bar(share, width - _SHARE), (fit(shown.percent(share), _SHARE, "right"), "")) if share else EMPTY
        keys = [row(("esc", "key strong"), " leave it in the background; M shows it again")]
        if now.can_cancel and not self._is_cancelled:
            keys.insert(0, row(("c", "key strong"), f" cancel: {self.words.called_off}"))
        elif self._is_cancelled:
            keys.insert(0, row((f"cancelled: {self.words.called_off}", "strong")))
        doing = [row(line) for line in wrap(clean(now.doing), width, 2)]
        return [*doing, drawn, row((clean(now.counts), "dim")), EMPTY, *keys]


class CarriageSheet(LinePanel):
    """The progress of a move, in a frame."""

    def __init__(self, carriage: Carriage) -> None:
        super().__init__()
        self._carriage = carriage

    def rows(self, width: int, height: int) -> list[Row]:
        carriage = self._carriage
        title = [row((line, "title")) for line in wrap(carriage.words.title, width, 2)]
        lines = [*title, EMPTY, *carriage.lines(width)]
        return lines if len(lines) <= height else [one for one in lines if one != EMPTY]


class Carrying(ModalScreen[None]):
    """Shows the progress of a move; closes when that ends, or when the user leaves it running."""

    CSS_PATH = "../styles/dialogs.tcss"
    BINDINGS = [("c", "cancel"), ("escape,q,M", "dismiss")]  # noqa: RUF012 - Textual's name and kind

    def __init__(self, carriage: Carriage) -> None:
        super().__init__()
        self._carriage = carriage

    def compose(self) -> ComposeResult:
        sheet = CarriageSheet(self._carriage)
        sheet.styles.width = min(_WIDTH, self.app.size.width - 4)
        sheet.styles.height = min(10, self.app.size.height)
        yield sheet

    def on_mount(self) -> None:
        self.set_interval(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        if self._carriage.over:
            if self.is_current:  # what was launched may already be shown
                self.dismiss()
        else:
            self.query_one(CarriageSheet).repaint()

    def action_cancel(self) -> None:
        if self._carriage.now.can_cancel:
            self._carriage.cancel()
        self._look()


def choose(screen: ActingScreen, snapshot: RunSnapshot) -> None:
    """Ask for the machine, then have both examined; if a run is being moved already, show its progress."""
    carriage = screen.context.state.carriage
    if isinstance(carriage, Carriage) and not carriage.over:
        screen.app.push_screen(Carrying(carriage))
        return
    here = snapshot.host or "local"
    found = tuple(
        Entry(clean(name, 60), "move the run there", partial(_examine, screen, snapshot, name))
        for name in screen.context.services.machines()
        if name != here
    )
    if not found:
        screen.context.say(_NONE, "warning")
        return
    screen.app.push_screen(
        Palette(found, f"which machine to move {clean(snapshot.name, 40)} to"),
        lambda chosen: chosen.go() if chosen is not None else None,
    )


def _examine(screen: ActingScreen, snapshot: RunSnapshot, to: str) -> None:
    screen.context.say(f"looking at {to}")

    def examined() -> MoveExamined | Toast:
        mover, name = screen.context.services.mover(snapshot, to)
        try:
            planned = mover.plan(name)
        except BaseException:
            mover.close()
            raise
        if isinstance(planned, MovePlan):
            return MoveExamined(mover, planned, to)
        mover.close()
        done = "had already been moved" if planned["begun"] else "was already being moved, and now has been"
        return Toast(f"{done}: it continues on {to}", run=snapshot.run)

    def told(message: MoveExamined | Toast) -> None:
        screen.post_message(message) if isinstance(message, MoveExamined) else screen.app.post_message(message)

    screen.context.moves.do("move", examined, told)  # type: ignore[arg-type]


def ask(screen: ActingScreen, message: MoveExamined) -> None:
    """Ask one question that lists what is sent; the answer moves the run, or releases both machines."""
    planned, mover, to = message.planned, message.mover, message.to

    def let_go() -> Toast:
        mover.close()
        return Toast("nothing was moved")

    def answered(answer: str | None) -> None:
        if answer != "yes":
            screen.context.moves.do("move", let_go)
            return
        name, there = clean(planned.name, 60), clean(to, 60)
        words = Words(
            f"Moving {name} to {there}",
            f"Leave while {name} is moved to {there}?",
            "the run continues where it was",
            f"It has already left: `mpstui move` again finishes the move, if {there} has not taken it over.",
        )

        def work(tell: Callable[[Progress], None]) -> Toast:
            done = mover.carry_out(planned, tell)
            return Toast(f"{name} continues on {there}: attempt {done['attempt']}, from step {done['step']}")

        carriage = screen.context.state.carriage = Carriage(words, work, mover.cancel, mover.close)
        screen.context.moves.do("move", carriage.carry_out)
        screen.app.push_screen(Carrying(carriage))

    lines = (*(f"{line}." for line in planned.sentences(to)), *planned.warnings)
    asked = Question(f"Move {clean(planned.name, 60)} to {to}?", tuple(clean(line) for line in lines), "move it")
    screen.app.push_screen(Confirm(asked), answered)


def send(context: Context, app: App[Any], draft: Any, values: Mapping[str, str], runs: int, to: str) -> None:
    """Send what a launch on another machine needs, launch it there, and show the progress."""
    there = clean(to, 60)
    words = Words(
        f"Sending a launch to {there}",
        f"Leave while a launch is sent to {there}?",
        "nothing is launched",
        f"It was requested: `mpstui ps --host {there}` shows whether it started.",
    )
    carriage = Carriage(words, lambda tell: Launched(draft.launch(values, tell), runs), draft.cancel)
    if context.state.carriage is None or context.state.carriage.over:
        context.state.carriage = carriage
    context.sends.do("launch", carriage.carry_out)
    app.push_screen(Carrying(carriage))
