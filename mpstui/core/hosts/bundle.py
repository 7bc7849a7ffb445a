"""The program that is sent to a far machine: our own sources, all but the screen, and the two packages they need.

Two machines with the same sources make the same bytes, so the bundle's SHA-256 serves as its name over there:
``arrival.py`` keeps one folder for each. Byte code is left to the Python that will run it.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ...wire import storage
from ...wire.rundir import RunDir, run_dirs
from ..machine import BUNDLED, INSTALLED_TRAINER, trainer_module
from ..model.home import Home
from ..profiles.library import shipped_folder
from .arrival import ARRIVING

START = "mpstui/core/hosts/__main__.py"
"""The file in the bundle that is run."""
_SOURCES = Path(__file__).resolve().parents[3]
_STAYS = frozenset({"ui", "__pycache__", "profiles"})
"""Parts of the package that are not sent from there; profiles are added separately."""
_OTHERS = ("tomlkit", "platformdirs")
"""Packages kept apart from our own: a training that may import our trainers must not be able to import these."""
_LEVEL = 9


class Bundle(NamedTuple):
    """One version of the bundle."""

    digest: str
    """SHA-256 of :attr:`archive`, in hexadecimal."""
    archive: bytes
    """A tar file."""
    size: tuple[int, int]
    """Number of files, and their total bytes."""

    def packed(self) -> bytes:
        """The bundle as sent: its length in eight bytes, then a zlib stream (takes 0.2 s of processor time)."""
        stream = zlib.compress(self.archive, _LEVEL)
        return len(stream).to_bytes(8, "big") + stream


@cache
def bundle() -> Bundle:
    """Make the bundle from the sources that this process runs (60 ms)."""
    out, count, total = io.BytesIO(), 0, 0
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in sorted(_files()):
            data = storage.read_bytes(path)
            entry = tarfile.TarInfo(name)  # without owner, mode and time: the same bytes everywhere
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
            count, total = count + 1, total + len(data)
    return Bundle(hashlib.sha256(out.getvalue()).hexdigest(), out.getvalue(), (count, total))


def _files() -> Iterator[tuple[str, Path]]:
    """Yield each file with its name in the bundle, where it lies as in an installed mpstui."""
    yield from _below(_SOURCES / "mpstui", "mpstui", _STAYS)
    yield from _below(shipped_folder(), "mpstui/profiles", frozenset())
    yield from _below(_SOURCES / trainer_module(), INSTALLED_TRAINER, frozenset({"__pycache__"}))
    for name in _OTHERS:
        found = find_spec(name)
        if found is not None and found.origin:
            yield from _below(Path(found.origin).parent, f"{BUNDLED}/{name}", frozenset({"__pycache__"}))


def _below(folder: Path, name: str, left_out: frozenset[str]) -> Iterator[tuple[str, Path]]:
    for path in folder.iterdir():
        if path.is_dir():
            if path.name not in left_out:
                yield from _below(path, f"{name}/{path.name}", frozenset({"__pycache__"}))
        elif not path.name.startswith("."):
            yield f"{name}/{path.name}", path


KEPT_SECONDS = 30 * 86400.0
_CUT_SECONDS = 86400.0
_NAME = re.compile(r"[0-9a-f]{64}")


def remove_old(home: Home, now: float, cache: Path = _SOURCES.parent) -> None:
    """Called by a bundle that has just arrived: remove bundles unused for 30 days, and incomplete ones.

    The bundle from which a run was started stays as long as the run: its agent lies there, and its restarts need it.
    """
    if not _NAME.fullmatch(_SOURCES.name) and cache == _SOURCES.parent:
        return  # not in a bundle
    for folder in cache.iterdir():
        age = now - folder.lstat().st_mtime
        is_half = folder.name.startswith(ARRIVING) and age > _CUT_SECONDS
        is_old = _NAME.fullmatch(folder.name) and age > KEPT_SECONDS
        if is_half or (is_old and not any(_names(run, folder.name) for run in run_dirs(home.runs))):
            shutil.rmtree(folder, ignore_errors=True)


def _names(run: RunDir, name: str) -> bool:
    try:
        job = storage.read_bytes(run.job) if run.job.exists() else b""  # a job may wait for days
        return name.encode() in storage.read_bytes(run.spec) + job
    except OSError:
        return True  # unknown, so keep it
