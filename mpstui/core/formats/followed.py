"""Lines that were read by their shape, shown to what follows a log across lines, as far as it needs them.

Options are listed line by line, a table's header is above its rows, a banner above the bars of its epoch. Whatever
watches for such things sees every examined line; of those read by their shape it needs only the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .bars import is_drawn
from .console import decode_line, strip_controls
from .facts import Openings
from .grammars import LineGrammar
from .notices import strip_prefix
from .settings import Options, is_placed
from .shape import LineShape

_MOST = 256
Lines = Sequence[tuple[LineShape, bytes]]


class FollowedLines:
    """The lines read by their shape since a line was last examined."""

    def __init__(self) -> None:
        self._below: list[tuple[LineShape, bytes]] = []
        """The last line with a position in the training, and all lines below it."""
        self._newest: dict[str, bytes] = {}
        """The newest line that each grammar has read."""

    @property
    def are_many(self) -> bool:
        """True if they should be shown before others come."""
        return len(self._below) > _MOST

    def take(self, lines: Lines) -> None:
        """Take in lines that were read by their shape."""
        self._newest.update((shape.template.grammar, line) for shape, line in lines)
        for at in range(len(lines) - 1, -1, -1):
            if _is_placed(lines[at][0]) or (at and _releases(lines[at - 1][0])):
                self._below = [*lines[max(0, at - 1) :]]
                return
        self._below += lines

    def show(
        self,
        options: Options,
        openings: Openings,
        grammars: Sequence[LineGrammar],
        ask: Callable[[LineGrammar, str], object],
    ) -> None:
        """Show the lines to all that need them, before the next one is examined; ``ask`` shows one to a grammar."""
        line, name, released = "", "", False
        for shape, raw in self._below:
            line, name = text_of(raw), shape.template.grammar
            if _is_placed(shape) or released:
                options.interrupt()
            else:
                options.read(line, () if shape.waits_as else (shape.template,), placed=False)
                openings.note(line, None)
            released = _releases(shape)
        for grammar in filter(vars, grammars):
            if grammar.name in self._newest:
                ask(grammar, text_of(self._newest[grammar.name]))
        for grammar in grammars if line else ():
            if grammar.name == name:
                break
            if vars(grammar):  # it was asked before the one that read the line
                ask(grammar, line)
        self._below, self._newest = [], {}


def text_of(raw: bytes) -> str:
    """Return a line that was read by its shape as it would be examined; empty if it holds a bar."""
    text = decode_line(raw)
    return "" if is_drawn(text) else strip_prefix(strip_controls(text))


def _is_placed(shape: LineShape) -> bool:
    """True if lines of a shape are of training when they are read; those that wait are read with the next one."""
    return not shape.waits_as and (shape.template.bar or is_placed(shape.template))


def _releases(shape: LineShape) -> bool:
    """True if a line of the shape waits to be read, as one of training, together with the line after it."""
    return bool(shape.waits_as) and is_placed(shape.template)
