"""The history file is bounded, survives tearing and a second writer."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest

from mpstui.core.model.snapshot import RunSnapshot, State
from mpstui.core.telemetry.history import HistoryFile, HistoryPoint, run_point
from mpstui.core.telemetry.model import GpuSample, SystemSample, TreeSample


def point(time: float, value: float = 1.0) -> HistoryPoint:
    return HistoryPoint(time, {"cpu_percent": value})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    history = HistoryFile(tmp_path / "telemetry.jsonl")
    assert history.read() == []
    for at in range(5):
        assert history.append(point(float(at), at / 2))
    assert history.read() == [point(float(at), at / 2) for at in range(5)]
    assert (tmp_path / "telemetry.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_torn_tail_is_passed_over_and_written_after(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    history = HistoryFile(path)
    history.append(point(1.0))
    with path.open("ab") as file:
        file.write(b'{"time":2.0,"cpu_per')
    assert [known.time for known in history.read()] == [1.0]
    history.append(point(3.0))
    assert [known.time for known in history.read()] == [1.0, 3.0]


def test_every_cut_of_a_file_reads_as_a_beginning_of_it(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    history = HistoryFile(path)
    for at in range(4):
        history.append(point(float(at)))
    whole, points = path.read_bytes(), history.read()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        found = history.read()
        assert found == points[: len(found)]


def test_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_bytes(b'[]\n\xff\xfe\n{"time":"x"}\n{"time":1,"note":"hot","up":true,"cpu_percent":5}\n{"time":NaN}\n')
    with path.open("a") as file:
        file.write(f'{{"time":{10**400}}}\n{{"time":2,"rss_bytes":{10**400}}}\n{"[" * 100_000}\n')
    assert HistoryFile(path).read() == [HistoryPoint(1, {"cpu_percent": 5}), HistoryPoint(2, {})]


def test_the_file_stays_bounded_and_keeps_the_whole_course(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    history = HistoryFile(path, max_bytes=9000)
    largest = 0
    for at in range(3000):
        history.append(point(float(at)))
        largest = max(largest, path.stat().st_size)
    times = [known.time for known in history.read()]
    assert largest <= 9000 + 100
    assert (times[0], times[-1]) == (0.0, 2999.0)
    assert times == sorted(times)
    longest = max(later - earlier for earlier, later in pairwise(times))
    assert longest < 3000 / 20, "an even resolution over the whole course"
    assert times[-50:] == [float(at) for at in range(2950, 3000)], "the newest part is whole"
    assert list(tmp_path.iterdir()) == [path], "no temporary file is left"


def test_two_monitors_can_follow_one_run(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    first, second = HistoryFile(path, max_bytes=4000), HistoryFile(path, max_bytes=4000)
    for at in range(400):
        (first if at % 2 else second).append(point(float(at)))
    assert first.read() == second.read()
    assert {399.0, 398.0, 0.0} <= {known.time for known in first.read()}


def test_a_disk_that_takes_nothing_breaks_nothing(tmp_path: Path) -> None:
    history = HistoryFile(tmp_path / "gone" / "telemetry.jsonl")
    assert not history.append(point(1.0))
    (tmp_path / "gone").mkdir()
    assert history.append(point(1.0))


def test_a_full_disk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    history = HistoryFile(full)
    assert not history.append(point(1.0))


def test_a_sample_keeps_its_known_numbers_alone() -> None:
    system = SystemSample(time=5.0, cpu_percent=12.3456, gpus=(GpuSample(index=1, busy_percent=0.0),), thermal="heavy")
    tree = TreeSample(time=5.0, process_count=1, rss_bytes=7)
    run = RunSnapshot(run="a", name="net", dir=Path("/none"), state=State.RUNNING, seen=5.0, attempt=2)
    known = {"cpu_percent": 12.35, "gpu1.busy_percent": 0.0, "tree.rss_bytes": 7}
    assert run_point(system, tree, run) == HistoryPoint(5.0, {**known, "attempt": 2, "throttled": 1})


def test_non_finite_values_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    HistoryFile(path).append(HistoryPoint(1.0, {"a": math.nan, "b": math.inf, "c": 2.0}))
    assert json.loads(path.read_text()) == {"time": 1.0, "c": 2.0}
