"""Navigating a chart: zoom, window and cursor, each as a function from one view to the next. Pure."""

from __future__ import annotations

from .data import ChartData
from .plot import ChartView
from .scale import Frame

_CLOSEST_POINTS = 8
"""Zooming in stops before the window would hold fewer points than this."""


def navigate(what: str, view: ChartView, space: Frame, data: ChartData) -> ChartView:
    """The view after a key that moves or zooms: ``in``, ``out``, ``left``, ``right``, ``earlier`` or ``later``."""
    moves = {
        "in": lambda: zoom(view, space, data, 0.5),
        "out": lambda: zoom(view, space, data, 2.0),
        "left": lambda: move_cursor(view, space, data, -1),
        "right": lambda: move_cursor(view, space, data, 1),
        "earlier": lambda: pan(view, space, data, -0.25),
        "later": lambda: pan(view, space, data, 0.25),
    }
    return moves[what]()


def zoom(view: ChartView, space: Frame, data: ChartData, factor: float) -> ChartView:
    """Show ``factor`` times as much of x, around the cursor, or keeping the right edge."""
    extent = data.extent()
    if extent is None:
        return view
    span = (space.x.high - space.x.low) * factor
    whole_span = extent[1] - extent[0]
    if span >= whole_span:
        return view._replace(left=None, right=None)
    # Over steps and time, a window is read again point by point; otherwise there is only what is held.
    most = max(curve.count if curve.axis == "step" or data.by_time else len(curve.x) for curve in data.curves)
    span = max(span, whole_span * min(1, _CLOSEST_POINTS / most))
    if view.cursor is None and view.right is None:
        return view._replace(left=extent[1] - span)
    anchor = view.cursor if view.cursor is not None else space.x.high
    share = (anchor - space.x.low) / (space.x.high - space.x.low)
    left = anchor - span * min(1.0, max(0.0, share))
    return _inside(view, left, span, extent)


def pan(view: ChartView, space: Frame, data: ChartData, share: float) -> ChartView:
    """Move the window by a share of its width; at the right end it follows the newest point again."""
    extent = data.extent()
    if extent is None or (view.left is None and view.right is None):
        return view
    span = min(space.x.high, extent[1]) - space.x.low
    return _inside(view, space.x.low + share * span, span, extent)


def _inside(view: ChartView, left: float, span: float, extent: tuple[float, float]) -> ChartView:
    left = max(extent[0], left)
    if left + span >= extent[1]:
        return view._replace(left=max(extent[0], extent[1] - span), right=None)
    return view._replace(left=left, right=left + span)


def move_cursor(view: ChartView, space: Frame, data: ChartData, cells: int) -> ChartView:
    """Move the cursor by cells; the first key press puts it on the newest point."""
    extent = data.extent()
    if extent is None:
        return view
    now = view.cursor
    if now is None:
        return view._replace(cursor=min(extent[1], space.x.high))
    column = space.column_of(now)
    target = (space.columns - 1 if column is None else column) + cells
    there = space.x_at(max(0, min(space.columns - 1, target)))
    ahead = (x for x in data.curves[0].x if (x - now) * cells > 0 and space.x.low <= x <= space.x.high)
    point = min(ahead, key=lambda x: abs(x - now), default=there)
    if abs(point - now) > abs(there - now) + space.x.span / space.columns:
        there = point  # the points are further apart than cells: jump to the next one
    return view._replace(cursor=min(extent[1], there))
