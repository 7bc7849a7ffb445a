"""What grammars of the ``key value`` kind share: a signature that tells whose line it is, the common reading of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from ..assemble import assemble
from ..pairs import read_pairs
from ..points import Reading
from . import LineGrammar


class Signature(LineGrammar):
    """Lines that start with a signature are records of that program, however wordy they are."""

    signature: ClassVar[re.Pattern[str]]

    def read(self, line: str) -> Sequence[Reading] | None:
        """One reading."""
        if self.signature.match(line) is None:
            return None
        reading = assemble(self.name, line, read_pairs(line), strict=False)
        return None if reading is None else (reading,)
