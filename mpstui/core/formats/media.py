"""The images and texts found in metric files: their names, steps and locations, in bounded memory."""

from __future__ import annotations

import math
from collections import deque

from ..model.kept import Kept

MOST_KEPT = 5000
"""Per run; the newest are kept."""
LONGEST_TEXT = 10_000
MOST_CHARACTERS = 4 << 20
"""In all texts, names and paths of a run together."""


class Media:
    """The images and texts that one run has logged so far."""

    def __init__(self) -> None:
        self._found: deque[Kept] = deque()
        self._characters = 0
        self._last = 0
        self._told: tuple[Kept, ...] = ()
        self.attempt = 0
        """The attempt that new entries belong to."""

    def add_text(self, name: str, step: float, time: float, text: str) -> None:
        """Keep the beginning of a text; ``step`` and ``time`` are NaN if unknown."""
        self._add(Kept(0, name, *_placed(step, time), text=text[:LONGEST_TEXT]))

    def add_image(self, name: str, step: float, time: float, file: str, offset: int = 0, size: int = 0) -> None:
        """Remember where an image is stored."""
        self._add(Kept(0, name, *_placed(step, time), file=file, offset=offset, bytes=size))

    def _add(self, one: Kept) -> None:
        self._last += 1
        self._found.append(one._replace(number=self._last, attempt=self.attempt))
        self._characters += _characters(one)
        while len(self._found) > MOST_KEPT or self._characters > MOST_CHARACTERS:
            self._characters -= _characters(self._found.popleft())

    @property
    def found(self) -> tuple[Kept, ...]:
        """The entries in the order logged; the same object until another is added."""
        if self._last != (self._told[-1].number if self._told else 0):
            self._told = tuple(self._found)
        return self._told


def _placed(step: float, time: float) -> tuple[int | None, float]:
    return int(step) if math.isfinite(step) else None, time if math.isfinite(time) else 0.0


def _characters(one: Kept) -> int:
    return len(one.name) + len(one.text or "") + len(one.file)
