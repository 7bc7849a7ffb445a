"""Hydra, whose arguments are the keys of a configuration and the groups of its folder."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

PACKAGES = ("hydra",)
_ENDINGS = (".yaml", ".yml")


def look(package: Any, keep: Callable[[list[dict[str, Any]]], None]) -> None:
    """Report what the function behind ``hydra.main`` would be given, and end the program before it begins."""

    def main(config_path: Any = None, config_name: Any = None, **options: Any) -> Any:
        def decorated(task: Any) -> Any:
            def begin(*args: Any, **given: Any) -> None:
                beside = os.path.dirname(os.path.abspath(task.__code__.co_filename))  # noqa: PTH100, PTH120
                if config_path is not None and config_name is not None:
                    keep(_told(package, os.path.join(beside, config_path), config_name))  # noqa: PTH118
                os._exit(0)

            return begin

        return decorated

    package.main = main


def _told(package: Any, folder: str, name: str) -> list[dict[str, Any]]:
    """Return the groups, each with the files to choose from, then the values under their full keys."""
    omegaconf = importlib.import_module("omegaconf").OmegaConf  # hydra needs it
    words = [word for word in sys.argv[1:] if "=" in word]
    with package.initialize_config_dir(config_dir=os.path.abspath(folder), version_base=None):  # noqa: PTH100
        made = omegaconf.to_container(package.compose(name, words, return_hydra_config=True), resolve=False)
    chosen = made.pop("hydra")["runtime"]["choices"]
    rows = [
        _row(group, choice, "text", _choices(os.path.join(folder, group)))  # noqa: PTH118
        for group, choice in chosen.items()
        if not group.startswith("hydra/") and isinstance(choice, str)
    ]
    return rows + [_row(key, value, type(value).__name__) for key, value in _values(made, "")]


def _choices(folder: str) -> list[str]:
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []  # noqa: PTH112, PTH208
    return [name.rpartition(".")[0] for name in names if name.endswith(_ENDINGS)]


def _values(made: Any, under: str) -> Iterator[tuple[str, Any]]:
    for key, value in made.items():
        if isinstance(value, dict):
            yield from _values(value, f"{under}{key}.")
        elif value is None or isinstance(value, (str, int, float)):
            yield f"{under}{key}", value


def _row(name: str, default: Any, kind: str, choices: Any = ()) -> dict[str, Any]:
    return {
        "name": name,
        "flags": [f"{name}="],
        "many": False,
        "required": default == "???",
        "kind": kind if kind in ("int", "float") else "text",
        "default": None if default is None or default == "???" else str(default),
        "choices": list(choices),
        "help": "",
    }
