"""DeepSpeed engine and Megatron-DeepSpeed: ``steps: 10 loss: 2.70 iter time (s): 1.234 samples/sec: 12.9``."""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Deepspeed(Signature):
    """Lines of DeepSpeed engine and Megatron-DeepSpeed."""

    name: ClassVar[str] = "deepspeed"
    needles: ClassVar[tuple[str, ...]] = ("iter time (s)",)
    signature: ClassVar[re.Pattern[str]] = pattern(r"""steps: \d{1,9} loss: \S{1,24} iter time \(s\): """)


GRAMMAR = Deepspeed
