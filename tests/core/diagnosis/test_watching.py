"""Pictures of a run become warnings: memory and pace are remembered, and forgotten with the attempt."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpstui.core.diagnosis.live import LiveWatch
from mpstui.core.model.snapshot import Numbers, RunSnapshot, SeriesView, State
from mpstui.wire.heartbeat import MemoryReading
from tests.snapshots import changed

GB = 10**9
RUN = RunSnapshot(
    run="a", name="net", dir=Path("/none"), state=State.RUNNING, seen=0.0, attempt=1, numbers=Numbers(step=50)
)


def curve(name: str, values: list[float]) -> SeriesView:
    x = [float(step) for step in range(1, len(values) + 1)]
    return SeriesView(name, "step", x, values, values, values, values, len(values))


def ids(watch: LiveWatch, moment: float, **known: Any) -> list[str]:
    return [warning.id for warning in watch.look(changed(RUN, seen=moment, **known))]


def test_curves_are_judged_as_they_are() -> None:
    assert ids(LiveWatch(), 0.0, series={"loss": curve("loss", [1.0] * 200)}) == ["plateau"]
    assert ids(LiveWatch(), 0.0, series={"loss": curve("loss", [1.0, math.nan])}) == ["nan_loss"]
    assert ids(LiveWatch(), 0.0, loss_is_finite=False) == ["nan_loss"]
    norms = curve("grad_norm", [1.0] * 60 + [500.0])
    assert ids(LiveWatch(), 0.0, series={"grad_norm": norms}) == ["exploding_gradient"]


def test_memory_and_pace_are_remembered_and_forgotten_with_the_attempt() -> None:
    watch = LiveWatch()
    found: list[str] = []
    for sample in range(80):
        memory = MemoryReading(driver=8 * GB + sample * GB // 20, limit=16 * GB)
        pace = 4.0 if sample < 60 else 1.0
        found = ids(watch, sample * 5.0, memory=memory, steps_per_second=pace)
    assert found == ["memory_growing", "slowing"]
    assert ids(watch, 1000.0, attempt=2, memory=MemoryReading(driver=12 * GB, limit=16 * GB)) == []


def test_a_run_that_does_not_train_is_left_alone() -> None:
    flat = {"loss": curve("loss", [1.0] * 200)}
    assert ids(LiveWatch(), 0.0, state=State.FINISHED, series=flat) == []
    assert ids(LiveWatch(), 0.0, paused=True, series=flat) == []


def test_a_watched_file_that_is_gone_is_told_before_all_else() -> None:
    gone = replace(RUN, state=State.WATCHED, name="train.log", gone=True)
    assert LiveWatch().look(gone)[0].sentence == (
        "train.log is gone (deleted, or moved away); what is shown was read before."
    )


def test_a_log_that_ends_with_an_exception_comes_before_all_else_at_once() -> None:
    watch = LiveWatch()
    flat = {"loss": curve("loss", [1.0] * 200)}
    assert ids(watch, 0.0, series=flat) == ["plateau"]
    crashed = replace(RUN, seen=0.1, state=State.WATCHED, series=flat, log_exception="ValueError: no data.")
    assert watch.look(crashed)[0].sentence == "The log ends with ValueError: no data."
    assert ids(watch, 0.2, series=flat) == ["plateau"]
