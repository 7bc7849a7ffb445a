# ruff: noqa: E501 (the lines of logs are long)
"""The bulk reader gives what the ordinary one gives, and is worth having."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from mpstui.core.formats import bulk, shape
from mpstui.core.formats.points import ParsedLog, Point, PointColumns
from mpstui.core.formats.reader import LogReader
from mpstui.core.formats.shape import LineShape

LINES = 1500
BLOCK_OF_FEW = 700


def steps(i: int) -> str:
    return f"[{i:09d}@1763000000.123456] INFO step={i} loss={9 / (1 + i):.4f} lr=3.00e-04 tok/s={41000 + i % 900} mem=11.2GB"


def epochs(i: int) -> str:
    return f"2025-01-01 10:00:00,{i % 1000:03d} - app - INFO - Epoch [{i // 500}][{i % 500:3d}/500]  lr: 1.0e-03, loss: {3 - i / 5000:.4f}"


def dictionaries(i: int) -> str:
    return f"{{'loss': {3 - i / 5000:.4f}, 'grad_norm': 1.{i % 10}, 'learning_rate': {1e-5 * (i + 1):.3e}, 'epoch': {i / 1000:.2f}}}"


def thousands(i: int) -> str:
    return (
        f"step: {i:5d}  loss: {8 - i / 1000:8.4f}  grad_norm:  1.23  memory:  8.44GiB(13.20%)  tps: {6000 + i % 999:,}"
    )


def bare(i: int) -> str:
    return f"batch loss: {3 - i / 5000:.4f}"


def restarting(i: int) -> str:
    return f"step={i % 1000} loss={3 - i / 5000:.4f}"


def with_nan(i: int) -> str:
    return f"step={i} loss={'nan' if i % 97 == 0 else 3 - i / 5000}"


def with_others(i: int) -> str:
    return (
        f"eval_loss: {i}.5"
        if i % 50 == 7
        else "a warning, loss of 3 packets"
        if i % 11 == 0
        else f"step {i}/9000 | loss {3 - i / 5000:.5f}"
    )


def bars(i: int) -> str:
    n, epoch = i % 500, i // 500
    return f"\rEpoch {epoch}/9: {n // 5:3d}%|{'█' * (n // 50):<10}| {n}/500 [00:{n % 60:02d}<0:10:{n % 60:02d},  {n % 7 + 1}.50it/s, loss={3 - i / 5000:.4f}]"


def repeating_bars(i: int) -> str:
    n = i // 3
    return f"\r{n // 10:3d}%|{'█' * (n // 100):<10}| {n}/1000 [00:01<00:02,  1.50it/s, loss {3 - i // 30 / 100:.2f}]"


def open_bars(i: int) -> str:
    return f"\rEpoch {i // 2000}: {i % 2000 // 2}it [{i % 2000 // 120:02d}:{i % 60:02d},  1.50it/s, loss={3 - (i + 1) // 2 / 5000:.4f}]"


KINDS: list[Callable[[int], str]] = [
    steps,
    epochs,
    dictionaries,
    thousands,
    bare,
    restarting,
    with_nan,
    with_others,
    bars,
    repeating_bars,
    open_bars,
]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_hold_the_points_of_line_by_line_and_sum_up_to_the_same(kind: Callable[[int], str]) -> None:
    data = "".join(kind(i) + "\n" for i in range(LINES)).encode()
    slow = LogReader()
    ordinary = repr([told for point in slow.feed(data) for told in _told(point)])
    assert slow.summary().train_loss is not None
    for chunk in (BLOCK_OF_FEW, 40_000, 1_000_000):
        reader = LogReader()
        found = [point for start in range(0, len(data), chunk) for point in reader.take(data[start : start + chunk])]
        reader.close()
        assert repr([told for point in found for told in _told(point)]) == ordinary, chunk
        assert repr(reader.summary()) == repr(slow.summary()), chunk
        # Where every line of a log is a reading that goes on, most of them come as columns.
        if chunk > BLOCK_OF_FEW and kind in (steps, epochs, dictionaries, thousands):
            assert len(found) < LINES / 4


def test_lines_before_one_that_spoils_a_shape_are_counted() -> None:
    lines = [steps(i) for i in range(200)]
    lines[40] = "[000000040@1763000000.123456] INFO step=40 loss=1-2 lr=3.00e-04 tok/s=41000 mem=11.2GB"
    data = "\n".join([*lines, ""]).encode()
    assert repr(_skim(data + data, 1 << 20)) == repr(_fed(data + data))
    assert sum(len(_told(point)) for point in LogReader().take(data)) == len(LogReader().feed(data))


@pytest.mark.parametrize("ending", ["\r\n", "\x1b[0m\n"])
def test_line_ends_of_windows_and_colours_are_no_hindrance(ending: str) -> None:
    data = "".join(("\x1b[32m" if "\x1b" in ending else "") + steps(i) + ending for i in range(LINES)).encode()
    found = LogReader().take(data)
    assert [told for point in found for told in _told(point)] == [
        told for point in LogReader().feed(data) for told in _told(point)
    ]
    assert len(found) < LINES / 4


def test_shuffled_shapes_are_read_right() -> None:
    source = random.Random(3)
    data = "".join(source.choice((steps, thousands, with_others))(i) + "\n" for i in range(LINES)).encode()
    slow = LogReader()
    slow.feed(data)
    assert repr(_skim(data, 50_000)) == repr(slow.summary())


def test_bulk_is_many_times_as_fast() -> None:
    data = "".join(steps(i) + "\n" for i in range(60_000)).encode()
    sample = data[: data.index(b"\n", 200_000) + 1]
    started = time.process_time()
    LogReader().feed(sample)
    ordinary = (time.process_time() - started) / len(sample)
    started = time.process_time()
    _skim(data, 1 << 20)
    assert (time.process_time() - started) / len(data) < ordinary / 5


@pytest.mark.parametrize(
    ("line", "most"),
    [
        # What such a span means, only the lines above tell: a line alone is of another shape.
        (
            lambda i: (
                f"Epoch[{i // 90}] Batch [0-{20 * (i % 90)}]\tSpeed: 25.25 samples/sec\tM0_Acc=0.99{i}\tM1_Acc=0.98{i}"
            ),
            4,
        ),
        (lambda i: f"step {i} loss={3 - i / 5000:.4f}" + 60 * " ", 1),
    ],
)
def test_a_shape_that_fits_no_other_line_is_not_learned_again_and_again(
    line: Callable[[int], str], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[bytes] = []

    def learn(line: bytes, *others: Any) -> LineShape | None:
        learned.append(line)
        return shape.learn(line, *others)

    monkeypatch.setattr(bulk, "learn", learn)
    text = "".join(f"{line(i)}\n" for i in range(LINES)).encode()
    assert _fed(text) == _skim(text, len(text))
    assert 0 < len(learned) <= most


def _skim(data: bytes, chunk: int) -> ParsedLog:
    reader = LogReader()
    for start in range(0, len(data), chunk):
        reader.take(data[start : start + chunk])
    reader.close()
    return reader.summary()


def _fed(data: bytes) -> ParsedLog:
    reader = LogReader()
    reader.feed(data)
    reader.close()
    return reader.summary()


def _told(point: Point) -> list[tuple[object, ...]]:
    """What a curve gets of a point: run, step, epoch, loss, rate, and the named values."""
    newest = point.newest
    if not isinstance(point, PointColumns):
        values = {**newest.metrics, **newest.eval_metrics}
        epoch = math.nan if newest.epoch is None else float(newest.epoch)
        return [(newest.run, newest.run_step, epoch, newest.loss, newest.learning_rate, values)]
    return [
        (
            newest.run,
            None if point.steps is None else float(point.steps[i]),
            float(point.epochs[i]),
            loss,
            None if point.rates is None else point.rates[i],
            {name: column[i] for name, column in point.values.items()},
        )
        for i, loss in enumerate(point.losses)
    ]


_DAMAGE: list[Callable[[random.Random, str], str]] = [
    lambda source, line: line[: source.randrange(len(line) + 1)],
    lambda source, line: line.replace(str(source.randrange(10)), "nan", 1),
    lambda source, line: line + "\r" + line,
    lambda source, line: "\x1b[31m" + line + "\x1b[0m",
    lambda source, line: line[len(line) // 2 :] + line[: len(line) // 2],
    lambda source, line: "\ufffd\0" + line,
    lambda source, line: "",
    lambda source, line: line.replace("loss", "val_loss"),
    lambda source, line: line + " " + line,
]


@pytest.mark.parametrize("seed", range(12))
def test_columns_agree_on_damaged_and_interleaved_logs_however_they_are_cut(seed: int) -> None:
    source = random.Random(seed)
    kinds = source.sample(KINDS, source.randrange(1, 4))
    lines = []
    for i in range(1200):
        line = source.choice(kinds)(i)
        lines.append(source.choice(_DAMAGE)(source, line) if source.random() < 0.03 else line)
    data = "\n".join([*lines, ""]).encode()
    ordinary = [told for point in LogReader().feed(data) for told in _told(point)]
    reader, found, position = LogReader(), list[tuple[object, ...]](), 0
    while position < len(data):
        length = source.choice((1, 50, 3000, 30_000))
        found += [told for point in reader.take(data[position : position + length]) for told in _told(point)]
        position += length
    assert repr(found) == repr(ordinary)
