"""Megabytes of whole lines through a learned shape; what does not fit it goes line by line."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import compress, pairwise
from operator import le, lt, ne
from typing import NamedTuple

from .facts import Fact
from .notices import Announcement
from .points import LineReading, Point
from .shape import PRINTED, Floats, LineShape, Read, columns_of, learn
from .thrift import LineChoice
from .tracker import Tracker

BLOCK = 1 << 17
_REMAINDER = BLOCK >> 3
"""What is left of a chunk goes with its last block, if it is as little: a few lines cost as much as a block."""
_CHECKED = 48
"""So many lines of a new shape are read both ways before it is trusted."""
_MAX_FAILURES = 4
"""Shapes that proved wrong before bulk reading is given up."""
_MIN_RUN = 16
"""Fewer lines in a row are placed one by one."""
_COMPARED_LINES = 64
"""So many lines read before are asked whether they share a new shape."""
_EVERY = 32
"""A line in so many is asked for its shape; in a log without a common one, ever fewer of them."""
_EVERY_AT_MOST = 512
_JUDGED_LINES = 256
"""A shape is judged by so many lines: in a trickle the few that do not fit may come first."""
Columns = Sequence[Sequence[bytes]]
"""Of lines that fit a shape: for each of its groups the texts of all lines. Empty where there are no lines."""


class Examined(NamedTuple):
    """What one line says before it is placed."""

    readings: Sequence[LineReading]
    phase: Announcement | None
    """The phase that the line announces."""
    line: str
    fact: Fact | None = None
    """What it says of the run as a whole."""
    claimed: bool = False
    """Whether a grammar has taken notice of it, though it may have no readings."""


NOTHING = Examined((), None, "")
SILENT = Examined((), None, "")
"""Of a line that was not read, since its kind never said anything."""


class BulkReader:
    """Reads blocks of whole lines for one tracker."""

    def __init__(
        self,
        tracker: Tracker,
        examine: Callable[[bytes], Examined],
        apply: Callable[[Examined], Sequence[Point]],
        read: Read,
        forget: Callable[[], None],
        interrupt: Callable[[], Sequence[Point]] = lambda: (),
        number: re.Pattern[str] = PRINTED,
    ) -> None:
        """``forget`` is called where lines were passed over, before the next is examined.

        ``interrupt`` is called where lines are read that were not examined; it returns the points of those before.

        ``number`` finds what may be other in the next line.
        """
        self._number = number
        self._forget = forget
        self._interrupt = interrupt
        self._tracker = tracker
        self._examine = examine
        self._apply = apply
        self._read = read
        self._shape: LineShape | None = None
        self._checked = 0
        self._failures = 0
        self._judged = self._fitted = 0
        self._unlearned = 0
        self._every = _EVERY
        self.choice = LineChoice()
        self._others: deque[bytes] = deque(maxlen=_COMPARED_LINES)
        self._floats = Floats()
        self._points: list[Point] = []

    def feed(self, lines: bytes) -> list[Point]:
        """What every line of ``lines`` says, in order."""
        self._points = []
        for part in self.choice.parts(lines):
            self._read_part(part)
        return self._points

    def _read_part(self, lines: bytes) -> None:
        position = 0
        while position < len(lines):
            whole = len(lines) - position <= BLOCK + _REMAINDER
            end = len(lines) if whole else lines.rfind(b"\n", position, position + BLOCK) + 1
            end = end if end > position else lines.find(b"\n", position) + 1 or len(lines)
            block, shape, position = lines[position:end], self._shape, end
            columns = _matched(shape.pattern, block) if shape is not None and self._checked >= _CHECKED else None
            if shape is None:
                self._learn(block)
            elif columns is not None:
                self._points += self._interrupt()
                self._place(shape, columns, block[block.rfind(b"\n", 0, -1) + 1 :].rstrip(b"\n"))
            else:
                self._mixed(shape, block)

    def _line(self, line: bytes) -> Examined:
        if self.choice.gap:
            self._forget()
            self.choice.gap = False
        examined = self._examine(line)
        self.choice.spend_on(line, silent=examined is SILENT)
        return examined

    def _learn(self, block: bytes) -> None:
        """The ordinary way, until a line is read whose shape many others share."""
        for line in self.choice.of(block):
            examined = self._line(line)
            self._points += self._apply(examined)
            self._others.append(line)
            self._unlearned += 1
            worth_it = any(reading.loss is not None for reading in examined.readings)
            if self._failures >= _MAX_FAILURES or self._unlearned < self._every or not worth_it:
                continue
            self._unlearned = 0
            shape = learn(line, self._read, self._number)
            if shape is None:
                continue
            rest = block[self.choice.position :]
            lines_like_it = shape.pattern.findall(b"\n".join(self._others) + b"\n" + rest)
            if 4 * len(lines_like_it) >= len(self._others) + rest.count(b"\n"):
                self._shape, self._checked, self._judged, self._fitted, self._every = shape, 0, 0, 0, _EVERY
                self._mixed(shape, rest)
                return
            self._every = min(2 * self._every, _EVERY_AT_MOST)

    def _mixed(self, shape: LineShape, block: bytes) -> None:
        """Runs of lines that fit, and the others between them."""
        run: list[Sequence[bytes]] = []
        last = b""
        position = fitted = 0
        for match in shape.pattern.finditer(block):
            for line in self.choice.of(block[position : match.start()]):
                other = self._line(line) if line else NOTHING
                if not (other.readings or other.claimed) and other.phase is None and other.fact is None:
                    continue  # it says nothing, and ends no run
                self._place(shape, list(zip(*run, strict=True)), last)
                run = []
                self._points += self._apply(other)
            if self._checked < _CHECKED and not self._check(shape, match.group()):
                self._place(shape, list(zip(*run, strict=True)), last)
                self._each(block[match.start() :])
                return
            if match.start() > position or not fitted:
                self._points += self._interrupt()
            last = match.group()
            run.append(match.groups())
            fitted += 1
            position = match.end() + 1
        self._place(shape, list(zip(*run, strict=True)), last)
        self._each(block[position:])
        self._fitted += fitted
        self._judged += block.count(b"\n")
        if self._judged >= _JUDGED_LINES:
            if self._fitted * 8 < self._judged:
                self._shape = None  # few lines have it
            self._judged = self._fitted = 0

    def _check(self, shape: LineShape, line: bytes) -> bool:
        """Read a line both ways; a difference ends the trust in the shape."""
        self._checked += 1
        readings = self._read(line.decode())
        if readings is not None and list(readings) == [shape.reading(line)]:
            return True
        self._shape = None
        self._failures += 1
        return False

    def _each(self, text: bytes) -> None:
        for line in self.choice.of(text):
            if line:
                self._points += self._apply(self._line(line))

    def _place(self, shape: LineShape, columns: Columns, last_line: bytes) -> None:
        """``last_line`` is the last of them: it sets what holds on (the rate, the speed)."""
        if not columns:
            return
        last, count, start = shape.reading(last_line), len(columns[0]), 0
        for stop in _cuts(shape, columns):
            group = columns if stop - start == count else [column[start:stop] for column in columns]
            newest, start = last if stop == count else None, stop
            undecided = self._undecided(shape, group)
            if undecided:
                self._place_rows(shape, [column[:undecided] for column in group], None)
                group = [column[undecided:] for column in group]
            if not group[0]:
                continue
            if len(group[0]) < _MIN_RUN:
                self._place_rows(shape, group, newest)
            elif shape.template.bar:
                self._place_frames(shape, group, newest)
            elif not self._at_once(shape, group, newest):
                self._place_rows(shape, group, newest)

    def _undecided(self, shape: LineShape, columns: Columns) -> int:
        """How many lines it takes until every value that turns out to be a metric has done so."""
        names, lines = self._tracker.names, 0
        for group, given in zip(("metrics", "eval_metrics"), names.given_to(shape.template), strict=True):
            for name, shown in given.items():
                column = shape.column(f"{group}.{name}") if names.keeps_back(shown) else None
                if column is not None:
                    with suppress(ValueError):
                        lines = max(lines, names.decided_after(shown, self._floats.of(columns[column])))
        return lines

    def _place_frames(self, shape: LineShape, columns: Columns, last: LineReading | None) -> None:
        """Place the frames of a bar; one that goes on and repeats the loss of the frame before says nothing new.

        The first shows whether this is another drawing, the last where the bar stands.
        """
        counter, loss = _step_column(shape), shape.column("loss")
        try:
            steps = _counts(columns[counter]) if counter is not None else []
        except ValueError:
            steps = []
        if loss is None or shape.template.eval_metrics or not steps or not all(map(lt, steps, steps[1:])):
            self._place_rows(shape, columns, last)
            return
        self._place_rows(shape, [column[:1] for column in columns], None)
        anew = [*map(ne, columns[loss][:-2], columns[loss][1:-1])]
        between = [[*compress(column[1:-1], anew)] for column in columns]
        if between[0] and not self._at_once(shape, between, None):
            self._place_rows(shape, between, None)
        self._place_rows(shape, [column[-1:] for column in columns], last)

    def _place_rows(self, shape: LineShape, columns: Columns, last: LineReading | None) -> None:
        """Place lines one by one; ``last`` is the reading of the last of them, if that is known."""
        if self.choice.exhausted:
            self.choice.pass_over(len(columns[0]) - 1)
            columns = [column[-1:] for column in columns]
        readings = [shape.row_reading(row) for row in zip(*columns, strict=True)]
        if last is not None:
            readings[-1] = last
        self.choice.spend(len(readings))
        for reading in readings:
            if reading is not None:
                point = self._tracker.place(reading)
                self._points += self._tracker.take_late()
                self._points += () if point is None else (point,)

    def _at_once(self, shape: LineShape, columns: Columns, last: LineReading | None) -> bool:
        """Place many lines at once; False when their counters do not simply go on."""
        loss, step, epoch = shape.column("loss"), _step_column(shape), shape.column("epoch")
        first = shape.row_reading([column[0] for column in columns])
        last = last or shape.row_reading([column[-1] for column in columns])
        if loss is None or first is None or last is None:
            return False
        counter = epoch if step is None else step
        try:
            told = self._floats.all_of(shape, columns)
            values = told.get("loss") or self._floats.of(columns[loss])
            steps = None if counter is None else _counts(columns[counter])
        except ValueError:
            return False
        if steps is not None and not all(map(le if step is None else lt, steps, steps[1:])):
            return False
        if shape.template.bar and not all(map(ne, values, values[1:])):
            return False  # a value that stays may be one that was only drawn again
        newest = self._tracker.place_run(first, last, values, steps)
        if newest is None:
            return False
        self._points += self._tracker.take_late()
        train, evaluated = self._tracker.names.given_to(last)
        shown = {f"metrics.{name}": train[name] for name in train} | {
            f"eval_metrics.{name}": evaluated[name] for name in evaluated
        }
        told = {shown.get(field, field): column for field, column in told.items()}
        self._points.append(columns_of(newest, values, None if step is None else steps, told))
        return True


def _counts(column: Sequence[bytes]) -> Sequence[float]:
    """Counters are whole as a rule, and whole numbers are read twice as fast."""
    try:
        return list(map(int, column))
    except ValueError:
        return list(map(float, column))


def _matched(pattern: re.Pattern[bytes], block: bytes) -> Columns | None:
    """The groups as columns, where all lines match: cheaper than a tuple for each line, turned round afterwards."""
    parts, every = pattern.split(block), pattern.groups + 1
    ends = parts[every::every]
    if parts[0] or ends.count(b"\n") != len(ends):
        return None
    return [parts[group::every] for group in range(1, every)]


def _step_column(shape: LineShape) -> int | None:
    column = shape.column("step")
    return shape.column("epoch_step") if column is None else column


def _cuts(shape: LineShape, columns: Columns) -> Iterator[int]:
    """Where runs of one epoch end, if steps are counted beside it; the end of the lines otherwise."""
    epoch = shape.column("epoch")
    if epoch is not None and _step_column(shape) is not None and columns[epoch][0] != columns[epoch][-1]:
        yield from (at for at, (one, other) in enumerate(pairwise(columns[epoch]), 1) if one != other)
    yield len(columns[0])
