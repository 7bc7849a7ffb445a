"""The info page of a run: what it was started with, from which code, on which machine, and its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..rows import EMPTY, Row, clean, cut, fit, row, wrap
from .dialogs import Page

if TYPE_CHECKING:
    from ...core.runs.details import Section

_WIDEST = 140
_MOST_LINES = 12
_DIFF_ROLES = {"+": "good", "-": "bad", "@": "mark"}


class Info(Page):
    """Opened by ``i``; what it shows was read before it opens."""

    def __init__(self, name: str, sections: Sequence[Section]) -> None:
        super().__init__()
        self._run_name, self._sections = name, sections

    def made(self, width: int) -> tuple[list[Row], int]:
        taken = min(width, _WIDEST)
        return info_rows(self._run_name, self._sections, taken - 4), taken


def info_rows(name: str, sections: Sequence[Section], width: int) -> list[Row]:
    """Return the sections one below the other, in lines of at most ``width`` cells; code changes coloured as a diff."""
    lines = [row((cut(clean(name), width), "title")), EMPTY]
    for section in sections:
        lines.append(row((section.title, "strong")))
        longest = max((len(clean(label)) for label, _ in section.pairs), default=0)
        cells = min(longest, max(6, width // 3))
        for label, value in section.pairs:
            texts = wrap(clean(value), width - cells - 4, _MOST_LINES) or [""]
            lines.append(row("  ", (fit(clean(label), cells), "dim"), "  ", texts[0]))
            lines += [row(" " * (cells + 4), text) for text in texts[1:]]
        for line in section.lines:
            text = clean(line.replace("\t", "    "))
            if section.title == "code":
                lines.append(row("  ", (cut(text, width - 2), _DIFF_ROLES.get(text[:1], ""))))
            else:
                lines += [row("  ", (part, "dim")) for part in wrap(text, width - 2, _MOST_LINES)]
        lines.append(EMPTY)
    return lines
