"""click, and typer, which is built on it or has its own copy."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import Any

PACKAGES = ("click", "typer._click")
_KINDS = {"integer": "int", "int": "int", "float": "float"}


def look(package: Any, keep: Callable[[list[dict[str, Any]]], None]) -> None:
    """Report the options of each command that is entered, and end the program before it begins to work."""
    command = package.Command
    enter, begin = command.make_context, command.invoke

    def make_context(self: Any, *args: Any, **options: Any) -> Any:
        keep([_told(one) for one in self.params if not getattr(one, "hidden", False)])
        return enter(self, *args, **options)

    def invoke(self: Any, ctx: Any) -> Any:
        if not hasattr(self, "commands"):
            os._exit(0)
        return begin(self, ctx)

    command.make_context, command.invoke = make_context, invoke


def _told(one: Any) -> dict[str, Any]:
    flags = [*one.opts, *one.secondary_opts] if one.param_type_name == "option" else []
    long = [flag for flag in flags if flag.startswith("--")] or flags or [one.name]
    # click's types have names; typer's copy uses Python's types.
    takes = one.type if hasattr(one, "type") else one.type_descriptor.annotation
    word = str(getattr(takes, "name", None) or getattr(takes, "__name__", "")).partition(" ")[0]
    values = takes if isinstance(takes, type) and issubclass(takes, enum.Enum) else getattr(takes, "choices", ())
    switch, default = bool(getattr(one, "is_flag", False)), getattr(one.default, "value", one.default)
    if isinstance(default, (list, tuple)):
        default = " ".join(map(str, default))
    plain = isinstance(default, (str, int, float)) and not (switch and default is False)
    return {
        "name": long[0].lstrip("-"),
        "flags": flags,
        "many": one.nargs != 1,
        "required": bool(one.required),
        "kind": "switch" if switch else _KINDS.get(word, "text"),
        "default": str(default) if plain else None,
        "choices": [str(getattr(value, "value", value)) for value in values or ()],
        "help": " ".join(str(getattr(one, "help", "") or "").split())[:300],
    }
