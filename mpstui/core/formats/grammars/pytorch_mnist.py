"""The MNIST example of pytorch/examples.

``Train Epoch: 1 [12800/60000 (21%)]\\tLoss: 0.29``: the counter is in samples.
"""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class PytorchMnist(Signature):
    """Lines of the MNIST example of pytorch/examples."""

    name: ClassVar[str] = "pytorch mnist"
    needles: ClassVar[tuple[str, ...]] = ("Train Epoch: ",)
    signature: ClassVar[re.Pattern[str]] = pattern(
        r"""Train Epoch: \d{1,6} \[\d{1,12}/\d{1,12} \(\d{1,3}%\)\]\s{1,4}Loss: """
    )


GRAMMAR = PytorchMnist
