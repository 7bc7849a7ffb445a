"""A run as JSON: what ``ps`` and ``show`` print, from the same snapshot that the screen draws."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...wire import heartbeat, storage
from ...wire.records import LaunchRecord
from ...wire.rundir import AGENT_VARIABLE, RunDir
from ..diagnosis.live import RunPace, slow_words
from ..machine import is_python, may_start_python
from ..model.snapshot import RunSnapshot, State
from ..present import can_be_explained, epoch_shown
from ..series.direction import best_point
from .details import begun_in, provenance
from .gallery import gallery_of
from .one import exit_as_json
from .run_settings import named_settings

_OF_A_JOB = ("engine", "id", "phase", "state", "reason", "nodes", "partition", "starts", "ends", "silent_since")
EXPLAINED = frozenset({State.FAILED, State.KILLED, State.LOST})
"""Ends that call for an explanation."""


def as_json(snapshot: RunSnapshot, *, full: bool) -> dict[str, Any]:
    """Return the run as one JSON object; unknown values are None, times are Unix seconds.

    Args:
        full: include metrics, memory, heartbeat, checkpoints, events, images, texts and diagnosis (`show`), instead of
            only the row of `ps`.
    """
    numbers = snapshot.numbers
    row: dict[str, Any] = {
        "run": snapshot.run,
        "name": snapshot.name,
        "profile": snapshot.profile,
        "state": str(snapshot.state),
        "health": str(snapshot.health) if snapshot.health else None,
        "device": numbers.device.type,
        "epoch": _whole(epoch_shown(numbers)),
        "epochs": _whole(numbers.epochs),
        "step": numbers.step,
        "steps": numbers.steps,
        "loss": numbers.loss,
        "attempt": snapshot.attempt,
        "attempts": snapshot.attempts,
        "pid": snapshot.pid,
        "started": snapshot.started,
        "ended": snapshot.ended,
        "updated": snapshot.updated,
        "exit": exit_as_json(snapshot.exit),
        "job": snapshot.job and {name: getattr(snapshot.job, name) for name in _OF_A_JOB},
        "tags": snapshot.tags,
        "note": snapshot.note or None,
        "moving": snapshot.moving and snapshot.moving._asdict(),
        "moved_to": snapshot.moved_to,
    }
    found: dict[str, Any] = storage.plain({**row, **_everything(snapshot)} if full else row)
    return found


def _whole(count: float | None) -> float | None:
    """Convert ``7.0`` to ``7``."""
    return int(count) if count is not None and count % 1 == 0 else count


def _everything(snapshot: RunSnapshot) -> dict[str, Any]:
    numbers, beat, origin = snapshot.numbers, snapshot.numbers.beat, provenance(snapshot)
    return {
        "reason": snapshot.reason,
        "health_note": snapshot.health_note or slow_words(RunPace().poll(snapshot), snapshot.seen),
        "attempt_started": snapshot.attempt_started,
        "metrics": metrics_as_json(snapshot),
        "told_by": dict(numbers.told_by),
        "memory": numbers.memory._asdict(),
        "heartbeat": heartbeat.to_json(beat) if beat else None,
        "ranks": [heartbeat.to_json(one) for one in snapshot.ranks],
        "checkpoints": [
            {
                "path": str(one.path),
                "bytes": one.size_bytes,
                "time": one.time,
                "step": one.step,
                "best": one.best,
                "complete": one.complete,
                "finite": one.finite,
                "owner": one.owner,
                "rival": one.rival,
            }
            for one in snapshot.checkpoints
        ],
        "events": [
            {"time": one.time, "attempt": one.attempt, "event": one.event, "text": one.text, **one.details}
            for one in snapshot.events
        ],
        **_logged(snapshot),
        "diagnosis": diagnosis(snapshot),
        "dir": str(snapshot.dir),
        "cwd": begun_in(snapshot),
        "log": str(snapshot.output) if snapshot.output is not None else None,
        "branch": snapshot.branch._asdict() if snapshot.branch else None,
        "eta_seconds": numbers.eta_seconds,
        "steps_per_second": numbers.steps_per_second,
        "samples_per_second": numbers.samples_per_second,
        "lr": numbers.lr,
        "argv": list(snapshot.argv),
        "settings": named_settings(snapshot),
        "survivors": list(snapshot.survivors),
        "agent": agent(snapshot),
        "provenance": origin and origin._asdict(),
    }


def _logged(snapshot: RunSnapshot) -> dict[str, Any]:
    """Return the images that the code has logged, each with its path, and the texts it has logged under a name."""
    gallery = gallery_of(snapshot)
    images, texts = list[dict[str, Any]](), list[dict[str, Any]]()
    for one in gallery.items():
        told = {"name": one.name, "step": one.step, "attempt": one.attempt, "time": one.time}
        if one.text is not None:
            texts.append({**told, "text": one.text})
        else:
            images.append({**told, "path": str(gallery.path(one)), "offset": one.offset, "bytes": one.bytes})
    return {"images": images, "texts": texts}


def agent(snapshot: RunSnapshot) -> dict[str, str] | None:
    """Tell whether the agent is in this attempt's program: ``state`` is on, loaded, waiting or off, ``text`` says why.

    None for a run that mpstui did not start, or has not started yet.
    """
    folder = RunDir(snapshot.dir).attempt(snapshot.attempt)
    launch = storage.read_or_none(LaunchRecord, folder.launch) if snapshot.is_ours else None
    if launch is None:
        return None
    beats, over = folder.heartbeat().exists(), snapshot.ended is not None
    found = ("on", "on")
    if AGENT_VARIABLE not in launch.env:
        turn_on = f"`mpstui restart {snapshot.run} --agent` turns it on (in a profile: agent = true)"
        found = ("off", "not needed: the program reports by itself" if beats else f"off: {turn_on}")
    elif beats and snapshot.numbers.beat and snapshot.numbers.beat.reported:
        found = ("on", "on, beside what the program reports itself")
        if not folder.stack_signal.exists():
            found = ("off", "not loaded: the program reports by itself")
    elif beats:
        pass
    elif folder.stack_signal.exists():
        seen = "but it saw no step of a torch optimizer: the output is read" if over else "no optimizer step seen yet"
        found = ("loaded", f"loaded, {seen}")
    elif option := _isolation(launch.argv):
        found = ("off", f"off: python {option} keeps it out; start the program without {option}")
    elif not may_start_python(launch.argv[0], Path(launch.cwd), launch.env):
        found = ("off", f"off: {launch.argv[0]} is no Python program")
    elif over:
        numbers = snapshot.numbers
        told = not numbers.of_attempt and (numbers.step, numbers.epoch) != (None, None)
        trained = snapshot.state is not State.FAILED or told
        hint = "; one that sets PYTHONPATH anew has to keep what is in it" if trained else ", it ended before that"
        found = ("off", f"not loaded: no Python program of this attempt imported torch with it{hint}")
    else:
        found = ("waiting", "waiting: no Python program of this attempt has imported torch yet")
    return dict(zip(("state", "text"), found, strict=True))


def _isolation(argv: Sequence[str]) -> str | None:
    """Return the option of a Python command that disables PYTHONPATH or ``sitecustomize``, None if there is none."""
    for word in argv[1:] if is_python(argv[0]) else ():
        if not word.startswith("-") or word in ("-m", "-c"):
            break
        if re.fullmatch(r"-[A-Za-z]*[IES][A-Za-z]*", word) and word[1] not in "WX":
            return word
    return None


def metrics_as_json(snapshot: RunSnapshot) -> dict[str, Any]:
    """Return for each metric its number of points, first and newest value, minimum and maximum, the best value with
    its step, and the direction in which it improves (``lower``, ``higher``, or None if unknown)."""
    names = {"count": "count", "first": "first", "last": "last", "min": "minimum", "max": "maximum"}
    told = {}
    for name, view in snapshot.series.items():
        best = best_point(view, name)
        ends = {key: getattr(view, field) for key, field in names.items()}
        told[name] = {
            **ends,
            "best": best and best.value,
            "best_at": best and best.at,
            "better": best and str(best.way),
        }
    return told


def diagnosis(snapshot: RunSnapshot) -> dict[str, Any]:
    """Return why the run ended, as far as known, in the form that `diagnose` prints; a healthy run has no findings."""
    if snapshot.state not in EXPLAINED or not can_be_explained(snapshot):
        return {"findings": []}
    from ..diagnosis.engine import diagnosis_of
    from ..diagnosis.model import findings_as_json

    return {"findings": findings_as_json(diagnosis_of(snapshot))}
