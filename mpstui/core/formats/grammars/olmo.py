"""OLMo: ``[step=10/10000,epoch=0]`` above indented ``train/CrossEntropyLoss=9.064`` lines."""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Olmo(Signature):
    """Lines of OLMo."""

    name: ClassVar[str] = "olmo"
    needles: ClassVar[tuple[str, ...]] = ("[step=",)
    signature: ClassVar[re.Pattern[str]] = pattern(r"""\[step=\d{1,12}(?:/\d{1,12})?""")


GRAMMAR = Olmo
