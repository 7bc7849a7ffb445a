"""The text of a profile as it is frozen into a run's record: complete, but for the values of secrets."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...wire.secrets import HIDDEN, hides
from ..model.problems import LineIndex
from ..profiles.build import parse_profile
from ..profiles.model import ROLES, ArgumentValue, Profile, Scalar
from ..profiles.sweep import sweep_toml

_LONG_ENOUGH_TO_BE_UNIQUE = 6


def frozen_text(profile: Profile) -> str | None:
    """The profile as TOML with dots for secrets; None when they cannot all be taken out."""
    if not profile.text:
        return profile_toml(profile)
    hidden = {name: value for name, value in profile.env.items() if hides(name, value)}
    text = profile.text
    if hidden:
        text = _without_values(_without_lines(text, hidden), hidden)
    return text if _is_clean(text, hidden) else profile_toml(profile)


def thaw(text: str, *, path: Path | None, cwd: Path) -> Profile:
    """The profile of a run's record, to run where that run ran.

    Raises:
        UsageError: the record was written by a program with other keys.
    """
    from dataclasses import replace

    profile = parse_profile(text, path=path, default_cwd=cwd)
    shown = {name: value for name, value in profile.env.items() if value != HIDDEN}
    return replace(profile, cwd=cwd, env=shown)


def profile_toml(profile: Profile) -> str:
    """A profile as TOML, for those that came from no file, or whose file cannot be shown as it is."""
    lines = [f"name = {_text(profile.name)}", f"command = {_value(profile.command)}"]
    optional = {"python": profile.python, "launcher": profile.launcher, "pid_file": profile.pid_file}
    lines += [f"{key} = {_text(value)}" for key, value in optional.items() if value]
    lines += [f"device = {_text(profile.device)}", f"recipe = {_text(profile.recipe)}"]
    lines += [f"arg_style = {_text(profile.arg_style)}", f"agent = {_value(profile.agent)}"]
    if profile.launcher:
        lines.append(f"processes = {profile.processes}")
    lines += [f"max_log = {profile.max_log_bytes}", f"min_free_disk = {profile.min_free_bytes}"]
    shown = {name: HIDDEN if hides(name, value) else value for name, value in profile.env.items()}
    lines += _table("env", shown) + _table("args", profile.args) + _sweep(profile)
    lines += _table("device_args", profile.device_args)
    resume: dict[str, ArgumentValue] = {"args": profile.resume_args} if profile.resume_args is not None else {}
    if profile.checkpoints:
        resume["checkpoints"] = profile.checkpoints
    restart: dict[str, ArgumentValue] = {"on": tuple(profile.restart.on)}
    if profile.restart.device:
        restart["device"] = profile.restart.device
    roles = {role: name for role, name in profile.roles.items() if role in ROLES}
    lines += _table("resume", resume) + _table("restart", restart) + _table("roles", roles)
    lines += _table("watch", profile.watch)
    lines += _table("stop", {"signal": profile.stop.signal, "grace_seconds": profile.stop.grace_seconds})
    return "\n".join(lines) + "\n"


def _without_lines(text: str, hidden: Mapping[str, str]) -> str:
    lines = text.splitlines()
    index = LineIndex(text)
    for name in hidden:
        number = index.line_of(("env", name))
        if number and lines[number - 1].lstrip().strip("\"'").startswith(name):
            lines[number - 1] = f"{name} = {_text(HIDDEN)}"
    return "\n".join(lines) + "\n"


def _without_values(text: str, hidden: Mapping[str, str]) -> str:
    for value in hidden.values():
        if len(value) >= _LONG_ENOUGH_TO_BE_UNIQUE:
            text = text.replace(value, HIDDEN)
    return text


def _is_clean(text: str, hidden: Mapping[str, str]) -> bool:
    """Whether the text still is TOML and none of the secrets is left in it, however it was written."""
    try:
        env = tomllib.loads(text).get("env", {})
    except tomllib.TOMLDecodeError:
        return False
    return all(env.get(name) == HIDDEN for name in hidden)


def _table(name: str, values: Mapping[str, ArgumentValue]) -> list[str]:
    return ["", f"[{name}]", *(f"{_text(key)} = {_value(value)}" for key, value in values.items())] if values else []


def _sweep(profile: Profile) -> list[str]:
    axes = {key: sweep_toml(values) for key, values in profile.sweep.items()}
    return ["", "[sweep]", *(f"{_text(key)} = {_inline(found)}" for key, found in axes.items())] if axes else []


def _inline(found: Any) -> str:
    """Lists and tables of any depth on one line."""
    if isinstance(found, dict):
        return "{ " + ", ".join(f"{_text(key)} = {_inline(item)}" for key, item in found.items()) + " }"
    return f"[{', '.join(map(_scalar, found))}]" if isinstance(found, list) else _scalar(found)


def _value(value: ArgumentValue) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_scalar(item) for item in value)}]"
    return _scalar(value)


def _scalar(value: Scalar) -> str:
    return _text(value) if isinstance(value, str) else str(value).lower()


def _text(value: str) -> str:
    """A TOML basic string; JSON's escapes are a subset of TOML's but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
