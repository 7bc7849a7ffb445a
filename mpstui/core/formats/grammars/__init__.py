"""The grammars that a log line is tried against: one module each, found by themselves.

A grammar module defines a class with the attributes of `Grammar` and ends with ``GRAMMAR = TheClass``. Adding a format
is adding a module and its test; nothing else names it. Each reader owns one instance of every grammar, so a grammar may
keep state between lines (a table's header, the epoch of a banner) but no text.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import ClassVar, Protocol

from ..bars import BarFrame
from ..points import Reading


class Grammar(Protocol):
    """One format of one program."""

    name: ClassVar[str]
    """What ``mpstui parse`` prints as the format."""
    priority: ClassVar[int]
    """Grammars are asked in this order, the lowest first: 10 exact and rare, 50 a family, 90 the general reader."""
    needles: ClassVar[tuple[str, ...]]
    """A line that holds none of these strings is not shown to the grammar; empty means every line."""

    def read(self, line: str) -> Sequence[Reading] | None:
        """The readings of a line without prefix and control sequences; None when the line is not this grammar's."""

    def read_bar(self, frame: BarFrame) -> Reading | None:
        """The reading of a progress bar's frame; None when the bar is not this grammar's."""


class LineGrammar:
    """A grammar without progress bars."""

    name: ClassVar[str]
    priority: ClassVar[int] = 50
    needles: ClassVar[tuple[str, ...]] = ()

    def read(self, line: str) -> Sequence[Reading] | None:
        """See `Grammar.read`."""
        raise NotImplementedError

    def read_bar(self, frame: BarFrame) -> Reading | None:
        """No bar belongs to a grammar of lines."""
        return None


@lru_cache(maxsize=1)
def _classes() -> tuple[type[Grammar], ...]:
    found: list[type[Grammar]] = []
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        found.append(import_module(f"{__name__}.{module.name}").GRAMMAR)
    return tuple(sorted(found, key=lambda grammar: (grammar.priority, grammar.name)))


def all_grammars() -> list[Grammar]:
    """A fresh instance of every grammar, in the order in which they are asked."""
    return [grammar() for grammar in _classes()]
