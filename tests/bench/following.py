"""Figures of docs/following.md, measured again: ``python -m tests.bench.following``.

Not a test: the numbers belong to the machine they were taken on, so each run begins with a yardstick.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mpstui.core.follow import Budget
from mpstui.core.logview.document import LogDocument
from mpstui.core.runs.external import ExternalMetrics
from mpstui.core.runs.follower import FULL_COLUMNS
from mpstui.core.runs.monitor import Monitor
from mpstui.core.series.series import Points, Series
from mpstui.ui.charting.data import ChartData
from mpstui.ui.charting.plot import ChartView, draw
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_home, make_monitor


def milliseconds(work: Callable[[], object]) -> float:
    """Of this process's own processor time: a busy machine does not falsify it much."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def yardstick() -> None:
    took = milliseconds(lambda: sum(i * i for i in range(1_000_000)))
    print(f"yardstick: a million additions in {took:.0f} ms")


def many_runs(folder: Path, count: int = 500) -> None:
    home = make_home(folder)
    for i in range(count):
        run = RunBuilder(home, f"run {i}", NOW + i, profile_text="x = 1\n" * 100).status("ended").launch()
        run.beat(step=100, steps=100, loss=0.5, phase="done").exit(code=0)
        run.points(*({"time": NOW + s, "attempt": 1, "step": s, "loss": 1 / (s + 1)} for s in range(300)))
    monitor = Monitor(home)
    print(f"{count} runs: first refresh {milliseconds(monitor.refresh):.0f} ms", end=", ")
    print(f"all curves {milliseconds(lambda: monitor.refresh_whole(30)):.0f} ms", end=", ")
    print(f"again {min(milliseconds(monitor.refresh) for _ in range(9)):.1f} ms")


def long_curves(folder: Path, metrics: int = 20, steps: int = 50_000) -> None:
    home, source = make_home(folder), random.Random(1)
    run = RunBuilder(home, "long").status("running", trainer=[1, 1]).launch().beat(step=steps, loss=0.5).hold()
    names = ["loss", *(f"metric_{i}" for i in range(metrics - 1))]
    with run.run.metrics.open("w") as file:
        for step in range(steps):
            values = {name: source.random() for name in names}
            file.write(json.dumps({"time": NOW + step, "attempt": 1, "epoch": 1, "step": step, **values}) + "\n")
    clock = FakeClock()
    clock.monotonic = time.monotonic  # type: ignore[method-assign]  # what a first view may spend is real time
    monitor = make_monitor(home, clock)
    first = milliseconds(lambda: monitor.refresh(run.run.run))
    whole = milliseconds(lambda: make_monitor(home, FakeClock()).snapshot(run.run.run))
    size = run.run.metrics.stat().st_size / 1e6
    print(f"{metrics} metrics x {steps} steps ({size:.0f} MB): first view {first:.0f} ms, whole {whole:.0f} ms")
    run.release()


def long_log(folder: Path, size: int = 1_000_000_000) -> None:
    path = folder / "output.log"
    lines = b"".join(b"2026-11-21 12:00:%02d step %d loss 0.123456 lr 0.001\n" % (i % 60, i) for i in range(20_000))
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(lines)
        file.write(b"the needle\n")
    document = LogDocument(path)

    def open_at_end() -> None:
        document.refresh()
        document.tail(50)

    print(
        f"{size / 1e9:.0f} GB log: at its end {milliseconds(open_at_end):.1f} ms, some of it counting lines", end=", "
    )
    print(f"a screenful {min(milliseconds(lambda: document.tail(50)) for _ in range(20)):.2f} ms", end=", ")
    print(f"found from its start in {milliseconds(lambda: document.search('needle', 0)) / 1000:.1f} s")


def foreign_log(path: Path, size: int) -> int:
    """A log of a program that knows nothing of us; returns its lines."""
    step = 0
    ends = [
        f" loss={9 / (1 + i % 997):.4f} lr=3.00e-04 gnorm={i % 991 / 100:.2f} tok/s={41_000 + i % 899} m={i % 7}G\n"
        for i in range(10_000)
    ]
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(
                "".join(
                    [f"[2026-11-21 12:00:{i % 60:02d},123] INFO step={step + i}{end}" for i, end in enumerate(ends)]
                ).encode()
            )
            step += len(ends)
    return step


def long_history(folder: Path, size: int = 100_000_000) -> None:
    """Every metric of it, read here."""
    path = folder / "foreign.log"
    step = foreign_log(path, size)
    points = ExternalMetrics(path, time.time)
    points.poll()
    took = milliseconds(lambda: points.read(Budget(600.0))) / 1000
    print(f"{size / 1e6:.0f} MB log, {step} lines of 4 metrics: whole history in {took:.1f} s")


def long_series() -> None:
    values = array("d", [random.random() for _ in range(100_000)])
    for count in (1000, 10_000_000):
        series = Series("loss")
        for first in range(0, count, len(values)):
            steps = array("d", range(first, min(count, first + len(values))))
            series.extend(1, Points(steps, steps, steps, values[: len(steps)]))
        curve = min(milliseconds(partial(series.view, most=FULL_COLUMNS)) for _ in range(20))
        redraw = min(milliseconds(partial(redrawn, series)) for _ in range(20))
        print(f"{count} points: a view costs {curve:.2f} ms, with the chart of it at 110x17 {redraw:.2f} ms")


def redrawn(series: Series) -> None:
    draw(ChartData(name="loss", train=series.view(most=FULL_COLUMNS)), ChartView(), 110, 17)


def main() -> None:
    yardstick()
    with tempfile.TemporaryDirectory() as name:
        many_runs(Path(name) / "runs")
        long_curves(Path(name) / "curves")
        long_log(Path(name))
        long_history(Path(name))
    long_series()


if __name__ == "__main__":
    main()
