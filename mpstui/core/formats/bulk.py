"""Megabytes of whole lines through a learned shape; what does not fit it goes line by line."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import lt, ne
from typing import NamedTuple

from .phases import Announcement
from .points import Reading
from .shape import Read, Shape, learn
from .tracker import Tracker

BLOCK = 1 << 16
_CHECKED = 48
"""So many lines of a new shape are read both ways before it is trusted."""
_MAX_FAILURES = 4
"""Shapes that proved wrong before bulk reading is given up."""
_MIN_RUN = 16
"""Fewer lines in a row are placed one by one."""
Row = tuple[bytes, ...]


class Examined(NamedTuple):
    """What one line says before it is placed."""

    readings: Sequence[Reading]
    phase: Announcement | None
    """The phase that the line announces."""
    line: str


NOTHING = Examined((), None, "")


class BulkReader:
    """Reads blocks of whole lines for one tracker."""

    def __init__(
        self, tracker: Tracker, examine: Callable[[bytes], Examined], apply: Callable[[Examined], None], read: Read
    ) -> None:
        self._tracker = tracker
        self._examine = examine
        self._apply = apply
        self._read = read
        self._shape: Shape | None = None
        self._checked = 0
        self._failures = 0

    def feed(self, lines: bytes) -> None:
        """Every line of ``lines``, in order."""
        position = 0
        while position < len(lines):
            end = len(lines) if len(lines) - position <= BLOCK else lines.rfind(b"\n", position, position + BLOCK) + 1
            end = end if end > position else lines.find(b"\n", position) + 1 or len(lines)
            self._block(lines[position:end])
            position = end

    def _block(self, block: bytes) -> None:
        shape = self._shape
        if shape is None:
            self._learn(block)
            return
        if self._checked >= _CHECKED:
            rows = _rows(shape.lean.findall(block))
            if len(rows) == block.count(b"\n"):
                self._place(shape, rows, block[block.rfind(b"\n", 0, -1) + 1 :].rstrip(b"\n"))
                return
        self._mixed(shape, block)

    def _learn(self, block: bytes) -> None:
        """The ordinary way, until a line is read whose shape many others share."""
        lines = block.split(b"\n")[:-1] if block.endswith(b"\n") else block.split(b"\n")
        for number, line in enumerate(lines):
            self._apply(self._examine(line))
            if self._failures >= _MAX_FAILURES or number % 32 != 31:
                continue
            shape = learn(line, self._read)
            rest = lines[number + 1 :]
            if shape is not None and rest and 4 * len(shape.pattern.findall(b"\n".join(rest))) >= len(rest):
                self._shape, self._checked = shape, 0
                self._mixed(shape, b"\n".join(rest) + b"\n")
                return

    def _mixed(self, shape: Shape, block: bytes) -> None:
        """Runs of lines that fit, and the others between them."""
        run: list[Row] = []
        line = b""
        position = fitted = 0
        for match in shape.lean.finditer(block):
            for other in self._telling(block[position : match.start()]):
                self._place(shape, run, line)
                run = []
                self._apply(other)
            line = match.group()
            if self._checked < _CHECKED and not self._check(shape, line):
                self._each(block[match.start() :])
                return
            run.append(match.groups())
            fitted += 1
            position = match.end() + 1
        self._place(shape, run, line)
        self._each(block[position:])
        if fitted * 8 < block.count(b"\n"):
            self._shape = None

    def _check(self, shape: Shape, line: bytes) -> bool:
        """Read a line both ways; a difference ends the trust in the shape."""
        self._checked += 1
        readings = self._read(line.decode())
        if readings is not None and list(readings) == [shape.reading(line)]:
            return True
        self._shape = None
        self._failures += 1
        return False

    def _telling(self, text: bytes) -> Iterator[Examined]:
        """Of the lines between those that fit, those that say anything: the others do not end a run."""
        for line in text.split(b"\n"):
            if line:
                examined = self._examine(line)
                if examined.readings or examined.phase is not None:
                    yield examined

    def _each(self, text: bytes) -> None:
        for line in text.split(b"\n"):
            if line:
                self._apply(self._examine(line))

    def _place(self, shape: Shape, rows: Sequence[Row], last_line: bytes) -> None:
        """``last_line`` is that of the last row: it sets what holds on (the rate, the speed)."""
        last = shape.reading(last_line) if rows else None
        start = 0
        for stop in _cuts(shape, rows):
            group = rows[start:stop]
            newest = last if stop == len(rows) else None
            if len(group) < _MIN_RUN or not self._columns(shape, group, newest):
                self._one_by_one(shape, group, newest)
            start = stop

    def _one_by_one(self, shape: Shape, rows: Sequence[Row], newest: Reading | None) -> None:
        readings = [shape.lean_reading(row) for row in rows]
        if newest is not None:
            readings[-1] = newest
        for reading in readings:
            if reading is not None:
                self._tracker.place(reading)

    def _columns(self, shape: Shape, rows: Sequence[Row], newest: Reading | None) -> bool:
        """Place many rows at once; False when their counters do not simply go on."""
        columns = list(zip(*rows, strict=True))
        loss, step, epoch = shape.column("loss"), _step_column(shape), shape.column("epoch")
        first, last = shape.lean_reading(rows[0]), newest or shape.lean_reading(rows[-1])
        if loss is None or first is None or last is None:
            return False
        counter = epoch if step is None else step
        try:
            values = array("d", map(float, columns[loss]))
            steps = None if counter is None else array("d", map(float, columns[counter]))
        except ValueError:
            return False
        if steps is not None and not _rises(steps, strictly=step is not None):
            return False
        if shape.template.bar and not all(map(ne, values, values[1:])):
            return False  # a value that stays may be one that was only drawn again
        return self._tracker.place_run(first, last, values, steps)


def _rises(values: array[float], *, strictly: bool) -> bool:
    return all(map(lt, values, values[1:])) if strictly else not any(b < a for a, b in pairwise(values))


def _rows(found: Sequence[bytes | Row]) -> list[Row]:
    """``findall`` gives bare strings where the expression has one group."""
    return [row if isinstance(row, tuple) else (row,) for row in found]


def _step_column(shape: Shape) -> int | None:
    column = shape.column("step")
    return shape.column("epoch_step") if column is None else column


def _cuts(shape: Shape, rows: Sequence[Row]) -> Iterator[int]:
    """Where runs of one epoch end, if steps are counted beside it; the end of the rows otherwise."""
    epoch = shape.column("epoch")
    if epoch is not None and _step_column(shape) is not None and rows and rows[0][epoch] != rows[-1][epoch]:
        yield from (index for index in range(1, len(rows)) if rows[index][epoch] != rows[index - 1][epoch])
    if rows:
        yield len(rows)
