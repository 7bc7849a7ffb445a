"""The ImageNet example of pytorch/examples.

``Epoch: [0][ 200/10010]\\tTime 0.3 ( 0.4)\\tLoss 6.90e+00 (7.04e+00)``: value, then average in brackets.
"""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class PytorchImagenet(Signature):
    """Lines of the ImageNet example of pytorch/examples."""

    name: ClassVar[str] = "pytorch imagenet"
    needles: ClassVar[tuple[str, ...]] = ("Epoch: [",)
    signature: ClassVar[re.Pattern[str]] = pattern(r"""Epoch: \[\d{1,6}\]\[\s{0,9}\d{1,9}/\d{1,9}\]\s""")


GRAMMAR = PytorchImagenet
