"""What a run's own record says about how it was started and can be started again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...wire import atomic
from ...wire.jsontext import UnreadableRecord
from ...wire.records import LaunchTemplate, Spec
from ...wire.rundir import RunDir


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """``spec.json``, and the edit of a restart that replaced its launch."""

    spec: Spec
    choice: Mapping[str, Any]
    """As written by :func:`~mpstui.core.launching.launches.choice_json`; empty in records of other programs."""
    template: LaunchTemplate
    """What the next attempt starts from."""

    @property
    def has_profile(self) -> bool:
        """Whether it was launched from a profile's file, and not as a command."""
        return self.spec.profile_path is not None


def read_run(run: RunDir) -> RecordedRun | None:
    """The record of a run; None when it cannot be read (then nothing may be done to the run but look)."""
    spec = atomic.stamp(run.spec)
    return _read_run(run.path, (spec, atomic.stamp(run.status))) if spec is not None else None


@lru_cache(maxsize=256)
def _read_run(path: Path, stamps: tuple[object, object]) -> RecordedRun | None:
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
