"""Names shortened so that no two of them look the same. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ..rows import fit, width_of

LEAST_NAME = 5
"""Cells of a name's beginning that are always shown, and come before anything that may stand beside it."""


class ShortNames:
    """How to shorten the names of a column."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._common: dict[int, dict[str, frozenset[str]]] = {}
        """By width and name cut to it: the words that all names share which are cut to the same."""

    def of(self, name: str, width: int) -> str:
        """The name in at most ``width`` cells: its beginning, then the part in which names that begin alike differ."""
        if width_of(name) <= width or width <= LEAST_NAME:
            return name
        if width not in self._common:
            groups: dict[str, list[frozenset[str]]] = {}
            for other in self._names:
                groups.setdefault(fit(other, width), []).append(frozenset(other.split()))
            self._common[width] = {cut: frozenset.intersection(*words) for cut, words in groups.items()}
        common = self._common[width].get(fit(name, width), frozenset())
        differing = [word for word in name.split() if word not in common]
        values = [word.rpartition("=")[2] for word in differing]
        room = width - LEAST_NAME
        end = " ".join(differing) if width_of(" ".join(differing)) <= room else " ".join(values)
        while width_of(end) > room:
            end = end[1:]
        return f"{fit(name, width - width_of(end))}{end}"
