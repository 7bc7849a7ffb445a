"""How values are shown: numbers, sizes, durations, and the word for a run's state."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..wire.heartbeat import epoch_told
from .model.snapshot import Checkpoint, Health, Numbers, RunSnapshot, State

UNKNOWN = "n/a"
NOT_FINITE = "NaN/inf"
"""Shown for a measured value that is not finite: records do not keep whether it was NaN or infinite."""
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LONGEST_SECONDS = 1000 * _DAY


def number(value: float | None, *, digits: int = 4) -> str:
    """Format with ``digits`` significant digits, at most ``digits + 5`` cells: ``0.5312``, ``1234``, ``1.204e-05``."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return NOT_FINITE
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if not -4 <= magnitude < 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - magnitude)}f}"


def whole(value: float | None) -> str:
    """Format a count with thousands separators: ``22,301``. A fraction keeps one decimal: ``4.5``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def short_count(value: float | None) -> str:
    """Format a count in at most 5 cells (one more for a minus sign or ``1e+100``): ``391``, ``22.3k``, ``1.20M``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if abs(value) < 9999.5:
        return f"{value:.{0 if value == int(value) or abs(value) >= 999.95 else 1}f}"
    for unit, scale in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        amount = value / scale
        if abs(amount) < 999.5:  # anything above would be rounded to 1000
            return f"{amount:.{2 if abs(amount) < 9.995 else 1 if abs(amount) < 99.95 else 0}f}{unit}"
    return f"{value:.0e}"


def size(value: float | None) -> str:
    """Format bytes in at most 9 cells, in powers of 1024: ``5.9 GiB``, ``512 MiB``, ``0 B``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    amount, unit = float(value), 0
    while abs(amount) >= 999.5 and unit < len(_SIZE_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.{0 if unit == 0 or abs(amount) >= 99.5 else 1}f} {_SIZE_UNITS[unit]}"


def settled(seconds: float) -> float:
    """Round a growing age down to ten seconds after the first minute: a line that changes every second distracts."""
    return seconds if seconds < 60 else seconds // 10 * 10


def duration(seconds: float | None) -> str:
    """Format seconds in at most two units and 7 cells: ``45s``, ``3m 20s``, ``1h 22m``, ``12d 04h``."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return UNKNOWN
    if seconds >= _LONGEST_SECONDS:
        return ">999d"
    whole_seconds = int(seconds)
    if whole_seconds < _MINUTE:
        return f"{whole_seconds}s"
    if whole_seconds < _HOUR:
        return f"{whole_seconds // _MINUTE}m {whole_seconds % _MINUTE:02d}s"
    if whole_seconds < _DAY:
        return f"{whole_seconds // _HOUR}h {whole_seconds % _HOUR // _MINUTE:02d}m"
    return f"{whole_seconds // _DAY}d {whole_seconds % _DAY // _HOUR:02d}h"


def span(seconds: float) -> str:
    """Format seconds in one unit, for use in a sentence: ``45 s``, ``7 min``, ``6 h``, ``3 d``."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * size or (seconds >= size and unit == "h"):
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def rate(value: float | None) -> str:
    """Format a rate per second in at most 5 cells: ``0.42``, ``31.2``, ``3994``, ``12.5k``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if abs(value) < 1000:
        return f"{value:.{2 if abs(value) < 10 else 1}f}" if abs(value) < 100 else f"{value:.0f}"
    return short_count(round(value))


def percent(fraction: float | None) -> str:
    """Format a fraction of 1 in at most 6 cells: ``28.5 %``, ``100 %``."""
    if fraction is None or not math.isfinite(fraction):
        return UNKNOWN
    value = fraction * 100
    return f"{value:.0f} %" if value >= 99.95 or value == 0 else f"{value:.1f} %"


def clock(moment: float | None) -> str:
    """Format as local wall-clock time: ``14:03:07``."""
    return _local(moment, "%H:%M:%S")


def moment_of_day(moment: float | None, now: float) -> str:
    """Format as ``14:03:07`` if less than a day from ``now``, else as ``Nov 18 14:03``."""
    if moment is not None and abs(now - moment) < _DAY:
        return clock(moment)
    return _local(moment, "%b %d %H:%M")


def day(moment: float | None) -> str:
    """Format as a local date: ``2026-11-23``."""
    return _local(moment, "%Y-%m-%d")


def _local(moment: float | None, form: str) -> str:
    """Format in local time; a moment beyond the calendar, such as nanoseconds taken for seconds, counts as unknown."""
    try:
        return UNKNOWN if moment is None else time.strftime(form, time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return UNKNOWN


def loss_text(numbers: Numbers) -> str:
    """Format the newest loss, even if it is not finite."""
    return number(numbers.loss) if numbers.loss_is_finite else NOT_FINITE


def ratio(part: float | None, total: float | None) -> float | None:
    """Return ``part / total`` clamped to 0 to 1; None if unknown."""
    if part is None or total is None or total <= 0 or not math.isfinite(part) or not math.isfinite(total):
        return None
    return min(1.0, max(0.0, part / total))


class StatusBadge(NamedTuple):
    """A state as it is shown: a glyph and a word, so that nothing depends on colour alone, and a tone for the colour.

    ``tone`` is ``good``, ``busy``, ``warn``, ``bad`` or ``quiet``; ``meaning`` explains the word in the help.
    """

    glyph: str
    word: str
    tone: str
    meaning: str


BADGES: dict[State | Health, StatusBadge] = {
    State.QUEUED: StatusBadge("◌", "queued", "quiet", "waiting for its turn, or for other runs"),
    State.BACKING_OFF: StatusBadge("↻", "retrying", "warn", "crashed; its profile restarts it soon"),
    State.STARTING: StatusBadge("◔", "starting", "busy", "being started"),
    Health.WARMING: StatusBadge("◔", "warming", "busy", "running, no step yet"),
    Health.TRAINING: StatusBadge("●", "training", "good", "making steps"),
    Health.EVALUATING: StatusBadge("◆", "evaluating", "good", "reports that it is evaluating"),
    Health.SAVING: StatusBadge("▼", "saving", "busy", "reports that it is writing a checkpoint"),
    Health.STALLED: StatusBadge("▲", "stalled", "warn", "silent for longer than promised or usual"),
    Health.HUNG: StatusBadge("▲", "hung", "bad", "no report or step for 3x the promised time"),
    Health.PAUSED: StatusBadge("‖", "paused", "warn", "its processes are frozen until resumed"),
    Health.SLEPT: StatusBadge("☾", "slept", "quiet", "the machine was asleep; no report since"),
    State.STOPPING: StatusBadge("◍", "stopping", "busy", "asked to save and exit"),
    State.MOVING: StatusBadge("»", "moving", "busy", "on its way to another machine"),
    State.FINISHED: StatusBadge("✓", "finished", "quiet", "exited on its own, with code 0"),
    State.STOPPED: StatusBadge("■", "stopped", "quiet", "ended on request, or before it was done"),
    State.FAILED: StatusBadge("✗", "failed", "bad", "ended with an error"),
    State.KILLED: StatusBadge("⊘", "killed", "bad", "ended by a signal"),
    State.LOST: StatusBadge("?", "lost", "bad", "ended unseen, how is unknown"),
    State.UNSUPERVISED: StatusBadge("◐", "orphaned", "warn", "still training, but its supervisor has died"),
    State.STOP_FAILED: StatusBadge("!", "won't stop", "bad", "some of its processes could not be ended"),
    State.DEPENDENCY_FAILED: StatusBadge("✗", "blocked", "bad", "a run it waited for did not end as required"),
    State.UNREADABLE: StatusBadge("!", "unreadable", "bad", "records damaged, or from a newer mpstui"),
    State.WATCHED: StatusBadge("◉", "external", "quiet", "not started by mpstui; nothing more is known"),
    State.RUNNING: StatusBadge("●", "running", "good", "its processes live; nothing more is known"),
}
"""Every state and health, in the order in which runs pass through them."""
UNHEARD = StatusBadge("?", "unheard", "quiet", "its machine is silent; the rest is as then")
SILENT = StatusBadge("○", "silent", "quiet", "external; wrote nothing for unusually long")
ENDED = StatusBadge("□", "ended", "quiet", "external; its program ended, how is unknown")
GONE = StatusBadge("?", "gone", "warn", "external; its file was deleted or moved")
MOVED = StatusBadge("→", "moved", "quiet", "continues elsewhere, cannot start here")
CANCELLED = StatusBadge("⊘", "cancelled", "quiet", "its job was cancelled, not through mpstui")
FINISHING = StatusBadge("◕", "finishing", "busy", "training done, its process still lives")
NAN_LOSS = StatusBadge("✗", "NaN loss", "bad", "making steps; its newest loss is NaN or inf")
_SHOWN_BEHIND: dict[State | Health, tuple[StatusBadge, ...]] = {
    Health.TRAINING: (NAN_LOSS,),
    Health.SAVING: (FINISHING,),
    State.WATCHED: (SILENT, ENDED, GONE),
    Health.SLEPT: (UNHEARD,),
    State.STOPPED: (MOVED,),
    State.KILLED: (CANCELLED,),
}
"""Badges that depend on more than the state; the help lists them after a related one."""
WIDEST_WORD = 10
_HEALTH_SHOWS_IN = frozenset({State.RUNNING, State.UNSUPERVISED, State.WATCHED})
_FAILED = frozenset({State.FAILED, State.LOST, State.STOP_FAILED, State.DEPENDENCY_FAILED, State.UNREADABLE})
_SUFFERING = frozenset({Health.STALLED, Health.HUNG})
_MOVING = frozenset({Health.TRAINING, Health.EVALUATING, Health.SAVING})
_LATE_SECONDS = 60.0
"""A file may be completed this long after its run has ended, by a process that outlived it or on a slow disk."""
_NEARLY_ALL = 0.9
"""A finished training counts as complete from this share on: its last steps are often not printed."""


_WAITING = (State.QUEUED, State.BACKING_OFF)
"""States in which the next attempt has not begun."""


def until(run: RunSnapshot, now: float) -> float | None:
    """Return until when a run is known to have run, Unix seconds: its end, or now if it is running, or its last sign of
    life.

    The last is for files whose program can no longer be seen, and for an attempt whose successor is waiting.
    """
    if run.ended is not None:
        return run.ended
    return now if run.is_live and run.state not in _WAITING else run.updated


def lived(run: RunSnapshot, end: float, now: float) -> str:
    """Return the word that precedes an attempt's duration up to ``end``, the result of `until`: ``ran``, ``up``."""
    if run.ended is not None or run.state in _WAITING:
        return "ran"
    return "up" if end == now else "wrote for"


def badge(snapshot: RunSnapshot) -> StatusBadge:
    """Return the badge of a run: what it is doing if it is running, else its state."""
    if snapshot.heard is not None and snapshot.state.active:
        return UNHEARD
    if snapshot.state is State.RUNNING and snapshot.is_frozen:
        return BADGES[Health.PAUSED]
    if snapshot.moved_to is not None:
        return MOVED
    if snapshot.state is State.STOPPING and snapshot.moving and not snapshot.moving.called_off:
        return BADGES[State.MOVING]
    if snapshot.gone or snapshot.was_cancelled:
        return GONE if snapshot.gone else CANCELLED
    if snapshot.log_exception is not None:
        return BADGES[State.FAILED]
    if snapshot.state is State.WATCHED and snapshot.numbers.done:
        return BADGES[State.FINISHED]
    if snapshot.state in (State.RUNNING, State.UNSUPERVISED) and snapshot.health is None and snapshot.numbers.done:
        return FINISHING
    if snapshot.state in _HEALTH_SHOWS_IN and snapshot.health is not None:
        moves_for_nothing = snapshot.health in _MOVING and not snapshot.numbers.loss_is_finite
        return NAN_LOSS if moves_for_nothing else BADGES[snapshot.health]
    if snapshot.state is State.WATCHED and snapshot.is_over:
        return ENDED
    if snapshot.silent:
        return SILENT
    return BADGES[snapshot.state]


def legend() -> Iterator[StatusBadge]:
    """Yield every badge, for the help."""
    for known, shown in BADGES.items():
        yield shown
        yield from _SHOWN_BEHIND.get(known, ())


def needs_attention(snapshot: RunSnapshot) -> bool:
    """True if the user should look at it: it failed, is stuck, or keeps training with a non-finite loss."""
    return failed_or_stuck(snapshot) or badge(snapshot) is NAN_LOSS


def failed_or_stuck(snapshot: RunSnapshot) -> bool:
    """True if it failed, or is alive but makes no progress. A requested end is not a failure."""
    if snapshot.state is State.KILLED:
        return not snapshot.was_cancelled and (snapshot.exit is None or snapshot.exit.requested_by is None)
    if snapshot.state in _FAILED or snapshot.gone or snapshot.log_exception is not None:
        return True
    return snapshot.state in _HEALTH_SHOWS_IN and snapshot.health in _SUFFERING


def needs_explaining(snapshot: RunSnapshot) -> bool:
    """True if a run ended in a way that needs an explanation, and one can be attempted."""
    return can_be_explained(snapshot) and not snapshot.state.active and failed_or_stuck(snapshot)


def can_be_explained(snapshot: RunSnapshot) -> bool:
    """True if there is evidence for an explanation: our own records, or an end recorded by a store and its output."""
    return snapshot.is_ours or (snapshot.exit is not None and snapshot.output is not None)


def attention(snapshots: Iterable[RunSnapshot]) -> list[tuple[int, StatusBadge]]:
    """Count the runs that need attention by badge, the worst first: ``[(2, failed), (1, stalled)]``."""
    counted = Counter(badge(snapshot) for snapshot in snapshots if needs_attention(snapshot))
    return sorted(((count, shown) for shown, count in counted.items()), key=lambda item: (item[1].tone, item[1].word))


def epoch_text(numbers: Numbers) -> str:
    """Format the epoch as ``57/200``, ``57/?`` or ``?/200``; n/a if neither number is known."""
    epoch, epochs = ("?" if count is None else short_count(count) for count in (epoch_shown(numbers), numbers.epochs))
    return UNKNOWN if epoch == epochs == "?" else f"{epoch}/{epochs}"


def epoch_shown(numbers: Numbers) -> float | None:
    """Return the epoch being trained, counted as it is shown everywhere."""
    return epoch_told(numbers.epoch, numbers.epochs, numbers.first_epoch)


def step_text(numbers: Numbers) -> str:
    """Format the step as ``1,234``, or from ten thousand on as ``22.3k``."""
    return whole(numbers.step) if numbers.step is None or numbers.step < 10_000 else short_count(numbers.step)


def epoch_progress(numbers: Numbers) -> float | None:
    """Return how much of the epoch is done, 0 to 1; None if unknown."""
    return 1.0 if numbers.epoch_done else ratio(numbers.epoch_step, numbers.epoch_steps)


def total_progress(numbers: Numbers) -> float | None:
    """Return how much of the whole training is done, 0 to 1; None if unknown.

    It is 1 for a finished training, even if its last steps were not printed, unless it stopped early.
    """
    share = ratio(numbers.step, numbers.steps)
    if share is None and numbers.epoch is not None:
        share = ratio(numbers.epoch - numbers.first_epoch + (epoch_progress(numbers) or 0), numbers.epochs)
    last = numbers.epoch is not None and numbers.epochs and numbers.epoch - numbers.first_epoch + 1 >= numbers.epochs
    return 1.0 if numbers.done and (share is None or share >= _NEARLY_ALL or last) else share


def newest_logged(snapshot: RunSnapshot) -> tuple[int, float | None]:
    """Return a number and a time that change whenever the run logs an image or text; falsy until then."""
    texts = (one.time for one in reversed(snapshot.events) if one.event == "text")
    return snapshot.kept[-1].number if snapshot.kept else snapshot.images, next(texts, None)


def short_paths(text: str, folder: object) -> str:
    """Return ``text`` with paths below ``folder`` made relative to it."""
    return text.replace(f"{folder}/", "")


def why_not_its_own(checkpoint: Checkpoint, snapshot: RunSnapshot) -> str:
    """Return why a checkpoint that matches the run's pattern cannot be this run's own; empty if it can.

    Runs that share a folder find each other's checkpoints. If two train at once, only a file that names its run can
    settle which one it belongs to.
    """
    if checkpoint.owner is not None:
        return "" if checkpoint.owner == snapshot.run else f"of run {checkpoint.owner}"
    if snapshot.started is None and (snapshot.state is State.QUEUED or (snapshot.exit and snapshot.exit.unbegun)):
        return "of another run"
    if snapshot.started is not None and checkpoint.time < snapshot.started:
        return "older than the run"
    if snapshot.ended is not None and checkpoint.time > snapshot.ended + _LATE_SECONDS:
        return "newer than the run"
    return ""


def completed(snapshot: RunSnapshot) -> str:
    """Say that a run has finished, and how much of its plan it completed."""
    numbers = snapshot.numbers
    for done, total, unit in ((numbers.epoch, numbers.epochs, "epochs"), (numbers.step, numbers.steps, "steps")):
        if done is not None and total is not None:
            return f"It has finished: {whole(done)} of {whole(total)} {unit}."
    return "It has finished."
