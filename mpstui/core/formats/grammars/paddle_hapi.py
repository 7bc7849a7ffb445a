"""Paddle hapi.

``step  10/614 - loss: 0.12 - acc: 0.9 - 95ms/step``; ``Eval begin`` announces the same rows of an evaluation.
"""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class PaddleHapi(Signature):
    """Lines of Paddle hapi."""

    name: ClassVar[str] = "paddle"
    needles: ClassVar[tuple[str, ...]] = (" - loss: ",)
    signature: ClassVar[re.Pattern[str]] = pattern(r"""step\s{1,9}\d{1,9}/\d{1,9} - loss: """)


GRAMMAR = PaddleHapi
