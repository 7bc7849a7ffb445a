"""The run that a checkpoint says it is of, where a trainer of ours wrote it: told from its head, without torch."""

from __future__ import annotations

import re
from pathlib import Path

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
        with path.open("rb") as file:
            found = _FOUND.search(file.read(_HEAD_BYTES))
    except OSError:
        return None
    return found[1].decode() if found else None
