"""The open screen tells the terminal of a crash, a stall and a finish, once, in words that terminal knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.cli.screen import announce_screen
from mpstui.core.model.exits import ExitSummary
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Health, RunSnapshot, State
from mpstui.core.settings import AlertSettings
from mpstui.ui.alarms import Alarm, alarms, words_for
from mpstui.wire import liveness

from . import fakes
from .driving import Driver, drive

RUNNING = RunSnapshot(run="a", name="net", dir=Path("/none"), state=State.RUNNING, seen=1.0)
CRASHED = replace(RUNNING, state=State.FAILED, exit=ExitSummary(1, None, "mps_oom", None))
CRASH = [Alarm("crash", "net failed")]


def changed(old: RunSnapshot, new: RunSnapshot) -> list[str]:
    return [alarm.event for alarm in alarms([old], [new])]


def test_a_crash_a_finish_and_a_hang_are_heard_once() -> None:
    assert changed(RUNNING, CRASHED) == ["crash"]
    assert changed(CRASHED, CRASHED) == []
    assert changed(RUNNING, replace(RUNNING, state=State.FINISHED)) == ["finish"]
    hung = replace(RUNNING, health=Health.HUNG, health_note="no beat for 9 min")
    assert changed(RUNNING, hung) == ["stall"]
    assert changed(hung, hung) == []
    [alarm] = alarms([RUNNING], [hung])
    assert alarm.text == "net hung: no beat for 9 min"


def test_what_was_asked_for_or_is_seen_first_is_not_heard() -> None:
    killed = replace(RUNNING, state=State.KILLED, exit=ExitSummary(None, 9, None, "me@here:1"))
    assert changed(RUNNING, killed) == []
    assert changed(RUNNING, replace(RUNNING, state=State.STOPPED)) == []
    assert alarms([], [CRASHED]) == []


def test_a_name_cannot_steer_the_terminal() -> None:
    hostile = replace(CRASHED, name="a\x1b]0;title\x07b")
    [alarm] = alarms([replace(hostile, state=State.RUNNING)], [hostile])
    assert "\x1b" not in alarm.text
    assert "\x07" not in alarm.text


@pytest.mark.parametrize(
    ("environ", "osc9", "osc777"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, 1, 0),
        ({"LC_TERMINAL": "iTerm2", "TERM": "xterm-256color"}, 1, 0),
        ({"TERM": "xterm-kitty"}, 1, 0),
        ({"TERM": "foot"}, 0, 1),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, 0, 1),
        ({"TERM": "xterm-256color"}, 1, 1),
    ],
)
def test_the_terminal_is_spoken_to_in_its_own_words(environ: dict[str, str], osc9: int, osc777: int) -> None:
    words = words_for(CRASH, AlertSettings(), environ)
    assert words.startswith("\a")
    assert (words.count("\x1b]9;mpstui: net failed\x1b\\"), words.count("\x1b]777;notify;mpstui;")) == (osc9, osc777)


def test_tmux_is_asked_to_pass_it_on() -> None:
    words = words_for(CRASH, AlertSettings(notify="osc9", bell=False), {"TMUX": "/x", "TERM": "tmux-256color"})
    assert words == "\x1bPtmux;\x1b\x1b]9;mpstui: net failed\x1b\x1b\\\x1b\\"


def test_what_nobody_wants_to_hear_is_not_sent() -> None:
    assert words_for(CRASH, AlertSettings(on=("finish",)), {}) == ""
    assert words_for(CRASH, AlertSettings(when="never"), {}) == ""
    assert words_for(CRASH, AlertSettings(notify="off"), {}) == "\a"


MISTAKES = ((2, "`wen` is not a key of [alerts]"), (4, "`thme` is not one"))


@pytest.mark.parametrize("size", [(60, 15), (120, 40)])
def test_a_mistake_in_the_settings_is_said_once_when_the_screen_opens(size: tuple[int, int]) -> None:
    world = fakes.world((RUNNING,))
    world.services.mistakes = MISTAKES

    async def play(driver: Driver) -> None:
        await driver.hears("settings.toml:2: `wen` is not a key of [alerts] (and 1 more)")
        await driver.press("enter")
        await driver.sees("1 2 log 3" if size[0] < 80 else "6 events")
        world.monitor.snapshots = (CRASHED,)
        await driver.sees("failed")
        assert len(driver.toasts) == 1
        assert "/home/me" not in driver.toasts[0]
        assert "the whole file is ignored" in driver.toasts[0]

    drive(world, play, size=size)


def test_the_screen_hears_of_a_run_that_is_not_in_view() -> None:
    world = fakes.world((fakes.running(),))

    async def play(driver: Driver) -> None:
        world.monitor.snapshots = (fakes.failed(fakes.running().run),)
        await driver.until(lambda: world.services.alarms, "an alarm")

    drive(world, play)
    assert world.services.alarms[0].event == "crash"


def test_what_became_of_a_run_that_is_not_looked_at_is_said_by_its_name() -> None:
    world = fakes.world((RUNNING, fakes.running()))

    async def play(driver: Driver) -> None:
        await driver.until(lambda: world.monitor.focus == fakes.running().run, "the run in view is followed")
        world.monitor.snapshots = (CRASHED, fakes.running(step=50))
        await driver.hears("net: failed: ")
        world.monitor.snapshots = (CRASHED, fakes.failed(fakes.running().run))
        await driver.until(lambda: len(world.services.alarms) == 2)
        await driver.sees("✗ failed")
        assert not any(toast.startswith("failed") for toast in driver.toasts), "what is in view is seen"

    drive(world, play, opening=fakes.running().run)


def test_an_open_screen_can_be_noticed(tmp_path: Path) -> None:
    home = Home(tmp_path / "state", tmp_path / "config")
    lock = announce_screen(home)
    assert lock is not None
    assert liveness.is_shared(home.screen_lock)
    second = announce_screen(home)
    assert second is not None
    liveness.release(lock)
    assert liveness.is_shared(home.screen_lock)
    liveness.release(second)
    assert not liveness.is_shared(home.screen_lock)
