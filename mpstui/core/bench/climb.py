"""Climbing the ladder: every rung in a process of its own, each with a time limit, within one budget for all."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..machine import trainer_module
from ..model.errors import UsageError
from .rungs import Rung
from .speed import Spread, Stretch, samples_per_step, stretches, warming
from .training import Training

LOOK_SECONDS = 0.1
_SHORTEST_LIMIT_SECONDS = 12.0
_FIRST_SHARE = 0.4
"""Of the budget, for the first rung: nothing is known of this machine yet, and without it there is no yardstick."""
_STARTS_ALLOWED = 2.0
"""A rung may take so many times as long to its first step as the first one did; each worker starts Python once more."""
_STARTS_A_WORKER = 0.75
_FEWEST_STRETCHES = 2
_MORE_TIME = "--budget gives every rung more"
_NEVER = "1000000"
_USED_WRONGLY = 2
_OWN_SIZES = ("--batch-size", "--accumulate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What is to be measured, and for how long."""

    task: str
    rungs: tuple[Rung, ...]
    budget_seconds: float
    """For all rungs together; what one does not need is the next one's."""
    measure_seconds: float
    """Steps are timed for so long on each rung, after its warm-up."""
    repeats: int = 1
    """Processes of each rung; their stretches are taken together."""
    longest_step_seconds: float | None = None
    """On the CPU, take as few samples a step as keep it that short; None: the task's own sizes."""
    arguments: tuple[str, ...] = ()
    """Further words for the trainer, the same on every rung."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a rung gave. ``step_seconds`` None: not measured; then ``error`` says why."""

    rung: Rung
    step_seconds: Spread | None = None
    samples_per_step: float | None = None
    memory_bytes: int | None = None
    seconds: float = 0.0
    """All its processes took, loading and compiling included."""
    limit_seconds: float | None = None
    runs: int = 0
    notes: tuple[str, ...] = ()
    error: str | None = None

    @property
    def steps_per_second(self) -> float | None:
        """Of the median step."""
        return 1 / self.step_seconds.median if self.step_seconds else None

    @property
    def samples_per_second(self) -> float | None:
        """Of the median step; None also when the trainer never told how many samples a step has."""
        speed = self.steps_per_second
        return speed * self.samples_per_step if speed and self.samples_per_step else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Underway:
    """A rung that is being measured, to be shown."""

    rung: Rung
    doing: str
    elapsed_seconds: float
    limit_seconds: float


Watch = Callable[[Underway], None]


def climb(
    course: Course,
    *,
    python: str,
    environ: Mapping[str, str],
    watch: Watch = lambda underway: None,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[Measurement]:
    """Measure every rung in turn; one that fails does not end the rest.

    Yields a rung's measurement whenever there is something new about it: with repeats several times, the last one
    counts.

    Raises:
        UsageError: the trainer knows no such task or argument.
    """
    yield from (Measurement(rung=rung, error=rung.refusal) for rung in course.rungs if rung.refusal)
    climber = _Climber(course, python, environ, watch, monotonic)
    found: dict[Rung, Measurement] = {}
    once = [rung for rung in course.rungs if not (rung.refusal or rung.same_as)]
    turns = once * course.repeats
    while turns:
        rung, *turns = turns
        if (earlier := found.get(rung)) and earlier.error:
            continue
        found[rung] = climber.refused(rung) or climber.measure(rung, [rung, *turns])
        for same in course.rungs:
            if same == rung or same.same_as == rung.name:
                yield replace(found[rung], rung=same)


@dataclass(slots=True)
class _Tally:
    """What the processes of one rung gave so far."""

    stretches: list[Stretch] = field(default_factory=list)
    seconds: float = 0.0
    runs: int = 0
    memory_bytes: int | None = None

    def add(self, training: Training, seconds: float) -> None:
        """Count one more process."""
        self.stretches += stretches(training.points)
        self.seconds += seconds
        self.runs += 1
        self.memory_bytes = max(filter(None, (self.memory_bytes, training.memory_bytes)), default=None)


class _Climber:
    """Remembers what was measured of each rung, how much time is left, and how large a step on the CPU may be."""

    def __init__(
        self,
        course: Course,
        python: str,
        environ: Mapping[str, str],
        watch: Watch,
        monotonic: Callable[[], float],
    ) -> None:
        self._course = course
        self._python = python
        self._environ = environ
        self._watch = watch
        self._monotonic = monotonic
        self._ends = monotonic() + course.budget_seconds
        self._tallies: dict[Rung, _Tally] = {}
        self._sizes: list[str] = []
        self._start_seconds = 0.0
        """From the start of the first process to its first step."""

    def refused(self, rung: Rung) -> Measurement | None:
        """Why a rung is not even tried: the budget leaves no time to start it."""
        if self._ends - self._monotonic() >= self._start_seconds or rung in self._tallies:
            return None
        budget = self._course.budget_seconds
        return Measurement(rung=rung, error=f"the {budget:.0f} s for all were over before its turn; {_MORE_TIME}")

    def measure(self, rung: Rung, waiting: Sequence[Rung]) -> Measurement:
        """Run a rung once more and put it together with what was measured of it before."""
        limit = self._limit(rung, waiting)
        began = self._monotonic()
        with (
            tempfile.TemporaryDirectory(prefix="mpstui-bench-", ignore_cleanup_errors=True) as folder,
            Training(self._words(rung), self._environ, Path(folder)) as training,
        ):
            error = self._follow(rung, training, limit)
        tally = self._tallies.setdefault(rung, _Tally())
        tally.add(training, self._monotonic() - began)
        self._keep_size(rung, training)
        spoilt = error or _not_as_asked(rung, training)
        return Measurement(
            rung=rung,
            step_seconds=None if spoilt else Spread.of([stretch.step_seconds for stretch in tally.stretches]),
            samples_per_step=samples_per_step(training.points),
            memory_bytes=tally.memory_bytes,
            seconds=tally.seconds,
            limit_seconds=limit,
            runs=tally.runs,
            notes=tuple(note["text"] for note in training.notes),
            error=spoilt,
        )

    def _limit(self, rung: Rung, waiting: Sequence[Rung]) -> float:
        """This rung's share of what is left of the budget, but enough to get going on a machine as busy as this one."""
        left = self._ends - self._monotonic()
        share = left * rung.weight / sum(other.weight for other in waiting)
        if not self._start_seconds:
            return max(share, left * _FIRST_SHARE, _SHORTEST_LIMIT_SECONDS)
        starts = _STARTS_ALLOWED + _STARTS_A_WORKER * rung.workers
        return max(share, starts * self._start_seconds + 2 * self._course.measure_seconds, _SHORTEST_LIMIT_SECONDS)

    def _words(self, rung: Rung) -> list[str]:
        words = [self._python, "-P", "-m", trainer_module(), self._course.task, *self._course.arguments, *rung.words()]
        if rung.device == "cpu" and self._sizes_itself:
            words += self._sizes or ["--longest-step", str(self._course.longest_step_seconds)]
        return [*words, "--epochs", _NEVER, "--eval-every", _NEVER, "--save-every", "0"]

    @property
    def _sizes_itself(self) -> bool:
        """Whether steps on the CPU are made as small as they must be; a person's own sizes are kept."""
        return self._course.longest_step_seconds is not None and not set(_OWN_SIZES) & set(self._course.arguments)

    def _keep_size(self, rung: Rung, training: Training) -> None:
        """The size of the first rung's step is that of every other one on the CPU, so that they can be compared."""
        size = next((note["samples_per_step"] for note in training.notes if "samples_per_step" in note), None)
        if rung.device == "cpu" and not self._sizes and size:
            self._sizes = ["--batch-size", str(size), "--accumulate", "1"]

    def _follow(self, rung: Rung, training: Training, limit: float) -> str | None:
        """Watch until enough was measured; why not, when it comes to nothing.

        Raises:
            UsageError: the trainer was used wrongly.
        """
        began = self._monotonic()
        while True:
            code = training.look()
            elapsed, measured = self._monotonic() - began, stretches(training.points)
            timed = sum(stretch.seconds for stretch in measured)
            if training.points and not self._start_seconds:
                self._start_seconds = elapsed
            if code is not None:
                return _ended(code, training, measured)
            if timed >= self._course.measure_seconds and len(measured) >= _FEWEST_STRETCHES:
                return None
            if elapsed >= limit:
                return None if measured else _too_slow(rung, training, limit)
            doing = _doing(rung, training, timed, self._course.measure_seconds)
            self._watch(Underway(rung=rung, doing=doing, elapsed_seconds=elapsed, limit_seconds=limit))
            time.sleep(LOOK_SECONDS)


def _ended(code: int, training: Training, measured: Sequence[Stretch]) -> str | None:
    if code == _USED_WRONGLY:
        raise UsageError(training.failure(), f"see `python -m {trainer_module()} TASK --help`")
    if code:
        return training.failure()
    return None if measured else "it ended before enough steps could be timed"


def _too_slow(rung: Rung, training: Training, limit: float) -> str:
    if training.points:
        reached = f"it came to step {training.points[-1]['step']}"
    elif rung.compile == "on":
        reached = "it was still compiling"
    else:
        reached = "it had not done a step"
    return f"{reached} when its {limit:.0f} s were over; {_MORE_TIME}"


def _doing(rung: Rung, training: Training, timed: float, wanted: float) -> str:
    if not training.points:
        return "starting" if rung.compile == "off" or training.precision is None else "compiling"
    return "warming up" if warming(training.points) else f"measuring, {timed:.0f} of {wanted:.0f} s"


def _not_as_asked(rung: Rung, training: Training) -> str | None:
    """The trainer's own sentence when it did something else than this rung asks for: that is not its measurement."""
    if training.precision not in (None, rung.precision):
        return _sentence(training, rung.precision) or f"it trained in {training.precision}"
    return _sentence(training, "without") if rung.compile == "on" else None


def _sentence(training: Training, word: str) -> str | None:
    aliases = {"bf16": "bfloat16", "fp16": "float16"}
    wanted = (word, aliases.get(word, word))
    return next((note["text"] for note in training.notes if any(part in note["text"] for part in wanted)), None)
