"""Runs for notebooks and scripts: ``mpstui.runs()``, ``mpstui.run(NAME).series("loss")``, ``mpstui.launch(PROFILE)``.

The values are those of the snapshots that the screen draws. A :class:`Run` is a handle whose properties are at most
half a second old; :meth:`Run.snapshot` is one frozen moment. Any number of threads and processes may read at once.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

from ..core.formats.stores import require_path, store_of
from ..core.model.errors import UsageError
from ..core.model.home import Home, resolve_home
from ..core.runs.find import find_run, is_path
from ..core.runs.local_machine import LocalMachine, machine_here
from ..core.runs.monitor import Monitor
from ..core.runs.query import findable, parse_query
from ..core.runs.reader import RunReader
from ..core.runs.stored_once import meant
from ..core.runs.summaries import Summaries
from ..core.runs.watching import Watching
from ..wire.rundir import RunDir
from .handle import Run as Run
from .handle import Text as Text
from .shown import Curve as Curve
from .shown import Image as Image
from .shown import table

MOST_POINTS = 4_000_000
"""The most points of a metric to keep singly; in a longer history, neighbours are merged."""


class Runs(list[Run]):
    """Runs, newest first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        return table([one._now() for one in self])


def runs(words: str = "") -> Runs:
    """Return the runs on this machine, newest first.

    Args:
        words: a filter, as on the screen and with ``--filter``: ``resnet lr>=0.01 failed -test``.

    Raises:
        UsageError: a condition is invalid.
    """
    home, query = _home(), parse_query(words)
    if query.mistake:
        raise UsageError(f"{words!r}: {query.mistake}", "such as runs('resnet lr>=0.01 failed')")
    monitor = Monitor(home, kept=Summaries(home.state / "cache" / "runs.jsonl"), columns=MOST_POINTS)
    found = (one for one in monitor.refresh_whole() if query.matches(findable(one)))
    return Runs(Run(home, reader, one) for one in found if (reader := monitor.reader(one.run)) is not None)


def run(name: str) -> Run:
    """Return one run.

    Args:
        name: its id or a unique beginning of it, its name, a profile (for its newest run), or the path of a log, a
            folder or a store.

    Raises:
        UsageError: no run matches, or several do.
    """
    home = _home()
    machine, path = machine_here(home.state), Path(name).expanduser().absolute()
    if is_path(name) and store_of(path).exists():
        require_path(path)
        watching = Watching(machine, MOST_POINTS, home.state)
        keys = list(meant(path, list(watching.watch(path))))
        if len(keys) != 1:
            raise UsageError(f"{name} holds {len(keys)} runs", f"name one: {', '.join(keys[:5])}")
        return Run(home, watching[keys[0]])
    return _ours(home, find_run(home, name), machine)


def launch(
    profile: str,
    *,
    name: str | None = None,
    device: str | None = None,
    env: Mapping[str, str] | None = None,
    queue: str | None = None,
    **settings: object,
) -> Run:
    """Start a saved profile in the background, as ``mpstui launch`` does; it outlives this program.

    Args:
        queue: the queue group to wait in; None for no queue.
        settings: changed arguments of the profile: ``launch("cifar", epochs=3, lr=0.1)``.

    Raises:
        UsageError: there is no such profile, or a value is invalid.
        OperationError: it could not be started.
    """
    from ..core.launching.choice import LaunchChoice
    from ..core.launching.launch import launch_all
    from ..core.launching.planning import plan
    from ..core.machine import this_machine
    from ..core.profiles.first_run import acquaintance
    from ..core.profiles.library import load_profile
    from ..wire.records import QueueRule

    home, environ = _home(), dict(os.environ)
    found = load_profile(profile, home, Path.cwd())
    for said in acquaintance(found, home, Path.cwd(), asked="/" in profile).notes:
        warnings.warn(said, stacklevel=2)
    sets = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}
    rule = QueueRule(queue)
    choice = LaunchChoice(found, sets=sets, name=name, device=device, env=dict(env or {}), queue=rule)
    planned = plan(choice, environ=environ, machine=this_machine())
    for said in planned.warnings:
        warnings.warn(said, stacklevel=2)
    [started] = launch_all([planned], home, environ, time.time)
    return _ours(home, RunDir(home.runs / started), machine_here(home.state))


def _ours(home: Home, run: RunDir, machine: LocalMachine) -> Run:
    return Run(home, RunReader(run, machine, columns=MOST_POINTS))


def _home() -> Home:
    return resolve_home(os.environ)
