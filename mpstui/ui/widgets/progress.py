"""How far: this epoch and all of it, how fast, and how long still."""

from __future__ import annotations

from ...core.model.snapshot import RunSnapshot
from ...core.present import format as shown
from ..panels import RunPanel
from ..rows import Row, Span, bar, fit, row
from .run_rows import epoch_progress, epoch_text, step_text, total_progress

_LABEL, _COUNT, _SHARE = 7, 15, 8


def progress(snapshot: RunSnapshot, width: int) -> list[Row]:
    """Two bars with the same columns: the epoch, and everything."""
    return [_epoch_row(snapshot, width), _total_row(snapshot, width)]


def _epoch_row(snapshot: RunSnapshot, width: int) -> Row:
    within = epoch_progress(snapshot)
    if total_progress(snapshot) == 1.0:
        within = 1.0  # the count within the epoch has begun anew, for an epoch that will not come
    ahead = f"left {shown.duration(snapshot.numbers.epoch_eta_seconds)}" if snapshot.state.active else ""
    speed = f"{shown.rate(snapshot.numbers.steps_per_second)} step/s" if snapshot.state.active else ""
    return _line("epoch", epoch_text(snapshot), within, [ahead, speed], width)


def _total_row(snapshot: RunSnapshot, width: int) -> Row:
    done = total_progress(snapshot)
    ahead = f"left {shown.duration(snapshot.numbers.eta_seconds)}" if snapshot.state.active else ""
    samples = f"{shown.rate(snapshot.numbers.samples_per_second)} smp/s" if snapshot.state.active else ""
    return _line("steps", _steps(snapshot), done, [ahead, samples], width)


def _steps(snapshot: RunSnapshot) -> str:
    if snapshot.numbers.steps is None:
        return shown.UNKNOWN if snapshot.numbers.step is None else step_text(snapshot.numbers.step)
    return f"{shown.short_count(snapshot.numbers.step)}/{shown.short_count(snapshot.numbers.steps)}"


def _line(label: str, counted: str, share: float | None, notes: list[str], width: int) -> Row:
    shown_notes = notes if width >= 70 else notes[:1]
    tail = "".join(fit(note, 14) for note in shown_notes) if any(notes) else ""
    room = max(4, width - 2 - _LABEL - _COUNT - _SHARE - (len(tail) + 2 if tail else 0))
    return row(
        " ",
        (fit(label, _LABEL), "dim"),
        (fit(counted, _COUNT - 2), "" if counted != shown.UNKNOWN else "faint"),
        "  ",
        *bar(share, room),
        (fit(shown.percent(share), _SHARE, "right"), "" if share is not None else "faint"),
        "  ",
        Span(tail, "dim"),
    )


class Progress(RunPanel):
    """The two bars as a panel."""

    def rows(self, width: int, height: int) -> list[Row]:
        """See :func:`progress`."""
        return progress(self.facts.snapshot, width) if self.facts else []
