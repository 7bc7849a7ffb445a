"""The best earlier run behind the chart of a live one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpstui.core.runs.ghost import race
from mpstui.ui.charting.data import chart_data, over_time, with_ghost
from mpstui.ui.charting.plot import ChartView, draw, frame
from tests.snapshots import changed

from . import fakes
from .driving import Driver, drive

LIVE = changed(fakes.running(), eta_seconds=600.0)
BEST = fakes.finished(name="CIFAR-10 lr=0.1", series={"loss": fakes.curve(points=1420, floor=0.2, seed=8)})


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 60)])
def test_the_best_earlier_run_stands_behind_a_live_one_and_a_key_takes_it_away(size: tuple[int, int]) -> None:
    world = fakes.world((LIVE, fakes.finished(profile="cifar")))
    world.services.racing.best = BEST

    async def play(driver: Driver) -> None:
        await driver.press("1")
        await driver.sees("level with" if size[0] < 80 else "CIFAR-10 lr=0.1")
        await driver.sees("best at this step")
        await driver.press("h")
        await driver.until(lambda: "best at this step" not in driver.text, "the chart without it")
        await driver.press("h")
        await driver.sees("best at this step")
        driver.world.monitor.snapshots = (replace(LIVE, state=BEST.state, health=None), BEST)
        await driver.until(lambda: "best at this step" not in driver.text, "a run that has ended races nobody")

    drive(world, play, size=size, opening=LIVE.run)


def test_its_curves_are_behind_all_others_and_on_the_axis() -> None:
    data = with_ghost(chart_data(LIVE, "loss"), LIVE, race(LIVE, BEST))
    assert [view.name for view in data.ghosts] == ["loss"], "it has no validation to stand behind this one's"
    space = frame(data, ChartView(), 100, 30)
    assert space is not None
    assert space.lines == 30 - 2 - 1
    drawn = draw(data, ChartView(), 100, 30)
    assert len(drawn) == 30
    assert any("ghost" in span.role for line in drawn[2:] for span in line.spans)
    assert drawn[1].text.startswith(" ┄ best: CIFAR-10 lr=0.1 · ")
    loss = LIVE.series["loss"]
    moved = over_time(replace(data, train=replace(loss, times=[float(x) for x in loss.x])))
    assert moved is not None
    assert not moved.ghosts, "nobody knows when it was measured"
    timed = replace(data.ghosts[0], times=[1000.0 + 2 * x for x in data.ghosts[0].x])
    moved = over_time(replace(data, ghosts=(timed,), train=replace(loss, times=[float(x) for x in loss.x])))
    assert moved is not None
    assert moved.train is not None
    assert moved.ghosts[0].x[0] == moved.train.x[0] == 0.0, "each from its own beginning"
    unit = loss.x[10] / moved.train.x[10]
    assert moved.ghosts[0].x[10] == pytest.approx(2 * data.ghosts[0].x[10] / unit)
    assert moved.said == data.said
