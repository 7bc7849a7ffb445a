"""Values of every type that travels arrive as they were; patches make of the old what the new one is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpstui.core.diagnosis.model import Finding
from mpstui.core.hosts.codec import form_of
from mpstui.core.hosts.delta import SAME, DoesNotFit, difference, patched
from mpstui.core.hosts.forms import EXACT, Known, Malformed, Rules
from mpstui.core.model.snapshot import Moment, RunSnapshot, SeriesView, State
from mpstui.core.settings import Settings
from mpstui.core.telemetry.model import SystemSample
from mpstui.core.telemetry.run_telemetry import RunTelemetry
from mpstui.wire.records import Ack, Request


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    name: str = "here"


@dataclass(frozen=True)
class Everything:
    number: float
    at: Moment = 0.0
    word: str = ""
    flag: bool = False
    maybe: int | None = None
    mixed: int | float | bool | str | None = None
    colour: Colour = Colour.RED
    mode: Literal["fast", "slow"] = "slow"
    where: Path = Path("/")
    raw: bytes = b""
    points: tuple[Point, ...] = ()
    pair: tuple[int, str] = (0, "")
    column: Sequence[float] = ()
    table: Mapping[str, Point | Colour] = field(default_factory=dict)
    by_number: Mapping[int, float] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    inner: Everything | None = None


_FLOATS = st.floats(allow_nan=False)
_FLAT = st.builds(
    Everything,
    number=_FLOATS,
    at=st.floats(0, 2e9),
    word=st.text(max_size=4),
    flag=st.booleans(),
    maybe=st.none() | st.integers(),
    mixed=st.none() | st.integers() | _FLOATS | st.booleans() | st.text(max_size=3),
    colour=st.sampled_from(Colour),
    mode=st.sampled_from(["fast", "slow"]),
    where=st.sampled_from([Path("/a/b"), Path("c")]),
    raw=st.binary(max_size=4),
    points=st.lists(st.builds(Point, st.integers(), st.text(max_size=2)), max_size=4).map(tuple),
    pair=st.tuples(st.integers(), st.text(max_size=2)),
    column=st.lists(_FLOATS, max_size=6).map(tuple),
    table=st.dictionaries(st.text(max_size=3), st.builds(Point, st.integers()) | st.sampled_from(Colour), max_size=3),
    by_number=st.dictionaries(st.integers(), _FLOATS, max_size=3),
    names=st.frozensets(st.text(max_size=2), max_size=3),
)
VALUES = st.builds(lambda one, inner: replace(one, inner=inner), _FLAT, st.none() | _FLAT)
FORM = form_of(Everything)


def travelled(tree: Any) -> Any:
    return json.loads(json.dumps(tree, allow_nan=False))


@settings(max_examples=80, deadline=None)
@given(VALUES, VALUES)
def test_what_arrives_is_what_was_sent_whole_or_as_a_patch(old: Everything, new: Everything) -> None:
    tree = FORM.encode(old, EXACT)
    assert FORM.decode(travelled(tree), EXACT) == old
    next_tree = FORM.encode(new, EXACT, Known(old, tree))
    there, known = travelled(tree), FORM.decode(travelled(tree), EXACT)
    patch = difference(tree, next_tree)
    assert (patch is SAME) == (tree == next_tree)
    after = there if patch is SAME else patched(there, travelled(patch))
    assert FORM.decode(after, EXACT, Known(known, there)) == new
    assert there == tree, "a patch changed the tree it was made for"


_TREES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text("ab.", max_size=2), inner, max_size=4),
    max_leaves=14,
)


@settings(max_examples=200, deadline=None)
@given(_TREES, _TREES)
def test_a_patch_of_any_two_trees_makes_the_one_of_the_other(old: Any, new: Any) -> None:
    patch = difference(old, new)
    after = old if patch is SAME else patched(old, travelled(patch))
    assert json.dumps(after, sort_keys=True) == json.dumps(new, sort_keys=True)


def test_the_order_of_a_table_travels_with_it() -> None:
    old, new = {"loss": 1, "lr": 2}, {"acc": 0, "loss": 1, "lr": 2}
    assert list(patched(old, difference(old, new))) == ["acc", "loss", "lr"]


def test_a_curve_that_grows_costs_its_last_columns() -> None:
    old = [float(place) for place in range(1000)]
    patch = difference(old, [*old[:-1], 7.5, 8.5])
    assert len(json.dumps(patch)) < 60


def test_the_end_of_a_log_costs_its_new_lines() -> None:
    old = [f"line {place} of the log" for place in range(50)]
    new = [*old[3:], "a new line"]
    patch = difference(old, new)
    assert len(json.dumps(patch)) < 40
    assert patched(old, patch) == new


def test_an_unchanged_part_stays_the_same_object_on_either_side() -> None:
    curve = SeriesView("loss", "step", (1.0, 2.0), (0.5, 0.4), (0.5, 0.4), (0.5, 0.4), (0.5, 0.4), 2)
    one = RunSnapshot("r", "r", Path("/r"), State.RUNNING, 5.0, series={"loss": curve})
    two, form = replace(one, note="so"), form_of(RunSnapshot)
    tree = form.encode(one, EXACT)
    next_tree = form.encode(two, EXACT, Known(one, tree))
    assert next_tree[".series"]["loss"] is tree[".series"]["loss"]
    there = form.decode(tree, EXACT)
    after = form.decode(patched(tree, difference(tree, next_tree)), EXACT, Known(there, tree))
    assert after.series["loss"] is there.series["loss"]
    assert after.note == "so"


def test_the_average_of_a_curve_follows_from_the_curve_and_does_not_travel() -> None:
    from mpstui.core.series.pyramid import debiased_average

    mean = (3.0, math.nan, 1.0, 2.0)
    view = SeriesView(
        "a", "step", (1.0, 2.0, 3.0, 4.0), mean, mean, mean, debiased_average(mean, 0.5), 4, smoothing=0.5
    )
    tree = form_of(SeriesView).encode(view, EXACT)
    assert ".smooth" not in tree
    found = form_of(SeriesView).decode(travelled(tree), EXACT)
    assert [*map(str, found.smooth)] == [*map(str, view.smooth)]
    assert math.isnan(found.mean[1])


def test_moments_move_to_the_clock_of_whoever_reads_them() -> None:
    form, ahead = form_of(Everything), Rules(ahead=3600.0)
    assert form.decode(form.encode(Everything(1.0, at=1e9), EXACT), ahead).at == 1e9 - 3600
    assert form.decode(form.encode(Everything(1.0, at=1e9), ahead), EXACT).at == 1e9 + 3600


def test_digits_that_nobody_draws_stay_where_they_are_and_moments_keep_theirs() -> None:
    found = FORM.encode(Everything(0.123456789012, at=1_700_000_000.123456, column=(1 / 3, 5.0)), Rules(digits=6))
    assert (found[".number"], found[".at"], found[".column"]) == (0.123457, 1_700_000_000.123, [0.333333, 5])


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({".number": "x"}, "number: no number: 'x'"),
        ({".number": True}, "number: no number: True"),
        ({}, "Everything without number"),
        ({".number": 1, ".other": 2}, "no Everything"),
        ({".number": 1, ".colour": "green"}, "colour: none of the choices: 'green'"),
        ({".number": 1, ".maybe": 1.5}, "maybe: no int: 1.5"),
        ({".number": 1, ".inner": {".number": []}}, "inner: number: no number"),
        ({".number": 1, ".points": [{".x": 1}, 3]}, "points: no Point: 3"),
        ({".number": 1, ".table": {"a": [7, 0]}}, "table: a: of no type"),
        ([], "no Everything"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(tree: Any, words: str) -> None:
    with pytest.raises(Malformed, match=words.replace("(", r"\(")):
        FORM.decode(tree, EXACT)


@pytest.mark.parametrize("patch", [[2, 0, 9, []], [1, {"a": [1, {}]}], [1, {}, ["b"]], [7], "no", None, [2, 0]])
def test_a_patch_of_another_tree_is_refused(patch: Any) -> None:
    with pytest.raises(DoesNotFit):
        patched([1, 2], patch)


@pytest.mark.parametrize("kind", [RunSnapshot, SystemSample, RunTelemetry, Finding, Settings, Ack, Request])
def test_every_type_that_the_screen_is_given_can_travel(kind: Any) -> None:
    form = form_of(kind)
    if kind is SystemSample:
        sample = SystemSample(time=5.0, cpu_percent=12.5, reasons={"gpus": "none"})
        assert form.decode(travelled(form.encode(sample, EXACT)), EXACT) == sample
    else:
        assert form._fields  # type: ignore[attr-defined]
