"""A part of a run's curves read again from its files, point for point."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from mpstui.core.follow import Budget
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.runs.window import Stretches, Window, WindowReader, in_detail

from .build import NOW, FakeClock, RunBuilder, make_home, make_monitor

STEPS = 8000


def value(step: int) -> float:
    return random.Random(step).random()


def long_run(folder: Path, *, printed: bool = False) -> tuple[RunBuilder, RunSnapshot]:
    """Two attempts: the second resumed from a step of the first."""
    home = make_home(folder)
    run = RunBuilder(home, "long").status("ended", 2).launch().launch(2).exit(2, code=0)
    steps = [(1, step) for step in range(4800)] + [(2, step) for step in range(4000, STEPS)]
    if printed:
        for attempt in (1, 2):
            lines = (f"step {s}/{STEPS} loss {value(s * a):.6f}\n" for a, s in steps if a == attempt)
            run.output("".join(lines), attempt)
    else:
        run.points(*({"attempt": a, "step": s, "loss": value(s * a), "lr": 0.1} for a, s in steps))
    return run, whole(folder)


def whole(folder: Path) -> RunSnapshot:
    clock = FakeClock()
    monitor = make_monitor(make_home(folder), clock)
    (key,) = (one.run for one in monitor.refresh())
    found = monitor.refresh(key)[0]
    while found.loading:
        monitor.read_on(key, 1.0)
        found = monitor.refresh(key)[0]
    return found


def read(
    snapshot: RunSnapshot, left: float, right: float, known: Stretches | None = None
) -> tuple[list[float], list[float], int]:
    """Steps and values in the window as the chart would draw them, and the slices it took."""
    window = Window(snapshot.run, ("loss",), left, right)
    reader, slices = WindowReader(snapshot, window, known), 0
    while not reader.done:
        reader.read(Budget(0.0))
        slices += 1
    curve = snapshot.series["loss"]
    part = reader.curves.get("loss")
    drawn = curve if part is None else in_detail(curve, part, window)
    places = [place for place, x in enumerate(drawn.x) if left <= x <= right]
    assert list(drawn.x) == sorted(drawn.x)
    assert sum(drawn.points) == pytest.approx(sum(curve.points), abs=2 * max(curve.points))
    return [drawn.x[place] for place in places], [drawn.values[place] for place in places], slices


@pytest.mark.parametrize(
    ("left", "right", "printed"),
    [(2000, 2300, False), (3900, 4200, False), (4700, 5100, True), (7800, 8500, False), (7800, 8500, True)],
)
def test_a_window_holds_every_point_that_counts(tmp_path: Path, left: int, right: int, printed: bool) -> None:
    _, snapshot = long_run(tmp_path, printed=printed)
    assert max(snapshot.series["loss"].points) > 4
    steps, values, slices = read(snapshot, left, right)
    assert slices > 1
    found = dict(zip(steps, values, strict=True))
    for step in range(left + 40, min(right, STEPS) - 40):
        assert found[step] == pytest.approx(value(step * (2 if step >= 4000 else 1)), abs=1e-6)


def test_what_was_written_since_stays_as_coarse_as_it_is_known(tmp_path: Path) -> None:
    run, snapshot = long_run(tmp_path)
    run.points(*({"attempt": 2, "step": s, "loss": value(s * 2)} for s in range(STEPS, STEPS + 500)))
    steps, _, _ = read(snapshot, 7500, 8500)
    assert max(steps) <= STEPS, "the snapshot knows nothing of it yet"
    steps, _, _ = read(whole(tmp_path), 7900, 8900)
    assert set(range(7950, STEPS + 460)) <= set(map(int, steps))


def test_the_next_window_reads_only_what_reaches_into_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpstui.core.runs.window.SLICE_BYTES", 8192)
    run, snapshot = long_run(tmp_path)
    known = Stretches()
    whole_file = read(snapshot, 2000, 2300, known)[2]
    assert whole_file > 50
    steps, values, slices = read(snapshot, 7000, 7300, known)
    assert (steps, values) == read(snapshot, 7000, 7300)[:2]
    assert slices < whole_file / 5
    run.points(*({"attempt": 2, "step": s, "loss": value(s * 2)} for s in range(STEPS, STEPS + 500)))
    later = read(whole(tmp_path), 7900, 8900, known)
    assert set(range(7950, STEPS + 460)) <= set(map(int, later[0])), "what was written since is read as well"
    assert later[2] < whole_file / 3
    data = run.run.metrics.read_bytes()
    run.run.metrics.write_bytes(data.replace(b'"loss": 0.', b'"loss": 7.'))
    coarse = read(snapshot, 2000, 2300)[0]
    assert read(snapshot, 2000, 2300, known)[0] == coarse, "written anew"
    run.run.metrics.write_bytes(data)
    assert len(read(snapshot, 2000, 2300, known)[0]) > 250, "and nothing of that is believed any more"


def test_files_that_no_longer_tell_it_leave_the_curve_as_it_was(tmp_path: Path) -> None:
    run, snapshot = long_run(tmp_path)
    before = read(snapshot, 2000, 2300)[0]
    assert len(before) > 250
    data = run.run.metrics.read_bytes()
    run.run.metrics.write_bytes(data[: len(data) // 10])
    coarse = read(snapshot, 2000, 2300)[0]
    assert len(coarse) < 80, "cut"
    run.run.metrics.write_bytes(data.replace(b'"loss": 0.', b'"loss": 7.'))
    assert read(snapshot, 2000, 2300)[0] == coarse, "written anew"
    run.run.metrics.unlink()
    assert read(snapshot, 2000, 2300)[0] == coarse, "gone"


def test_points_that_are_not_finite_keep_their_place(tmp_path: Path) -> None:
    run = RunBuilder(make_home(tmp_path), "nan").status("ended").launch().exit(code=0)
    run.points(*({"attempt": 1, "step": s, "loss": math.nan if s == 3000 else value(s)} for s in range(STEPS)))
    steps, values, _ = read(whole(tmp_path), 2900, 3100)
    assert math.isnan(values[steps.index(3000)])
    assert run.created == NOW
