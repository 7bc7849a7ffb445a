"""Lines of learned shapes, read many times as fast as others; what fits none of them goes line by line.

A log repeats a few shapes of lines, in any order: a loss, what the networks put out, a learning rate, a time. Each is
learned (`shape.py`) once enough lines look alike, compared with the ordinary reading for a while, and trusted then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from .columns import Columns
from .facts import Fact
from .notices import Announcement
from .placing import Placer
from .points import LineReading, Point
from .shape import PRINTED, LineShape, Read, learn
from .thrift import LineChoice
from .tracker import Tracker

BLOCK = 1 << 17
_REMAINDER = BLOCK >> 3
"""What is left of a chunk goes with its last block, if it is as little: a few lines cost as much as a block."""
_CHECKED = 48
"""So many lines of a new shape are read both ways before it is trusted."""
_MAX_FAILURES = 16
"""Shapes that proved wrong before no other is learned."""
_ALIKE = 8
"""So many lines that look alike are worth a shape; as often again, if they have none by then."""
_MOST_SHAPES = 16
_MOST_LOOKS = 1 << 12
_EVERY, _EVERY_AT_MOST = 8, 512
"""A shape is learned from one line in so many at most, of ever fewer where what is learned is of no use."""
_NUMBERS = re.compile(rb"[0-9][0-9.,]{0,40}+(?:[eE][-+]?[0-9]{1,4})?")
_LONGEST = 2000


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
    earlier: int = 0
    """How many of the readings are those of lines above, which have waited for this one."""
    held_back: Sequence[LineReading] = ()
    """What the line says if the next is not like it: until then it waits."""


NOTHING = Examined((), None, "")


class Reading(NamedTuple):
    """How the lines of one log are read."""

    examine: Callable[[bytes], Examined]
    apply: Callable[[Examined], Sequence[Point]]
    """Places what was examined."""
    alone: Read
    """What a line says by itself, whatever stands above it; None when that depends."""
    forget: Callable[[], None] = lambda: None
    """Lines were passed over: what they may have begun is to be forgotten before the next is examined."""
    is_silent: Callable[[bytes], bool] = lambda line: False
    """Whether a line need not be read, since its kind never said anything."""
    is_settled: Callable[[], bool] = lambda: True
    """Whether no line above the next one changes what that says."""
    is_waiting: Callable[[], bool] = lambda: False
    """Whether lines wait for others like them."""
    follow: Callable[[Sequence[tuple[LineShape, bytes]]], None] = lambda lines: None
    """Takes note of lines that were read by their shape and not examined."""
    unlike: Callable[[], str] = lambda: ""
    """What begins so says more than others of its shape."""
    number: re.Pattern[str] = PRINTED
    """Finds what may be other in the next line."""


class _Candidate:
    """A shape that is not trusted yet."""

    def __init__(self, shape: LineShape, look: bytes) -> None:
        self.shape, self.look, self.agreed = shape, look, 0


class Shapes:
    """The shapes of one log's lines."""

    def __init__(self, how: Reading) -> None:
        self._how = how
        self.trusted: list[LineShape] = []
        self._candidates: list[_Candidate] = []
        self._looks: dict[bytes, int] = {}
        """How many lines look like this, numbers aside."""
        self._failures = self._unlearned = 0
        self._every = _EVERY
        self._hits: dict[LineShape, int] = {}
        self._then: dict[LineShape | None, LineShape] = {}
        """The shape that came behind each the last time."""
        self._latest: LineShape | None = None

    def match(self, line: bytes) -> tuple[LineShape, re.Match[bytes]] | None:
        """The trusted shape that a line has, if any."""
        expected = self._then.get(self._latest)
        if expected is not None and (match := expected.pattern.match(line)):
            self._latest = expected
            return expected, match
        for shape in self.trusted:
            if match := shape.pattern.match(line):
                self._then[self._latest] = self._latest = shape
                self._hits[shape] += 1
                return shape, match
        return None

    def compare(self, line: bytes, examined: Examined) -> None:
        """Learn from a line that was examined where nothing above changed what it says."""
        plain = examined.phase is None and examined.fact is None
        own = [*(examined.held_back or examined.readings[examined.earlier :])]
        for candidate in self._candidates:
            if match := candidate.shape.pattern.match(line):
                alike = bool(candidate.shape.waits_as) == bool(examined.held_back)
                if plain and alike and own == [candidate.shape.row_reading(match.groups())]:
                    candidate.agreed += 1
                    if candidate.agreed >= _CHECKED:
                        self._trust(candidate)
                else:
                    self._discard(candidate)
                return
        self._unlearned += 1
        if plain and len(own) == 1 and self._failures < _MAX_FAILURES and len(line) <= _LONGEST:
            look = _NUMBERS.sub(b"#", line)
            if len(self._looks) >= _MOST_LOOKS:
                self._looks.clear()
            times = self._looks[look] = self._looks.get(look, 0) + 1
            if times > 0 and times % _ALIKE == 0 and self._unlearned >= self._every:
                if any(one.look == look and not one.agreed for one in self._candidates):
                    # What was learned of such a line fits none of those since. To learn it anew each time, at the cost
                    # of a hundred lines, was two thirds of the time of logs of long lines.
                    self._looks[look] = -_ALIKE * self._every
                else:
                    self._learn(line, look, waits=bool(examined.held_back))

    def doubt(self, line: bytes, examined: Examined) -> None:
        """A line of a trusted shape that waits for others like it was examined: does it still?"""
        found = self.match(line)
        if found is not None and found[0].waits_as and not examined.held_back:
            self.trusted.remove(found[0])
            self._then.clear()

    def _learn(self, line: bytes, look: bytes, *, waits: bool) -> None:
        self._unlearned = 0
        shape = learn(line, self._how.alone, self._how.number, self._how.unlike())
        if shape is None:
            self._every = min(2 * self._every, _EVERY_AT_MOST)
            self._looks[look] = -8 * self._every  # others first
            return
        if len(self._candidates) >= _MOST_SHAPES:
            self._every = min(2 * self._every, _EVERY_AT_MOST)
            self._candidates.pop(0)
        shape = replace(shape, waits_as=look.translate(None, b"+-# ")) if waits else shape
        self._candidates.append(_Candidate(shape, look))

    def _discard(self, candidate: _Candidate) -> None:
        self._failures += 1
        self._candidates.remove(candidate)
        self._looks[candidate.look] = -(1 << 60)

    def _trust(self, candidate: _Candidate) -> None:
        self._candidates.remove(candidate)
        self._every = _EVERY
        if len(self.trusted) >= _MOST_SHAPES:
            self.trusted.remove(min(self.trusted, key=self._hits.__getitem__))
            self._then.clear()
        self.trusted.append(candidate.shape)
        self._hits[candidate.shape] = 0


class BulkReader:
    """Reads blocks of whole lines for one tracker."""

    def __init__(self, tracker: Tracker, how: Reading) -> None:
        self.choice = LineChoice()
        self._how = how
        self._shapes = Shapes(how)
        self._placer = Placer(tracker, self.choice)
        self._only: LineShape | None = None
        """The one shape that all lines of the last block had."""

    def feed(self, lines: bytes) -> list[Point]:
        """What every line of ``lines`` says, in order."""
        self._placer.points = []
        for part in self.choice.parts(lines):
            self._read_part(part)
        return self._placer.points

    def _read_part(self, lines: bytes) -> None:
        position = 0
        while position < len(lines):
            whole = len(lines) - position <= BLOCK + _REMAINDER
            end = len(lines) if whole else lines.rfind(b"\n", position, position + BLOCK) + 1
            end = end if end > position else lines.find(b"\n", position) + 1 or len(lines)
            block, position = lines[position:end], end
            shape = self._only if self._how.is_settled() else None
            columns = None if shape is None else _matched(shape.pattern, block)
            if shape is not None and columns is not None:
                self._how.follow([(shape, block[block.rfind(b"\n", 0, -1) + 1 :].rstrip(b"\n"))])
                self._placer.place(shape, columns)
            else:
                self._mixed(block)

    def _mixed(self, block: bytes) -> None:
        """Lines of any shapes, and the others between them."""
        run: list[tuple[LineShape, re.Match[bytes]]] = []
        how, match, lines = self._how, self._shapes.match, block.split(b"\n")
        ready = how.is_settled() and not how.is_waiting()
        self.choice.earn(len(block))
        for at, line in enumerate(lines):
            found = match(line) if ready else None
            if found is not None:
                waiting = run[-1][0].waits_as if run else b""
                if not waiting or (waiting != found[0].waits_as and not found[0].template.bar):  # a bar lets it wait on
                    run.append(found)
                    continue
            elif not line:
                continue
            elif how.is_silent(line):
                self.choice.spend_on(line, silent=True)
                continue
            self._place(run)
            run = []
            if self.choice.exhausted:
                self.choice.pass_over(len(lines) - at - (not lines[-1]))
                return
            self._other(line, trusted=found is not None)
            ready = how.is_settled() and not how.is_waiting()
        kinds = {shape for shape, _ in run} if len(run) == len(lines) - 1 else ()
        self._only = next((shape for shape in kinds if len(kinds) == 1 and shape.targets), None)
        self._place(run)

    def _other(self, line: bytes, *, trusted: bool = False) -> None:
        """A line that has to be examined."""
        if self.choice.gap:
            self._how.forget()
            self.choice.gap = False
        settled = self._how.is_settled()
        examined = self._how.examine(line)
        self.choice.spend_on(line, silent=False)
        if settled:
            (self._shapes.doubt if trusted else self._shapes.compare)(line, examined)
        self._placer.points += self._how.apply(examined)

    def _place(self, run: list[tuple[LineShape, re.Match[bytes]]]) -> None:
        """Lines of trusted shapes; a last one that waits for others like it is examined."""
        waiting = run.pop()[1].string if run and run[-1][0].waits_as else None
        if run:
            self._how.follow([(shape, match.string) for shape, match in run])
            self._placer.place_run(run)
        if waiting is not None:
            self._other(waiting, trusted=True)


def _matched(pattern: re.Pattern[bytes], block: bytes) -> Columns | None:
    """The groups as columns, where all lines match: cheaper than a tuple for each line, turned round afterwards."""
    parts, every = pattern.split(block), pattern.groups + 1
    ends = parts[every::every]
    if parts[0] or ends.count(b"\n") != len(ends):
        return None
    return [parts[group::every] for group in range(1, every)]
