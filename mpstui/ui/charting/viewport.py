"""What the chart's keys do to the view: zoom, pan, cursor. Pure, so that each key is one small test."""

from __future__ import annotations

from dataclasses import replace

from .plot import ChartData, ChartView, Frame

_CLOSEST_POINTS = 8
"""Zooming in stops where the window would hold no more points than this."""


def zoom(view: ChartView, space: Frame, data: ChartData, factor: float) -> ChartView:
    """Show ``factor`` times as much of x, around the cursor, or holding the right edge."""
    extent = data.extent()
    if extent is None:
        return view
    span = (space.x.high - space.x.low) * factor
    whole_span = extent[1] - extent[0]
    if span >= whole_span:
        return replace(view, left=None, right=None)
    span = max(span, min(whole_span, _closest(data, whole_span)))
    if view.cursor is None and view.right is None:
        return replace(view, left=extent[1] - span)
    anchor = view.cursor if view.cursor is not None else space.x.high
    share = (anchor - space.x.low) / (space.x.high - space.x.low)
    left = anchor - span * min(1.0, max(0.0, share))
    return _inside(view, left, span, extent)


def _closest(data: ChartData, whole_span: float) -> float:
    """The narrowest window, in units of x: steps, epochs or minutes, as many as hold some points."""
    most = max((len(curve.x) for curve in data.curves), default=0)
    return whole_span * _CLOSEST_POINTS / most if most else whole_span


def pan(view: ChartView, space: Frame, data: ChartData, share: float) -> ChartView:
    """Move the window by a share of its own width; at the right end it follows again."""
    extent = data.extent()
    if extent is None or (view.left is None and view.right is None):
        return view
    span = min(space.x.high, extent[1]) - space.x.low
    return _inside(view, space.x.low + share * span, span, extent)


def _inside(view: ChartView, left: float, span: float, extent: tuple[float, float]) -> ChartView:
    left = max(extent[0], left)
    if left + span >= extent[1]:
        return replace(view, left=max(extent[0], extent[1] - span), right=None)
    return replace(view, left=left, right=left + span)


def move_cursor(view: ChartView, space: Frame, data: ChartData, cells: int) -> ChartView:
    """Move the read-out by cells; the first key press puts it on the newest point."""
    extent = data.extent()
    if extent is None:
        return view
    if view.cursor is None:
        return replace(view, cursor=min(extent[1], space.x.high))
    column = space.column_of(view.cursor)
    target = (space.columns - 1 if column is None else column) + cells
    return replace(view, cursor=min(extent[1], space.x_at(max(0, min(space.columns - 1, target)))))
