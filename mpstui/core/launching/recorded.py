"""What a run's own record says about how it was started and can be started again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...wire import atomic
from ...wire.jsontext import UnreadableRecord
from ...wire.records import LaunchTemplate, QueueRule, Spec
from ...wire.rundir import RunDir
from ..errors import OperationError, UsageError
from ..profiles.model import Profile, profile_of_command
from .choice import LaunchChoice
from .frozen_profile import thaw


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """``spec.json``, and the edit of a restart that replaced its launch."""

    spec: Spec
    choice: Mapping[str, Any]
    """As written by :func:`~mpstui.core.launching.launches.choice_json`; empty in records of other programs."""
    template: LaunchTemplate
    """What the next attempt starts from."""


def read_run(run: RunDir) -> RecordedRun | None:
    """The record of a run; None when it cannot be read (then nothing may be done to the run but look)."""
    try:
        spec_stamp = run.spec.stat().st_mtime_ns
    except OSError:
        return None
    try:
        status_stamp = run.status.stat().st_mtime_ns
    except OSError:
        status_stamp = 0
    return _read_run(run.path, (spec_stamp, status_stamp))


def recorded_choice(run: RunDir) -> LaunchChoice:
    """The choice that led to a run's newest launch, for the form and for ``restart --set``.

    Raises:
        OperationError: the run's record cannot be read.
    """
    found = read_run(run)
    if found is None:
        raise OperationError(f"the record of run {run.run} cannot be read", f"see {run.spec}")
    choice = found.choice
    return LaunchChoice(
        profile=_recorded_profile(found.spec),
        device=choice.get("device"),
        sets=dict(choice.get("sets") or {}),
        recipe=choice.get("recipe"),
        name=choice.get("name"),
        env=dict(choice.get("env") or {}),
        drop_args=tuple(choice.get("drop_args") or ()),
        drop_env=tuple(choice.get("drop_env") or ()),
        queue=QueueRule.from_json(choice["queue"]) if choice.get("queue") else QueueRule(),
    )


def _recorded_profile(spec: Spec) -> Profile:
    cwd = Path(spec.launch.cwd)
    path = Path(spec.profile_path) if spec.profile_path else None
    if spec.profile_text:
        try:
            return thaw(spec.profile_text, path=path, cwd=cwd)
        except UsageError as error:
            raise OperationError(f"the profile frozen in run {spec.run} cannot be read: {error.sentence}") from error
    variant = spec.launch.variants.get(spec.launch.device) or next(iter(spec.launch.variants.values()))
    return profile_of_command(tuple(variant.argv), cwd=cwd, name=spec.name)


@lru_cache(maxsize=256)
def _read_run(path: Path, stamp: tuple[int, int]) -> RecordedRun | None:
    run = RunDir(path)
    try:
        record = atomic.read_json(run.spec)
        status = atomic.read_json(run.status) or {}
        if record is None:
            return None
        spec = Spec.from_json(record)
        edited = status.get("template")
        template = LaunchTemplate.from_json(edited) if edited else spec.launch
    except (UnreadableRecord, OSError):
        return None
    choice = _choice_of(run, edited) if edited else record.get("choice")
    return RecordedRun(spec, choice or {}, template)


def _choice_of(run: RunDir, template: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The choice that came with the restart whose template is in force; request ids sort by time."""
    for path in sorted(run.requests.glob("[!.]*.json"), reverse=True):
        try:
            options = (atomic.read_json(path) or {}).get("options") or {}
        except (UnreadableRecord, OSError):
            continue
        if options.get("launch") == template:
            return dict(options.get("choice") or {})
    return None
