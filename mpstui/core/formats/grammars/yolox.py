"""YOLOX: ``epoch: 1/300, iter: 10/47, .. total_loss: 10.7, .. lr: 7.0e-06, .. ETA: ..``."""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Yolox(Signature):
    """Lines of YOLOX."""

    name: ClassVar[str] = "yolox"
    needles: ClassVar[tuple[str, ...]] = ("iter: ",)
    signature: ClassVar[re.Pattern[str]] = pattern(r"""epoch: \d{1,6}/\d{1,6}, iter: \d{1,9}/\d{1,9}, """)


GRAMMAR = Yolox
