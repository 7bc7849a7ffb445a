"""Warnings about a training that still runs, from its curves, its pace and its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ..model.snapshot import RunSnapshot, SeriesView
from ..present import size
from ..telemetry.headroom import LIMIT_WORDS, Headroom
from ..telemetry.pace import RunPace, Stretch, slow_words

Points = Sequence[tuple[float, float]]
"""Steps in ascending order, and a value at each."""

SAMPLE_SECONDS = 5.0
PLATEAU_POINTS = 200  # fewer are a beginning; half of them must be constant
PLATEAU_RANGE = 0.001  # of the loss: batches alone differ by more, in every network that answers to its input
GRADIENT_POINTS = 50
GRADIENT_FACTOR = 20.0  # clipping and warm-up move a norm by a few times, not by twenty
MEMORY_HORIZON_SECONDS = 3600.0
_GRADIENT_NAMES = ("grad_norm", "gradient_norm", "grad/norm", "train/grad_norm", "gnorm")


@dataclass(frozen=True, slots=True)
class LiveWarning:
    """Something that goes wrong right now."""

    id: str
    sentence: str


class LiveWatch:
    """Judges the snapshots of one run at a time, and remembers its pace."""

    def __init__(self) -> None:
        self._pace = RunPace()
        self._of: tuple[str, int] | None = None
        self._judged = -math.inf
        self._of_curves: dict[str, LiveWarning] = {}

    @property
    def slow_stretches(self) -> tuple[Stretch, ...]:
        """Steps in which it was slower, from the newest snapshot's curve."""
        return self._pace.slow

    def poll(self, snapshot: RunSnapshot, headroom: Headroom | None = None) -> tuple[LiveWarning, ...]:
        """What goes wrong right now, the gravest first; nothing for a run that has ended or is paused.

        Args:
            headroom: what telemetry knows of its memory.
        """
        slow = slow_words(self._pace.poll(snapshot), snapshot.seen)
        if not snapshot.state.active or snapshot.is_frozen:
            return ()
        beat = snapshot.numbers.beat
        moment = beat.time if beat else snapshot.seen
        if self._of != (snapshot.run, snapshot.attempt) or moment - self._judged >= SAMPLE_SECONDS:
            self._of, self._judged = (snapshot.run, snapshot.attempt), moment
            self._of_curves = {warning.id: warning for warning in curve_warnings(snapshot)}
        gone = f"{snapshot.name} is gone (deleted, or moved away); what is shown was read before."
        exception = (snapshot.log_exception or "").rstrip(".")
        found = (
            LiveWarning("gone", gone) if snapshot.gone else None,
            LiveWarning("log_exception", f"The log ends with {exception}.") if exception else None,
            self._of_curves.get("nan_loss"),
            memory_running_out(headroom),
            self._of_curves.get("exploding_gradient"),
            LiveWarning("slowing", slow) if slow else None,
            self._of_curves.get("plateau"),
        )
        return tuple(warning for warning in found if warning)


def curve_warnings(snapshot: RunSnapshot) -> tuple[LiveWarning, ...]:
    """Return what the loss and the gradient norm of a snapshot show, the gravest first."""
    loss, numbers = snapshot.train_loss, snapshot.numbers
    values = list(_points(loss))
    extremes = list(zip(loss.low, loss.high, strict=False)) if loss is not None and values else []
    if not numbers.loss_is_finite and numbers.step is not None:
        values.append((float(numbers.step), math.nan))
        extremes.append((math.nan, math.nan))
    norm = next((snapshot.series[name] for name in _GRADIENT_NAMES if name in snapshot.series), None)
    found = nonfinite(values), exploding_gradient(_points(norm)), plateau(values, extremes)
    return tuple(warning for warning in found if warning)


def _points(view: SeriesView | None) -> Points:
    """The columns of a curve as points; only over steps, since the warnings name one."""
    return tuple(zip(view.x, view.mean, strict=False)) if view is not None and view.axis == "step" else ()


def memory_running_out(headroom: Headroom | None) -> LiveWarning | None:
    """Warn when memory, growing as it does, reaches a limit within the hour."""
    if headroom is None or headroom.seconds_to_limit is None or headroom.soonest is None:
        return None
    seconds, growth = headroom.seconds_to_limit, headroom.growth_bytes_per_second or 0.0
    if seconds > MEMORY_HORIZON_SECONDS:
        return None
    grows = f"{LIMIT_WORDS[headroom.soonest]} grows by {size(growth * 60)} a minute"
    return LiveWarning("memory_growing", f"{grows} and reaches its limit in {seconds / 60:.0f} minutes.")


def nonfinite(loss: Points) -> LiveWarning | None:
    """Warn when the newest loss is NaN or infinite, since the first of this unbroken stretch."""
    since = None
    for step, value in reversed(loss):
        if math.isfinite(value):
            break
        since = step
    if since is None:
        return None
    return LiveWarning("nan_loss", f"The loss is NaN or infinite since step {since:,.0f}.")


def plateau(loss: Points, extremes: Points = ()) -> LiveWarning | None:
    """Warn when the loss is constant: dead units, a rate of zero, a model that answers with the share of each class.

    Nothing is said of a loss that has converged (it keeps its noise), of one printed with too few digits to tell, or of
    one that does not fall but is as noisy as ever.

    Args:
        extremes: lowest and highest value behind each point of ``loss``, where these are means of many.
    """
    ranges = extremes if len(extremes) == len(loss) else [(value, value) for _, value in loss]
    known = [(x, *ends) for (x, value), ends in zip(loss, ranges, strict=True) if math.isfinite(value)]
    if len(known) < PLATEAU_POINTS:
        return None
    value = next(value for _, value in reversed(loss) if math.isfinite(value))
    allowed = PLATEAU_RANGE * abs(value)
    low, high, start = math.inf, -math.inf, len(known)
    while start and max(high, known[start - 1][2]) - min(low, known[start - 1][1]) <= allowed:
        start -= 1
        low, high = min(low, known[start][1]), max(high, known[start][2])
    # With how many digits it was printed: the smallest difference between two values from before.
    before = sorted({value for _, *ends in known[:start] for value in ends})
    resolution = min((after - earlier for earlier, after in pairwise(before)), default=0.0)
    if len(known) - start < PLATEAU_POINTS // 2 or resolution > allowed:
        return None
    share = f"{100 * PLATEAU_RANGE:g} %"
    since = known[start][0]
    return LiveWarning("plateau", f"The loss has stayed within {share} of {value:.4g} since step {since:,.0f}.")


def exploding_gradient(norm: Points) -> LiveWarning | None:
    """Warn when the newest gradient norm is infinite or many times the median of those before it."""
    if not norm:
        return None
    x, newest = norm[-1]
    if not math.isfinite(newest):
        return LiveWarning("exploding_gradient", f"The gradient norm is NaN or infinite at step {x:,.0f}.")
    before = [value for _, value in norm[-GRADIENT_POINTS - 1 : -1] if math.isfinite(value)]
    if len(before) < GRADIENT_POINTS // 2 or newest <= GRADIENT_FACTOR * median(before):
        return None
    return LiveWarning("exploding_gradient", f"The gradient norm is {newest:.3g}, usually {median(before):.3g}.")
