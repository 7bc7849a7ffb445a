"""Which keys a profile may have. A new key is one line here and one in :mod:`.build`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model import checks
from ..model.checks import Check
from ..model.problems import KeyPath, LineIndex, Problem
from .model import ROLES
from .recipes import RECIPES
from .sweep import sweep_problems

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
    "arg_style": checks.one_of("options", "hydra"),
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
    "watch": dict.fromkeys(("heartbeat", "metrics", "log", "pattern"), checks.text),
    "restart": {
        "on": checks.list_of(checks.text, "causes"),
        "device": DEVICE,
        "delays_seconds": checks.list_of(checks.seconds, "seconds"),
        "most_per_hour": checks.whole_number(1, 60),
    },
    "roles": dict.fromkeys(ROLES, checks.text),
}
FREE_SECTIONS = ("env", "args", "sweep")
"""Tables whose keys are the person's own."""


def problems_in(data: Mapping[str, Any], lines: LineIndex) -> list[Problem]:
    """Every key that is unknown, of a wrong type or of an impossible value, in the file's order."""
    found = list(_top_level(data)) + list(_consistency(data))
    located = [Problem(".".join(path), sentence, lines.line_of(path)) for path, sentence in found]
    return sorted(located, key=lambda problem: problem.line or 0)


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
        yield from _environment(value)
    elif section == "sweep":
        pass
    elif section == "args":
        for path, item in flattened(value):
            yield from _value(("args", *path), item, checks.argument)
    else:
        for key, item in value.items():
            check = SECTIONS[section].get(key)
            if check:
                yield from _value((section, key), item, check)
            else:
                yield (section, key), _unknown(key, section)


def _environment(table: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for name, value in table.items():
        expected = checks.environment_name(name)
        if expected:
            yield ("env", name), f"`{name}` in [env] is no name of a variable: {expected} only"
        yield from _value(("env", name), value, checks.environment_value)


def _value(path: KeyPath, value: Any, check: Check) -> Iterator[tuple[KeyPath, str]]:
    expected = check(value)
    if expected:
        where = f"`{path[-1]}`" + (f" in [{'.'.join(path[:-1])}]" if path[:-1] else "")
        yield path, f"{where} must be {expected}, not {checks.described(value)}"


def _consistency(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Keys that are right alone and impossible together."""
    if isinstance(data.get("processes"), int) and data["processes"] > 1 and "launcher" not in data:
        yield ("processes",), '`processes` needs a launcher: add launcher = "torchrun"'
    yield from _sweep(data)
    resume = data.get("resume")
    if isinstance(resume, dict) and "checkpoints" not in resume and "{checkpoint}" in str(resume.get("args", "")):
        yield (
            ("resume", "args"),
            '`args` in [resume] has {checkpoint}, but `checkpoints` (such as "checkpoints/*.pt") is missing',
        )


def _sweep(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    table, args = data.get("sweep"), data.get("args")
    if isinstance(table, dict):
        known = {".".join(path): value for path, value in flattened(args if isinstance(args, dict) else {})}
        yield from sweep_problems(table, known)


def _unknown(key: str, section: str | None) -> str:
    """The sentence for an unknown key: its nearest neighbour, the table it belongs in, or where own arguments go."""
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
    """Leaves of nested tables: TOML reads ``model.lr = 1`` as a table ``model``."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flattened(value, (*prefix, key))
        else:
            yield (*prefix, key), value
