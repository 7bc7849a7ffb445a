"""The selected group below the list: the curves of its runs over each other, the best first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpstui.core.model.queue_place import QueuePlace
from mpstui.core.model.snapshot import RunSnapshot, State
from mpstui.core.runs.listing import Group, groups_of
from mpstui.ui.widgets.group_peek import MOST_CURVES, chosen, group_peek
from mpstui.ui.widgets.peek import Peek, peek

from . import fakes
from .driving import Driver, drive


def swept(count: int) -> tuple[RunSnapshot, ...]:
    """Runs of one sweep, newest first; the later one began, the better it did."""
    return tuple(
        replace(
            fakes.finished(f"20261120-2200{place:02d}-net"),
            name=f"net lr=0.{place + 1} wd=0.01",
            extremes={"val_loss": ((99 - place) / 10, 2.0), "loss": (0.1, 2.0)},
            series={name: fakes.curve(points=100, stride=94, seed=place) for name in ("val_loss", "loss")},
        )
        for place in range(count)
    )[::-1]


def group_of(runs: tuple[RunSnapshot, ...]) -> Group:
    return groups_of(runs)[runs[0].run]


def text_of(group: Group, width: int, height: int) -> list[str]:
    return [line.text for line in group_peek(group, chosen(group), width, height)]


def test_the_best_runs_of_many_are_drawn_and_their_number_is_said() -> None:
    group = group_of(swept(12))
    assert [one.run for one in chosen(group)] == [one.run for one in swept(12)[:MOST_CURVES]]
    lines = text_of(group, 80, 20)
    assert lines[0].rstrip() == " val_loss  8 of 12 runs, lowest first, over steps"
    assert lines[1].startswith(" 1 lr=0.12  8.800   2 lr=0.11  8.900")


@pytest.mark.parametrize("width", [20, 50, 80, 200])
@pytest.mark.parametrize("height", [1, 2, 11, 30])
def test_it_keeps_to_its_place_at_every_size(width: int, height: int) -> None:
    lines = text_of(group_of(swept(9)), width, height)
    assert len(lines) <= max(2, height)
    assert all(len(line.rstrip()) <= width for line in lines), lines


def test_a_group_of_which_nobody_knows_anything_says_so() -> None:
    waiting = tuple(
        replace(one, state=State.QUEUED, extremes={}, series={}, numbers=fakes.bare().numbers) for one in swept(3)
    )
    assert text_of(group_of(waiting), 80, 12) == [" 3 of its runs wait; none has reported a metric yet"]


def test_of_a_group_that_waits_the_next_run_is_looked_at() -> None:
    waiting = tuple(
        replace(one, state=State.QUEUED, extremes={}, series={}, numbers=fakes.bare().numbers, profile="nets")
        for one in swept(3)
    )
    runs = tuple(replace(one, queue=QueuePlace("mps", 3 - at, behind=("first",))) for at, one in enumerate(waiting))

    async def play(driver: Driver) -> None:
        await driver.sees("3 of its runs wait")
        await driver.sees(" next    net lr=0.1 wd=0.01")
        await driver.sees(" behind  first")
        await driver.sees("earlier runs  1")

    drive(fakes.world((*runs, fakes.finished(profile="nets", name="first"))), play, size=(120, 40))


def test_the_head_of_a_sweep_shows_its_curves_and_a_run_its_own() -> None:
    async def play(driver: Driver) -> None:
        await driver.sees("4 runs, lowest first")
        await driver.sees("1 lr=0.4")
        await driver.press("down")
        await driver.until(lambda: "lowest first" not in driver.text, "the run's own curve")
        await driver.press("up")
        await driver.sees("4 runs, lowest first")

    drive(fakes.world(swept(4)), play, size=(120, 40))


def test_a_narrow_list_shows_values_alone_of_all_runs_and_their_names_above() -> None:
    runs = tuple(
        replace(one, name=f"net lr={lr} wd={wd}")
        for one, (lr, wd) in zip(
            swept(4), [("0.1", "0.1"), ("0.1", "0.01"), ("0.05", "0.1"), ("0.05", "0.01")], strict=True
        )
    )

    async def play(driver: Driver) -> None:
        await driver.sees("▾ net  lr wd  4")
        assert "lr=" not in "\n".join(driver.lines[3:7])
        assert "0.05 0.01" in driver.lines[6]

    drive(fakes.world(runs), play, size=(80, 24))


def test_the_footer_says_that_a_group_can_be_folded_and_what_a_key_would_do() -> None:
    async def play(driver: Driver) -> None:
        await driver.until(lambda: "⏎ fold" in driver.lines[-1], "the group can be folded")
        assert "s stop" not in driver.lines[-1], "all of its runs have ended"
        await driver.press("enter")
        # At once, not with the ages, which are drawn anew twice a minute.
        await driver.until(lambda: "⏎ unfold" in driver.lines[-1], "and unfolded again", seconds=25)
        await driver.press("enter", "down")
        await driver.until(lambda: "⏎ open" in driver.lines[-1], "a run is opened")

    drive(fakes.world(swept(4)), play, size=(120, 40))


def test_the_look_has_the_lines_that_a_short_list_leaves() -> None:
    async def play(driver: Driver) -> None:
        def blank() -> int:
            return sum(not line.strip() for line in driver.lines)

        await driver.sees("4 runs, lowest first")
        peek = driver.app.screen.query_one(Peek)
        await driver.until(lambda: peek.size.height >= 45 and blank() <= 4, "the curves take what the list leaves")
        await driver.press("slash", *"0.4")
        await driver.sees("1 of 4 runs")
        assert peek.size.height >= 45, "nothing jumps while somebody types"

    drive(fakes.world(swept(4)), play, size=(200, 60))


def test_a_wide_window_shows_metrics_and_settings_beside_the_curve() -> None:
    run = fakes.running(argv=("python", "t.py", "--lr", "0.1"))
    told = [line.text for line in peek(run, 200, 30)]
    assert any("metric" in line and "best" in line for line in told)
    assert any("val_accuracy" in line for line in told)
    assert any("lr " in line and "0.1" in line for line in told)
    assert any("┤" in line for line in told)
    assert all(line.width <= 200 for line in peek(run, 200, 30))
    assert len(told) <= 30
    assert not any("setting" in line.text for line in peek(run, 120, 30))
