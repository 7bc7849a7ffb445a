"""The program that a far machine is sent: our own sources, all but the screen, and the two packages they need.

Two machines with the same sources make the same bytes, so that its SHA-256 is its name there: ``arrival.py`` keeps one
folder for each. Byte code is left to the Python that will run it.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ...wire import storage
from ..machine import INSTALLED_TRAINER, trainer_module
from ..profiles.library import shipped_folder

START = "mpstui/core/hosts/__main__.py"
"""What is run of it."""
_SOURCES = Path(__file__).resolve().parents[3]
_STAYS = frozenset({"ui", "__pycache__", "profiles"})
"""Parts of the package that stay here; profiles are found by another way."""
_OTHERS = ("tomlkit", "platformdirs")
_ELSEWHERE = "vendor"
"""Where they lie, apart from ours: a training that is shown our trainers must not be shown these."""
_LEVEL = 9


class Bundle(NamedTuple):
    """One version of it."""

    digest: str
    """SHA-256 of :attr:`archive`, in hexadecimal."""
    archive: bytes
    """A tar file."""
    size: tuple[int, int]
    """How many files, and their bytes."""

    def packed(self) -> bytes:
        """As it travels (0.2 s of processor time): its length in eight bytes, and zlib's stream."""
        stream = zlib.compress(self.archive, _LEVEL)
        return len(stream).to_bytes(8, "big") + stream


@cache
def bundle() -> Bundle:
    """Of the sources that this process runs (60 ms)."""
    out, count, total = io.BytesIO(), 0, 0
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in sorted(_files()):
            data = storage.read_bytes(path)
            entry = tarfile.TarInfo(name)  # neither owner, mode nor time: the same bytes everywhere
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
            count, total = count + 1, total + len(data)
    return Bundle(hashlib.sha256(out.getvalue()).hexdigest(), out.getvalue(), (count, total))


def _files() -> Iterator[tuple[str, Path]]:
    """Every file under the name it has there, which is that of an installed mpstui."""
    yield from _below(_SOURCES / "mpstui", "mpstui", _STAYS)
    yield from _below(shipped_folder(), "mpstui/profiles", frozenset())
    yield from _below(_SOURCES / trainer_module(), INSTALLED_TRAINER, frozenset({"__pycache__"}))
    for name in _OTHERS:
        found = find_spec(name)
        if found is not None and found.origin:
            yield from _below(Path(found.origin).parent, f"{_ELSEWHERE}/{name}", frozenset({"__pycache__"}))


def _below(folder: Path, name: str, left_out: frozenset[str]) -> Iterator[tuple[str, Path]]:
    for path in folder.iterdir():
        if path.is_dir():
            if path.name not in left_out:
                yield from _below(path, f"{name}/{path.name}", frozenset({"__pycache__"}))
        elif not path.name.startswith("."):
            yield f"{name}/{path.name}", path
