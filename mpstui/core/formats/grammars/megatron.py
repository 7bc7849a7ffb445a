"""Megatron-LM and its descendants.

``iteration 204/ 500000 | consumed samples: .. | learning rate: 9.4E-06 | .. lm loss: 2.48E+00 |``.
"""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Megatron(Signature):
    """Lines of Megatron-LM and its descendants."""

    name: ClassVar[str] = "megatron"
    needles: ClassVar[tuple[str, ...]] = ("iteration",)
    signature: ClassVar[re.Pattern[str]] = pattern(r"""iteration\s{1,12}\d{1,12}/\s{0,12}\d{1,12} \| """)


GRAMMAR = Megatron
