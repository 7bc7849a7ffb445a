"""Nothing a log may hold breaks the reader, slows it beyond linear, or makes it grow."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpstui.core.formats.notices import strip_prefix
from mpstui.core.formats.pairs import read_pairs
from mpstui.core.formats.reader import LogReader

from .recorded import FOLDER, NAMES

UNITS = [
    "loss ", "loss: ", "1 ", "1/", "a b ", "[", "[1/2]", "{'loss': ", "{'", "%|", "1%|█| 1/2 [", "9,", "9,999",
    "1e", "1e9", "--", "| ", "loss=nan ", "epoch 1 ", "train val ", "第1轮", "INFO ", "- ", "(", "'a': '", "   ", "\t",
    "::", "12:34:56 ", "x" * 50 + " ", "1.1.1.", "∞", "损失", "| a | 1 |", "step: 1 loss: ", "train 1 ",
    "val: 1 loss 2 ",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_a_hostile_line_takes_linear_time(unit: str) -> None:
    def cost(length: int) -> float:
        line = (unit * (length // len(unit) + 1))[:length].encode() + b"\n"
        reader = LogReader()
        started = time.process_time()
        reader.feed(line * 2)
        return time.process_time() - started

    cost(100)
    assert cost(16_000) < 1.5, "a line of 16 kB must be read in a blink"


@settings(max_examples=60)
@given(st.binary(max_size=2000))
def test_any_bytes_are_survived(data: bytes) -> None:
    reader = LogReader()
    points = [*reader.feed(data), *reader.close()]
    assert (reader.summary().train_loss is None) == all(point.loss is None for point in points)


@settings(max_examples=60)
@given(st.text(max_size=300))
def test_any_line_has_pairs_or_none(text: str) -> None:
    for pair in read_pairs(strip_prefix(text)):
        assert 0 <= pair.start < pair.end


@pytest.mark.parametrize("name", NAMES)
def test_mutated_recordings_are_survived(name: str) -> None:
    source = random.Random(name)
    data = bytearray((FOLDER / name).read_bytes()[:3000])
    for _ in range(60):
        data[source.randrange(len(data))] = source.randrange(256)
    reader = LogReader()
    for start in range(0, len(data), 97):
        reader.feed(bytes(data[start : start + 97]))
    reader.close()
    whole = LogReader()
    whole.feed(bytes(data))
    whole.close()
    assert repr(reader.summary()) == repr(whole.summary())


def test_interleaved_writers_do_not_mix_their_losses_up() -> None:
    train = [f"step {i}/100 loss {2 - i / 100:.3f}\n" for i in range(1, 60)]
    other = [f"val_loss: 9.{i:03d}\n" for i in range(1, 60)]
    text = "".join(a + b for a, b in zip(train, other, strict=True))
    reader = LogReader()
    reader.feed(text.encode())
    found = reader.summary().train_loss
    assert found is not None
    assert (found.first, found.last, found.count) == (1.99, 1.41, 59)


def test_state_does_not_grow_with_names() -> None:
    reader = LogReader()
    for i in range(3000):
        reader.feed(f"name{i}: 1.5 loss_{i}: 2.5 step: {i}\n".encode())
    assert len(reader.summary().metrics) <= 512
