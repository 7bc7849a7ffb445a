"""Indicators on disk, keyed by what they were computed from."""

from __future__ import annotations

import contextlib
import hashlib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mpstui.wire import storage

from .candles import Candles, Floats


class IndicatorCache:
    """Keeps one array for each symbol. A missing, damaged or unwritable file costs time, never a training."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        """None: nothing is kept."""

    def get(self, candles: Candles, key: str, compute: Callable[[Candles], Floats]) -> Floats:
        """The result of ``compute`` for the candles.

        Args:
            key: names the computation and its version; with the candles' own numbers it names the file.
        """
        if self._folder is None:
            return compute(candles)
        path = self._folder / f"{_digest(candles, key)}.npz"
        known = _load(path, len(candles))
        if known is not None:
            return known
        found = compute(candles)
        with contextlib.suppress(OSError):  # a full disk or a folder of somebody else's: computed again next time
            _save(path, found)
        return found


def _digest(candles: Candles, key: str) -> str:
    digest = hashlib.sha256(key.encode())
    for series in (candles.open, candles.high, candles.low, candles.close, candles.volume):
        digest.update(np.ascontiguousarray(series).tobytes())
    return digest.hexdigest()


def _load(path: Path, rows: int) -> Floats | None:
    try:
        with np.load(path, allow_pickle=False) as archive:  # a zip: each member has a checksum
            found: Floats = archive["values"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return found if len(found) == rows and found.dtype == np.float64 else None


def _save(path: Path, values: Floats) -> None:
    storage.make_private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with storage.create_file(temporary) as file:
            np.savez(file, values=values)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
