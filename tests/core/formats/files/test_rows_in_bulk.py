"""Rows of JSON and CSV that come as columns are those that come one by one, and come many times as fast."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from mpstui.core.formats.files import MetricFile, detect
from tests.core.formats.test_bulk import _told as told

ROWS = 900


def plain(i: int) -> str:
    return f'{{"step": {i}, "loss": {3 - i / 5000:.4f}, "lr": {1e-5 * (i + 1):.3e}, "time": 1763000000.{i}}}'


def epochs(i: int) -> str:
    return f'{{"epoch": {i // 300 + 1}, "iter": {i % 300}, "mode": "train", "loss": {9 / (i + 1)}, "grad": -{i % 7}.5}}'


def evaluated(i: int) -> str:
    return f'{{"step": {i}, "eval_loss": {3 - i / 900}}}' if i % 40 == 39 else plain(i)


def with_nan(i: int) -> str:
    return f'{{"step": {i}, "loss": {"NaN" if i % 97 == 50 else 3 - i / 5000}, "ok": true, "note": "at {i} of {ROWS}"}}'


def restarting(i: int) -> str:
    return f'{{"global_step": {i % 300 + 1}, "train_loss": {3 - i / 5000}, "accuracy": {i / ROWS}, "top5": {i}}}'


def whole_numbers(i: int) -> str:
    return f'{{"step": {i}, "loss": {i % 3 if i % 5 else i / 8}, "reward": {i % 11}}}'


def lists(i: int) -> str:
    return f'DLLL {{"step": [{i // 300}, {i % 300}], "data": {{"loss": {3 - i / 5000}, "throughput": {i}.5}}}}'


def quoted(i: int) -> str:
    return f'{{"current_steps": {i}, "total_steps": {ROWS}, "loss": "{3 - i / 5000:.4f}", "epoch": {i / 300}}}\r'


_BROKEN = (
    *('{"step": 5, "lo', "", "[1, 2]", '{"step": 7, "loss": 1.2.3}', '{"step": 7, "loss": 1e400}'),
    *('{"step": 07, "loss": 0.5}', '{"step": 7, "loss": "2e.96", "lr": 1}', '{"step": 7, "loss": +1.5}'),
    plain(7).replace(": 1763000000", ": 176-300"),
)


def broken(i: int) -> str:
    return _BROKEN[i // 31 % len(_BROKEN)] if i % 31 == 17 else plain(i)


def table(header: str, row: Callable[[int], str]) -> Callable[[int], str]:
    return lambda i: row(i) if i else header


JSON = (plain, epochs, evaluated, with_nan, restarting, whole_numbers, lists, quoted, broken)
CSV = {
    "plain": table("epoch,step,loss,lr", lambda i: f"{i // 300},{i},{3 - i / 5000},0.001"),
    "neighbours": table("epoch,step,loss,lr", lambda i: f"{i // 3 + 100},{i + 100},{i % 7 + 100},0.001"),
    "empty": table("step,train_loss,val_loss", lambda i: f"{i},,{i / 8}" if i % 50 == 7 else f"{i},{i / 9},"),
    "quoted": table('"step","loss","what"', lambda i: f'{i},{3 - i / 5000},"a, b {i}"\r'),
    "tabs": table("step\tloss\tbest", lambda i: f"{i}\t{3 - i / 5000}\t{3 - i // 9 / 900}"),
    "torn": table("step,loss,acc", lambda i: f"{i},{'2e.96' if i % 50 == 7 else i / 900},{'+' * (i % 70 == 9)}{i}"),
    "heads": table("step,loss,acc", lambda i: f"{i % 400},{3 - i / 5000},{i}" if i % 400 else "step,loss,acc"),
}


def _file(path: Path, row: Callable[[int], str], rows: Iterable[int] = range(ROWS)) -> Path:
    path.write_text("".join(f"{row(i)}\n" for i in rows), newline="")
    return path


def _taken(reader: MetricFile, limit: int) -> list[object]:
    found, before = [], -1
    while reader.position != before:
        before = reader.position
        found += [one for point in reader.take(limit) for one in told(point)]
    return [*found, *(one for point in reader.close() for one in told(point))]


@pytest.mark.parametrize("row", [*JSON, *(pytest.param(row, id=name) for name, row in CSV.items())])
def test_columns_hold_the_rows_one_by_one(row: Callable[[int], str], tmp_path: Path) -> None:
    path = _file(tmp_path / ("a.jsonl" if row in JSON else "a.csv"), row)
    slow = detect(path)
    ordinary = [one for point in (*slow.poll(), *slow.close()) for one in told(point)]
    assert slow.summary().train_loss is not None
    for limit in (700, 9000, 1 << 20):
        reader = detect(path)
        assert repr(_taken(reader, limit)) == repr(ordinary), limit
        assert repr(reader.summary()) == repr(slow.summary()), limit


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_file_that_begins_anew_is_another_one(name: str, tmp_path: Path) -> None:
    path = _file(tmp_path / name, plain if name == "a.jsonl" else CSV["plain"])
    reader = detect(path)
    assert len(_taken(reader, 1 << 20)) >= ROWS - 1
    other = table("loss,step", lambda i: f"{i / 9},{i}") if name == "a.csv" else restarting
    _file(path, other, range(200))
    assert repr(_taken(reader, 1 << 20)) == repr(_taken(detect(path), 1 << 20))


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_several_kinds_agree_however_they_are_cut(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    kinds = source.sample(JSON, 3)
    path = _file(tmp_path / "a.jsonl", lambda i: source.choice(kinds)(i))
    assert repr(_taken(detect(path), source.choice((900, 8000)))) == repr(_taken(detect(path), 1 << 20))


@pytest.mark.parametrize(("name", "row"), [("a.jsonl", plain), ("a.csv", CSV["plain"])])
def test_columns_are_many_times_as_fast(name: str, row: Callable[[int], str], tmp_path: Path) -> None:
    path = _file(tmp_path / name, row, range(8 * ROWS))
    started = time.process_time()
    detect(path).poll()
    ordinary = time.process_time() - started
    started = time.process_time()
    detect(path).take(1 << 30)
    assert time.process_time() - started < ordinary / 4
