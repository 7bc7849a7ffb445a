"""Which runs a queued run waits for, and about how long: from the runs ahead of it and how long others took."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from statistics import median

from ..model.queue_place import QueuePlace
from ..model.snapshot import RunSnapshot, State

Groups = Mapping[str, str | None]
"""The queue group of each run that has one, by run id."""


def with_expectations(
    places: Mapping[str, QueuePlace], runs: Sequence[RunSnapshot], groups: Groups
) -> dict[str, QueuePlace]:
    """Add to the place of each queued run the runs ahead of it, in order, and in about how many seconds it starts.

    The start is unknown if a run ahead has neither a known remaining time nor a profile of which a run has finished.
    """
    typical = _typical_seconds(runs)
    known = {one.run: one for one in runs}
    lines: dict[str, list[RunSnapshot]] = {}
    for run, place in sorted(places.items(), key=lambda item: item[1].number or len(places) + 1):
        if place.group is not None and run in known:
            lines.setdefault(place.group, []).append(known[run])
    found = dict(places)
    for group, waiting in lines.items():
        running = [
            one for one in runs if one.state.active and one.state is not State.QUEUED and groups.get(one.run) == group
        ]
        ends: list[float] | None = None
        if running and all(one.numbers.eta_seconds is not None for one in running):
            ends = [one.numbers.eta_seconds or 0.0 for one in running]
            heapq.heapify(ends)
        before = [one.name for one in running]
        for one in waiting:
            place = found[one.run]
            if place.paused or place.after:
                ends = None  # when it will go on, and whether others will overtake it, is unknown
            starts = ends[0] if ends else None
            found[one.run] = place._replace(behind=tuple(before), starts_in=starts)
            before.append(one.name)
            takes = typical.get(one.profile) if one.profile is not None else None
            if ends and takes is not None:
                heapq.heapreplace(ends, ends[0] + takes)
            else:
                ends = None
    return found


def _typical_seconds(runs: Sequence[RunSnapshot]) -> dict[str | None, float]:
    """Return the median duration of the finished runs of each profile, in seconds."""
    took: dict[str | None, list[float]] = {}
    for one in runs:
        if one.state is State.FINISHED and one.started is not None and one.ended is not None:
            took.setdefault(one.profile, []).append(one.lasted(one.ended) or 0.0)
    return {profile: median(seconds) for profile, seconds in took.items() if profile is not None}
