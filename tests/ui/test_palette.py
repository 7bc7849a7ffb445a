"""The palette: everything by its name, what cannot work with its reason, chosen by enter."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mpstui.core.model.errors import OperationError
from mpstui.core.profiles.library import ProfileEntry
from mpstui.ui.screens.launch import LaunchForm
from mpstui.ui.screens.palette import Choices, Entry, Palette, matching
from mpstui.ui.screens.run import RunScreen

from . import fakes
from .driving import Driver, drive


def entry(name: str, about: str = "", why_not: str = "") -> Entry:
    return Entry(name, about, lambda: None, why_not=why_not)


def test_an_entry_of_that_name_comes_before_one_that_mentions_it() -> None:
    known = [entry("restart", "stop and begin anew"), entry("kill", "", "it is not running"), entry("stop")]
    assert [one.name for one in matching(known, "sto")] == ["stop", "restart"]
    assert [one.name for one in matching(known, "begin RESTART")] == ["restart"]
    assert [one.name for one in matching(known, "")] == ["restart", "kill", "stop"]
    assert [one.name for one in matching([entry("stop it", "", "no"), entry("non-stop")], "stop")] == [
        "non-stop",
        "stop it",
    ]


def found(driver: Driver) -> list[str]:
    return [one.name for one in driver.app.screen.query_one(Choices).found]


def test_it_runs_an_action_by_its_name() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("ctrl+p")
        assert isinstance(driver.app.screen, Palette)
        await driver.press(*"hel")
        assert found(driver)[0] == "help"
        await driver.press("enter")
        await driver.sees("everywhere")

    drive(fakes.world(fakes.several()), play)


def test_letters_are_no_commands_in_it_however_fast_they_come() -> None:
    async def play(driver: Driver) -> None:
        await driver.burst("ctrl+p", *"sKD")
        await driver.until(lambda: isinstance(driver.app.screen, Palette))
        await driver.sees("nothing has that name")
        await driver.press("escape")
        assert not isinstance(driver.app.screen, Palette)
        assert not driver.world.actions.asked

    drive(fakes.world((fakes.running(),)), play)


def test_profiles_of_a_machine_that_is_not_heard_are_none_and_end_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def unheard(launcher: fakes.FakeLauncher, *, waits: bool = True) -> Sequence[ProfileEntry]:
        raise OperationError("gpu1: connection lost, not heard for 8s")

    monkeypatch.setattr(fakes.FakeLauncher, "entries", unheard)

    async def play(driver: Driver) -> None:
        await driver.press("ctrl+p", *"hel")
        assert found(driver)[0] == "help"
        await driver.press("escape", "n")
        await driver.sees("gpu1: connection lost")

    drive(fakes.world(fakes.several()), play)


def test_what_cannot_work_says_why_and_shows_its_key() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("ctrl+p", *"resume")
        await driver.press(*["backspace"] * 6, *"pause")
        await driver.sees("not now: ")
        line = next(line for line in driver.lines if "not now: " in line)
        assert "▌p  " in line
        assert "pause" in line

    drive(fakes.world((fakes.finished(),)), play, size=(120, 40))


def test_one_that_was_opened_before_the_run_was_read_says_what_can_be_done_once_it_is() -> None:
    world = fakes.world((fakes.running(),))
    world.monitor.unread = True

    async def play(driver: Driver) -> None:
        await driver.press("ctrl+p", *"stop")
        await driver.sees("not now: the run is still being read")
        world.monitor.unread = False
        await driver.until(lambda: "still being read" not in driver.text, "what can be done")
        screen = driver.app.screen
        assert isinstance(screen, Palette)
        chosen = screen.query_one(Choices).chosen
        assert chosen is not None
        assert (chosen.name, chosen.why_not) == ("stop", "")
        await driver.sees(" stop")

    drive(world, play)


def test_what_is_selected_stays_selected_when_more_is_known() -> None:
    choices = Choices([entry("stop"), entry("kill"), entry("info")])
    choices.index = 2
    choices.renew([entry("new"), entry("stop"), entry("kill"), entry("info")], "")
    assert choices.index == 3
    choices.renew([entry("new")], "")
    assert choices.index == 0
    choices.renew([], "")
    assert choices.chosen is None


def test_it_opens_runs_panels_metrics_and_profiles() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("colon", *"resnet", "enter")
        await driver.until(lambda: isinstance(driver.app.screen, RunScreen))
        screen = driver.app.screen
        assert isinstance(screen, RunScreen)
        await driver.until(lambda: screen.snapshot is not None)
        await driver.press("ctrl+p", *"panel events", "enter")
        assert screen.panel == "events"
        await driver.press("ctrl+p", *"metric val_acc", "enter")
        assert screen.body.chart.metric == "val_accuracy"
        await driver.press("ctrl+p", *"launch cifar")
        await driver.until(lambda: found(driver))
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, LaunchForm))

    drive(fakes.world((fakes.running(),)), play)


def test_the_list_finds_the_metrics_of_its_runs_and_draws_the_one_that_is_chosen() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("ctrl+p", *"val_acc")
        assert found(driver) == ["val_accuracy"], "once, however many runs have it"
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, RunScreen), "the run")
        await driver.sees("val_accuracy   • val")

    drive(fakes.world((fakes.running(), fakes.finished())), play)


def test_a_metric_of_one_of_several_namesakes_says_which_it_is_drawn_for() -> None:
    twins = tuple(fakes.finished(f"r{lr}", name="train", argv=("python", "t.py", "--lr", lr)) for lr in ("0.1", "0.2"))

    async def play(driver: Driver) -> None:
        await driver.press("ctrl+p", *"draw it")
        await driver.sees("draw it for train (lr=0.1)")

    drive(fakes.world(twins), play)
