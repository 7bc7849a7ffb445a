"""Records' values as columns of doubles, NaN for what is unknown or no number."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from .pyramid import NAN


def numbers(raw: Sequence[Any]) -> array[float] | None:
    """A column of doubles, NaN for null and for what is no number; None when nothing in it is a number or null."""
    try:
        return array("d", raw)
    except (TypeError, OverflowError):
        pass
    if not any(value is None or _is_number(value) for value in raw):
        return None
    return array("d", [_double(value) for value in raw])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _double(value: Any) -> float:
    try:
        return float(value) if _is_number(value) else NAN
    except OverflowError:
        return NAN


def stretches(attempts: Sequence[Any]) -> list[tuple[int, int, int]]:
    """(attempt, start, stop) of equal neighbours."""
    if attempts.count(attempts[0]) == len(attempts):
        return [(_attempt(attempts[0]), 0, len(attempts))]
    out, start = [], 0
    for value, group in groupby(attempts):
        stop = start + sum(1 for _ in group)
        out.append((_attempt(value), start, stop))
        start = stop
    return out


def _attempt(value: Any) -> int:
    return value if isinstance(value, int) else 0
