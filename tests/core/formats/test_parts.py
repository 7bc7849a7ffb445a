"""Values of one class, symbol or head beside those of the run: each keeps a name of its own, none is the run's."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import ParsedLog
from mpstui.core.formats.reader import LogReader


def read(log: str) -> ParsedLog:
    reader = LogReader()
    reader.feed(log.encode())
    return reader.summary()


def lines(form: str, count: int = 3) -> str:
    return "".join(form.format(n=n) + "\n" for n in range(1, count + 1))


def losses(found: ParsedLog) -> tuple[float, float, int] | None:
    loss = found.train_loss
    return None if loss is None else (loss.first, loss.last, loss.count)


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("Test statistics: Old nodes -- auc: 0.9{n}, ap: 0.8{n}", {"Test Old nodes auc", "Test Old nodes ap"}),
        ("Seen classes -- acc: 0.9{n}\nUnseen classes -- acc: 0.1{n}", {"Seen classes acc", "Unseen classes acc"}),
        (
            "INFO:root:new users -- recall: 0.9{n}\nINFO:root:old users -- recall: 0.1{n}",
            {"new users recall", "old users recall"},
        ),
        ("Final results -- acc: 0.9{n}", {"acc"}),
        ("Training -- acc: 0.9{n}", {"acc"}),
        ("Epoch {n} -- acc: 0.9{n}", {"acc"}),
        ("Validation -- acc: 0.9{n}", {"Validation acc"}),
    ],
)
def test_what_a_double_dash_parts_from_measures_is_the_group_that_they_are_of(form: str, names: set[str]) -> None:
    found = read(lines("Epoch {n} loss: 1.{n}5\n" + form, 6))
    assert losses(found) == (1.15, 1.65, 6)
    assert {name for name in found.metrics if "loss" not in name} == names


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("class 0 accuracy: 0.{n}1\n  class 1 accuracy: 0.{n}2", {"class 0 accuracy", "class 1 accuracy"}),
        ("Class 0: IoU: 0.{n}1\nClass 1: IoU: 0.{n}2", {"Class 0 IoU", "Class 1 IoU"}),
        ("class 04: #TP= 61{n}, #FN=57, IoU=0.{n}1\nclass 05: #TP= 6{n}, #FN=5, IoU=0.{n}2", {"class 05 IoU"}),
        ("class 3: acc=0.{n}1, f1=0.{n}2", {"class 3 acc", "class 3 f1"}),
        ("class 3: acc: 0.{n}1, class 4: acc: 0.{n}2", {"class 3 acc", "class 4 acc"}),
        ("label 3 f1: 0.{n}1, label 4 f1: 0.{n}3", {"label 3 f1", "label 4 f1"}),
        ("AB: loss=0.{n}3 acc=0.{n}1\nBTC-USD: loss=0.{n}4 acc=0.{n}2", {"AB loss", "AB acc", "BTC-USD loss"}),
    ],
)
def test_a_value_of_one_class_has_the_name_of_the_class(form: str, names: set[str]) -> None:
    found = read(lines("Epoch {n} loss: 1.{n}5\n" + form))
    assert losses(found) == (1.15, 1.35, 3)
    assert names <= set(found.metrics)
    assert not {"accuracy", "IoU", "f1", "acc"} & set(found.metrics)


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("Epoch {n} loss[0]: 0.{n}1 loss[1]: 0.{n}2", {"loss[0]", "loss[1]"}),
        ("Epoch {n} Loss (task 1): 0.{n}1 Loss (task 2): 0.{n}2", {"Loss (task 1)", "Loss (task 2)"}),
    ],
)
def test_an_index_within_a_name_belongs_to_it(form: str, names: set[str]) -> None:
    found = read(lines(form))
    assert found.train_loss is None
    assert names == set(found.metrics)


def test_a_second_value_of_a_name_is_told_apart_by_the_number_in_front_of_it() -> None:
    found = read(lines("step {n}0 loss 0.{n}9 stage 2 loss: 0.{n}5, stage 3 loss: 0.{n}4"))
    assert losses(found) == (0.19, 0.39, 3)
    assert {"loss", "stage 2 loss", "stage 3 loss"} == set(found.metrics)


def test_each_of_two_names_side_by_side_has_its_own_value() -> None:
    (point,) = LogReader().feed(b"step 5 Critic Accuracy (Loss): 0.75 (1.25)\n")
    assert dict(point.metrics) == {"Critic Accuracy": 0.75, "Critic Loss": 1.25}


def test_rows_of_a_table_are_those_of_their_symbol() -> None:
    rows = "1  AB  0.5{n}  0.6{n}\n1  CD  0.4{n}  0.5{n}\n2  AB  0.4{n}  0.5{n}\n2  CD  0.3{n}  0.4{n}\n"
    found = read("epoch  symbol  train_loss  val_loss\n" + rows.format(n=1))
    assert found.train_loss is None
    assert {"AB train_loss", "CD train_loss", "AB val_loss", "CD val_loss"} == set(found.metrics)


def test_rows_of_a_table_are_of_training_or_of_an_evaluation_as_they_say() -> None:
    found = read(
        "epoch  phase  loss  acc\n1  train  0.51  0.31\n1  val  0.61  0.21\n2  train  0.41  0.41\n2  val  0.71  0.31\n"
    )
    assert losses(found) == (0.51, 0.41, 2)
    assert "val loss" in found.metrics


def test_a_cell_without_a_value_leaves_the_others_under_their_names() -> None:
    reader = LogReader()
    header = "epoch    train_loss    valid_loss    accuracy\n"
    (point,) = reader.feed((header + "    1        0.5012                      0.81\n").encode())
    assert (point.loss, dict(point.metrics), dict(point.eval_metrics)) == (
        0.5012,
        {"train_loss": 0.5012, "accuracy": 0.81},
        {},
    )


def test_a_row_that_is_half_written_is_not_read() -> None:
    reader = LogReader()
    points = reader.feed(b"epoch    train_loss    valid_loss\n    1        0.50        0.55\n    2        0.40")
    assert len(points) == 1
    assert reader.close() == []


def test_a_table_that_is_drawn_again_with_another_row_is_no_new_run() -> None:
    head, foot = "┏━━━━━━━┳━━━━━━┓\n┃ Epoch ┃ Loss ┃\n┡━━━━━━━╇━━━━━━┩\n", "└───────┴──────┘\n"
    rows = [f"│ {epoch}     │ 0.{9 - epoch}1 │\n" for epoch in range(1, 5)]
    drawn = "".join(f"{head}{''.join(rows[:count])}{foot}\x1b[{count + 4}A\x1b[J" for count in range(1, 5))
    found = read(drawn + head + "".join(rows) + foot)
    assert (found.runs, losses(found)) == (1, (0.81, 0.51, 4))


@pytest.mark.parametrize(
    ("form", "names"),
    [
        (
            "Last {n} training episodes: mean/median reward 20.{n}/19.{n}, min/max reward -9.{n}/45.{n}",
            "mean median min max",
        ),
        ("step {n}0 reward mean/std/max: 20.{n} / 1.{n} / 45.{n}", "mean std max"),
        ("epoch {n} reward (min/max) = 20.{n}/45.{n}", "min max"),
    ],
)
def test_statistics_side_by_side_have_a_value_each(form: str, names: str) -> None:
    reader = LogReader()
    reader.feed("".join(form.format(n=n) + "\n" for n in (3, 1, 4, 2)).encode())
    assert reader.summary().metrics == tuple(f"{name} reward" for name in names.split())


def test_statistics_with_another_number_of_values_are_left_alone() -> None:
    points = LogReader().feed(b"epoch 3 loss 0.5 reward mean/max: 20.5\n")
    assert [dict(point.metrics) for point in points] == [{"loss": 0.5}]


def test_a_label_behind_whose_values_they_are_is_part_of_their_names() -> None:
    log = "epoch 1 loss 0.5\nVAL: RAW : MAE   49.25; RMSE   65.5.\nVAL: RAW-Mid : MAE   51.25; RMSE   67.5.\n"
    *_, raw, middle = LogReader().feed(log.encode())
    assert dict(raw.eval_metrics) == {"VAL RAW MAE": 49.25, "VAL RAW RMSE": 65.5}
    assert dict(middle.eval_metrics) == {"VAL RAW-Mid MAE": 51.25, "VAL RAW-Mid RMSE": 67.5}


def test_a_count_with_what_it_comes_to_behind_a_tilde_is_that_share() -> None:
    found = LogReader().feed(
        b"epoch 3 loss 0.5\nValidation: loss = 1.25. correct prediction ratio  52/80 ~  0.650000\n"
    )
    assert dict(found[-1].eval_metrics) == {"Validation loss": 1.25}  # a ratio is believed once it has changed
    found = LogReader().feed(b"epoch 3 loss 0.5\nValidation: loss = 1.25. accuracy  52/80 ~  0.650000\n")
    assert dict(found[-1].eval_metrics) == {"Validation loss": 1.25, "Validation accuracy": 0.65}
