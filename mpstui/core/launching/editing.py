"""The launch of a run as it was chosen, read back from its record to be changed or looked at."""

from __future__ import annotations

from pathlib import Path

from ...wire.records import QueueRule, Spec
from ...wire.rundir import RunDir
from ..model.errors import OperationError, UsageError
from ..model.home import Home
from ..model.snapshot import RunSnapshot
from ..profiles.model import Profile, profile_of_command
from .choice import LaunchChoice
from .frozen_profile import thaw
from .recorded import read_run


def edit_choice(snapshot: RunSnapshot, home: Home) -> LaunchChoice:
    """The launch of a run as it was chosen, to be changed and restarted.

    Raises:
        OperationError: the run's record cannot be read.
    """
    return recorded_choice(RunDir(home.runs / snapshot.run))


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
