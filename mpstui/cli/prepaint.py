"""Something to read while the screen is being imported: the title, and the end of the log that will be shown.

Importing what draws takes most of the time until the first paint. Standard library only, and nothing that is not
needed anyway: this is what makes the wait short.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_END_BYTES = 1 << 14
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"


@contextmanager
def early_picture(title: str, log: Path | None) -> Iterator[None]:
    """Draw at once; what follows draws over it. If it fails before it could, the terminal is given back."""
    plain = os.environ.get("TERM", "dumb") in ("dumb", "unknown", "")
    if plain:
        yield
        return
    width, height = os.get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    _write(_ENTER + picture(title, last_lines(log, height // 2) if log is not None else [], width, height))
    try:
        yield
    except BaseException:
        _write(_LEAVE)
        raise


def picture(title: str, lines: list[str], width: int, height: int) -> str:
    """The title above, the lines at the bottom, where the log and the footer will be."""
    shown = [f"\x1b[1;1H\x1b[1m {_fitting(title, width - 1)}\x1b[0m"]
    top = max(2, height - len(lines))
    shown += [f"\x1b[{top + place};1H  {_fitting(line, width - 2)}" for place, line in enumerate(lines[: height - 2])]
    return "".join(shown)


def last_lines(log: Path, count: int) -> list[str]:
    """The newest lines as they stand, of a redrawn one what was drawn last; none when the file cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
            data = file.read(_END_BYTES)
    except OSError:
        return []
    whole = data.rstrip(b"\r\n").split(b"\n")[1 if len(data) == _END_BYTES else 0 :]
    return [line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace") for line in whole[-count:]]


def _fitting(text: str, width: int) -> str:
    """What fits for certain, without anything that could steer the terminal."""
    start = text[: max(0, width if text.isascii() else width // 2)]
    return start if start.isprintable() else "".join(c if c.isprintable() else " " for c in start)


def _write(text: str) -> None:
    if sys.__stderr__ is not None:
        sys.__stderr__.write(text)
        sys.__stderr__.flush()
