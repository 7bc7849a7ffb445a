"""metrics.jsonl: newest first, the whole in slices, a sample until then."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.follow import Budget
from mpstui.core.runs.files import PointReader, parse_lines, sample_records
from mpstui.core.runs.numbers import reported_metrics
from tests.waiting import wait_until

NO_TIME, TIME = Budget(0.0), Budget(60.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def write(path: Path, count: int, *, start: int = 0, padding: int = 0) -> None:
    with path.open("a") as file:
        for i in range(start, start + count):
            record = {"time": 1000.0 + i, "attempt": 1, "step": i, "loss": 1.0 / (i + 1), "pad": "x" * padding}
            file.write(json.dumps(record) + "\n")


def test_the_newest_state_of_a_long_file_is_known_before_its_history(path: Path) -> None:
    write(path, 20_000)
    reader = PointReader(path)
    records = reader.read_newest()
    assert reader.newest["step"] == 19_999
    assert len(records) < 2000
    reader.sketch()
    assert not reader.read_history(NO_TIME) or not reader.complete
    curve = reader.views()["loss"]
    assert not curve.complete
    assert 60 <= len(curve.x) <= 256
    assert (curve.x[0], curve.x[-1]) == (0.0, 19_999.0)
    while not reader.complete:
        reader.read_history(NO_TIME)
    curve = reader.views()["loss"]
    assert (curve.complete, curve.count, curve.first, curve.last) == (True, 20_000, 1.0, 1.0 / 20_000)


def test_views_are_made_again_only_when_a_point_was_added(path: Path) -> None:
    write(path, 50)
    reader = PointReader(path)
    reader.read_history(TIME)
    first = reader.views()["loss"]
    reader.read_history(TIME)
    assert reader.views()["loss"] is first
    write(path, 1, start=50)
    reader.read_history(TIME)
    assert reader.views()["loss"].count == 51


def test_a_burst_larger_than_a_look_loses_nothing_of_the_history(path: Path) -> None:
    reader = PointReader(path)
    reader.read_newest()
    reader.read_history(TIME)
    write(path, 10_000, padding=50)
    assert reader.read_newest()[-1]["step"] == 9_999
    wait_until(lambda: not reader.read_history(TIME), what="the end of the history")
    assert reader.views()["loss"].count == 10_000


@pytest.mark.parametrize("padding", [0, 3000, 20_000])
def test_a_sample_spans_the_file_whatever_the_length_of_its_lines(path: Path, padding: int) -> None:
    write(path, 600 if padding else 6000, padding=padding)
    records = sample_records(path, path.stat().st_size)
    steps = [record["step"] for record in records]
    assert steps == sorted(steps)
    assert len(steps) < 600
    if padding < 20_000:
        assert len(steps) >= 10
        assert steps[0] == 0


def test_a_damaged_line_costs_itself_alone() -> None:
    data = b'{"step": 1}\n{"step": 2, torn\n\xff\xfe\n[1]\n"x"\n\n{"step": 3}\n'
    assert [record["step"] for record in parse_lines(data)] == [1, 3]
    assert parse_lines(b'{"a": 1}, {"b": 2}\n{"c": 3}\n') in ([{"c": 3}], [{"a": 1}, {"b": 2}, {"c": 3}])


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_raise(lines: list[bytes]) -> None:
    for record in parse_lines(b"\n".join(lines) + b"\n"):
        assert set(reported_metrics(record)) <= set(record)


def test_what_counts_and_what_names_is_no_metric() -> None:
    newest = {"time": 1.0, "step": 2, "loss": 0.5, "note": "x", "flag": True, "grad": None}
    assert reported_metrics(newest) == {"loss": 0.5, "grad": None}


def test_interleaved_writers_lose_no_line(path: Path) -> None:
    reader, source = PointReader(path), random.Random(2)
    with path.open("ab", buffering=0) as one, path.open("ab", buffering=0) as other:
        for i in range(200):
            line = json.dumps({"attempt": 1, "step": i, "loss": float(i)}) + "\n"
            source.choice([one, other]).write(line.encode())
            if i % 20 == 0:
                reader.read_history(TIME)
    reader.read_history(TIME)
    assert reader.views()["loss"].count == 200
