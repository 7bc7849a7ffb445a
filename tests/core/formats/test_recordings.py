"""Every recording reads as a person reads it, whole, in pieces, and without inventing a loss."""

from __future__ import annotations

import random

import pytest

from mpstui.core.formats.files import read_log
from mpstui.core.formats.points import MetricPoint
from mpstui.core.formats.reader import LogReader

from .recorded import EXPECTED, FOLDER, NAMES, same, values

LOGS = [name for name in NAMES if not name.endswith(".json")]


@pytest.mark.parametrize("name", NAMES)
def test_reads_what_a_person_reads(name: str) -> None:
    found = values(read_log(FOLDER / name))
    wrong = {key: (found[key], wanted) for key, wanted in EXPECTED[name].items() if not same(found[key], wanted)}
    assert not wrong, f"(found, expected) differ: {wrong}"


@pytest.mark.parametrize("name", LOGS)
def test_the_chunks_do_not_matter(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    whole = _points(data, [len(data)])
    for seed in range(3):
        assert _points(data, _cuts(len(data), seed)) == whole
    assert _points(data[:1500], [1] * 1500) == _points(data[:1500], [1500])


@pytest.mark.parametrize("name", [n for n in LOGS if EXPECTED[n].get("first") is None])
def test_no_loss_is_invented(name: str) -> None:
    found = read_log(FOLDER / name)
    assert found.train_loss is None


def _points(data: bytes, sizes: list[int]) -> list[str]:
    """Points as text (NaN equals NaN there)."""
    reader = LogReader()
    points: list[MetricPoint] = []
    position = 0
    for size in sizes:
        points += reader.feed(data[position : position + size])
        position += size
    points += reader.close()
    return [repr(point) for point in points]


def _cuts(length: int, seed: int) -> list[int]:
    random_source = random.Random(seed)
    sizes: list[int] = []
    while sum(sizes) < length:
        sizes.append(random_source.choice((1, 2, 7, 40, 333, 2000)))
    return sizes
