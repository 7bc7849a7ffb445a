"""Estimate how long a launch takes from earlier runs of the same profile."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from .. import present as shown
from ..model.snapshot import RunSnapshot, State

_NEWEST = 9
"""How many runs count: older ones may come from another machine or another version of the program."""


class Expected(NamedTuple):
    """How long a run will probably take."""

    seconds: float
    """The duration of one run."""
    runs: int
    """The number of earlier runs behind this figure."""


def expected(profile: str | None, epochs: float | None, snapshots: Iterable[RunSnapshot]) -> Expected | None:
    """Return how long a run takes, judging by finished runs of the profile; None if there are none.

    Args:
        epochs: how many are planned; runs with another number are scaled by their time per epoch. None: unknown, runs
            are not scaled.
        snapshots: the runs, newest first.
    """
    took = []
    for one in snapshots:
        began, done = one.attempt_started or one.started, one.numbers.epochs
        if (
            profile is None
            or one.profile != profile
            or one.state is not State.FINISHED
            or began is None
            or not one.ended
        ):
            continue
        took.append((one.ended - began) * (epochs / done if epochs and done else 1.0))
    return Expected(median(took[:_NEWEST]), min(len(took), _NEWEST)) if took else None


def expected_sentence(known: Expected | None, runs: int) -> str:
    """Return a sentence that says how long this many runs take and how that is known."""
    if known is None:
        return "How long they take is unknown: no run of this profile has finished yet."
    one, ago = shown.duration(known.seconds), "the last run" if known.runs == 1 else f"the last {known.runs} runs"
    return f"About {shown.duration(known.seconds * runs)} in all, {one} each, as {ago} of this profile took."
