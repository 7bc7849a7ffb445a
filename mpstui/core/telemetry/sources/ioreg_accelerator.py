"""GPU busy share and GPU memory of an Apple GPU, from the IORegistry's IOAccelerator nodes; no root needed.

``Device Utilization %`` is the busy share: the renderer's stays near 0 while compute holds the device. ``In use system
memory`` counts all processes. Its sibling ``In use system memory (driver)`` is always 0, so keys are compared whole.
"""

from __future__ import annotations

import plistlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from xml.parsers.expat import ExpatError

from mpstui.core.telemetry.source import RunCommand
from mpstui.core.telemetry.ioregistry import nodes
from mpstui.core.telemetry.model import GpuSample
from mpstui.core.telemetry.source import Facts, PlainSource, Request, SourceError

COMMAND = ("/usr/sbin/ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator")
_KEYS = frozenset({"PerformanceStatistics", "model", "gpu-core-count"})
_UNREADABLE = (
    plistlib.InvalidFileException,
    ExpatError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
)
_DEEPEST = 20
_NO_STATISTICS = "the GPU driver reports no performance statistics"


def parse_text(text: str) -> tuple[GpuSample, ...]:
    """The GPUs in ``ioreg`` text that report statistics, the busiest first; empty where nothing matched."""
    return _samples(nodes(text, _KEYS))


def parse_plist(data: bytes) -> tuple[GpuSample, ...]:
    """The same from the XML property list that ``ioreg -a`` prints; empty if it is cut short or malformed."""
    try:
        return _samples(_with_statistics(plistlib.loads(data), _DEEPEST))
    except _UNREADABLE:
        return ()


class IoregAccelerator(PlainSource):
    """``ioreg`` in its text form, which parses sixty times faster; the property list where the text yields nothing."""

    name = "ioreg IOAccelerator"
    gives = ("gpus",)
    # One call takes some 21 ms of a core on a Mac: half a percent at this pace.
    period_seconds = 4.0

    def __init__(self, run: RunCommand) -> None:
        self._run = run

    def read(self, request: Request) -> Facts:
        text = self._run(COMMAND, self.timeout_seconds)
        if not text.strip():
            raise SourceError("the IORegistry has no IOAccelerator: this machine has no GPU that macOS can see")
        gpus = parse_text(text) or parse_plist(self._run((*COMMAND, "-a"), self.timeout_seconds).encode())
        if not gpus:
            raise SourceError(_NO_STATISTICS)
        unknown = ("busy_percent", "memory_used_bytes")
        missing = {f"gpu0.{name}": _NO_STATISTICS for name in unknown if getattr(gpus[0], name) is None}
        return Facts(gpus=gpus[:1], reasons=missing)


def _with_statistics(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """The nodes that hold statistics: in a list of matches, or anywhere below a whole tree (``ioreg -l``)."""
    if depth == 0:
        return
    if isinstance(value, dict) and "PerformanceStatistics" in value:
        yield value
    for below in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        if isinstance(below, (list, dict)):
            yield from _with_statistics(below, depth - 1)


def _samples(found: Iterable[Mapping[str, Any]]) -> tuple[GpuSample, ...]:
    samples = [_sample(node) for node in found if isinstance(node.get("PerformanceStatistics"), dict)]
    return tuple(sorted(samples, key=_busy, reverse=True))


def _sample(node: Mapping[str, Any]) -> GpuSample:
    statistics = node["PerformanceStatistics"]
    return GpuSample(
        name=_text(node.get("model")),
        cores=_integer(node.get("gpu-core-count")),
        busy_percent=_integer(statistics.get("Device Utilization %")),
        memory_used_bytes=_integer(statistics.get("In use system memory")),
        memory_allocated_bytes=_integer(statistics.get("Alloc system memory")),
    )


def _busy(sample: GpuSample) -> float:
    return -1 if sample.busy_percent is None else sample.busy_percent


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    if isinstance(value, bytes):  # some drivers store the model as C data with its terminating zero
        value = value.rstrip(b"\0").decode("utf-8", "replace")
    return value if isinstance(value, str) and value else None
