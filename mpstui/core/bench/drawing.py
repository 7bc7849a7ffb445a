"""SVG pictures of a report: bars with their range, and curves on common axes; right on light and dark backgrounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LEFT, _RIGHT, _ROW, _MARGIN = 760, 210, 150, 26, 20
_PLOT_HEIGHT = 240
_STROKES = (3.5, 1.5)
"""The second curve lies on the first: where they are the same both can be seen."""
_LONGEST_REASON = 78
_LONGEST_FACTS = 110
_STYLE = """
.paper{fill:#ffffff}.text{fill:#1f2328}.dim{fill:#59636e}.rule{stroke:#d1d9e0}.whisker{stroke:#1f2328}
.bar{fill:#0969da}.c0{stroke:#0969da}.c1{stroke:#bc4c00}.f0{fill:#0969da}.f1{fill:#bc4c00}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.text{fill:#f0f6fc}.dim{fill:#9198a1}.rule{stroke:#3d444d}
.whisker{stroke:#f0f6fc}.bar{fill:#4493f8}.c0{stroke:#4493f8}.c1{stroke:#f0883e}.f0{fill:#4493f8}.f1{fill:#f0883e}}
text{font:13px ui-sans-serif,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
.title{font-size:16px;font-weight:600}.small{font-size:11px}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: a value with its range, or the reason why there is none."""

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    beside: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot; points that are not finite are gaps."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]


def bar_chart(title: str, facts: str, groups: Sequence[tuple[str, Sequence[Bar]]]) -> str:
    """Bars on one common scale that begins at zero, in titled groups; an empty group is left out."""
    bars = [bar for _, rows in groups for bar in rows]
    most = max((bar.high or bar.value or 0.0 for bar in bars), default=0.0) or 1.0
    parts, y = _heading(title, facts)
    for name, rows in groups:
        if not rows:
            continue
        parts.append(_text(_MARGIN, y + 14, name, "dim small"))
        y += 22
        for bar in rows:
            parts += _row(bar, y, (_WIDTH - _LEFT - _RIGHT) / most)
            y += _ROW
        y += 8
    return _document(parts, y + _MARGIN, title)


def curve_chart(title: str, facts: str, curves: Sequence[Curve], x_name: str, y_name: str) -> str:
    """At most two curves over a common x axis, with a legend."""
    parts, top = _heading(title, facts)
    box = _Box.around(curves, top + 26)
    parts += [*_axes(box, x_name, y_name)]
    for at, curve in enumerate(curves[:2]):
        parts.append(f'<path class="c{at}" fill="none" stroke-width="{_STROKES[at]}" d="{box.path(curve)}"/>')
        parts.append(_text(_MARGIN + 60 + at * 340, top + 12, f"━ {curve.name}"[:48], f"f{at}"))
    return _document(parts, top + 26 + _PLOT_HEIGHT + 44, title)


@dataclass(frozen=True, slots=True)
class _Box:
    """Where values lie on the paper."""

    left: float
    right: float
    low: float
    high: float
    top: float

    @classmethod
    def around(cls, curves: Sequence[Curve], top: float) -> _Box:
        xs = [x for curve in curves for x in curve.x]
        ys = [y for curve in curves for y in curve.y if y is not None and math.isfinite(y)]
        left, right = (min(xs), max(xs)) if xs else (0.0, 1.0)
        low, high = (min(ys), max(ys)) if ys else (0.0, 1.0)
        return cls(left, right if right > left else left + 1, low, high if high > low else low + 1, top)

    def place(self, x: float, y: float) -> tuple[float, float]:
        width = _WIDTH - _MARGIN - 60 - _MARGIN
        across = (x - self.left) / (self.right - self.left)
        up = (y - self.low) / (self.high - self.low)
        return _MARGIN + 60 + across * width, self.top + (1 - up) * _PLOT_HEIGHT

    def path(self, curve: Curve) -> str:
        words, draws = [], False
        for x, y in zip(curve.x, curve.y, strict=True):
            if y is None or not math.isfinite(y):
                draws = False
                continue
            across, down = self.place(x, y)
            words.append(f"{'L' if draws else 'M'}{across:.1f} {down:.1f}")
            draws = True
        return " ".join(words)


def _axes(box: _Box, x_name: str, y_name: str) -> list[str]:
    left, bottom = box.place(box.left, box.low)
    right, top = box.place(box.right, box.high)
    return [
        f'<path class="rule" fill="none" d="M{left} {top} V{bottom} H{right}"/>',
        _text(left - 6, top + 5, f"{box.high:.4g}", "dim small", "end"),
        _text(left - 6, bottom, f"{box.low:.4g}", "dim small", "end"),
        _text(left - 6, (top + bottom) / 2, y_name, "dim small", "end"),
        _text(left, bottom + 16, f"{box.left:g}", "dim small"),
        _text(right, bottom + 16, f"{box.right:g}", "dim small", "end"),
        _text((left + right) / 2, bottom + 16, x_name, "dim small", "middle"),
    ]


def _row(bar: Bar, y: float, scale: float) -> list[str]:
    name = _text(_LEFT - 10, y + 15, bar.name, "text", "end")
    if bar.value is None:
        reason = bar.reason if len(bar.reason) <= _LONGEST_REASON else f"{bar.reason[: _LONGEST_REASON - 1]}…"
        return [name, _text(_LEFT, y + 15, reason, "dim small")]
    width, low, high = bar.value * scale, (bar.low or bar.value) * scale, (bar.high or bar.value) * scale
    middle = y + 10
    return [
        name,
        f'<rect class="bar" x="{_LEFT}" y="{y + 2}" width="{width:.1f}" height="16" rx="2"/>',
        f'<path class="whisker" d="M{_LEFT + low:.1f} {middle} H{_LEFT + high:.1f}"/>',
        _text(_LEFT + max(width, high) + 8, y + 15, " · ".join(filter(None, (_number(bar.value), bar.beside))), "text"),
    ]


def _heading(title: str, facts: str) -> tuple[list[str], float]:
    shown = facts if len(facts) <= _LONGEST_FACTS else f"{facts[: _LONGEST_FACTS - 1]}…"
    return [_text(_MARGIN, 34, title, "text title"), _text(_MARGIN, 54, shown, "dim small")], 66.0


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _text(x: float, y: float, text: str, style: str, anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _document(parts: Sequence[str], height: float, title: str) -> str:
    size = f'width="{_WIDTH}" height="{height:.0f}" viewBox="0 0 {_WIDTH} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{escape(title)}</title>'
    paper = f'<rect class="paper" width="{_WIDTH}" height="{height:.0f}" rx="8"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", paper, *parts, "</svg>", ""])
