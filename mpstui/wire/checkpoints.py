"""What a checkpoint's name says, and its first bytes of the run that wrote it; the same everywhere, without torch."""

from __future__ import annotations

import re
from pathlib import Path

from . import storage

_BEST = re.compile(r"(?<![a-z])best|best(?![a-z])", re.IGNORECASE)
_EARLIER = re.compile(r"^best-earlier-(\d+)$")


def is_best(stem: str) -> bool:
    """Whether a file's name without its ending calls it the best one; not that of a training that was begun anew."""
    return _BEST.search(stem) is not None and not is_earlier_best(stem)


def earlier_best(number: int) -> str:
    """The name without its ending under which the best of a training stays when the next one has a best of its own."""
    return f"best-earlier-{number}"


def is_earlier_best(stem: str) -> bool:
    """Whether a name is one of :func:`earlier_best`."""
    return earlier_number(stem) > 0


def earlier_number(stem: str) -> int:
    """The number in a name that :func:`earlier_best` gave, the highest is the newest; 0 for any other name."""
    found = _EARLIER.match(stem)
    return int(found[1]) if found else 0


_HEAD_BYTES = 16 * 1024
"""`torch.save` writes the pickled structure first and uncompressed; the mark stands at its beginning."""
_MARK = "mpstui-run:"
"""The id behind it ends in a semicolon: pickle puts its next opcode, which may be a letter, right behind a text."""
_FOUND = re.compile(_MARK.encode() + rb"([0-9A-Za-z][0-9A-Za-z._-]{0,127});")


def mark(run: str) -> str:
    """What a trainer puts at the beginning of a checkpoint's state."""
    return f"{_MARK}{run};"


def owner_of(path: Path) -> str | None:
    """The id of the run that wrote a checkpoint; None where the file does not say, or cannot be read."""
    try:
        with storage.open_file(path) as file:
            found = _FOUND.search(file.read(_HEAD_BYTES))
    except OSError:
        return None
    return found[1].decode() if found else None
