"""The log reader: the bytes of any program's training log in, metric points out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from .bars import find_bars, is_drawn
from .bulk import NOTHING, BulkReader, Examined, Reading
from .console import PENDING_LIMIT, FrameSplitter, decode_line, strip_controls
from .counted import CountedLines
from .facts import Facts, Openings
from .followed import FollowedLines, text_of
from .grammars import LineGrammar, all_grammars
from .notices import SizesOfSets, SourceLines, announced, is_failure, is_heading, is_warning, strip_prefix, with_end
from .points import LineReading, MetricPoint, Number, ParsedLog, Phase, Point, Standing
from .prose import Prose, is_prose
from .settings import Options, is_placed
from .shape import LineShape
from .thrift import SilentKinds, kind_of, passed_over
from .tracker import Tracker

_WORTH_A_LOOK = re.compile(
    r"[0-9]|oss|total|AP|----|╰─|nan|inf|NaN|Inf|_mem|/ |\A(?:[Ee]pisode|[Gg]en(?:eration)?)\b|"
    r"\S {2,40}\S{1,40} {2,40}\S|[|] {0,40}(?:[Mm]ean|[Aa]vg)\b"
)
_OTHER_RANK = re.compile(r"^\s*(?:\[(?:rank|Rank|default) ?([1-9]\d{0,4})\]:?|rank ([1-9]\d{0,4}):)")
_FIRST_RANK = re.compile(r"^\s*(?:\[(?:rank|Rank|default) ?0\]:?|rank 0:)")
_REQUEST = re.compile(r"\b(?:GET|POST|PUT|HEAD|DELETE|PATCH) \S{1,200} HTTP/\d")
_EVERY_LINE = ("",)
_EXPONENT = re.compile(r"\d[eE][-+]\d\d\Z")
_WHOLE_SENTENCE = re.compile(r"\d\.\d{1,20}\.\Z")
_NUMBERS = re.compile(r"(?<![\w.])\d[\d.]{0,30}")
_TRAILING_NUMBER = re.compile(r"(\d)(\.\d+)?\Z")
MAX_LINE = 16384
"""Characters of a frame that are read; real programs print far shorter lines."""


class LogReader:
    """Follows one log: ``feed`` it bytes as they arrive, in chunks of any size; it returns the points they complete.

    Buffers no text beyond an unfinished line (64 KB at most); its state is bounded however long the log is. The points
    do not depend on how the bytes are split into chunks. Not thread-safe.
    """

    def __init__(
        self,
        grammars: Callable[[], list[LineGrammar]] = all_grammars,
        *,
        from_zero: bool = False,
        steps: int | None = None,
        epoch_length: Number | None = None,
    ) -> None:
        """Create a reader for one log.

        Args:
            grammars: returns a fresh set; a profile's pattern goes first: ``[Declared(pattern), *all_grammars()]``.
            from_zero: an earlier log of the same training numbered its epochs from 0.
            steps: total steps of the run, if known from elsewhere.
            epoch_length: steps per epoch in an earlier log that restarted its step count with each epoch.
        """
        self.failure: str | None = None
        """The first grammar that raised an exception, and the exception; that grammar is not used again."""
        self._splitter = FrameSplitter()
        self._all_grammars = grammars
        self._broken: set[type[LineGrammar]] = set()
        self._grammars: list[LineGrammar]
        self._probes = grammars()
        self._bar_probes = _bar_readers(self._probes)
        self._tracker = Tracker(from_zero=from_zero, steps=steps, epoch_length=epoch_length)
        self._options, self._prose = Options(self._tracker.names.options), Prose()
        self._sizes, self._counted = SizesOfSets(), CountedLines(self._general)
        self._forget()
        self._rank0 = False
        self._facts, self._openings = Facts(), Openings()
        self._like = ""
        """The newest line with a loss."""
        self._decimals = -1
        self._exponent = False
        self._silent = SilentKinds()
        self._too_long = 0
        self._bulk = BulkReader(
            self._tracker,
            Reading(
                self._examine_line,
                self._apply,
                self._alone,
                self._forget,
                self._is_silent,
                lambda: self._is_settled,
                lambda: not self._counted.at_rest,
                self._follow,
                lambda: self._openings.first or "",
            ),
        )

    def feed(self, data: bytes) -> list[MetricPoint]:
        """Return the points that ``data`` completes, in order."""
        return self._each(self._splitter.feed(data))

    def take(self, data: bytes) -> list[Point]:
        """Like ``feed`` but many times faster on large chunks: lines of one shape are returned as columns."""
        return self._bulk.feed(self._splitter.feed(data))

    def close(self) -> list[MetricPoint]:
        """Return the points still pending, and those of an unfinished last line unless it may have been cut short."""
        frames, last = self._splitter.close()
        points = self._each(frames)
        text = strip_controls(decode_line(last)).rstrip()
        # A complete line ends like a record, or with as many decimals as the last one.
        like_the_last = 0 < self._decimals <= _decimals(text) or (self._exponent and _EXPONENT.search(text[-5:]))
        like_the_last = like_the_last and len(_NUMBERS.findall(strip_prefix(text))) >= len(_NUMBERS.findall(self._like))
        if text.endswith(("]", "}", ")", "%")) or like_the_last or _WHOLE_SENTENCE.search(text[-40:]):
            points += self._apply(self._examine_line(last))
        points += self._interrupt()
        self._tracker.end()
        return [*points, *self._tracker.take_late()]

    def _each(self, frames: bytes) -> list[MetricPoint]:
        return [point for line in frames.split(b"\n") for point in self._apply(self._examine_line(line))]

    @property
    def primary(self) -> str | None:
        """The name of the loss series to chart (`MetricPoint.series`). It may change while rival series are compared,
        and is empty if none of them is the main one."""
        return self._tracker.primary

    @property
    def epoch_length(self) -> Number | None:
        """Steps per epoch as observed, if the step count restarts with each epoch and no line gives a total."""
        return self._tracker.epoch_length

    def summary(self) -> ParsedLog:
        """Return a summary of the newest run in the log so far."""
        return replace(self._tracker.summary(), read_in_part=self.in_part)

    @property
    def in_part(self) -> str | None:
        """What was not read of the log, in words; None if everything was."""
        parts = [self.failure, passed_over(self._bulk.choice.passed_over, self._too_long + self._splitter.too_long)]
        return "; ".join(filter(None, parts)) or None

    @property
    def standing(self) -> Standing:
        """The state of the newest run as a whole."""
        return self._tracker.standing

    def _examine_line(self, line: bytes) -> Examined:
        """Return what a frame says, without placing it in a run."""
        if not line or len(line) > PENDING_LIMIT:
            self._too_long += bool(line)
            return NOTHING
        if self._is_silent(line):
            return NOTHING
        self._show_followed()
        examined, at_rest = self._examine(decode_line(line)), self._at_rest
        silent = not examined.readings and examined.phase is None and examined.fact is None and not examined.claimed
        self._silent.note(kind_of(line), silent=silent and at_rest and self._at_rest)
        return examined

    def _is_silent(self, line: bytes) -> bool:
        return self._at_rest and self._silent.has(kind_of(line))

    @property
    def _at_rest(self) -> bool:
        """True if none of the lines so far changes the meaning of the next one."""
        return self._facts.at_rest and not self._source.left and not self._prose.goes_on

    @property
    def _is_settled(self) -> bool:
        """True if the next line can be read by itself, unless lines like it are waiting."""
        if any(grammar.is_open for grammar in self._opening):
            return False
        return self._at_rest and self._prose.at_rest and not self._options.has_words

    def _alone(self, line: str) -> Sequence[LineReading] | None:
        """Read a line without context, with grammars that have seen no other; None if its meaning may depend on it."""
        if self._is_foreign(line) or (not self._rank0 and _OTHER_RANK.match(line)):
            return None
        if is_drawn(line):
            drawn: list[LineReading] = []
            return None if self._bars(line, drawn, self._bar_probes).strip() else drawn
        stripped = strip_prefix(strip_controls(line))
        memories = [dict(vars(grammar)) for grammar in self._probes]
        readings = self._read_line(self._probes, stripped) if stripped and not is_prose(stripped) else None
        if not readings:
            return readings
        for grammar, memory in zip(self._probes, memories, strict=True):
            if grammar.name == readings[0].grammar and vars(grammar) != memory:
                fresh = type(grammar)()
                fresh.read(stripped)
                if vars(fresh) != vars(grammar):
                    return None  # the grammar remembers more than the newest line of this kind
        readings, waits = self._counted.alone(stripped, readings)
        if waits or not any(map(is_placed, readings)):
            told = Options(set())
            told.read(stripped, readings, placed=False)
            begins = stripped == line.rstrip() and self._openings.first is not None
            if told.has_words or (not begins and self._openings.may_be_first(stripped)):
                return None
        return readings

    def _follow(self, lines: Sequence[tuple[LineShape, bytes]]) -> None:
        """Take note of lines that were read by their shape."""
        self._followed.take(lines)
        if self._followed.are_many:
            self._show_followed()
        loss = next(((shape, line) for shape, line in reversed(lines) if shape.template.loss is not None), None)
        if loss is not None:
            self._note_loss(loss[0].template, text_of(loss[1]))

    def _show_followed(self) -> None:
        """Show lines that were read by their shape to the parts that keep state from line to line."""
        self._followed.show(
            self._options, self._openings, self._grammars, lambda one, line: self._read_line([one], line)
        )

    def _examine(self, text: str) -> Examined:
        if len(text) > MAX_LINE:
            text = text[:MAX_LINE].rpartition(" ")[0]  # never cut a number in half
        text = strip_controls(text)
        if not text or text.isspace():
            return NOTHING
        readings: list[LineReading] = []
        drawn = is_drawn(text)
        if drawn:
            text = self._bars(text, readings, self._bar_grammars)
            self._prose.interrupt()
        if self._source.covers(text):
            return Examined(readings, None, "", claimed=drawn)
        text = self._source.before_warning(text)
        line = strip_prefix(text)
        fact = self._facts.read(text, line)
        if self._is_foreign(text):
            return Examined(readings, None, "", fact, claimed=drawn)
        found = self._read_line(self._grammars, line) if line and _WORTH_A_LOOK.search(line) else None
        found = self._counted.as_meant(line, found)
        earlier, held_back = self._counted.earlier, self._counted.held_back
        found = self._options.as_meant(line, found)
        found = self._prose.read(line, found)
        if fact is not None and fact.device and self._prose.goes_on:
            fact = fact._replace(device="")  # source code: ``torch.device("cuda:0")``
        claimed = found is not None or drawn
        placed = drawn or (found is not None and any(map(is_placed, found)))
        # A line that a grammar claims without a reading belongs to a record that it is still collecting.
        self._options.read(line, found or (), placed=placed or found == ())
        if not placed:
            fact = self._openings.note(line, fact)
        if found is None or is_warning(text, line, found):
            listed = self._sizes.read(line)
            phase = announced(line) if line and not listed else None
            if phase is not None and phase.repeats and self._prose.goes_on:
                phase = None  # ``**Final answer:**``
            if phase is not None:  # the lines that wait were printed above it
                readings += self._counted.release()
            return Examined(readings, phase, line, fact, claimed)
        self._sizes.interrupt()
        phase = announced(line) if len(found) == 1 and is_heading(found[0]) else None
        if phase is not None and phase.phase is Phase.EVAL:
            found = [replace(found[0], phase=Phase.EVAL)]
        return Examined([*readings, *found], phase, line, fact, claimed, earlier, held_back)

    def _general(self, line: str) -> Sequence[LineReading] | None:
        """Read a line without context."""
        return self._read_line(self._probes, line)

    def _bars(self, text: str, readings: list[LineReading], grammars: Sequence[LineGrammar]) -> str:
        """Append the readings of the progress bars in ``text`` to ``readings``; return the text after the last bar."""
        position = 0
        for frame in find_bars(text):
            position = frame.end
            for grammar in grammars:
                try:
                    reading = grammar.read_bar(frame)
                except Exception as error:  # noqa: BLE001 - as in _read_line
                    reading = None
                    self._do_without(grammar, error)
                if reading is not None:
                    readings.append(reading)
                    break
        return text[position:]

    def _read_line(self, grammars: Sequence[LineGrammar], line: str) -> Sequence[LineReading] | None:
        """Return the readings of the first grammar that claims the line, marked where the line ends an epoch."""
        for grammar in grammars:
            # A plain loop: this runs for every grammar on every line, and a generator costs ten times the search.
            for needle in grammar.needles or _EVERY_LINE:
                if needle in line:
                    try:
                        readings = grammar.read(line)
                    except Exception as error:  # noqa: BLE001 - a third-party grammar may raise anything
                        readings = None
                        self._do_without(grammar, error)
                    if readings is not None:
                        return with_end(line, readings)
                    break
        return with_end(line, None)

    def _do_without(self, failed: LineGrammar, error: Exception) -> None:
        """Stop using a grammar that has raised an exception; the others carry on."""
        self.failure = self.failure or f"grammar {failed.name!r}: {type(error).__name__}: {error}"
        self._broken.add(type(failed))
        self._grammars = [grammar for grammar in self._grammars if type(grammar) not in self._broken]
        self._probes = [grammar for grammar in self._probes if type(grammar) not in self._broken]
        self._bar_grammars, self._bar_probes = _bar_readers(self._grammars), _bar_readers(self._probes)
        self._opening = _opening(self._grammars)

    def _forget(self) -> None:
        """Forget anything that earlier lines have begun: a table, a dictionary, a traceback."""
        self._grammars = [grammar for grammar in self._all_grammars() if type(grammar) not in self._broken]
        self._bar_grammars, self._opening = _bar_readers(self._grammars), _opening(self._grammars)
        self._source = SourceLines()
        self._followed = FollowedLines()
        self._interrupt()

    def _interrupt(self) -> Sequence[MetricPoint]:
        """End whatever consecutive lines have begun; return the points of lines that were waiting for others."""
        self._options.interrupt()
        self._prose.interrupt()
        self._sizes.interrupt()
        return self._apply(Examined(self._counted.release(), None, ""))

    def _apply(self, examined: Examined) -> Sequence[MetricPoint]:
        points = []
        for reading in examined.readings:
            point = self._tracker.place(reading)
            points += self._tracker.take_late()
            if point is not None:
                points.append(point)
            if reading.loss is not None:
                self._note_loss(reading, examined.line)
        if examined.phase is not None:
            self._tracker.banner(examined.phase)
        if examined.fact is not None:
            self._tracker.learn(examined.fact)
        return points

    def _note_loss(self, reading: LineReading, line: str) -> None:
        """Remember a line with a loss: `close` compares an unfinished last line with it."""
        decimals = _decimals(line)  # a bar leaves no text to look at, except that of Keras, drawn within the line
        self._decimals = self._decimals if reading.bar and decimals < 0 else decimals
        self._exponent = _EXPONENT.search(line.rstrip()[-5:]) is not None
        self._like = line

    def _is_foreign(self, text: str) -> bool:
        """Whether a line is a footer of another tool, an exception, or the output of a rank other than the first."""
        start = text.lstrip()
        if start.startswith("wandb:") or is_failure(text) or ("HTTP/" in start and _REQUEST.search(start)):
            return True
        if "ank" not in text[:40] and "default" not in text[:40]:
            return False
        if _FIRST_RANK.match(text):
            self._rank0 = True
        return self._rank0 and _OTHER_RANK.match(text) is not None


def _bar_readers(grammars: Sequence[LineGrammar]) -> list[LineGrammar]:
    return [grammar for grammar in grammars if type(grammar).read_bar is not LineGrammar.read_bar]


def _opening(grammars: Sequence[LineGrammar]) -> list[LineGrammar]:
    """The grammars whose records may span several lines."""
    return [grammar for grammar in grammars if type(grammar).is_open is not LineGrammar.is_open]


def _decimals(line: str) -> int:
    match = _TRAILING_NUMBER.search(line.rstrip())
    return -1 if match is None else len(match[2] or "") - 1
