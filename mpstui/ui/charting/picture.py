"""A chart as a picture file: SVG, or PNG if Pillow is installed, with the data, axes and colours of the screen.

The chart is first turned into shapes, which two short writers put into a file, so that both show the same.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from ...core.model.errors import OperationError
from ...core.model.snapshot import RunSnapshot, SeriesView
from ...core.present import number
from ..rows import clean
from ..theme import picture_inks
from .data import chart_data
from .plot import ChartView
from .scale import Frame, Scale, tick_labels, value_scale

WIDTH, HEIGHT = 960, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 20, 44, 50
_LABEL_CELLS = 8
"""Characters that fit to the left of the chart."""
_TEXT_SIZE = 13


class Shape(NamedTuple):
    """A line through points, a filled area, or text; positions are pixels from the top left."""

    kind: str
    """``line``, ``area`` or ``text``."""
    points: tuple[tuple[float, float], ...]
    ink: str
    text: str = ""
    anchor: str = "start"
    """Which end of the text is at the position: ``start``, ``middle`` or ``end``."""
    bold: bool = False
    width: float = 1.0


def shapes(snapshot: RunSnapshot, metric: str, view: ChartView | None = None, *, dark: bool = False) -> list[Shape]:
    """Return the shapes of a metric: title, axes, ranges as areas, the curves, marks of NaN and restarts."""
    view = view or ChartView()
    inks, data = picture_inks(dark=dark), chart_data(snapshot, metric)
    curves = [(one, ink) for one, ink in ((data.train, "teal"), (data.evaluation, "amber")) if one is not None]
    title = Shape("text", ((_LEFT, 26),), inks["title"], clean(f"{snapshot.name} · {data.name}", 90), bold=True)
    extent = data.extent()
    if extent is None:
        return [title, Shape("text", ((WIDTH / 2, HEIGHT / 2),), inks["dim"], "nothing finite was measured", "middle")]
    left = extent[0] if view.left is None else view.left
    right = extent[1] if view.right is None else view.right
    right = right if right > left else left + 1
    seen = [
        value
        for curve, _ in curves
        for x, low, high in zip(curve.x, curve.low, curve.high, strict=True)
        if left <= x <= right
        for value in (low, high)
    ]
    space = Frame(Scale(left, right), value_scale(seen, view.log), WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM)
    found = [title, *_axes(space, data.axis, inks), *_marks(space, curves, inks)]
    for curve, ink in curves:
        found += _range(space, curve, _between(inks[ink], inks["ground"], 0.22))
    for place, (curve, ink) in enumerate(curves):
        found += [
            Shape("line", stroke, inks[ink], width=2) for stroke in _strokes(space, curve.x, curve.mean) if stroke
        ]
        last = number(curve.last) if curve.last is not None else "NaN/inf"
        words = f"━ {'val' if curve.evaluation else 'train'} {last}"
        found.append(Shape("text", ((WIDTH - _RIGHT - 150 * place, 26),), inks[ink], words, "end"))
    return found


def _at(space: Frame, x: float, y: float) -> tuple[float, float] | None:
    across, up = space.x.position(x), space.y.position(y)
    if across is None or up is None or not -1e-9 <= across <= 1 + 1e-9:
        return None
    return round(_LEFT + across * space.columns, 1), round(_TOP + (1 - min(1.0, max(0.0, up))) * space.lines, 1)


def _axes(space: Frame, axis: str, inks: dict[str, str]) -> Iterator[Shape]:
    bottom = _TOP + space.lines
    beside, below = space.y.ticks(9), space.x.ticks(9)
    for tick, label in zip(beside, tick_labels(beside, _LABEL_CELLS), strict=True):
        place = _at(space, space.x.low, tick)
        if place is not None:
            yield Shape("line", ((_LEFT, place[1]), (_LEFT + space.columns, place[1])), inks["edge"])
            yield Shape("text", ((_LEFT - 8, place[1] + 4),), inks["dim"], label, "end")
    for tick, label in zip(below, tick_labels(below, _LABEL_CELLS), strict=True):
        x = _LEFT + (space.x.position(tick) or 0) * space.columns
        yield Shape("text", ((x, bottom + 20),), inks["dim"], label, "middle")
    yield Shape("text", ((WIDTH - _RIGHT, bottom + 40),), inks["dim"], clean(axis, 90), "end")


def _marks(space: Frame, curves: Sequence[tuple[SeriesView, str]], inks: dict[str, str]) -> Iterator[Shape]:
    """Yield marks where a new attempt took over, and where a value was not finite."""
    for x in sorted({mark for curve, _ in curves for mark in curve.attempt_marks}):
        place = _at(space, x, space.y.low)
        if place is not None:
            yield Shape("line", ((place[0], _TOP), (place[0], _TOP + space.lines)), inks["violet"])
    for x in sorted({gap for curve, _ in curves for gap in curve.gaps}):
        place = _at(space, x, space.y.low)
        if place is not None:
            yield Shape("text", ((place[0], _TOP + 12),), inks["red"], "✗", "middle")


def _strokes(space: Frame, xs: Sequence[float], ys: Sequence[float]) -> Iterator[tuple[tuple[float, float], ...]]:
    """Split the curve at values that are not finite. A single point becomes a short stroke, to be visible."""
    piece: list[tuple[float, float]] = []
    for x, y in [*zip(xs, ys, strict=True), (math.nan, math.nan)]:
        place = _at(space, x, y)
        if place is not None:
            piece.append(place)
        elif piece:
            yield tuple(piece) if len(piece) > 1 else ((piece[0][0] - 2, piece[0][1]), (piece[0][0] + 2, piece[0][1]))
            piece = []


def _range(space: Frame, curve: SeriesView, ink: str) -> Iterator[Shape]:
    """Yield the area between the lowest and the highest value of every column."""
    highs = list(_strokes(space, curve.x, curve.high))
    lows = list(_strokes(space, curve.x, curve.low))
    for high, low in zip(highs, lows, strict=False):
        if len(high) > 2 and high != low:
            yield Shape("area", (*high, *reversed(low)), ink)


def _between(ink: str, ground: str, share: float) -> str:
    """Mix a colour into another: not every viewer supports transparency."""
    pairs = zip(_channels(ink), _channels(ground), strict=True)
    return "#" + "".join(f"{round(one * share + other * (1 - share)):02x}" for one, other in pairs)


def _channels(ink: str) -> tuple[int, ...]:
    return tuple(int(ink[at : at + 2], 16) for at in (1, 3, 5))


def as_svg(snapshot: RunSnapshot, metric: str, view: ChartView | None = None, *, dark: bool = False) -> bytes:
    """Return the chart as SVG, with text as text."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="{_TEXT_SIZE}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{picture_inks(dark=dark)["ground"]}"/>',
    ]
    for shape in shapes(snapshot, metric, view, dark=dark):
        if shape.kind == "text":
            x, y = shape.points[0]
            weight = ' font-weight="bold"' if shape.bold else ""
            words = escape(shape.text)
            lines.append(
                f'<text x="{x}" y="{y}" fill="{shape.ink}" text-anchor="{shape.anchor}"{weight}>{words}</text>'
            )
            continue
        points = " ".join(f"{x},{y}" for x, y in shape.points)
        look = f'fill="{shape.ink}"' if shape.kind == "area" else f'fill="none" stroke="{shape.ink}"'
        if shape.kind == "line":
            look += f' stroke-width="{shape.width:g}" stroke-linejoin="round"'
        lines.append(f'<{"polygon" if shape.kind == "area" else "polyline"} points="{points}" {look}/>')
    return "\n".join([*lines, "</svg>\n"]).encode("utf-8", "replace")


def as_png(snapshot: RunSnapshot, metric: str, view: ChartView | None = None, *, dark: bool = False) -> bytes:
    """Return the chart as PNG at twice its size, for high-resolution screens.

    Raises:
        OperationError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise OperationError("PNG needs Pillow, which is not here", "pip install pillow; or `--to svg`") from None
    image = Image.new("RGB", (2 * WIDTH, 2 * HEIGHT), picture_inks(dark=dark)["ground"])
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(2 * _TEXT_SIZE)
    for shape in shapes(snapshot, metric, view, dark=dark):
        points = [(2 * x, 2 * y) for x, y in shape.points]
        if shape.kind == "text":
            anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
            text = shape.text.replace("━", "-").replace("✗", "x")  # the font lacks these characters
            draw.text(points[0], text, fill=shape.ink, anchor=anchor, font=font)
        elif shape.kind == "area":
            draw.polygon(points, fill=shape.ink)
        else:
            draw.line(points, fill=shape.ink, width=round(2 * shape.width), joint="curve")
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()
