"""A run as JSON: what ``ps`` and ``show`` print, told from the very snapshot that the screen draws."""

from __future__ import annotations

from typing import Any

from ...wire import heartbeat, storage
from ..model.snapshot import Checkpoint, ExitSummary, RunEvent, RunSnapshot, SeriesView, State
from ..telemetry.pace import RunPace, slow_words

EXPLAINED = frozenset({State.FAILED, State.KILLED, State.LOST})
"""Ends that ask for an explanation."""


def as_json(snapshot: RunSnapshot, *, full: bool) -> dict[str, Any]:
    """The run as one JSON object; unknown is None, times are Unix seconds.

    Args:
        full: with metrics, memory, heartbeat, checkpoints, events and diagnosis (`show`); else the row of `ps`.
    """
    row = _row(snapshot)
    if full:
        row.update(_everything(snapshot))
    found: dict[str, Any] = storage.plain(row)
    return found


def _row(snapshot: RunSnapshot) -> dict[str, Any]:
    return {
        "run": snapshot.run,
        "name": snapshot.name,
        "profile": snapshot.profile,
        "state": str(snapshot.state),
        "health": str(snapshot.health) if snapshot.health else None,
        "device": snapshot.numbers.device.type,
        "epoch": snapshot.numbers.epoch,
        "epochs": snapshot.numbers.epochs,
        "step": snapshot.numbers.step,
        "steps": snapshot.numbers.steps,
        "loss": snapshot.numbers.loss,
        "attempt": snapshot.attempt,
        "attempts": snapshot.attempts,
        "pid": snapshot.pid,
        "started": snapshot.started,
        "ended": snapshot.ended,
        "updated": snapshot.updated,
        "exit": _exit(snapshot.exit),
    }


def _everything(snapshot: RunSnapshot) -> dict[str, Any]:
    beat = snapshot.numbers.beat
    return {
        "reason": snapshot.reason,
        "health_note": snapshot.health_note or slow_words(RunPace().poll(snapshot), snapshot.seen),
        "attempt_started": snapshot.attempt_started,
        "metrics": {name: _metric(view) for name, view in snapshot.series.items()},
        "memory": snapshot.numbers.memory._asdict(),
        "heartbeat": heartbeat.to_json(beat) if beat else None,
        "checkpoints": [_checkpoint(one) for one in snapshot.checkpoints],
        "events": [_event(one) for one in snapshot.events],
        "diagnosis": diagnosis(snapshot),
        "dir": str(snapshot.dir),
        "eta_seconds": snapshot.numbers.eta_seconds,
        "steps_per_second": snapshot.numbers.steps_per_second,
        "samples_per_second": snapshot.numbers.samples_per_second,
        "lr": snapshot.numbers.lr,
        "argv": list(snapshot.argv),
        "survivors": list(snapshot.survivors),
    }


def diagnosis(snapshot: RunSnapshot) -> dict[str, Any]:
    """What is known about why it ended, in the form that `diagnose` prints; no findings for a run that is well."""
    if snapshot.state not in EXPLAINED:
        return {"findings": []}
    from ..diagnosis.engine import diagnose_run
    from ..diagnosis.model import findings_as_json

    return {"findings": findings_as_json(diagnose_run(snapshot.dir))}


def _exit(found: ExitSummary | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "code": found.code,
        "signal": found.signal,
        "cause": found.cause,
        "requested_by": found.requested_by,
    }


def _metric(view: SeriesView) -> dict[str, Any]:
    return {
        "count": view.count,
        "first": view.first,
        "last": view.last,
        "min": view.minimum,
        "max": view.maximum,
    }


def _checkpoint(one: Checkpoint) -> dict[str, Any]:
    return {
        "path": str(one.path),
        "bytes": one.size_bytes,
        "time": one.time,
        "step": one.step,
        "best": one.best,
        "complete": one.complete,
    }


def _event(one: RunEvent) -> dict[str, Any]:
    return {"time": one.time, "attempt": one.attempt, "event": one.event, "text": one.text, **one.details}
