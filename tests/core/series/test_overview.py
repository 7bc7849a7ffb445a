"""The metrics of a run as a list that fits."""

from __future__ import annotations

from array import array
from math import nan
from pathlib import Path

import pytest

from mpstui.core.model.patterns import PatternMistake
from mpstui.core.model.snapshot import Numbers, RunSnapshot, SeriesView, State
from mpstui.core.series.metric_words import reading_order
from mpstui.core.series.overview import Fold, Metric, arranged, metrics_of
from mpstui.core.series.series import Points, Series


def view(name: str, values: list[float]) -> SeriesView:
    series = Series(name)
    steps = [float(step) for step in range(len(values))]
    series.extend(1, Points(steps, steps, steps, array("d", values)))
    return series.view()


def run(*views: SeriesView, **numbers: object) -> RunSnapshot:
    series = {one.name: one for one in views}
    known = Numbers(**numbers)  # type: ignore[arg-type]
    return RunSnapshot("r", "r", Path("/r"), State.RUNNING, 0.0, numbers=known, series=series)


def test_what_was_measured_twice_stands_there_once() -> None:
    curve = [3.0, nan, 1.0]
    found = metrics_of(run(*(view(name, curve) for name in ("train_loss", "loss", "Average loss", "val_loss"))))
    assert [(one.name, one.also) for one in found] == [("loss", ("Average loss", "train_loss")), ("val_loss", ())]


def test_what_tells_of_the_pace_stands_behind_what_was_learnt() -> None:
    paces = ("eval_runtime", "eval_samples_per_second", "time/fps", "charts/SPS", "Time", "gpu_mem", "Duration", "ETA")
    found = metrics_of(
        run(*(view(name, [float(at)]) for at, name in enumerate((*paces, "val_acc", "loss", "perplexity"))))
    )
    assert [one.name for one in found[:3]] == ["loss", "perplexity", "val_acc"]
    assert {one.name for one in found[3:]} == set(paces)


@pytest.mark.parametrize("other", [[3.0, 2.0, 0.5], [3.0, 1.0], [3.0, 1.9, 1.0]])
def test_what_differs_in_one_value_stays_apart(other: list[float]) -> None:
    found = metrics_of(run(view("loss", [3.0, 2.0, 1.0]), view("train_loss", other)))
    assert [one.name for one in found] == ["loss", "train_loss"]


def test_what_repeats_another_curve_with_fewer_digits_is_the_same_under_whatever_name() -> None:
    logged = [1 / (3 + at) for at in range(30)]
    printed = [round(value, 4) for value in logged]
    for count in (29, 30):  # the newest value has not come to both yet
        (found,) = metrics_of(run(view("loss", printed), view("losses/l_pix", logged[:count])))
        assert (found.name, found.also, found.otherwise) == ("loss", ("losses/l_pix",), "losses/l_pix")
    (found,) = metrics_of(run(view("loss", printed), view("b/loss", logged), view("c/l", logged), view("a/l", printed)))
    assert found.also == ("a/l", "b/loss", "c/l")
    assert len(metrics_of(run(view("loss", printed), view("l_all", [value + 0.0001 for value in logged])))) == 2
    assert len(metrics_of(run(view("loss", logged), view("l_all", logged)))) == 2, "a total, and its only part"
    assert len(metrics_of(run(view("loss", printed[:9]), view("losses/l_pix", logged[:9])))) == 2, "by chance, perhaps"
    assert len(metrics_of(run(view("lr", [0.1] * 30), view("momentum", [0.1] * 30)))) == 2, "neither has changed"


def test_values_of_different_things_that_happen_to_be_equal_stay_apart() -> None:
    found = metrics_of(run(view("loss", [1.0]), view("accuracy", [1.0]), view("val_loss", [1.0])))
    assert [one.name for one in found] == ["loss", "val_loss", "accuracy"]


def test_a_value_without_a_history_joins_the_curve_that_ends_with_it() -> None:
    found = metrics_of(run(view("train_loss", [2.0, 1.0]), loss=1.0, lr=0.5, metrics={"acc": None}))
    assert [(one.name, one.also, one.view is not None) for one in found] == [
        ("train_loss", ("loss",), True),
        ("acc", (), False),
        ("lr", (), False),
    ]
    apart = metrics_of(run(view("train_loss", [2.0, 1.0]), loss=1.5))
    assert [one.name for one in apart] == ["loss", "train_loss"]


def names(entries: list[Metric | Fold]) -> list[str]:
    return [one.name if isinstance(one, Metric) else f"{one.beginning}* {one.count}" for one in entries]


def test_a_curve_that_another_witness_spells_otherwise_is_one_with_the_printed_value() -> None:
    found = metrics_of(run(view("d_loss", [2.0, 1.0]), view("acc", [0.5]), metrics={"D loss": 1.5, "test acc": 0.25}))
    assert [(one.name, one.value) for one in found] == [("d_loss", 1.0), ("acc", 0.5), ("test acc", 0.25)]


def test_names_that_begin_alike_are_folded_where_there_is_no_room_for_them() -> None:
    many = [Metric(f"val_selection_{n}") for n in range(30)]
    metrics = [Metric("loss"), Metric("val_loss"), Metric("lr"), Metric("val_acc"), *many, Metric("z")]
    assert arranged(metrics, 40) == metrics
    assert names(arranged(metrics, 10)) == ["loss", "val_loss", "lr", "val_acc", "val_selection_* 30", "z"]
    opened = arranged(metrics, 10, {"val_selection_"})
    assert names(opened)[4:7] == ["val_selection_* 30", "val_selection_0", "val_selection_1"]
    assert len(opened) == 36


def test_no_more_is_folded_than_must_be_and_never_a_loss() -> None:
    groups = [Metric(f"{group}/{n}") for group, count in (("a", 9), ("b", 6), ("c", 3)) for n in range(count)]
    metrics = [Metric("train/loss"), *groups]
    assert names(arranged(metrics, 12)) == ["train/loss", "a/* 9", *(one.name for one in groups[9:])]
    assert names(arranged(metrics, 2)) == ["train/loss", "a/* 9", "b/* 6", "c/* 3"]
    losses = [Metric(f"val_{word}") for word in ("loss", "Loss", "LOSS", "losS")]
    assert arranged(losses, 1) == losses


def test_a_pattern_finds_other_names_too_and_is_refused_where_it_could_take_for_ever() -> None:
    snapshot = run(view("loss", [1.0]), view("train_loss", [1.0]), view("Top1", [1.0]))
    assert [one.name for one in metrics_of(snapshot, "train|top")] == ["loss", "Top1"]
    assert metrics_of(snapshot, "TOP") == []
    for mistaken in ("(", "(a+)+b"):
        with pytest.raises(PatternMistake):
            metrics_of(snapshot, mistaken)


def test_numbers_in_names_are_in_the_order_of_numbers() -> None:
    names = ["layer10/norm", "layer2/norm", "m1", "m", "m10", "m2", "loss", "layer2"]
    assert sorted(names, key=reading_order) == ["layer2", "layer2/norm", "layer10/norm", "loss", "m", "m1", "m2", "m10"]
