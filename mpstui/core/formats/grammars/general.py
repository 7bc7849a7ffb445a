"""Any ``name value`` notation: the reader for everyone's own print statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..assemble import assemble
from ..pairs import read_pairs
from ..points import Reading
from . import LineGrammar


class General(LineGrammar):
    """Key-value lines of any program."""

    name: ClassVar[str] = "key-value"
    priority: ClassVar[int] = 90

    def read(self, line: str) -> Sequence[Reading] | None:
        """One reading, if the line is a record."""
        pairs = read_pairs(line)
        reading = assemble(self.name, line, pairs) if pairs else None
        return None if reading is None else (reading,)


GRAMMAR = General
