"""How values look to a person: numbers, sizes, durations, states, and text from outside made safe. No screen."""

from __future__ import annotations

import codecs
import io
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from .model.snapshot import Checkpoint, Health, Numbers, RunSnapshot, State

UNKNOWN = "n/a"
NOT_FINITE = "NaN/inf"
"""One word for what was measured and is no finite number: records keep no more of it than that."""
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LONGEST_SECONDS = 1000 * _DAY


def number(value: float | None, *, digits: int = 4) -> str:
    """``digits`` significant digits in at most ``digits + 5`` cells: ``0.5312``, ``1234``, ``1.204e-05``."""
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
    """A count with thousands set apart: ``22,301``. A fraction keeps one decimal: ``4.5``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def short_count(value: float | None) -> str:
    """A count in at most 5 cells (a minus sign and ``1e+100`` take one more): ``391``, ``22.3k``, ``1.20M``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if abs(value) < 9999.5:
        return f"{value:.{0 if value == int(value) or abs(value) >= 999.95 else 1}f}"
    for unit, scale in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        amount = value / scale
        if abs(amount) < 999.5:  # what is rounded up to a thousand is one of the next unit
            return f"{amount:.{2 if abs(amount) < 9.995 else 1 if abs(amount) < 99.95 else 0}f}{unit}"
    return f"{value:.0e}"


def size(value: float | None) -> str:
    """Bytes in at most 9 cells, powers of 1024: ``5.9 GiB``, ``512 MiB``, ``0 B``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    amount, unit = float(value), 0
    while abs(amount) >= 999.5 and unit < len(_SIZE_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.{0 if unit == 0 or abs(amount) >= 99.5 else 1}f} {_SIZE_UNITS[unit]}"


def settled(seconds: float) -> float:
    """An age that grows, in whole tens after the first minute: a line that changes every second is no information."""
    return seconds if seconds < 60 else seconds // 10 * 10


def duration(seconds: float | None) -> str:
    """Two units at most, in at most 7 cells: ``45s``, ``3m 20s``, ``1h 22m``, ``12d 4h``."""
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


def rate(value: float | None) -> str:
    """A speed per second in at most 5 cells: ``0.42``, ``31.2``, ``3994``, ``12.5k``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if abs(value) < 1000:
        return f"{value:.{2 if abs(value) < 10 else 1}f}" if abs(value) < 100 else f"{value:.0f}"
    return short_count(round(value))


def percent(fraction: float | None) -> str:
    """A share of one in at most 6 cells: ``28.5 %``, ``100 %``."""
    if fraction is None or not math.isfinite(fraction):
        return UNKNOWN
    value = fraction * 100
    return f"{value:.0f} %" if value >= 99.95 or value == 0 else f"{value:.1f} %"


def clock(moment: float | None) -> str:
    """Local wall-clock time, ``14:03:07``."""
    return _local(moment, "%H:%M:%S")


def moment_of_day(moment: float | None, now: float) -> str:
    """``14:03:07`` for the last day, ``Nov 18 14:03`` for what is older."""
    if moment is not None and abs(now - moment) < _DAY:
        return clock(moment)
    return _local(moment, "%b %d %H:%M")


def day(moment: float | None) -> str:
    """``2026-11-23``, as the calendar here has it."""
    return _local(moment, "%Y-%m-%d")


def _local(moment: float | None, form: str) -> str:
    """In local time; a moment that no calendar has, such as nanoseconds where seconds belong, is unknown."""
    try:
        return UNKNOWN if moment is None else time.strftime(form, time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return UNKNOWN


def loss_text(numbers: Numbers) -> str:
    """The newest loss, one that is no number included."""
    return number(numbers.loss) if numbers.loss_is_finite else NOT_FINITE


def ratio(part: float | None, total: float | None) -> float | None:
    """``part / total`` between 0 and 1, None where it cannot be known."""
    if part is None or total is None or total <= 0 or not math.isfinite(part) or not math.isfinite(total):
        return None
    return min(1.0, max(0.0, part / total))


class StatusBadge(NamedTuple):
    """One state as it is shown: a glyph and a word, so that nobody needs to tell colours apart, and a tone.

    ``tone`` is ``good``, ``busy``, ``warn``, ``bad`` or ``quiet``; ``meaning`` is what the help says of the word.
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
    State.WATCHED: StatusBadge("◉", "external", "good", "not started by mpstui; nothing more is known"),
    State.RUNNING: StatusBadge("●", "running", "good", "its processes live; nothing more is known"),
}
"""Every state and health, in the order in which runs go through them."""
UNHEARD = StatusBadge("?", "unheard", "quiet", "its machine is silent; the rest is as then")
GONE = StatusBadge("?", "gone", "warn", "external; its file was deleted or moved")
MOVED = StatusBadge("→", "moved", "quiet", "goes on elsewhere, cannot be started here")
CANCELLED = StatusBadge("⊘", "cancelled", "quiet", "its job was cancelled, not through mpstui")
NAN_LOSS = StatusBadge("✗", "NaN loss", "bad", "making steps; its newest loss is NaN or inf")
_SHOWN_BEHIND: dict[State | Health, StatusBadge] = {
    Health.TRAINING: NAN_LOSS,
    State.WATCHED: GONE,
    Health.SLEPT: UNHEARD,
    State.STOPPED: MOVED,
    State.KILLED: CANCELLED,
}
"""What the same states and healths are called where something is wrong."""
WIDEST_WORD = 10
_HEALTH_SHOWS_IN = frozenset({State.RUNNING, State.UNSUPERVISED, State.WATCHED})
_FAILED = frozenset({State.FAILED, State.LOST, State.STOP_FAILED, State.DEPENDENCY_FAILED, State.UNREADABLE})
_SUFFERING = frozenset({Health.STALLED, Health.HUNG})
_MOVING = frozenset({Health.TRAINING, Health.EVALUATING, Health.SAVING})
_LATE_SECONDS = 60.0
_NEARLY_ALL = 0.9
"""A file may be finished this long after its run has ended, by a process that outlived it or on a slow disk."""


def badge(snapshot: RunSnapshot) -> StatusBadge:
    """The one word for a run: what a running one is doing, else where it is."""
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
    if snapshot.state in _HEALTH_SHOWS_IN and snapshot.health is not None:
        moves_for_nothing = snapshot.health in _MOVING and not snapshot.numbers.loss_is_finite
        return NAN_LOSS if moves_for_nothing else BADGES[snapshot.health]
    return BADGES[snapshot.state]


def legend() -> Iterator[StatusBadge]:
    """Every badge there is, for the help."""
    for known, shown in BADGES.items():
        yield shown
        if known in _SHOWN_BEHIND:
            yield _SHOWN_BEHIND[known]


def needs_attention(snapshot: RunSnapshot) -> bool:
    """Whether a person should look: it failed or is stuck, or it goes on though its loss is no number any more."""
    return failed_or_stuck(snapshot) or badge(snapshot) is NAN_LOSS


def failed_or_stuck(snapshot: RunSnapshot) -> bool:
    """Whether it failed, or lives and does not move. An end that was asked for is no failure."""
    if snapshot.state is State.KILLED:
        return not snapshot.was_cancelled and (snapshot.exit is None or snapshot.exit.requested_by is None)
    if snapshot.state in _FAILED or snapshot.gone or snapshot.log_exception is not None:
        return True
    return snapshot.state in _HEALTH_SHOWS_IN and snapshot.health in _SUFFERING


def needs_explaining(snapshot: RunSnapshot) -> bool:
    """Whether a run has ended in a way that a person asks the reason of."""
    return can_be_explained(snapshot) and not snapshot.state.active and failed_or_stuck(snapshot)


def can_be_explained(snapshot: RunSnapshot) -> bool:
    """Whether there is evidence of its end: our records, or what it printed, beside an end that a store witnesses."""
    return snapshot.is_ours or (snapshot.exit is not None and snapshot.output is not None)


def attention(snapshots: Iterable[RunSnapshot]) -> list[tuple[int, StatusBadge]]:
    """How many runs need a person, by word, the worst first: ``[(2, failed), (1, stalled)]``."""
    counted = Counter(badge(snapshot) for snapshot in snapshots if needs_attention(snapshot))
    return sorted(((count, shown) for shown, count in counted.items()), key=lambda item: (item[1].tone, item[1].word))


def epoch_text(numbers: Numbers) -> str:
    """``57/200``, ``57/?`` where the end is not known, n/a where no epochs are counted.

    Of so many, an epoch that is counted from 0 is shown as one more: the last of four is ``4/4``.
    """
    epoch, epochs = numbers.epoch, numbers.epochs
    if epoch is None:
        return UNKNOWN
    if numbers.first_epoch == 0 and isinstance(epoch, int) and epochs is not None and epoch < epochs:
        epoch += 1
    return f"{short_count(epoch)}/{short_count(numbers.epochs) if numbers.epochs is not None else '?'}"


def step_text(numbers: Numbers) -> str:
    """``1,234``, and from ten thousand on ``22.3k``."""
    return whole(numbers.step) if numbers.step is None or numbers.step < 10_000 else short_count(numbers.step)


def epoch_progress(numbers: Numbers) -> float | None:
    """The share that is done of the epoch, None where that is not known."""
    return 1.0 if numbers.epoch_done else ratio(numbers.epoch_step, numbers.epoch_steps)


def total_progress(numbers: Numbers) -> float | None:
    """The share that is done of everything, None where the end is not known.

    Of a training that is done it is all, though the last steps were not printed; one that stopped early stays there.
    """
    share = ratio(numbers.step, numbers.steps)
    if share is None and numbers.epoch is not None:
        share = ratio(numbers.epoch - numbers.first_epoch + (epoch_progress(numbers) or 0), numbers.epochs)
    last = numbers.epoch is not None and numbers.epochs and numbers.epoch - numbers.first_epoch + 1 >= numbers.epochs
    return 1.0 if numbers.done and (share is None or share >= _NEARLY_ALL or last) else share


def newest_logged(snapshot: RunSnapshot) -> tuple[int, float | None]:
    """What is another one when something was logged; false in both where nothing was."""
    texts = (one.time for one in reversed(snapshot.events) if one.event == "text")
    return snapshot.kept[-1].number if snapshot.kept else snapshot.images, next(texts, None)


def short_paths(text: str, folder: object) -> str:
    """``text`` with the files below ``folder`` named from there."""
    return text.replace(f"{folder}/", "")


def why_not_its_own(checkpoint: Checkpoint, snapshot: RunSnapshot) -> str:
    """Why a file that the run's pattern matches cannot be of this run; empty where it can be.

    Runs that share a folder find each other's checkpoints; of two that train at once nobody can tell whose one is,
    unless the file itself says so.
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


_TRUE_COLOUR_TERMS = ("kitty", "ghostty", "wezterm", "alacritty", "foot", "contour", "iterm", "direct")
"""Terminals that show true colour, by a word of TERM, or of LC_TERMINAL, which ssh forwards."""


def colour_system(environ: Mapping[str, str], choice: str = "auto") -> str:
    """``16``, ``256`` or ``truecolor``: what was asked for, else what the terminal says of itself.

    Terminals that know true colour set COLORTERM; ssh does not forward it, so a remote session goes by the terminal's
    name. Inside tmux or screen it is theirs, see :func:`mpstui.cli.screen.tmux_features`.
    """
    if choice != "auto":
        return choice
    if environ.get("COLORTERM", "").strip().lower() in {"truecolor", "24bit"}:
        return "truecolor"
    term = environ.get("TERM", "")
    inside = bool(environ.get("TMUX")) or term.startswith(("tmux", "screen"))
    told = f"{term} {environ.get('LC_TERMINAL', '')}".lower()
    if not inside and any(name in told for name in _TRUE_COLOUR_TERMS):
        return "truecolor"
    return "256" if "256color" in term or (inside and not term.startswith("screen")) else "16"


_LIGHT_GROUNDS = frozenset({"7", "15"})
"""White and bright white, the only light ones of the sixteen that COLORFGBG counts in."""


def ground(environ: Mapping[str, str], choice: str = "auto") -> str:
    """``light`` or ``dark``: what was asked for, else what the terminal says of its background; dark where it does not.

    COLORFGBG (``0;15``: foreground, background) is set by Konsole, iTerm2, rxvt and those that follow them. A terminal
    could be asked (OSC 11), but one that does not answer would hold up the first paint, over SSH for seconds.
    """
    if choice != "auto":
        return choice
    return "light" if environ.get("COLORFGBG", "").rpartition(";")[2].strip() in _LIGHT_GROUNDS else "dark"


_HANDLER = "mpstui.plain"
_ALIKE = {
    **dict.fromkeys("━╸═", "="),
    **dict.fromkeys("─┄╌–—", "-"),
    **dict.fromkeys("│┊┤├▌▐▕▏", "|"),
    **dict.fromkeys("╭╮╰╯┌┐└┘┬┴┼", "+"),
    **dict.fromkeys("●◉◍◆■★", "*"),
    **dict.fromkeys("◌◔◐", "o"),
    **dict.fromkeys("✗⊘×", "x"),
    **dict.fromkeys("▁▂▃", "."),
    **dict.fromkeys("▄▅▆", "o"),
    **dict.fromkeys("▇█", "#"),
    **dict.fromkeys("‹«", "<"),
    **dict.fromkeys("›»→", ">"),
    **{"…": ".", "·": "-", "✓": "v", "▲": "!", "‖": "=", "↻": "@", "☾": "(", "▼": "v", "↑": "^", "↓": "v", "←": "<"},
    **{"⏎": "<", "░": ":", "•": "o", "▔": "~", "▾": "v"},
}


def lookalike(character: str) -> str:
    """An ASCII character that looks or means nearly the same, else a question mark."""
    if "\u2800" <= character <= "\u28ff":  # braille
        return " " if character == "\u2800" else "*"
    return _ALIKE.get(character, "?")


def write_lookalikes(stream: object) -> None:
    """Have a text stream write look-alikes instead of failing on a name that its locale cannot write."""
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error(_HANDLER, _replaced)
        stream.reconfigure(errors=_HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(lookalike, error.object[error.start : error.end])), error.end
