"""Regular expressions that are compiled when something is first shown to them.

A log meets a few of the grammars and none of the others; to compile what all of them look for takes thirty milliseconds
and half a megabyte.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


class _Pattern:
    """Stands for a compiled pattern. Each of its methods is looked up once and is its own from then on."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """What ``re.compile`` gives, at the cost of its first use. A mistake in ``source`` shows only then."""
    return cast("re.Pattern[str]", _Pattern(source, flags))
