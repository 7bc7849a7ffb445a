"""mmengine (OpenMMLab 2).

``Epoch(train)  [1][ 10/196]  lr: 3.3e-04 .. loss: 6.18``, ``Iter(train) [ 380/387]``, ``Epoch(val) [1][20/20]``.
"""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Mmengine(Signature):
    """Lines of mmengine (OpenMMLab 2)."""

    name: ClassVar[str] = "mmengine"
    needles: ClassVar[tuple[str, ...]] = ("Epoch(", "Iter(")
    signature: ClassVar[re.Pattern[str]] = pattern(r"""(?:Epoch|Iter)\((?:train|val|test)\)\s{1,4}\[""")


GRAMMAR = Mmengine
