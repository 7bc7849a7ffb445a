"""What went without a question can be taken back for a moment; what was held is done when its time is over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.wire import labels
from mpstui.wire.rundir import RunDir

from . import fakes
from .driving import Driver, drive

LONG = 3600.0


def asked(world: fakes.World) -> list[str]:
    return [action for action, _, _ in world.actions.asked]


@pytest.mark.parametrize("key", ["s", "r", "c"])
def test_what_was_taken_back_is_never_sent(key: str) -> None:
    world = fakes.world((fakes.running(),))
    world.undo_seconds = LONG

    async def play(driver: Driver) -> None:
        await driver.press(key)
        await driver.hears("U undoes it")
        await driver.press("U")
        await driver.hears("undone: nothing was sent")
        await driver.press("U")
        await driver.hears("There is nothing to undo.")

    drive(world, play)
    assert asked(world) == []


def test_what_is_held_is_sent_when_its_time_is_over() -> None:
    world = fakes.world((fakes.running(),))
    world.undo_seconds = 0.05

    async def play(driver: Driver) -> None:
        await driver.press("s")
        await driver.until(lambda: world.actions.asked, "the request")

    drive(world, play)
    assert asked(world) == ["stop"]


@pytest.mark.parametrize("then", [["s"], ["r", "U"], ["q"]], ids=["pressed again", "the next action", "leaving"])
def test_what_is_held_is_sent_at_once_where_nothing_can_be_taken_back_any_more(then: list[str]) -> None:
    world = fakes.world((fakes.running(),))
    world.undo_seconds = LONG

    async def play(driver: Driver) -> None:
        await driver.press("s")
        await driver.hears("stop in 3600 s")
        await driver.press(*then)
        if then != ["q"]:
            await driver.until(lambda: world.actions.asked, "the request")

    drive(world, play)
    assert asked(world) == ["stop"]


def test_a_label_is_again_what_it_was(tmp_path: Path) -> None:
    run = replace(fakes.running(), dir=tmp_path)
    world = fakes.world((run,))
    world.undo_seconds = LONG
    folder = RunDir(tmp_path)

    async def play(driver: Driver) -> None:
        await driver.press("N", *"too hot", "enter")
        await driver.hears("note saved")
        assert labels.read(folder).note == "too hot"
        await driver.press("U")
        await driver.hears("note restored")

    drive(world, play, opening=run.run)
    assert labels.read(folder).note == ""
