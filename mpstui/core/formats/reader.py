"""The reader of training logs: bytes in, points out, whatever program wrote them."""

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
from .points import LineReading, MetricPoint, Number, ParsedLog, Point, Standing
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
"""Characters of a frame that are read; what real programs print on one line is far shorter."""


class LogReader:
    """Follows one log: ``feed`` bytes as they arrive, in chunks of any size, and get the points they complete.

    Holds no text beyond an unfinished line (64 KB at most); state is bounded whatever the log's length. The points do
    not depend on how the bytes were cut. Not thread-safe.
    """

    def __init__(
        self,
        grammars: Callable[[], list[LineGrammar]] = all_grammars,
        *,
        from_zero: bool = False,
        steps: int | None = None,
        epoch_length: Number | None = None,
    ) -> None:
        """``grammars`` makes a fresh set; a profile's pattern goes first: ``[Declared(pattern), *all_grammars()]``.

        ``from_zero``: an earlier log of the same training called its first epoch 0. ``epoch_length``: it counted so
        many steps anew in each epoch. ``steps``: of the whole run, where that is known from elsewhere.
        """
        self.failure: str | None = None
        """The first grammar that raised, and what; it is not asked again."""
        self._splitter = FrameSplitter()
        self._all_grammars = grammars
        self._broken: set[type[LineGrammar]] = set()
        self._grammars: list[LineGrammar]
        self._probes = grammars()
        self._bar_probes = _bar_readers(self._probes)
        self._tracker = Tracker(from_zero=from_zero, steps=steps, epoch_length=epoch_length)
        self._options, self._prose = Options(self._tracker.names.options), Prose()
        self._sizes = SizesOfSets()
        self._counted = CountedLines(self._general)
        self._forget()
        self._rank0 = False
        self._facts, self._openings = Facts(), Openings()
        self._like = ""
        """The last line with a loss."""
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
        """The points that ``data`` completes, in order."""
        return self._each(self._splitter.feed(data))

    def take(self, data: bytes) -> list[Point]:
        """Like ``feed``, many times as fast on large pieces: the points of lines of one shape come as columns."""
        return self._bulk.feed(self._splitter.feed(data))

    def close(self) -> list[MetricPoint]:
        """The points of an unfinished last line, if it cannot be the half of one."""
        frames, last = self._splitter.close()
        points = self._each(frames)
        text = strip_controls(decode_line(last)).rstrip()
        # Whole lines end like a record, or with as many decimals as the last one.
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
        """The name of the loss series to chart (`MetricPoint.series`); may change while several are told apart, and is
        empty where none of several is the main one."""
        return self._tracker.primary

    @property
    def epoch_length(self) -> Number | None:
        """Steps of an epoch, if they are counted anew in each and no line tells how many there are."""
        return self._tracker.epoch_length

    def summary(self) -> ParsedLog:
        """What the log says so far, of its newest run."""
        return replace(self._tracker.summary(), read_in_part=self.in_part)

    @property
    def in_part(self) -> str | None:
        """What of the log was not read, in words; None where all was."""
        parts = [self.failure, passed_over(self._bulk.choice.passed_over, self._too_long + self._splitter.too_long)]
        return "; ".join(filter(None, parts)) or None

    @property
    def standing(self) -> Standing:
        """Where the newest run stands as a whole."""
        return self._tracker.standing

    def _examine_line(self, line: bytes) -> Examined:
        """What a frame says; nothing is placed yet."""
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
        """Whether no line above the next one changes what that says."""
        return self._facts.at_rest and not self._source.left and not self._prose.goes_on

    @property
    def _is_settled(self) -> bool:
        """Whether the next line means what it says by itself, unless others like it wait."""
        if any(grammar.is_open for grammar in self._opening):
            return False
        return self._at_rest and self._prose.at_rest and not self._options.has_words

    def _alone(self, line: str) -> Sequence[LineReading] | None:
        """What a line says by itself, asked of grammars that have seen nothing else; None when it may depend."""
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
                    return None  # it remembers more than the newest of such lines
        readings, waits = self._counted.alone(stripped, readings)
        if waits or not any(map(is_placed, readings)):
            told = Options(set())
            told.read(stripped, readings, placed=False)
            begins = stripped == line.rstrip() and self._openings.first is not None
            if told.has_words or (not begins and self._openings.may_be_first(stripped)):
                return None
        return readings

    def _follow(self, lines: Sequence[tuple[LineShape, bytes]]) -> None:
        """Lines were read by their shape."""
        self._followed.take(lines)
        if self._followed.are_many:
            self._show_followed()
        loss = next(((shape, line) for shape, line in reversed(lines) if shape.template.loss is not None), None)
        if loss is not None:
            self._note_loss(loss[0].template, text_of(loss[1]))

    def _show_followed(self) -> None:
        """Let what goes on over lines see those that were read by their shape."""
        self._followed.show(
            self._options, self._openings, self._grammars, lambda one, line: self._read_line([one], line)
        )

    def _examine(self, text: str) -> Examined:
        if len(text) > MAX_LINE:
            text = text[:MAX_LINE].rpartition(" ")[0]  # not half a number
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
            fact = fact._replace(device="")  # of a source: ``torch.device("cuda:0")``
        claimed = found is not None or drawn
        placed = drawn or (found is not None and any(map(is_placed, found)))
        # What a grammar takes in without a word is part of what it will tell.
        self._options.read(line, found or (), placed=placed or found == ())
        if not placed:
            fact = self._openings.note(line, fact)
        if found is None or is_warning(text, line, found):
            listed = self._sizes.read(line)
            phase = announced(line) if line and not listed else None
            if phase is not None and phase.repeats and self._prose.goes_on:
                phase = None  # ``**Final answer:**``
            if phase is not None:  # what waits for others like it was told before
                readings += self._counted.release()
            return Examined(readings, phase, line, fact, claimed)
        self._sizes.interrupt()
        phase = announced(line) if len(found) == 1 and is_heading(found[0]) else None
        return Examined([*readings, *found], phase, line, fact, claimed, earlier, held_back)

    def _general(self, line: str) -> Sequence[LineReading] | None:
        """What any program's line says by itself."""
        return self._read_line(self._probes, line)

    def _bars(self, text: str, readings: list[LineReading], grammars: Sequence[LineGrammar]) -> str:
        """Read the bars of a frame and return the text behind them."""
        position = 0
        for frame in find_bars(text):
            position = frame.end
            for grammar in grammars:
                try:
                    reading = grammar.read_bar(frame)
                except Exception as error:  # noqa: BLE001 - as above
                    reading = None
                    self._do_without(grammar, error)
                if reading is not None:
                    readings.append(reading)
                    break
        return text[position:]

    def _read_line(self, grammars: Sequence[LineGrammar], line: str) -> Sequence[LineReading] | None:
        """The answer of the first grammar that claims the line, with what the line says of the end of an epoch."""
        for grammar in grammars:
            # A plain loop: this runs for every grammar on every line, where a generator costs ten times the search.
            for needle in grammar.needles or _EVERY_LINE:
                if needle in line:
                    try:
                        readings = grammar.read(line)
                    except Exception as error:  # noqa: BLE001 - anybody's grammar, over anybody's text
                        readings = None
                        self._do_without(grammar, error)
                    if readings is not None:
                        return with_end(line, readings)
                    break
        return with_end(line, None)

    def _do_without(self, failed: LineGrammar, error: Exception) -> None:
        """A grammar that raises costs itself alone, from here on."""
        self.failure = self.failure or f"grammar {failed.name!r}: {type(error).__name__}: {error}"
        self._broken.add(type(failed))
        self._grammars = [grammar for grammar in self._grammars if type(grammar) not in self._broken]
        self._probes = [grammar for grammar in self._probes if type(grammar) not in self._broken]
        self._bar_grammars, self._bar_probes = _bar_readers(self._grammars), _bar_readers(self._probes)
        self._opening = _opening(self._grammars)

    def _forget(self) -> None:
        """Forget what the lines above have begun: a table, a dictionary, a traceback."""
        self._grammars = [grammar for grammar in self._all_grammars() if type(grammar) not in self._broken]
        self._bar_grammars, self._opening = _bar_readers(self._grammars), _opening(self._grammars)
        self._source = SourceLines()
        self._followed = FollowedLines()
        self._interrupt()

    def _interrupt(self) -> Sequence[MetricPoint]:
        """End what lines in a row have begun; the points of those that have waited for others like them."""
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
        """A line with a loss: a last one without its end is compared with it."""
        decimals = _decimals(line)  # none behind a bar, but Keras draws its own in the line
        self._decimals = self._decimals if reading.bar and decimals < 0 else decimals
        self._exponent = _EXPONENT.search(line.rstrip()[-5:]) is not None
        self._like = line

    def _is_foreign(self, text: str) -> bool:
        """Footers of other tools, exceptions, and what ranks other than the first repeat."""
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
    """Those of which something may go on over lines."""
    return [grammar for grammar in grammars if type(grammar).is_open is not LineGrammar.is_open]


def _decimals(line: str) -> int:
    match = _TRAILING_NUMBER.search(line.rstrip())
    return -1 if match is None else len(match[2] or "") - 1
