"""The first code of ours to run on a far machine: its source is sent with the command, before anything else is there.

It finds the bundle in a cache of the far user, or asks for it, checks its SHA-256, stores it whole or not at all, and
runs it. Each line that it prints begins with the caller's marker, to tell it from the output of shells and start-up
files. Python 3.11, standard library only.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import platform
import pwd
import runpy
import shutil
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

ARRIVING = ".arriving-"
"""Prefix of the name of an incomplete folder."""
_MOST_BYTES = 1 << 26


class Refused(Exception):
    """We cannot start here; ``what`` tells programs why."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(detail)
        self.what = what


def main(marker: str, text: str) -> None:
    """Get the bundle and run it.

    Args:
        text: a JSON object: digest and size (files, bytes) of the bundle, start, words, home, folder.
    """
    asked = json.loads(text)
    with os.fdopen(os.dup(0), "rb", 0) as reads, os.fdopen(os.dup(1), "wb", 0) as writes:

        def say(word: str, **fields: Any) -> None:
            writes.write(f"\n{marker} {word} {json.dumps(fields)}\n".encode())

        try:
            find_home()
            set_place(asked["home"], asked["folder"])
            folder, fresh = find(asked), False
            if folder is None:
                say("send")
                folder, fresh = unpack(receive(reads, asked["digest"]), asked), True
        except Refused as refused:
            say("refused", what=refused.what, detail=str(refused))
            return
        with suppress(OSError):
            os.utime(folder)  # when it was last used
        facts = {"version": platform.python_version(), "executable": sys.executable, "system": platform.system()}
        say("ready", python=facts, bundle=str(folder), fresh=fresh, time=time.time())
    sys.argv = [str(folder / asked["start"]), *asked["words"]]
    runpy.run_path(sys.argv[0], {"HAS_JUST_ARRIVED": fresh}, "__main__")


def find_home() -> None:
    """If HOME leads nowhere, set it to the home that the system knows for this user: fish garbles non-ASCII letters."""
    with suppress(KeyError):  # a user whom the system does not know
        known, told = pwd.getpwuid(os.geteuid()).pw_dir, os.environ.get("HOME")
        if not (told and Path(told).is_dir()) and Path(known).is_dir():
            os.environ["HOME"] = known


def set_place(home: str, folder: str) -> None:
    """Set mpstui's home, if one is given, and change to ``folder``, by default the user's home."""
    if home:
        os.environ["MPSTUI_HOME"] = str(Path(home).expanduser())
    try:
        os.chdir(Path(folder or "~").expanduser())
    except (OSError, RuntimeError) as error:
        if folder:
            raise Refused("folder", f"{folder}: {error}") from error
        os.chdir("/")


def caches() -> Iterator[Path]:
    """Yield the places where bundles may be kept, the user's cache first."""
    with suppress(RuntimeError):  # a user without a home
        home = Path.home()
        named = os.environ.get("XDG_CACHE_HOME", "")
        own = home / ("Library/Caches" if sys.platform == "darwin" else ".cache")
        yield (Path(named) if named.startswith("/") else own) / "mpstui" / "bundles"
    for shared in (os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"), "/var/tmp", "/tmp", "/dev/shm"):
        if shared and shared.startswith("/"):
            yield Path(shared) / f"mpstui-{os.geteuid()}" / "bundles"


def find(asked: dict[str, Any]) -> Path | None:
    """The folder of the bundle if it was sent before, is complete and safe to run; otherwise None."""
    for cache in caches():
        folder: Path = cache / asked["digest"]
        try:
            if all(map(is_own, (cache.parent, cache, folder))) and measured(folder) == tuple(asked["size"]):
                return folder
        except OSError:
            continue
    return None


def is_own(folder: Path) -> bool:
    """True if nobody but this user, or root, could have put anything into the folder, or made the link to it."""
    found = folder.stat()
    return folder.lstat().st_uid == found.st_uid == os.geteuid() and not found.st_mode & 0o022


def measured(folder: Path) -> tuple[int, int]:
    """Number of files, not counting byte code, and their total bytes: cache cleaners remove single files."""
    files = size = 0
    for path, folders, names in os.walk(folder):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        files += len(names)
        size += sum(os.lstat(f"{path}/{name}").st_size for name in names)
    return files, size


def receive(reads: BinaryIO, digest: str) -> bytes:
    """The bundle, as :meth:`mpstui.core.hosts.bundle.Bundle.packed` sends it."""
    length = int.from_bytes(exactly(reads, 8), "big")
    if length > _MOST_BYTES:
        raise Refused("transfer", f"{length} bytes were announced")
    try:
        archive = zlib.decompress(exactly(reads, length))
    except zlib.error as error:
        raise Refused("transfer", str(error)) from error
    if hashlib.sha256(archive).hexdigest() != digest:
        raise Refused("transfer", "its SHA-256 is another one")
    return archive


def exactly(reads: BinaryIO, count: int) -> bytes:
    """Read exactly ``count`` bytes."""
    found = bytearray()
    while len(found) < count:
        part = reads.read(min(count - len(found), 1 << 16))
        if not part:
            raise Refused("transfer", f"it ended after {len(found)} of {count} bytes")
        found += part
    return bytes(found)


def unpack(archive: bytes, asked: dict[str, Any]) -> Path:
    """Store the bundle in the first cache that accepts it."""
    failures = []
    mask = os.umask(0o077)
    try:
        for cache in caches():
            try:
                cache.parent.mkdir(parents=True, exist_ok=True)
                if cache.parent.lstat().st_uid == os.geteuid():
                    cache.parent.chmod(0o700)  # made by another program of ours, under another umask
                    cache.mkdir(exist_ok=True)
                    if is_own(cache.parent) and is_own(cache):
                        return put(archive, cache, asked)
                failures.append(f"{cache}: others can write there")
            except OSError as error:
                failures.append(f"{cache}: {error.strerror}")
    finally:
        os.umask(mask)
    raise Refused("room", "; ".join(failures))


def put(archive: bytes, cache: Path, asked: dict[str, Any]) -> Path:
    """Store it whole or not at all; if several processes do so at once, the first one wins and all can use it."""
    folder: Path = cache / asked["digest"]
    temporary = Path(tempfile.mkdtemp(prefix=ARRIVING, dir=cache))
    damaged = cache / f"{temporary.name}-damaged"
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            for entry in files:
                path = temporary / entry.name
                path.parent.mkdir(parents=True, exist_ok=True)
                content = files.extractfile(entry)
                path.write_bytes(content.read() if content else b"")
        if folder.exists() and measured(folder) != tuple(asked["size"]):
            folder.rename(damaged)
        with suppress(OSError):  # another process has put it there meanwhile
            temporary.rename(folder)
        return folder
    finally:
        for left in (temporary, damaged):
            shutil.rmtree(left, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], base64.urlsafe_b64decode(sys.argv[2]).decode())
