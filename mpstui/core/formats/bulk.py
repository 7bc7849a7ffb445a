"""Lines of learned shapes, read many times faster than the rest, which is read line by line.

A log repeats a few shapes of lines, in any order: a loss, the outputs of the networks, a learning rate, a time. A shape
is learned (`shape.py`) once enough lines look alike, then compared with the ordinary reading for a while, then trusted.
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
"""A remainder of a chunk up to this size joins its last block: a few lines cost as much as a block."""
_CHECKED = 48
"""The number of lines of a new shape that are read both ways before it is trusted."""
_MAX_FAILURES = 16
"""The number of shapes that may prove wrong before no more are learned."""
_ALIKE = 8
"""The number of lines that look alike before a shape is learned from one, and between further attempts."""
_MOST_SHAPES = 16
_MOST_LOOKS = 1 << 12
_EVERY, _EVERY_AT_MOST = 8, 512
"""A shape is learned from at most one line in this many; the interval doubles while what is learned is of no use."""
_NUMBERS = re.compile(rb"[0-9][0-9.,]{0,40}+(?:[eE][-+]?[0-9]{1,4})?")
_LONGEST = 2000


class Examined(NamedTuple):
    """What one line says, before it is placed."""

    readings: Sequence[LineReading]
    phase: Announcement | None
    """The phase that the line announces."""
    line: str
    fact: Fact | None = None
    """What the line says about the run as a whole."""
    claimed: bool = False
    """True if a grammar has claimed the line, though it may have no readings."""
    earlier: int = 0
    """How many of the readings come from lines above that were waiting for this one."""
    held_back: Sequence[LineReading] = ()
    """What the line says if the next one is not like it; until then it waits."""


NOTHING = Examined((), None, "")


class Reading(NamedTuple):
    """The functions by which the lines of one log are read."""

    examine: Callable[[bytes], Examined]
    apply: Callable[[Examined], Sequence[Point]]
    """Places what was examined in its run."""
    alone: Read
    """What a line says by itself, whatever is above it; None if it depends on that."""
    forget: Callable[[], None] = lambda: None
    """Called when lines were passed over: drop what they may have begun before the next line is examined."""
    is_silent: Callable[[bytes], bool] = lambda line: False
    """True if a line need not be read because its kind has never said anything."""
    is_settled: Callable[[], bool] = lambda: True
    """True if no line above the next one changes what it says."""
    is_waiting: Callable[[], bool] = lambda: False
    """True if lines are waiting for others like them."""
    follow: Callable[[Sequence[tuple[LineShape, bytes]]], None] = lambda lines: None
    """Notes lines that were read by their shape instead of being examined."""
    unlike: Callable[[], str] = lambda: ""
    """A beginning that makes a line say more than others of its shape."""
    number: re.Pattern[str] = PRINTED
    """Finds what may differ in the next line."""


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
        """How many lines have this look, that is, are the same but for their numbers."""
        self._failures = self._unlearned = 0
        self._every = _EVERY
        self._hits: dict[LineShape, int] = {}
        self._then: dict[LineShape | None, LineShape] = {}
        """The shape that last followed each shape."""
        self._latest: LineShape | None = None

    def match(self, line: bytes) -> tuple[LineShape, re.Match[bytes]] | None:
        """Return the trusted shape that fits a line and its match, or None."""
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
        """Learn from an examined line whose meaning did not depend on the lines above."""
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
                    # The shape last learned from this look has fitted no line since. Learning one each time, which
                    # costs as much as a hundred lines, took two thirds of the time on logs of long lines.
                    self._looks[look] = -_ALIKE * self._every
                else:
                    self._learn(line, look, waits=bool(examined.held_back))

    def doubt(self, line: bytes, examined: Examined) -> None:
        """Drop a trusted shape whose lines wait for others like them if this one, when examined, did not wait."""
        found = self.match(line)
        if found is not None and found[0].waits_as and not examined.held_back:
            self.trusted.remove(found[0])
            self._then.clear()

    def _learn(self, line: bytes, look: bytes, *, waits: bool) -> None:
        self._unlearned = 0
        shape = learn(line, self._how.alone, self._how.number, self._how.unlike())
        if shape is None:
            self._every = min(2 * self._every, _EVERY_AT_MOST)
            self._looks[look] = -8 * self._every  # other looks get their turn first
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
        """The shape that all lines of the last block had, if there was only one."""

    def feed(self, lines: bytes) -> list[Point]:
        """Return what all ``lines`` say, in order."""
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
        """Read a block that mixes lines of several shapes with lines of none."""
        run: list[tuple[LineShape, re.Match[bytes]]] = []
        how, match, lines = self._how, self._shapes.match, block.split(b"\n")
        ready = how.is_settled() and not how.is_waiting()
        self.choice.earn(len(block))
        for at, line in enumerate(lines):
            found = match(line) if ready else None
            if found is not None:
                waiting = run[-1][0].waits_as if run else b""
                if not waiting or (waiting != found[0].waits_as and not found[0].template.bar):  # waits on past a bar
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
        """Examine one line, learn from it and place it."""
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
        """Place lines of trusted shapes; if the last one waits for others like it, examine it instead."""
        waiting = run.pop()[1].string if run and run[-1][0].waits_as else None
        if run:
            self._how.follow([(shape, match.string) for shape, match in run])
            self._placer.place_run(run)
        if waiting is not None:
            self._other(waiting, trusted=True)


def _matched(pattern: re.Pattern[bytes], block: bytes) -> Columns | None:
    """Return the groups as columns if every line matches: cheaper than a tuple per line, transposed afterwards."""
    parts, every = pattern.split(block), pattern.groups + 1
    ends = parts[every::every]
    if parts[0] or ends.count(b"\n") != len(ends):
        return None
    return [parts[group::every] for group in range(1, every)]
