"""What an alert says: one sentence for people and one JSON object for programs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from ...wire import heartbeat, records, storage
from ...wire.records import ExitRecord, Spec, Status
from ...wire.rundir import RunDir

TITLES = {"crash": "crashed: ", "finish": "finished: "}
"""What becomes of a run, before the text that says how. The text of a stall begins with its own word: hung, paused."""
TEST = "test"


def compose(event: str, run: RunDir, attempt: int, text: str, now: float | None = None) -> dict[str, Any]:
    """The alert; what cannot be read is null. ``text`` is the whole sentence, the other fields are its parts."""
    spec, exit_record = _read(Spec, run.spec), _read(ExitRecord, run.attempt(attempt).exit)
    status, beat = _read(Status, run.status), _beat(run.attempt(attempt).heartbeat())
    name = "mpstui" if event == TEST else spec.name if spec else run.run
    more = status.message if status and event == "crash" else None
    parts = [text, f"step {beat.step:,}" if beat and beat.step is not None else "", more or ""]
    return {
        "event": event,
        "text": f"{name} {TITLES.get(event, '')}" + "; ".join(part for part in parts if part),
        "run": TEST if event == TEST else run.run,
        "name": name,
        "attempt": attempt,
        "cause": exit_record.cause if exit_record else None,
        "code": exit_record.code if exit_record else None,
        "signal": exit_record.signal if exit_record else None,
        "step": beat.step if beat else None,
        "epoch": beat.epoch if beat else None,
        "loss": beat.loss if beat else None,
        "host": os.uname().nodename,
        "dir": str(run.path),
        "time": time.time() if now is None else now,
    }


def _read(kind: Any, path: Path) -> Any:
    try:
        return records.read(kind, path)
    except (OSError, storage.UnreadableRecord):
        return None


def _beat(path: Path) -> heartbeat.Heartbeat | None:
    try:
        found = storage.read_json(path)
        return heartbeat.from_json(found) if found is not None else None
    except (OSError, storage.UnreadableRecord):
        return None
