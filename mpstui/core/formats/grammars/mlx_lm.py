"""mlx-lm and mlx-vlm.

``Iter 10: Train loss 2.101, Learning Rate 1.000e-05, It/sec 2.9`` and ``Iter 1: Val loss 6.388, Val took 1.4s``.
"""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class MlxLm(Signature):
    """Lines of mlx-lm and mlx-vlm."""

    name: ClassVar[str] = "mlx"
    needles: ClassVar[tuple[str, ...]] = ("Iter ",)
    signature: ClassVar[re.Pattern[str]] = pattern(r"""Iter \d{1,9}: (?:Train|Val) loss """)


GRAMMAR = MlxLm
