"""Several runs side by side: one metric of all of them on one axis, and a table of their results and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.events import Click, MouseMove, MouseScrollDown, MouseScrollUp

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot, SeriesView
from ...core.present import badge
from ...core.runs.comparison import BROKEN_MARK, Column, columns, curve_of, metrics_of, of_one_teller, value_at
from ...core.series.direction import better
from ..charting.moving import navigate
from ..charting.plot import GUTTER, ChartView
from ..graphics import Picture
from ..rows import Row, Span, clean, clip, cut, fit, row, spread, width_of
from ..theme import RUN_ROLES
from .comparison_words import WIDEST_VALUE, cell_text, labelled, lack, own_words, shared_words, whole_names
from .lines import PixelPanel
from .overlay import AXES, LABELS, Overlay, best_axis, draw_overlay, overlay, overlay_frame
from .parallel import Drawn, parallel, parallel_rows
from .short_names import ShortNames

_LEAST_CHART, _LEAST_TABLE = 6, 3
_WIDEST_NAME = 28
_ROOM_FOR_SHARED = 90
"""From this width on, the title says what all runs have in common."""
BEST_MARK = "★"
_OF_AXIS = {"step": "steps", "epoch": "epochs", "time": "times"}


class Comparison(PixelPanel):
    """The panel; its keys are methods that return a sentence if they cannot work."""

    def __init__(self, *, blocks: bool = False, colours: bool = True) -> None:
        super().__init__()
        self._colours = colours
        self.snapshots: Sequence[RunSnapshot] = ()
        self.view = ChartView(blocks=blocks)
        self.axis: str | None = None
        """None: the one that most runs have."""
        self.metric = "loss"
        self._chosen: str | None = None
        self._hidden: frozenset[str] = frozenset()
        self._parallel = False
        """True to draw the settings as axes, and each run as a line through them."""
        self._sorted: tuple[tuple[str, str], bool] | None = None
        """The column that sorts the table, and whether in reverse; None: the first column."""
        self._left = self._top = 0
        """Columns and lines of the table scrolled out of view."""
        self._data = Overlay(name="loss")
        self._shown: list[Column] = []
        self._order: list[int] = []
        self._picture: Picture | None = None
        """The chart in pixels, positioned relative to the panel's first cell."""
        self._pixels_key: tuple[object, ...] = ()
        self._words: list[Row] = []
        """The text drawn with that picture."""
        self._chart = (0, 0)
        """Number of lines of the chart, and of those above the first run of the table."""

    def show(self, snapshots: Sequence[RunSnapshot]) -> None:
        self.snapshots = of_one_teller(snapshots)
        self.repaint()

    def repaint(self) -> None:
        """Update what is compared before anything is drawn."""
        names = metrics_of(self.snapshots)
        if self.metric not in names and names:
            self.metric = names[0]
        hidden = frozenset(place for place, one in enumerate(self.snapshots) if one.run in self._hidden)
        axis = self._axis_now
        self._data = overlay(self.snapshots, axis, self.metric, hidden)
        here, cursor = None, self.view.cursor
        if cursor is not None:
            here = [value_at(view, cursor) if view is not None else None for view in self._data.runs]
        where = f"{shown.whole(round(cursor) if axis == 'step' else round(cursor, 2))}" if cursor is not None else ""
        self._shown = columns(self.snapshots, self.metric, here, where)
        by = self._sorting
        self._order = self._shown[by[0]].order(reverse=by[1]) if by else list(range(len(self.snapshots)))
        super().repaint()

    @property
    def selected(self) -> RunSnapshot | None:
        """The run drawn in front of the others, which a key may open: the first one until one is chosen."""
        chosen = next((one for one in self.snapshots if one.run == self._chosen), None)
        return chosen or (self.snapshots[self._order[0]] if self._order else None)

    @property
    def _sorting(self) -> tuple[int, bool] | None:
        """Index of the column that sorts the table, and whether in reverse; None: in the order the runs were marked."""
        keys = [one.key for one in self._shown]
        if self._sorted is not None and self._sorted[0] in keys:
            return keys.index(self._sorted[0]), self._sorted[1]
        return (0, False) if self._shown and self._shown[0].better is not None else None

    # -- keys

    def press(self, what: str) -> str | None:
        """Do what a key asks; return a sentence if it cannot work."""
        doing: dict[str, Callable[[], str | None]] = {
            "scale": lambda: self._look(log=not self._drawn_in_log),
            "axis": self._next_axis,
            "metric": lambda: self._next_metric(1),
            "previous": lambda: self._next_metric(-1),
            "reset": lambda: self._look(left=None, right=None, cursor=None),
            "sort": self._sort_next,
            "reverse": self._reverse,
            "hide": self._hide,
            "parallel": self._switch,
            "wider": lambda: self._scroll_columns(1),
            "back": lambda: self._scroll_columns(-1),
        }
        why_not = doing[what]() if what in doing else self._navigate(what)
        self.repaint()
        return why_not

    def _look(self, **changes: object) -> None:
        self.view = self.view._replace(**changes)  # type: ignore[arg-type]

    @property
    def _drawn_in_log(self) -> bool:
        space = overlay_frame(self._data, self.view, self.size.width, self._chart[0])
        return space.y.log if space is not None else bool(self.view.log)

    @property
    def _axis_now(self) -> str:
        return self.axis or best_axis(self.snapshots, self.metric)

    def _next_axis(self) -> str | None:
        """Switch between steps, epochs and time, to the next with something to compare; say what was skipped."""
        now = AXES.index(self._axis_now)
        passed = []
        for axis in (AXES[(now + by) % len(AXES)] for by in (1, 2)):
            have = [LABELS[place] for place, one in enumerate(self._over(axis)) if one is not None]
            if len(have) > 1 or len(self.snapshots) == 1:
                self.axis = axis
                self._look(left=None, right=None, cursor=None)
                break
            passed.append(f"{_OF_AXIS[axis]} are known for {f'run {have[0]} only' if have else 'no run'}")
        else:
            passed.append("the axis stays")
        return f"{'; '.join(passed)}." if passed else None

    def _over(self, axis: str) -> Sequence[SeriesView | None]:
        return overlay(self.snapshots, axis, self.metric).runs

    def _next_metric(self, by: int) -> str | None:
        names = metrics_of(self.snapshots)
        if len(names) < 2:
            unread = any(one.brief for one in self.snapshots)
            return "The runs are still being read. Try again in a moment." if unread else "There is no other metric."
        self.metric = names[(names.index(self.metric) + by) % len(names)]
        self._look(log=None)
        return None

    def _navigate(self, what: str) -> str | None:
        view, data = self.view, self._data
        space = overlay_frame(data, view, self.size.width, self._chart[0])
        if space is None:
            return "Nothing is drawn yet."
        self.view = navigate(what, view, space, data)
        return None

    def _sort_next(self) -> str | None:
        """Sort by the next column, best first, and bring it into view."""
        if self._shown:
            place = ((self._sorting or (-1, False))[0] + 1) % len(self._shown)
            self._sorted = self._shown[place].key, False
            self._left = place if place < self._left or place >= self._left + 3 else self._left
        return None

    def _reverse(self) -> str | None:
        by = self._sorting or (0, False)
        self._sorted = (self._shown[by[0]].key, not by[1]) if self._shown else None
        return None

    def _hide(self) -> str | None:
        """Hide the selected run, or show it again."""
        if self.selected is not None:
            self._hidden ^= {self.selected.run}
        return None

    def _switch(self) -> None:
        """Switch between curves and lines through the settings of each run."""
        self._parallel = not self._parallel

    def _scroll_columns(self, by: int) -> str | None:
        self._left = max(0, min(len(self._shown) - 1, self._left + by))
        return None

    def scroll_rows(self, by: int) -> None:
        """Select another run of the table."""
        if self.selected is not None:
            runs = [self.snapshots[place].run for place in self._order]
            self._chosen = runs[max(0, min(len(runs) - 1, runs.index(self.selected.run) + by))]
        self.repaint()

    # -- the mouse

    def on_click(self, event: Click) -> None:
        """Sort by the column of a clicked heading, on the second click in reverse; select a clicked run."""
        line = event.y - self._chart[1]
        if line >= 0 and self._top + line < len(self._order):
            self._chosen = self.snapshots[self._order[self._top + line]].run
        elif line == -1:
            start = self._name_cells + 5
            for column, cells in self._fitting(self.size.width):
                if start <= event.x < start + cells + 2:
                    by = self._sorting
                    again = by is not None and self._shown[by[0]] is column
                    self._sorted = column.key, again and by is not None and not by[1]
                start += cells + 2
        self.repaint()

    def on_mouse_move(self, event: MouseMove) -> None:
        space = overlay_frame(self._data, self.view, self.size.width, self._chart[0])
        if space is not None and event.x >= GUTTER and 0 < event.y <= self._chart[0] and not event.button:
            self._look(cursor=space.x_at(min(space.columns - 1, event.x - GUTTER)))
            self.repaint()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.scroll_rows(1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.scroll_rows(-1)

    # -- drawing

    def rows(self, width: int, height: int) -> list[Row]:
        lacking = self._lacking(width)
        count = len(self.snapshots) + 1
        table = max(min(count, height - _LEAST_CHART - 1 - len(lacking), max(height // 2, _LEAST_TABLE)), 0)
        lines = height - 1 - len(lacking) - table
        first = next((place for place, one in enumerate(self.snapshots) if one is self.selected), None)
        drawn = None
        if self._parallel:
            settings = [one for one in self._shown if one.kind == "setting"]
            result = next((one for one in self._shown if one.kind == "best"), self._shown[0])
            drawn, chart = parallel(settings, result, width, lines, first)
            if drawn is not None:
                chart = parallel_rows(drawn, width, lines, blocks=self.view.blocks, bare=self.in_pixels)
            chart += [row()] * (lines - len(chart))
        else:
            bare = self.in_pixels
            chart = draw_overlay(self._data, self.view, width, lines, first, bare=bare, colours=self._colours)
        chart = self._draw_pixels(width, chart, first, drawn)
        if not chart:
            missing = f" none of them has {clean(self.metric, 40)} by {self.axis or 'step'}"
            chart = [row(*clip((Span(missing, "dim"),), width))]
            chart += [row()] * (lines - 1)
        self._chart = lines, 1 + lines + len(lacking) + 1
        return [self._title(width), *chart, *lacking, *self._table(width, table)]

    @property
    def pictures(self) -> tuple[Picture, ...]:
        if self._picture is None or not (self.in_pixels and self.display):
            return ()
        return (Picture(self._picture.area.translate(self.content_region.offset), self._picture.raster),)

    def _draw_pixels(self, width: int, chart: list[Row], first: int | None, drawn: Drawn | None) -> list[Row]:
        """Draw the curves, or the lines through settings in ``drawn``; unchanged ones are not drawn again.

        ``chart`` is the text around them. Returns it, or the text of the old picture while a busy line keeps that.
        """
        lines = len(chart)
        space = overlay_frame(self._data, self.view, width, lines) if drawn is None else None
        if self.graphics is None or not self.in_pixels or (drawn is None and space is None):
            self._picture, self._pixels_key = None, ()
            return chart
        from .comparison_pixels import curves_picture, lines_picture

        cell, theme = self.graphics.cell, self.app.theme
        shape = width, lines, first, theme, self.view, self.axis, self.metric, self._hidden, drawn is None
        key = (*shape, space, *map(id, self._data.runs)) if drawn is None else (*shape, tuple(drawn[2]))
        before = self._pixels_key
        if before == key or (before[: len(shape)] == shape and self.line_is_busy()):
            return self._words
        self._pixels_key, self._words = key, chart
        if drawn is not None:
            self._picture = lines_picture(drawn[2], width, lines - 1, cell, theme, chart)
        elif space is not None:
            self._picture = curves_picture(self._data, self.view, space, first, cell, theme, self._picture, chart)
        self.want_frame()
        return chart

    def _title(self, width: int) -> Row:
        """What is compared, and how."""
        way, data, view = better(self.metric), self._data, self.view
        names = metrics_of(self.snapshots)
        place = f" {names.index(self.metric) + 1}/{len(names)}" if len(names) > 1 else ""
        average = "" if any(one.evaluation for one in data.runs if one is not None) else ", averaged"
        left = [Span(f" {clean(self.metric, 40)}", "strong"), Span(average), Span(place, "dim")]
        left += [Span(f"  {way} is better", "dim")] if way is not None else []
        shared = shared_words(whole_names(self.snapshots))
        left += [Span(f"  ·  {shared}", "dim")] if shared and width >= _ROOM_FOR_SHARED else []
        unread = [one for one in map(self._curve, self.snapshots) if one is not None and not one.complete]
        share = sum(one.read_share for one in unread) + len(self.snapshots) - len(unread)
        told = [f"still reading, {share / len(self.snapshots) * 100:.0f} %"] if unread else []
        told += ["zoom"] if view.left is not None or view.right is not None else []
        told += ["log"] if self._drawn_in_log else []
        axis = next((one.axis for one in data.curves), self.axis or "step")
        unit = f"time ({axis})" if axis in ("h", "min") else axis
        return spread(left, [Span(" · ".join([*told, f"by {clean(unit, 20)} "]), "dim")], width)

    def _curve(self, snapshot: RunSnapshot) -> SeriesView | None:
        return curve_of(snapshot, self.metric)

    def _lacking(self, width: int) -> list[Row]:
        """Runs without anything to draw, and why; and those whose values are no longer finite."""
        why: dict[str, list[int]] = {}
        for place in (place for place, one in enumerate(self._data.runs) if one is None):
            one, there = self.snapshots[place], self._curve(self.snapshots[place]) is not None
            words = f"{_OF_AXIS[self._axis_now]} not known" if there else lack(one, self.metric)
            why.setdefault(words, []).append(place)
        told = [f"{labelled(places)}: {words}" for words, places in why.items()]
        told += [f"{labelled(sorted(self._data.hidden))}: hidden"] if self._data.hidden else []
        broken = next((one.broken for one in self._shown if one.kind == "best"), {})
        for words in dict.fromkeys(broken.values()):
            places = [at for at, reason in broken.items() if reason == words]
            told.append(f"{BROKEN_MARK} {labelled(places)}: {words}")
        return [row(*clip((Span(f" {' · '.join(told)}", "warn"),), width))] if told else []

    @property
    def _names(self) -> list[str]:
        """Run names without the words they share, and with the settings in which runs of the same name differ."""
        return own_words(whole_names(self.snapshots))

    @property
    def _name_cells(self) -> int:
        names = self._names
        return min(max(map(width_of, names), default=4), _WIDEST_NAME, max(8, self.size.width // 4))

    def _fitting(self, width: int) -> list[tuple[Column, int]]:
        """As many columns as fit, starting at the first one in view, with their widths."""
        left = width - self._name_cells - 5
        found: list[tuple[Column, int]] = []
        cut_names: list[int] = []
        self._left = min(self._left, max(0, len(self._shown) - 1))
        for column in self._shown[self._left :]:
            texts = [cell_text(column, place) for place in range(len(column.values))]
            wins = bool(column.best())
            wanted = max(width_of(clean(column.name, 80)), *map(width_of, texts)) + wins + 1
            cells = min(WIDEST_VALUE, wanted)
            if found and cells + 2 > left:
                break
            found.append((column, max(1, min(cells, left - 2))))
            cut_names.append(wanted - cells)
            left -= cells + 2
        if len(found) + self._left < len(self._shown):
            return found
        for place, more in enumerate(cut_names):  # nothing else needs the space
            column, cells = found[place]
            found[place] = column, cells + (more := max(0, min(more, left)))
            left -= more
        return found

    def _table(self, width: int, height: int) -> list[Row]:
        """A line for each run below the column names; the selected one stays in view."""
        if height < 1:
            return []
        fitting, names = self._fitting(width), self._names
        name_cells, short = self._name_cells, ShortNames(names)
        by = self._sorting
        head = [Span(fit(f" {len(names)} runs", name_cells + 5), "heading")]
        for column, cells in fitting:
            here = by is not None and self._shown[by[0]] is column
            mark = ("▴" if by[1] else "▾") if here and by is not None else " "
            name = cut(clean(column.name, 80), cells - 1)
            head.append(Span(fit(f"{name}{mark}", cells, "right"), "strong" if here else "heading"))
            head.append(Span("  "))
        more = len(self._shown) - self._left - len(fitting)
        sides = ("‹" if self._left else "") + (f"› {more}" if more else "")
        lines = [spread(clip(tuple(head), width - len(sides) - 1), [Span(sides, "dim")] if sides else [], width)]
        at = next((line for line, place in enumerate(self._order) if self.snapshots[place] is self.selected), 0)
        self._top = max(0, min(self._top, at, len(self._order) - height + 1), at - height + 2)
        bests = [column.best() for column, _ in fitting]
        for place in self._order[self._top : self._top + height - 1]:
            item, look = self.snapshots[place], badge(self.snapshots[place])
            chosen = item is self.selected
            spans = [
                Span("▌" if chosen else " ", "key"),
                Span(LABELS[place], "faint" if place in self._data.hidden else f"{RUN_ROLES[place]} strong"),
                Span(" "),
                Span(look.glyph, look.tone),
                Span(" "),
                Span(fit(short.of(names[place], name_cells), name_cells), "strong" if item.state.active else ""),
            ]
            for (column, cells), best in zip(fitting, bests, strict=True):
                won, text = place in best, cell_text(column, place)
                broken = "warn" if place in column.broken else ""
                role = broken or ("good strong" if won else "faint" if text in ("–", "…") else "")
                spans += [Span("  ")] if column is not fitting[0][0] else []
                spans.append(Span(fit(f"{BEST_MARK if won else ''}{text}", cells, "right"), role))
            lines.append(Row(clip(tuple(spans), width), "selected" if chosen else ""))
        return lines
