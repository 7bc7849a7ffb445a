"""What a reader has learned, as bytes: one process reads on where another stopped.

Plain values travel as JSON, columns of floats as doubles behind it, objects as the state they give of themselves. Only
classes that are named here are made again, and nothing that arrives is ever called.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, cast

from ..formats.console import FrameSplitter
from ..formats.epoch_steps import EpochSteps
from ..formats.history import Series as LossHistory
from ..formats.points import Counters, Phase
from ..formats.progress import Bar, BarBook
from ..formats.tracker import Tracker
from ..series.pyramid import Columns, Pyramid
from ..series.series import Segment, Series
from ..series.store import SeriesStore

CLASSES: dict[str, type] = {
    "Bar": Bar,
    "BarBook": BarBook,
    "Columns": Columns,
    "Counters": Counters,
    "EpochSteps": EpochSteps,
    "FrameSplitter": FrameSplitter,
    "LossHistory": LossHistory,
    "Phase": Phase,
    "Pyramid": Pyramid,
    "Segment": Segment,
    "Series": Series,
    "SeriesStore": SeriesStore,
    "Tracker": Tracker,
}
_NAMES = {kind: name for name, kind in CLASSES.items()}
_HEADER = struct.Struct("<QQ")
_DOUBLE_BYTES = array("d").itemsize
_PLAIN = frozenset({type(None), bool, int, float, str})
_AS_DOUBLES = 8
"""A column of so many floats travels as doubles."""


def pack(value: object) -> bytes:
    """``value`` as bytes.

    Raises:
        TypeError: something in it is neither plain nor of a class that may travel.
    """
    packer = _Packer()
    text = json.dumps(packer.plain(value), separators=(",", ":")).encode("utf-8", "surrogatepass")
    return _HEADER.pack(len(text), len(packer.doubles)) + text + packer.doubles.tobytes()


def unpack(data: bytes | memoryview) -> Any:
    """What :func:`pack` was given: the objects in it are new ones.

    Raises:
        ValueError: these are not its bytes.
    """
    try:
        text, doubles = _parts(data)
        return _Unpacker(doubles).value(json.loads(text))
    except (struct.error, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the state of a reader cannot be understood: {error}") from error


def _parts(data: bytes | memoryview) -> tuple[bytes, bytes | memoryview]:
    """The JSON text, and the doubles behind it."""
    length, count = _HEADER.unpack_from(data)
    text, doubles = data[_HEADER.size : _HEADER.size + length], data[_HEADER.size + length :]
    if len(doubles) != count * _DOUBLE_BYTES:
        raise ValueError(f"{count} numbers are announced and {len(doubles)} bytes came")
    return bytes(text), doubles


class _Packer:
    """Values to plain ones: whatever JSON does not know becomes a list that begins with a word."""

    def __init__(self) -> None:
        self.doubles = array("d")
        self._numbers: dict[int, int] = {}

    def plain(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is bytes:
            return ["bytes", value.decode("latin-1")]
        if kind is list or kind is tuple:
            return self._sequence(kind.__name__, value)
        if kind is array:
            return self._column("array", value)
        if kind is dict:
            return ["dict", *([self.plain(key), self.plain(item)] for key, item in value.items())]
        return self._object(value, kind)

    def _sequence(self, word: str, items: Sequence[Any]) -> list[Any]:
        kinds = set(map(type, items))
        if kinds == {float} and len(items) >= _AS_DOUBLES:
            return self._column(f"{word} of floats", items)
        return [word, *(items if kinds <= _PLAIN else map(self.plain, items))]

    def _column(self, word: str, column: Iterable[float]) -> list[Any]:
        start = len(self.doubles)
        self.doubles.extend(column)
        return [word, start, len(self.doubles)]

    def _object(self, value: Any, kind: type) -> list[Any]:
        name = _NAMES.get(kind)
        if name is None:
            raise TypeError(f"a {kind.__qualname__} cannot be carried to another process")
        if isinstance(value, Enum):
            return [name, value.value]
        if isinstance(value, tuple):
            return [name, *map(self.plain, value)]
        if id(value) in self._numbers:
            return ["again", self._numbers[id(value)]]
        number = self._numbers[id(value)] = len(self._numbers)
        return [name, number, self.plain(_state(value))]


class _Unpacker:
    """The way back."""

    def __init__(self, doubles: bytes | memoryview) -> None:
        self._doubles = doubles
        self._objects: dict[int, object] = {}

    def value(self, plain: Any) -> Any:
        if type(plain) is not list:
            return plain
        word, *rest = plain
        match word:
            case "list":
                return [self.value(item) for item in rest]
            case "tuple":
                return tuple(self.value(item) for item in rest)
            case "dict":
                return {self.value(key): self.value(item) for key, item in rest}
            case "bytes":
                return rest[0].encode("latin-1")
            case "array":
                return self._column(rest)
            case "list of floats":
                return self._column(rest).tolist()
            case "tuple of floats":
                return tuple(self._column(rest))
            case "again":
                return self._objects[rest[0]]
        return self._object(CLASSES[word], rest)

    def _column(self, place: list[int]) -> array[float]:
        """Only what is asked for becomes numbers: all of them at once would be megabytes for a moment."""
        column = array("d")
        column.frombytes(self._doubles[place[0] * _DOUBLE_BYTES : place[1] * _DOUBLE_BYTES])
        return column

    def _object(self, kind: type, rest: list[Any]) -> object:
        if issubclass(kind, Enum):
            return kind(rest[0])
        if issubclass(kind, tuple):
            return kind(*map(self.value, rest))
        number, state = rest
        made = self._objects[number] = object.__new__(kind)
        for name, item in self.value(state).items():
            setattr(made, name, item)
        return made


def _state(value: Any) -> dict[str, Any]:
    """What an object is made of: its attributes, those in slots too."""
    state = value.__getstate__()
    if isinstance(state, tuple):
        own, slots = state
        return {**(own or {}), **slots}
    return cast("dict[str, Any]", state)
