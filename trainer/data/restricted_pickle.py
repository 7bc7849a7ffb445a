"""Pickles from anywhere, read without letting them run code.

A pickle is a program that may import and call anything. Data files only need containers, numbers and numpy arrays. The
few names that arrays need stand for functions of ours here; every other name is refused before it is looked up.

Nor may a small file grow large: it can hold no more values than it has bytes, and everything made of them (arrays and
texts are copies) is at most eight times the size of the file, plus a little.

A pickle never makes a numpy type itself. It could set the type's flags, and numpy believes them: an array whose type
has lost its "holds Python objects" flag takes the file's bytes for pointers. So a type is read as a description, and a
new one is made from that.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from typing import Any

import numpy as np

_NAMES = {
    # What a pickled numpy array needs, under the names of numpy 1 and 2; _codecs.encode carries bytes in protocol 2.
    ("numpy.core.multiarray", "_reconstruct"): "new_array",
    ("numpy._core.multiarray", "_reconstruct"): "new_array",
    ("numpy.core.multiarray", "scalar"): "scalar",
    ("numpy._core.multiarray", "scalar"): "scalar",
    ("numpy", "ndarray"): "array_class",
    ("numpy", "dtype"): "new_type",
    ("_codecs", "encode"): "encode",
}
_TYPE = re.compile(r"[biufc]\d{1,2}|[SU]\d{1,9}|O8?")


_PUTS, _LITTLE = ("PUT", "BINPUT", "LONG_BINPUT"), 1 << 20


class _Room:
    """How many more bytes may be created from a file."""

    def __init__(self, left: int) -> None:
        self._left = left

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise pickle.UnpicklingError("it would grow beyond what its bytes can hold")


class _Type:
    """The description of a numpy type."""

    __slots__ = ("name", "order")

    def __init__(self, name: str) -> None:
        self.name = name
        self.order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = _text(state[1])
        if order not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError("a byte order that is none")
        self.order = order

    def made(self) -> np.dtype[Any]:
        return np.dtype(self.name if self.name.startswith("O") else self.order + self.name)


class _Array(np.ndarray[Any, Any]):
    """An array that is filled once, with exactly as many values as its shape has."""

    room: _Room

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, content = state
        dtype = kind.made()
        if type(shape) is not tuple or not all(type(size) is int and size >= 0 for size in shape):
            raise pickle.UnpicklingError("a shape that is none")
        count = math.prod(shape)  # Python integers do not overflow
        if type(content) is not (list if dtype.hasobject else bytes):
            raise pickle.UnpicklingError(f"an array of type {dtype} that holds a {type(content).__name__}")
        if len(content) != count * (1 if dtype.hasobject else dtype.itemsize):
            raise pickle.UnpicklingError(f"an array of shape {shape} and another number of values")
        self.room.take(len(content) * (8 if dtype.hasobject else 1))
        super().__setstate__((1, shape, dtype, bool(fortran), content))  # type: ignore[arg-type]  # bool, not numpy's


class RestrictedUnpickler(pickle.Unpickler):
    """Builds containers, bytes, numbers and numpy arrays; every other name is refused before it is looked up."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="bytes")
        self._room = _Room(8 * len(content) + _LITTLE)

    def find_class(self, module: str, name: str) -> Any:
        """Return our substitute for a name in the pickle, if it is one of the few that arrays need.

        They are methods, which a pickle cannot change.
        """
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed in a data file")
        return getattr(self, _NAMES[module, name])

    def new_type(self, name: Any, *_: object) -> _Type:
        words = _text(name)
        if not _TYPE.fullmatch(words):
            raise pickle.UnpicklingError(f"the type {words[:20]!r} is not allowed in a data file")
        return _Type(words)

    def new_array(self, *_: object) -> _Array:
        made = np.ndarray.__new__(_Array, (0,), np.uint8)
        made.room = self._room
        return made

    def array_class(self) -> None:
        raise pickle.UnpicklingError("an array that is not built as numpy builds it")

    def scalar(self, kind: _Type, content: bytes) -> Any:
        dtype = kind.made()
        if dtype.hasobject or len(content) != dtype.itemsize:
            raise pickle.UnpicklingError(f"a number of type {dtype} in {len(content)} bytes")
        return np.frombuffer(content, dtype)[0]

    def encode(self, text: str, codec: Any) -> bytes:
        if _text(codec) != "latin1":
            raise pickle.UnpicklingError(f"the encoding {codec!r} is not allowed in a data file")
        self._room.take(len(text))
        return text.encode("latin1")


def _text(word: Any) -> str:
    """A word as text; Python 2 wrote it as bytes."""
    return word.decode("ascii", "replace") if isinstance(word, bytes) else str(word)


def load_restricted(content: bytes) -> Any:
    """Unpickle data from any source; texts of Python 2 become bytes.

    Its arrays are of our own class; ``np.asarray`` makes plain ones of them.

    Raises:
        pickle.UnpicklingError: it needs anything but containers and arrays, or would grow far beyond its size.
    """
    try:
        for code, number, _ in pickletools.genops(content):
            if code.name in _PUTS and int(number or 0) > len(content):  # memory is allocated for all numbers below it
                raise pickle.UnpicklingError(f"a file of {len(content)} bytes with a value of number {number}")
    except ValueError as error:
        raise pickle.UnpicklingError(str(error)) from error
    return RestrictedUnpickler(content).load()
