"""Boxes of two columns: what was measured stands in them, and settings do."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import MetricPoint
from mpstui.core.formats.reader import LogReader

BAR = "Epoch 2:  50%|█████     | {n}/8 [00:04<00:04,  1.05s/it]"


def points(text: str) -> list[MetricPoint]:
    reader = LogReader()
    return [*reader.feed(text.encode()), *reader.close()]


def grid(**cells: object) -> str:
    rule = f"+{'-' * 16}+{'-' * 12}+\n"
    return rule + "".join(f"| {name.replace('_', ' '):14} | {value!s:10} |\n" for name, value in cells.items()) + rule


def test_a_grid_that_begins_behind_a_bar_is_read() -> None:
    """A bar has no end of line: what is printed beside it stands on the same one."""
    text = "".join(BAR.format(n=n) + grid(Shape_loss=f"0.{n}5", Loss=f"1.{n}5") for n in range(1, 5))
    assert [point.loss for point in points(text) if point.loss is not None] == [1.15, 1.25, 1.35, 1.45]


@pytest.mark.parametrize("rule", ["+====+====+\n", "+------+-----+\n"])
def test_settings_in_a_grid_are_no_metrics(rule: str) -> None:
    text = f"{rule}| Option | Value |\n{rule}| learning_rate | 0.001 |\n| hidden | 128 |\n| seed | 7 |\n{rule}"
    assert points(text) == []


def test_settings_in_a_grid_tell_what_is_planned() -> None:
    """texttable draws a rule under each of them."""
    rows = ("Epochs", 40), ("Learning rate", 0.05), ("Hidden units", 16), ("Dropout", 0.25)
    reader = LogReader()
    reader.feed("".join(grid(**{name.replace(" ", "_"): value}) for name, value in rows).encode())
    reader.feed(b"Epoch 3 - training loss: 0.5\n")
    found = reader.summary()
    assert (found.epoch, found.epochs, found.learning_rate, found.metrics) == (3, 40, 0.05, ("training loss",))


def test_settings_in_one_grid_tell_what_is_planned() -> None:
    reader = LogReader()
    reader.feed(grid(Option="Value", batch_size=4, epochs=12, lr=0.01, seed=7).encode() + b"epoch 1 loss 0.5\n")
    assert (reader.summary().epochs, reader.summary().learning_rate) == (12, 0.01)
