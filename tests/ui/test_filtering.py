"""`/` leaves the runs, or profiles, that match what is typed; no letter of it is a command, however it arrives."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from mpstui.ui.widgets.search_line import SearchLine

from ..core.runs.build import RunBuilder
from ..terminal import Terminal
from ..waiting import wait_until
from . import fakes
from .driving import Driver, drive

COMMANDS = "srcRKDxpqT"


def test_no_letter_is_a_command_while_a_filter_is_typed() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.press("slash", *COMMANDS, "question_mark", "delete")
        await driver.sees("0 of 5 runs")
        await driver.sees("no run matches")

    drive(world, play)
    assert not world.actions.asked
    assert not world.services.removed


def test_the_list_follows_what_is_typed_and_escape_peels() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.press("slash", *"failed")
        await driver.sees("1 of 5 runs")
        assert "batch 4096" in driver.text
        assert "MNIST" not in driver.text
        assert "stop typing" in driver.lines[-1]
        await driver.press("escape")  # the text
        assert "1 of 5 runs" in driver.text
        await driver.sees("restart")
        await driver.press("escape")  # the filter
        await driver.sees("MNIST")
        assert "of 5 runs" not in driver.text
        await driver.press("slash", "escape")
        assert "of 5 runs" not in driver.text, "nothing was typed"

    drive(world, play)


def test_enter_keeps_the_filter_and_the_next_one_opens_what_is_selected() -> None:
    world = fakes.world(fakes.several())

    async def play(driver: Driver) -> None:
        await driver.press("slash", *"epoch>=9", "down", "enter")
        await driver.sees("2 of 5 runs")
        await driver.press("enter")
        await driver.sees("2 log")
        await driver.press("escape")
        await driver.sees("2 of 5 runs")

    drive(world, play)


@pytest.mark.parametrize("leave", ["enter", "escape"])
def test_the_filter_is_there_once_its_line_is_left_however_late_its_letters_are_told(
    leave: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/batch` and two Enters in one packet opened the run that was selected before."""
    monkeypatch.setattr(SearchLine, "on_input_changed", lambda line, event: event.stop())

    async def play(driver: Driver) -> None:
        await driver.press("slash", *"batch", leave)
        await driver.sees("1 of 5 runs")
        await driver.press("enter")
        await driver.sees("2 log")
        assert "batch 4096" in driver.lines[0]

    drive(fakes.world(fakes.several()), play)


def test_what_is_wrong_with_a_condition_is_said_while_it_is_typed() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("slash", *"lr>=x")
        await driver.sees("'x' is not a number")
        assert "MNIST" in driver.text

    drive(fakes.world(fakes.several()), play, size=(120, 40))


def test_profiles_are_filtered_too() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("n", "slash", *"fine-tuning")
        await driver.sees("1 of 3 profiles")
        assert "cifar" not in driver.text
        await driver.press(*"qq")
        await driver.sees("no profile matches")
        await driver.press("escape", "escape")
        await driver.sees("cifar")
        await driver.press("escape")
        await driver.sees("5 runs")

    drive(fakes.world(fakes.several()), play)


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path))
    return Home(tmp_path, tmp_path)


def test_letters_of_one_packet_go_where_the_first_one_led(home: Home, tmp_path: Path) -> None:
    """`/resnet` of a slow line stopped and restarted a live run; letters of a paste are no commands either."""
    live = RunBuilder(home, "ResNet").status("running").launch().beat(step=3).output("one\nloss 2.5\n" * 90).hold()
    RunBuilder(home, "words").status("ended").launch().exit(code=0)
    with Terminal([sys.executable, "-m", "mpstui"], columns=100, rows=30) as terminal:
        terminal.wait_text("ResNet", "words", "2 runs")
        os.write(terminal.descriptor, b"/resnetsrcxKD\r")
        terminal.wait_text("/ resnetsrcxKD", "0 of 2 runs", "esc")
        terminal.press("escape")
        wait_until(lambda: "0 of 2" not in _after_a_moment(terminal), what="the filter to go")
        os.write(terminal.descriptor, b"/ResN\r\r")
        terminal.wait_text("2 log")
        os.write(terminal.descriptor, b"sKrcy yes, my restart")  # as a paste into a terminal that does not mark one
        terminal.wait_text("arrived together with other letters")
    assert not [*live.run.requests.glob("*.json")]
    live.release()


def _after_a_moment(terminal: Terminal) -> str:
    terminal.pump(0.1)
    return terminal.text
