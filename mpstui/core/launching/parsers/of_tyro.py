"""tyro, which derives its arguments from dataclasses and functions."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

PACKAGES = ("tyro",)
_DEFAULT = re.compile(r"\s*\(default: (.*)\)$", re.DOTALL)
_KINDS = {"INT": "int", "FLOAT": "float"}
_MADE_FROM = ("prog", "description", "default", "use_underscores", "config")


def look(package: Any, keep: Callable[[list[dict[str, Any]]], None]) -> None:
    """Report what the first ``tyro.cli`` would take, and end the program there."""
    parser_of = package.extras.get_parser

    def cli(made_of: Any, *args: Any, **options: Any) -> Any:
        parser = parser_of(made_of, **{name: options[name] for name in _MADE_FROM if name in options})
        keep([_told(one) for one in parser._actions if "--help" not in one.option_strings])
        os._exit(0)

    package.cli = cli


def _told(one: Any) -> dict[str, Any]:
    """Read an argument of tyro's parser, whose default and type are only in the help text and the metavar."""
    text = " ".join(str(one.help or "").replace("%%", "%").split())
    default = _DEFAULT.search(text)
    metavar = str(one.metavar or "")
    switch = one.nargs == 0 or type(one).__name__ == "BooleanOptionalAction"
    choices = one.choices or re.findall(r"[^{},|]+", metavar) if metavar.startswith("{") and "|" not in metavar else ()
    told = None if default is None or default[1] == "None" or (switch and default[1] == "False") else default[1]
    flags = list(one.option_strings)
    return {
        "name": (flags or [one.dest])[0].lstrip("-"),
        "flags": flags,
        "many": one.nargs in ("*", "+") or (isinstance(one.nargs, int) and one.nargs > 1),
        "required": "(required)" in text,
        "kind": "switch" if switch else _KINDS.get(metavar, "text"),
        "default": told,
        "choices": [str(choice) for choice in choices],
        "help": (text[: default.start()] if default else text)[:300],
    }
