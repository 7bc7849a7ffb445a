"""LeRobot: ``step:1K smpl:32K ep:101 epch:2.53 loss:1.226 grdn:1.2 lr:1.0e-05``: counters rounded to K and M."""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Lerobot(Signature):
    """Lines of LeRobot."""

    name: ClassVar[str] = "lerobot"
    needles: ClassVar[tuple[str, ...]] = ("smpl:",)
    signature: ClassVar[re.Pattern[str]] = pattern(r"""step:\S{1,12} smpl:\S{1,12} ep:""")


GRAMMAR = Lerobot
