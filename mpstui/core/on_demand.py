"""Packages whose names are imported when they are asked for: who needs one of them does not pay for the others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module


def names_on_demand(package: str, **homes: tuple[str, ...]) -> Callable[[str], object]:
    """The ``__getattr__`` of a package (PEP 562), for everything that its modules offer through it.

    A package says the same under ``TYPE_CHECKING``, where a type checker reads it. No name may be that of a module in
    the package: Python would give the module to whoever asks once that was imported.

    Args:
        package: the package's ``__name__``.
        homes: module of the package -> the names it has.
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f".{home_of[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
