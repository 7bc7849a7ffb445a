"""A reader that goes on from another one's memory reads what the other would have read."""

from __future__ import annotations

import math
from array import array

import pytest

from mpstui.core.formats.grammars import all_grammars
from mpstui.core.formats.points import Counters, Phase
from mpstui.core.formats.reader import LogReader
from mpstui.core.runs.carried import pack, unpack
from mpstui.core.series.store import SeriesStore
from tests.core.formats.recorded import FOLDER, NAMES

CUTS = (0.1, 0.37, 0.5, 0.83)


@pytest.mark.parametrize("name", NAMES)
def test_every_recording_goes_on_from_any_cut(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    for cut in CUTS:
        position = int(len(data) * cut)
        unbroken, first, second = LogReader(), LogReader(), LogReader()
        unbroken.take(data[:position])
        first.take(data[:position])
        second.resume(unpack(pack(first.memory())))
        rest, expected = second.take(data[position:]), unbroken.take(data[position:])
        assert repr(rest) == repr(expected)
        assert repr(second.close()) == repr(unbroken.close())
        assert (second.primary, repr(second.summary())) == (unbroken.primary, repr(unbroken.summary()))


def test_a_grammar_keeps_nothing_that_cannot_travel() -> None:
    for grammar in all_grammars():
        assert unpack(pack(vars(grammar))) == vars(grammar)


def test_a_store_arrives_as_it_was_and_goes_on() -> None:
    here = SeriesStore(capacity=16)
    records = [{"step": i, "epoch": None, "loss": math.nan if i % 7 == 3 else 1 / (i + 1)} for i in range(999)]
    here.add(records)
    here.views()
    there = unpack(pack(here))
    assert repr(there.views()) == repr(here.views())
    for store in (here, there):
        store.add([{"step": 5, "attempt": 2, "loss": 0.25, "val_loss": 1}])
    assert repr(there.views()) == repr(here.views())
    assert there.get("loss").minimum == here.get("loss").minimum  # type: ignore[union-attr]


def test_values_keep_their_kinds() -> None:
    value = {
        (None, True): [1, 1.0, -0.0, math.inf, "ä\udc80", b"\x00\xff"],
        "columns": (array("d", [0.1, math.inf]), [0.5] * 9, (0.25,) * 9, [], ()),
        "named": (Counters(epoch=3, step=2.0), Phase.EVAL),
    }
    assert repr(unpack(pack(value))) == repr(value)


def test_what_is_the_same_object_stays_the_same_object() -> None:
    store = SeriesStore()
    first, second = unpack(pack([store, store]))
    assert first is second
    assert first is not store


def test_what_may_not_travel_is_refused() -> None:
    with pytest.raises(TypeError, match="LogReader cannot be carried"):
        pack({"reader": LogReader()})


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-3], lambda data: data[:20] + b"]" + data[21:]]
)
def test_damaged_bytes_are_one_kind_of_error(damage: object) -> None:
    assert callable(damage)
    with pytest.raises(ValueError, match="state of a reader cannot be understood"):
        unpack(damage(pack({"columns": [0.5] * 100, "store": SeriesStore()})))


def test_a_class_that_is_not_named_is_not_made() -> None:
    with pytest.raises(ValueError, match="cannot be understood"):
        unpack(pack(Phase.EVAL).replace(b'"Phase"', b'"Popen"'))
