"""The page of past messages, for anyone who was looking away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.present import moment_of_day
from ..rows import Row, clean, cut, row, wrap
from .dialogs import Page

if TYPE_CHECKING:
    from ..toasts import Said

_WIDEST = 120
_MOST_LINES = 12
_LEAST_BESIDE = 40
"""From this width on, a message is shown beside its time."""
_TONES = {"information": "", "warning": "warn", "error": "bad"}


class Messages(Page):
    """Opened by ``@``."""

    def __init__(self, said: Sequence[Said], now: float) -> None:
        """``said``: oldest first."""
        super().__init__()
        self._said, self._now = said, now

    def made(self, width: int) -> tuple[list[Row], int]:
        taken = min(width, _WIDEST)
        return message_rows(self._said, self._now, taken - 4), taken


def message_rows(said: Sequence[Said], now: float, width: int) -> list[Row]:
    """Return the messages in full, newest first."""
    lines = [row((line, "title")) for line in wrap("messages since the screen was opened, newest first", width, 4)]
    if not said:
        lines.append(row(("nothing", "dim")))
    for one in reversed(said):
        moment = moment_of_day(one.time, now)
        text = clean(one.text) + (f" ×{one.times}" if one.times > 1 else "")
        indent = len(moment) + 2 if width >= _LEAST_BESIDE else 1
        first, *others = wrap(text, width - indent, _MOST_LINES)
        beside = row((moment, "dim"), "  ", (first, _TONES[one.severity]))
        below = [row(" " * indent, (line, _TONES[one.severity])) for line in (first, *others)]
        lines += [beside, *below[1:]] if indent > 1 else [row((cut(moment, width), "dim")), *below]
    return lines
