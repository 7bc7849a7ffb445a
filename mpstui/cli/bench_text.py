"""The bench on a terminal: tables that are readable at 60 columns, and one line that is rewritten meanwhile."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from ..core.bench.measure import DEVICE_GROUP, LOADERS, BenchProgress, Measurement
from ..core.bench.report import BenchReport, Surroundings
from ..core.machine import Machine
from .session import one_line

NARROWEST = 40
_NAME = 21
_INDENT = 4
_HEADS = ("step ms", "range", "samples/s", "×", "memory")
_WIDTHS = (8, 15, 10, 6, 9)
_DROPPED_FIRST = ("memory", "range")
"""Columns that a narrow terminal does without."""


def report_lines(report: BenchReport, width: int) -> Iterator[str]:
    """Both groups as tables, with the reasons of what was not measured beneath its row."""
    columns = _columns(width)
    for group, title in ((DEVICE_GROUP, "device"), (LOADERS, "batches")):
        found = report.group(group)
        if found:
            yield _row(title, [_HEADS[at] for at in columns], columns)
            for one in found:
                yield from _measurement(report, one, columns, width)
            yield ""
    yield from _remarks(report, width)


def progress_text(progress: BenchProgress) -> str:
    """What is being done, for how long, and until when at the latest."""
    times = f"{progress.elapsed_seconds:.0f} s of at most {progress.limit_seconds:.0f} s"
    return f"{progress.config.name}: {progress.doing} · {times}"


def paragraph(text: str, width: int, indent: int = 0) -> Iterator[str]:
    """Wrapped to the width, every line indented."""
    yield from textwrap.wrap(
        one_line(text), max(width, NARROWEST), initial_indent=" " * indent, subsequent_indent=" " * indent
    )


def places(folder: Path | None) -> dict[str, str]:
    """Where a report lies, for JSON."""
    return {"json": str(folder / "report.json"), "svg": str(folder / "report.svg")} if folder else {}


def place_lines(folder: Path | None) -> list[str]:
    """Where a report lies, for people; a path is never broken."""
    return [f"report: {folder / 'report.svg'}", f"        {folder / 'report.json'}"] if folder else []


def surroundings(machine: Machine) -> Surroundings:
    """This machine, and how busy it is now."""
    return Surroundings(
        system=machine.system,
        architecture=machine.architecture,
        cores=machine.cores,
        load_average=os.getloadavg()[0],
    )


def busy_lines(found: Surroundings, width: int) -> Iterator[str]:
    """A word of caution when other programs were busy."""
    if found.busy:
        busy = f"load {found.load_average:.1f} on {found.cores} cores"
        text = f"note: other programs were busy when this began ({busy}): times are longer and vary more than they need"
        yield from paragraph(text, width)


def bytes_text(count: int | None) -> str:
    """Bytes as a person reads them; n/a when unknown."""
    if count is None:
        return "n/a"
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


class LiveLine:
    """One line on standard error that replaces itself on a terminal; elsewhere each new beginning is a line."""

    def __init__(self, stream: TextIO = sys.stderr, width: int = 80) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._width = width
        self._shown = ""

    def show(self, text: str, beginning: str = "") -> None:
        """Show it now; ``beginning`` is what stays the same while a thing is being done."""
        if self._live:
            cut = one_line(text)[: self._width - 1]
            if cut != self._shown:
                self._stream.write(f"\r{cut}\x1b[K")
                self._stream.flush()
        elif beginning != self._shown:
            print(one_line(beginning or text), file=self._stream, flush=True)
        self._shown = cut if self._live else beginning

    def clear(self) -> None:
        """Leave nothing of it behind."""
        if self._live and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        self._shown = ""


def _columns(width: int) -> list[int]:
    """The columns for which there is room."""
    kept = list(range(len(_HEADS)))
    for name in _DROPPED_FIRST:
        if _NAME + sum(_WIDTHS[at] for at in kept) > width:
            kept.remove(_HEADS.index(name))
    return kept


def _measurement(report: BenchReport, one: Measurement, columns: Sequence[int], width: int) -> Iterator[str]:
    if one.step_seconds is None:
        yield f"{one.config.name:<{_NAME}} not measured"
        yield from paragraph(one.error or "", width, _INDENT)
        return
    spread, speedup = one.step_seconds, report.speedup(one)
    values = (
        _milliseconds(spread.median),
        f"{_milliseconds(spread.low)} to {_milliseconds(spread.high)}",
        "n/a" if one.samples_per_second is None else f"{one.samples_per_second:,.1f}",
        "n/a" if speedup is None else f"{speedup:.2f}",
        bytes_text(one.memory_bytes),
    )
    yield _row(one.config.name, [values[at] for at in columns], columns)


def _row(name: str, values: Sequence[str], columns: Sequence[int]) -> str:
    cells = "".join(f"{value:>{_WIDTHS[at]}}" for value, at in zip(values, columns, strict=True))
    return f"{name:<{_NAME}}{cells}".rstrip()


def _remarks(report: BenchReport, width: int) -> Iterator[str]:
    notes = dict.fromkeys(note for found in report.measurements.values() for note in found.notes)
    for note in notes:
        yield from paragraph(f"note: {note}", width)
    yield from busy_lines(report.machine, width)
    if not report.complete:
        yield from paragraph("not complete: what is missing was not measured", width)


def _milliseconds(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
