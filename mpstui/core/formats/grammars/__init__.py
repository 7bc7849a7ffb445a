"""The grammars that a log line is tried against: one module each, discovered automatically.

A grammar module defines a class with the attributes of `LineGrammar` and ends with ``GRAMMAR = TheClass``. It is not
registered anywhere: a format is added as one module, here or in another package (`LOG_GRAMMARS`), and its examples are
its test. Each reader owns one instance of every grammar, so a grammar may keep state between lines (a table's header,
the epoch of a banner) but no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, NamedTuple

from ...model.checks import NAMED_GROUPS
from ...model.errors import UsageError
from ...model.patterns import PatternMistake, line_pattern
from ...model.plugins import LOG_GRAMMARS, discovered
from ..bars import BarFrame
from ..points import LineReading, Number, Priority
from ..records import read_record


class Example(NamedTuple):
    """Lines of a format and what `LogReader.summary` must say of them, but must not say without the grammar."""

    lines: str
    loss: float | None = None
    """The last training loss."""
    losses: int = 1
    """The number of training losses."""
    epoch: Number | None = None
    epochs: Number | None = None
    step: Number | None = None
    steps: Number | None = None
    learning_rate: float | None = None
    format: str = ""
    """The format of the loss, if that is not the grammar's name."""


class LineGrammar:
    """A reader of one line format; most formats have no progress bars."""

    name: ClassVar[str]
    """What ``mpstui parse`` prints as the format."""
    priority: ClassVar[Priority] = Priority.EXACT
    needles: ClassVar[tuple[str, ...]] = ()
    """Only lines that contain one of these strings are shown to the grammar; empty means every line."""
    examples: ClassVar[tuple[Example, ...]]

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Return the readings of a line stripped of prefix and control sequences; None if it is not this grammar's.

        An empty sequence claims the line without a reading: no other grammar is asked.
        """
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """True if the next line may continue what an earlier one has begun, whatever else it looks like."""
        return False

    def read_bar(self, frame: BarFrame) -> LineReading | None:
        """Return the reading of a progress bar's frame; None if the bar is not this grammar's."""
        return None


@cache
def grammar_classes() -> tuple[type[LineGrammar], ...]:
    """Return every grammar, in the order in which they are asked."""
    found: list[type[LineGrammar]] = discovered(__name__, LOG_GRAMMARS, "GRAMMAR")
    return tuple(sorted(found, key=lambda grammar: (grammar.priority, grammar.name)))


def all_grammars() -> list[LineGrammar]:
    """Return a fresh instance of every grammar, in the order in which they are asked."""
    return [grammar() for grammar in grammar_classes()]


_MAX_DECLARED_LINE = 2000
"""Characters of a line that a declared pattern is matched against: it may be slow."""


class Declared(LineGrammar):
    """Lines that match the pattern of a profile, a regular expression with named groups.

    Groups: ``epoch epochs step steps epoch_step epoch_steps loss lr`` mean what they say, any other name is a metric,
    and a metric whose name says evaluation (``val_loss``) is kept apart.
    """

    name = "declared"
    priority = Priority.DECLARED
    examples = ()

    def __init__(self, pattern: str) -> None:
        """Raise UsageError if the pattern is not a regular expression, has no named group, or could run for ever."""
        try:
            self._pattern = line_pattern(pattern)
        except PatternMistake as error:
            raise UsageError(f"the log pattern: {error}", error.hint) from error
        if not self._pattern.pattern.groupindex:
            raise UsageError(f"the log pattern {pattern[:60]!r} names no group", f"write one {NAMED_GROUPS}")

    def read(self, line: str) -> Sequence[LineReading] | None:
        match = self._pattern.search(line[:_MAX_DECLARED_LINE])
        if match is None:
            return None
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        reading = read_record(groups, self.name)
        return None if reading is None else (reading,)
