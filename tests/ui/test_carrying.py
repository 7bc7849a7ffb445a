"""Carrying a run to another machine from the list: which machine, what would travel, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from mpstui.core.hosts.moving import MovePlan, Mover
from mpstui.core.hosts.progress import Cancelled, Progress
from mpstui.core.model.errors import OperationError
from mpstui.core.model.moves import Moving
from mpstui.core.model.snapshot import State

from . import fakes
from .driving import Driver, drive

RUN = fakes.running()
STAYS = {"older": 3, "staying": [["conf/.env", "secret", None]]}
PLAN = MovePlan(RUN.run, RUN.name, 1200, True, "", "cuda", 3, 40_000, 25 << 20, (), {}, STAYS, {})


class FakeMover(Mover):
    """Notes what is asked of it."""

    def __init__(self, failure: str = "") -> None:
        self.asked: list[str] = []
        self.failure = failure
        self.steps: list[Progress] = []
        self.goes_on = Event()
        """After each of its steps it waits for this."""
        self.is_cancelled = False

    def plan(self, name: str, *wishes: Any) -> MovePlan | dict[str, Any]:
        self.asked.append(f"plan {name}")
        if self.failure:
            raise OperationError(self.failure)
        return PLAN

    def carry_out(self, planned: MovePlan, tell: Callable[[Progress], None] = lambda now: None) -> dict[str, Any]:
        self.asked.append(f"carry out {planned.run}")
        for now in self.steps:
            tell(now)
            assert self.goes_on.wait(60)
            if self.is_cancelled:
                raise Cancelled(f"{planned.run} was not moved: it was cancelled; it continues where it was")
        return {"run": planned.run, "attempt": 2, "step": 1200}

    def cancel(self) -> None:
        self.is_cancelled = True
        self.goes_on.set()

    def close(self) -> None:
        self.asked.append("close")


def carried(monkeypatch: pytest.MonkeyPatch, world: fakes.World, mover: FakeMover) -> None:
    monkeypatch.setattr(world.services, "machines", lambda: ("gpu1", "mac"))
    monkeypatch.setattr(world.services, "mover", lambda snapshot, to: (mover, snapshot.run))


@pytest.mark.parametrize("size", [(60, 15), (120, 40)])
def test_a_run_is_carried_on_there_when_that_was_confirmed(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    world, mover = fakes.world((RUN,)), FakeMover()
    carried(monkeypatch, world, mover)

    async def play(driver: Driver) -> None:
        await driver.press("M")
        await driver.sees("gpu1")
        top, bottom = (next(at for at, line in enumerate(driver.lines) if corner in line) for corner in "╭╰")
        assert bottom - top == 4, "a line to type in and two machines"
        await driver.press("enter")
        await driver.sees("to gpu1?")
        await driver.sees("stays behind: 3 older checkpoints, conf/.env")
        assert "3 files of code (39.1 KiB)" in driver.text
        assert "25.0 MiB" in driver.text
        assert "gpu1 trains it on cuda" in driver.text
        assert mover.asked == [f"plan {RUN.run}"]
        await driver.press("y")
        await driver.hears("continues on gpu1: attempt 2, from step 1200")

    drive(world, play, size=size)
    assert mover.asked == [f"plan {RUN.run}", f"carry out {RUN.run}", "close"]


SENDING = Progress("its files are sent", 3 << 30, 4 << 30, 64 << 20)


@pytest.mark.parametrize("size", [(60, 15), (120, 40)])
def test_how_far_it_is_can_be_seen_left_and_seen_again_until_it_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    world, mover = fakes.world((RUN,)), FakeMover()
    carried(monkeypatch, world, mover)
    mover.steps = [SENDING]

    async def play(driver: Driver) -> None:
        await driver.press("M")
        await driver.sees("gpu1")
        await driver.press("enter")
        await driver.sees("to gpu1?")
        await driver.press("y")
        await driver.sees("3.0 GiB of 4.0 GiB, 64.0 MiB/s, 16s left")
        assert "75.0 %" in driver.text
        assert "c cancel: the run continues where it was" in driver.text
        await driver.press("escape")
        await driver.until(lambda: "its files are sent" not in driver.text)
        await driver.press("q")
        await driver.sees("It ends: the run continues where it was.")
        await driver.press("escape", "M")
        await driver.sees("its files are sent")
        await driver.press("c")
        await driver.hears("it was cancelled; it continues where it was")

    drive(world, play, size=size)
    assert mover.asked == [f"plan {RUN.run}", f"carry out {RUN.run}", "close"]


def test_it_can_be_declined_and_lets_go_of_both_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    world, mover = fakes.world((RUN,)), FakeMover()
    carried(monkeypatch, world, mover)

    async def play(driver: Driver) -> None:
        await driver.press("M")
        await driver.sees("gpu1")
        await driver.press("enter")
        await driver.sees("to gpu1?")
        await driver.press("escape")
        await driver.hears("nothing was moved")

    drive(world, play)
    assert mover.asked == [f"plan {RUN.run}", "close"]


def test_why_it_cannot_be_carried_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    world, mover = fakes.world((RUN,)), FakeMover("it has no checkpoint")
    carried(monkeypatch, world, mover)

    async def play(driver: Driver) -> None:
        await driver.press("M")
        await driver.sees("gpu1")
        await driver.press("enter")
        await driver.hears("move: it has no checkpoint")

    drive(world, play)
    assert mover.asked == [f"plan {RUN.run}", "close"]


def test_without_another_machine_it_is_said_how_to_name_one() -> None:
    world = fakes.world((RUN,))

    async def play(driver: Driver) -> None:
        await driver.press("M")
        await driver.hears("no other machine is known")

    drive(world, play)


def test_a_run_that_is_being_moved_says_where_to_and_how_far_that_is() -> None:
    moving = fakes.finished(state=State.MOVING, moving=Moving("gpu1", "send", 1.0))

    async def play(driver: Driver) -> None:
        await driver.sees("» moving")
        await driver.sees(" moving to gpu1: its files are sent")
        await driver.press("enter")
        await driver.sees("to gpu1: its files are sent  » moving")

    drive(fakes.world((moving,)), play, size=(80, 24))


def test_a_run_that_was_moved_says_where_it_goes_on() -> None:
    moved = fakes.finished(state=State.STOPPED, moved_to="gpu1")

    async def play(driver: Driver) -> None:
        await driver.sees("→ moved")
        await driver.sees(" moved  to gpu1, where it continues")

    drive(fakes.world((moved,)), play, size=(80, 24))
