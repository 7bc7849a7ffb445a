"""nanochat: ``step 00014/00020 (70.00%) | loss: 10.39 | lrm: 0.38 | dt: 33.41ms | tok/sec: 15,326``."""

from __future__ import annotations

import re
from typing import ClassVar

from ..patterns import pattern
from ._signature import Signature


class Nanochat(Signature):
    """Lines of nanochat."""

    name: ClassVar[str] = "nanochat"
    needles: ClassVar[tuple[str, ...]] = (" | loss: ",)
    signature: ClassVar[re.Pattern[str]] = pattern(
        r"""step \d{1,9}(?:/\d{1,9} \([\d.]{1,8}%\))? \| (?:train )?loss: """
    )


GRAMMAR = Nanochat
