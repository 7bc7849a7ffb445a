"""One file of tensors and plain containers: written to the disk before it counts, read without running code."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mpstui.wire import storage


def write(path: Path, state: Mapping[str, Any]) -> None:
    """Write a file that only this user can read, and wait until the disk has it.

    Raises:
        OSError: it could not be written.
    """
    with storage.create_file(path) as file:
        try:
            torch.save(dict(state), file)
        except RuntimeError as error:  # torch's zip writer turns a full disk into this
            raise OSError(str(error).partition("\n")[0]) from error
        file.flush()
        os.fsync(file.fileno())


def read(path: Path, *, mapped: bool = False) -> Any:
    """What a file holds, on the CPU. Zip, pickle and torch each raise their own kinds of exceptions.

    Args:
        mapped: tensors are read from the file when they are used; it must exist until then.
    """
    require_plain_zip(path)
    return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)


def require_plain_zip(path: Path) -> None:
    """Raise a ValueError if a zip is compressed: torch never does that, and one megabyte could fill the memory."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise ValueError("its contents are compressed, which torch.save never does")
