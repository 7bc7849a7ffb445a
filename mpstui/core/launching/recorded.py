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
    """``spec.json`` and the newest change to it."""

    spec: Spec
    choice: Mapping[str, Any]
    """As written by :func:`~mpstui.core.launching.launch.choice_json`; empty in records of other programs."""
    template: LaunchTemplate
    """What the next attempt starts from: the newest edit's, else the spec's."""


def read_run(run: RunDir) -> RecordedRun | None:
    """The record of a run; None when it cannot be read (then nothing may be done to the run but look)."""
    try:
        stamp = run.spec.stat().st_mtime_ns, run.requests.stat().st_mtime_ns
    except OSError:
        return None
    return _read_run(run.path, stamp)


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
        queue=QueueRule(**choice["queue"]) if choice.get("queue") else QueueRule(),
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
        if record is None:
            return None
        spec = Spec.from_json(record)
        edit = _newest_edit(run)
        template = LaunchTemplate.from_json(edit["launch"]) if edit else spec.launch
    except (UnreadableRecord, OSError):
        return None
    return RecordedRun(spec, (edit or record).get("choice") or {}, template)


def _newest_edit(run: RunDir) -> Mapping[str, Any] | None:
    """The options of the newest restart that replaced the launch; request ids sort by time."""
    names = sorted((entry.name for entry in run.requests.glob("*.json")), reverse=True)
    for name in names:
        if name.endswith(".ack.json") or name.startswith("."):
            continue
        try:
            options = (atomic.read_json(run.requests / name) or {}).get("options") or {}
        except (UnreadableRecord, OSError):
            continue
        if options.get("launch"):
            return dict(options)
    return None
