"""Where checkpoints lie, what a name says, and the first bytes of the run that wrote it; the same everywhere."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from . import storage

_MAGIC = re.compile(r"[*?\[]")
MOST_ENTRIES = 200_000
"""Names that one pattern is compared with: a training must not wait for a look through the whole disk."""

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


_TAIL_BYTES = 1 << 18
"""Of the events: the newest thousand."""
_HEAD_BYTES = 16 * 1024
"""`torch.save` writes the pickled structure first and uncompressed; the mark stands at its beginning."""
_MARK = "mpstui-run:"
"""The id behind it ends in a semicolon: pickle puts its next opcode, which may be a letter, right behind a text."""
_FOUND = re.compile(_MARK.encode() + rb"([0-9A-Za-z][0-9A-Za-z._-]{0,127});")


MANIFEST = "manifest"
"""In a checkpoint that is a folder, which several ranks of a training wrote together: what is common to all parts."""
_ROWS = re.compile(r"^rows-(\d{1,6})-of-(\d{1,6})$")


def rows_name(rank: int, of: int) -> str:
    """The file of one rank in such a folder."""
    return f"rows-{rank}-of-{of}"


def lacks_parts(names: Iterable[str]) -> bool:
    """Whether a folder with these names in it is one that ranks wrote together, but not all of it."""
    names = set(names)
    of = next((int(found[2]) for name in names if (found := _ROWS.match(name))), 0)
    if not of:
        return False
    return len(names) <= of or not {MANIFEST, *(rows_name(rank, of) for rank in range(of))} <= names


def mark(run: str) -> str:
    """What a trainer puts at the beginning of a checkpoint's state."""
    return f"{_MARK}{run};"


def owner_of(path: Path) -> str | None:
    """The id of the run that wrote a checkpoint; None where it does not say, or cannot be read."""
    try:
        with storage.open_file(path / MANIFEST if path.is_dir() else path) as file:
            found = _FOUND.search(file.read(_HEAD_BYTES))
    except OSError:
        return None
    return found[1].decode() if found else None


def told(events: Path) -> list[Path]:
    """What a training has said of its checkpoints that is still there, the newest word first.

    Weights alone, which the agent has seen being saved, are nothing that a training is known to go on from.
    """
    found = dict.fromkeys(path for path, record in _saved(events) if record.get("weights_only") is not True)
    return [path for path in map(Path, found) if storage.stat_of(path)]


def tellers(runs: Path) -> dict[str, str]:
    """Of each path the run that was the last to say that it has saved there, by itself or by the agent in it."""
    try:
        names = sorted(os.listdir(runs))  # noqa: PTH208 - names are enough
    except OSError:
        return {}
    found: dict[str, tuple[float, str]] = {}
    for name in names:
        for path, record in _saved(runs / name / "events.jsonl"):
            time = record.get("time")
            if isinstance(time, (int, float)):
                found[path] = max(found.get(path, (0.0, "")), (float(time), name))
    return {path: run for path, (_, run) in found.items()}


def _saved(events: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The checkpoints that a run's events tell of, the newest first."""
    try:
        with storage.open_file(events) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return
    for line in reversed(lines):
        try:
            record = storage.load_object(line) if b'"checkpoint"' in line else {}
        except storage.UnreadableRecord:
            continue
        path = record.get("path")
        if record.get("event") == "checkpoint" and isinstance(path, str) and os.path.isabs(path):  # noqa: PTH117
            yield path, record


def matching(root: Path, pattern: str) -> Iterator[Path]:
    """What a glob finds below ``root``, or where it says (``/``, ``~``): as ``Path.glob`` does, the uppermost first.

    Each folder is read once for a part of the pattern, so that several ``**`` take no longer than one, and no more is
    looked at than :data:`MOST_ENTRIES`. A pattern that nobody can follow finds nothing.
    """
    try:
        wanted = Path(pattern).expanduser()
    except RuntimeError:  # the home of a user who is not there
        return
    if wanted.is_absolute():
        root, wanted = Path(wanted.anchor), wanted.relative_to(wanted.anchor)
    parts = [part for at, part in enumerate(wanted.parts) if part != "**" or wanted.parts[at - 1 : at] != ("**",)]
    waiting, left = deque([(str(root), 0)] if parts else []), MOST_ENTRIES
    known: set[tuple[str, int]] = set()
    while waiting and left > 0:
        folder, at = waiting.popleft()
        if (folder, at) in known:
            continue
        known.add((folder, at))
        part, is_last = parts[at], at + 1 == len(parts)
        below = _inside(folder) if part == "**" or _MAGIC.search(part) else []
        left -= len(below) + 1
        if part == "**":
            found = [folder]
            waiting += [(entry.path, at) for entry in below if entry.is_dir(follow_symlinks=False)]
        elif _MAGIC.search(part):
            fits = re.compile(fnmatch.translate(part)).match
            found = [entry.path for entry in below if fits(entry.name)]
        else:
            found = [os.path.join(folder, part)]  # noqa: PTH118 - a Path for each would take longer than the look
        if not is_last:
            waiting += [(path, at + 1) for path in found]
        else:
            yield from (path for path in map(Path, found) if storage.stat_of(path))


def _inside(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (OSError, ValueError):  # no folder, none of ours, or a name that none can have
        return []
