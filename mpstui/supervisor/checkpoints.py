"""The newest complete checkpoint, told without torch and without trusting a name alone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..wire import checkpoints
from ..wire.records import LaunchTemplate
from ..wire.rundir import RunDir

SETTLE_SECONDS = 2.0
"""A file written this recently is looked at twice."""
_TEMPORARY = re.compile(r"^\.|~$|[._-](?:tmp|temp|part|partial|incomplete|writing)(?:[._-]|$)|^tmp", re.IGNORECASE)
_ZIP_END = b"PK\x05\x06"
_ZIP_END_SEARCH_BYTES = 22 + 65535
"""The end record has 22 bytes and may be followed by a comment of at most 65535 (PKWARE appnote 4.3.16)."""


class Found(NamedTuple):
    """One checkpoint; a folder counts as one, with its newest file's time and the sum of its sizes."""

    path: Path
    size_bytes: int
    time: float

    @property
    def best(self) -> bool:
        """Named as the best one."""
        return checkpoints.is_best(self.path.stem)


def candidates(template: LaunchTemplate, run: RunDir) -> tuple[list[Found], bool]:
    """What the template's pattern finds and no temporary name, newest first; whether other runs may save there too.

    The pattern is looked up in the run directory; when that holds nothing, in the program's working folder.
    """
    if not template.checkpoints:
        return [], False
    found = _measured(run.path, template.checkpoints)
    shared = not found or run.path not in found[0].path.parents
    return found or _measured(Path(template.cwd), template.checkpoints), shared


def _measured(root: Path, pattern: str) -> list[Found]:
    found = (item for path in _expand(root, pattern) if (item := measure(path)))
    return sorted(found, key=lambda item: (item.time, item.path.name), reverse=True)


def choose(found: Iterable[Found], *, best: bool, sleep: Callable[[float], None], now: float) -> Found | None:
    """The newest complete one; with ``best`` only those named so. What comes after it is the trainer's own fallback."""
    wanted = (item for item in found if item.best or not best)
    return next((item for item in wanted if is_complete(item, sleep=sleep, now=now)), None)


def measure(path: Path) -> Found | None:
    """Size and time of a checkpoint file or folder; None for temporary names and what is gone."""
    if is_temporary(path.name):
        return None
    try:
        if not path.is_dir():
            info = path.stat()
            return Found(path, info.st_size, info.st_mtime)
        files = [entry.stat() for entry in path.rglob("*") if entry.is_file()]
    except OSError:
        return None
    if not files:
        return None
    return Found(path, sum(info.st_size for info in files), max(info.st_mtime for info in files))


def is_temporary(name: str) -> bool:
    """Whether a name is one that writers use before the rename."""
    return _TEMPORARY.search(name) is not None


def is_complete(item: Found, *, sleep: Callable[[float], None], now: float) -> bool:
    """Whether it is whole as far as can be told: not empty, no longer growing, its format's own end present."""
    if item.size_bytes == 0:
        return False
    if abs(now - item.time) < SETTLE_SECONDS:
        sleep(0.25)
        if measure(item.path) != item:
            return False
    files = [item.path] if item.path.is_file() else _files_of(item.path)
    return all(_is_whole(path) for path in files)


def activity(template: LaunchTemplate, run: RunDir) -> tuple[int, float, int]:
    """A figure that changes while a checkpoint is written (temporary names included): count, newest time, bytes."""
    if not template.checkpoints:
        return (0, 0.0, 0)
    pattern = str(Path(template.checkpoints).parent / "*")
    places = [*_expand(run.path, pattern), *_expand(Path(template.cwd), pattern)]
    infos = [info for path in places if (info := _stat(path))]
    return (len(infos), max((info.st_mtime for info in infos), default=0.0), sum(info.st_size for info in infos))


def _files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _expand(root: Path, pattern: str) -> Iterator[Path]:
    try:
        expanded = Path(pattern).expanduser()
        if expanded.is_absolute():
            root, expanded = Path(expanded.anchor), expanded.relative_to(expanded.anchor)
        yield from root.glob(str(expanded))
    except (OSError, ValueError, NotImplementedError, RuntimeError):
        return  # a pattern that nobody can follow finds nothing; RuntimeError: ~ of a user who is not there


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _is_whole(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(8)
            if head.startswith(b"PK\x03\x04"):
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _ZIP_END_SEARCH_BYTES))
                return _ZIP_END in file.read()
            if path.suffix == ".safetensors":
                return _safetensors_is_whole(head, file.read, path.stat().st_size)
    except OSError:
        return False
    return True


def _safetensors_is_whole(head: bytes, read: Callable[[int], bytes], size: int) -> bool:
    """The header (8 bytes of length, then JSON) says where the last tensor ends."""
    length = int.from_bytes(head, "little")
    if len(head) < 8 or length > size - 8:
        return False
    try:
        header = json.loads(read(length))
        ends = [item["data_offsets"][1] for name, item in header.items() if name != "__metadata__"]
        return 8 + length + max(ends, default=0) <= size
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return False
