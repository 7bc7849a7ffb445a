"""Runs that are compared: the curves of all of them whole, in bounded memory."""

from __future__ import annotations

from pathlib import Path

from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.runs import monitor as monitoring
from mpstui.core.runs.monitor import Monitor
from tests.core.runs.build import FakeClock, RunBuilder, make_home, make_monitor

POINTS, SPIKE = 5000, 3210


def ended(home: Home, number: int) -> RunBuilder:
    """A run of five thousand steps, one of which is an outlier, with ten metrics."""
    run = RunBuilder(home, f"lr={number}", created=1_800_000_000.0 + number).status("ended").launch().exit(code=0)
    others = {f"metric_{at}": float(at) for at in range(8)}
    return run.points(
        *(
            {"time": 1.8e9 + at, "step": at, "attempt": 1, "loss": 99.0 if at == SPIKE else 1 / (at + 1), **others}
            for at in range(POINTS)
        ),
        {"time": 1.8e9 + POINTS, "step": POINTS, "attempt": 1, "val_loss": 0.5},
    )


def whole(monitor: Monitor, runs: tuple[str, ...]) -> dict[str, RunSnapshot]:
    """Read on as the worker does, until nothing is pending."""
    for _ in range(200):
        found = {one.run: one for one in monitor.refresh(compared=runs)}
        if not sum([monitor.read_on(run, 0.01) for run in runs]):
            return {one.run: one for one in monitor.refresh(compared=runs)} if found else {}
    raise AssertionError("never read to the end")


def test_all_compared_runs_come_with_every_metric_and_no_point_is_lost(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    runs = tuple(ended(home, number).run.run for number in range(3))
    monitor = make_monitor(home, FakeClock())
    first = {one.run: one for one in monitor.refresh(compared=runs)}
    assert all("metric_7" in first[run].series for run in runs), "a sample of every metric at once"
    found = whole(monitor, runs)
    for run in runs:
        loss = found[run].series["loss"]
        assert loss.complete
        assert (loss.count, loss.maximum, loss.minimum) == (POINTS, 99.0, 1 / POINTS)
        assert len(loss.x) > 500
        assert found[run].series["val_loss"].last == 0.5


def test_the_curves_of_many_runs_take_no_more_memory_than_those_of_a_few(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    runs = tuple(ended(home, number).run.run for number in range(4))
    monitor = make_monitor(home, FakeClock())
    monitoring_buckets = monitoring.COMPARED_BUCKETS
    try:
        monitoring.COMPARED_BUCKETS = 4 * 10 * 300
        found = whole(monitor, runs)
    finally:
        monitoring.COMPARED_BUCKETS = monitoring_buckets
    assert all(len(view.x) <= 300 for one in found.values() for view in one.series.values())
    assert found[runs[0]].series["loss"].maximum == 99.0
    alone = monitor.refresh(focus=runs[0])
    while monitor.read_on(runs[0], 0.01):
        pass
    alone = monitor.refresh(focus=runs[0])
    assert max(len(one.series["loss"].x) for one in alone if one.run == runs[0]) > 300, "alone it has all its detail"
