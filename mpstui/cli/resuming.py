"""Let a command that watches something over ``--host`` resume after its line was cut.

Along with its output, such a command writes its place: how far it has got. The near end prints output only up to the
last place it has received, and hands that place to the same command on the next line. So nothing is lost or repeated.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

_known: Mapping[str, Any] = {}
_descriptor: int | None = None
_printed = 0


def begin(known: Mapping[str, Any], descriptor: int) -> None:
    """Resume from ``known``, the place of a command whose line was cut; places are written to ``descriptor``."""
    global _known, _descriptor
    _known, _descriptor = known, descriptor


def known(name: str) -> Any:
    """Return a value from the place to resume from; None if there is none."""
    return _known.get(name)


def give(data: bytes, **place: Any) -> None:
    """Print bytes, after which the command is at ``place``."""
    put(data)
    if _descriptor is not None:
        os.write(_descriptor, json.dumps({"printed": _printed, "place": place}).encode() + b"\n")


def put(data: bytes) -> None:
    """Print bytes, with more to come before the next place."""
    global _printed
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    _printed += len(data)


class Held:
    """The near end's buffer: it holds output back until the place after it has arrived."""

    def __init__(self) -> None:
        self.place: Mapping[str, Any] = {}
        """The place after the last output that was released."""
        self._kept, self._gone = bytearray(), 0
        self._words: list[Mapping[str, Any]] = []
        self._unread = b""

    def take(self, printed: bytes = b"", places: bytes = b"") -> bytes:
        """Take what has arrived, output and places in any order; returns what can be printed now."""
        self._kept += printed
        *whole, self._unread = (self._unread + places).split(b"\n")
        self._words += [json.loads(line) for line in whole]
        end = self._gone
        while self._words and self._words[0]["printed"] <= self._gone + len(self._kept):
            word = self._words.pop(0)
            end, self.place = word["printed"], word["place"]
        free = bytes(self._kept[: end - self._gone])
        del self._kept[: len(free)]
        self._gone = end
        return free

    def rest(self) -> bytes:
        """Return an ended command's output after its last place."""
        return bytes(self._kept)
