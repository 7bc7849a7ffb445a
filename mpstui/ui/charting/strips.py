"""A curve in one row of blocks; what is not finite is a gap."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from ..rows import Span

BLOCKS = "▁▂▃▄▅▆▇█"
LEVELS = 7
"""The full block is left out: curves in neighbouring rows would run together."""


def sparkline(values: Sequence[float], width: int) -> str:
    """The values in ``width`` cells, the newest at the right; fewer values than cells leave blanks at the left.

    More values than cells are averaged in fixed bins, so that a new value moves few cells. A bin without a finite value
    is a blank. A constant curve runs along the middle.
    """
    if width <= 0:
        return ""
    bins = [_mean(values[start:end]) for start, end in _bins(len(values), width)]
    finite = [value for value in bins if value is not None]
    if not finite:
        return " " * width
    low, high = min(finite), max(finite)
    return "".join(_block(value, low, high) for value in bins).rjust(width)


def _bins(count: int, width: int) -> list[tuple[int, int]]:
    size = max(1, math.ceil(count / width))
    return [(start, min(count, start + size)) for start in range(0, count, size)]


def _mean(values: Sequence[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return math.fsum(value / len(finite) for value in finite) if finite else None


def _block(value: float | None, low: float, high: float) -> str:
    if value is None:
        return " "
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return BLOCKS[3]
    return BLOCKS[min(LEVELS - 1, int((value - low) / span * LEVELS))]


CEILING = "┈"
"""Where the limit is, above a tall strip that does not reach it."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_WINDOWS = (
    *(minutes * _MINUTE for minutes in (2, 5, 10, 15, 20, 30, 45, 60, 90)),
    *(hours * _HOUR for hours in (2, 3, 4, 6, 8, 12, 18, 24, 36)),
    *(days * _DAY for days in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512)),
)


def window_seconds(age_seconds: float) -> int:
    """The round span of time that holds ``age_seconds``."""
    return next((window for window in _WINDOWS if window >= age_seconds), _WINDOWS[-1])


def window_label(seconds: float) -> str:
    """``20 min``, ``1.5 h``, ``3 d``."""
    unit, name = next((u, n) for u, n in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")) if seconds >= u or u == _MINUTE)
    if unit == _DAY and seconds < 2 * _DAY:
        unit, name = _HOUR, "h"
    return f"{seconds / unit:g} {name}"


def binned(
    points: Iterable[tuple[float, float | None]], now: float, span_seconds: float, width: int
) -> list[float | None]:
    """The highest known value in each of ``width`` equal spans of time that end with the one ``now`` falls into.

    The borders of the spans stand still while time passes, so that a new point changes one cell.
    """
    cells: list[float | None] = [None] * max(0, width)
    if not cells:
        return cells
    each = span_seconds / width
    last = math.floor(now / each)
    for time, value in points:
        place = width - 1 - (last - math.floor(time / each))
        if value is not None and 0 <= place < width:
            before = cells[place]
            cells[place] = value if before is None else max(before, value)
    return cells


def strip(
    values: Sequence[float | None], top: float, lines: int, role_of: Callable[[float], str]
) -> list[tuple[Span, ...]]:
    """``lines`` rows of cells, ``top`` being full; ``role_of`` colours a column by its value."""
    return [_line(values, top, lines, lines - 1 - line, role_of) for line in range(lines)]


def _line(
    values: Sequence[float | None], top: float, lines: int, below: int, role_of: Callable[[float], str]
) -> tuple[Span, ...]:
    spans: list[Span] = []
    for value in values:
        text = " " if value is None else _cell(value / top if top > 0 else 0.0, lines, below)
        role = role_of(value) if value is not None and text != " " else ""
        if text == " " and value is not None and below == lines - 1:
            text, role = CEILING, "track"
        if spans and spans[-1].role == role:
            spans[-1] = Span(spans[-1].text + text, role)
        else:
            spans.append(Span(text, role))
    return tuple(spans)


def _cell(share: float, lines: int, below: int) -> str:
    """The part of a column in the line that has ``below`` others under it; what is known is never blank at the foot."""
    if share >= 1:
        return BLOCKS[-1]
    highest = 8 * (lines - 1) + LEVELS
    eighths = round(max(0.0, share) * highest) - below * 8
    if eighths <= 0:
        return BLOCKS[0] if below == 0 else " "
    return BLOCKS[min(eighths, len(BLOCKS)) - 1]
