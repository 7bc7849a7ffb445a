"""torchtitan: ``step:  1  loss: 10.8595  grad_norm:  3.21  memory:  8.44GiB(13.20%)  tps: 6,697``."""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Torchtitan(Signature):
    """Lines of torchtitan."""

    name: ClassVar[str] = "torchtitan"
    needles: ClassVar[tuple[str, ...]] = ("step: ",)
    signature: ClassVar[re.Pattern[str]] = pattern(
        r"""step:\s{1,9}\d{1,9}\s{2,9}loss:\s{1,9}\S{1,24}\s{2,9}(?:grad_norm|memory):"""
    )


GRAMMAR = Torchtitan
