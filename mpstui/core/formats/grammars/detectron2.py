"""detectron2: ``eta: 15:26:30  iter: 19  total_loss: 34.75  loss_cls: ..  lr: 5e-06  max_mem: 7000M``."""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Detectron2(Signature):
    """Lines of detectron2."""

    name: ClassVar[str] = "detectron2"
    needles: ClassVar[tuple[str, ...]] = ("iter: ",)
    signature: ClassVar[re.Pattern[str]] = pattern(r"""(?:eta: .{1,30}? {2})?iter: \d{1,9} {2}total_loss: """)


GRAMMAR = Detectron2
