"""List and read the images that a training has logged (``report.image``). Nothing in a file is trusted."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import unquote

from ...wire import storage
from ...wire.rundir import RunDir
from ..model.moment import Moment

MOST_LISTED = 5000
IMAGE_SECONDS = 1.0
"""Interval between checks for new images."""
_MOMENT_NS = 2_000_000_000
MOST_BYTES = 8 << 20
MOST_SIDE = 8192
"""Maximum width and height in pixels; no training logs larger images."""
_FILE = re.compile(r"(?P<number>\d{1,9})-(?P<attempt>\d{1,6})-(?P<step>-?\d{1,18}|x)-(?P<name>[^/\0]+)\.(?:png|jpg)")
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
_NEEDED = (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS")
_SIZE_OF_JPEG = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_SCAN_OF_JPEG = 0xDA


class Logged(NamedTuple):
    """One logged image of a run."""

    name: str
    step: int | None
    """None: it was logged before any step was known."""
    attempt: int
    time: Moment
    file: str
    """Its file name in the folder of images."""
    bytes: int


class Image(NamedTuple):
    """An image's properties, and its bytes stripped of metadata such as comments, locations and names."""

    kind: str
    """``png`` or ``jpeg``."""
    width: int
    height: int
    data: bytes


class _OfAStep(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def step(self) -> int | None: ...
    @property
    def attempt(self) -> int: ...


T = TypeVar("T", bound=_OfAStep)


def each_once(found: Iterable[T]) -> dict[str, list[T]]:
    """Group items by name, in the order of their steps; what a later attempt logged again counts once, as in curves."""
    kept: dict[str, list[T]] = {}
    for one in found:
        before = kept.setdefault(one.name, [])
        while before and before[-1].attempt < one.attempt and (before[-1].step or 0) >= (one.step or 0):
            before.pop()
        before.append(one)
    return kept


def images_of(run: RunDir) -> tuple[Logged, ...]:
    """Return a run's images, by name and step; what a later attempt logged again counts once, as in the curves."""
    found: dict[int, Logged] = {}
    try:
        with os.scandir(run.images) as entries:
            for entry in entries:
                told = _FILE.fullmatch(entry.name)
                if told is not None and len(found) < MOST_LISTED and entry.is_file(follow_symlinks=False):
                    there = entry.stat(follow_symlinks=False)
                    step = None if told["step"] == "x" else int(told["step"])
                    name = unquote(told["name"], errors="replace")
                    one = Logged(name, step, int(told["attempt"]), there.st_mtime, entry.name, there.st_size)
                    found[int(told["number"])] = one
    except OSError:
        return ()
    return tuple(one for each in each_once(found[number] for number in sorted(found)).values() for one in each)


class NewestImage:
    """Follows the number of a run's newest image, at the cost of one stat of the folder while nothing changes there."""

    def __init__(self, run: RunDir) -> None:
        self._folder = run.images
        self._seen: tuple[int, int] = 0, 0
        """When the folder last changed, in nanoseconds, and the number found then."""

    def number(self) -> int:
        """Return the number of the newest image, 0 if there is none."""
        try:
            changed = self._folder.stat().st_mtime_ns
            if changed != self._seen[0]:
                told = [found for path in self._folder.iterdir() if (found := _FILE.fullmatch(path.name))]
                # More may arrive at what a coarse clock takes for the same time: look again until that is past.
                over = time.time_ns() - changed > _MOMENT_NS
                self._seen = changed if over else 0, max([int(one["number"]) for one in told], default=0)
        except OSError:
            self._seen = 0, 0
        return self._seen[1]


def read_image(run: RunDir, file: str) -> Image:
    """Read one image of a run.

    Raises:
        OSError: it is missing or unreadable. ValueError: it cannot be shown; says why.
    """
    if not _FILE.fullmatch(file):
        raise ValueError("it is no image of a run")
    return image_in(storage.read_bytes(run.images / file, MOST_BYTES))


def image_in(data: bytes) -> Image:
    """Return the image in these bytes, judged by their header; raise ValueError if it is not an image, or too large."""
    try:
        if data.startswith(_PNG):
            if data[12:16] != _NEEDED[0]:
                raise ValueError("it is damaged (it does not begin with its size)")
            width, height, *_ = struct.unpack_from(">II", data, 16)
            kind, plain = "png", _PNG + b"".join(_parts_of_png(data))
        elif data.startswith(_JPEG):
            width, height, plain = _plain_jpeg(data)
            kind = "jpeg"
        else:
            raise ValueError("it is neither PNG nor JPEG")
    except (struct.error, IndexError):
        raise ValueError("it ends too early") from None
    if not (0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE):
        raise ValueError(f"it says that it is {width} x {height} pixels large")
    return Image(kind, width, height, plain)


def chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield the chunks of a PNG: the type of each, and where its content begins and ends."""
    at = len(_PNG)
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if at + 12 + length > len(data):
            raise IndexError
        yield kind, at + 8, at + 8 + length
        at += 12 + length
        if kind == b"IEND":
            return


def _parts_of_png(data: bytes) -> Iterator[bytes]:
    for kind, start, end in chunks(data):
        if kind in _NEEDED:
            yield data[start - 8 : end + 4]


def _plain_jpeg(data: bytes) -> tuple[int, int, bytes]:
    """Return the width and height of a JPEG, and its bytes without comments and application segments."""
    at, kept, size = 2, [_JPEG], (0, 0)
    while True:
        if data[at] != 0xFF:
            raise ValueError("it is a damaged JPEG")
        mark = data[at + 1]
        if mark == 0xFF:  # a fill byte
            at += 1
            continue
        if mark == _SCAN_OF_JPEG:
            return (*size, b"".join([*kept, data[at:]]))
        end = at + 2 + struct.unpack_from(">H", data, at + 2)[0]
        if mark in _SIZE_OF_JPEG:
            height, width = struct.unpack_from(">HH", data, at + 5)
            size = width, height
        # Drop application segments and comments, but keep 0xEE (Adobe), which defines the colour space.
        if mark == 0xEE or (mark != 0xFE and not 0xE1 <= mark <= 0xEF):
            kept.append(data[at:end])
        at = end
