"""All metrics of a run as a grid of small charts, as many per page as fit well, sharing one cursor."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, isfinite

from textual.events import Click, Leave, MouseMove, MouseScrollDown, MouseScrollUp
from textual.geometry import Region

from ...core.model.patterns import PatternMistake
from ...core.model.snapshot import RunSnapshot, SeriesView
from ...core.present import NOT_FINITE, number, whole
from ...core.series.direction import best_point
from ...core.series.overview import metrics_of
from ..charting.data import BEST_SIGNS, ChartData, chart_data, has_said_all, none_reported, reading, validations
from ..charting.plot import GUTTER, ChartView, draw, frame
from ..charting.scale import Frame, nice_step
from ..graphics import Picture, Raster
from ..rows import EMPTY, Row, Span, clean, clip, cut, row
from ..theme import pixel_inks
from .lines import PixelPanel

_WIDTH, _HEIGHT = 34, 8
"""The minimum size of a chart, in cells, if not all fit on one page."""
_BUCKETS_PER_CELL, _BUCKETS_IN_PIXELS = 2, 4


class MetricGrid(PixelPanel):
    """Pages of charts; only charts in view are drawn, and of these only the ones that have changed."""

    def __init__(self, *, blocks: bool, focus: str = "") -> None:
        super().__init__()
        self.pattern = ""
        self.focus_name = focus
        """The metric whose chart has the focus."""
        self._cursor: float | None = None
        self._blocks = blocks
        self._snapshot: RunSnapshot | None = None
        self._names: list[str] = []
        self._thin: dict[str, tuple[SeriesView, int, SeriesView]] = {}
        self._cells: dict[str, tuple[tuple[object, ...], list[Row], Frame | None]] = {}
        """What was last drawn below the title of each chart, without a cursor, and its axes."""
        self._rasters: dict[str, Raster] = {}
        """The curves of each chart as pixels, if they are shown that way."""
        self._places: dict[str, Region] = {}
        """The charts in view, relative to the panel's first cell."""

    def show(self, snapshot: RunSnapshot) -> None:
        """Draw the part of the snapshot that is in view."""
        if snapshot is not self._snapshot:
            self._snapshot, self._names = snapshot, names_of(snapshot, self.pattern)
            if self.focus_name not in self._names:
                self.focus_name = self._names[0] if self._names else ""
            self.repaint()

    def filter(self, pattern: str) -> str | None:
        """Show only metrics that match; return a sentence if the pattern is invalid."""
        try:
            found = names_of(self._snapshot, pattern) if self._snapshot is not None else []
        except PatternMistake as mistake:
            return f"{mistake}: {mistake.hint}"
        if pattern and not found:
            return f"no metric has {clean(pattern, 40)} in its name"
        self.pattern, self._names = pattern, found
        if self.focus_name not in found:
            self.focus_name = found[0] if found else ""
        self.repaint()
        return None

    # -- keys

    @property
    def _at(self) -> int:
        return self._names.index(self.focus_name) if self.focus_name in self._names else 0

    def move(self, columns: int, lines: int) -> None:
        """Move the focus to a neighbouring chart; past the edge of a page, to the next page."""
        across = arrangement(len(self._names), *self.rows_size)[0]
        target = self._at + columns + lines * across
        if 0 <= target < len(self._names):
            self.focus_name = self._names[target]
            self.repaint()

    def page(self, by: int) -> None:
        size = math.prod(arrangement(len(self._names), *self.rows_size))
        last = max(0, len(self._names) - 1)
        if self._names:
            self.focus_name = self._names[max(0, min(last, (self._at // size + by) * size))]
            self.repaint()

    def move_cursor(self, by: int) -> None:
        """Move the cursor by cells of the chart in focus; it starts at the newest point."""
        data = self._data(self.focus_name)
        across, _ = arrangement(len(self._names), *self.rows_size)
        extent = self._extent(data) if data is not None else None
        if extent is not None:
            cell = (extent[1] - extent[0]) / max(1, self.rows_size[0] // across - GUTTER - 1)
            self._cursor = extent[1] if self._cursor is None else self._cursor + by * cell
            self._cursor = max(extent[0], min(extent[1], self._cursor))
            self.repaint()

    def drop_cursor(self) -> bool:
        """Remove the cursor; True if there was one."""
        was, self._cursor = self._cursor, None
        self.repaint()
        return was is not None

    # -- drawing

    def status(self) -> tuple[Span, ...]:
        size = math.prod(arrangement(len(self._names), *self.rows_size))
        pages = ceil(len(self._names) / size)
        parts = [Span(f"/{clean(self.pattern, 20)}", "match"), Span(" · ", "dim")] if self.pattern else []
        if self._cursor is not None:
            parts.append(Span("at the cursor · ", "key"))
        parts.append(Span(f"{len(self._names)} metrics", "dim"))
        if pages > 1:
            parts.append(Span(f" · page {self._at // size + 1} of {pages}", "dim"))
        series = self._snapshot.series.values() if self._snapshot is not None else ()
        if any(view.smoothing > 0 and not view.evaluation for view in series):
            parts.append(Span(" · lines are averages", "dim"))
        return tuple(parts)

    def rows(self, width: int, height: int) -> list[Row]:
        if not self._names:
            reading_on = self._snapshot is None or self._snapshot.loading or self._snapshot.brief
            ended = self._snapshot is not None and has_said_all(self._snapshot)
            return [row((" reading …" if reading_on else f" {none_reported('metrics', ended=ended)}", "dim"))]
        shown, across, down, cell_width = self._page(width, height)
        drawn: list[Row] = []
        self._places = {}
        for line in range(down):
            lines = height // down + (line < height % down)
            names = shown[line * across : (line + 1) * across]
            cells = [self._cell(name, cell_width, lines) for name in names]
            for place, name in enumerate(names):
                space = self._cells[name][2] if name in self._cells else None
                if space is not None and name in self._rasters:
                    corner = place * (cell_width + 1) + GUTTER, self.titled + len(drawn) + 1
                    self._places[name] = Region(*corner, space.columns, space.lines)
            drawn += [_beside([cell[y] for cell in cells], cell_width) for y in range(lines)]
        return drawn

    @property
    def pictures(self) -> tuple[Picture, ...]:
        if not (self.in_pixels and self.display):
            return ()
        at = self.content_region.offset
        return tuple(Picture(area.translate(at), self._rasters[name]) for name, area in self._places.items())

    def _cell(self, name: str, width: int, height: int) -> list[Row]:
        """Return a chart below its title; it is not redrawn if nothing has changed."""
        data, here = self._data(name), name == self.focus_name
        if data is None:
            return [EMPTY] * height
        extent = self._extent(data)
        cursor = self._cursor if data.axis == "step" else None
        bare = self.in_pixels
        shape = bare, self.app.theme if bare else "", width, height
        key = *shape, extent, *map(id, data.curves)
        known = self._cells.get(name)
        view = ChartView(blocks=self._blocks)
        view = view._replace(left=extent[0], right=extent[1]) if extent is not None else view
        late = (
            bare and known is not None and known[0][: len(shape)] == shape and known[0] != key and self.line_is_busy()
        )
        if known is None or (known[0] != key and not late):
            known = self._cells[name] = key, *self._drawn(name, data, view, width, height, bare=bare)
        _, body, space = known
        title = self._title(data, view._replace(cursor=cursor), space, width, here=here)
        column = space.column_of(cursor) if space is not None and cursor is not None else None
        if space is None or column is None:
            return [title, *body]
        return [title, *(_crossed(line, GUTTER + column) for line in body[: space.lines]), *body[space.lines :]]

    def _drawn(
        self, name: str, data: ChartData, view: ChartView, width: int, height: int, *, bare: bool
    ) -> tuple[list[Row], Frame | None]:
        """Return what is below the title of a chart, and its axes; with ``bare``, the curves are left to pixels."""
        most = _BUCKETS_PER_CELL * max(8, width - GUTTER) * (_BUCKETS_IN_PIXELS if bare else 1)
        thin = replace(
            data,
            train=self._thinned(data.train, most) if data.train is not None else None,
            evaluation=self._thinned(data.evaluation, most) if data.evaluation is not None else None,
        )
        space = frame(thin, view, width, height)
        chart = draw(thin, view, width, height, bare=bare)
        body = (chart[1:] if len(chart) == height else [EMPTY, *chart])[: height - 1]
        before = self._rasters.pop(name, None)
        if bare and space is not None and self.graphics is not None:
            from ..charting.pixels import rasterise

            inks = pixel_inks(self.app.theme) or {}
            self._rasters[name] = rasterise(thin, view, space, self.graphics.cell, inks, before)
            self.want_frame()
        return [*body, *[EMPTY] * (height - 1 - len(body))], space

    def _title(self, data: ChartData, view: ChartView, space: Frame | None, width: int, *, here: bool) -> Row:
        """Return the metric's name, its value at the cursor or now, and its best value."""
        parts: list[Span] = []
        for curve, role in ((data.train, "train"), (data.evaluation, "val")):
            if curve is None or not len(curve.x):
                continue
            if space is not None and view.cursor is not None:
                found = reading(_near(curve, space, view.cursor), space, view.cursor)
                value = number(found.mean) if found.low == found.high else f"{number(found.low)}–{number(found.high)}"
                parts.append(Span(f" {value}", role))
                continue
            named = " val" if role == "val" and data.train is not None else ""
            parts.append(Span(f"{named} {NOT_FINITE if curve.last is None else number(curve.last)}", role))
            best = best_point(curve)
            if best is not None and best.value != curve.last:
                parts.append(Span(f" {BEST_SIGNS[best.way]}{number(best.value)}", "dim"))
        taken = sum(len(part.text) for part in parts)
        mark = "▌" if here else " "
        name = cut(clean(data.name, 60), max(8, width - taken - 2))
        where = f" at {whole(round(view.cursor))}" if here and view.cursor is not None else ""
        told = clip(
            (Span(mark, "key"), Span(name, "key strong" if here else "strong"), *parts, Span(where, "dim")), width
        )
        return row(*told)

    def _data(self, name: str) -> ChartData | None:
        return chart_data(self._snapshot, name) if self._snapshot is not None else None

    def _extent(self, data: ChartData) -> tuple[float, float] | None:
        """Charts over steps share an x axis, so that the cursor has one place; its end moves a few cells at a time."""
        series = self._snapshot.series.values() if self._snapshot is not None and data.axis == "step" else data.curves
        ends = [x for view in series if view.axis == data.axis and len(view.x) for x in (view.x[0], view.x[-1])]
        known = [x for x in ends if isfinite(x)]
        if not known or min(known) == max(known):
            return None
        step = nice_step((max(known) - min(known)) / 40)
        return min(known), ceil(max(known) / step) * step

    def _page(self, width: int, height: int) -> tuple[list[str], int, int, int]:
        """Return the names on the page in view, the number of charts across and down, and their width."""
        across, down = arrangement(len(self._names), width, height)
        start = self._at // (across * down) * across * down
        shown = self._names[start : start + across * down]
        return shown, across, min(down, max(1, ceil(len(shown) / across))), (width - (across - 1)) // across

    def _thinned(self, curve: SeriesView, most: int) -> SeriesView:
        known = self._thin.get(curve.name)
        if known is None or known[0] is not curve or known[1] != most:
            known = self._thin[curve.name] = curve, most, thinned_view(curve, most)
        return known[2]

    # -- mouse

    def _hit(self, x: int, y: int) -> tuple[str, int] | None:
        """Return the chart under the mouse, and the column in it."""
        width, height = self.rows_size
        shown, across, down, cell_width = self._page(width, height)
        y -= 1 if self.titled else 0
        tall = height % down * (height // down + 1)
        line = y // (height // down + 1) if y < tall else (y - tall) // max(1, height // down) + height % down
        place = line * across + min(across - 1, x // (cell_width + 1))
        return (shown[place], x % (cell_width + 1)) if 0 <= y < height and place < len(shown) else None

    def on_mouse_move(self, event: MouseMove) -> None:
        hit = self._hit(event.x, event.y)
        data = self._data(hit[0]) if hit is not None else None
        extent = self._extent(data) if data is not None and data.axis == "step" else None
        if hit is None or extent is None or hit[1] < GUTTER:
            return
        across, _ = arrangement(len(self._names), *self.rows_size)
        columns = (self.rows_size[0] - (across - 1)) // across - GUTTER
        share = min(1.0, (hit[1] - GUTTER) / max(1, columns - 1))
        self._cursor = extent[0] + share * (extent[1] - extent[0])
        self.repaint()

    def on_leave(self, event: Leave) -> None:
        self.drop_cursor()

    def on_click(self, event: Click) -> None:
        hit = self._hit(event.x, event.y)
        if hit is not None:
            self.focus_name = hit[0]
            self.repaint()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.page(1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.page(-1)


def names_of(snapshot: RunSnapshot, pattern: str = "") -> list[str]:
    """Return the metrics that have a chart, in table order; validation is drawn over the training curve."""
    over = validations(snapshot)
    drawn = (over.get(one.name, one.name) for one in metrics_of(snapshot, pattern) if one.view is not None)
    return list(dict.fromkeys(drawn))


def arrangement(count: int, width: int, height: int) -> tuple[int, int]:
    """Return how many charts across and down: all, evenly shaped, if they fit; otherwise as many as are readable."""
    most_across, most_down = max(1, (width + 1) // (_WIDTH + 1)), max(1, height // _HEIGHT)
    if count >= most_across * most_down:
        return most_across, most_down
    fitting = [(across, max(1, ceil(count / across))) for across in range(1, most_across + 1)]

    def unevenness(one: tuple[int, int]) -> float:
        return abs(math.log(width / one[0] / (height / one[1]) / 4.0))

    return min((one for one in fitting if one[1] <= most_down), key=unevenness)


def _beside(parts: Sequence[Row], width: int) -> Row:
    spans: list[Span] = []
    for place, part in enumerate(parts):
        spans += [Span("│", "faint")] if place else []
        spans += [*part.spans, Span(" " * (width - part.width))]
    return row(*spans)


def _crossed(line: Row, column: int) -> Row:
    """Draw the cursor into a line of a chart, where there is no curve."""
    spans, at = [], 0
    for span in line.spans:
        place, end = column - at, at + len(span.text)
        if at <= column < end and span.text[place] == " ":
            parts = (Span(span.text[:place], span.role), Span("│", "cursor"), Span(span.text[place + 1 :], span.role))
            spans += [part for part in parts if part.text]
        else:
            spans.append(span)
        at = end
    filler = [Span(" " * (column - at)), Span("│", "cursor")] if column >= at else []
    return row(*spans, *filler, base=line.base)


def _near(curve: SeriesView, space: Frame, cursor: float) -> SeriesView:
    """Return the part of a curve around a cell, which is all that is needed to read its value there."""
    cell = 2 * space.x.span / max(1, space.columns - 1)
    first = max(0, bisect_left(curve.x, cursor - cell) - 2)
    last = bisect_left(curve.x, cursor + cell) + 2
    part = slice(first if first < len(curve.x) else len(curve.x) - 1, last)
    columns = {name: getattr(curve, name)[part] for name in ("x", "low", "high", "mean", "values", "points")}
    gaps = [gap for gap in curve.gaps if abs(gap - cursor) <= 2 * cell]
    return replace(curve, **columns, gaps=gaps)


def thinned_view(curve: SeriesView, most: int) -> SeriesView:
    """Reduce a curve to at most ``most`` buckets, keeping extremes; borders move only when their number halves."""
    size = 1
    while len(curve.x) > most * size:
        size *= 2
    if size == 1:
        return curve
    ends = [min(start + size, len(curve.x)) - 1 for start in range(0, len(curve.x), size)]
    starts = range(0, len(curve.x), size)
    low, high, mean = [
        [_joined(values[start : start + size], how) for start in starts]
        for values, how in ((curve.low, min), (curve.high, max), (curve.mean, _mean))
    ]
    return replace(
        curve,
        x=[curve.x[end] for end in ends],
        low=low,
        high=high,
        mean=mean,
        smooth=[curve.smooth[end] for end in ends],
        values=[curve.values[end] for end in ends] if len(curve.values) else (),
        times=(),
        points=(),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _joined(values: Sequence[float], how: Callable[[Sequence[float]], float]) -> float:
    known = values if not math.isnan(sum(values)) else [value for value in values if value == value]
    return float(how(known)) if len(known) * 2 >= len(values) and known else math.nan
