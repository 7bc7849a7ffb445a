"""Find NaN in a checkpoint's tensors by reading its bytes: torch is not needed, and nothing is unpickled.

A training whose loss has become NaN keeps saving, and every attempt that resumes from such a file has NaN from its
first step. Only NaN counts: infinity is normal in masks, and as the initial value of a best loss.
"""

from __future__ import annotations

import json
import pickletools
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Optional

from . import storage
from .checkpoints import matching

MOST_BYTES = 32 << 20
"""The most to read of one checkpoint: of a larger one, only the beginning of each tensor is read."""
_LEAST_BYTES = 4096
_MOST_STRUCTURE_BYTES = 32 << 20
"""The most to read of a pickle, a header, or a zip archive's directory."""
_END_BYTES = 22 + 65535
_IN_FULL = 0xFFFFFFFF
"""ZIP64: stands for a number that is stored elsewhere with 64 bits."""


class Kind(NamedTuple):
    """The floating-point format of a tensor, little-endian."""

    width: int
    infinity: int
    """The bit pattern of infinity; without their sign bit, those of NaN are larger."""
    suspects: re.Pattern[bytes]
    """Matches the highest byte of any NaN."""


_WIDE = re.compile(b"[\x7f\xff]")
_HALF = Kind(2, 0x7C00, re.compile(b"[\x7c-\x7f\xfc-\xff]"))
_BFLOAT, _SINGLE, _DOUBLE = Kind(2, 0x7F80, _WIDE), Kind(4, 0x7F80_0000, _WIDE), Kind(8, 0x7FF0 << 48, _WIDE)
_STORAGES = {
    "HalfStorage": _HALF,
    "BFloat16Storage": _BFLOAT,
    "FloatStorage": _SINGLE,
    "DoubleStorage": _DOUBLE,
    "ComplexFloatStorage": _SINGLE,
    "ComplexDoubleStorage": _DOUBLE,
}
_DTYPES = {"F16": _HALF, "BF16": _BFLOAT, "F32": _SINGLE, "F64": _DOUBLE}


class Health(NamedTuple):
    """What was found in one checkpoint."""

    tensors: int
    """Floating-point tensors with more than one element."""
    broken: int
    """How many of them hold NaN."""

    @property
    def diverged(self) -> bool:
        """True if at least half of the tensors hold NaN. In a few, it may stand for values never measured."""
        return self.broken > 0 and 2 * self.broken >= self.tensors


class _Tensor(NamedTuple):
    kind: Kind
    start: int
    size: int


Look = Callable[[Path], Optional[Health]]


def health(path: Path) -> Health | None:
    """Check a ``torch.save`` or safetensors file, or all such files in a folder; None if it cannot be told."""
    if not path.is_dir():
        return _of_file(path, MOST_BYTES)
    files = [file for file in matching(path, "**/*") if file.is_file()]
    found = [one for file in files if (one := _of_file(file, MOST_BYTES // len(files))) is not None]
    return Health(sum(one.tensors for one in found), sum(one.broken for one in found)) if found else None


def newest_finite(paths: Iterable[Path], look: Look = health) -> tuple[Path | None, Sequence[Path]]:
    """Return the first checkpoint without NaN (``paths`` are newest first), and those passed over because of it.

    If all have NaN but the newest only in a few tensors, it was there from the start: the newest is returned.
    """
    passed: list[Path] = []
    first: Health | None = None
    for path in paths:
        found = look(path)
        if found is None or not found.broken:
            return path, passed
        passed, first = [*passed, path], first or found
    if first is not None and not first.diverged:
        return passed[0], ()
    return None, passed


def _of_file(path: Path, budget: int) -> Health | None:
    try:
        with storage.open_file(path) as file:
            head = file.read(8)
            if head.startswith(b"PK\x03\x04"):
                tensors = list(_in_archive(file))
            elif path.suffix == ".safetensors":
                tensors = list(_in_safetensors(file, int.from_bytes(head, "little")))
            else:
                return None
            share = max(_LEAST_BYTES, budget // max(1, len(tensors)))
            looked = tensors[: max(1, budget // _LEAST_BYTES)]
            return Health(len(looked), sum(_has_nan(file, one, share) for one in looked))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, struct.error):
        return None  # the file is damaged, or not what its name says


def _has_nan(file: BinaryIO, tensor: _Tensor, most_bytes: int) -> bool:
    width, infinity, suspects = tensor.kind
    file.seek(tensor.start)
    data = file.read(min(tensor.size, most_bytes) // width * width)
    without_sign = (1 << (8 * width - 1)) - 1
    for found in suspects.finditer(data[width - 1 :: width]):
        at = found.start() * width
        if int.from_bytes(data[at : at + width], "little") & without_sign > infinity:
            return True
    return False


def _in_safetensors(file: BinaryIO, length: int) -> Iterator[_Tensor]:
    if length > _MOST_STRUCTURE_BYTES:
        raise ValueError(length)
    for name, one in json.loads(file.read(length)).items():
        kind = _DTYPES.get(one["dtype"]) if name != "__metadata__" else None
        if kind is not None:
            begin, end = one["data_offsets"]
            if begin >= 0 and end - begin > kind.width:
                yield _Tensor(kind, 8 + length + begin, end - begin)


def _in_archive(file: BinaryIO) -> Iterator[_Tensor]:
    members = dict(_members(file))
    (name,) = [name for name in members if name.endswith("/data.pkl")]
    folder = name[: -len("data.pkl")]
    order = members.get(f"{folder}byteorder")
    if order is not None and _content(file, order) != b"little":
        raise ValueError(name)
    for key, kind in _storages(_content(file, members[name])).items():
        offset, size = members.get(f"{folder}data/{key}", (0, 0))
        if size > kind.width:
            yield _Tensor(kind, _start(file, offset), size)


def _members(file: BinaryIO) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield name, offset and size in bytes of each uncompressed file in a zip archive."""
    end = file.seek(0, 2)
    file.seek(max(0, end - _END_BYTES))
    tail = file.read()
    at = tail.rindex(b"PK\x05\x06")
    count, size, offset = struct.unpack_from("<HII", tail, at + 10)
    if tail[max(0, at - 20) :].startswith(b"PK\x06\x07"):
        file.seek(struct.unpack_from("<Q", tail, at - 12)[0])
        count, size, offset = struct.unpack_from("<QQQ", file.read(56), 32)
    if size > _MOST_STRUCTURE_BYTES:
        raise ValueError(size)
    file.seek(offset)
    listed, at = file.read(size), 0
    for _ in range(count):
        flags_to_method, packed, plain, name_length, more, comment = struct.unpack_from("<8xI8xIIHHH", listed, at)
        (begin,) = struct.unpack_from("<I", listed, at + 42)
        name = listed[at + 46 : at + 46 + name_length].decode()
        extra = listed[at + 46 + name_length : at + 46 + name_length + more]
        at += 46 + name_length + more + comment
        plain, packed, begin = _with_64_bits(extra, plain, packed, begin)
        if flags_to_method >> 16 == 0 and plain == packed:
            yield name, (begin, plain)


def _with_64_bits(extra: bytes, *numbers: int) -> list[int]:
    """Return an entry's numbers, taking those that need more than 32 bits from its ZIP64 extra field (id 1)."""
    found, at = list(numbers), 0
    while at + 4 <= len(extra):
        mark, length = struct.unpack_from("<HH", extra, at)
        if mark == 1:
            missing = [place for place, number in enumerate(numbers) if number == _IN_FULL]
            for order, place in enumerate(missing):
                (found[place],) = struct.unpack_from("<Q", extra, at + 4 + 8 * order)
        at += 4 + length
    return found


def _start(file: BinaryIO, offset: int) -> int:
    """Return where the content of a file in an archive begins: after a local header that repeats its name."""
    file.seek(offset)
    name, extra = struct.unpack_from("<HH", file.read(30), 26)
    return offset + 30 + int(name) + int(extra)


def _content(file: BinaryIO, member: tuple[int, int]) -> bytes:
    offset, size = member
    if size > _MOST_STRUCTURE_BYTES:
        raise ValueError(size)
    file.seek(_start(file, offset))
    return file.read(size)


def _storages(pickled: bytes) -> dict[str, Kind]:
    """Map each storage's file to its format. The pickle's opcodes are scanned one by one; none is executed.

    A storage is pickled as ``("storage", <its class>, <its file>, <device>, <length>)``, where each item may be
    recalled from the memo.
    """
    found: dict[str, Kind] = {}
    memory: dict[Any, Any] = {}
    words: list[Any] = []
    top: Any = None
    for operation, told, _ in pickletools.genops(pickled):
        name = operation.name
        if name == "MEMOIZE":
            memory[len(memory)] = top
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memory[told] = top
        elif name == "MARK":
            words = []
        elif name == "BINPERSID":
            if len(words) == 5 and words[0] == "storage" and (kind := _STORAGES.get(str(words[1]).split()[-1])):
                found[str(words[2])] = kind
            top = None
        elif name == "STACK_GLOBAL":
            top = f"{words[-2]} {words[-1]}"
            words[-2:] = [top]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            top = memory.get(told)
            words.append(top)
        elif isinstance(told, (str, int)) and name not in ("PROTO", "FRAME"):
            top = told
            words.append(top)
        else:
            top = None
    return found
