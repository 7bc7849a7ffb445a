"""The points that the agent adds to the curves: one step for each beat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from .reporter import Reporter


class StepPoints:
    """Reports each step once; the first one together with the second.

    The value passed to backward in the first step may be one of several losses, which only the second step shows.
    """

    def __init__(self) -> None:
        self._newest: Optional[int] = 0
        self._first: Optional[tuple[int, Optional[float], Mapping[str, Optional[float]]]] = None

    def hold(self, step: Optional[int], epoch: Optional[float], values: Mapping[str, Optional[float]]) -> None:
        """Hold back the first step, with what is known of it so far."""
        if step is not None:
            self._first = (step, epoch, values)

    def tell(
        self, reporter: Reporter, step: Optional[int], epoch: Optional[float], values: Mapping[str, Optional[float]]
    ) -> None:
        """Report the newest step, and before it the first one: without its loss if there turned out to be several."""
        held, self._first = self._first, None
        if held is not None and held[0] != step:
            self._point(reporter, held[0], held[1], {name: held[2][name] for name in held[2] if name in values})
        if step not in (None, self._newest):  # a framework's next training counts from 0
            self._newest = step
            self._point(reporter, step or 0, epoch, values)

    def _point(
        self, reporter: Reporter, step: int, epoch: Optional[float], values: Mapping[str, Optional[float]]
    ) -> None:
        known = {name: value for name, value in values.items() if value is not None}  # null would mean NaN
        reporter.point(step, epoch, **known)
