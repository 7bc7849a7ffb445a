"""What a running run is doing, told from several witnesses so that no single one raises a false alarm. Pure.

The first witness is the trainer's own promise (``expect_next_in`` of its heartbeat); the growth of its output, the
time since its last step and the state of its process are asked before a run is called hung. Time in which the machine
slept is no silence: it is the part of wall time that the monotonic clock, which stands still in sleep on Linux and
macOS alike, did not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..model.snapshot import Health

DEFAULT_PROMISE_SECONDS = 60.0
"""For a heartbeat that promises nothing."""
HUNG_TIMES = 3.0
HUNG_MARGIN_SECONDS = 60.0
SLEPT_SECONDS = 60.0
"""Less drift than this between the clocks is a clock being set, not a sleep."""
QUIET_LOG_SECONDS = 300.0
"""How long an output without a heartbeat may be silent, or ``QUIET_TIMES`` its usual pause, before it is stalled."""
QUIET_TIMES = 10.0
STUCK_SECONDS = 60.0
STUCK_STEPS = 20.0
STOPPED = "T"
"""The kernel's letter for a process that a signal has stopped."""


class Condition(NamedTuple):
    """A health and a few words beside it."""

    health: Health
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """The signs of life of one attempt. Ages are seconds of awake time; None: there never was such a sign."""

    phase: str | None = None
    beat_age: float | None = None
    promise: float | None = None
    """``expect_next_in`` of the newest heartbeat."""
    steps_done: bool = False
    """Whether a first step, epoch or loss of this attempt was seen."""
    step_age: float | None = None
    """Since the step last advanced."""
    usual_step_seconds: float | None = None
    """Median time between two steps."""
    output_age: float | None = None
    usual_output_seconds: float | None = None
    """Longest usual pause between two writes to the output."""
    paused: bool = False
    """The supervisor was asked to pause it."""
    process_state: str | None = None
    """The kernel's letter for the trainer: R, S, D or U, T, Z."""
    late_rank: tuple[int, float, float] | None = None
    """A rank above 0 that broke its promise: rank, silent seconds, promised seconds."""
    slept_seconds: float = 0.0
    """Sleep of the machine since the newest heartbeat."""
    slept_before_seconds: float = 0.0
    """A sleep that it has woken from and reported since, in the last minutes."""


def assess(signs: Signs) -> Condition:
    """The health of a run that is running."""
    if signs.paused:
        return Condition(Health.PAUSED)
    if signs.process_state == STOPPED:
        return Condition(Health.PAUSED, "stopped by a signal that mpstui did not send")
    if signs.beat_age is None:
        return _by_output(signs)
    promise = signs.promise if signs.promise and signs.promise > 0 else DEFAULT_PROMISE_SECONDS
    if signs.beat_age <= promise:
        return _kept_promise(signs)
    return _silent(signs, signs.beat_age, promise)


def duration(seconds: float) -> str:
    """``45 s``, ``7 min``, ``6 h``, ``3 d``: one unit, for a note."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size or (seconds >= size and unit == "h"):
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _kept_promise(signs: Signs) -> Condition:
    if signs.slept_seconds > SLEPT_SECONDS:
        return Condition(Health.SLEPT, f"slept {duration(signs.slept_seconds)}")
    if signs.late_rank is not None:
        rank, silent, promised = signs.late_rank
        return Condition(
            Health.STALLED, f"rank {rank}: no beat for {duration(silent)}, promised within {duration(promised)}"
        )
    doing = _PHASES.get(signs.phase or "", Health.TRAINING if signs.steps_done else Health.WARMING)
    if doing is Health.TRAINING:
        return _training(signs)
    return Condition(doing, _woken(signs))


def _training(signs: Signs) -> Condition:
    if signs.phase == "done":
        return Condition(Health.TRAINING, "done, about to end")
    if not signs.steps_done:
        return Condition(Health.WARMING, "before its first step")
    usual, age = signs.usual_step_seconds, signs.step_age
    if usual is not None and age is not None and age > max(STUCK_SECONDS, STUCK_STEPS * usual):
        note = f"no step for {duration(age)}"
        hung = age > HUNG_TIMES * max(STUCK_SECONDS, STUCK_STEPS * usual) and not _output_moves(signs, STUCK_SECONDS)
        return Condition(Health.HUNG if hung else Health.STALLED, f"{note}, it still beats")
    return Condition(Health.TRAINING, _woken(signs))


def _silent(signs: Signs, age: float, promise: float) -> Condition:
    note = f"no beat for {duration(age)}, promised within {duration(promise)}"
    if _output_moves(signs, promise):
        return Condition(Health.STALLED, f"{note}; its output still grows")
    if age <= max(HUNG_TIMES * promise, promise + HUNG_MARGIN_SECONDS):
        return Condition(Health.STALLED, note)
    if signs.process_state in ("D", "U"):
        note += "; the process waits inside the kernel"
    return Condition(Health.HUNG, note)


def _by_output(signs: Signs) -> Condition:
    """A program without heartbeats: silence alone never proves that it hangs."""
    doing = Health.TRAINING if signs.steps_done else Health.WARMING
    if signs.output_age is None:
        return Condition(Health.WARMING, "nothing printed yet")
    patience = max(QUIET_LOG_SECONDS, QUIET_TIMES * (signs.usual_output_seconds or 0.0))
    if signs.output_age <= patience:
        return Condition(doing)
    if not signs.steps_done:
        return Condition(Health.WARMING, f"nothing printed for {duration(signs.output_age)}")
    return Condition(Health.STALLED, f"no output for {duration(signs.output_age)}")


def _output_moves(signs: Signs, within: float) -> bool:
    return signs.output_age is not None and signs.output_age <= within


def _woken(signs: Signs) -> str:
    return f"slept {duration(signs.slept_before_seconds)}" if signs.slept_before_seconds > SLEPT_SECONDS else ""


_PHASES = {
    "setup": Health.WARMING,
    "train": Health.TRAINING,
    "eval": Health.EVALUATING,
    "save": Health.SAVING,
    "done": Health.TRAINING,
}
