"""How far the training got, from what it reported: the newest heartbeat, else the newest metric point."""

from __future__ import annotations

from pathlib import Path

from ..wire import heartbeat, storage
from ..wire.heartbeat import Heartbeat
from ..wire.records import Spec
from ..wire.rundir import RunDir
from .causes import read_tail

METRICS_TAIL_BYTES = 16 * 1024


def newest_beat(run: RunDir, spec: Spec, attempt: int, since: float | None = None) -> Heartbeat | None:
    """The attempt's newest heartbeat, or None.

    Args:
        since: a watched file outside the run directory counts only when it was written after this moment.
    """
    found = _read_beat(run.attempt(attempt).heartbeat())
    watched = _watched(spec)
    if found is None and watched is not None:
        found = _read_beat(watched)
        if found and since is not None and found.time < since:
            return None
    return found


def _watched(spec: Spec) -> Path | None:
    named = spec.watch.get("heartbeat")
    try:
        return Path(spec.launch.cwd) / Path(named).expanduser() if named else None
    except RuntimeError:  # ~ of a user whom this machine does not know
        return None


def newest_step(run: RunDir, spec: Spec, attempt: int, since: float | None = None) -> int | None:
    """The global step the attempt had reached when last heard of."""
    beat = newest_beat(run, spec, attempt, since)
    if beat is not None and beat.step is not None:
        return beat.step
    return _step_of_metrics(read_tail(run.metrics, METRICS_TAIL_BYTES), attempt)


def _step_of_metrics(text: str, attempt: int) -> int | None:
    for line in reversed(text.splitlines()):
        try:
            point = storage.load_object(line)
        except storage.UnreadableRecord:
            continue
        step = heartbeat.integer(point.get("step"))
        if step is not None and point.get("attempt") == attempt:
            return step
    return None


def _read_beat(path: Path) -> Heartbeat | None:
    try:
        record = storage.read_json(path)
        return heartbeat.from_json(record) if record is not None else None
    except (OSError, ValueError, storage.UnreadableRecord):  # ValueError: a path no system has
        return None
