"""The profiles to choose from; one with mistakes says which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..rows import EMPTY, Row, Span, clean, clip, fit, row, wrap
from .lines import LinePanel

if TYPE_CHECKING:
    from ..ports import ProfileEntryPort

_NAME, _ORIGIN = 18, 9


def profile_row(entry: ProfileEntryPort, width: int, *, selected: bool) -> Row:
    """One profile: what it is launched by, where it is from, its title."""
    tone = "bad" if entry.error else "strong"
    parts = (
        Span("▌" if selected else " ", "key"),
        Span("✗ " if entry.error else "  ", "bad"),
        Span(fit(clean(entry.name, 60), _NAME) + " ", tone),
        Span(fit(entry.origin, _ORIGIN), "dim"),
        Span(clean(entry.title, 200)),
    )
    return row(*clip(parts, width), base="selected" if selected else "")


class ProfileList(LinePanel):
    """The list, with the selected one explained below it."""

    def __init__(self, entries: Sequence[ProfileEntryPort]) -> None:
        super().__init__()
        self.entries = entries
        self.index = 0
        self._top = 0

    @property
    def selected(self) -> ProfileEntryPort | None:
        """The chosen profile."""
        return self.entries[self.index] if self.entries else None

    def move(self, by: int) -> None:
        """Select another one."""
        self.index = max(0, min(len(self.entries) - 1, self.index + by))
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        """The list, then the selected profile's own words or mistakes."""
        if not self.entries:
            return [EMPTY, row((" no profiles yet: save a .toml file in ./profiles, or see `mpstui profiles`", "dim"))]
        about = self._about(width)
        room = max(1, height - len(about) - 2)
        self._top = max(0, min(self._top, self.index), self.index - room + 1)
        seen = range(self._top, min(len(self.entries), self._top + room))
        listed = [profile_row(self.entries[place], width, selected=place == self.index) for place in seen]
        return [row(("   profile", "heading")), *listed, EMPTY, *about]

    def _about(self, width: int) -> list[Row]:
        entry = self.selected
        if entry is None:
            return []
        if entry.error:
            texts = [line for text in entry.error.splitlines()[:6] for line in wrap(clean(text), width - 4, 2)]
            return [row("   ", (text, "bad")) for text in texts]
        return [row("   ", (text, "dim")) for text in wrap(clean(entry.description), width - 4, 3)]
