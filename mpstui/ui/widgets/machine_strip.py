"""The machine in one line: processor, accelerator, memory and heat over the last minute; unknown parts are left out."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..rows import BLOCKS, Span, clean, width_of

if TYPE_CHECKING:
    from ...core.telemetry.model import SystemSample

REMEMBERED, APART_SECONDS = 5, 10.0
"""The number of past samples kept, and the seconds between them."""
_GIB = 1 << 30
_TIGHT = 90.0
"""Percent of memory from which it is coloured; the memory panel shows how far a run is from its limit."""


class Meter(NamedTuple):
    """One quantity."""

    label: str
    share: Callable[[SystemSample], float | None]
    """Percent of the whole."""
    text: Callable[[SystemSample, float], str]
    worth: int
    """In little room, quantities of low worth are left out first."""


def _gpu(sample: SystemSample) -> float | None:
    return max((one.busy_percent for one in sample.gpus if one.busy_percent is not None), default=None)


def _memory(sample: SystemSample) -> float | None:
    used, total = sample.memory_used_of_usable_bytes, sample.usable_memory_bytes
    return 100 * used / total if used is not None and total else None


def _memory_text(sample: SystemSample, share: float) -> str:
    used, total = sample.memory_used_of_usable_bytes or 0, sample.usable_memory_bytes or 0
    return f"{used / _GIB:.1f}/{total / _GIB:.0f} GiB"


def _percent(sample: SystemSample, share: float) -> str:
    return f"{share:.0f} %"


METERS = (
    Meter("cpu", lambda sample: sample.cpu_percent, _percent, 2),
    Meter("gpu", _gpu, _percent, 4),
    Meter("mem", _memory, _memory_text, 3),
)


def remember(past: tuple[SystemSample, ...], sample: SystemSample) -> tuple[SystemSample, ...]:
    """Add a sample to the past; it replaces one from the same ten seconds."""
    same = bool(past) and past[-1].time // APART_SECONDS == sample.time // APART_SECONDS
    return (*(past[:-1] if same else past), sample)[-REMEMBERED:]


def machine_strip(past: Sequence[SystemSample], width: int) -> tuple[Span, ...]:
    """Return as much as fits, the most telling parts first: ``cpu ▂▅▇ 87 %  mem ▆▆▆ 14.2/18 GiB  72 °C``."""
    parts = list(_parts(past)) if past else []
    while parts:
        spans = tuple(span for _, part in parts for span in part)
        if sum(width_of(span.text) for span in spans) <= width:
            return spans
        parts.remove(min(parts, key=lambda item: item[0]))
    return ()


def _parts(past: Sequence[SystemSample]) -> Iterator[tuple[int, tuple[Span, ...]]]:
    """Yield the known quantities, each with its worth."""
    now = past[-1]
    yield 0, (Span(f"{clean(now.host or platform.node().partition('.')[0], 20)}  ", "faint"),)
    for meter in METERS:
        share = meter.share(now)
        if share is not None:
            known = [meter.share(sample) for sample in past]
            bars = "".join(" " if one is None else BLOCKS[min(7, int(one / 12.5))] for one in known)
            role = "bad" if meter.label == "mem" and share >= _TIGHT else "busy"
            words = f" {meter.text(now, share)}  "
            yield meter.worth, (Span(f"{meter.label} ", "dim"), Span(bars.strip(), role), Span(words, "dim"))
    heat = [now.cpu_temperature_celsius, *(one.temperature_celsius for one in now.gpus)]
    hottest = max((one for one in heat if one is not None), default=None)
    slowed = now.thermal if now.thermal not in (None, "nominal") else ""
    if hottest is not None or slowed:
        told = f"{hottest:.0f} °C" if hottest is not None else f"heat {slowed}"
        yield 1, (Span(f"{told}  ", "warn" if slowed else "dim"),)
