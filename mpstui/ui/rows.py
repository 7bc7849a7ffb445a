"""Lines of text with roles: what a panel is made of before it is coloured. Pure, and readable in a test.

A role (``dim``, ``good``, ``title`` ...) is a name to which the theme gives a colour. Everything from outside the
program passes through :func:`clean` on its way into a row, so nothing in a row can move the cursor or hide text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

LONGEST = 2000
"""Most characters of a text that are looked at; the rest of a name of a megabyte would never be seen."""

BLOCKS = "▁▂▃▄▅▆▇█"
LEVELS = 7
"""The full block is left out: curves in neighbouring rows would run together."""


class Span(NamedTuple):
    """A piece of text in one role; the empty role is plain text. Two roles may be joined by a space."""

    text: str
    role: str = ""


class Row(NamedTuple):
    """One line of the screen; ``base`` is the role underneath all of it, up to the panel's right edge."""

    spans: tuple[Span, ...] = ()
    base: str = ""

    @property
    def text(self) -> str:
        """The text, without roles."""
        return "".join(span.text for span in self.spans)

    @property
    def width(self) -> int:
        """The number of cells it takes."""
        return sum(width_of(span.text) for span in self.spans)


def clean(text: str, longest: int = LONGEST) -> str:
    """Turn outside text into one harmless line: cut first, then stripped of control sequences, tabs and line ends."""
    cut = text[: longest + 1].translate(_SPACES)
    if not cut.isprintable():
        from ..core.formats.console import strip_controls  # rare, and too slow an import for the first paint

        cut = strip_controls(cut)
    return cut if len(cut) <= longest else cut[: longest - 1] + "…"


def visible(text: str) -> str:
    """Make text safe for the terminal: each invisible or control character is replaced by one visible cell.

    The last line of defence: text that did not pass through :func:`clean` shows ``␛`` and controls nothing.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _CONTROLS.get(one, "\ufffd") for one in text)


_CONTROLS = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "␡"}
_SPACES = str.maketrans("\t\n\r\v\f", "     ")


def row(*parts: str | Span | tuple[str, str], base: str = "") -> Row:
    """Make a row of parts, leaving out empty ones."""
    spans = (part if isinstance(part, Span) else Span(part) if isinstance(part, str) else Span(*part) for part in parts)
    return Row(tuple(span for span in spans if span.text), base)


EMPTY = Row()


@lru_cache(4096)
def width_of(text: str) -> int:
    """Return the number of cells that ``text`` takes; wide characters take two."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, width: int, align: str = "left") -> str:
    """Return ``text`` in exactly ``width`` cells: padded, or cut with an ellipsis."""
    if width <= 0:
        return ""
    taken = width_of(text)
    if taken > width:
        return set_cell_size(text, width - 1) + "…" if width > 1 else "…"
    padding = " " * (width - taken)
    return padding + text if align == "right" else text + padding


def cut(text: str, width: int) -> str:
    """Return ``text`` in at most ``width`` cells, cut with an ellipsis."""
    return text if width_of(text) <= width else fit(text, width)


def spread(left: Iterable[Span], right: Iterable[Span], width: int) -> Row:
    """Put ``left`` at the left edge and ``right`` at the right one; if they meet, the left is cut."""
    right_spans = tuple(right)
    columns = width - sum(width_of(span.text) for span in right_spans)
    kept = clip(tuple(left), columns - 1 if right_spans else columns)
    filler = columns - sum(width_of(span.text) for span in kept)
    return row(*kept, Span(" " * max(0, filler)), *right_spans)


def clip(spans: tuple[Span, ...], width: int) -> tuple[Span, ...]:
    """Return the spans in at most ``width`` cells; text that does not fit ends in an ellipsis."""
    kept: list[Span] = []
    columns = width
    for span in spans:
        taken = width_of(span.text)
        if taken > columns:
            if columns > 0:
                kept.append(Span(fit(span.text, columns), span.role))
            break
        kept.append(span)
        columns -= taken
    return tuple(kept)


def bar(fraction: float | None, width: int, role: str = "bar") -> tuple[Span, ...]:
    """Return a progress bar of thin lines, heavy for the part done; dotted if the fraction is unknown."""
    if width <= 0:
        return ()
    if fraction is None:
        return (Span("┄" * width, "track"),)
    halves = round(max(0.0, min(1.0, fraction)) * width * 2)
    done = "━" * (halves // 2) + ("╸" if halves % 2 else "")
    return tuple(span for span in (Span(done, role), Span("─" * (width - len(done)), "track")) if span.text)


def sparkline(values: Sequence[float], width: int) -> str:
    """Draw values in ``width`` cells, the newest at the right; fewer values than cells leave blanks at the left.

    More values than cells are averaged in fixed bins, so that a new value moves few cells. A bin without a finite value
    is blank. A constant curve runs along the middle.
    """
    if width <= 0:
        return ""
    size = max(1, math.ceil(len(values) / width))
    bins: list[float | None] = []
    for start in range(0, len(values), size):
        known = [value for value in values[start : start + size] if math.isfinite(value)]
        bins.append(math.fsum(value / len(known) for value in known) if known else None)
    finite = [value for value in bins if value is not None]
    low, span = (min(finite), max(finite) - min(finite)) if finite else (0.0, 0.0)
    cells = ""
    for value in bins:
        if value is None:
            cells += " "
        elif span <= 0 or not math.isfinite(span):
            cells += BLOCKS[3]
        else:
            cells += BLOCKS[min(LEVELS - 1, int((value - low) / span * LEVELS))]
    return cells.rjust(width)


def wrap(text: str, width: int, most: int) -> list[str]:
    """Break ``text`` at spaces into at most ``most`` lines of ``width`` cells; the last may end in an ellipsis."""
    if width < 1 or most < 1:
        return []
    lines: list[str] = []
    rest = text.strip()
    while rest and len(lines) < most - 1 and width_of(rest) > width:
        head = set_cell_size(rest, width).rstrip()
        at = head.rfind(" ")
        if at > 0 and len(rest) > len(head) and rest[len(head)] != " ":
            head = head[:at]
        lines.append(head)
        rest = rest[len(head) :].lstrip()
    return [*lines, cut(rest, width)] if rest else lines
