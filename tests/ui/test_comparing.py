"""Runs side by side: marked on the list, their curves over one axis, what they differ in."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mpstui.core.model.snapshot import RunSnapshot
from mpstui.ui.charting.plot import ChartView
from mpstui.ui.widgets.comparison import MOST, Comparison, best_axis, draw_overlay, legend_rows, overlay, table_rows
from tests.snapshots import changed

from . import fakes
from .driving import Driver, drive

SGD = fakes.running(
    "20261121-111000-sgd",
    name="CIFAR-10 · SGD",
    argv=("python", "-m", "trainer", "cifar", "--lr", "0.1"),
    series={"loss": fakes.curve(points=100, floor=0.5, seed=4)},
)
ADAM = fakes.running(
    name="CIFAR-10 · Adam\x1b[31m",
    argv=("python", "-m", "trainer", "cifar", "--lr", "0.001", "--ema"),
    series={"loss": fakes.curve(points=400, seed=5)},
)


@pytest.mark.parametrize("size", [(40, 10), (60, 15), (80, 24), (120, 40), (200, 60)])
def test_marked_runs_are_compared(size: tuple[int, int]) -> None:
    world = fakes.world((SGD, ADAM, fakes.finished()))

    async def play(driver: Driver) -> None:
        await driver.press("space", "space")
        assert [line[0] for line in driver.lines if line[3:11] == "training"] == ["◆", "◆"]
        await driver.press("C")
        await driver.sees("loss, averaged · by step")
        assert "1 ━ CIFAR-10 · SGD" in driver.lines[0]
        assert "2 ━ CIFAR-10 · Adam" in driver.lines[1]
        if size[1] >= 24:
            assert any(line.split() == ["lr", "0.1", "0.001"] for line in driver.lines)
            assert any(line.split() == ["ema", "–", "yes"] for line in driver.lines)
        await driver.press("t", "y")
        await driver.sees("by epoch")
        await driver.press("escape")
        await driver.sees("state")

    drive(world, play, size=size)


def test_one_marked_run_is_compared_with_the_selected_one_and_none_is_refused() -> None:
    world = fakes.world((SGD, ADAM))

    async def play(driver: Driver) -> None:
        await driver.press("C")
        await driver.hears("first mark two or more runs with space")
        await driver.press("space", "C")
        await driver.sees("2 ━ CIFAR-10 · Adam")

    drive(world, play)


def test_more_than_can_be_told_apart_are_refused_and_a_mark_can_be_taken_back() -> None:
    runs = tuple(replace(SGD, run=f"20261121-11100{n}-sgd") for n in range(MOST + 1))
    world = fakes.world(runs)

    async def play(driver: Driver) -> None:
        await driver.press(*["space"] * (MOST + 1), "C")
        await driver.hears(f"at most {MOST} curves")
        await driver.press("space", "C")  # the last one is selected still
        await driver.sees(f"{MOST} ━ CIFAR-10")

    drive(world, play, size=(120, 40))


def test_it_follows_runs_that_train_and_closes_when_all_are_gone() -> None:
    world = fakes.world((SGD, ADAM))

    async def play(driver: Driver) -> None:
        await driver.press("space", "space", "C")
        await driver.sees("22.3k")
        world.monitor.snapshots = (changed(SGD, step=25_000), ADAM)
        await driver.sees("25.0k")
        world.monitor.snapshots = (ADAM,)
        await driver.until(lambda: "SGD" not in driver.text, "the one that is left alone")
        world.monitor.snapshots = ()
        await driver.sees("no runs yet")

    drive(world, play)


def timed(run: RunSnapshot, start: float, seconds: float) -> RunSnapshot:
    view = run.series["loss"]
    return replace(run, series={"loss": replace(view, times=[start + seconds * place for place in range(len(view.x))])})


def test_each_run_has_its_own_epochs_and_its_own_start() -> None:
    pair = (changed(SGD, epoch_steps=10), changed(ADAM, epoch_steps=20))
    first, second = overlay(pair, "epoch").runs
    assert first is not None
    assert second is not None
    assert (first.x[1], second.x[1]) == (5.5, 2.75)
    one, other = overlay((timed(SGD, 1000.0, 60.0), timed(ADAM, 9e6, 30.0)), "time").runs
    assert one is not None
    assert other is not None
    assert (one.axis, one.x[0], other.x[0]) == ("h", 0.0, 0.0)
    assert (one.x[60], other.x[60]) == (1.0, 0.5)


def test_a_run_without_a_curve_over_an_axis_keeps_its_number() -> None:
    by_epoch = replace(ADAM, series={"loss": replace(ADAM.series["loss"], axis="epoch")})
    none = replace(SGD, series={})
    assert overlay((none, by_epoch), "step").runs == (None, None)
    assert best_axis((none, by_epoch)) == "epoch"
    drawn = draw_overlay(overlay((none, by_epoch), "epoch"), ChartView(), 60, 12)
    assert "2" in "".join(line.text for line in drawn[:-1])
    assert draw_overlay(overlay((none,), "step"), ChartView(), 60, 12) == []


def test_a_curve_that_ends_in_a_gap_is_numbered_at_its_last_value() -> None:
    view = SGD.series["loss"]
    gap = replace(view, smooth=[*view.smooth[:50], *[math.nan] * 50])
    drawn = draw_overlay(overlay((replace(SGD, series={"loss": gap}),), "step"), ChartView(), 60, 12)
    columns = [line.text.index("1") for line in drawn[:-1] if "1" in line.text[8:]]
    assert columns
    assert all(column < 40 for column in columns)


@pytest.mark.parametrize("width", [20, 60, 120])
def test_it_keeps_to_the_width(width: int) -> None:
    runs = (SGD, ADAM, replace(SGD, argv=("python", "a" * 300)))
    for line in (*legend_rows(runs, width), *table_rows(runs, width)):
        assert line.width <= width
        assert "\x1b" not in line.text


def test_runs_with_the_same_settings_say_so() -> None:
    text = "\n".join(line.text for line in table_rows((SGD, replace(SGD, run="other")), 80))
    assert "the same settings" in text


def test_the_axis_goes_on_to_the_next_that_any_run_has() -> None:
    panel = Comparison()
    panel.snapshots = (changed(SGD, epoch_steps=None, steps=None), ADAM)
    assert [panel_axis(panel) for _ in range(2)] == ["epoch", "step"]


def panel_axis(panel: Comparison) -> str:
    """Without an app nothing can be painted."""
    panel.repaint = lambda: None  # type: ignore[method-assign]
    return panel.next_axis()
