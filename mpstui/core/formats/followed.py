"""Lines that were read by their shape, for all that goes on over lines: it sees of them what matters to it.

Options are listed line by line, a table's header stands above its rows, a banner above the bars of its epoch. Whatever
watches for such things sees every line that is examined; of those that are not it needs the newest.
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
    """Those that were read since a line was examined."""

    def __init__(self) -> None:
        self._below: list[tuple[LineShape, bytes]] = []
        """The last that had a place in the training, and all below it."""
        self._newest: dict[str, bytes] = {}
        """Of every grammar that has read some."""

    @property
    def are_many(self) -> bool:
        """Whether they are to be shown before others come."""
        return len(self._below) > _MOST

    def take(self, lines: Lines) -> None:
        """Lines were read by their shape."""
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
        """Let all see what matters to them, before the next line is examined; ``ask`` shows a line to a grammar."""
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
            if vars(grammar):  # it was asked before the one that has read the line
                ask(grammar, line)
        self._below, self._newest = [], {}


def text_of(raw: bytes) -> str:
    """A line that was read by its shape, as it was examined: what stands behind a bar is nothing."""
    text = decode_line(raw)
    return "" if is_drawn(text) else strip_prefix(strip_controls(text))


def _is_placed(shape: LineShape) -> bool:
    """Whether lines of a shape are of training when they are read; those that wait are read with the next."""
    return not shape.waits_as and (shape.template.bar or is_placed(shape.template))


def _releases(shape: LineShape) -> bool:
    """Whether the line behind one of a shape is read together with that, which is of training."""
    return bool(shape.waits_as) and is_placed(shape.template)
