"""A checkpoint of another machine, kept here until a run begins from it; from then on it is in the run's directory."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ...wire import storage
from ..launching.provenance import BROUGHT
from ..machine import require_disk_space
from ..model.errors import OperationError
from ..model.home import Home, require_own
from .parcel import HINT, Item, below, digest_of, has, items_of, unpack

_STAGE = ".held-"
"""No run's name begins so. A checkpoint that no run began from is removed when another arrives after a day."""
_KEPT_SECONDS = 86_400.0


def checkpoint_files(checkpoint: Path) -> tuple[tuple[Item, Path], ...]:
    """The files of a checkpoint, which may be a folder, with their digests.

    Raises:
        OperationError: it cannot be read.
    """
    try:
        paths = list(below(checkpoint)) if checkpoint.is_dir() else [checkpoint]
        return tuple((Item(str(path.relative_to(checkpoint.parent)), *digest_of(path)), path) for path in paths)
    except OSError as error:
        raise OperationError(f"the checkpoint {checkpoint} cannot be read: {error.strerror}") from error


def held(manifest: Mapping[str, Any], home: Home) -> Path | None:
    """A folder that already has exactly these files, in a run that began from them; None if there is none."""
    for path in home.runs.glob(f"*/brought/{BROUGHT}"):
        with suppress(OSError, storage.UnreadableRecord):
            known = storage.read_json(path) or {}
            if known.get("files") == manifest["files"] and all(has(path.parent, one) for one in items_of(manifest)):
                return path.parent
    return None


def hold(manifest: Mapping[str, Any], reads: BinaryIO, home: Home) -> Path:
    """Receive the files, completely or not at all; return the folder that they are in.

    Raises:
        OperationError: a file is missing or not as it should be, or the disk is full; nothing is left behind.
    """
    files = items_of(manifest)
    try:
        require_own(home)
        storage.make_private_folder(home.runs)
        _clear(home)
        require_disk_space(home.runs, sum(one.size for one in files))
        stage = Path(tempfile.mkdtemp(prefix=_STAGE, dir=home.runs))
    except OSError as error:
        raise OperationError(f"no checkpoint can be kept in {home.runs}: {error.strerror}") from error
    try:
        _fill(stage, files, unpack(reads, stage / "new"))
        return stage
    except BaseException as error:
        shutil.rmtree(stage, ignore_errors=True)
        if not isinstance(error, (OSError, tarfile.TarError, EOFError)):
            raise
        detail = getattr(error, "strerror", None) or str(error)
        told = f"the checkpoint did not arrive in {home.runs}: {detail}"
        raise OperationError(told, "nothing was launched") from error


def _fill(stage: Path, files: Sequence[Item], new: Mapping[str, Path]) -> None:
    for one in files:
        if one.link or one.digest not in new:
            raise OperationError(f"{one.name} did not arrive whole", HINT)
        path = stage / one.name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(new[one.digest], path)
    shutil.rmtree(stage / "new")
    storage.write_json(stage / BROUGHT, {"files": [list(one) for one in files]})


def let_go(folder: Path) -> None:
    """Remove what was kept: the run has its own copy, or none will begin from it."""
    if folder.name.startswith(_STAGE):
        shutil.rmtree(folder, ignore_errors=True)


def _clear(home: Home) -> None:
    for stage in home.runs.glob(f"{_STAGE}*"):
        with suppress(OSError):
            if stage.stat().st_mtime < time.time() - _KEPT_SECONDS:
                shutil.rmtree(stage, ignore_errors=True)
