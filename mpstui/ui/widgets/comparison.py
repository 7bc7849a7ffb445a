"""Several runs side by side: their loss curves over one axis, how each did, and the settings they differ in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot, SeriesView
from ...core.present import badge, epoch_text, step_text
from ...core.runs.comparison import differences
from ..charting.canvas import Canvas, draw_line
from ..charting.data import ChartData, known_times, moved_to_time, steps_per_epoch, time_unit
from ..charting.plot import ChartView, frame, x_axis, y_labels
from ..rows import EMPTY, Row, Span, clean, clip, cut, fit, row, spread, width_of
from .lines import LinePanel

AXES = ("step", "epoch", "time")
ROLES = ("train", "val", "mark", "good", "bad", "bar")
"""The look of each run's curve; no more can be told apart."""
MOST = len(ROLES)
"""Runs that can be compared at once."""
_LEAST_CHART, _LEAST_TABLE = 7, 4
_NAMES, _LEAST_CELLS = 22, 8
Line = tuple[str, Sequence[str | None]]


class Comparison(LinePanel):
    def __init__(self, *, blocks: bool = False) -> None:
        super().__init__()
        self.snapshots: Sequence[RunSnapshot] = ()
        self.view = ChartView(blocks=blocks)
        self.axis: str | None = None
        """None: whatever the most runs have."""
        self._top = 0

    def show(self, snapshots: Sequence[RunSnapshot]) -> None:
        self.snapshots = snapshots
        self.repaint()

    def next_axis(self) -> str:
        """Steps, epochs, time: the next over which any run has a curve; its name."""
        now = AXES.index(self.axis or best_axis(self.snapshots))
        order = [AXES[(now + by) % len(AXES)] for by in (1, 2, 3)]
        self.axis = next((axis for axis in order if overlay(self.snapshots, axis).curves), order[-1])
        self.repaint()
        return self.axis

    def switch_scale(self) -> None:
        self.view = replace(self.view, log=not self.view.log)
        self.repaint()

    def scroll_rows(self, by: int) -> None:
        self._top = max(0, self._top + by)
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        head = legend_rows(self.snapshots, width)
        table = table_rows(self.snapshots, width)
        table_lines = max(min(len(table), height - len(head) - 1 - _LEAST_CHART), min(_LEAST_TABLE, height // 3), 0)
        axis = self.axis or best_axis(self.snapshots)
        data = overlay(self.snapshots, axis)
        title = spread([], [Span(f"loss, averaged · by {axis} ", "dim")], width)
        drawn = draw_overlay(data, self.view, width, height - len(head) - 1 - table_lines)
        chart = drawn or [row((f" none of them has a loss by {axis}", "dim"))]
        self._top = min(self._top, max(0, len(table) - table_lines))
        below = table[self._top : self._top + table_lines]
        more = len(table) - self._top - table_lines
        if more > 0 and below:
            below[-1] = row((f" … {more + 1} more (↓)", "dim"))
        return [*head, title, *chart, *below]


def legend_rows(snapshots: Sequence[RunSnapshot], width: int) -> list[Row]:
    """A line a run: its number and colour, its name, how it is."""
    lines = []
    for number, (role, item) in enumerate(zip(ROLES, snapshots, strict=False), 1):
        look = badge(item)
        right = (Span(f"{look.glyph} {look.word} ", look.tone),)
        left = (
            Span(f" {number} ━ ", role),
            Span(clean(item.name, 80), "strong"),
            Span(f"  {clean(item.run, 60)}", "dim"),
        )
        lines.append(spread(clip(left, max(0, width - row(*right).width - 1)), right, width))
    return lines


def table_rows(snapshots: Sequence[RunSnapshot], width: int) -> list[Row]:
    """How each did, then what they differ in; a setting that a run lacks is a dash."""
    found = differences(snapshots)
    cells = max(_LEAST_CELLS, (width - _NAMES - 1) // max(1, len(snapshots)) - 2)
    numbers = [str(place + 1) for place in range(len(snapshots))]
    results = [_line(name, "dim", values, cells) for name, values in _results(snapshots)]
    same = row((" they were started with the same settings", "dim"))
    differing = [_line(clean(one.name), "", one.values, cells) for one in found] or [same]
    lines = [_line("", "", numbers, cells, "heading"), *results, EMPTY, *differing]
    return [row(*clip(line.spans, width)) for line in lines]


def _line(name: str, role: str, values: Sequence[str | None], cells: int, values_role: str = "") -> Row:
    """One column a run; the end of a long value tells more than its beginning."""
    spans = [Span(" "), Span(fit(cut(name, _NAMES), _NAMES), role)]
    for value in values:
        text = clean(value, 200) if value is not None else "–"
        while width_of(text) > cells:
            text = f"…{text[2:]}"
        spans += [Span(fit(text, cells), values_role if value is not None else "faint"), Span("  ")]
    return row(*spans)


def _results(snapshots: Sequence[RunSnapshot]) -> list[Line]:
    curves = [item.train_loss for item in snapshots]
    until = [item.ended if item.ended is not None else item.seen for item in snapshots]
    lasted = [None if item.started is None else end - item.started for item, end in zip(snapshots, until, strict=True)]
    lowest = [min((x for x in view.smooth if x == x), default=None) if view is not None else None for view in curves]
    return [
        ("loss", [shown.loss_text(item.numbers) for item in snapshots]),
        ("lowest averaged loss", [shown.number(value) for value in lowest]),
        ("epoch", [epoch_text(item.numbers) for item in snapshots]),
        ("step", [step_text(item.numbers) for item in snapshots]),
        ("took", [shown.duration(took) for took in lasted]),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay(ChartData):
    """Curves of different runs; one that has none over this axis is None."""

    runs: tuple[SeriesView | None, ...] = ()

    @property
    def curves(self) -> tuple[SeriesView, ...]:
        return tuple(view for view in self.runs if view is not None)


def overlay(snapshots: Sequence[RunSnapshot], axis: str) -> Overlay:
    """The loss of each run over steps, over epochs, or over the time since its own first point."""
    views = [snapshot.train_loss for snapshot in snapshots]
    times = [known for view in views if view is not None and (known := known_times(view))]
    unit = time_unit(max((max(known) - min(known) for known in times), default=0.0))
    placed = (_placed(view, snapshot, axis, unit) for view, snapshot in zip(views, snapshots, strict=True))
    return Overlay(name="loss", runs=tuple(placed))


def _placed(view: SeriesView | None, snapshot: RunSnapshot, axis: str, unit: tuple[str, float]) -> SeriesView | None:
    """The curve over an axis; None where it has none."""
    if view is None or not len(view.x):
        return None
    if axis == view.axis:
        return view
    steps = steps_per_epoch(snapshot)
    if axis == "epoch" and view.axis == "step" and steps:
        return replace(view, axis=axis, x=[x / steps for x in view.x], attempt_marks=())
    times = known_times(view)
    return moved_to_time(view, times[0], unit) if axis == "time" and times else None


def best_axis(snapshots: Sequence[RunSnapshot]) -> str:
    """The first axis over which the most runs have a curve."""
    return max(AXES, key=lambda axis: (len(overlay(snapshots, axis).curves), -AXES.index(axis)))


def draw_overlay(data: Overlay, view: ChartView, width: int, height: int) -> list[Row]:
    """The chart without a legend, of ``height`` lines; empty where there is nothing to draw or no place for it."""
    space = frame(data, view, width, height + 1)  # a frame leaves a line for the legend
    if space is None:
        return []
    canvas = Canvas(space.columns, space.lines, view.blocks)
    for role, curve in zip(ROLES, data.runs, strict=False):
        if curve is not None:
            draw_line(canvas, curve, curve.smooth, space, role)
    ends = canvas.label_ends({role: Span(str(number), f"{role} strong") for number, role in enumerate(ROLES, 1)})
    labels = y_labels(space)
    body = [row(*labels[line], *canvas.spans(line, over=ends.get(line))) for line in range(space.lines)]
    return [*body, x_axis(data, view, space)]
