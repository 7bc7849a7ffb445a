"""The outputs of a run's attempts, read as one: each continues the curves of the previous ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...wire import heartbeat, storage
from ...wire.rundir import RunDir
from ..series.series import SeriesStore
from .external import ExternalMetrics
from .local_machine import LocalMachine
from .numbers import are_alike
from .sources import bytes_at, log_reader

_LOOK_BYTES = 1 << 14
"""How much of the beginning and end of an output is read to learn which steps it counts."""


class Outputs:
    """The outputs of the attempts of one run."""

    def __init__(self, run: RunDir, machine: LocalMachine, capacity: int) -> None:
        """``capacity``: buckets per curve."""
        self._run, self._machine, self._capacity = run, machine, capacity
        self._before: dict[int, int] = {}
        """For each attempt, the earlier steps that it does not count; unknown for attempts not in here."""
        self._looked_at: dict[int, int] = {}
        """For each attempt, the size of its output when those steps were last looked for."""

    def chain(self, attempts: int, pattern: str | None, newest: Mapping[str, Any]) -> list[ExternalMetrics]:
        """Return readers for attempts 1 to ``attempts`` whose curves run through all of them.

        Args:
            newest: the known numbers of the last attempt, shown until it has been read.
        """
        store, found = SeriesStore(capacity=self._capacity), list[ExternalMetrics]()
        for number in range(1, attempts + 1):
            before = self._uncounted(number, pattern)
            path, clock = self._run.attempt(number).output, self._machine.clock
            options: dict[str, Any] = {"attempt": number, "store": store, "steps_before": before}
            found.append(ExternalMetrics(path, clock, pattern, earlier=tuple(found), **options))
        found[-1].show(newest)
        return found

    def is_misplaced(self, output: ExternalMetrics, attempt: int) -> bool:
        """True if it has become known that steps precede this attempt which its output does not count."""
        if attempt in self._before or output.newest.get("printed_step") is None:
            return False
        return self._uncounted(attempt, output.pattern) != output.steps_before

    def _uncounted(self, attempt: int, pattern: str | None) -> int:
        if attempt not in self._before:
            folder = self._run.attempt(attempt)
            beat = heartbeat.read(folder.heartbeat())
            if beat is None or not beat.begun_step or (seen := (beat.step or 0) - beat.begun_step) <= 0:
                return 0
            stamp = storage.stamp(folder.output)
            size = stamp[2] if stamp else 0
            if size == self._looked_at.get(attempt):
                return 0
            self._looked_at[attempt] = size
            first, newest = _printed_steps(folder.output, size, pattern)
            if len(first) < 2:
                if size >= _LOOK_BYTES:  # its beginning will not change any more
                    self._before[attempt] = 0
                return 0
            if newest is None:
                return 0
            printed = (*first, newest)
            from_zero = printed[0] <= printed[1] - printed[0] + 1 and printed[0] < beat.begun_step
            alike = are_alike(printed[-1], seen, beat.steps_per_second) and (beat.accumulate or 1) == 1
            self._before[attempt] = beat.begun_step if from_zero and alike else 0
        return self._before[attempt]


def _printed_steps(path: Path, size: int, pattern: str | None) -> tuple[list[float], float | None]:
    """Return the first two distinct steps in an output of ``size`` bytes (fewer if it has fewer), and the newest."""
    ends = bytes_at(path, 0, _LOOK_BYTES), bytes_at(path, max(0, size - _LOOK_BYTES), _LOOK_BYTES)
    told = ([point.counters.step for point in log_reader(pattern).feed(text)] for text in ends)
    first, newest = ([float(step) for step in steps if step is not None] for steps in told)
    return sorted(set(first))[:2], newest[-1] if newest else None
