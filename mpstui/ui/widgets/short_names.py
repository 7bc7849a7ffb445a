"""Names shortened so that no two of them look the same. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..rows import fit, width_of

LEAST_NAME = 5
"""Cells of a name's beginning that are always shown, and take precedence over anything beside it."""


class ShortNames:
    """Shortens the names of a column."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._shown: dict[int, dict[str, str]] = {}
        """The shortened names, by width."""

    def of(self, name: str, width: int) -> str:
        """Return the name in at most ``width`` cells: its beginning, then the part in which similar names differ."""
        if width_of(name) <= width or width <= LEAST_NAME:
            return name
        if width not in self._shown:
            self._shown[width] = self._apart(width)
        return self._shown[width].get(name) or _cut(name, frozenset(), width)

    def _apart(self, width: int) -> dict[str, str]:
        """Shorten names by what differs among those cut to the same text; if still alike, among all beginning alike."""
        shown: dict[str, str] = {}
        left = self._names
        for alike in (width, LEAST_NAME):
            groups: dict[str, list[str]] = {}
            for name in left:
                groups.setdefault(fit(name, alike), []).append(name)
            for names in groups.values():
                common = frozenset.intersection(*(frozenset(name.split()) for name in names))
                shown.update((name, _cut(name, common, width)) for name in names)
            times = Counter(shown.values())
            left = frozenset(name for name, text in shown.items() if times[text] > 1)
        return shown


def _cut(name: str, common: frozenset[str], width: int) -> str:
    """Its beginning, and the words that the others lack, or only their values."""
    if width_of(name) <= width:
        return name
    differing = [word for word in name.split() if word not in common]
    values = [word.rpartition("=")[2] for word in differing]
    room = width - LEAST_NAME
    end = " ".join(differing) if width_of(" ".join(differing)) <= room else " ".join(values)
    while width_of(end) > room:
        end = end[1:]
    return f"{fit(name, width - width_of(end))}{end}"
