"""Notes, tags and names typed in the list: kept with the runs that are meant, whatever letters they are made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mpstui.core.model.snapshot import State
from mpstui.wire import labels
from mpstui.wire.labels import Labels
from mpstui.wire.rundir import RunDir

from . import fakes
from .driving import Driver, drive


def test_a_note_a_name_and_tags_are_kept(tmp_path: Path) -> None:
    runs = tuple(replace(one, dir=tmp_path / one.run) for one in (fakes.running(), fakes.failed()))
    for one in runs:
        one.dir.mkdir()
    first, second = (RunDir(one.dir) for one in runs)
    world = fakes.world((replace(runs[0], tags=("keep",), note="one\ntwo"), replace(runs[1], tags=("keep", "old"))))
    labels.edit(second, lambda found: Labels("", ("keep", "old")))

    async def play(driver: Driver) -> None:
        assert "#keep" in driver.text
        assert "note one two" in driver.text
        await driver.press("N")
        await driver.sees("note on CIFAR-10")
        await driver.press(*"srK")  # letters alone, no commands
        await driver.press("enter")
        await driver.hears("note saved")
        await driver.press("e", "ctrl+u", *"best", "enter")
        await driver.hears("name saved")
        await driver.press("space", "space", "t")
        await driver.sees("tags of 2 runs")
        await driver.press("ctrl+u", *"paper -old", "enter")
        await driver.hears("tags saved")
        await driver.press("t", "escape", "N", "enter")

    drive(world, play)
    assert labels.read(first) == Labels("best", ("paper",), "one twosrK")
    assert labels.read(second) == Labels("", ("paper",))
    assert world.actions.asked == []


def test_why_it_cannot_be_kept_is_said(tmp_path: Path) -> None:
    watched = replace(fakes.running(), state=State.WATCHED)
    gone = replace(fakes.failed(), dir=tmp_path / "gone")

    async def play(driver: Driver) -> None:
        await driver.press("N")
        await driver.hears("mpstui did not start it")
        await driver.press("down", "N", *"x", "enter")
        await driver.hears("cannot be changed: No such file")

    drive(fakes.world((watched, gone)), play)
