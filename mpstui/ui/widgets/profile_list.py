"""The profiles that can be launched, with what is known of the selected one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.events import Click
from textual.message import Message

from ..rows import EMPTY, Row, Span, clean, clip, fit, row, wrap
from .earlier_runs import earlier_runs
from .lines import LinePanel, WheelScrolled

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ...core.profiles.library import ProfileEntry

_NAME, _ORIGIN, _TITLE = 18, 9, 34
_LEAST_DESCRIPTION = 40
"""From this width on, every profile has its description on its line."""


class Opened(Message):
    """The selected profile was chosen for a launch."""


class ProfileList(WheelScrolled, LinePanel):
    """The profiles to choose from, with details of the selected one below; for a broken one, its mistakes."""

    def __init__(self, entries: Sequence[ProfileEntry], runs: Sequence[RunSnapshot] = (), now: float = 0.0) -> None:
        """``runs``: all known runs; those of the selected profile are shown, as of ``now``."""
        super().__init__()
        self.entries = entries
        self._some = bool(entries)
        self._runs, self._now = runs, now
        self.index = 0
        self._top = self._listed = 0

    wheel_rows = 1

    @property
    def selected(self) -> ProfileEntry | None:
        return self.entries[self.index] if self.entries else None

    def show(self, entries: Sequence[ProfileEntry]) -> None:
        """Show other profiles; the selection is kept if it is among them."""
        before, self.entries = self.selected, entries
        self.index = next((place for place, one in enumerate(entries) if before and one.name == before.name), 0)
        self.repaint()

    def scroll_rows(self, by: int) -> None:
        """Select the profile ``by`` places further down."""
        self.index = max(0, min(len(self.entries) - 1, self.index + by))
        self.repaint()

    def on_click(self, event: Click) -> None:
        """Select on the first click, open on the second."""
        place = self._top + event.y - 1
        if 1 <= event.y <= self._listed and place < len(self.entries):
            if place == self.index:
                self.post_message(Opened())
            self.scroll_rows(place - self.index)

    def rows(self, width: int, height: int) -> list[Row]:
        entry = self.selected
        if entry is None and self._some:
            return [EMPTY, row((" no profile matches", "title"), ("   esc shows all of them", "dim"))]
        if entry is None:
            return [EMPTY, row((" no profiles yet: save a .toml file in ./profiles, or see `mpstui profiles`", "dim"))]
        about = wrap(clean(entry.description), width - 4, 3)
        if entry.error:
            about = [line for text in entry.error.splitlines()[:6] for line in wrap(clean(text), width - 4, 2)]
        listed = self._listed = max(1, height - len(about) - 2)
        self._top = max(0, min(self._top, self.index), self.index - listed + 1)
        seen = range(self._top, min(len(self.entries), self._top + listed))
        described = width >= 4 + _NAME + _ORIGIN + _TITLE + _LEAST_DESCRIPTION
        titles = (fit("   profile", _NAME + 4), fit("from", _ORIGIN), fit("title", _TITLE), "what it does" * described)
        drawn = [
            row(("".join(titles), "heading")),
            *(
                profile_row(self.entries[place], width, selected=place == self.index, described=described)
                for place in seen
            ),
            EMPTY,
            *(row("   ", (text, "bad" if entry.error else "dim")) for text in about),
        ]
        left = height - len(drawn) - 1
        return drawn if left < 1 else [*drawn, EMPTY, *self._known_of(entry, width, left)]

    def _known_of(self, entry: ProfileEntry, width: int, height: int) -> list[Row]:
        """What the selected profile starts, and how its earlier runs went."""
        told = [("command", entry.command), ("arguments", entry.arguments), ("sweep", entry.sweep)]
        lines = []
        for label, text in told:
            parts = wrap(clean(text), width - 16, 3) if text else []
            lines += [row("   ", (fit("" if at else label, 11), "dim"), part) for at, part in enumerate(parts)]
        lines = lines[:height]
        earlier = earlier_runs(self._runs, entry.name, self._now, width, height - len(lines) - 1)
        return [*lines, *([EMPTY, *earlier] if earlier else [])]


def profile_row(entry: ProfileEntry, width: int, *, selected: bool, described: bool = False) -> Row:
    """One profile: the name to launch it by, its origin, its title and, on a wide line, what it does."""
    title = clean(entry.title, 200)
    parts = (
        Span("▌" if selected else " ", "key"),
        Span("✗ " if entry.error else "  ", "bad"),
        Span(fit(clean(entry.name, 60), _NAME) + " ", "bad" if entry.error else "strong"),
        Span(fit(entry.origin, _ORIGIN), "dim"),
        Span(fit(title, _TITLE - 2) + "  " if described else title),
        Span(clean(entry.description, 300) if described and not entry.error else "", "dim"),
    )
    return row(*clip(parts, width), base="selected" if selected else "")
