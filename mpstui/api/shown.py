"""What notebooks show: curves as columns of numbers, images, and tables in a little HTML."""

from __future__ import annotations

import base64
import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import present
from ..core.model.snapshot import RunSnapshot, SeriesView
from ..core.runs.gallery import Gallery, Item, image_at

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Column = NDArray[numpy.float64]

_PICTURE = (240, 40)


@dataclass(frozen=True, eq=False)
class Curve:
    """All points of one metric, in columns of equal length: numpy arrays, or ``array('d')`` without numpy.

    NaN stands for an unknown value and for a measured one that is not finite. Points that a resumed attempt measured
    again appear once.
    """

    name: str
    axis: str
    """What ``x`` holds: ``step``, ``sample``, ``epoch`` or ``time``."""
    x: Column
    step: Column
    epoch: Column
    time: Column
    """When each point was measured, Unix seconds."""
    value: Column
    thinned: bool = False
    """True if the run has more points than these."""

    def __len__(self) -> int:
        return len(self.value)

    def _repr_html_(self) -> str:
        return f"<b>{escape(self.name)}</b>, {len(self):,} points<br>{_picture(self.value)}"


@dataclass(frozen=True)
class Image:
    """One image that a training logged; notebooks display it."""

    name: str
    step: int | None
    """None if it was logged before any step was known."""
    attempt: int
    time: float
    """When it was logged, Unix seconds."""
    path: Path
    """A PNG or JPEG, for ``PIL.Image.open``, ``matplotlib.pyplot.imread`` and the like."""
    bytes: int
    offset: int = 0
    """Where it begins in the file, which may hold more, as a TensorBoard event file does."""

    def _repr_html_(self) -> str:
        try:
            found = image_at(self.path, self.offset, self.bytes)
        except (OSError, ValueError) as error:
            return f"{escape(self.name)}: {escape(str(error))}"
        data = base64.standard_b64encode(found.data).decode()
        return f'<img alt="{escape(self.name)}" src="data:image/{found.kind};base64,{data}">'


def logged_image(gallery: Gallery, one: Item) -> Image:
    """Return the image of one item in a run's gallery."""
    return Image(one.name, one.step, one.attempt, one.time, gallery.path(one), one.bytes, one.offset)


def last_of(view: SeriesView) -> float:
    """Return the newest value; NaN if it is not finite."""
    return view.last if view.last is not None else math.nan


def curve_of(view: SeriesView) -> Curve:
    """Return the curve of a metric; ``view`` must have been read with a column for each point."""
    unknown = array("d", [math.nan]) * len(view.x)
    held = sum(len(piece.x) for piece in view.superseded) + len(view.x)
    return Curve(
        name=view.name,
        axis=view.axis,
        x=_column(view.x),
        step=_column(view.x if view.axis == "step" else unknown),
        epoch=_column(view.x if view.axis == "epoch" else view.epochs),
        time=_column(view.x if view.axis == "time" else view.times),
        value=_column(view.values),
        thinned=view.count > held,
    )


def _column(values: Sequence[float]) -> Column:
    try:
        import numpy
    except ImportError:
        return array("d", values)  # type: ignore[return-value]  # see Curve
    return numpy.array(values, dtype=numpy.float64)


def cells(seen: RunSnapshot) -> tuple[str, ...]:
    """Return name, state, epoch, step and loss, formatted for people."""
    numbers = seen.numbers
    loss = present.number(numbers.loss) if numbers.loss_is_finite else present.NOT_FINITE
    counted = (("epoch", present.epoch_shown(numbers), numbers.epochs), ("step", numbers.step, numbers.steps))
    places = (
        f"{what} {present.whole(done)}" + (f"/{present.whole(of)}" if of is not None else "")
        if done is not None
        else ""
        for what, done, of in counted
    )
    return (seen.name, str(seen.state), *places, f"loss {loss}")


def table(found: Iterable[RunSnapshot]) -> str:
    """Return an HTML table with a row for each run."""
    rows = []
    for seen in found:
        curve = seen.series.get("loss")
        told = "".join(f"<td>{escape(cell)}</td>" for cell in cells(seen))
        rows.append(f"<tr>{told}<td>{_picture(curve.mean) if curve else ''}</td></tr>")
    return f"<table>{''.join(rows)}</table>" if rows else "no runs yet"


def _picture(values: Sequence[float] | Column) -> str:
    """Return a small curve as SVG; empty for fewer than two points."""
    every = max(1, len(values) // _PICTURE[0])
    points = [(place, float(values[place])) for place in range(0, len(values), every) if math.isfinite(values[place])]
    if len(points) < 2:
        return ""
    low, high = min(value for _, value in points), max(value for _, value in points)
    across, up = _PICTURE[0] / points[-1][0], _PICTURE[1] / ((high - low) or 1.0)
    line = " ".join(f"{place * across:.1f},{(high - value) * up:.1f}" for place, value in points)
    size = f'width="{_PICTURE[0]}" height="{_PICTURE[1]}"'
    return f'<svg {size}><polyline points="{line}" fill="none" stroke="currentColor"/></svg>'
