"""What a rehearsal showed: an attempt that tried a changed launch for some steps, beside the attempt that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from ...wire import heartbeat, storage
from ...wire.heartbeat import Heartbeat
from ...wire.records import ExitRecord, LaunchRecord, Rehearsal
from ...wire.rundir import RunDir
from ..diagnosis.engine import diagnose
from ..diagnosis.evidence import evidence_from_run_dir
from ..diagnosis.log_text import last_exception
from ..model.errors import OperationError, UsageError
from ..model.snapshot import RunSnapshot
from ..present import size
from ..runs.files import parse_lines

_ALIKE = 0.01
BY = "rehearsal"
"""Who asked for the end of a rehearsal that got so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """A rehearsal that has ended; None is unknown. Pairs are of the failed attempt and of the rehearsal."""

    attempt: int
    rehearsal: Rehearsal
    steps: int | None
    """How many it did."""
    failure: str
    """Why it ended before its steps were done; empty: it did them."""
    memory_bytes: tuple[int | None, int | None] = (None, None)
    steps_per_second: tuple[float | None, float | None] = (None, None)
    loss_difference: float | None = None
    """The largest relative difference of the loss at a step that both have done."""

    @property
    def sentence(self) -> str:
        """``batch 64 -> 32: 20 steps done, memory 20.1 GiB -> 11.8 GiB, loss equal to 1e-04, 0.93x the speed``."""
        tried = self.rehearsal.changes or "the same launch"
        if self.failure:
            return f"{tried}: ✗ {self.failure}"
        before, after = self.memory_bytes
        memory = f"memory {_size(before)} -> {_size(after)}" if after is not None else "memory unknown"
        apart = self.loss_difference
        loss = "loss not comparable" if apart is None else f"loss equal to {apart:.0e}"
        if apart is not None and apart > _ALIKE:
            loss = f"loss up to {apart:.0%} apart"
        slow, fast = self.steps_per_second
        speed = f"{fast / slow:.2f}x the speed" if slow and fast else "speed unknown"
        done = "ended well" if self.steps is None else f"{self.steps} steps done"
        return f"{tried}: ✓ {done}, {memory}, {loss}, {speed}"


def rehearsal_of(snapshot: RunSnapshot, changes: str, steps: int = 20) -> Rehearsal:
    """What to ask for, to try a changed launch of this run.

    Raises:
        UsageError: no step is asked for.
        OperationError: the run has not ended.
    """
    if steps < 1:
        raise UsageError(f"a rehearsal of {steps} steps shows nothing", "leave the number out for 20")
    if snapshot.state.active:
        raise OperationError(f"{snapshot.name} is {snapshot.state}: a rehearsal needs a run that has ended", "stop it")
    return Rehearsal(of=snapshot.attempt, steps=steps, changes=changes)


def newest_rehearsal(run: RunDir) -> Rehearsed | None:
    """What the newest attempt showed, where it was a rehearsal and has ended; else None."""
    number = max(run.attempt_numbers(), default=0)
    folder = run.attempt(number)
    launched, ended = storage.read_or_none(LaunchRecord, folder.launch), storage.read_or_none(ExitRecord, folder.exit)
    if launched is None or launched.rehearsal is None or ended is None:
        return None
    rehearsal = launched.rehearsal
    beats = heartbeat.read(run.attempt(rehearsal.of).heartbeat()), heartbeat.read(folder.heartbeat())
    failed = _points(run.metrics, rehearsal.of)
    tried = _points(RunDir(folder.rehearsal).metrics, number)
    common = [step for step in tried if step in failed]
    differences = [abs(tried[step][1] - failed[step][1]) / max(abs(failed[step][1]), 1e-12) for step in common]
    first = min(tried, default=None)
    last = beats[1].step if beats[1] is not None else None
    begun = 0 if launched.checkpoint is None or first is None else first - 1
    return Rehearsed(
        attempt=number,
        rehearsal=rehearsal,
        steps=last - begun if last is not None else None,
        failure="" if ended.requested_by == BY or ended.code == 0 else _failure(run, number, ended),
        memory_bytes=(_memory(beats[0]), _memory(beats[1])),
        steps_per_second=(_pace(failed) or _told(beats[0]), _pace(tried) or _told(beats[1])),
        loss_difference=max(differences, default=None),
    )


def _failure(run: RunDir, number: int, ended: ExitRecord) -> str:
    if ended.requested_by is not None:
        return f"{ended.requested_by} ended it"
    evidence = evidence_from_run_dir(run.path, attempt=number)
    found = next(iter(diagnose(evidence)), None)
    if found is not None:
        return found.title + (f" ({found.numbers})" if found.numbers else "")
    exception = last_exception(evidence.lines)
    return exception.text if exception is not None else ended.spawn_error or f"exit code {ended.code}"


def _points(path: Path, attempt: int) -> Mapping[int, tuple[float, float]]:
    """Time and loss by step, of one attempt."""
    found: dict[int, tuple[float, float]] = {}
    try:
        records = parse_lines(storage.read_bytes(path))
    except OSError:
        return found
    for record in records:
        step, time, loss = (heartbeat.number(record.get(name)) for name in ("step", "time", "loss"))
        if record.get("attempt") == attempt and step is not None and time is not None and loss is not None:
            found[int(step)] = time, loss
    return found


def _pace(points: Mapping[int, tuple[float, float]]) -> float | None:
    """Steps a second: the median, since the first steps are slow everywhere."""
    steps = sorted(points)
    paces = [
        (after - before) / (points[after][0] - points[before][0])
        for before, after in pairwise(steps)
        if points[after][0] > points[before][0]
    ]
    return median(paces) if paces else None


def _told(beat: Heartbeat | None) -> float | None:
    return beat.steps_per_second if beat is not None else None


def _memory(beat: Heartbeat | None) -> int | None:
    held = beat.memory if beat is not None else None
    return (held.driver or held.allocated or held.footprint or held.rss) if held is not None else None


def _size(value: int | None) -> str:
    return "unknown" if value is None else size(value)
