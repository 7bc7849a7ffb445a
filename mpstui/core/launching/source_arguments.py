"""Reads the arguments in a program's source, if the program cannot be asked: it needs a GPU, or a missing module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

_SWITCHES = ("store_true", "store_false")
_NOTHING = ("help", "version")


def arguments_in(text: str) -> list[dict[str, Any]]:
    """Return what each ``add_argument`` in a script says, as dictionaries of ``arguments.Argument``.

    Only literals are known: a computed name is skipped, a computed default counts as none.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found: dict[str, dict[str, Any]] = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in ("add_argument", "add"):
            found |= {row["name"]: row for row in _told(call)}
    return list(found.values())


def _told(call: ast.Call) -> Iterator[dict[str, Any]]:
    words = [_plain(one) for one in call.args]
    names = [word for word in words if isinstance(word, str)]
    given = {one.arg: one.value for one in call.keywords}
    told = {name: _plain(value) for name, value in given.items()}
    action = told.get("action")
    if not names or len(names) < len(words) or action in _NOTHING or not any(name.startswith("-") for name in names):
        return
    takes = given.get("type")
    kind = takes.id if isinstance(takes, ast.Name) else type(told.get("default")).__name__
    switch, default = action in _SWITCHES, told.get("default")
    if switch and default is None:
        default = action == "store_false"
    if isinstance(default, list):
        default = " ".join(map(str, default))
    long = [name for name in names if name.startswith("--")] or names
    many = told.get("nargs") in ("*", "+") or (isinstance(told.get("nargs"), int) and told["nargs"] > 1)
    choices = told.get("choices")
    yield {
        "name": long[0].lstrip("-"),
        "flags": names,
        "many": many,
        "required": told.get("required") is True,
        "kind": "switch" if switch else kind if kind in ("int", "float") else "text",
        "default": None if default is None or (switch and default is False) else str(default),
        "choices": [str(one) for one in choices] if isinstance(choices, list) else [],
        "help": " ".join(str(told.get("help") or "").split())[:300],
    }


def _plain(value: ast.expr) -> Any:
    """Return the value of a literal; None for what is computed."""
    try:
        found = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return list(found) if isinstance(found, (tuple, list)) else found if isinstance(found, (str, int, float)) else None
