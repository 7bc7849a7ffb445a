"""Writing the cells that changed, and only them.

Textual marks dirty regions exactly, but then writes each dirty line from the left edge of its widget on: its own note
there says so. For one digit at the end of a progress line that is ten times the bytes. The two classes here end a
partial update the way it was begun. They rest on private names of the Textual that ``pyproject.toml`` pins; a test
compares the screens painted by both.
"""

from __future__ import annotations

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate, Compositor


class ExactUpdate(ChopsUpdate):
    """A partial update that is cropped at both ends."""

    def render_segments(self, console: Console) -> str:
        """The bytes of the update."""
        sequences: list[str] = []
        for y, left, right in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                start, stop = max(x, left), min(end, right)
                if strip is not None and start < stop:
                    sequences.append(Control.move_to(start, y).segment.text)
                    sequences.append(strip.crop(start - x, stop - x).render(console))
        return "".join(sequences)


class ExactCompositor(Compositor):
    """The compositor of every screen here."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """What changed since the last update."""
        update = super().render_partial_update()
        return None if update is None else ExactUpdate(update.chops, update.spans, update.chop_ends)
