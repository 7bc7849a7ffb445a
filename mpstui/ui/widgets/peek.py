"""A preview of the selection below the list: a run's progress with its curve or failure, or the curves of a group."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from textual.events import Click

from ..rows import EMPTY, Row, Span, clean, cut, fit, row, width_of, wrap
from .lines import LinePanel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.model.jobs import JobView
    from ...core.model.queue_place import QueuePlace
    from ...core.model.snapshot import RunSnapshot
    from ...core.runs.listing import Group
    from .failure_card import Failure

_CARD_LINES = 7
_MOST_LINES = 22
"""A taller window shows more runs instead of a taller preview."""
_LEAST_LINES = 7
"""Below this height no curve is shown."""
_ROOM_FOR_SIDE, _SIDE, _MODEST_SIDE = 150, 60, 8
"""Width from which metrics and settings are shown beside the chart, their width, and the least lines for them."""
_WIDEST_SETTING = 24


def peek_height(width: int, height: int, spare: int = 0) -> int:
    """Return the height of the preview below the list; 0 if the list needs the lines itself.

    Args:
        spare: lines that would be blank below the list.
    """
    usual = 0 if height < 24 else min(_MOST_LINES, max(11, int(height * 0.5)))
    return 0 if width < 50 or max(usual, spare) < _LEAST_LINES else max(usual, spare)


class Peek(LinePanel):
    """The selected run or group, below the list. Its drawing code (17 ms) is imported with the first snapshot."""

    snapshot: RunSnapshot | None = None
    failure: Failure | None = None
    group: Group | None = None
    like: tuple[RunSnapshot, ...] = ()

    def show(
        self,
        snapshot: RunSnapshot | None,
        failure: Failure | None = None,
        group: Group | None = None,
        like: tuple[RunSnapshot, ...] = (),
    ) -> None:
        """Show another selection.

        Args:
            failure: why the run ended, and whether it could continue on the CPU, as far as known.
            like: for a queued run, or for a group's next run to start, the runs of the same profile.
        """
        if (snapshot, failure, group, like) == (self.snapshot, self.failure, self.group, self.like):
            return
        self.snapshot, self.failure, self.group, self.like = snapshot, failure, group, like
        name = snapshot.name if snapshot is not None else group.title if group is not None else ""
        self.titled, self.TITLE = bool(name), cut(clean(name, 60), 40)
        self.repaint()

    def on_click(self, event: Click) -> None:
        """Open the clicked run."""
        if self.snapshot is not None:
            self.app.simulate_key("enter")

    def status(self) -> tuple[Span, ...]:
        if self.snapshot is None:
            return ()
        from .run_header import device_text

        tags = (Span(f"  #{clean(tag, 40)}", "mark") for tag in self.snapshot.tags)
        return (Span(device_text(self.snapshot), "dim"), *tags)

    def rows(self, width: int, height: int) -> list[Row]:
        if self.group is not None:
            from .group_peek import chosen, group_peek

            drawn, next_run = chosen(self.group), next_in(self.group)
            looked = group_peek(self.group, drawn, width, height)
            if drawn or next_run is None or next_run.queue is None:
                return looked
            named = row((" next    ", "dim"), cut(clean(next_run.name), max(1, width - 10)))
            return [*looked, named, *_queued(next_run, next_run.queue, width, height - 2, self.like)][:height]
        return peek(self.snapshot, width, height, self.failure, self.like) if self.snapshot is not None else []


def next_in(group: Group) -> RunSnapshot | None:
    """Return the first queued run of a group to start."""
    waiting = [one for one in group.runs if one.queue is not None]
    return min(waiting, key=lambda one: one.queue.number or len(waiting) if one.queue else 0, default=None)


def peek(
    snapshot: RunSnapshot, width: int, height: int, failure: Failure | None = None, like: Sequence[RunSnapshot] = ()
) -> list[Row]:
    """Progress, then the chart; above them why a failed run failed, and where a moved run goes.

    For a queued run: what it waits for, its settings, and the results of runs ``like`` it.
    """
    from ...core.present import needs_explaining
    from ..charting.data import chart_data, metric_names
    from ..charting.plot import ChartView, draw

    if snapshot.job is not None and snapshot.waits:
        return waiting_job(snapshot.job, width, snapshot.seen)[:height]
    if snapshot.queue is not None:
        return _queued(snapshot, snapshot.queue, width, height, like)[:height]
    if needs_explaining(snapshot):
        from .failure_card import Failure, card, card_lines

        failure = failure or Failure(snapshot)
        usual = min(max(_CARD_LINES, height - 9), 12, height)
        lines = card(failure, width, card_lines(failure, width, usual, height), log_in_reach=False)
    else:
        from .run_header import progress

        lines = progress(snapshot, width)
    if snapshot.moved_to is not None:
        where = f"to {snapshot.moved_to}, where it continues"
        lines = [row((" moved  ", "dim"), cut(clean(where, width), width - 8)), *lines]
    elif snapshot.moving is not None:
        lines = [row((" moving ", "dim"), cut(clean(snapshot.moving.sentence, width), width - 8)), *lines]
    if snapshot.note:
        lines = [row((" note ", "dim"), cut(clean(snapshot.note, width), width - 6)), *lines]
    name, left = next(iter(metric_names(snapshot)), "loss"), max(0, height - len(lines))
    side = _side(snapshot, _SIDE, left) if width >= _ROOM_FOR_SIDE and left >= _MODEST_SIDE else []
    chart = draw(chart_data(snapshot, name), ChartView(), width - (_SIDE + 2 if side else 0), left)
    return [*lines, *(_beside(chart, side, width - _SIDE - 2) if side else chart)]


def _side(snapshot: RunSnapshot, width: int, height: int) -> list[Row]:
    """What a wide window shows beside the chart: metrics and settings."""
    from ...core.runs.run_settings import named_settings
    from ..panels import RunFacts
    from ..panels.metrics import metric_rows

    rows = metric_rows(RunFacts(snapshot=snapshot), width, height)
    given = [(name, value) for name, value in named_settings(snapshot).items() if name not in snapshot.env]
    left = height - len(rows) - 2
    if left < 1 or not given:
        return rows
    cells = min(_WIDEST_SETTING, max(width_of(clean(name)) for name, _ in given))
    told = [
        row(" ", (fit(clean(name), cells), "dim"), f"  {cut(clean(value), width - cells - 4)}") for name, value in given
    ]
    return [*rows, EMPTY, row((" setting", "heading")), *told[:left]]


def _beside(left: Sequence[Row], right: Sequence[Row], width: int) -> list[Row]:
    """Join two columns, the first of them ``width`` cells wide."""
    return [
        row(*one.spans, " " * max(0, width - one.width), ("│ ", "track"), *other.spans)
        for one, other in zip_longest(left, right, fillvalue=EMPTY)
    ]


def _queued(
    snapshot: RunSnapshot, place: QueuePlace, width: int, height: int, like: Sequence[RunSnapshot]
) -> list[Row]:
    from ...core.runs.run_settings import named_settings
    from .earlier_runs import earlier_runs

    lines = waiting(place, width)
    given = "  ".join(f"{name}={value}" for name, value in named_settings(snapshot).items() if name not in snapshot.env)
    settings = wrap(clean(given, 1000), width - 11, 3) if given else []
    lines += [row((f" {'' if at else 'with':<8}", "dim"), text) for at, text in enumerate(settings)]
    earlier = earlier_runs(like, snapshot.profile, snapshot.seen, width, height - len(lines) - 1, margin=1)
    return [*lines, EMPTY, *earlier] if earlier else lines


def waiting_job(job: JobView, width: int, now: float) -> list[Row]:
    """What a scheduler's job waits for, and its expected start."""
    from ...core.present import duration

    told = [("waits", job.sentence()), ("where", f"partition {job.partition}" if job.partition else "")]
    told.append(("starts", f"in about {duration(job.starts - now)}" if job.starts and job.starts > now else ""))
    told.append(("but", job.silence().lstrip("; ")))
    return [row((f" {label:<8}", "dim"), cut(clean(text), width - 10)) for label, text in told if text]


def waiting(place: QueuePlace, width: int) -> list[Row]:
    """Which runs a queued run waits for, and until about when."""
    from ...core.present import duration

    told = [("waits", place.sentence() or "to be started")]
    if place.behind:
        more = f" and {len(place.behind) - 3} more" if len(place.behind) > 3 else ""
        told.append(("behind", ", ".join(place.behind[:3]) + more))
    if place.paused:
        told.append(("starts", "once its queue is resumed: P"))
    elif place.starts_in is not None:
        told.append(("starts", f"in about {duration(place.starts_in)}"))
    elif place.behind or place.after:
        told.append(("starts", "when they have ended; how long they take is unknown"))
    return [row((f" {label:<8}", "dim"), cut(clean(text), width - 10)) for label, text in told]
