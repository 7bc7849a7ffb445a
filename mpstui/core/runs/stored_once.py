"""Runs in stores, for commands that look once: read to the end, even on a busy machine."""

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
"""In processor time."""


def every_run(path: Path, machine: LocalMachine, kept: KeptBest | None = None) -> Iterator[RunSnapshot]:
    """Yield each run of a store as a list shows it, newest first, however many there are."""
    for run in find_runs(path):
        yield _read_to_its_end(reader_of(run, machine, kept=kept))


def _read_to_its_end(reader: RunFollower) -> RunSnapshot:
    """Return what a list shows of a run, after everything it needs was read."""
    budget = Budget(_SECONDS_A_RUN, time.thread_time)
    seen = reader.refresh(full=False, budget=budget)
    while not reader.caught_up and not budget.spent:
        seen = reader.refresh(full=False, budget=budget)
    return seen


def meant(path: Path, keys: list[str]) -> list[str]:
    """Narrow the keys of a path's runs to its own run, if it has one, ignoring runs in folders below it."""
    own = str(path.expanduser().absolute())
    return [own] if own in keys else keys


def ended_run(path: Path, machine: LocalMachine) -> RunSnapshot:
    """Return what is known about how the run in a foreign folder ended, without its curves.

    Raises:
        UsageError: the folder contains several runs.
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
