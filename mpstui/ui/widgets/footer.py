"""The last line: the keys that matter here, brightest where they can work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..bindings import Key
from ..rows import Row, Span, row, width_of
from .lines import LinePanel

Usable = Callable[[Key], bool]


def footer(keys: Sequence[Key], width: int, usable: Usable, labels: dict[str, str] | None = None) -> Row:
    """As many keys as fit, the most important first; a key that cannot work now is dim."""
    parts: list[Span] = [Span(" ")]
    room = width - 2
    for key in keys:
        label = (labels or {}).get(key.action, key.label)
        needed = width_of(key.shown) + 1 + width_of(label) + 2
        if needed > room + 1:
            continue
        ready = usable(key)
        parts += [Span(key.shown, "key" if ready else "faint"), Span(f" {label}  ", "dim" if ready else "faint")]
        room -= needed
    return row(*parts, base="raised")


class KeyLine(LinePanel):
    """The footer of a screen. ``usable`` is asked anew at every repaint."""

    def __init__(self, keys: Sequence[Key], usable: Usable = lambda key: True) -> None:
        super().__init__()
        self._keys = keys
        self._usable = usable
        self.labels: dict[str, str] = {}

    def rows(self, width: int, height: int) -> list[Row]:
        """One line."""
        return [footer(self._keys, width, self._usable, self.labels)]
