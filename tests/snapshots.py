"""Snapshots made by hand: the numbers among the changes go where snapshots keep them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from mpstui.core.model.snapshot import Numbers, RunSnapshot

_NUMBERS = frozenset(spec.name for spec in fields(Numbers))


def changed(snapshot: RunSnapshot, **changes: Any) -> RunSnapshot:
    """The snapshot with some of its fields, or of its numbers, changed."""
    numbers = {name: value for name, value in changes.items() if name in _NUMBERS}
    others = {name: value for name, value in changes.items() if name not in _NUMBERS}
    return replace(snapshot, **{"numbers": replace(snapshot.numbers, **numbers), **others})
