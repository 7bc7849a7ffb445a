"""The header warns quietly of what is going wrong; a key leads from the card to the line that shows the cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mpstui.core.diagnosis.model import EvidenceLine
from mpstui.core.logview.document import LogDocument
from mpstui.core.model.snapshot import Health, RunSnapshot, State
from mpstui.ui.widgets.run_header import header

from . import fakes
from .driving import Driver, drive


def test_what_goes_wrong_stands_in_the_header() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("! The loss is NaN or infinite since step")

    world = fakes.world((fakes.running(loss=None, loss_is_finite=False),))
    drive(world, play, opening=fakes.running().run)


def test_a_watched_file_that_goes_and_comes_back_is_told() -> None:
    watched = replace(fakes.bare(), state=State.WATCHED, name="train.log", health=None)
    world = fakes.world((watched,))

    async def play(driver: Driver) -> None:
        await driver.sees("external")
        world.monitor.snapshots = (replace(watched, gone=True),)
        await driver.sees("gone")
        await driver.hears("train.log is gone (deleted, or moved away)")
        world.monitor.snapshots = (watched,)
        await driver.hears("train.log is back and read from its start")

    drive(world, play, opening=watched.run)


def test_a_healthy_run_has_no_warning() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("attempt")
        assert " ! " not in driver.lines[1]

    drive(fakes.world((fakes.running(),)), play, opening=fakes.running().run)


def test_a_warning_keeps_to_one_line() -> None:
    lines = header(fakes.running(), 60, fakes.NOW, "x" * 500)
    assert [line.width <= 60 for line in lines] == [True, True]


def test_the_card_leads_to_the_line_in_the_log() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("l log there")
        assert "step 21203" not in driver.text
        await driver.press("l")
        await driver.sees("step 21203")
        shown = next(line for line in driver.lines if "▶ line " in line)
        assert "G follows" in shown
        marked = [line for line in driver.lines if line[1:2] == "▶"]
        assert len(marked) == 1, "the line itself is marked, though it may have been in view already"
        await driver.press("e")
        await driver.until(lambda: "▶ line " not in driver.text, "another line is marked")

    drive(fakes.world((fakes.failed(),)), play, opening=fakes.failed().run)


def test_without_a_line_the_key_says_so() -> None:
    world = fakes.world((fakes.failed(),))
    told = replace(fakes.FINDING, evidence=(EvidenceLine(None, "signal 9"),))
    world.services.findings = (told,)

    async def play(driver: Driver) -> None:
        await driver.sees("apply the remedy")
        assert "log there" not in driver.text
        await driver.press("l")
        await driver.hears("No line of the log")

    drive(world, play, opening=fakes.failed().run)


def slowed(**changes: Any) -> RunSnapshot:
    """A run whose curve says that it went at half its speed for the last third."""
    view = fakes.curve(points=300, stride=10)
    times = [fakes.NOW - 3000.0]
    for place in range(1, 300):
        times.append(times[-1] + (5.0 if place < 200 else 10.0))
    return fakes.running(series={"loss": replace(view, times=times)}, **changes)


def test_a_slow_run_says_how_slow_and_since_when_and_marks_its_chart() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("! 0.5x of its median speed for ")
        await driver.sees("▔ slow")

    drive(fakes.world((slowed(),)), play, opening=fakes.running().run, size=(100, 30))


def test_a_run_that_ended_or_evaluates_is_not_called_slow() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("▔ slow")
        assert "of its median speed" not in driver.text

    drive(fakes.world((slowed(health=Health.EVALUATING),)), play, opening=fakes.running().run, size=(100, 30))


def test_the_output_of_earlier_attempts_is_a_key_away() -> None:
    """After a restart the crash is still to be read: `o` and `O` turn to it and back, `l` goes to its last error."""
    run = fakes.running(attempt=2, attempts=2)
    world = fakes.world((run,))
    opened: list[str] = []

    def open_log(path: Path) -> LogDocument:
        opened.append(path.parent.name)
        return world.log

    world.services.open_log = open_log  # type: ignore[method-assign]

    async def play(driver: Driver) -> None:
        await driver.sees("following")
        await driver.press("o")
        await driver.sees("attempt 1 of 2")
        assert opened[-1] == "1"
        await driver.press("o")
        await driver.hears("there is no earlier attempt")
        await driver.press("O")
        await driver.until(lambda: "attempt 1 of 2" not in driver.text)
        assert opened[-1] == "2"
        await driver.press("l")
        await driver.sees("attempt 1 of 2")
        await driver.sees("RuntimeError: could not read sample 4711")

    drive(world, play, opening=run.run, size=(120, 40))


def test_a_run_of_one_attempt_says_nothing_of_attempts_in_its_log() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("following")
        assert "attempt 1 of 1" not in driver.text
        await driver.press("o")
        await driver.hears("there is no earlier attempt")

    one = fakes.running(attempt=1, attempts=1)
    drive(fakes.world((one,)), play, opening=one.run)
