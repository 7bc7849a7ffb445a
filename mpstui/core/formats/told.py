"""What a store keeps of a run besides its curves: its name, its configuration, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from ..model.snapshot import State

SYSTEM = "system/"
"""Prefix of the names of machine readings (GPU, memory) in a store."""
MOST_SETTINGS = 500
"""Maximum number of settings kept of one run; nested ones count individually."""
_LONGEST_VALUE = 300
_DEEPEST = 8


class RunTold(NamedTuple):
    """What a store says of one run; empty or None means that it does not say."""

    id: str = ""
    name: str = ""
    project: str = ""
    group: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
    host: str = ""
    config: Mapping[str, str] = {}
    argv: tuple[str, ...] = ()
    started: float | None = None
    """Unix seconds, like ``ended``."""
    ended: float | None = None
    resumed: float | None = None
    """When the newest of several attempts started, Unix seconds."""
    idle: float = 0.0
    """Seconds between its attempts, as far as the store records them."""
    runtime: float | None = None
    """Seconds from its start to its end."""
    state: State | None = None
    """How it ended, according to the store; None if the store has recorded no end."""
    exit_code: int | None = None
    says: str = ""
    """The store's own word for the state."""


def flattened(name: str, value: Any, depth: int = 0) -> dict[str, str]:
    """Return settings by name, nested ones under their dotted path: ``model.depth``."""
    if isinstance(value, dict) and value and depth < _DEEPEST:
        found: dict[str, str] = {}
        for key, inner in value.items():
            more = flattened(f"{name}.{key}" if name else str(key), inner, depth + 1)
            found |= islice(more.items(), MOST_SETTINGS - len(found))
            if len(found) >= MOST_SETTINGS:
                break
        return found
    return {name: setting_text(value)}


def setting_text(value: Any) -> str:
    """Return one setting as text: ``0.001``, ``true``, ``gelu``, ``[0.9, 0.99]``; a long one is cut."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, list) and not any(isinstance(one, (dict, list)) for one in value):
        value = f"[{', '.join(map(setting_text, value))}]"
    text = f"{value:g}" if isinstance(value, float) and f"{value:g}" == repr(value) else str(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
