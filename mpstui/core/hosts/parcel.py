"""Files on their way between two machines: listed with their digests first, so that only missing ones are sent.

The digest shows if a file has changed meanwhile, was cut short or arrived damaged. No file is held in memory whole: a
checkpoint may be larger than that.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from ...wire import storage
from ..model.errors import OperationError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ENTRY = re.compile(r"([0-9a-f]{64})(?:\+([0-9]{1,18}))?")
PART = ".part-"
"""Prefix of the names of incomplete files; their digest follows."""
_CHUNK_BYTES = 1 << 20
_MOST_STEPS = 1000
_LARGE_BYTES = 8 << 20
"""Larger files are weights: they hardly compress, and trying takes longer than most lines take to send them."""
HINT = "nothing was changed here; try again, with the same mpstui on both sides"
BESIDE = ".cwd"
"""Prefix of the names of a run's files that lie in the training's working folder instead of the run's."""
STAYS = frozenset(
    {
        "requests",
        "moving.json",
        "moved.json",
        "arrived.json",
        "supervisor.log",
        "alerts.log",
        "telemetry.jsonl",
        "stack_signal",
    }
)
"""Files of a run that belong to its machine: never sent, and refused on arrival."""


class Item(NamedTuple):
    """One file, or a link to one in the same folder."""

    name: str
    """Path relative to the folder, with ``/``."""
    digest: str
    """SHA-256 in hexadecimal; empty for a link."""
    size: int = 0
    executable: bool = False
    link: str = ""
    """Where a link leads; empty for a file."""


def items_of(manifest: Mapping[str, Any]) -> tuple[Item, ...]:
    """The files of a list made by another machine, checked: each must stay inside its folder.

    Raises:
        OperationError: one does not.
    """
    try:
        items = tuple(Item(*row) for row in manifest["files"])
        wrong = next((one.name for one in items if not _is_sound(one)), None)
    except (KeyError, TypeError, AttributeError) as error:
        raise OperationError(f"the list of files cannot be read: {error}", HINT) from error
    names, links = {one.name for one in items}, {one.name: one.link for one in items if one.link}
    wrong = wrong or next((one.name for one in items if not names.isdisjoint(_folders_of(one))), None)
    wrong = wrong or next((name for name in links if _leads_out(name, links)), None)
    if wrong is not None or len(names) < len(items):
        raise OperationError(f"the list of files cannot be used: {(wrong or 'a name is there twice')[:80]!r}", HINT)
    return items


def _is_sound(one: Item) -> bool:
    name, led = PurePosixPath(one.name), PurePosixPath(one.link)
    if (
        not name.parts
        or str(name) != one.name
        or name.is_absolute()
        or ".." in name.parts
        or "\0" in one.name + one.link
    ):
        return False
    if one.link:
        return not led.is_absolute() and not one.digest
    return _DIGEST.fullmatch(one.digest) is not None and one.size >= 0


def _leads_out(name: str, links: Mapping[str, str]) -> bool:
    """True if a link leaves the folder, directly or through other links of the list, or loops endlessly."""
    here, left = list(PurePosixPath(name).parts[:-1]), list(PurePosixPath(links[name]).parts)
    for _ in range(_MOST_STEPS):
        if not left:
            return False
        part = left.pop(0)
        if part == "..":
            if not here:
                return True
            here.pop()
        elif (link := links.get("/".join([*here, part]))) is not None:
            left = [*PurePosixPath(link).parts, *left]
        else:
            here.append(part)
    return True


def _folders_of(one: Item) -> Iterator[str]:
    """Its parent folders: none may be a file or a link of the same list, which could lead elsewhere."""
    return (str(folder) for folder in PurePosixPath(one.name).parents)


def below(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder, in order; links are not followed."""
    for base, folders, names in os.walk(folder):
        folders.sort()
        for path in (Path(base, name) for name in sorted(names)):
            if path.is_file() and not path.is_symlink():
                yield path


def digest_of(path: Path, meanwhile: Callable[[], object] = lambda: None) -> tuple[str, int]:
    """SHA-256 and size of a file as it is now.

    Args:
        meanwhile: called now and then, since a large file takes its time.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    found, size = hashlib.sha256(), 0
    with storage.open_file(path) as file:
        while data := file.read(_CHUNK_BYTES):
            found.update(data)
            size += len(data)
            meanwhile()
    return found.hexdigest(), size


def has(folder: Path, one: Item) -> bool:
    """True if ``folder`` has this very file or link."""
    path = folder / one.name
    try:
        return str(path.readlink()) == one.link if one.link else digest_of(path)[0] == one.digest
    except OSError:
        return False


def pack(
    files: Iterable[tuple[Item, Path]],
    wanted: Collection[str],
    out: BinaryIO,
    begun: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Write the files whose digests are ``wanted``, each content once, under its digest.

    Args:
        begun: how many bytes of each file, by digest, have arrived already; the rest is sent.

    Raises:
        OperationError: a file has changed since it was listed.
    """
    missing, files = set(wanted), list(files)
    sizes = {one.digest: one.size for one, _ in files if one.digest in missing}
    level = 1 if 2 * sum(size for size in sizes.values() if size > _LARGE_BYTES) < sum(sizes.values()) else 0
    with (
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=level, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for one, path in files:
            if one.digest in missing:
                missing.discard(one.digest)
                start = min(begun.get(one.digest, 0), one.size)
                entry = tarfile.TarInfo(f"{one.digest}+{start}" if start else one.digest)
                entry.size = one.size - start
                try:
                    with storage.open_file(path) as file:
                        file.seek(start)
                        archive.addfile(entry, file)
                except OSError as error:  # also if it has become shorter
                    raise OperationError(f"{one.name} was changed while it was sent: {error}", HINT) from error


def unpack(reads: BinaryIO, folder: Path) -> dict[str, Path]:
    """Receive a parcel into ``folder``; return its files by their digests, without cut or damaged ones.

    Raises:
        OSError, tarfile.TarError, EOFError: the disk is full, or the stream ended early; what was complete stays,
            and so does the beginning of an incomplete file (:func:`begun_in`).
    """
    storage.make_private_folder(folder)
    found: dict[str, Path] = {}
    with tarfile.open(fileobj=reads, mode="r|gz") as archive:
        for entry in archive:
            content = archive.extractfile(entry) if entry.isreg() else None
            named = _ENTRY.fullmatch(entry.name)
            if content is None or named is None:
                raise tarfile.TarError(f"{entry.name[:80]!r} does not belong there")
            path, seen = folder / f"{PART}{named[1]}", hashlib.sha256()
            with _begun(path, int(named[2] or 0), seen.update) as file:
                while data := content.read(_CHUNK_BYTES):
                    seen.update(data)
                    file.write(data)
                file.flush()
                storage.flush_to_disk(file.fileno(), drive_cache=False)
            if seen.hexdigest() == named[1]:
                found[named[1]] = path.rename(folder / named[1])
            else:
                path.unlink()
    return found


def begun_in(folder: Path) -> dict[str, int]:
    """Number of bytes received of each incomplete file, by digest."""
    parts = folder.glob(f"{PART}*")
    return {path.name.removeprefix(PART): size for path in parts if (size := path.stat().st_size)}


def _begun(path: Path, start: int, seen: Callable[[bytes], object]) -> BinaryIO:
    """Open a file to be continued from ``start``; its content up to there is passed to ``seen``.

    Raises:
        tarfile.TarError: it is shorter than that.
    """
    if not start:
        return storage.create_file(path)
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b")
    while (left := start - file.tell()) and (data := file.read(min(_CHUNK_BYTES, left))):
        seen(data)
    if left:
        file.close()
        raise tarfile.TarError(f"{path.name} holds less than {start} bytes")
    file.truncate()
    return file
