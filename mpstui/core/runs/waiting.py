"""Runs that wait for their turn, or for the time of a restart. There is no daemon: each has a supervisor that waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache

from ...wire import liveness, rundir, storage
from ...wire.liveness import boot_id, machine_id
from ...wire.records import ENDS, LaunchRecord, Spec, Status
from ...wire.rundir import RunDir
from ...wire.storage import UnreadableRecord
from ...wire.trust import distrust_of_any

_WAITING = (b'"queued"', b'"backing_off"')


def is_waiting(run: RunDir, status: Status) -> bool:
    """True if a run waits for its turn: its supervisor says so, or said so before it died.

    A run that has run before waits again either because somebody requested a restart, which is answered when its turn
    comes, or because its profile asks for one.
    """
    if status.phase != "queued":
        return False
    if liveness.is_held(run.supervisor_lock) or restart_is_wished(run) or _is_awaited(status):
        return True
    numbers = run.attempt_numbers()
    return not (numbers and run.attempt(numbers[-1]).exit.exists())


def is_abandoned(run: RunDir) -> bool:
    """True if a run waits and its supervisor is dead. For a run that does not wait, this reads only one small file.

    A restart that its profile asks for is carried out only within the same boot: nobody expects last week's training to
    start because they look at it. Nor does a run of another user or machine, or a copied one, start here.
    """
    try:
        data = storage.read_bytes(run.status)
        if not any(word in data for word in _WAITING) or liveness.is_held(run.supervisor_lock):
            return False
        status = storage.from_json(Status, storage.load_object(data))
        waits = (status.phase == "backing_off" and _is_awaited(status)) or is_waiting(run, status)
        return waits and not elsewhere(run, storage.read(Spec, run.spec), status)
    except (OSError, UnreadableRecord):
        return False


def elsewhere(run: RunDir, spec: Spec | None, status: Status) -> str:
    """Return why a waiting run is not ours to start, as the end of a sentence; empty if it is ours.

    Looking at runs starts those that wait, so runs that another user or machine is to start must be excluded.
    """
    if run.moved.exists():
        return "it was moved to another machine"
    if spec is not None and spec.engine is not None:
        return f"{spec.engine.title} starts it"
    if why := distrust_of_run(run):
        return why
    origin = spec.origin if spec is not None else None
    if origin is None:
        return "" if status.boot_id in ("", boot_id()) else "it was queued before the machine restarted, or on another"
    if origin.machine != machine_id():
        return f"it was queued on another machine{f' by {spec.by}' if spec is not None and spec.by else ''}"
    found = storage.stat_of(run.path)
    is_same = origin.folder == str(run.path) or (found is not None and found.st_ino == origin.inode)
    return "" if is_same else f"this is a copy of {origin.folder}"


def distrust_of_run(run: RunDir) -> str:
    """Return why we must not start a run, as a sentence: another user can write to it, or to a folder above it."""
    runs = run.path.parent
    return distrust_of_any(runs.parent, runs, runs.parent / "queue", run.path, run.spec, run.status, strict=True)


def _is_awaited(status: Status) -> bool:
    """True if a restart was planned since the machine last booted, so that it is still expected."""
    return status.next_start is not None and status.boot_id == boot_id()


def is_moving(run: RunDir) -> bool:
    """True if the run is currently being moved to another machine."""
    with suppress(OSError):  # a file system without locks
        return liveness.is_held(run.moving_lock)
    return False


def restart_is_wished(run: RunDir) -> bool:
    """True if a restart was requested and not answered yet."""
    return "restart" in wished(run)


def wished(run: RunDir) -> frozenset[str]:
    """Return those of ``restart``, ``stop`` and ``kill`` that were requested and not answered yet. Each request file is
    read only once."""
    looked_at, kept = _requests_of(run)
    kept |= {one.id: one.action for one in rundir.unanswered(run, looked_at) if one.action in {"restart", *ENDS}}
    waiting = (action for name, action in kept.items() if run.request(name).exists() and not run.ack(name).exists())
    return frozenset(waiting)


@lru_cache(maxsize=256)
def _requests_of(run: RunDir) -> tuple[set[str], dict[str, str]]:
    """Return the names of requests already read, and the actions, by id, of those that start or end an attempt."""
    return set(), {}


def dependants(runs: Iterable[RunDir]) -> Mapping[str, str]:
    """Return the runs that others need, by id, each with a sentence that says who needs it and why."""
    runs = list(runs)
    paths = {str(run.path): run.run for run in runs}
    found: dict[str, str] = {}
    for run in runs:
        for needed, why in _needs(run, paths):
            found.setdefault(needed, why)
    return found


def _needs(run: RunDir, paths: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what one run needs; nothing if it has ended, or its records cannot be read."""
    try:
        status = storage.read(Status, run.status)
        if status is None or status.phase in ("ended", "dependency_failed"):
            return
        if not (liveness.is_held(run.supervisor_lock) or liveness.is_held(run.run_lock) or is_abandoned(run)):
            return
        spec = storage.read(Spec, run.spec)
        if spec is None:
            return
        if is_waiting(run, status) or is_abandoned(run):
            yield from ((after["run"], f"{run.run} waits for it") for after in spec.queue.after if after.get("run"))
        launched = storage.read(LaunchRecord, run.attempt(status.attempt).launch)
    except (OSError, UnreadableRecord):
        return
    # The words of its newest command, or of all commands it may be started with.
    words = [word for variant in spec.launch.variants.values() for word in variant.argv]
    if launched is not None:
        words = [*launched.argv, launched.checkpoint or ""]
    for path, name in paths.items():
        # The word may be the folder or a file in it, and may begin with ``--resume=`` or the like.
        if name != run.run and any(f"{path}/" in f"{word}/" for word in words):
            yield name, f"{run.run} was started with a file of it"
