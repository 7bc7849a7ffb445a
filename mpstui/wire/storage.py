"""JSON in files: strict, non-finite numbers as null, every write all or nothing.

A write goes to a temporary file in the same folder: fsync, rename, fsync of the folder. Reading ignores unknown fields,
so that an older program can watch a newer run; a record of a newer schema is readable but must not be acted upon
(:class:`NewerSchema`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import math
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, get_args, get_origin

from .liveness import ProcessIdentity

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_HARD_LINKS = NO_ROOM | {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
SCHEMA = 1
R = TypeVar("R", bound="tuple[Any, ...]")
FILE_MODE = 0o600
FOLDER_MODE = 0o700
_SLICE_BYTES = 1 << 16
_LARGEST = 1 << 63
MOST_RECORD_BYTES = 1 << 24
"""None of our records is larger."""
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket"}


class NotAFile(OSError):
    """A pipe, a device or a folder stands where a file is expected."""


class TooLarge(OSError):
    """A file is larger than any file of its kind should be."""


class UnreadableRecord(Exception):
    """A file that should hold one JSON object does not (half written, foreign, or of a newer schema)."""


def plain(value: Any) -> Any:
    """Convert a value at any depth to JSON's types: records to objects, processes to ``[pid, start]``, NaN to None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple) and hasattr(value, "_asdict") and not isinstance(value, ProcessIdentity):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def dump(value: Any) -> str:
    """Return strict JSON text; a value that JSON has no type for is written as its string."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, default=str)


def dump_bytes(value: Any) -> bytes:
    """Return one line of strict JSON; names that are not UTF-8 survive the round trip."""
    try:
        return (dump(value) + "\n").encode()
    except UnicodeEncodeError:  # ASCII JSON can escape any code unit, even half a surrogate pair
        return (json.dumps(plain(value), allow_nan=False, default=str) + "\n").encode()


def load_object(text: str | bytes) -> dict[str, Any]:
    """Parse one JSON object; raises :class:`UnreadableRecord` if the text is not JSON, or not an object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableRecord(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UnreadableRecord(f"expected an object, found {type(value).__name__}")
    return value


def write_bytes(path: Path, data: bytes, *, durable: bool = False, sync: bool = True) -> None:
    """Replace the content of ``path``; a reader sees the old content or the new, never a part.

    Args:
        durable: also flush the drive's own cache (F_FULLFSYNC on macOS, where fsync does not). For exit records.
        sync: False leaves flushing to the kernel: for heartbeats, which are worthless after a system crash anyway.

    Raises:
        OSError: nothing was changed (disk full, read-only), and the temporary file is gone.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write_whole(temporary, data, drive_cache=durable, sync=sync)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if sync:
        sync_folder(path.parent)


def write_json(path: Path, value: Any, *, durable: bool = False, sync: bool = True) -> None:
    """Replace the content of ``path`` with ``value`` as JSON; see :func:`write_bytes`."""
    write_bytes(path, dump_bytes(value), durable=durable, sync=sync)


def create_json(path: Path, value: Any, *, durable: bool = False) -> bool:
    """Create ``path`` with its whole content, or leave what is there; True if it was created.

    A hard link is the one portable way to "create with content, atomically, unless it exists". If the file system has
    no hard links (exFAT, some network volumes) or no room for one, an existence check and a rename stand in. An OSError
    leaves nothing behind.
    """
    if path.exists():
        return False
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        _write_whole(temporary, dump_bytes(value), drive_cache=durable)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    sync_folder(path.parent)
    return True


def append_line(path: Path, value: Any) -> None:
    """Append one JSON line in a single write, which writes of other processes never interrupt.

    A torn last line is ended first, so that only that line is lost, not this one too. If it is this very line and lacks
    only its line break, as a full disk may leave it, it is not written again.
    """
    data = dump_bytes(value)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE), "rb+", 0) as file:
        tail = os.pread(file.fileno(), len(data), max(0, os.fstat(file.fileno()).st_size - len(data)))
        torn = bool(tail) and not tail.endswith(b"\n")
        same = torn and tail in (data[:-1], b"\n" + data[:-1])
        _write_all(file.fileno(), b"\n" if same else b"\n" + data if torn else data)


def append_text(path: Path, text: str) -> None:
    """Append lines in a single write."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE), "wb", 0) as file:
        _write_all(file.fileno(), text.encode("utf-8", "replace"))


def open_descriptor(path: Path | str) -> int:
    """Open a regular file for reading, without ever blocking, whatever somebody else may have put in its place.

    Everything mpstui reads is opened here: a pipe would block until it has a writer, ``/dev/zero`` fill the memory.

    Raises:
        NotAFile: it is not a regular file. OSError: it cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except ValueError as error:  # a NUL, or half a surrogate pair
        raise NotAFile(errno.EINVAL, "is no name that a file can have", repr(str(path))) from error
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise NotAFile(errno.EINVAL, f"is {_KINDS.get(kind, 'a device')}, not a file", str(path))
    return descriptor


def open_file(path: Path | str) -> BinaryIO:
    """Open a file as :func:`open_descriptor` does."""
    return os.fdopen(open_descriptor(path), "rb")


def read_bytes(path: Path | str, most_bytes: int = MOST_RECORD_BYTES) -> bytes:
    """Return the whole content of a file.

    Raises:
        TooLarge: it holds more than ``most_bytes``. OSError: as :func:`open_descriptor`, or it cannot be read.
    """
    descriptor = open_descriptor(path)
    try:
        parts, wanted = [], most_bytes + 1
        size = os.fstat(descriptor).st_size or _SLICE_BYTES  # files of /proc have content but report no size
        while wanted > 0 and (part := os.read(descriptor, min(wanted, size + 1))):
            parts.append(part)
            wanted -= len(part)
    finally:
        os.close(descriptor)
    if wanted <= 0:
        raise TooLarge(errno.EFBIG, f"is larger than {most_bytes:,} bytes", str(path))
    return b"".join(parts)


def read_text(path: Path | str, most_bytes: int = MOST_RECORD_BYTES, *, errors: str = "replace") -> str:
    """Return the whole content of a text file; raises like :func:`read_bytes`."""
    return read_bytes(path, most_bytes).decode("utf-8", errors)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if there is no such file.

    Raises:
        UnreadableRecord: the content is not one JSON object. OSError: it cannot be read.
    """
    try:
        data = read_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return load_object(data)


class NewerSchema(UnreadableRecord):
    """Written by a newer mpstui: it may be read, but not acted upon."""


class _Misfit(Exception):
    """A value of the wrong type."""


def read(kind: type[R], path: Path) -> R | None:
    """Read one record; None if there is no file.

    Raises:
        UnreadableRecord: the file holds something else (NewerSchema: it was written by a newer mpstui).
    """
    found = read_json(path)
    return None if found is None else from_json(kind, found)


def read_or_none(kind: type[R], path: Path) -> R | None:
    """Read one record; None if there is no file or it cannot be read."""
    try:
        return read(kind, path)
    except (OSError, UnreadableRecord):
        return None


def from_json(kind: type[R], found: Mapping[str, Any]) -> R:
    """Make a record from its JSON object; unknown fields are ignored.

    Raises:
        NewerSchema: ``schema`` is higher than ours.
        UnreadableRecord: a field without a default is missing, or a value does not have its declared type.
    """
    schema = found.get("schema", SCHEMA)
    if not isinstance(schema, int) or schema > SCHEMA:
        raise NewerSchema(f"schema {schema!r} is newer than {SCHEMA}")
    values = {}
    for name, fit in _fits_of(kind).items():
        if name in found:
            try:
                values[name] = fit(found[name])
            except _Misfit as error:
                raise UnreadableRecord(f"{name!r} has a value of the wrong type") from error
    missing = set(kind._fields) - values.keys() - kind._field_defaults.keys()  # type: ignore[attr-defined]
    if missing:
        raise UnreadableRecord(f"{', '.join(sorted(missing))} missing")
    return kind(**values)


def to_json(record: tuple[Any, ...]) -> dict[str, Any]:
    """Return a record as a JSON object, nested records included; the object may be changed freely."""
    found: dict[str, Any] = plain(record)
    return found


@functools.cache
def _fits_of(kind: type[Any]) -> Mapping[str, Callable[[Any], Any]]:
    return {name: _fit_of(hint) for name, hint in kind.__annotations__.items()}


def _fit_of(hint: Any) -> Callable[[Any], Any]:
    """Return a function that converts a JSON value to the annotated type, or raises :class:`_Misfit`."""
    if hint is Any:
        return lambda value: value
    if hint is ProcessIdentity:
        return _identity
    if hasattr(hint, "_fields"):
        return lambda value: from_json(hint, _only(value, dict))
    if type(None) in get_args(hint):  # a union of two
        one = _fit_of(get_args(hint)[0])
        return lambda value: None if value is None else one(value)
    if get_origin(hint) is Sequence:
        item = _fit_of(get_args(hint)[0])
        return lambda value: [item(part) for part in _only(value, list)]
    if get_origin(hint) is Mapping:
        item = _fit_of(get_args(hint)[1])
        return lambda value: {name: item(part) for name, part in _only(value, dict).items()}
    if hint is int or hint is float:
        return _number if hint is float else lambda value: _number(_only(value, int))
    return lambda value: _only(value, hint)


def _number(value: Any) -> Any:
    """Refuse numbers beyond 63 bits: none of ours is larger than a file offset or a time in nanoseconds."""
    if not -_LARGEST < _only(value, int, float) < _LARGEST:  # refuses NaN too
        raise _Misfit
    return value


def _identity(value: Any) -> ProcessIdentity:
    if type(value) is not list or [type(part) for part in value] != [int, int]:
        raise _Misfit
    return ProcessIdentity(*value)


def _only(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:  # True is an int to isinstance()
        raise _Misfit
    return value


def is_settled(changed: float, now: float) -> bool:
    """True if a modification time is old enough to rely on: a second change within a clock tick would not alter it.

    Both ``changed``, the modification time, and ``now`` are in Unix seconds.
    """
    return now - changed > 2.0


def stat_of(path: Path) -> os.stat_result | None:
    """Return the file's stat; None if there is no such file."""
    try:
        return path.stat()
    except (OSError, ValueError):  # ValueError: an impossible name
        return None


def stamp(path: str | Path) -> tuple[int, int, int] | None:
    """Return a stamp that changes when a file is replaced; None if there is no such file.

    The time alone is not enough: many file systems' clocks tick a few hundred times a second, some only once.
    """
    try:
        found = os.stat(path)  # noqa: PTH116 - half the cost of Path.stat, and done for every run
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def make_private_folder(path: Path) -> None:
    """Create a folder and its missing parents, readable only by this user; they survive a power cut."""
    if not path.is_dir():
        make_private_folder(path.parent)
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)
        sync_folder(path.parent)


def flush_to_disk(descriptor: int, *, drive_cache: bool) -> None:
    """Call fsync; with ``drive_cache`` on macOS F_FULLFSYNC, since fsync(2) there leaves data in the drive's cache."""
    if drive_cache and sys.platform == "darwin":
        with contextlib.suppress(OSError):  # network volumes refuse it: then plain fsync is the best there is
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def create_file(path: Path) -> BinaryIO:
    """Open a new file for writing, private whatever the umask; replaces any file of that name, follows no link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, FILE_MODE)
    except FileExistsError:
        path.unlink()
        descriptor = os.open(path, flags, FILE_MODE)
    return os.fdopen(descriptor, "wb")


def _write_whole(path: Path, data: bytes, *, drive_cache: bool, sync: bool = True) -> None:
    with create_file(path) as file:
        _write_all(file.fileno(), data)
        if sync:
            flush_to_disk(file.fileno(), drive_cache=drive_cache)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, which a file's own fsync does not do."""
    with contextlib.suppress(OSError):  # some file systems cannot sync a folder; the rename itself is done
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
