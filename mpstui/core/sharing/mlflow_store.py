"""A file store of MLflow (``mlruns``), as ``mlflow ui`` opens it: a folder a run, a file a metric."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

from ...wire import storage
from ..model.snapshot import State
from .trackers import PROJECT, TrackedRun, details_of

_RUNNING, _FINISHED, _FAILED, _KILLED = 1, 3, 4, 5
_ENDS = {State.FINISHED: _FINISHED, State.STOPPED: _KILLED, State.KILLED: _KILLED}
_FORBIDDEN = re.compile(r"[^\w\-. /:]")
_LOCAL_SOURCE = 4
_LONGEST_PARAM = 6000


def write_mlflow(run: TrackedRun, folder: Path) -> Path:
    """The run, below an experiment of its project; one that is there is written anew. Returns its folder."""
    experiment_id = str(int(hashlib.sha256(PROJECT.encode()).hexdigest()[:15], 16))
    experiment = folder / experiment_id
    run_id = hashlib.sha256(run.id.encode()).hexdigest()[:32]
    made = experiment / run_id
    for name in ("metrics", "params", "tags", "artifacts"):
        (made / name).mkdir(parents=True, exist_ok=True)
    location = {"artifact_location": experiment.absolute().as_uri(), "lifecycle_stage": "active", "name": PROJECT}
    _write(experiment / "meta.yaml", _yaml({"experiment_id": experiment_id, **location}))
    ended = run.ended
    told: dict[str, object] = {
        "artifact_uri": (made / "artifacts").absolute().as_uri(),
        "end_time": None if ended is None else round(ended * 1000),
        "entry_point_name": "",
        "experiment_id": experiment_id,
        "lifecycle_stage": "active",
        "run_id": run_id,
        "run_name": run.name,
        "run_uuid": run_id,
        "source_name": "",
        "source_type": _LOCAL_SOURCE,
        "source_version": "",
        "start_time": round(run.started * 1000),
        "status": _RUNNING if ended is None else _ENDS.get(run.state, _FAILED),
        "tags": [],
        "user_id": "",
    }
    _write(made / "meta.yaml", _yaml(told))
    settings = {name: value if isinstance(value, str) else json.dumps(value) for name, value in run.config.items()}
    for name, value in settings.items():
        _write(made / "params" / _key(name), value[:_LONGEST_PARAM])
    tags = dict.fromkeys(run.tags, "") | {"mpstui.run": run.id, "mpstui.state": str(run.state)}
    tags |= {"mlflow.runName": run.name, "mlflow.source.name": " ".join(run.argv)}
    tags |= {"mlflow.note.content": run.note} if run.note else {}
    for name, value in tags.items():
        _write(made / "tags" / _key(name), value)
    for name, lines in _metrics(run).items():
        _write(made / "metrics" / _key(name), "".join(lines))
    if run.checkpoints:
        _write(
            made / "artifacts" / "checkpoints.json", json.dumps([details_of(one) for one in run.checkpoints], indent=1)
        )
    return made


def _metrics(run: TrackedRun) -> Mapping[str, list[str]]:
    """``milliseconds value step`` for each point."""
    found: dict[str, list[str]] = {}
    for row in run.rows:
        moment = round((run.started if row.time is None else row.time) * 1000)
        for name, value in row.values.items():
            text = repr(value) if math.isfinite(value) else str(float(value))
            found.setdefault(name, []).append(f"{moment} {text} {row.step}\n")
    return found


def _key(name: str) -> Path:
    """A name as a path below its folder; what MLflow does not take becomes a line below."""
    parts = [part for part in _FORBIDDEN.sub("_", name).split("/") if part.strip(". ")]
    return Path(*parts) if parts else Path("_")


def _yaml(told: Mapping[str, object]) -> str:
    """JSON's words are YAML's too."""
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in told.items())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    storage.write_bytes(path, text.encode("utf-8", "replace"))
