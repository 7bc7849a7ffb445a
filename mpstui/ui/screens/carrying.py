"""Carrying a run to another machine: which one, what would travel, and then doing it. Loaded by its own key alone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from ...core import present as shown
from ...core.actions import Question
from ...core.hosts.moving import MovePlan, Mover
from ...core.hosts.progress import Cancelled, Progress
from ..messages import MoveExamined, Toast
from ..rows import EMPTY, Row, bar, clean, fit, row, wrap
from ..widgets.lines import LinePanel
from .dialogs import Confirm
from .palette import Entry, Palette

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from ...core.model.snapshot import RunSnapshot
    from .acting import ActingScreen

_NONE = "no other machine is known: name one in [hosts.NAME] of settings.toml (docs/moving.md)"
_WIDTH, _SHARE = 64, 7
_LOOK_SECONDS = 0.25


class Carriage:
    """A move that is being carried out."""

    def __init__(self, mover: Mover, planned: MovePlan, to: str) -> None:
        self._mover, self._planned, self.to = mover, planned, clean(to, 60)
        self.name = clean(planned.name, 60)
        self.now = Progress("it begins")
        """How far it is."""
        self.over = self._is_cancelled = False

    def carry_out(self) -> Toast:
        """Do it; for a worker."""
        try:
            done = self._mover.carry_out(self._planned, self._hear)
        except Cancelled as cancelled:
            return Toast(clean(cancelled.sentence, 600), "warning")
        finally:
            self.over = True
            self._mover.close()
        return Toast(f"{self.name} goes on on {self.to}: attempt {done['attempt']}, from step {done['step']}")

    def _hear(self, now: Progress) -> None:
        self.now = now

    def cancel(self) -> None:
        """Have it end as soon as it can; the run goes on where it was."""
        self._is_cancelled = True
        self._mover.cancel()

    @property
    def before_leaving(self) -> Question:
        """What leaving the screen would do to it."""
        after = (
            "The move ends, and the run goes on where it was."
            if self.now.can_cancel
            else f"It was given away: `mpstui move` once more finishes it, where {self.to} has not taken it over."
        )
        return Question(f"Leave while {self.name} is moved to {self.to}?", (after,), "leave")

    def lines(self, width: int) -> list[Row]:
        """How far it is, and what can be done."""
        now = self.now
        share = shown.ratio(now.done_bytes, now.total_bytes) if now.total_bytes else None
        drawn = row(*bar(share, width - _SHARE), (fit(shown.percent(share), _SHARE, "right"), "")) if share else EMPTY
        keys = [row(("esc", "key strong"), " leave it to itself, M shows it again")]
        if now.can_cancel and not self._is_cancelled:
            keys.insert(0, row(("c", "key strong"), " cancel: the run goes on where it was"))
        elif self._is_cancelled:
            keys.insert(0, row(("cancelled: the run goes on where it was", "strong")))
        doing = [row(line) for line in wrap(clean(now.doing), width, 2)]
        return [*doing, drawn, row((clean(now.counts), "dim")), EMPTY, *keys]


class CarriageSheet(LinePanel):
    """How far a move is, in a frame."""

    def __init__(self, carriage: Carriage) -> None:
        super().__init__()
        self._carriage = carriage

    def rows(self, width: int, height: int) -> list[Row]:
        carriage = self._carriage
        title = [row((line, "title")) for line in wrap(f"Moving {carriage.name} to {carriage.to}", width, 2)]
        lines = [*title, EMPTY, *carriage.lines(width)]
        return lines if len(lines) <= height else [one for one in lines if one != EMPTY]


class Carrying(ModalScreen[None]):
    """How far a move is; it ends with the move, or is left to itself."""

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
            self.dismiss()
        else:
            self.query_one(CarriageSheet).repaint()

    def action_cancel(self) -> None:
        if self._carriage.now.can_cancel:
            self._carriage.cancel()
        self._look()


def choose(screen: ActingScreen, snapshot: RunSnapshot) -> None:
    """Ask for the machine, then have both looked at; while one is moved, show how far that is."""
    carriage = screen.context.state.carriage
    if isinstance(carriage, Carriage) and not carriage.over:
        screen.app.push_screen(Carrying(carriage))
        return
    here = snapshot.host or "local"
    found = tuple(
        Entry(clean(name, 60), "carry the run on there", partial(_examine, screen, snapshot, name))
        for name in screen.context.services.machines()
        if name != here
    )
    if not found:
        screen.context.say(_NONE, "warning")
        return
    screen.app.push_screen(
        Palette(found, f"where {clean(snapshot.name, 40)} is to go on"),
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
        done = "was moved already" if planned["begun"] else "was about to move, and does now"
        return Toast(f"{done}: it goes on on {to}", run=snapshot.run)

    def told(message: MoveExamined | Toast) -> None:
        screen.post_message(message) if isinstance(message, MoveExamined) else screen.app.post_message(message)

    screen.context.moves.do("move", examined, told)  # type: ignore[arg-type]


def ask(screen: ActingScreen, message: MoveExamined) -> None:
    """One question with what travels; the answer moves it, or lets go of both machines."""
    planned, mover, to = message.planned, message.mover, message.to

    def let_go() -> Toast:
        mover.close()
        return Toast("nothing was moved")

    def answered(answer: str | None) -> None:
        if answer != "yes":
            screen.context.moves.do("move", let_go)
            return
        carriage = screen.context.state.carriage = Carriage(mover, planned, to)
        screen.context.moves.do("move", carriage.carry_out)
        screen.app.push_screen(Carrying(carriage))

    lines = (*(f"{line}." for line in planned.sentences(to)), *planned.warnings)
    asked = Question(f"Move {clean(planned.name, 60)} to {to}?", tuple(clean(line) for line in lines), "move it")
    screen.app.push_screen(Confirm(asked), answered)
