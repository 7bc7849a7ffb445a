"""Carrying a run to another machine: which one, what would travel, and then doing it. Loaded by its own key alone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...core.actions import Question
from ...core.hosts.moving import MovePlan
from ..messages import MoveExamined, Toast
from ..rows import clean
from .palette import Entry, Palette

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from .acting import ActingScreen

_NONE = "no other machine is known: name one in [hosts.NAME] of settings.toml (docs/moving.md)"


def choose(screen: ActingScreen, snapshot: RunSnapshot) -> None:
    """Ask for the machine, then have both looked at."""
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

    def carry() -> Toast:
        try:
            done = mover.carry_out(planned)
        finally:
            mover.close()
        return Toast(f"{clean(planned.name, 60)} goes on on {to}: attempt {done['attempt']}, from step {done['step']}")

    def let_go() -> Toast:
        mover.close()
        return Toast("nothing was moved")

    def answered(answer: str | None) -> None:
        if answer == "yes":
            screen.context.say(f"moving to {to}")
            screen.context.moves.do("move", carry)
        else:
            screen.context.moves.do("move", let_go)

    from .dialogs import Confirm

    lines = (*(f"{line}." for line in planned.sentences(to)), *planned.warnings)
    asked = Question(f"Move {clean(planned.name, 60)} to {to}?", tuple(clean(line) for line in lines), "move it")
    screen.app.push_screen(Confirm(asked), answered)
