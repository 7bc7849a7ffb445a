"""Turns TOML text into a checked profile. A new key needs one line in TOP or SECTIONS and one in _profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...wire.records import RESTART_CAUSES, RestartRule, StopRule
from ...wire.rundir import slug
from ..engines.engine import ENGINES, engine_named
from ..model import checks
from ..model.checks import Check, KeyPath, LineIndex, Problem, ProfileError, size_in_bytes
from ..model.toml import TomlMistake, load_toml
from .model import (
    DEFAULT_MAX_LOG_BYTES,
    DEFAULT_MIN_FREE_BYTES,
    DEFAULT_RECIPE,
    DIAGNOSIS_ROLES,
    RECIPES,
    ROLES,
    Profile,
)
from .sweep import read_sweep, sweep_problems


def parse_profile(text: str, *, path: Path | None, default_cwd: Path) -> Profile:
    """Parse and check one profile.

    Args:
        path: the file it came from, for errors and for a relative ``cwd``.
        default_cwd: where the program runs if the profile does not say.

    Raises:
        ProfileError: with every mistake in it.
    """
    try:
        data = load_toml(text)
    except TomlMistake as mistake:
        raise ProfileError(path, [Problem("", mistake.what, mistake.line)]) from mistake
    lines = LineIndex(text)
    found = [*_top_level(data), *_consistency(data)]
    if found:
        located = [Problem(".".join(keys), sentence, lines.line_of(keys)) for keys, sentence in found]
        raise ProfileError(path, sorted(located, key=lambda problem: problem.line or 0))
    return _profile(data, text, path, default_cwd)


def _profile(data: Mapping[str, Any], text: str, path: Path | None, default_cwd: Path) -> Profile:
    stem = path.stem if path else ""
    resume, roles = data.get("resume", {}), data.get("roles", {})
    folder = path.parent if path else default_cwd
    args = {".".join(keys): value for keys, value in flattened(data.get("args", {}))}
    python = data.get("python")
    if python is not None:  # symlinks are not resolved: a virtual environment's python is one
        expanded = Path(python).expanduser()
        python = str((path.parent if path else Path.cwd()) / expanded if "/" in python else expanded)
    return Profile(
        name=data.get("name", stem or "run"),
        slug=stem or slug(data.get("name", "run")),
        command=tuple(data["command"]),
        cwd=(folder / Path(data["cwd"]).expanduser()).resolve() if "cwd" in data else default_cwd,
        python=python,
        device=data.get("device", "auto"),
        recipe=data.get("recipe", DEFAULT_RECIPE),
        launcher=data.get("launcher"),
        processes=data.get("processes", 1),
        agent=data.get("agent", "{trainer}" not in data["command"]),  # the shipped trainers report on their own
        env={name: str(value) for name, value in data.get("env", {}).items()},
        args={key: tuple(value) if isinstance(value, list) else value for key, value in args.items()},
        defaults={".".join(keys): value for keys, value in flattened(data.get("defaults", {}))},
        sweep=read_sweep(data.get("sweep", {})),
        arg_style=data.get("arg_style", "options"),
        resume_args=tuple(resume["args"]) if "args" in resume else None,
        checkpoints=resume.get("checkpoints"),
        device_args={device: tuple(words) for device, words in data.get("device_args", {}).items()},
        stop=StopRule(**data.get("stop", {})),
        watch=dict(data.get("watch", {})),
        restart=RestartRule(**data.get("restart", {})),
        roles={**roles, **{DIAGNOSIS_ROLES[role]: roles[role] for role in roles if role in DIAGNOSIS_ROLES}},
        jobs={name: job_options(data[name]) for name in data if name in ENGINES},
        pid_file=data.get("pid_file"),
        max_log_bytes=size_in_bytes(data.get("max_log", DEFAULT_MAX_LOG_BYTES)) or 0,
        min_free_bytes=size_in_bytes(data.get("min_free_disk", DEFAULT_MIN_FREE_BYTES)) or 0,
        description=data.get("description", ""),
        path=path,
        text=text,
    )


def job_options(table: Mapping[str, Any]) -> dict[str, str]:
    """Return a table as scheduler options: ``true`` is a bare flag, ``false`` omits the option."""
    return {key: "" if value is True else str(value) for key, value in table.items() if value is not False}


DEVICE = checks.one_of("auto", "mps", "cuda", "cpu")
TOP: Mapping[str, Check] = {
    "name": checks.text,
    "description": checks.any_text,
    "command": checks.command,
    "python": checks.text,
    "cwd": checks.text,
    "device": DEVICE,
    "recipe": checks.one_of(*RECIPES),
    "launcher": checks.one_of("torchrun"),
    "processes": checks.whole_number(1, 1024),
    "agent": checks.flag,
    "arg_style": checks.one_of("options", "equals", "hydra"),
    "pid_file": checks.text,
    "max_log": checks.size,
    "min_free_disk": checks.size,
}
_WORDS = checks.list_of(checks.any_text, "texts")
SECTIONS: Mapping[str, Mapping[str, Check]] = {
    "resume": {"args": _WORDS, "checkpoints": checks.text},
    "device_args": dict.fromkeys(("auto", "mps", "cuda", "cpu"), _WORDS),
    "stop": {
        "signal": checks.one_of("term", "int"),
        "grace_seconds": checks.seconds,
        "saving_cap_seconds": checks.seconds,
    },
    "watch": {**dict.fromkeys(("heartbeat", "metrics", "log"), checks.text), "pattern": checks.log_pattern},
    "restart": {
        "on": checks.list_of(checks.one_of(*RESTART_CAUSES), "causes"),
        "device": DEVICE,
        "delays_seconds": checks.list_of(checks.seconds, "seconds"),
        "most_per_hour": checks.whole_number(1, 60),
    },
    "roles": dict.fromkeys(ROLES, checks.text),
}
FREE_SECTIONS = ("env", "args", "sweep", "defaults", *ENGINES)
"""Tables whose keys are up to the user or to a scheduler."""


def _top_level(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for key, value in data.items():
        if key in FREE_SECTIONS or key in SECTIONS:
            yield from _section(key, value)
        elif key in TOP:
            yield from _value((key,), value, TOP[key])
        else:
            yield (key,), _unknown(key, None)
    if "command" not in data:
        yield (
            ("command",),
            '`command` is missing: the program and its first arguments, such as ["{python}", "train.py"]',
        )


def _section(section: str, value: Any) -> Iterator[tuple[KeyPath, str]]:
    if not isinstance(value, dict):
        yield (section,), f"`{section}` must be a table, [{section}], not {checks.described(value)}"
    elif section == "env":
        for name, item in value.items():
            if expected := checks.environment_name(name):
                yield ("env", name), f"`{name}` in [env] is no name of a variable: {expected} only"
            yield from _value(("env", name), item, checks.environment_value)
    elif section == "sweep":
        pass
    elif section in ENGINES:
        for key, item in value.items():
            yield from _value((section, key), item, checks.scalar)
        if wrong := engine_named(section).check(job_options(value)):
            yield (section, wrong.partition("`")[2].partition("`")[0]), f"[{section}]: {wrong}"
    elif section in ("args", "defaults"):
        for path, item in flattened(value):
            yield from _value((section, *path), item, checks.argument)
    else:
        for key, item in value.items():
            check = SECTIONS[section].get(key)
            if check:
                yield from _value((section, key), item, check)
            else:
                yield (section, key), _unknown(key, section)


def _value(path: KeyPath, value: Any, check: Check) -> Iterator[tuple[KeyPath, str]]:
    expected = check(value)
    if expected:
        where = f"`{path[-1]}`" + (f" in [{'.'.join(path[:-1])}]" if path[:-1] else "")
        yield path, f"{where} must be {expected}, not {checks.described(value)}"


def _consistency(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the problems of keys that are valid on their own but not together."""
    if isinstance(data.get("processes"), int) and data["processes"] > 1 and "launcher" not in data:
        yield ("processes",), '`processes` needs a launcher: add launcher = "torchrun"'
    table, args = data.get("sweep"), data.get("args")
    if isinstance(table, dict):
        known = {".".join(path): value for path, value in flattened(args if isinstance(args, dict) else {})}
        yield from sweep_problems(table, known)
    resume = data.get("resume")
    if isinstance(resume, dict) and "checkpoints" not in resume and "{checkpoint}" in str(resume.get("args", "")):
        yield (
            ("resume", "args"),
            '`args` in [resume] has {checkpoint}, but `checkpoints` (such as "checkpoints/*.pt") is missing',
        )


def _unknown(key: str, section: str | None) -> str:
    """Return the sentence for an unknown key: a similar key, the table it belongs in, or where arguments go."""
    where = f"[{section}]" if section else "a profile"
    here = SECTIONS[section] if section else (*TOP, *SECTIONS, *FREE_SECTIONS)
    likely = checks.nearest(key, here)
    if likely:
        return f"`{key}` is not a key of {where}; did you mean `{likely}`?"
    if section and key in TOP:
        return f"`{key}` is not a key of {where}; it belongs at the top of the file, before the first [table]"
    for other, keys in SECTIONS.items():
        if key in keys and other not in (section, "device_args"):
            return f"`{key}` is not a key of {where}; it belongs in [{other}]"
    own = "" if section else "; the program's own arguments go in [args]"
    return f"`{key}` is not a key of {where}{own} (known: {', '.join(here)})"


def flattened(table: Mapping[str, Any], prefix: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the leaves of nested tables: TOML reads ``model.lr = 1`` as a table ``model``."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flattened(value, (*prefix, key))
        else:
            yield (*prefix, key), value
