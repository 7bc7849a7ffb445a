"""Which runs that still wait or run need another one, so that it must stay where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...wire import liveness, records
from ...wire.records import LaunchRecord, Spec, Status
from ...wire.rundir import RunDir
from ...wire.storage import UnreadableRecord
from .waiting import is_abandoned, is_waiting

_OVER = ("ended", "dependency_failed")


def dependants(runs: Iterable[RunDir]) -> Mapping[str, str]:
    """The runs that others need, by id, each with the sentence that says who needs it and what for."""
    runs = list(runs)
    paths = {str(run.path): run.run for run in runs}
    found: dict[str, str] = {}
    for run in runs:
        for needed, why in _needs(run, paths):
            found.setdefault(needed, why)
    return found


def _needs(run: RunDir, paths: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What one run needs; nothing where it has ended, or where its records cannot be read."""
    try:
        status = records.read(Status, run.status)
        if status is None or status.phase in _OVER or not _goes_on(run, status):
            return
        spec = records.read(Spec, run.spec)
        if spec is None:
            return
        if is_waiting(run, status) or is_abandoned(run):
            yield from ((after["run"], f"{run.run} waits for it") for after in spec.queue.after if after.get("run"))
        words = _command(run, status, spec)
    except (OSError, UnreadableRecord):
        return
    others = ((path, name) for path, name in paths.items() if name != run.run)
    yield from ((name, f"{run.run} was started with a file of it") for path, name in others if _names(words, path))


def _goes_on(run: RunDir, status: Status) -> bool:
    return liveness.is_held(run.supervisor_lock) or liveness.is_held(run.run_lock) or is_abandoned(run)


def _command(run: RunDir, status: Status, spec: Spec) -> list[str]:
    """The words of its newest command, else of all those it may be started with."""
    launched = records.read(LaunchRecord, run.attempt(status.attempt).launch)
    if launched is not None:
        return [*launched.argv, launched.checkpoint or ""]
    return [word for variant in spec.launch.variants.values() for word in variant.argv]


def _names(words: Iterable[str], folder: str) -> bool:
    """Whether a word is the folder or a file in it; ``--resume=`` and the like may stand before."""
    return any(f"{folder}/" in f"{word}/" for word in words)
