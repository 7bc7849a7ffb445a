"""The epoch that the heading of an evaluation names: that of the training, or a number of the evaluation's own."""

from __future__ import annotations

import pytest

from mpstui.core.formats.reader import LogReader

HEADINGS = (
    *("VALIDATION : Epoch {}", "Validation: epoch {}", "[Val] Epoch {}", "Test - Epoch {}", "=== Eval | Epoch {} ==="),
    *("Epoch {} - Validation", "Val Epoch: [{}]", "Epoch: {}, Validation", "[Epoch {}] Testing", "Test (epoch {})"),
    *("Testing at epoch {}", "Validation epoch {0}/{0}"),
)


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("of_all", ["", "/3"])
@pytest.mark.parametrize("number", [5, 1000000])
def test_a_number_that_is_no_epoch_of_the_training_moves_nothing(heading: str, of_all: str, number: int) -> None:
    reader, at_once = LogReader(), LogReader()
    text = "".join(
        f"Epoch {n}{of_all}\nStep 10/50 loss 2.{n}\nStep 20/50 loss 1.{n}\n{heading.format(number)}\n"
        f"loss: 3.4{n} acc: 0.3{n}\n"
        for n in (1, 2, 3)
    ).encode()
    points = [*reader.feed(text), *reader.close()]
    at_once.take(text)
    assert at_once.summary() == reader.summary()
    assert (reader.summary().epoch, reader.summary().runs) == (3, 1)
    evaluated = [(point.counters.epoch, *point.eval_metrics.values()) for point in points if point.eval_metrics]
    assert evaluated == [(1, 3.41, 0.31), (2, 3.42, 0.32), (3, 3.43, 0.33)]
    assert [point.loss for point in points if point.loss is not None] == [2.1, 1.1, 2.2, 1.2, 2.3, 1.3]


@pytest.mark.parametrize("heading", HEADINGS)
def test_evaluations_may_name_the_epochs_that_training_does_not(heading: str) -> None:
    reader = LogReader()
    reader.feed(b"Starting from epoch 0\n")
    for n in range(5, 25, 5):
        reader.feed(f"step {n * 10} loss 2.{n:02d}\n{heading.format(n)}\nloss: 3.{n:02d} acc: 0.{n:02d}\n".encode())
    assert reader.summary().epoch == 20


def test_evaluations_may_come_more_often_than_lines_of_training() -> None:
    reader = LogReader()
    for n in range(0, 450, 50):
        told = f"Epoch {n} loss 2.{n:03d}\n" if n % 100 == 0 else ""
        reader.feed(f"{told}Validation epoch {n}\nloss: 3.{n:03d} acc: 0.{n:03d}\n".encode())
        assert reader.summary().epoch == n or n == 50
