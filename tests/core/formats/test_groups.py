"""Words in front of a line's names: of a group that is told in turn with another, or of whoever prints."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import Point
from mpstui.core.formats.reader import LogReader


def read(log: str, *, in_bulk: bool = False) -> tuple[LogReader, dict[str, list[float]]]:
    """The reader, and the values of each name in order."""
    reader = LogReader()
    points: list[Point] = [*(reader.take if in_bulk else reader.feed)(log.encode()), *reader.close()]
    curves: dict[str, list[float]] = {}
    for point in points:
        one = point.newest
        assert one is point, "these lines have no counters that go on"
        for name, value in {**one.metrics, **one.eval_metrics}.items():
            curves.setdefault(name, []).append(value)
    return reader, curves


def epochs(*lines: str, count: int = 4) -> str:
    below = "".join(f"{line}\n" for line in lines)
    return "".join(f"Epoch {n}: loss 0.{9 - n}5\n{below.format(n=n)}" for n in range(1, count + 1))


@pytest.mark.parametrize("in_bulk", [False, True])
@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (("Seen: acc: 0.{n}5", "Unseen: acc: 0.{n}1"), {"Seen acc", "Unseen acc"}),
        (("[seen] acc 0.{n}5", "[unseen] acc 0.{n}1"), {"seen acc", "unseen acc"}),
        (("old | auc 0.{n}5", "new | auc 0.{n}1"), {"old auc", "new auc"}),
        (("many: acc=0.{n}5", "medium: acc=0.{n}3", "few: acc=0.{n}1"), {"many acc", "medium acc", "few acc"}),
        (
            ("head: acc: 0.{n}5", "head: f1: 0.{n}4", "tail: acc: 0.{n}1", "tail: f1: 0.{n}2"),
            {"head acc", "head f1", "tail acc", "tail f1"},
        ),
    ],
)
def test_what_is_told_of_groups_in_turn_is_a_curve_for_each(
    lines: tuple[str, ...], names: set[str], in_bulk: bool
) -> None:
    reader, curves = read(epochs(*lines), in_bulk=in_bulk)
    assert set(curves) == {"loss", *names}
    assert {name: len(values) for name, values in curves.items()} == dict.fromkeys(curves, 4)
    loss = reader.summary().train_loss
    assert loss is not None
    assert loss.count == 4


def test_no_loss_of_a_group_is_that_of_the_run() -> None:
    reader, curves = read("".join(f"Front: loss: 0.{n}5\nRear: loss: 0.{n}1\n" for n in range(9, 4, -1)))
    assert {name: len(values) for name, values in curves.items()} == {"Front loss": 5, "Rear loss": 5}
    assert reader.summary().train_loss is None


def test_a_group_that_joins_others_later_has_a_curve_of_its_own() -> None:
    log = epochs("base: acc: 0.{n}5", "novel: acc: 0.{n}1", count=3)
    _, curves = read(log + epochs("base: acc: 0.{n}5", "novel: acc: 0.{n}1", "rare: acc: 0.{n}3", count=3))
    assert {name: len(values) for name, values in curves.items() if name != "loss"} == {
        "base acc": 6,
        "novel acc": 6,
        "rare acc": 3,
    }


@pytest.mark.parametrize("in_bulk", [False, True])
@pytest.mark.parametrize(
    "lines",
    [
        ("trainer: acc: 0.{n}5",),
        ("trainer: acc: 0.{n}5", "callback: acc: 0.{n}5"),
        ("trainer: acc: 0.{n}5", "evaluator: val_acc: 0.{n}1"),
        ("engine: acc: 0.{n}5", "engine: loss_scale: 128"),
    ],
)
def test_a_word_in_front_of_a_metric_that_no_other_word_tells_is_whoever_prints(
    lines: tuple[str, ...], in_bulk: bool
) -> None:
    reader, curves = read(epochs(*lines), in_bulk=in_bulk)
    assert curves.get("acc", [0.15])[0] == 0.15
    assert not any(word in name for name in curves for word in ("trainer", "callback", "engine", "evaluator"))
    loss = reader.summary().train_loss
    assert loss is not None
    assert loss.count == 4


@pytest.mark.parametrize(
    "lines", [("Current: loss: 0.{n}5", "Best: loss: 0.{n}4"), ("Batch: loss: 0.{n}5", "Epoch mean: loss: 0.{n}6")]
)
def test_words_that_say_how_a_value_of_the_run_was_taken_head_no_group(lines: tuple[str, ...]) -> None:
    reader, _ = read("".join(f"{line}\n" for n in range(9, 4, -1) for line in lines).format(n=5))
    assert not any(word in name for name in reader.summary().metrics for word in ("Current", "Batch"))


def test_the_loss_of_a_lone_logger_is_told_line_by_line_before_long() -> None:
    reader = LogReader()
    for n in range(1, 6):
        reader.feed(f"trainer: loss: 0.{n}5\n".encode())
    told = reader.feed(b"trainer: loss: 0.65\n")
    assert [point.loss for point in told] == [0.65]


def test_what_waits_for_another_group_is_told_where_none_comes() -> None:
    reader = LogReader()
    assert not reader.feed(b"Epoch 1: loss 0.5\nSeen: acc: 0.75\n")[1:]
    assert [dict(point.metrics) for point in reader.close()] == [{"acc": 0.75}]
