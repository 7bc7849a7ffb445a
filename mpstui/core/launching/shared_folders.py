"""Whose checkpoints a new run would overwrite: those of an earlier run of that name that saves into the same folder."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from ...wire import storage
from ...wire.checkpoints import matching, told
from ...wire.liveness import is_held
from ...wire.records import LaunchTemplate, Spec
from ...wire.rundir import RunDir, run_dirs, slug
from .choice import LaunchChoice

_RUNS_LOOKED_AT = 20


def overwritten(runs: Path, choice: LaunchChoice, template: LaunchTemplate) -> list[str]:
    """Return at most one warning: a run of this name has saved to where a new one with this command will save, too.

    A run that is still alive comes first. Where a run saves is only known once it has; others are not warned about.
    """
    if choice.branch is not None:  # it saves into its own folder
        return []
    name, argv = choice.name or choice.profile.name, template.variants[template.device].argv
    alike = (run for run in run_dirs(runs) if run.run.endswith(f"-{slug(name)}"))
    known = [(run, folder) for run in islice(alike, _RUNS_LOOKED_AT) if (folder := _shared(run, template, argv))]
    for run, folder in known:
        if is_held(run.run_lock):
            return [
                f"{run.run} still runs and saves into {folder}, as this run will: they overwrite each other's "
                f"checkpoints. Give it another folder, or start it afterwards: --after {run.run}"
            ]
    for run, folder in known[:1]:
        kept = "give it another folder to keep them"
        return [f"{folder} holds checkpoints of {run.run}, which this run may overwrite: {kept}"]
    return []


def _shared(run: RunDir, template: LaunchTemplate, argv: Sequence[str]) -> Path | None:
    """Return the folder, outside its own, that a run has saved to and that a launch will save to as well."""
    spec = storage.read_or_none(Spec, run.spec)
    if spec is None or spec.launch.cwd != template.cwd or spec.launch.checkpoints != template.checkpoints:
        return None
    saved = told(run.events)
    if not saved and template.checkpoints and next(matching(run.path, template.checkpoints), None) is None:
        saved = list(islice(matching(Path(template.cwd), template.checkpoints), 1))
    outside = next((path for path in saved if run.path not in path.parents), None)
    if outside is None:
        return None
    named = {word for one in spec.launch.variants.values() for word in one.argv if _names(word, outside)}
    return outside.parent if named <= set(argv) else None


def _names(word: str, path: Path) -> bool:
    """Return whether an argument is part of the path that is saved to, so that a run with another one has another."""
    folder = word.rpartition("=")[2].strip("./")
    return bool(folder) and f"/{folder}/" in f"{path}/"
