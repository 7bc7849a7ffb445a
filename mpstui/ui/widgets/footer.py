"""The last line: the keys that matter here, brightest where they can work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..bindings import Key, Scope
from ..rows import Row, Span, row, width_of
from .lines import LinePanel

Usable = Callable[[Key], bool]


def footer(keys: Sequence[Key], width: int, usable: Usable, labels: dict[str, str] | None = None) -> Row:
    """As many keys as fit, the most important first. Those that cannot work now are dim, and give way to others.

    Those for runs that wait in a queue stand there for such runs alone: most people never have one.
    """
    keys = [key for key in keys if key.scope is not Scope.QUEUE or usable(key)]
    named = {key: (labels or {}).get(key.action, key.label) for key in keys}
    ready = {key for key in keys if usable(key)}
    fitting = _fitting(keys, named, width - 2)
    if len(fitting) < len(keys):
        fitting = _fitting([key for key in keys if key in ready], named, width - 2)
    parts: list[Span] = [Span(" ")]
    for key in keys:
        if key in fitting:
            look = ("key", "dim") if key in ready else ("faint", "faint")
            parts += [Span(key.shown, look[0]), Span(f" {named[key]}  ", look[1])]
    return row(*parts, base="raised")


def _fitting(keys: Sequence[Key], named: dict[Key, str], room: int) -> set[Key]:
    """Those of the keys, the first ones first, that find room."""
    found = set()
    for key in keys:
        needed = width_of(key.shown) + 1 + width_of(named[key]) + 2
        if needed <= room + 1:
            found.add(key)
            room -= needed
    return found


class KeyLine(LinePanel):
    """The footer of a screen. ``usable`` is asked anew at every repaint."""

    def __init__(self, keys: Sequence[Key], usable: Usable = lambda key: True) -> None:
        super().__init__()
        self._keys = keys
        self._usable = usable
        self.labels: dict[str, str] = {}

    def offer(self, keys: Sequence[Key]) -> None:
        """Show other keys from now on."""
        self._keys = keys
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        """One line."""
        return [footer(self._keys, width, self._usable, self.labels)]
