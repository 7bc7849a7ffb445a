"""From a TOML text to a checked :class:`Profile`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...wire.records import RestartRule, StopRule
from ...wire.rundir import slug
from ..model.checks import size_in_bytes
from ..model.problems import LineIndex, Problem, ProfileError
from .model import DEFAULT_MAX_LOG_BYTES, DEFAULT_MIN_FREE_BYTES, DIAGNOSIS_ROLES, ArgumentValue, Profile
from .recipes import DEFAULT_RECIPE
from .schema import flattened, problems_in
from .sweep import read_sweep

_POSITION = re.compile(r"\s*\(at line (\d+), column \d+\)$")


def parse_profile(text: str, *, path: Path | None, default_cwd: Path) -> Profile:
    """Read and check one profile.

    Args:
        path: the file it came from, for errors and for a relative ``cwd``.
        default_cwd: where the program runs when the profile does not say.

    Raises:
        ProfileError: with every mistake in it.
    """
    data = _toml(text, path)
    problems = problems_in(data, LineIndex(text))
    if problems:
        raise ProfileError(path, problems)
    return _profile(data, text, path, default_cwd)


def _toml(text: str, path: Path | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        position = _POSITION.search(str(error))
        what = _POSITION.sub("", str(error))
        line = int(position[1]) if position else text.count("\n") + 1
        raise ProfileError(path, [Problem("", f"this is not TOML: {what}", line)]) from error


def _profile(data: Mapping[str, Any], text: str, path: Path | None, default_cwd: Path) -> Profile:
    stem = path.stem if path else ""
    resume = data.get("resume", {})
    return Profile(
        name=data.get("name", stem or "run"),
        slug=stem or slug(data.get("name", "run")),
        command=tuple(data["command"]),
        cwd=_cwd(data.get("cwd"), path, default_cwd),
        python=_interpreter(data.get("python"), path),
        device=data.get("device", "auto"),
        recipe=data.get("recipe", DEFAULT_RECIPE),
        launcher=data.get("launcher"),
        processes=data.get("processes", 1),
        agent=data.get("agent", False),
        env={name: str(value) for name, value in data.get("env", {}).items()},
        args=_arguments(data.get("args", {})),
        sweep=read_sweep(data.get("sweep", {})),
        arg_style=data.get("arg_style", "options"),
        resume_args=tuple(resume["args"]) if "args" in resume else None,
        checkpoints=resume.get("checkpoints"),
        device_args={device: tuple(words) for device, words in data.get("device_args", {}).items()},
        stop=StopRule(**data.get("stop", {})),
        watch=dict(data.get("watch", {})),
        restart=RestartRule(**data.get("restart", {})),
        roles=_roles(data.get("roles", {})),
        pid_file=data.get("pid_file"),
        max_log_bytes=size_in_bytes(data.get("max_log", DEFAULT_MAX_LOG_BYTES)) or 0,
        min_free_bytes=size_in_bytes(data.get("min_free_disk", DEFAULT_MIN_FREE_BYTES)) or 0,
        description=data.get("description", ""),
        path=path,
        text=text,
    )


def _arguments(table: Mapping[str, Any]) -> dict[str, ArgumentValue]:
    return {".".join(keys): tuple(value) if isinstance(value, list) else value for keys, value in flattened(table)}


def _roles(table: Mapping[str, str]) -> dict[str, str]:
    """With the names that remedies use beside those that people write."""
    also = {DIAGNOSIS_ROLES[role]: name for role, name in table.items() if role in DIAGNOSIS_ROLES}
    return {**table, **also}


def _cwd(named: str | None, path: Path | None, default_cwd: Path) -> Path:
    if named is None:
        return default_cwd
    base = path.parent if path else default_cwd
    return (base / Path(named).expanduser()).resolve()


def _interpreter(named: str | None, path: Path | None) -> str | None:
    """``~`` is expanded, a relative path starts at the profile. Links stay: a virtual environment's python is one."""
    if named is None:
        return None
    expanded = Path(named).expanduser()
    if expanded.is_absolute() or "/" not in named:
        return str(expanded)
    return str((path.parent if path else Path.cwd()) / expanded)
