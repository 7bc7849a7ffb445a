"""Which arrangement suits a window. Pure, so that the contract for small windows is a table in a test."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

_SMALLEST_CARD, _TALLEST_CARD = 3, 9


class Shape(StrEnum):
    """How the panels of a run are laid out."""

    TINY = "tiny"
    """One panel at a time."""
    STACKED = "stacked"
    """The chart above, one other panel below."""
    WIDE = "wide"
    """Chart and log at the left, everything else at the right."""


class RunLayout(NamedTuple):
    """Lines for each part of a run's screen."""

    shape: Shape
    header: int
    progress: int
    card: int
    """Lines of the failure card, where there is one."""


def run_layout(width: int, height: int) -> RunLayout:
    """The arrangement of one run."""
    if height < 20:
        roomy = height >= 12
        return RunLayout(Shape.TINY, 2 if roomy else 1, 2 if roomy else 0, max(_SMALLEST_CARD, min(5, height - 6)))
    shape = Shape.WIDE if width >= 112 and height >= 30 else Shape.STACKED
    return RunLayout(shape, 2, 2, _TALLEST_CARD if height >= 36 else 7)


def peek_height(width: int, height: int) -> int:
    """Lines for the selected run below the list, 0 where the list needs them itself."""
    return 0 if height < 24 or width < 50 else max(11, int(height * 0.5))
