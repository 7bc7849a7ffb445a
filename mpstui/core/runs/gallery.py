"""The images and texts that a run has logged, whether stored with our own records or in other programs' files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from ...wire import storage
from ...wire.rundir import RunDir
from ..model.kept import Kept
from ..model.moment import Moment
from ..model.snapshot import RunSnapshot
from .images import MOST_BYTES, Image, Logged, each_once, image_in, images_of, read_image
from .texts import LoggedText, texts_of


class Item(NamedTuple):
    """An image or a text."""

    name: str
    step: int | None
    attempt: int
    time: Moment
    number: int
    """A number that increases with every image, or text, that the run logs."""
    bytes: int
    file: str = ""
    """For an image: its name in the folder of images, or the path of the file that contains it."""
    offset: int = 0
    """Where the image begins in that file, in bytes."""
    text: str | None = None


class Gallery(Protocol):
    """The images and texts of one run."""

    def items(self) -> Sequence[Item]:
        """Return all items, images before texts; those of the same name are in the order of their steps."""

    def path(self, item: Item) -> Path:
        """Return the file that contains an image."""

    def image(self, item: Item) -> Image:
        """Read one of the images.

        Raises:
            OSError: it is missing or unreadable. ValueError: it cannot be shown; says why.
        """


def gallery_of(snapshot: RunSnapshot) -> Gallery:
    """Return the gallery of a run."""
    return OwnGallery(RunDir(snapshot.dir)) if snapshot.is_ours else KeptGallery(snapshot.kept)


class OwnGallery:
    """The gallery of a run started by mpstui: image files in a folder, and texts among its events."""

    def __init__(self, run: RunDir) -> None:
        self._run = run

    def items(self) -> Sequence[Item]:
        texts = texts_of(self._run).values()
        return [*map(_of_image, images_of(self._run)), *(_of_text(one) for of in texts for one in of)]

    def path(self, item: Item) -> Path:
        return self._run.images / item.file

    def image(self, item: Item) -> Image:
        return read_image(self._run, item.file)


class KeptGallery:
    """The gallery of a foreign run: what the readers of its files have found."""

    def __init__(self, kept: Sequence[Kept]) -> None:
        self._kept = kept

    def items(self) -> Sequence[Item]:
        images = each_once(one for one in self._kept if one.text is None)
        texts = each_once(one for one in self._kept if one.text is not None)
        return [_of_kept(one) for named in (images, texts) for of in named.values() for one in of]

    def path(self, item: Item) -> Path:
        return Path(item.file)

    def image(self, item: Item) -> Image:
        return image_at(Path(item.file), item.offset, item.bytes)


def image_at(path: Path, offset: int, size: int) -> Image:
    """Read an image from part of a file, or from all of it if ``offset`` is 0; raises like :meth:`Gallery.image`."""
    if not offset:
        return image_in(storage.read_bytes(path, MOST_BYTES))
    if size > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
    with storage.open_file(path) as file:
        return image_in(os.pread(file.fileno(), size, offset))


def _of_image(one: Logged) -> Item:
    number = int(one.file.partition("-")[0])
    return Item(one.name, one.step, one.attempt, one.time, number, one.bytes, file=one.file)


def _of_text(one: LoggedText) -> Item:
    return Item(one.name, one.step, one.attempt, one.time, int(one.time * 10_000), _size(one.text), text=one.text)


def _of_kept(one: Kept) -> Item:
    size = _size(one.text) if one.text is not None else one.bytes
    if one.text is None and not size:
        with contextlib.suppress(OSError):
            size = Path(one.file).stat().st_size
    return Item(one.name, one.step, one.attempt, one.time, one.number, size, one.file, one.offset, one.text)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
