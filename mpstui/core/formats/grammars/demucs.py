"""demucs and dora solvers: ``Train | Epoch 1 | 100/400 | 2.3 it/sec | Loss 0.42``; ``Valid`` prints the same."""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Demucs(Signature):
    """Lines of demucs and dora solvers."""

    name: ClassVar[str] = "demucs"
    needles: ClassVar[tuple[str, ...]] = (" | Epoch ",)
    signature: ClassVar[re.Pattern[str]] = pattern(
        r"""(?:Train|Valid|Cross-valid|Test)(?: Summary)? \| Epoch \d{1,6} \| """
    )


GRAMMAR = Demucs
