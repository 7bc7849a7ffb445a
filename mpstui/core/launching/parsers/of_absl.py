"""absl's flags."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

PACKAGES = ("absl.flags",)


def look(package: Any, keep: Callable[[list[dict[str, Any]]], None]) -> None:
    """When the flags are parsed, report those that the program's own modules define, and end it."""

    def read(self: Any, *args: Any, **options: Any) -> None:
        modules = self.flags_by_module_dict().items()
        keep([_told(flag) for name, flags in modules if not name.startswith("absl") for flag in flags])
        os._exit(0)

    package.FlagValues.__call__ = read


def _told(flag: Any) -> dict[str, Any]:
    kind, switch = flag.flag_type(), flag.boolean and not flag.default
    default = ",".join(map(str, flag.default)) if isinstance(flag.default, (list, tuple)) else flag.default
    return {
        "name": flag.name,
        "flags": [f"--{flag.name}"],
        "kind": "switch" if switch else kind if kind in ("int", "float") else "text",
        "default": None if default is None or switch else str(default).lower() if flag.boolean else str(default),
        "choices": [str(value) for value in getattr(flag.parser, "enum_values", None) or ()],
        "joined": bool(flag.boolean and not switch),
        "help": " ".join(str(flag.help or "").split())[:300],
    }
