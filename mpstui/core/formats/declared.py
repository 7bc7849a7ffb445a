"""A grammar that a profile declares: a regular expression with named groups.

Groups: ``epoch epochs step steps epoch_step epoch_steps loss lr`` mean what they say, any other name is a metric, and
a metric whose name says evaluation (``val_loss``) is kept apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..model.errors import UsageError
from .aliases import read_record
from .grammars import LineGrammar
from .points import Reading

MAX_PATTERN = 2000
MAX_LINE = 2000
"""Characters of a line that a declared pattern is shown: it may be slow, so it gets little."""
_NESTED_REPEAT = re.compile(r"\((?:[^()\\]|\\.)*[+*](?:[^()\\]|\\.)*\)[+*{]")


class Declared(LineGrammar):
    """Lines that match a pattern of the user's own."""

    name: ClassVar[str] = "declared"
    priority: ClassVar[int] = 0

    def __init__(self, pattern: str) -> None:
        """Raises UsageError when the pattern is no regular expression, names no group, or could take for ever."""
        if len(pattern) > MAX_PATTERN or _NESTED_REPEAT.search(pattern):
            raise UsageError(
                f"the log pattern {pattern[:60]!r} repeats a repetition or is too long",
                "write it without a repeated group that itself repeats",
            )
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise UsageError(
                f"the log pattern {pattern[:60]!r} is no regular expression: {error}", "test it with `mpstui parse`"
            ) from error
        if not self._pattern.groupindex:
            raise UsageError(
                f"the log pattern {pattern[:60]!r} names no group",
                "name them, for example (?P<step>\\d+) and (?P<loss>[\\d.]+)",
            )

    def read(self, line: str) -> Sequence[Reading] | None:
        """The reading of a line that matches."""
        match = self._pattern.search(line[:MAX_LINE])
        if match is None:
            return None
        reading = read_record(
            {name: value for name, value in match.groupdict().items() if value is not None}, self.name
        )
        return None if reading is None else (reading,)
