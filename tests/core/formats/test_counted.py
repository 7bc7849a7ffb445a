"""Counters that no word names: numbers that go up from line to line."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import Number, ParsedLog
from mpstui.core.formats.reader import LogReader


def read(text: str) -> ParsedLog:
    reader = LogReader()
    reader.feed(text.encode())
    reader.close()
    return reader.summary()


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("train loss of passage {n}:0.{n}5\n", (None, 7)),
        ("Loss [3, {n}00](epoch, minibatch):  1.{n}5\n", (3, 700)),
        ("epoch_out: 4, epoch_in: {n}, loss: 0.{n}5\n", (4, 7)),
        ("Durchlauf #{n}0 Loss=1.{n}5 | alpha 8\n", (None, 70)),
        # A bar that a program draws by hand.
        ("\r[{bar}]: {n} (Loss: 0.{n}5)", (None, 7)),
    ],
)
def test_what_goes_up_by_the_same_is_the_counter(form: str, place: tuple[Number | None, Number | None]) -> None:
    found = read("".join(form.format(n=n, bar=f"{'=' * n:9}") for n in range(1, 8)) + "\n")
    assert (found.epoch, found.step) == place
    assert found.train_loss is not None
    assert found.train_loss.count == 7


@pytest.mark.parametrize(
    ("form", "place"),
    [("Round {n:3d}, Average loss {loss}\n", (12, None)), ("Passage {n:<3d} | loss {loss}\n", (None, 12))],
)
def test_numbers_padded_to_a_column_count_on_when_they_get_another_digit(
    form: str, place: tuple[int | None, int | None]
) -> None:
    found = read("".join(form.format(n=n, loss=20 / (n + 7)) for n in range(13)))
    assert (found.epoch, found.step) == place
    assert found.train_loss is not None
    assert (found.train_loss.count, found.train_loss.last) == (13, 20 / 19)


@pytest.mark.parametrize(
    "form", ["loss of client {n}: 0.{n}5\n", "loss of passage {n}: 0.{n}5 \n" * 2, "Correct {n}0/100 loss: 0.{n}7\n"]
)
def test_the_number_of_a_part_and_one_that_stays_count_nothing(form: str) -> None:
    assert read("".join(form.format(n=n) for n in range(1, 8))).step is None


def test_lines_that_wait_for_others_are_read_in_their_order() -> None:
    lines = b"".join(b"loss of passage %d: 1.%d\n" % (n, n) for n in range(3)) + b"epoch 1 step 7 loss 1.9\n"
    assert [point.loss for point in LogReader().feed(lines)] == [1.0, 1.1, 1.2, 1.9]


def test_lines_that_still_wait_at_the_end_are_read() -> None:
    reader = LogReader()
    reader.feed(b"loss of passage 1: 1.5\nloss of passage 2: 1.25\n")
    assert len(reader.close()) == 2


def test_a_record_without_a_loss_is_counted_too_where_it_tells_the_rate() -> None:
    form = "0:0{n}:1{n} -   {n}00 -  267.1{n} words/s - ARITH:  0.6{n} - LR: 1.0e-04\n"
    found = read("".join(form.format(n=n) for n in range(1, 8)))
    assert (found.epoch, found.step, found.learning_rate) == (None, 700, 1e-4)
    assert "ARITH" in found.metrics
