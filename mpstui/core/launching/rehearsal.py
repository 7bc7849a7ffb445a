"""Rehearsals: an attempt that tries out a changed launch for some steps, compared with the attempt that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from ..diagnosis.remedy import Change
from ..follow import last_lines
from ..formats.reader import LogReader
from ..model.errors import OperationError, UsageError
from ..model.snapshot import RunSnapshot
from ..present import duration, size, whole
from ..profiles.model import Profile
from ..profiles.written import NAMES_FOR_REMEDIES, folded
from ..runs.files import parse_lines

_ALIKE = 0.01
_COUNTS_PARTS = 0.75
"""Printed steps above this share of (steps done x accumulation) count parts of batches, not steps."""
BY = "rehearsal"
"""Recorded as who asked for the end of a rehearsal that has done its steps."""
_LEAST_SECONDS = 30.0
_LOG_BYTES = 1 << 18
"""Bytes read from the end of an attempt's output, if nothing else has its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is known of one attempt; None is unknown."""

    step: int | None = None
    """The last step."""
    memory: str = ""
    """In words; empty if unknown."""
    steps_per_second: float | None = None
    first_step: int | None = None
    losses: Mapping[int, float] = field(default_factory=dict)
    """By step, as reported, else as printed."""
    printed: Mapping[int, float] = field(default_factory=dict)
    """By step, if ``losses`` come from the agent alone: the program's own numbers are better."""
    seconds: float | None = None
    """From launch to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """A rehearsal that has ended, compared with the attempt that failed."""

    attempt: int
    rehearsal: Rehearsal
    failed: Shown
    tried: Shown
    steps: int | None
    """How many steps it did; None is unknown."""
    failure: str
    """Why it ended before its steps were done; empty if it did them."""

    @property
    def proven(self) -> bool:
        """Whether it did its steps, so that the run can continue like this."""
        return not self.failure

    @property
    def loss_difference(self) -> float | None:
        """The largest relative difference between their losses at the same step, both printed or both reported."""
        told = (self.failed.printed, self.tried.printed), (self.failed.losses, self.tried.losses)
        for before, after in told:
            both = [(before[step], loss) for step, loss in after.items() if step in before]
            if both:
                return max(abs(loss - was) / max(abs(was), 1e-12) for was, loss in both)
        return None

    @property
    def sentence(self) -> str:
        """``batch 64: 20.1 GiB ✗ → 32 × 2: 11.8 GiB ✓, loss equal to 1e-4, 0.93x the speed; 20 steps done, ...``."""
        before = f"{_labelled(self.rehearsal.before or 'before', self.failed.memory)} ✗"
        after = _labelled(self.rehearsal.after or self.rehearsal.changes or "the same launch", self.tried.memory)
        if self.failure:
            return f"{before} → {after} ✗ {self.failure}"
        apart, slow, fast = self.loss_difference, self.failed.steps_per_second, self.tried.steps_per_second
        parts = [f"{before} → {after} ✓"]
        if apart is not None:
            near = "loss equal" + (f" to {apart:.0e}".replace("e-0", "e-") if apart else "")
            parts.append(near if apart <= _ALIKE else f"loss up to {apart:.0%} apart")
        parts += [f"{fast / slow:.2f}x the speed"] if slow and fast else []
        unknown = {
            "memory": not (self.failed.memory and self.tried.memory),
            "loss": apart is None,
            "speed": not (slow and fast),
        }
        lacking = [name for name, lacks in unknown.items() if lacks]
        told = "; ".join([", ".join(parts), self._how_far])
        return f"{told}; not compared, since not known for both: {', '.join(lacking)}" if lacking else told

    @property
    def _how_far(self) -> str:
        """In words: how long it ran, and whether it got further than the attempt that failed."""
        came, failed_at = self.tried.step, self.failed.step
        if self.steps is not None and came is not None:
            done = f"{whole(self.steps)} step{'' if self.steps == 1 else 's'} done"
            if failed_at is None:
                return done
            passed = came >= failed_at
            return f"{done}, {'past' if passed else 'not yet at'} step {whole(failed_at)} where it failed"
        lasted, before = self.tried.seconds, self.failed.seconds
        if lasted is None:
            return "ended well"
        beside = "" if before is None else f" (the failed one: {duration(before)})"
        return f"no steps are known, it ran {duration(lasted)}{beside}"


def _labelled(label: str, memory: str) -> str:
    return f"{label}: {memory}" if memory else label


def rehearsal_of(snapshot: RunSnapshot, changes: Sequence[Change], profile: Profile, steps: int = 20) -> Rehearsal:
    """Return the request to try out a changed launch of this run.

    A program that reports no steps gets twice the time that it took to fail.

    Raises:
        UsageError: ``steps`` is less than 1.
        OperationError: the run has not ended.
    """
    if steps < 1:
        raise UsageError(f"a rehearsal of {steps} steps shows nothing", "leave the number out for 20")
    if snapshot.state.active:
        raise OperationError(f"{snapshot.name} is {snapshot.state}: a rehearsal needs a run that has ended", "stop it")
    longest: float = Rehearsal._field_defaults["seconds"]
    folder = RunDir(snapshot.dir).attempt(snapshot.attempt)
    beat, ended = heartbeat.read(folder.heartbeat()), storage.read_or_none(ExitRecord, folder.exit)
    launched = storage.read_or_none(LaunchRecord, folder.launch)
    if (beat is None or beat.step is None) and launched and ended:
        longest = min(longest, max(_LEAST_SECONDS, 2 * (ended.ended - launched.time)))
    before, after = _in_short(changes, profile)
    return Rehearsal(snapshot.attempt, steps, longest, ", ".join(map(str, changes)), before, after)


def _in_short(changes: Sequence[Change], profile: Profile) -> tuple[str, str]:
    """Return the changes as ``batch 64`` and ``32 × 2``: a batch is shown with its accumulation."""

    def of(role: str) -> Change | None:
        named = profile.roles.get(role)
        return next((one for one in changes if one.name == named or folded(one.name) in NAMES_FOR_REMEDIES[role]), None)

    batch, times = of("batch_size"), of("accumulate")
    others = [one for one in changes if one is not batch and (batch is None or one is not times)]
    before, after = [f"{one.name} {one.before}" for one in others], [f"{one.name} {one.after}" for one in others]
    if batch is not None:
        told = ("", "") if times is None else (f" × {times.before}", f" × {times.after}")
        before.insert(0, f"{batch.name} {batch.before}{'' if told[0] == ' × 1' else told[0]}")
        after.insert(0, f"{batch.after}{told[1]}")
    elif len(others) == 1:
        after = [others[0].after]
    return ", ".join(before), ", ".join(after)


def newest_rehearsal(run: RunDir) -> Rehearsed | None:
    """Return what the newest attempt showed, if it was a rehearsal and has ended; otherwise None."""
    number = max(run.attempt_numbers(), default=0)
    folder = run.attempt(number)
    launched, ended = storage.read_or_none(LaunchRecord, folder.launch), storage.read_or_none(ExitRecord, folder.exit)
    if launched is None or launched.rehearsal is None or ended is None:
        return None
    rehearsal = launched.rehearsal
    failed = _shown(run, rehearsal.of, run.metrics)
    tried = _shown(run, number, RunDir(folder.rehearsal).metrics)
    begun = 0 if launched.checkpoint is None or tried.first_step is None else tried.first_step - 1
    return Rehearsed(
        attempt=number,
        rehearsal=rehearsal,
        failed=failed,
        tried=tried,
        steps=tried.step - begun if tried.step is not None else None,
        failure="" if ended.requested_by == BY or ended.code == 0 else _failure(run, number, ended),
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


def _shown(run: RunDir, number: int, metrics: Path) -> Shown:
    """Return what an attempt's reports, else its output and its exit record, say about it."""
    folder = run.attempt(number)
    beat, ended = heartbeat.read(folder.heartbeat()), storage.read_or_none(ExitRecord, folder.exit)
    launched = storage.read_or_none(LaunchRecord, folder.launch)
    points = _points(metrics, number)
    agent = beat if beat is not None and beat.loss_seen == "backward" else None
    printed = _losses_in_output(folder.output) if agent is not None or not points else {}
    losses = {step: loss for step, (_, loss) in points.items()} or printed
    if agent is not None and (parts := agent.accumulate or 1) > 1:
        losses = {}  # the agent saw the loss of a part of each batch, and the program may count these parts
        printed = {} if max(printed, default=0) > _COUNTS_PARTS * parts * (agent.step or 0) else printed
    held, peak = _memory(beat), ended.rusage.get("max_rss_bytes") if ended else None
    return Shown(
        step=beat.step if beat is not None and beat.step is not None else max((*losses, *printed), default=None),
        memory=size(held) if held else f"RAM {size(int(peak))}" if peak and beat is None else "",
        steps_per_second=(beat.steps_per_second if beat is not None else None) or _pace(points),
        first_step=min((*points, *printed), default=None),
        losses=losses,
        printed=printed if agent is not None else {},
        seconds=ended.ended - launched.time if ended and launched else None,
    )


def _points(path: Path, attempt: int) -> Mapping[int, tuple[float, float]]:
    """Return the time and loss of one attempt by step."""
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


def _losses_in_output(path: Path) -> Mapping[int, float]:
    """Return the printed training loss by the printed step."""
    reader, found = LogReader(), dict[int, float]()
    for point in (*reader.feed(last_lines(path, _LOG_BYTES)), *reader.close()):
        step = point.run_step
        if step is not None and point.loss is not None and point.series == reader.primary and not point.of_samples:
            found[int(step)] = point.loss
    return found


def _pace(points: Mapping[int, tuple[float, float]]) -> float | None:
    """Return steps per second as a median, since the first steps are always slow."""
    steps = sorted(points)
    paces = [
        (after - before) / (points[after][0] - points[before][0])
        for before, after in pairwise(steps)
        if points[after][0] > points[before][0]
    ]
    return median(paces) if paces else None


def _memory(beat: Heartbeat | None) -> int | None:
    held = beat.memory if beat is not None else None
    return (held.driver or held.allocated or held.footprint or held.rss) if held is not None else None
