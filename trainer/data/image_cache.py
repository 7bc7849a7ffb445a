"""Decoded images on disk, keyed by the files they were read from: the next run maps them into memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mpstui.wire import storage

_VERSION = "1"
_WORTH_BYTES = 16 << 20
"""Smaller sets of files decode fast enough without a cache."""
Values = np.ndarray[Any, Any]
Split = tuple[torch.Tensor, torch.Tensor]
"""Images, uint8 (n, 3, 32, 32), and labels, int64 (n,)."""


def decoded(folder: Path, files: Sequence[Path], decode: Callable[[], Split], worth_bytes: int = _WORTH_BYTES) -> Split:
    """The result of ``decode`` for these files, from the cache if they have not changed since.

    A cache that is damaged, full or somebody else's costs time, never a training. Its images are mapped, so that only
    those in use are read; they must not be written to.
    """
    try:
        facts = [(str(path.resolve()), (known := path.stat()).st_size, known.st_mtime_ns) for path in files]
    except OSError:
        return decode()  # which says what is missing
    if sum(size for _, size, _ in facts) < worth_bytes:
        return decode()
    place = folder / hashlib.sha256(repr((_VERSION, facts)).encode()).hexdigest()[:32]
    images, labels = place.with_suffix(".images.npy"), place.with_suffix(".labels.npy")
    with contextlib.suppress(OSError, ValueError, EOFError):
        return _checked(np.load(images, mmap_mode="r", allow_pickle=False), np.load(labels, allow_pickle=False))
    found = decode()
    with contextlib.suppress(OSError):
        storage.make_private_folder(folder)
        _write(labels, found[1].numpy())
        _write(images, found[0].numpy())
    return found


def _checked(images: Values, labels: Values) -> Split:
    fits = images.dtype == np.uint8 and images.shape == (len(labels), 3, 32, 32) and labels.dtype == np.int64
    if not fits or labels.ndim != 1:
        raise ValueError("not what was written here")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(images), torch.from_numpy(labels)


def _write(path: Path, values: Values) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with storage.create_file(temporary) as file:
            np.save(file, values)
            file.flush()
            # After a power cut the name must not belong to a file of zeros.
            storage.flush_to_disk(file.fileno(), drive_cache=False)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
