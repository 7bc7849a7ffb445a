"""Commands that look at something until it ends, over a line that may be cut: they go on where they were.

With all that it prints such a command says how far it has got. The near end of the line prints nothing that is not
behind such a word, and gives the last one to the same command on the next line: nothing is lost, nothing comes twice.
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
    """This process goes on for one whose line was cut, or its own line may be: places are written to a descriptor."""
    global _known, _descriptor
    _known, _descriptor = known, descriptor


def known(name: str) -> Any:
    """What was said by this name on an earlier line; None: nothing, or this is the first."""
    return _known.get(name)


def give(data: bytes, **place: Any) -> None:
    """Print bytes, behind which the command is at a place."""
    put(data)
    if _descriptor is not None:
        os.write(_descriptor, json.dumps({"printed": _printed, "place": place}).encode() + b"\n")


def put(data: bytes) -> None:
    """Print bytes that are followed by others before there is a place."""
    global _printed
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    _printed += len(data)


class Held:
    """What such a command prints, at the near end: kept until it is known where that leaves it."""

    def __init__(self) -> None:
        self.place: Mapping[str, Any] = {}
        """Behind all that was let go."""
        self._kept, self._gone = bytearray(), 0
        self._words: list[Mapping[str, Any]] = []
        self._unread = b""

    def take(self, printed: bytes = b"", places: bytes = b"") -> bytes:
        """What can be printed now that this has come, in whatever order the two do."""
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
        """The last words of a command that has ended, behind which there is no place."""
        return bytes(self._kept)
