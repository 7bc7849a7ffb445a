"""The outputs of a run's attempts, read as one: each goes on with the curves of those before it."""

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
"""How much of the beginning and of the end of an output tells which steps it counts."""


class Outputs:
    """The outputs of the attempts of one run."""

    def __init__(self, run: RunDir, machine: LocalMachine, capacity: int) -> None:
        """``capacity``: of each curve, in buckets."""
        self._run, self._machine, self._capacity = run, machine, capacity
        self._before: dict[int, int] = {}
        """Steps that were done before an attempt and that it does not count; what is not in here is still unknown."""

    def chain(self, attempts: int, pattern: str | None, newest: Mapping[str, Any]) -> list[ExternalMetrics]:
        """The first so many of them, one curve through all.

        Args:
            newest: what is known of the last one, shown until it has been read.
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
        """Whether it is known by now that steps came before this attempt which its output does not count."""
        if attempt in self._before or output.newest.get("printed_step") is None:
            return False
        return self._uncounted(attempt, output.pattern) != output.steps_before

    def _uncounted(self, attempt: int, pattern: str | None) -> int:
        if attempt not in self._before:
            folder = self._run.attempt(attempt)
            beat = heartbeat.read(folder.heartbeat())
            if beat is None or not beat.begun_step or (seen := (beat.step or 0) - beat.begun_step) <= 0:
                return 0
            printed = _printed_steps(folder.output, pattern)
            if len(printed) < 3:  # the first two and the newest
                return 0
            from_zero = printed[0] <= printed[1] - printed[0] + 1 and printed[0] < beat.begun_step
            alike = are_alike(printed[-1], seen, beat.steps_per_second) and (beat.accumulate or 1) == 1
            self._before[attempt] = beat.begun_step if from_zero and alike else 0
        return self._before[attempt]


def _printed_steps(path: Path, pattern: str | None) -> list[float]:
    """The first two steps that an output tells, and the newest; fewer where it tells fewer."""
    stamp = storage.stamp(path)
    ends = bytes_at(path, 0, _LOOK_BYTES), bytes_at(path, max(0, (stamp[2] if stamp else 0) - _LOOK_BYTES), _LOOK_BYTES)
    first, newest = ([point.counters.step for point in log_reader(pattern).feed(text)] for text in ends)
    steps = sorted({step for step in first if step is not None})
    return [float(step) for step in (*steps[:2], *[one for one in newest if one is not None][-1:])]
