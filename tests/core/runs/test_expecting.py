"""Whom a queued run waits for, and for about how long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.model.queue_place import QueuePlace
from mpstui.core.model.snapshot import Numbers, RunSnapshot, State
from mpstui.core.runs.expecting import with_expectations

NOW = 1_800_000_000.0
MPS = dict.fromkeys("rstuv", "mps")


def running(name: str, left: float | None) -> RunSnapshot:
    return RunSnapshot(name, name, Path("/r"), State.RUNNING, NOW, numbers=Numbers(eta_seconds=left), profile="p")


def waiting(name: str, profile: str | None = "p") -> RunSnapshot:
    return RunSnapshot(name, name, Path("/r"), State.QUEUED, NOW, profile=profile)


def ended(name: str, took: float, state: State = State.FINISHED) -> RunSnapshot:
    return RunSnapshot(name, name, Path("/r"), state, NOW, profile="p", started=NOW - took, ended=NOW)


def expected(runs: list[RunSnapshot], places: dict[str, QueuePlace]) -> dict[str, tuple[tuple[str, ...], float | None]]:
    return {run: (one.behind, one.starts_in) for run, one in with_expectations(places, runs, MPS).items()}


def test_the_next_waits_for_the_one_that_runs_and_others_for_those_between() -> None:
    places = {"u": QueuePlace("mps", 2), "t": QueuePlace("mps", 1)}
    runs = [waiting("u"), waiting("t"), running("s", 112.0), ended("a", 100), ended("b", 300), ended("c", 900)]
    found = expected(runs, places)
    assert found == {"t": (("s",), 112.0), "u": (("s", "t"), 412.0)}


def test_of_several_slots_the_first_that_is_free_is_taken() -> None:
    places = {"t": QueuePlace("mps", 1), "u": QueuePlace("mps", 2), "v": QueuePlace("mps", 3)}
    runs = [*map(waiting, "tuv"), running("r", 50.0), running("s", 80.0), ended("a", 10)]
    assert [one[1] for one in expected(runs, places).values()] == [50.0, 60.0, 70.0]


@pytest.mark.parametrize(
    ("left", "took", "starts"),
    [
        (None, [100.0], (None, None)),
        (60.0, [], (60.0, None)),
        (60.0, [-1.0], (60.0, 60.0)),
    ],
)
def test_what_nobody_knows_is_not_said(left: float | None, took: list[float], starts: tuple[float | None, ...]) -> None:
    places = {"t": QueuePlace("mps", 1), "u": QueuePlace("mps", 2)}
    runs = [
        waiting("t"),
        waiting("u"),
        running("s", left),
        *(ended("a", one) for one in took),
        ended("x", 5, State.FAILED),
    ]
    assert tuple(one[1] for one in expected(runs, places).values()) == starts


def test_neither_in_a_paused_queue_nor_where_it_waits_for_other_runs_nor_in_another_group() -> None:
    places = {
        "t": QueuePlace("mps", 1, paused=True),
        "u": QueuePlace("mps", 2, after=("s",)),
        "z": QueuePlace("cpu", 1),
        "y": QueuePlace(after=("s",)),
    }
    runs = [*map(waiting, "tuzy"), running("s", 9.0), ended("a", 10)]
    found = expected(runs, places)
    assert [one[1] for one in found.values()] == [None] * 4
    assert found["z"] == found["y"] == ((), None)


def test_a_profile_nobody_named_says_nothing_of_how_long_it_takes() -> None:
    places = {"t": QueuePlace("mps", 1), "u": QueuePlace("mps", 2)}
    runs = [replace(waiting("t"), profile=None), waiting("u"), running("s", 9.0), replace(ended("a", 10), profile=None)]
    assert [one[1] for one in expected(runs, places).values()] == [9.0, None]
