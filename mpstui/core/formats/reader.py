"""The reader of training logs: bytes in, points out, whatever program wrote them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .bars import find_bars
from .bulk import BulkReader
from .console import PENDING_LIMIT, Frame, FrameSplitter
from .encodings import decode_line
from .escapes import strip_controls
from .grammars import Grammar, all_grammars
from .phases import announced
from .points import MetricPoint, ParsedLog, Reading
from .prefixes import strip_prefix
from .tracker import Tracker

_WORTH_A_LOOK = re.compile(r"[0-9]|oss|----|nan|inf|NaN|Inf|_mem|/ ")
_OTHER_RANK = re.compile(r"^\s*(?:\[(?:rank|Rank|default) ?([1-9]\d{0,4})\]:?|rank ([1-9]\d{0,4}):)")
_FIRST_RANK = re.compile(r"^\s*(?:\[(?:rank|Rank|default) ?0\]:?|rank 0:)")
_FOREIGN = ("wandb:",)
_TRAILING_NUMBER = re.compile(r"(\d)(\.\d+)?\Z")
_WORTH_BULK = 1 << 15
MAX_LINE = 16384
"""Characters of a frame that are read; what real programs print on one line is far shorter."""


class LogReader:
    """Follows one log: ``feed`` bytes as they arrive, in chunks of any size, and get the points they complete.

    Holds no text beyond an unfinished line (64 KB at most); state is bounded whatever the log's length. The points do
    not depend on how the bytes were cut. Not thread-safe.
    """

    def __init__(self, grammars: Callable[[], list[Grammar]] = all_grammars) -> None:
        """``grammars`` makes a fresh set: with a declared one in front, ``lambda: [Declared(pattern), *all_grammars()]``."""
        self._splitter = FrameSplitter()
        self._grammars = grammars()
        self._probes = grammars()
        self._latest = ""
        self._tracker = Tracker()
        self._rank0 = False
        self._decimals = -1
        self._bulk = BulkReader(self._tracker, self._raw_line, self._pure)

    def feed(self, data: bytes) -> list[MetricPoint]:
        """The points that ``data`` completes, in order."""
        points: list[MetricPoint] = []
        for frame in self._splitter.feed(data):
            self._frame(frame, points)
        return points

    def skim(self, data: bytes) -> None:
        """Like ``feed`` for who wants the summary and the loss history alone: many times as fast on large pieces."""
        taken = self._splitter.take_whole_lines(data) if len(data) >= _WORTH_BULK else None
        if taken is None:
            self.feed(data)
            return
        whole, rest = taken
        self._bulk.feed(whole)
        self.feed(rest)

    def close(self) -> list[MetricPoint]:
        """The points of an unfinished last line, if it cannot be the half of one."""
        points: list[MetricPoint] = []
        for frame in self._splitter.close():
            if frame.ends_line or self._looks_whole(strip_controls(frame.text).rstrip()):
                self._frame(frame, points)
        return points

    @property
    def primary(self) -> str | None:
        """The name of the loss series to chart (`MetricPoint.series`); may change while several are told apart."""
        series = self._tracker.primary
        return None if series is None else series.name

    def summary(self) -> ParsedLog:
        """What the log says so far, of its newest run."""
        return self._tracker.summary()

    def _raw_line(self, line: bytes) -> None:
        """A whole line without control characters, read for its effect on the state."""
        self._frame(Frame(decode_line(line), ends_line=True, cut=len(line) > PENDING_LIMIT), [])

    def _pure(self, line: str) -> Sequence[Reading] | None:
        """What a line says by itself, asked of grammars that have seen nothing else; None when it may depend."""
        if "%|" in line or not line.isascii() or self._is_foreign(line):
            return None
        stripped = strip_prefix(strip_controls(line))
        readings = _first_reading(self._probes, stripped) if stripped else None
        if readings is None or any(reading.grammar != self._latest for reading in readings):
            return None
        return readings

    def _frame(self, frame: Frame, points: list[MetricPoint]) -> None:
        if frame.cut:
            return
        text = frame.text if len(frame.text) <= MAX_LINE else frame.text[:MAX_LINE]
        text = strip_controls(text)
        if not text or text.isspace():
            return
        if "%|" in text:
            text = self._bars(text, points)
        self._line(text, points)

    def _bars(self, text: str, points: list[MetricPoint]) -> str:
        """Read the bars of a frame and return the text between and behind them."""
        rest: list[str] = []
        position = 0
        for frame in find_bars(text):
            position = frame.end
            for grammar in self._grammars:
                reading = grammar.read_bar(frame)
                if reading is not None:
                    self._place(reading, points)
                    break
        rest.append(text[position:])
        return " ".join(rest)

    def _line(self, text: str, points: list[MetricPoint]) -> None:
        if self._is_foreign(text):
            return
        line = strip_prefix(text)
        if not line:
            return
        readings = _first_reading(self._grammars, line) if _WORTH_A_LOOK.search(line) else None
        if readings is None:
            phase = announced(line)
            if phase is not None:
                self._tracker.banner(phase)
            return
        for reading in readings:
            self._place(reading, points)
            if reading.loss is not None:
                self._latest = reading.grammar
                self._decimals = _decimals(line)

    def _place(self, reading: Reading, points: list[MetricPoint]) -> None:
        point = self._tracker.place(reading)
        if point is not None:
            points.append(point)

    def _is_foreign(self, text: str) -> bool:
        """Footers of other tools, and what ranks other than the first repeat."""
        if text.lstrip().startswith(_FOREIGN):
            return True
        if "ank" not in text[:40] and "default" not in text[:40]:
            return False
        if _FIRST_RANK.match(text):
            self._rank0 = True
        return self._rank0 and _OTHER_RANK.match(text) is not None

    def _looks_whole(self, text: str) -> bool:
        """Whether an unterminated line is complete: it ends like a record, or with as many decimals as the last one."""
        if text.endswith(("]", "}", ")", "%")):
            return True
        if not _TRAILING_NUMBER.search(text):
            return False
        return self._decimals > 0 and _decimals(text) >= self._decimals


def _first_reading(grammars: Sequence[Grammar], line: str) -> Sequence[Reading] | None:
    """The answer of the first grammar that claims the line."""
    for grammar in grammars:
        needles = grammar.needles
        if needles and not any(needle in line for needle in needles):
            continue
        readings = grammar.read(line)
        if readings is not None:
            return readings
    return None


def _decimals(line: str) -> int:
    match = _TRAILING_NUMBER.search(line.rstrip())
    return -1 if match is None else len(match[2] or "") - 1
