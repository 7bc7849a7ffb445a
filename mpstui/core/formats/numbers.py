"""Numbers as programs print them: thousands separators, exponents, NaN, tensors, K and M."""

from __future__ import annotations

import math

from .points import Number

_MULTIPLIERS = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000, "g": 1_000_000_000}
_SPECIAL = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


def parse_number(text: str) -> Number | None:
    """``text`` as int if it is printed as one, else float; None when it is no number."""
    if len(text) > 64 or "_" in text:
        return None
    try:
        return int(text) if "." not in text else float(text)
    except ValueError:
        return _unusual(text)


def _unusual(text: str) -> Number | None:
    """Exponents, thousands separators, a typographic minus, NaN and infinity."""
    try:
        return (
            float(text.replace(",", "").replace("−", "-"))
            if text[-1:].isdigit() or text[-1:] == "."
            else _special(text)
        )
    except ValueError:
        return None


def _special(text: str) -> float | None:
    bare = text.strip().lstrip("+-").lower()
    value = _SPECIAL.get(bare)
    return value if value is None or not text.lstrip().startswith("-") else -value


def parse_count(text: str, suffix: str = "") -> Number | None:
    """A counter such as ``1,234``, ``1K`` or ``2.5M``; a whole result is an int."""
    value = parse_number(text)
    if value is None or not math.isfinite(value):
        return None
    value *= _MULTIPLIERS.get(suffix.lower(), 1)
    return int(value) if value == int(value) and (suffix or isinstance(value, int)) else value


def as_float(value: object) -> float | None:
    """A float from what JSON, CSV or a Python literal holds (numbers, quoted numbers); None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return None
    if isinstance(value, str):
        number = parse_number(value)
        return None if number is None else as_float(number)
    return None


def as_number(value: object) -> Number | None:
    """Like `as_float`, but an int stays an int."""
    if isinstance(value, str):
        value = parse_number(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value
