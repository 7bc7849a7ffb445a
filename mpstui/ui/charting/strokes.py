"""A curve's buckets as strokes on a canvas.

There are five times as many buckets as columns of dots. Those of one column are one stroke from the lowest to the
highest of them, which is what drawing them one over the other would come to: a fifth of the work, four times a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .canvas import Canvas
from .scale import Scale

if TYPE_CHECKING:
    from .plot import Frame

_NAN = math.nan
Bucket = tuple[float, float, float, float]
"""x, low, high and mean; NaN where there is none."""


class _Stroke(NamedTuple):
    """Neighbouring buckets in one column of dots, without a gap between them. All NaN: a gap."""

    column: int
    low: float
    high: float
    first: float
    """The mean where the line comes in."""
    last: float
    """The mean where it goes on."""


_GAP = _Stroke(-1, _NAN, _NAN, _NAN, _NAN)


def draw_buckets(canvas: Canvas, space: Frame, layer: str, buckets: Iterable[Bucket]) -> None:
    """The extremes of every column, and the line through the means; a bucket without a mean is not bridged."""
    previous: tuple[int, int] | None = None
    lowest = canvas.height - 1
    for stroke in _strokes(buckets, space.x, canvas.width):
        if stroke.column < 0:
            previous = None
            continue
        top, bottom = _dot(stroke.high, space.y, lowest), _dot(stroke.low, space.y, lowest)
        if top is not None or bottom is not None:  # what the axis cannot hold leaves it at its edge
            canvas.column(stroke.column, top or 0, lowest if bottom is None else bottom, layer)
        enters, leaves = _dot(stroke.first, space.y, lowest), _dot(stroke.last, space.y, lowest)
        if previous is not None and enters is not None:
            canvas.line(*previous, stroke.column, enters, layer)
        previous = (stroke.column, leaves) if leaves is not None else None


def _strokes(buckets: Iterable[Bucket], axis: Scale, width: int) -> Iterator[_Stroke]:
    left, right, span, last_column = axis.low, axis.high, axis.span, width - 1
    column, low, high, first, last = _GAP
    for x, least, most, mean in buckets:
        here = round((x - left) / span * last_column) if left <= x <= right else -1
        if here == column and mean == mean and last == last:
            low, high, last = min(low, least), max(high, most), mean
            continue
        yield _Stroke(column, low, high, first, last)
        column, low, high, first, last = (here, least, most, mean, mean) if here >= 0 else _GAP
    yield _Stroke(column, low, high, first, last)


def _dot(value: float, axis: Scale, lowest: int) -> int | None:
    """Dots from the top; None for what the axis cannot hold."""
    position = axis.position(value)
    return None if position is None else round((1 - position) * lowest)
