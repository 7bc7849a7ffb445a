"""Arrays of .npy and .npz files, mapped instead of read, so that a data set may be larger than the memory."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from ..device import Device
from ..errors import UsageError

_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Start of a zip member (APPNOTE 6.3.10, section 4.3.7): signature, length of the name, length of the extra field."""
_OBJECTS = "an array of Python objects is not read, because reading it may run code"


@dataclass(frozen=True)
class Stored:
    """The place of an array in a file; worker processes get only this."""

    path: Path
    offset: int
    dtype: str
    shape: tuple[int, ...]
    fortran: bool

    def open(self) -> np.ndarray[Any, Any]:
        """The array, read-only; the system pages in what is used."""
        order: Any = "F" if self.fortran else "C"
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)


class Rows:
    """Vectors by row number, held in memory, in a mapped file or on a device."""

    def __init__(self, source: np.ndarray[Any, Any] | Stored) -> None:
        self._stored = source if isinstance(source, Stored) else None
        self._array = source if isinstance(source, np.ndarray) else None
        self._tensor: torch.Tensor | None = None
        self._index_to: Callable[[torch.Tensor], torch.Tensor] = _unmoved
        self.shape: tuple[int, ...] = tuple(source.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_array": None if self._stored else self._array}

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """All rows, mapped if they come from a file."""
        if self._array is None:
            assert self._stored is not None
            self._array = self._stored.open()
        return self._array

    @property
    def mapped(self) -> bool:
        """Whether a file holds the rows."""
        return self._stored is not None

    @property
    def bytes(self) -> int:
        """The size of all rows in bytes."""
        return int(self.array.nbytes)

    def take(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows by number, as float32 (..., *row shape) for numbers of shape (...); on the device after :meth:`put`."""
        if self._tensor is not None:
            return self._tensor[self._index_to(rows)].float()
        return torch.from_numpy(np.asarray(self.array[rows.numpy()], dtype=np.float32))

    def put(self, device: Device) -> None:
        """Keep all rows on the device from now on."""
        self._index_to = device.put
        self._tensor = device.put(torch.from_numpy(np.array(self.array)))


def open_npy(path: Path, flag: str) -> Stored:
    """The array of a .npy file.

    Raises:
        UsageError: it is missing, not a .npy file, or holds Python objects.
    """
    try:
        with path.open("rb") as file:
            return _stored(path, file)
    except (OSError, ValueError) as error:
        raise UsageError(f"{flag} {path}: {_reason(error)}; it must be a .npy file of numbers (np.save)") from error


def open_npz(path: Path, flag: str) -> Mapping[str, Stored | Callable[[], np.ndarray[Any, Any]]]:
    """The arrays of a .npz file: mapped if uncompressed, else a function that loads them.

    The function of an unusable array raises the error, so that an array that nobody needs does no harm.

    Raises:
        UsageError: it is missing or not a .npz file; from a function: its array is damaged or not of numbers.
    """
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            return {
                member.filename.removesuffix(".npy"): _member(path, file, member, flag) for member in archive.infolist()
            }
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        reason = _reason(error)
        raise UsageError(f"{flag} {path}: {reason}; it must be an .npz file of numbers (np.savez)") from error


def _member(
    path: Path, file: BinaryIO, member: zipfile.ZipInfo, flag: str
) -> Stored | Callable[[], np.ndarray[Any, Any]]:
    def load() -> np.ndarray[Any, Any]:
        return _load(path, member.filename, flag)

    if member.compress_type != zipfile.ZIP_STORED:
        return load
    file.seek(member.header_offset)
    signature, name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if signature != b"PK\x03\x04":
        raise ValueError("its directory points nowhere, it is damaged")
    file.seek(name_length + extra_length, 1)
    try:
        return _stored(path, file)
    except ValueError:
        return load


def _load(path: Path, name: str, flag: str) -> np.ndarray[Any, Any]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as member:
            found: np.ndarray[Any, Any] = np.lib.format.read_array(member, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, MemoryError) as error:
        reason = _OBJECTS if _holds_objects(error) else _reason(error)
        array = name.removesuffix(".npy")
        raise UsageError(f"{flag} {path}: {array}: {reason}; save it as an array of numbers or texts") from error
    return found


def _holds_objects(error: Exception) -> bool:
    """Whether numpy refused an array of pickled objects; only its message says so."""
    return "Object arrays" in str(error)


def _stored(path: Path, file: BinaryIO) -> Stored:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError(_OBJECTS)
    found = Stored(path, file.tell(), dtype.str, tuple(shape), bool(fortran))
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"the shape {shape} is none")
    if path.stat().st_size < found.offset + dtype.itemsize * math.prod(shape):  # Python integers do not overflow
        raise ValueError("it is cut short")
    return found


def _reason(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().partition("\n")[0][:160]


def _unmoved(index: torch.Tensor) -> torch.Tensor:
    return index
