"""The speed and remaining time of a run, from its steps over time.

Two estimates answer two questions. The *pace* (steps per second of the training phases) leaves out gaps: an evaluation,
a pause or a night's sleep does not make a training slow. The *remaining time* includes future evaluations, assumed to
recur as often as before, but no pauses or sleeps, which do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...wire.heartbeat import Heartbeat, integer, number
from ..model.snapshot import Numbers

WINDOW = 240
"""Number of intervals kept: about four minutes or more."""
NEWEST = 30
"""How many of the newest intervals determine the current pace."""
FEWEST_INTERVALS = 2
LEAST_SECONDS = 1.0
"""Shorter intervals are merged: a training may report a hundred steps a second."""
GAP_TIMES = 5.0
"""An interval whose time per step exceeds this multiple of the median contains a pause, an evaluation or a sleep."""
LEAST_GAP_SECONDS = 1.0
OFF_SECONDS = 300.0
"""A gap longer than this, and than 20 median gaps, is a pause or a sleep: it predicts nothing."""
NEWEST_RECORDS = 240
GAPS_KEPT = 30
"""Number of gaps remembered from before the window: evaluations may be an hour apart."""
FEWEST_COMPARED = 10
"""Counts lower than this may agree by chance."""
MOST_APART_SECONDS = 6.0
"""How far apart in time a heartbeat and a printed line may be and still be compared: a busy machine delays beats."""


class _Interval(NamedTuple):
    seconds: float
    steps: float


class _Gap(NamedTuple):
    seconds: float
    """Time beyond that of the steps in its interval."""
    at: float
    """Steps made before the gap."""


class StepRate:
    """Estimates the speed of one run from samples of its step, added in order of time."""

    def __init__(self) -> None:
        self._intervals: list[_Interval] = []  # an empty deque takes 760 bytes: 3 MB for 500 ended runs
        self._gaps: list[_Gap] = []
        """Gaps that have left the window."""
        self._forgotten = 0.0
        """Steps made before the newest gap that is no longer remembered."""
        self._made = 0.0
        """Steps of all intervals, including those that have left the window."""
        self._before = 0.0
        """Seconds of evaluation per step in previous attempts."""
        self._time: float | None = None
        self._timed = False
        """True if the newest interval ends at the newest time."""
        self._idle = 0.0
        self.step: float | None = None
        """The newest step."""
        self.advanced_at: float | None = None
        """When the step last changed."""

    def add(self, time: float, step: float, *, idle_seconds: float = 0.0) -> None:
        """Add a sample; the steps of samples with the same time (lines read together) are added up.

        Args:
            time: seconds, always on the same clock.
            step: steps done; may be fractional (epochs work as well).
            idle_seconds: how much of the time since the last sample is known to have been a pause or a sleep.
        """
        before_time, before_step = self._time, self.step
        if before_time is not None and time < before_time:
            return
        if before_step is not None and step == before_step:
            self._idle += idle_seconds
            return
        self._time, self.step, self.advanced_at = time, step, time
        idle, self._idle = self._idle + idle_seconds, 0.0
        self._timed = self._timed and time == before_time
        if before_time is None or before_step is None or step < before_step:
            return
        if self._timed:
            self._join(0.0, step - before_step)
        elif (seconds := time - before_time - idle) > 0:
            self._timed = True
            joins = len(self._intervals) > FEWEST_INTERVALS and seconds < LEAST_SECONDS
            if joins and self._intervals[-1].seconds < LEAST_SECONDS:
                self._join(seconds, step - before_step)
            else:
                self._append(_Interval(seconds, step - before_step))

    def cut(self) -> None:
        """Begin a new attempt: the time until its first sample is not work, and its device may differ.

        Until its first evaluation, it is assumed to evaluate like the previous attempt.
        """
        if (usual := self.seconds_per_step) is not None:
            self._before, _ = self._evaluations(usual)
        self._intervals.clear()
        self._gaps.clear()
        self._made = self._forgotten = 0.0
        self._timed = False
        self._time = self.step = self.advanced_at = None
        self._idle = 0.0

    @property
    def seconds_per_step(self) -> float | None:
        """Median over the window; None until two intervals are known."""
        if len(self._intervals) < FEWEST_INTERVALS:
            return None
        paces = sorted(item.seconds / item.steps for item in self._intervals)
        return (paces[(len(paces) - 1) // 2] + paces[len(paces) // 2]) / 2

    @property
    def steps_per_second(self) -> float | None:
        """The current pace of the training phases; None until known."""
        usual = self.seconds_per_step
        if usual is None:
            return None
        work = [item for item in self._intervals[-NEWEST:] if not self._is_gap(item, usual)]
        steps = sum(item.steps for item in work)
        pace = sum(item.seconds for item in work) / steps if steps else usual
        return 1.0 / pace if pace else None

    def remaining_seconds(self, target: float | None) -> float | None:
        """Return the seconds until ``target`` steps, evaluations included; 0 once past it, None if unknown."""
        if target is None or self.step is None:
            return None
        left, usual = target - self.step, self.seconds_per_step
        if left < 0 or usual is None:
            return 0.0 if left <= 0 else None
        work = [item for item in self._intervals if not self._is_gap(item, usual)]
        pace = sum(item.seconds for item in work) / sum(item.steps for item in work)
        per_step, since = self._evaluations(usual)
        return left * pace + (since + left) * per_step  # includes an evaluation right after the last step

    def _evaluations(self, usual: float) -> tuple[float, float]:
        """Return the seconds spent on evaluations per step, and the steps made since the newest evaluation."""
        gaps = [*self._gaps, *self._gaps_within(usual)]
        longest = max(OFF_SECONDS, 20 * sorted(gaps)[len(gaps) // 2].seconds) if len(gaps) > 1 else OFF_SECONDS
        begun = LEAST_GAP_SECONDS / usual  # an earlier gap (a warm-up, a first evaluation) does not tell how often
        forgotten = max([self._forgotten, *(gap.at for gap in gaps if gap.at < begun)])
        gaps = [gap for gap in gaps if gap.seconds <= longest and gap.at >= begun]
        if not gaps:
            return self._before, self._made
        since = self._made - gaps[-1].at
        return sum(gap.seconds for gap in gaps) / max(since, gaps[-1].at - forgotten), since

    def _gaps_within(self, usual: float) -> Iterator[_Gap]:
        at = self._made - sum(item.steps for item in self._intervals)
        for item in self._intervals:
            if self._is_gap(item, usual):
                yield _Gap(item.seconds - usual * item.steps, at)
            at += item.steps

    def _join(self, seconds: float, steps: float) -> None:
        last = self._intervals[-1]
        self._intervals[-1] = _Interval(last.seconds + seconds, last.steps + steps)
        self._made += steps

    def _append(self, interval: _Interval) -> None:
        if len(self._intervals) == WINDOW:
            oldest = self._intervals[0]
            if oldest.seconds > LEAST_GAP_SECONDS:
                gone = self._gaps_within(self.seconds_per_step or math.inf)
                at = self._made - sum(item.steps for item in self._intervals)
                self._gaps += [gap for gap in gone if gap.at == at]
                if len(self._gaps) > GAPS_KEPT:
                    self._forgotten = self._gaps.pop(0).at
            del self._intervals[0]
        self._intervals.append(interval)
        self._made += interval.steps

    def _is_gap(self, item: _Interval, usual: float) -> bool:
        return item.seconds > GAP_TIMES * usual * item.steps and item.seconds > LEAST_GAP_SECONDS


class ProgressPace:
    """The progress of the newest attempt as counted by one side: either us and the agent, or the program itself."""

    def __init__(self) -> None:
        self.steps = StepRate()
        self.epochs = StepRate()
        self._beaten: list[tuple[float, float, float]] = []
        self._last_epoch: float | None = None
        """The epoch of the last reported loss."""
        self.epoch_stride = 0.0
        """Difference between the last two reported epochs."""
        self._newest_epoch: float | None = None
        self._is_told_within = False
        """True once an epoch had several losses, so that a loss does not mark the end of one."""
        self._attempt: int | None = None
        """The attempt of the last record added."""

    def begin_attempt(self) -> None:
        """Start over for a new attempt, which may run on another device."""
        self._cut()
        self._beaten.clear()

    def note_beat(self, moment: float, step: float, slept_seconds: float) -> None:
        """Note the step of a heartbeat; it is added after the points read at the same time, which may be older."""
        self._beaten.append((moment, step, slept_seconds))

    def feed(self, records: Sequence[Mapping[str, Any]], attempt: int | None = None, *, counts: bool = True) -> None:
        """Add newly read records.

        Args:
            attempt: the newest attempt; records of others only tell how they evaluated. None if all are of one attempt.
            counts: False if another witness of this side has the steps, so that those of the records are ignored.
        """
        for record in records[-NEWEST_RECORDS:]:
            moment, step = number(record.get("time")), number(record.get("step"))
            self._note_stride(number(record.get("epoch")))
            if moment is None:
                continue
            self._go_on_to(attempt and (integer(record.get("attempt")) or attempt))
            if counts and step is not None:
                self.steps.add(float(moment), float(step))
            self._note_epoch(record)
            done = epochs_done(record, alone=self.steps.step is None, ends=not self._is_told_within)
            if done is not None and ("loss" in record or done >= (self.epochs.step or 0.0)):
                self.epochs.add(float(moment), done)
        self._go_on_to(attempt)
        for moment, step, slept in self._beaten:
            self.steps.add(moment, step, idle_seconds=slept)
        self._beaten.clear()

    @property
    def ended_epoch(self) -> float | None:
        """The newest epoch, if each is reported once, at its end, with a loss and no step; else None."""
        return self._last_epoch if self.steps.step is None and not self._is_told_within else None

    def _note_stride(self, epoch: float | None) -> None:
        if epoch is not None and epoch != self._newest_epoch:
            self.epoch_stride = max(0.0, epoch - (epoch if self._newest_epoch is None else self._newest_epoch))
            self._newest_epoch = epoch

    def _note_epoch(self, record: Mapping[str, Any]) -> None:
        epoch = number(record.get("epoch"))
        if epoch is None or "loss" not in record or number(record.get("epoch_step")) is not None:
            return
        if epoch == self._last_epoch and not self._is_told_within:
            self._is_told_within = True
            self.epochs.cut()
        self._last_epoch = epoch

    def _go_on_to(self, attempt: int | None) -> None:
        if attempt != self._attempt:
            self._attempt = attempt
            self._cut()

    def _cut(self) -> None:
        self.steps.cut()
        self.epochs.cut()
        self._last_epoch, self._is_told_within = None, False
        self._newest_epoch, self.epoch_stride = None, 0.0


def epochs_done(record: Mapping[str, Any], *, alone: bool, ends: bool = True) -> float | None:
    """Return the epochs completed, including a fraction of the current one; None if the record does not tell.

    Args:
        alone: True if only epochs are counted; a record with a loss then marks the end of its epoch, others the start.
        ends: True if each epoch has only one such record.
    """
    epoch, step, steps = (number(record.get(name)) for name in ("epoch", "epoch_step", "epoch_steps"))
    if epoch is None:
        return None
    if epoch != int(epoch):
        return epoch  # a fractional epoch already counts all that is done
    first = number(record.get("first_epoch"))
    behind = float(epoch) - (1 if first is None else first)
    if record.get("epoch_done"):
        return behind + 1.0
    if step is not None and steps:
        return behind + min(1.0, step / steps)
    return behind + float(ends and "loss" in record) if alone and step is None else None


def timed(
    numbers: Numbers,
    beat: Heartbeat | None,
    own: ProgressPace,
    program: ProgressPace,
    *,
    by_program: bool,
    alike: bool,
    one_of_many: bool,
    moving: bool,
) -> Numbers:
    """Return ``numbers`` with rates and remaining time, or without both if the run makes no progress.

    Args:
        beat: the newest heartbeat, counted in the same epochs as ``numbers``.
        own, program: the pace by our (or the agent's) count, and by the program's.
        by_program: True if the step shown is the program's count.
        alike: True if the agent counts the same steps as the program.
        one_of_many: True if the process trains several times, and it is unknown how often.
    """
    # The printed position in an epoch may be in samples, or in batches of which several make a step.
    alike = alike or (beat is not None and _count_alike(numbers, beat))
    within = numbers if by_program or beat is None or alike else beat
    end, epoch_end = planned_ends(numbers, within, one_of_many=one_of_many, stride=program.epoch_stride)
    counted_anew = not (by_program or alike) and beat is not None and beat.step_from in ("process", "updates")
    by_bar = numbers.steps is not None and numbers.steps == within.epoch_steps and (numbers.epochs or 0) > 1
    if end is not None and (numbers.steps is None or by_bar) and not counted_anew:
        numbers = replace(numbers, steps=end, told_by={**numbers.told_by, "steps": "epochs"})
    if not counted_anew and not one_of_many and _has_done_all_epochs(numbers):
        numbers = replace(numbers, steps=numbers.step, told_by={**numbers.told_by, "steps": "epochs"})
    if not moving:
        known = numbers.steps_per_second is not None or numbers.samples_per_second is not None
        return replace(numbers, samples_per_second=None, steps_per_second=None) if known else numbers
    steps = (program if by_program else own).steps
    epochs = own.epochs if program.epochs.step is None else program.epochs
    left, epoch_left = steps.remaining_seconds(numbers.steps), None
    if left is None and not one_of_many:
        left = epochs.remaining_seconds(numbers.epochs)
    if left is None:
        left = steps.remaining_seconds(end)
    if epoch_end is not None:
        epoch_left = steps.remaining_seconds(epoch_end)
    if epoch_left is None and epochs.step is not None:
        epoch_left = epochs.remaining_seconds(math.floor(epochs.step) + 1)
    pace = numbers.steps_per_second or steps.steps_per_second
    if left is None and pace and numbers.step is not None and numbers.steps is not None:
        left = max(0, numbers.steps - numbers.step) / pace
    if numbers.step is None:  # samples are counted, not steps
        numbers, pace = replace(numbers, samples_per_second=numbers.samples_per_second or pace), None
    return replace(numbers, steps_per_second=pace, eta_seconds=left, epoch_eta_seconds=epoch_left)


def _count_alike(numbers: Numbers, beat: Heartbeat) -> bool:
    """True if the printed position in an epoch seems to be in the agent's steps, although the agent sees no data
    loader: each step takes one batch, and both counts are about equal."""
    if beat.epoch_steps is not None or beat.accumulate != 1 or None in (numbers.epoch, numbers.epoch_step):
        return False
    of_epochs = math.floor(numbers.epoch or 0) - numbers.first_epoch
    printed, seen = of_epochs * (numbers.epoch_steps or 0) + (numbers.epoch_step or 0), numbers.step or 0
    return seen >= FEWEST_COMPARED and seen / 2 <= printed <= 1.5 * seen


def planned_ends(
    numbers: Numbers, within: Numbers | Heartbeat, *, one_of_many: bool, stride: float = 0.0
) -> tuple[int | None, int | None]:
    """Return the steps at which the run and the current epoch will end, judged by its epochs; None if unknown.

    Args:
        stride: difference between two reported epochs; 0 if unknown.
    """
    if numbers.step is None:
        return None, None
    step, epoch, epochs = numbers.step, numbers.epoch, None if one_of_many else numbers.epochs
    if within.epoch_step is None or within.epoch_steps is None:
        if epoch is None or epochs is None or step <= 2:
            return None, None
        begun = epoch - numbers.first_epoch + 1
        # As many steps as epochs: each epoch is one step, as with graph networks. If they are fast, the heartbeat's
        # step lags behind the printed epoch, but not so far that an epoch could be two steps.
        lag = MOST_APART_SECONDS * (numbers.steps_per_second or 0.0)
        alike = step in (begun, begun - 1) or (lag < begun and step < begun <= step + lag)
        # Reported every ``stride`` epochs, the epoch lags by no more; two-step epochs would give twice the steps.
        alike = alike or (1 < stride < begun - FEWEST_COMPARED and begun < step <= begun + stride)
        return round(epochs) if alike and within.epoch_steps in (None, 1) else None, None
    epoch_end = step + within.epoch_steps - within.epoch_step
    if epochs is None or epoch is None:
        return None, epoch_end
    before, of_epoch = math.floor(epoch) - numbers.first_epoch, _steps_on_average(within)
    end = epoch_end + round(max(0, epochs - before - 1) * of_epoch)
    whole = round(epochs * of_epoch) if of_epoch == within.epoch_steps else math.floor(epochs * of_epoch + 1e-6)
    apart = max(within.epoch_steps, MOST_APART_SECONDS * (numbers.steps_per_second or 0.0))
    if abs(step - before * of_epoch - within.epoch_step) < apart and before < epochs:
        # Step and epoch may be from different moments. If more steps are done, an attempt has repeated an epoch.
        end = whole if whole >= step else end
    return end, epoch_end


def _steps_on_average(within: Numbers | Heartbeat) -> float:
    """Return the steps per epoch: a fraction if leftover batches, too few for a step, carry over to the next epoch."""
    if isinstance(within, Heartbeat) and within.epoch_batches and within.accumulate:
        return within.epoch_batches / within.accumulate
    return within.epoch_steps or 0


def _has_done_all_epochs(numbers: Numbers) -> bool:
    """True if no planned epoch is left: the steps made are then the total, unless another was reported."""
    if numbers.steps is not None and numbers.told_by.get("steps") != "epochs":
        return False
    if not numbers.done or numbers.step is None or None in (numbers.epoch, numbers.epochs):
        return False
    return (numbers.epoch or 0) - numbers.first_epoch + 1 >= (numbers.epochs or 0)
