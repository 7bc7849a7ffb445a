"""Removing a run from the list: told what is deleted, asked, and refused where it must stay."""

from __future__ import annotations

import pytest

from mpstui.core.model.errors import OperationError

from . import fakes
from .driving import Driver, drive

DONE = fakes.finished()


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
@pytest.mark.parametrize(
    ("key", "keeps", "said"),
    [("y", False, "freed 12.0 MiB"), ("k", True, f"checkpoints: /state/checkpoints/{DONE.run}")],
)
def test_a_run_is_removed_when_that_was_confirmed(size: tuple[int, int], key: str, keeps: bool, said: str) -> None:
    world = fakes.world((DONE, fakes.running()))

    async def play(driver: Driver) -> None:
        await driver.press("D")
        await driver.sees("3 checkpoints: 300 MiB")
        assert "y delete 312 MiB" in driver.text
        assert "k keep the checkpoints, delete 12.0 MiB" in driver.text
        assert "esc cancel" in driver.text
        assert world.services.removed == []
        await driver.press(key)
        await driver.hears(f"removed {DONE.name}, freed 12.0 MiB")
        await driver.hears(said if size[0] > 80 else said[:10])
        await driver.until(lambda: "1 run ·" in driver.lines[0], "the list without it")

    drive(world, play, size=size)
    assert world.services.removed == [(DONE.run, keeps)]


def test_a_run_is_removed_on_its_own_page_too() -> None:
    world = fakes.world((DONE, fakes.running()))

    async def play(driver: Driver) -> None:
        await driver.sees("finished")
        await driver.press("D")
        await driver.sees("3 checkpoints: 300 MiB")
        await driver.press("y")
        await driver.hears(f"removed {DONE.name}, freed 12.0 MiB")
        await driver.until(lambda: "1 run ·" in driver.lines[0], "the list without it")

    drive(world, play, opening=DONE.run)
    assert world.services.removed == [(DONE.run, False)]


@pytest.mark.parametrize("key", ["n", "escape", "q"])
def test_it_can_be_declined(key: str) -> None:
    world = fakes.world((DONE,))
    world.services.checkpoints = 0

    async def play(driver: Driver) -> None:
        await driver.press("delete")
        await driver.sees("It has no checkpoints in its folder.")
        await driver.press("k")  # there is nothing to keep
        assert "Remove MNIST" in driver.text
        await driver.press(key)
        assert "Remove MNIST" not in driver.text

    drive(world, play)
    assert world.services.removed == []


def test_one_that_runs_is_refused_at_once_and_one_that_is_needed_when_it_was_looked_at() -> None:
    world = fakes.world((fakes.running(), DONE))
    world.services.refusal = OperationError("it cannot be removed: another waits for it")

    async def play(driver: Driver) -> None:
        await driver.press("D")
        await driver.hears("remove: it is still running")
        await driver.press("down", "D")
        await driver.hears("another waits for it")

    drive(world, play)
    assert world.services.removed == []
