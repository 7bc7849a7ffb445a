"""Writing the cells that changed, and only them.

Textual marks dirty regions exactly, but then writes each dirty line from the left edge of its widget on: its own note
there says so. For one digit at the end of a progress line that is ten times the bytes. The two classes here end a
partial update the way it was begun. They rest on private names of the Textual that ``pyproject.toml`` pins; a test
compares the screens painted by both.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.color import ColorSystem
from rich.console import Console
from textual._compositor import ChopsUpdate, Compositor
from textual.strip import Strip


class ExactUpdate(ChopsUpdate):
    """A partial update that is cropped at both ends."""

    def render_segments(self, console: Console) -> str:
        """The bytes of the update."""
        sequences: list[str] = []
        for y, left, right in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                start, stop = max(x, left), min(end, right)
                if strip is not None and start < stop:
                    sequences.append(f"\x1b[{y + 1};{start + 1}H")
                    sequences += _between(strip, start - x, stop - x, console)
        return "".join(sequences)


def _between(strip: Strip, start: int, stop: int, console: Console) -> Iterator[str]:
    """The bytes of cells ``start`` to ``stop``. A cropped strip would do, and makes six caches for one use."""
    colours = console._color_system or ColorSystem.TRUECOLOR
    position = 0
    for segment in strip:
        begin, position = position, position + segment.cell_length
        if position <= start:
            continue
        if begin >= stop:
            return
        if begin < start or position > stop:
            _, segment = segment.split_cells(max(0, start - begin))
            segment, _ = segment.split_cells(min(position, stop) - max(begin, start))
        style = segment.style
        yield segment.text if style is None else strip.render_style(style, segment.text, color_system=colours)


class ExactCompositor(Compositor):
    """The compositor of every screen here."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """What changed since the last update."""
        update = super().render_partial_update()
        return None if update is None else ExactUpdate(update.chops, update.spans, update.chop_ends)
