"""nanoGPT.

``iter 10: loss 10.3218, time 2948.92ms, mfu 22.83%`` and, by evaluation, ``step 250: train loss 3.1, val loss
3.2``.
"""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Nanogpt(Signature):
    """Lines of nanoGPT."""

    name: ClassVar[str] = "nanogpt"
    needles: ClassVar[tuple[str, ...]] = ("iter ", "step ")
    signature: ClassVar[re.Pattern[str]] = pattern(
        r"""iter \d{1,9}: loss |step \d{1,9}: train loss \S{1,24}, val loss """
    )


GRAMMAR = Nanogpt
