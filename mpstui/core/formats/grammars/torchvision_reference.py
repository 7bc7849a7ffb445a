"""torchvision reference scripts: ``Epoch: [0]  [ 0/6]  eta: 0:00:25  lr: 0.001  loss: 8.27 (8.27)  max mem: 2547``."""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class TorchvisionReference(Signature):
    """Lines of torchvision reference scripts."""

    name: ClassVar[str] = "torchvision"
    needles: ClassVar[tuple[str, ...]] = ("eta: ",)
    signature: ClassVar[re.Pattern[str]] = pattern(
        r"""(?:Epoch: \[\d{1,6}\]|Test:)\s{1,4}\[\s{0,9}\d{1,9}/\d{1,9}\]\s{1,4}eta: """
    )


GRAMMAR = TorchvisionReference
