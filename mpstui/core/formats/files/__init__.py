"""Metric files: what programs write beside their console. One module per format, found by itself.

A module defines a class with the attributes of `MetricFile` and ends with ``FILE = TheClass``; adding a format is
adding a module and its test. Each reader owns one file: ``poll`` returns the points added since the last call,
``close`` what was held back because the file may still have been growing, ``summary`` what the file says so far.
"""

from __future__ import annotations

import pkgutil
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Protocol

from ..points import MetricPoint, ParsedLog

SNIFF_BYTES = 65536
"""How much of a file's start is shown to `MetricFile.recognises`."""


class MetricFile(Protocol):
    """A reader of one metric file."""

    name: ClassVar[str]
    """What ``mpstui parse`` prints as the format."""
    priority: ClassVar[int]
    """Readers are asked in this order, the lowest first."""

    def __init__(self, path: Path) -> None: ...

    @classmethod
    def recognises(cls, path: Path, start: bytes) -> bool:
        """Whether a file that starts with ``start`` is of this format; decided by content, the name only helps."""

    @property
    def position(self) -> int:
        """How many bytes of the file have been read."""

    def poll(self, limit: int | None = None) -> list[MetricPoint]:
        """The points written since the last call, of a long backlog those of about ``limit`` bytes.

        Raises OSError when the file cannot be read.
        """

    def close(self) -> list[MetricPoint]:
        """The points held back, taking the file for finished."""

    def summary(self) -> ParsedLog:
        """What the file says so far."""


@lru_cache(maxsize=1)
def metric_files() -> tuple[type[MetricFile], ...]:
    """Every metric-file reader, in the order in which they are asked."""
    modules = [
        import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")
    ]
    return tuple(sorted((module.FILE for module in modules), key=lambda file: (file.priority, file.name)))
