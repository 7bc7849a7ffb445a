"""fairseq.

``| epoch 001:    100 / 1000 loss=9.2, nll_loss=8.1, .. num_updates=100, lr=0.0005`` (its JSON log is a dictionary
line).
"""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class FairseqText(Signature):
    """Lines of fairseq."""

    name: ClassVar[str] = "fairseq"
    needles: ClassVar[tuple[str, ...]] = ("epoch ",)
    signature: ClassVar[re.Pattern[str]] = pattern(r"""(?:\| )?epoch \d{1,6}:\s{1,9}\d{1,9} / \d{1,9} .{0,40}loss=""")


GRAMMAR = FairseqText
