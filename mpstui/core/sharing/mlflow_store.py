"""An MLflow file store (``mlruns``), as ``mlflow ui`` opens it: one folder per run, one file per metric."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
from collections.abc import Iterable, Mapping
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
    """Write the run into the project's experiment, replacing an earlier export of it; return its folder."""
    experiment_id = str(int(hashlib.sha256(PROJECT.encode()).hexdigest()[:15], 16))
    experiment = folder / experiment_id
    run_id = hashlib.sha256(run.id.encode()).hexdigest()[:32]
    made, part = experiment / run_id, experiment / f".{run_id}.part"
    try:
        location = {"artifact_location": experiment.absolute().as_uri(), "lifecycle_stage": "active", "name": PROJECT}
        _write(experiment / "meta.yaml", _yaml({"experiment_id": experiment_id, **location}))
        for name, text in _files(run, run_id, experiment_id, made).items():
            _write(part / name, text)
        shutil.rmtree(made, ignore_errors=True)
        part.rename(made)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(made)) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return made


def _files(run: TrackedRun, run_id: str, experiment_id: str, made: Path) -> dict[Path, str]:
    """The texts of the files in the run's folder, by their paths in it."""
    told: dict[str, object] = {
        "artifact_uri": (made / "artifacts").absolute().as_uri(),
        "end_time": None if run.ended is None else round(run.ended * 1000),
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
        "status": _RUNNING if run.ended is None else _ENDS.get(run.state, _FAILED),
        "tags": [],
        "user_id": "",
    }
    settings = {name: value if isinstance(value, str) else json.dumps(value) for name, value in run.config.items()}
    tags = dict.fromkeys(run.tags, "") | {"mpstui.run": run.id, "mpstui.state": str(run.state)}
    tags |= {"mlflow.runName": run.name, "mlflow.source.name": " ".join(run.argv)}
    tags |= {"mlflow.note.content": run.note} if run.note else {}
    kinds = {
        "params": {name: text[:_LONGEST_PARAM] for name, text in settings.items()},
        "tags": tags,
        "metrics": {name: "".join(lines) for name, lines in _metrics(run).items()},
        "artifacts": {"checkpoints.json": json.dumps([details_of(one) for one in run.checkpoints], indent=1)},
    }
    found = {Path("meta.yaml"): _yaml(told)}
    for kind, texts in kinds.items():
        found |= {Path(kind) / key: texts[name] for name, key in _keys(texts).items()}
    return found


def _keys(names: Iterable[str]) -> dict[str, Path]:
    """Paths for names: distinct even on a case-insensitive disk, and none the folder of another."""
    wanted = {name: _key(name) for name in names}
    folders = {str(parent).casefold() for key in wanted.values() for parent in key.parents}
    found: dict[str, Path] = {}
    for name, key in wanted.items():
        while str(key).casefold() in folders:
            key = key.with_name(f"{key.name}_")
        folders.add(str(key).casefold())
        found[name] = key
    return found


def _metrics(run: TrackedRun) -> Mapping[str, list[str]]:
    """For each metric, a line ``milliseconds value step`` per point."""
    found: dict[str, list[str]] = {}
    for row in run.rows:
        moment = round((run.started if row.time is None else row.time) * 1000)
        for name, value in row.values.items():
            text = repr(value) if math.isfinite(value) else str(float(value))
            found.setdefault(name, []).append(f"{moment} {text} {row.step}\n")
    return found


def _key(name: str) -> Path:
    """A name as a relative path; characters that MLflow refuses become underscores."""
    parts = [part for part in _FORBIDDEN.sub("_", name).split("/") if part.strip(". ")]
    return Path(*parts) if parts else Path("_")


def _yaml(told: Mapping[str, object]) -> str:
    """YAML, written as JSON values, which are valid YAML except for pairs of surrogates for one character."""
    return "".join(
        f"{name}: {_quoted(value) if isinstance(value, str) else json.dumps(value)}\n" for name, value in told.items()
    )


def _quoted(text: str) -> str:
    whole = text.encode("utf-8", "replace").decode()
    return '"' + "".join(char if char > "\uffff" else json.dumps(char)[1:-1] for char in whole) + '"'


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    storage.write_bytes(path, text.encode("utf-8", "replace"))
