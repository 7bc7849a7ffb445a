"""A run's launch as a profile of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..model.home import Home
from ..profiles.save import save_profile_text
from ..profiles.sweep import sweep_toml
from .choice import LaunchChoice, launch_arguments
from .frozen_profile import frozen_text, profile_toml
from .launches import choice_json
from .sweeping import open_axes


def save_profile(choice: LaunchChoice, name: str, home: Home, *, replace: bool = False) -> Path:
    """Save a launch as a profile of the user's and return its path. Secrets are left out; folders become absolute.

    Raises:
        UsageError: the name cannot be a file's, or is taken and ``replace`` was not said.
        OperationError: the file cannot be written.
    """
    profile = choice.profile
    arguments, _ = launch_arguments(choice)
    changed = {key: _typed(value) for key, value in arguments.items() if profile.args.get(key) != value}
    axes = open_axes(choice)
    settled = [key for key in profile.sweep if key not in axes]
    changes: dict[str, Any] = {
        "name": name,
        "cwd": str(profile.cwd),
        **({"python": profile.python} if profile.python else {}),
        **({"device": choice.device} if choice.device else {}),
        **({"recipe": choice.recipe} if choice.recipe else {}),
        "args": {**changed, **dict.fromkeys(choice.drop_args)},
        "sweep": {
            **{key: sweep_toml(values) for key, values in axes.items() if values != profile.sweep.get(key)},
            **dict.fromkeys(settled),
        },
        "env": {**choice_json(choice)["env"], **dict.fromkeys(choice.drop_env)},
    }
    return save_profile_text(frozen_text(profile) or profile_toml(profile), name, home, changes, replace=replace)


def _typed(value: Any) -> Any:
    """What was set as a text, as the number it is, so that the profile reads as a person would write it."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        return number if number == number and abs(number) != float("inf") else value
    return value
