"""Bench reports as JSON and SVG, saved to disk after every configuration so that nothing is lost."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from ...wire import storage
from ...wire.rundir import slug
from ...wire.storage import plain
from ..model.errors import OperationError
from ..model.home import Home
from .measure import DEVICE_GROUP, LOADERS, BenchConfig, BenchPlan, Measurement

_TITLES = {DEVICE_GROUP: "devices and precision", LOADERS: "where batches come from"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What measurements depend on, besides the program."""

    system: str
    architecture: str
    cores: int
    load_average: float
    """The load average of the minute before the start: other programs competing for a core."""

    @property
    def busy(self) -> bool:
        """True if other programs used so much of the machine that the timings are less reliable."""
        return self.load_average > self.cores / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The measurements so far, and the conditions under which they were taken."""

    plan: BenchPlan
    device: str
    machine: Surroundings
    started: float
    """Unix seconds."""
    measurements: Mapping[BenchConfig, Measurement]
    complete: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """What the figures depend on, as plain data; unknown values are None."""
        return {
            "task": self.plan.task,
            "device": self.device,
            "machine": asdict(self.machine),
            "started": self.started,
            "complete": self.complete,
            "budget_seconds": self.plan.budget_seconds,
            "measure_seconds": self.plan.measure_seconds,
            "repeats": self.plan.repeats,
            "arguments": list(self.plan.arguments),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport(Measured):
    """A comparison of devices, precisions and loaders."""

    def group(self, name: str) -> list[Measurement]:
        """Return the measurements of one group, in the plan's order."""
        known = (self.measurements.get(config) for config in self.plan.configs if config.group == name)
        return [found for found in known if found is not None]

    def speedup(self, found: Measurement) -> float | None:
        """Return samples per second relative to the CPU; for a loader, relative to batches made between steps.

        None if either was not measured, or if its number of samples per step is unknown.
        """
        loads = found.config.group == LOADERS
        group = self.group(found.config.group)
        first = next((one for one in group if (one.config.same_as if loads else one.config.name == "cpu")), None)
        if first is None:
            return None
        mine, yardstick = found.samples_per_second, first.samples_per_second
        return mine / yardstick if mine and yardstick else None

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data; unknown values are None."""
        return {
            **self.facts,
            "rungs": [self._as_json(found) for found in self.group(DEVICE_GROUP)],
            "loaders": [self._as_json(found) for found in self.group(LOADERS)],
        }

    def svg(self) -> str:
        """Draw the measurements as bars of samples per second, or else of steps per second."""
        in_samples = all(one.samples_per_step for one in self.measurements.values() if one.step_seconds)

        def bar(found: Measurement) -> Bar:
            spread, speedup = found.step_seconds, self.speedup(found)
            if spread is None:
                return Bar(found.config.name, reason=found.error or "not measured")
            per_step = found.samples_per_step if in_samples and found.samples_per_step else 1.0
            return Bar(
                found.config.name,
                value=per_step / spread.median,
                low=per_step / spread.high,
                high=per_step / spread.low,
                beside=f"{speedup:.2f}×" if speedup else "",
            )

        title = f"mpstui bench {self.plan.task}" + ("" if self.complete else " (not complete)")
        groups = [(_TITLES[name], [bar(one) for one in self.group(name)]) for name in (DEVICE_GROUP, LOADERS)]
        unit = "samples/s" if in_samples else "steps/s"
        machine = f"{self.machine.system} {self.machine.architecture} · {self.machine.cores} cores"
        load = f"load {self.machine.load_average:.1f} at the start"
        return bar_chart(title, f"{machine} · {load} · {unit}, median, range of the stretches measured", groups)

    def _as_json(self, found: Measurement) -> dict[str, Any]:
        config = found.config
        return {
            "rung": config.name,
            "device": config.device,
            "precision": config.precision,
            "compile": config.compile == "on",
            "workers": config.workers,
            "held_batches": config.held_batches,
            "same_as": config.same_as,
            "step_seconds": asdict(found.step_seconds) if found.step_seconds else None,
            "steps_per_second": found.steps_per_second,
            "samples_per_second": found.samples_per_second,
            "samples_per_step": found.samples_per_step,
            "speedup": self.speedup(found),
            "memory_bytes": found.memory_bytes,
            "processes": found.runs,
            "seconds": found.seconds,
            "limit_seconds": found.limit_seconds,
            "notes": list(found.notes),
            "error": found.error,
        }


def report_folder(home: Home, name: str, now: float) -> Path:
    """Create the folder for one report: ``bench/<UTC time>-<name>`` in the state folder.

    Raises:
        OperationError: it cannot be created.
    """
    folder = home.state / "bench" / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{slug(name)}"
    try:
        storage.make_private_folder(folder)
    except OSError as error:
        raise OperationError(
            f"no report can be kept in {folder}: {error.strerror}", "name a folder by --out"
        ) from error
    return folder


def save(folder: Path, document: Mapping[str, Any], svg: str) -> None:
    """Replace ``report.json`` and ``report.svg`` in a folder, each atomically.

    Raises:
        OperationError: they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        storage.write_json(folder / "report.json", plain(dict(document)))
        storage.write_bytes(folder / "report.svg", svg.encode())
    except OSError as error:
        raise OperationError(f"the report cannot be written to {folder}: {error.strerror}") from error


_WIDTH, _LEFT, _RIGHT, _ROW, _MARGIN = 760, 210, 150, 26, 20
_TOP, _PLOT_HEIGHT = 66, 240
_STROKES = (3.5, 1.5)
"""The second curve is drawn over the first, and thinner, so that both remain visible where they coincide."""
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
    """One row of a chart: a value with its range, or the reason why there is none."""

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
    """Draw bars in titled groups, on a common scale that starts at zero; empty groups are left out."""
    bars = [bar for _, rows in groups for bar in rows]
    most = max((bar.high or bar.value or 0.0 for bar in bars), default=0.0) or 1.0
    parts: list[str] = []
    y = _TOP
    for name, rows in groups:
        if not rows:
            continue
        parts.append(_text(_MARGIN, y + 14, name, "dim small"))
        y += 22
        for bar in rows:
            parts += _row(bar, y, (_WIDTH - _LEFT - _RIGHT) / most)
            y += _ROW
        y += 8
    return _document(title, facts, parts, y + _MARGIN)


def curve_chart(title: str, facts: str, curves: Sequence[Curve], x_name: str, y_name: str) -> str:
    """Draw at most two curves over a common x axis, with a legend."""
    xs = [x for curve in curves for x in curve.x] or [0.0]
    ys = [y for curve in curves for y in curve.y if y is not None and math.isfinite(y)] or [0.0]
    first, low = min(xs), min(ys)
    last, high = max(xs) if max(xs) > first else first + 1, max(ys) if max(ys) > low else low + 1
    left, right, top, bottom = _MARGIN + 60, _WIDTH - _MARGIN, _TOP + 26, _TOP + 26 + _PLOT_HEIGHT
    parts = [
        f'<path class="rule" fill="none" d="M{left} {top} V{bottom} H{right}"/>',
        _text(left - 6, top + 5, f"{high:.4g}", "dim small", "end"),
        _text(left - 6, bottom, f"{low:.4g}", "dim small", "end"),
        _text(left - 6, (top + bottom) / 2, y_name, "dim small", "end"),
        _text(left, bottom + 16, f"{first:g}", "dim small"),
        _text(right, bottom + 16, f"{last:g}", "dim small", "end"),
        _text((left + right) / 2, bottom + 16, x_name, "dim small", "middle"),
    ]
    for at, curve in enumerate(curves[:2]):
        words, draws = [], False
        for x, y in zip(curve.x, curve.y, strict=True):
            if y is None or not math.isfinite(y):
                draws = False
                continue
            across = left + (x - first) / (last - first) * (right - left)
            down = bottom - (y - low) / (high - low) * _PLOT_HEIGHT
            words.append(f"{'L' if draws else 'M'}{across:.1f} {down:.1f}")
            draws = True
        path = " ".join(words)
        parts.append(f'<path class="c{at}" fill="none" stroke-width="{_STROKES[at]}" d="{path}"/>')
        parts.append(_text(left + at * 340, _TOP + 12, f"━ {curve.name}"[:48], f"f{at}"))
    return _document(title, facts, parts, bottom + 44)


def _row(bar: Bar, y: float, scale: float) -> list[str]:
    name = _text(_LEFT - 10, y + 15, bar.name, "text", "end")
    if bar.value is None:
        reason = bar.reason if len(bar.reason) <= _LONGEST_REASON else f"{bar.reason[: _LONGEST_REASON - 1]}…"
        return [name, _text(_LEFT, y + 15, reason, "dim small")]
    width, low, high = bar.value * scale, (bar.low or bar.value) * scale, (bar.high or bar.value) * scale
    middle = y + 10
    number = f"{bar.value:,.0f}" if bar.value >= 100 else f"{bar.value:.3g}"
    return [
        name,
        f'<rect class="bar" x="{_LEFT}" y="{y + 2}" width="{width:.1f}" height="16" rx="2"/>',
        f'<path class="whisker" d="M{_LEFT + low:.1f} {middle} H{_LEFT + high:.1f}"/>',
        _text(_LEFT + max(width, high) + 8, y + 15, " · ".join(filter(None, (number, bar.beside))), "text"),
    ]


def _text(x: float, y: float, text: str, style: str, anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _document(title: str, facts: str, parts: Sequence[str], height: float) -> str:
    size = f'width="{_WIDTH}" height="{height:.0f}" viewBox="0 0 {_WIDTH} {height:.0f}"'
    shown = facts if len(facts) <= _LONGEST_FACTS else f"{facts[: _LONGEST_FACTS - 1]}…"
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{escape(title)}</title>',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height:.0f}" rx="8"/>',
        _text(_MARGIN, 34, title, "text title"),
        _text(_MARGIN, 54, shown, "dim small"),
    ]
    return "\n".join([*head, *parts, "</svg>", ""])
