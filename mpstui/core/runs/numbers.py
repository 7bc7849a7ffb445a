"""The newest numbers of a run, put together from its heartbeat, its metrics and its output; its pace and its end.

Two estimates answer two questions. The *pace* (steps per second of the training phases) leaves out gaps: an evaluation,
a pause or a night's sleep is no slowness. The *remaining time* counts the evaluations that will come again, as a share
of working time, but never pauses or sleeps, which will not.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from statistics import median
from typing import Any, NamedTuple

from ...wire.heartbeat import DeviceReading, Heartbeat, MemoryReading, integer, number, text
from ..model.snapshot import Numbers, SeriesView
from ..series.series import NOT_METRICS

PRINTED_AXIS = "printed step"
"""The axis of curves whose steps were printed: micro-batches, say, where the records count what the optimizer did."""
NEWEST_RECORDS = 240
WINDOW = 240
"""Intervals kept: about four minutes of heartbeats."""
FEWEST_INTERVALS = 2
GAP_TIMES = 5.0
"""An interval whose time per step is this many medians long held a pause, an evaluation or a sleep."""
LEAST_GAP_SECONDS = 2.0
OFF_SECONDS = 300.0
"""A gap longer than this, and than 20 usual evaluation gaps, is a pause or a sleep: it does not foretell the future."""
_OF_A_HEARTBEAT = tuple(spec.name for spec in fields(Numbers) if spec.name in Heartbeat._fields)
_COUNTS = ("step", "steps", "epoch_step", "epoch_steps")
_AMOUNTS = ("epoch", "epochs", "loss", "lr", "samples_per_second")


def combine(beat: Heartbeat | None, older: Heartbeat | None, points: Mapping[str, Any]) -> Numbers:
    """The newest of each number.

    Args:
        beat: the newest attempt's.
        older: the attempt's before it: where the run stood, until the new attempt says more.
        points: the newest values of the metrics file (or of the output), by key.
    """
    shown = beat or older
    if shown is None:
        told: dict[str, Any] = {name: integer(points.get(name)) for name in _COUNTS}
        told.update((name, number(points.get(name))) for name in _AMOUNTS)
        return Numbers(
            **told,
            **_epoch_counting(points),
            loss_is_finite="loss" not in points or number(points["loss"]) is not None,
            metrics=reported_metrics(points),
        )
    newer = (number(points.get("time")) or 0.0) > shown.time + 1.0
    loss, finite = shown.loss, "loss" not in shown.nonfinite
    if "loss" in points and (newer or (loss is None and finite)):
        loss = number(points["loss"])
        finite = loss is not None

    def newest(told: float | None, printed: float | None) -> float | None:
        return printed if printed is not None and (newer or told is None) else told

    return replace(
        Numbers(**{name: getattr(shown, name) for name in _OF_A_HEARTBEAT}),
        beat=beat,
        device=beat.device if beat else DeviceReading(),
        memory=beat.memory if beat else MemoryReading(),
        epoch=newest(shown.epoch, number(points.get("epoch"))),
        step=integer(newest(shown.step, integer(points.get("step")))),
        loss=loss,
        loss_is_finite=finite,
        lr=newest(shown.lr, number(points.get("lr"))),
        metrics={**reported_metrics(points), **shown.metrics},
    )


def with_printed(numbers: Numbers, printed: Mapping[str, Any]) -> Numbers:
    """What a program prints of its device and its end, and its epochs and metrics where its records count steps alone.

    Its steps stay those of the records: a printed count may begin anew, or leave out accumulated ones.
    """
    device = text(printed.get("device"))
    if device is not None and numbers.device.type is None:
        numbers = replace(numbers, device=DeviceReading(type=device.partition(":")[0]))
    if printed.get("done") is True:
        numbers = replace(numbers, done=True)
    if numbers.epoch is not None:
        return numbers
    further = {name: value for name, value in reported_metrics(printed).items() if _is_further(name, numbers.metrics)}
    numbers = replace(numbers, metrics={**further, **numbers.metrics})
    epoch = number(printed.get("epoch"))
    if epoch is None:
        return numbers
    return replace(
        numbers,
        epoch=epoch,
        epochs=number(printed.get("epochs")),
        epoch_step=integer(printed.get("epoch_step")),
        epoch_steps=integer(printed.get("epoch_steps")),
        **_epoch_counting(printed),
    )


class PrintedCurves:
    """The curves of what a program prints beside those of its records."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[SeriesView, SeriesView]] = {}

    def beside(self, own: Mapping[str, SeriesView], printed: Mapping[str, SeriesView]) -> dict[str, SeriesView]:
        """All curves; of what both tell, that of the records. The very same objects while nothing was added."""
        found = dict(own)
        for name, view in printed.items():
            if not _is_further(name, own):
                continue
            if view.axis == "step":
                of, made = self._made.get(name, (None, view))
                made = made if of is view else replace(view, axis=PRINTED_AXIS)
                self._made[name] = view, made
                view = made
            found[name] = view
        return found


def reported_metrics(newest: Mapping[str, Any]) -> dict[str, float | None]:
    """The metric values of the newest state, without counters and texts."""
    return {
        name: value
        for name, value in newest.items()
        if name not in NOT_METRICS
        and (value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)))
    }


def _is_further(name: str, own: Mapping[str, object]) -> bool:
    return name not in own and name not in ("loss", "lr")


def _epoch_counting(points: Mapping[str, Any]) -> dict[str, Any]:
    """From which number epochs are counted, and whether the newest is over: 1 and no where nobody says."""
    first = integer(points.get("first_epoch"))
    return {"first_epoch": 1 if first is None else first, "epoch_done": points.get("epoch_done") is True}


class ProgressPace:
    """The progress of the newest attempt."""

    def __init__(self) -> None:
        self.steps = StepRate()
        self._epochs = StepRate()
        self._beaten: list[tuple[float, float, float]] = []
        self._by_epoch = False
        self.beaten = False
        """Whether heartbeats tell this attempt's steps."""

    def begin_attempt(self) -> None:
        """A new attempt: another pace, perhaps on another device."""
        self.steps.cut()
        self._epochs.cut()
        self._beaten.clear()
        self.beaten = False

    def note_beat(self, moment: float, step: float, slept_seconds: float) -> None:
        """A heartbeat's step; it counts after the points read in the same look, which may be older."""
        if not self.beaten:
            self.steps.cut()  # steps that were printed until now may be counted otherwise
        self.beaten = True
        self._beaten.append((moment, step, slept_seconds))

    def feed(self, records: Sequence[Mapping[str, Any]], attempt: int | None) -> None:
        """The points of one look.

        Args:
            attempt: points of other attempts are passed over; None takes all.
        """
        for record in records[-NEWEST_RECORDS:]:
            moment, step, epoch = record.get("time"), record.get("step"), record.get("epoch")
            other = attempt is not None and record.get("attempt", attempt) not in (attempt, 0)
            if other or not isinstance(moment, (int, float)):
                continue
            if isinstance(step, (int, float)):
                self._advance(float(moment), float(step), 0.0)
            elif isinstance(epoch, (int, float)) and (self._by_epoch or self.steps.step is None):
                self._by_epoch = True
                self.steps.add(float(moment), float(epoch))
        for beat in self._beaten:
            self._advance(*beat)
        self._beaten.clear()

    def feed_epochs(self, records: Sequence[Mapping[str, Any]]) -> None:
        """What a program prints of its epochs while heartbeats or points count its steps, perhaps otherwise."""
        for record in records[-NEWEST_RECORDS:]:
            moment, done = record.get("time"), _epochs_done(record)
            if isinstance(moment, (int, float)) and done is not None:
                self._epochs.add(float(moment), done)

    def timed(self, numbers: Numbers, *, moving: bool) -> Numbers:
        """The numbers with rates and the time that is left; a run that stands still has neither."""
        if not moving:
            return replace(numbers, samples_per_second=None, steps_per_second=None)
        pace = None if self._by_epoch else self.steps.steps_per_second
        return replace(
            numbers,
            steps_per_second=numbers.steps_per_second or pace,
            eta_seconds=self.remaining_seconds(numbers),
            epoch_eta_seconds=self.epoch_remaining_seconds(numbers),
        )

    def remaining_seconds(self, numbers: Numbers) -> float | None:
        """Until the whole run is done; None until known."""
        if self._only_printed(numbers):
            return self._epochs.remaining_seconds(numbers.epochs)
        if self._by_epoch:
            return self.steps.remaining_seconds(numbers.epochs)
        planned: float | None = numbers.steps
        if planned is None and numbers.epochs is not None and numbers.epoch_steps is not None:
            planned = numbers.epochs * numbers.epoch_steps
        return self.steps.remaining_seconds(planned)

    def epoch_remaining_seconds(self, numbers: Numbers) -> float | None:
        """Until the epoch being trained is done; None until known."""
        if self._only_printed(numbers) and self._epochs.step is not None:
            return self._epochs.remaining_seconds(math.floor(self._epochs.step) + 1)
        if self._by_epoch or numbers.step is None or numbers.epoch_step is None or numbers.epoch_steps is None:
            return None
        return self.steps.remaining_seconds(numbers.step + numbers.epoch_steps - numbers.epoch_step)

    def _only_printed(self, numbers: Numbers) -> bool:
        """Whether what is planned was printed alone, in epochs."""
        beat = numbers.beat
        return self._epochs.step is not None and numbers.steps is None and (beat is None or beat.epoch is None)

    def _advance(self, moment: float, step: float, slept_seconds: float) -> None:
        if self._by_epoch:
            self.steps.cut()
            self._by_epoch = False
        self.steps.add(moment, step, idle_seconds=slept_seconds)


def _epochs_done(record: Mapping[str, Any]) -> float | None:
    """Epochs that are behind, the share of the one being trained among them; None where the record does not tell."""
    epoch, step, steps = (record.get(name) for name in ("epoch", "epoch_step", "epoch_steps"))
    if not isinstance(epoch, (int, float)):
        return None
    behind = float(epoch) - float(record.get("first_epoch", 1))
    if record.get("epoch_done"):
        return behind + 1.0
    if not isinstance(step, (int, float)) or not steps:
        return None
    return behind + min(1.0, float(step) / float(steps))


class _Interval(NamedTuple):
    seconds: float
    steps: float

    @property
    def seconds_per_step(self) -> float:
        return self.seconds / self.steps


class StepRate:
    """How fast one run goes. Feed samples in order; ask at any time."""

    def __init__(self) -> None:
        self._intervals: deque[_Interval] = deque(maxlen=WINDOW)
        self._time: float | None = None
        self._timed = False
        """The newest interval ends at the newest time."""
        self._idle = 0.0
        self.step: float | None = None
        """The newest one."""
        self.advanced_at: float | None = None
        """Time at which the step last changed."""

    def add(self, time: float, step: float, *, idle_seconds: float = 0.0) -> None:
        """One sample; of several with one time (lines that were read in one look) the steps count together.

        Args:
            time: seconds on any one clock.
            step: steps done, fractions allowed (epochs serve as well).
            idle_seconds: of the time since the last sample, how much is known to have been a pause or a sleep.
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
            last = self._intervals[-1]
            self._intervals[-1] = last._replace(steps=last.steps + step - before_step)
        elif (seconds := time - before_time - idle) > 0:
            self._timed = True
            self._intervals.append(_Interval(seconds, step - before_step))

    def cut(self) -> None:
        """A new attempt begins: time until its first sample is no work, and its device may be another."""
        self._intervals.clear()
        self._timed = False
        self._time = self.step = self.advanced_at = None
        self._idle = 0.0

    @property
    def seconds_per_step(self) -> float | None:
        """Median over the window, None until two intervals are known."""
        if len(self._intervals) < FEWEST_INTERVALS:
            return None
        return median(item.seconds_per_step for item in self._intervals)

    @property
    def steps_per_second(self) -> float | None:
        """The pace of the training phases now; None until known."""
        usual = self.seconds_per_step
        if usual is None:
            return None
        work = [item for item in list(self._intervals)[-WINDOW // 4 :] if not self._is_gap(item, usual)]
        steps = sum(item.steps for item in work)
        pace = sum(item.seconds for item in work) / steps if steps else usual
        return 1.0 / pace if pace else None

    def remaining_seconds(self, target: float | None) -> float | None:
        """Seconds until ``target`` steps; None until known, 0 when reached."""
        if target is None or self.step is None:
            return None
        left, usual = target - self.step, self.seconds_per_step
        if left <= 0:
            return 0.0
        if usual is None:
            return None
        # Evaluations are spread over the steps between them.
        gaps = [item.seconds for item in self._intervals if self._is_gap(item, usual)]
        longest = max(OFF_SECONDS, 20 * median(gaps)) if len(gaps) > 1 else OFF_SECONDS
        work = [i for i in self._intervals if not self._is_gap(i, usual) or i.seconds <= longest]
        steps = sum(item.steps for item in work)
        return left * (sum(item.seconds for item in work) / steps) if steps else None

    def _is_gap(self, item: _Interval, usual: float) -> bool:
        return item.seconds_per_step > GAP_TIMES * usual and item.seconds > LEAST_GAP_SECONDS
