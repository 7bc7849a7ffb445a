"""An exception names numbers in its last line; none of them is a reading."""

from __future__ import annotations

import pytest

from mpstui.core.formats import LogReader

SENTENCES = [
    "RuntimeError: MPS backend out of memory (MPS allocated: 1.25 GiB, other allocations: 8.50 MiB, max allowed: 2.00)",
    "[rank1]: torch.cuda.OutOfMemoryError: CUDA out of memory. Process 7 has loss: 0.5 used",
    "UserWarning: loss: 0.75 was reported twice at step: 12",
    "my.package.TrainingError: step: 40 loss: nan",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_an_exception_is_no_reading(sentence: str) -> None:
    reader = LogReader()
    points = [*reader.feed(f"{sentence}\n".encode() * 5), *reader.close()]
    assert points == []


def test_a_metric_called_error_still_is_one() -> None:
    reader = LogReader()
    lines = "".join(f"step: {step} loss: {1 / step:.4f} Error: {2 / step:.4f}\n" for step in range(1, 6))
    points = [*reader.feed(lines.encode()), *reader.close()]
    assert len(points) == 5
