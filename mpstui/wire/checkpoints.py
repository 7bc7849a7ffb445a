"""Checkpoints: where they are found, what their names mean, and the mark of the run that wrote each."""

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
"""The most names to compare with one pattern: a training must not wait while the whole disk is searched."""

_BEST = re.compile(r"(?<![a-z])best|best(?![a-z])", re.IGNORECASE)
_EARLIER = re.compile(r"^best-earlier-(\d+)$")


def is_best(stem: str) -> bool:
    """True if a file stem marks the best checkpoint, and not the best of an earlier training."""
    return _BEST.search(stem) is not None and not is_earlier_best(stem)


def earlier_best(number: int) -> str:
    """Return the file stem that a training's best checkpoint gets once a later training has a best of its own."""
    return f"best-earlier-{number}"


def is_earlier_best(stem: str) -> bool:
    """True if :func:`earlier_best` made this name."""
    return earlier_number(stem) > 0


def earlier_number(stem: str) -> int:
    """Return the number in a name from :func:`earlier_best` (the highest is the newest); 0 for any other name."""
    found = _EARLIER.match(stem)
    return int(found[1]) if found else 0


_TAIL_BYTES = 1 << 18
"""Bytes read from the end of the events: about the newest thousand events."""
_HEAD_BYTES = 16 * 1024
"""`torch.save` writes the pickled structure first and uncompressed; the mark is near its beginning."""
_MARK = "mpstui-run:"
"""A run id and a semicolon follow: pickle puts its next opcode, which may be a letter, right after a string."""
_FOUND = re.compile(_MARK.encode() + rb"([0-9A-Za-z][0-9A-Za-z._-]{0,127});")


MANIFEST = "manifest"
"""In a sharded checkpoint, a folder that several ranks wrote together: the file with what all parts share."""
_ROWS = re.compile(r"^rows-(\d{1,6})-of-(\d{1,6})$")


def rows_name(rank: int, of: int) -> str:
    """Return the name of one rank's file in a sharded checkpoint."""
    return f"rows-{rank}-of-{of}"


def lacks_parts(names: Iterable[str]) -> bool:
    """True if a folder with these names is a sharded checkpoint with parts missing."""
    names = set(names)
    of = next((int(found[2]) for name in names if (found := _ROWS.match(name))), 0)
    if not of:
        return False
    return len(names) <= of or not {MANIFEST, *(rows_name(rank, of) for rank in range(of))} <= names


def mark(run: str) -> str:
    """Return the mark that a trainer puts at the beginning of a checkpoint's state."""
    return f"{_MARK}{run};"


def owner_of(path: Path) -> str | None:
    """Return the id of the run that wrote a checkpoint; None if the file does not say or cannot be read."""
    try:
        with storage.open_file(path / MANIFEST if path.is_dir() else path) as file:
            found = _FOUND.search(file.read(_HEAD_BYTES))
    except OSError:
        return None
    return found[1].decode() if found else None


def told(events: Path) -> list[Path]:
    """Return the checkpoints that a training reported and that still exist, the newest report first.

    Weights-only files, which the agent alone saw being saved, do not count: nothing shows that a training can resume
    from them. Copies come last: one made late, such as of the best at the end, may hold an early state.
    """
    known = [(path, record) for path, record in _saved(events) if record.get("weights_only") is not True]
    found = dict.fromkeys(path for path, _ in sorted(known, key=lambda one: "copy_of" in one[1]))
    return [path for path in map(Path, found) if storage.stat_of(path)]


def tellers(runs: Path) -> dict[str, tuple[float, str]]:
    """Map each path to when a run (or its agent) last reported saving there, Unix seconds, and which run it was."""
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
    return found


def last_told(events: Path, path: str) -> dict[str, Any] | None:
    """Return the newest event that names this checkpoint or the folder it is in; None if there is none."""
    places = (path, os.path.dirname(path))  # noqa: PTH120
    return next((record for saved, record in _saved(events) if saved in places), None)


def _saved(events: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the checkpoints that a run's events name, the newest first."""
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
    """Yield what a glob matches below ``root``, or where an absolute or ``~`` pattern points, as ``Path.glob`` would.

    Each folder is read at most once per part of the pattern, so several ``**`` take no longer than one, and the search
    ends after :data:`MOST_ENTRIES` names. An invalid pattern matches nothing.
    """
    try:
        wanted = Path(pattern).expanduser()
    except RuntimeError:  # the home of a user who does not exist
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
    except (OSError, ValueError):  # not a folder, not readable by us, or an impossible name
        return []
