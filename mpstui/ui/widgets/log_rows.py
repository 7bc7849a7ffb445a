"""A line of the log as rows of cells: cut, scrolled sideways, or wrapped to be read in full. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ..rows import Row, Span, clip, fit, row, width_of

if TYPE_CHECKING:
    from ...core.logview.line import LogLine
    from ...core.model.patterns import LinePattern

_GLYPHS = {"error": ("✗ ", "bad"), "warning": ("! ", "warn")}
_MARGIN = 2
"""Cells of the mark at the left edge."""
_INDENT = "  "
"""Indent of the continuation rows of a wrapped line."""
_TAB = 8
_MOST_MATCHES = 50
_MOST_ERROR_ROWS = 8
"""Most rows of an error that was not jumped to: one line of a thousand words must not fill the view."""
_LEAST_FILLED = 0.6
"""A row is broken at a space if that fills at least this share of it."""
Cell = tuple[str, str]
"""A character and its role."""


class Look(NamedTuple):
    """How the lines of a log are shown."""

    width: int
    wrapped: bool = False
    """True to wrap every line; otherwise only errors, and the line that was found."""
    shift: int = 0
    """Columns scrolled sideways."""
    pattern: str = ""
    """The search pattern."""


def log_rows(line: LogLine, look: Look, *, found: bool = False) -> tuple[Row, ...]:
    """Return a line with a mark for its level, its own colours, and the matches of a search; at least one row.

    Args:
        found: a search, a key or the mouse led to this line.
    """
    glyph, tone = _GLYPHS.get(line.level or "", ("  ", ""))
    base = "selected" if found else ""
    mark = (Span(glyph[:1], tone), Span("▶", "key strong")) if found else (Span(glyph, tone),)
    width = max(1, look.width - _MARGIN)
    broken = look.wrapped or found or line.level == "error"
    if not broken and not look.shift and not line.spans and not look.pattern and "\t" not in line.text:
        return (row(*mark, Span(_cut(line.text, width), tone), base=base),)
    cells = _cells(line, tone, look.pattern, None if broken else look.shift + width + 1)
    if not broken:
        return (row(*mark, *clip(_spans(_from_column(cells, look.shift)), width), base=base),)
    rows = _broken(cells, width)
    if not look.wrapped and not found and len(rows) > _MOST_ERROR_ROWS:
        rows = [*rows[: _MOST_ERROR_ROWS - 1], [*rows[_MOST_ERROR_ROWS - 1][: width - 4], ("…", "dim")]]
    first = row(*mark, *_spans(rows[0]), base=base)
    return (first, *(row(Span("  " + _INDENT), *_spans(cells), base=base) for cells in rows[1:]))


def _cut(text: str, width: int) -> str:
    return fit(text, width) if width_of(text) > width else text


def _cells(line: LogLine, tone: str, pattern: str, most: int | None) -> list[Cell]:
    """Return the line's first ``most`` characters, with tabs expanded."""
    text = line.text if most is None else line.text[: most + _TAB]
    roles = [tone] * len(text)
    for span in line.spans:
        roles[span.start : span.end] = [f"sgr:{span.codes}"] * len(text[span.start : span.end])
    for match in islice(matcher(pattern).finditer(text), _MOST_MATCHES) if pattern else ():
        roles[slice(*match.span())] = ["match"] * (match.end() - match.start())
    if "\t" not in text:
        return list(zip(text, roles, strict=True))
    cells: list[Cell] = []
    column = 0
    for character, role in zip(text, roles, strict=True):
        wide = _TAB - column % _TAB if character == "\t" else width_of(character)
        cells += [(" ", role)] * wide if character == "\t" else [(character, role)]
        column += wide
    return cells


def _from_column(cells: list[Cell], column: int) -> list[Cell]:
    """Return the cells from a column on, after a mark for the cut; half a wide character becomes a blank."""
    if not column or not cells:
        return cells
    passed = 0
    for place, (character, _) in enumerate(cells):
        if passed >= column + 1:
            return [("…", "dim"), *[(" ", "")] * (passed - column - 1), *cells[place:]]
        passed += width_of(character)
    return [("…", "dim")]


def _broken(cells: Sequence[Cell], width: int) -> list[Sequence[Cell]]:
    """Split the cells into rows of at most ``width``, less the indent after the first; at spaces if possible.

    If the window is too narrow for the indent, a row still takes at least one character.
    """
    rows: list[Sequence[Cell]] = []
    start, room, taken, space = 0, width, 0, -1
    for place, (character, _) in enumerate(cells):
        wide = 1 if character.isascii() else width_of(character)
        if taken + wide > room and place > start:
            end = space + 1 if space - start > room * _LEAST_FILLED else place
            rows.append(cells[start:end])
            start, room, space = end, max(2, width - len(_INDENT)), -1
            taken = sum(width_of(one) for one, _ in cells[start:place])
        taken += wide
        if character == " ":
            space = place
    return [*rows, cells[start:]]


def _spans(cells: Iterable[Cell]) -> tuple[Span, ...]:
    parts = groupby(cells, key=itemgetter(1))
    return tuple(Span("".join(character for character, _ in part), role) for role, part in parts)


@lru_cache(8)
def matcher(pattern: str) -> LinePattern:
    """Compile the pattern to highlight; text that is not a valid regular expression is taken literally."""
    from ...core.logview.searching import compiled

    return compiled(pattern)
