"""mmcv 1 (OpenMMLab 1).

``Epoch [1][50/930]\\tlr: 2.0e-02, eta: .., time: .., loss: 1.1088`` and ``Iter [50/80000]``; ``Epoch(val)
[1][764]``.
"""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Mmcv(Signature):
    """Lines of mmcv 1 (OpenMMLab 1)."""

    name: ClassVar[str] = "mmcv"
    needles: ClassVar[tuple[str, ...]] = ("Epoch [", "Iter [")
    signature: ClassVar[re.Pattern[str]] = pattern(
        r"""(?:Epoch \[\d{1,6}\]\[\s{0,9}\d{1,9}/\d{1,9}\]|Iter \[\d{1,9}/\d{1,9}\])\s{1,9}lr: """
    )


GRAMMAR = Mmcv
