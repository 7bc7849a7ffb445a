"""The grid of metrics: pages, focus, filter, one cursor through all, and a key's time with long histories."""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace

import pytest

from mpstui.core.series.series import Points, Series
from mpstui.ui.panels import RunFacts
from mpstui.ui.screens.grid import GridScreen
from mpstui.ui.screens.run import RunScreen
from mpstui.ui.widgets.metric_grid import MetricGrid, arrangement, names_of, thinned_view

from . import fakes
from .driving import Driver, drive
from .test_metrics import of_many


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9, 12, 50, 400])
@pytest.mark.parametrize(("width", "height"), [(60, 13), (80, 22), (120, 38), (200, 58)])
def test_as_many_charts_as_fit_well_and_all_where_they_do(count: int, width: int, height: int) -> None:
    across, down = arrangement(count, width, height)
    assert (width - across + 1) // across >= min(34, width)
    assert height // down >= min(8, height)
    roomy = count <= ((width + 1) // 35) * (height // 8)
    assert across * down >= count if roomy else across * down < count + across
    assert (across - 1) * down < count  # no column is empty


def test_the_grid_shows_every_curve_once_in_the_order_of_the_table() -> None:
    names = names_of(of_many(others=3))
    assert names[:5] == ["loss", "aux_00", "aux_01", "aux_02", "lr"]
    assert "val_loss" not in names  # drawn over its training loss
    assert len(names) == len(set(names)) == 35
    assert names_of(of_many(), "selection_a_0[12]$") == ["val_selection_a_01", "val_selection_a_02"]


def test_keys_move_the_focus_turn_pages_and_enlarge() -> None:
    run = of_many(others=3)

    async def play(driver: Driver) -> None:
        await driver.press("g")
        await driver.sees("35 metrics · page 1 of 3")
        screen = driver.app.screen
        assert isinstance(screen, GridScreen)
        assert "▌loss" in driver.text
        await driver.press("right", "down")
        assert screen.grid.focus_name == "lr"
        await driver.press("n")
        await driver.sees("page 2 of 3")
        await driver.press("N", "left")
        await driver.sees("page 1 of 3")
        await driver.press("pagedown", "pagedown", "pagedown", "right")
        await driver.sees("page 3 of 3")
        await driver.press("slash", *"_2[5-9]")
        await driver.sees("▌val_selection_a_29")
        await driver.sees("5 metrics")
        await driver.press("enter", "up", "enter")
        assert isinstance(driver.app.screen, RunScreen)
        await driver.until(lambda: driver.app.screen.query_one("#chart").size.height > 15)
        assert driver.app.screen.body.chart.metric == "val_selection_a_27"
        await driver.press("g", "escape")
        assert isinstance(driver.app.screen, RunScreen)

    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


def grid_of(width: int, height: int, metrics: int = 8, points: int = 100_000) -> tuple[MetricGrid, list[str]]:
    chance = random.Random(1)
    steps = [float(step) for step in range(points)]
    series = {}
    for number in range(metrics):
        one = Series(f"metric_{number:02}")
        one.extend(1, Points(steps, steps, steps, [chance.random() + number for _ in steps]))
        series[one.name] = one.view()
    grid = MetricGrid(blocks=False)
    grid.show(replace(fakes.running(), series=series))
    return grid, list(series)


def test_one_cursor_goes_through_all_charts_and_leaves_them_at_now() -> None:
    run = of_many(groups=0, others=3)

    async def play(driver: Driver) -> None:
        await driver.press("g", "shift+left", *["shift+left"] * 5)
        await driver.sees("at the cursor")
        lines = [line for line in driver.lines if "│" in line]
        assert any(line.count("│") >= 5 for line in lines)  # two frames, one border, and the cursor in both charts
        await driver.press("escape")
        assert "at the cursor" not in driver.text
        assert "n N page" in driver.text
        await driver.press("escape")
        await driver.sees("─ 1 chart")

    drive(fakes.world((run,)), play, size=(80, 24), opening=run.run)


def test_a_thinned_curve_keeps_its_extremes_and_its_gaps() -> None:
    values = [1.0] * 1000
    values[3], values[700:790] = 50.0, [math.nan] * 90
    series = Series("loss")
    steps = [float(step) for step in range(1000)]
    series.extend(1, Points(steps, steps, steps, values))
    thin = thinned_view(series.view(), 100)
    assert len(thin.x) <= 100
    assert max(value for value in thin.high if value == value) == 50.0
    assert any(mean != mean for mean in thin.mean)
    assert thin.x[-1] == 999.0
    assert thinned_view(thin, 200) is thin


def test_only_what_changed_is_drawn_anew_and_a_key_is_answered_in_its_time() -> None:
    grid, names = grid_of(200, 58)
    grid.focus_name = names[0]
    first = grid.rows(200, 58)
    cells = dict(grid._cells)
    grid.focus_name = names[1]
    begun = time.thread_time()
    moved = grid.rows(200, 58)
    assert time.thread_time() - begun < 0.05
    assert [name for name in names if grid._cells[name] is not cells[name]] == []
    assert first != moved
    times = []
    for step in range(10):
        grid._cursor = 1000.0 + 5000 * step
        begun = time.thread_time()
        grid.rows(200, 58)
        times.append(time.thread_time() - begun)
    assert sorted(times)[-2] < 0.05
    assert all(len(row.text) <= 200 for row in moved)


def test_facts_of_a_run_without_metrics_say_so() -> None:
    grid = MetricGrid(blocks=False)
    for run, told in ((fakes.running(), "no metrics reported yet"), (fakes.finished(), "this run reported no metrics")):
        grid.show(RunFacts(snapshot=replace(run, series={})).snapshot)
        assert grid.rows(80, 20)[0].text.strip() == told


def test_that_lines_are_averages_is_said_once_for_all_charts() -> None:
    grid, _ = grid_of(160, 40, metrics=2, points=4000)
    assert "lines are averages" in "".join(span.text for span in grid.status())
    assert "average" not in grid.rows(160, 40)[0].text
    few, _ = grid_of(160, 40, metrics=2, points=4)
    assert "averages" not in "".join(span.text for span in few.status())


def test_a_value_that_validation_measured_says_so_without_colour() -> None:
    grid = MetricGrid(blocks=False)
    grid.show(fakes.running())
    titles = grid.rows(160, 40)[0].text
    assert f" val {fakes.running().series['val_loss'].last:.4g}"[:8] in titles
