"""What is marked is what every action acts on, with one question for all; never the row under the cursor instead."""

from __future__ import annotations

import pytest

from mpstui.core.model.errors import OperationError
from mpstui.core.model.snapshot import RunSnapshot
from tests.snapshots import changed

from . import fakes
from .driving import Driver, drive


def ended(number: int) -> RunSnapshot:
    return fakes.finished(f"20261120-22000{number}-mnist", name=f"MNIST {number}")


def live(number: int) -> RunSnapshot:
    return changed(fakes.unsaved(), run=f"20261121-10451{number}-cifar", name=f"CIFAR {number}")


ENDED, LIVE = tuple(map(ended, range(4))), tuple(map(live, range(3)))


def test_marked_runs_are_removed_and_not_the_selected_one() -> None:
    world = fakes.world((*ENDED, LIVE[0]))

    async def play(driver: Driver) -> None:
        await driver.press("space", "space", "down", "down", "space", "up", "up", "D")
        await driver.sees("Remove 2 runs (624 MiB)?")
        assert "MNIST 0" in driver.text
        assert "CIFAR 0 stays" in driver.text
        assert "600 MiB of it are checkpoints." in driver.text
        await driver.press("y")
        await driver.hears("removed 2 runs")

    drive(world, play, size=(120, 40))
    assert [run for run, _ in world.services.removed] == [ENDED[0].run, ENDED[1].run]


def test_removing_what_must_stay_says_why() -> None:
    world = fakes.world(ENDED)
    world.services.refusal = OperationError("another waits for it")

    async def play(driver: Driver) -> None:
        await driver.press("asterisk", "D")
        await driver.hears("none of the 4 runs can be removed · MNIST 0 stays: another waits for it")

    drive(world, play)
    assert not world.services.removed


@pytest.mark.parametrize(("key", "request_name"), [("s", "stop"), ("K", "kill"), ("r", "restart")])
def test_one_question_ends_all_that_are_marked(key: str, request_name: str) -> None:
    world = fakes.world((*LIVE, *ENDED[:1]))

    async def play(driver: Driver) -> None:
        await driver.press("space", "space", "down", "space", "up", key)  # not the third, which is then selected
        await driver.sees("2 runs?" if key != "r" else "3 runs?")
        assert "CIFAR 0  43m 10s of work is in no checkpoint" in driver.text
        assert "Together 1h 26m of work is in no checkpoint." in driver.text
        assert ("1 cannot: this run has ended." in driver.text) is (key != "r")
        assert not world.actions.asked
        await driver.press("y")
        await driver.hears(f"{request_name} requested for {3 if key == 'r' else 2} runs")

    drive(world, play, size=(120, 40))
    asked = [run for name, run, _ in world.actions.asked if name == request_name]
    assert asked == [LIVE[0].run, LIVE[1].run, *([ENDED[0].run] if key == "r" else [])]


def test_what_ends_nothing_is_done_to_all_at_once() -> None:
    world = fakes.world(LIVE)

    async def play(driver: Driver) -> None:
        await driver.press("asterisk", "p")
        await driver.hears("pause requested for 3 runs")

    drive(world, play)
    assert {run for _, run, _ in world.actions.asked} == {one.run for one in LIVE}


def test_one_mark_is_meant_in_place_of_the_selected_row() -> None:
    world = fakes.world(LIVE)

    async def play(driver: Driver) -> None:
        await driver.press("space", "p")
        await driver.hears("pause requested")

    drive(world, play)
    assert [run for _, run, _ in world.actions.asked] == [LIVE[0].run]


def test_marks_that_a_filter_hides_are_told_and_escape_drops_them() -> None:
    world = fakes.world((*LIVE, *ENDED))

    async def play(driver: Driver) -> None:
        await driver.press("asterisk")
        await driver.sees("◆ 7 marked · 7 runs")
        await driver.press("slash", *"training", "enter")
        await driver.sees("◆ 7 marked, 4 of them hidden")
        await driver.press("asterisk")
        await driver.sees("◆ 4 marked, 4 of them hidden")
        await driver.press("asterisk", "s")
        await driver.sees("4 of the marked runs are hidden by the filter.")
        await driver.press("escape", "escape")
        await driver.sees("◆ 7 marked · 7 runs")
        await driver.press("escape")
        assert "marked" not in driver.lines[0]

    drive(world, play, size=(120, 40))


@pytest.mark.parametrize("key", ["R", "f", "e", "less_than_sign"])
def test_what_works_on_one_run_says_so(key: str) -> None:
    world = fakes.world(LIVE)

    async def play(driver: Driver) -> None:
        await driver.press("asterisk", key)
        await driver.hears("works on one run, not on 3")

    drive(world, play)


def test_a_run_that_refuses_does_not_keep_the_others_from_being_asked() -> None:
    world = fakes.world(LIVE)
    world.actions.failure = OperationError("the disk is full")

    async def play(driver: Driver) -> None:
        await driver.press("asterisk", "x")
        await driver.hears("clear cache: the disk is full")
        assert not any("requested" in toast for toast in driver.toasts)

    drive(world, play)


def test_keys_that_none_of_the_marked_runs_can_answer_leave_the_footer() -> None:
    """What has ended can be restarted and removed; stop and kill would be dead keys."""

    async def play(driver: Driver) -> None:
        await driver.press("asterisk")
        await driver.until(lambda: "s stop" not in driver.lines[-1], "no dead keys")
        assert "K kill" not in driver.lines[-1]
        assert "r restart" in driver.lines[-1]

    drive(fakes.world(ENDED), play, size=(80, 24))
