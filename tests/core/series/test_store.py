"""Records of metrics.jsonl to curves: odd records, several shapes mixed, axes for points without a step."""

from __future__ import annotations

import math
import random
from array import array
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.series.pyramid import numbers
from mpstui.core.series.series import COARSE_CAPACITY, FINE_SERIES, MOST_SERIES, SeriesStore


def test_train_and_validation_records_share_the_axis() -> None:
    store = SeriesStore()
    store.add(
        [
            {"time": 1.0, "attempt": 1, "epoch": 1, "step": 10, "loss": 2.0},
            {"time": 2.0, "attempt": 1, "epoch": 1, "step": 20, "loss": 1.0},
            {"time": 3.0, "attempt": 1, "epoch": 1, "val_loss": 1.5},
        ]
    )
    val = store.views().get("val_loss")
    assert val is not None
    assert (list(val.x), val.evaluation) == ([20.0], True)
    assert set(store.views()) == {"loss", "val_loss"}


def test_null_is_a_gap_and_text_is_no_metric() -> None:
    store = SeriesStore()
    store.add([{"step": 1, "loss": None, "note": "x", "nonfinite": ["loss"], "ok": True}, {"step": 2, "loss": 1.0}])
    loss = store.views().get("loss")
    assert loss is not None
    assert (loss.count, loss.last, list(loss.gaps)) == (2, 1.0, [1.0])
    assert "note" not in store.views()


def test_without_any_step_the_epoch_is_the_axis_and_else_the_number_of_the_point() -> None:
    store = SeriesStore()
    store.add([{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.0}])
    loss = store.views().get("loss")
    assert loss is not None
    assert (loss.axis, list(loss.x)) == ("epoch", [1.0, 2.0])
    store.add([{"speed": 5.0}, {"speed": 6.0}])
    speed = store.views().get("speed")
    assert speed is not None
    assert (speed.axis, list(speed.x)) == ("point", [1.0, 2.0])
    store.add([{"step": 30, "speed": 7.0}])
    speed = store.views()["speed"]
    assert (speed.axis, list(speed.x)) == ("step", [1.0, 2.0, 30.0]), "those were before the first step"


def test_a_program_that_makes_up_names_does_not_fill_the_memory() -> None:
    store = SeriesStore()
    store.add([{"step": i, f"name {i}": 1.0} for i in range(MOST_SERIES + 50)])
    assert len(store.views()) == MOST_SERIES
    assert store.is_full


def test_of_thousands_of_metrics_all_are_kept_and_the_later_ones_coarser() -> None:
    store, names = SeriesStore(), [f"m{at}" for at in range(FINE_SERIES + 100)]
    steps = array("d", range(5000))
    store.add_columns(0, dict.fromkeys(names, steps), steps=steps, epochs=steps, times=steps)
    found = store.views()
    assert not store.is_full
    assert len(found) == len(names)
    fine, coarse = found["m0"], found[names[-1]]
    assert len(coarse.x) <= COARSE_CAPACITY < len(fine.x)
    assert (coarse.count, coarse.last, coarse.minimum, coarse.maximum) == (5000, 4999, 0, 4999)


def test_only_wanted_names_are_kept() -> None:
    store = SeriesStore(only=frozenset({"loss"}))
    store.add([{"step": 1, "loss": 1.0, "accuracy": 0.5}, {"step": 2, "accuracy": 0.5}, {"loss": 3.0}])
    assert list(store.views()) == ["loss"]
    loss = store.views().get("loss")
    assert loss is not None
    assert list(loss.x) == [1.0, 2.0]


junk = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=2)
)
records = st.lists(
    st.dictionaries(st.sampled_from(["time", "attempt", "epoch", "step", "loss", "a", "b"]), junk, max_size=7),
    max_size=30,
)


@given(records)
def test_no_record_raises(found: list[dict[str, Any]]) -> None:
    store = SeriesStore()
    store.add(found)
    for view in store.views().values():
        assert len(view.x) == len(view.mean)
    assert store.count == len(found)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8))
def test_curves_do_not_depend_on_the_slices_they_were_read_in(cuts: list[int]) -> None:
    source = random.Random(5)
    made = [{"attempt": 1, "step": i, "loss": source.random(), **({"val": 1.0} if i % 3 else {})} for i in range(60)]
    whole, parts = SeriesStore(capacity=16), SeriesStore(capacity=16)
    whole.add(made)
    position = 0
    for cut in [*cuts, 60]:
        parts.add(made[position : position + cut])
        position += cut
    one, other = whole.views().get("loss"), parts.views().get("loss")
    assert one is not None
    assert other is not None
    assert (one.count, list(one.x), list(one.low)) == (other.count, list(other.x), list(other.low))


def test_columns_of_numbers() -> None:
    assert list(numbers([1, 2.5]) or []) == [1.0, 2.5]
    mixed = numbers([1, None, "x"])
    assert mixed is not None
    assert math.isnan(mixed[1])
    assert math.isnan(mixed[2])
    assert numbers(["x", "y"]) is None
    assert numbers([10**400, 1]) is not None
