"""What a command that looks once is told of runs in stores: all of it, on a busy machine too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..follow import Budget
from ..formats.stores import find_runs
from ..model.errors import UsageError
from ..model.snapshot import RunSnapshot
from .follower import RunFollower
from .local_machine import LocalMachine
from .stored import reader_of
from .stored_best import KeptBest
from .watched import WatchedReader

_SECONDS_A_RUN = 2.0
"""Of processor time."""


def every_run(path: Path, machine: LocalMachine, kept: KeptBest | None = None) -> Iterator[RunSnapshot]:
    """Each run of a store as a list shows it, one after the other, however many there are; the newest first."""
    for run in find_runs(path):
        yield _read_to_its_end(reader_of(run, machine, kept=kept))


def _read_to_its_end(reader: RunFollower) -> RunSnapshot:
    """What a list shows of a run, once all that it reads has been read."""
    budget = Budget(_SECONDS_A_RUN, time.thread_time)
    seen = reader.refresh(full=False, budget=budget)
    while not reader.caught_up and not budget.spent:
        seen = reader.refresh(full=False, budget=budget)
    return seen


def meant(path: Path, keys: list[str]) -> list[str]:
    """The keys of a path's runs where one is wanted: its own, whatever runs are in folders below it."""
    own = str(path.expanduser().absolute())
    return [own] if own in keys else keys


def ended_run(path: Path, machine: LocalMachine) -> RunSnapshot:
    """What is known about how the run of a foreign folder ended, without its curves.

    Raises:
        UsageError: it contains several.
    """
    found = find_runs(path)
    keys = meant(path, [run.key for run in found])
    if len(keys) > 1:
        raise UsageError(f"{path} holds {len(keys):,} runs", f"name one of them, such as {keys[0]}")
    found = [run for run in found if run.key in keys]
    if not found:
        return _read_to_its_end(WatchedReader(path, machine))
    seen = _read_to_its_end(reader_of(found[0], machine))
    return replace(seen, output=found[0].output or seen.output)
