"""Reads the text that macOS ``ioreg -w 0`` prints: blocks of ``"key" = value`` lines under ``+-o`` headings.

Outer pairs are printed as ``"K" = V``, inner ones as ``"K"=V``. The order of keys differs between machines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..model import GpuSample, ProcessFacts
from ..source import Facts, Host, ProgramSource, Source, SourceError, SourceRequest

_PROPERTY = re.compile(r'^[\s|]*"([^"]+)" = (.+)$')
_ITEM = re.compile(r'"([^"]*)"|<"([^"]*)">|<([0-9a-f]*)>|[=()]|\bYes\b|\bNo\b')
_JSON = {"=": ":", "(": "[", ")": "]", "Yes": "true", "No": "false"}


def nodes(text: str, wanted: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Yield the ``wanted`` properties of each node, in order; properties that are malformed or cut short are left out.

    Only wanted lines are parsed: the report legend alone is 43 KB and repeats the names of the counters.
    """
    node: dict[str, Any] | None = None
    for line in text[: text.rfind("\n") + 1].splitlines():
        if "+-o " in line:
            if node is not None:
                yield node
            node = {}
        elif node is not None and (pair := _PROPERTY.match(line)) and pair[1] in wanted:
            value = parse_value(pair[2])
            if value is not None:
                node[pair[1]] = value
    if node is not None:
        yield node


def parse_value(text: str) -> Any:
    """Return the value in ``text``, or None if it is malformed or cut short. Data becomes text: ``<"AMD Radeon">``,
    ``<414d44>``."""

    def as_json(item: re.Match[str]) -> str:
        string, printable, data = item[1], item[2], item[3]
        if data is not None:
            printable = bytes.fromhex(data).rstrip(b"\0").decode("utf-8", "replace")
        words = string if string is not None else printable
        return _JSON.get(item[0], item[0]) if words is None else json.dumps(words)

    try:
        return json.loads(_ITEM.sub(as_json, text))
    except (ValueError, RecursionError):
        return None


GPU_COMMAND = ("/usr/sbin/ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator")
_GPU_KEYS = frozenset({"PerformanceStatistics", "model", "gpu-core-count"})
_NO_STATISTICS = "the GPU driver reports no performance statistics"


def parse_gpus(text: str) -> tuple[GpuSample, ...]:
    """Return the GPUs in ``ioreg`` text that report statistics, the busiest first; may be empty.

    Intel's driver can report more than 100 % (github.com/exelban/stats/issues/649): that becomes 100.
    """
    samples = [
        GpuSample(
            vendor="apple",
            name=_text(node.get("model")),
            cores=_integer(node.get("gpu-core-count")),
            busy_percent=None if (busy := _integer(statistics.get("Device Utilization %"))) is None else min(busy, 100),
            memory_used_bytes=_integer(statistics.get("In use system memory")),
            memory_allocated_bytes=_integer(statistics.get("Alloc system memory")),
        )
        for node in nodes(text, _GPU_KEYS)
        if isinstance(statistics := node.get("PerformanceStatistics"), dict)
    ]
    return tuple(sorted(samples, key=lambda gpu: -1 if gpu.busy_percent is None else gpu.busy_percent, reverse=True))


def sources(host: Host) -> list[Source]:
    return [IoregAccelerator(host.commands.run), IoregClients(host.commands.run)] if host.is_mac else []


class IoregAccelerator(ProgramSource):
    """The busiest GPU that ``ioreg`` knows, in its text form: the property list parses sixty times slower."""

    name = "ioreg IOAccelerator"
    gives = ("gpus",)
    # One call takes some 21 ms of a core on a Mac: half a percent at this pace.
    period_seconds = 4.0

    def read(self, request: SourceRequest) -> Facts:
        text = self.run(GPU_COMMAND, self.timeout_seconds)
        if not text.strip():
            raise SourceError("the IORegistry has no IOAccelerator: this machine has no GPU that macOS can see")
        gpus = parse_gpus(text)
        if not gpus:
            raise SourceError(_NO_STATISTICS)
        unknown = ("busy_percent", "memory_used_bytes")
        missing = {f"gpu0.{name}": _NO_STATISTICS for name in unknown if getattr(gpus[0], name) is None}
        return Facts(gpus=gpus[:1], reasons=missing)


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


CLIENTS_COMMAND = ("/usr/sbin/ioreg", "-r", "-d", "1", "-w", "0", "-c", "AGXDeviceUserClient")
_CLIENT_KEYS = frozenset({"AppUsage", "IOUserClientCreator"})
_CREATOR = re.compile(r"pid (\d+),")


def parse_gpu_seconds(text: str) -> dict[int, float]:
    """Return the cumulative GPU seconds by process id; nodes without a creator or without usage are skipped."""
    seconds: dict[int, float] = {}
    for node in nodes(text, _CLIENT_KEYS):
        creator = _CREATOR.match(str(node.get("IOUserClientCreator", "")))
        queues = node.get("AppUsage")
        if creator is None or not isinstance(queues, list):
            continue
        counters = [queue.get("accumulatedGPUTime") for queue in queues if isinstance(queue, dict)]
        known = [counter for counter in counters if isinstance(counter, int) and counter >= 0]
        if known:
            pid = int(creator[1])
            seconds[pid] = seconds.get(pid, 0.0) + sum(known) * 1e-9
    return seconds


class IoregClients(ProgramSource):
    """Built to the documented format: no complete recording of these nodes was at hand."""

    name = "ioreg AGXDeviceUserClient"
    gives = ("gpu_percent",)
    period_seconds = 10.0
    verified = False
    per_process = True

    def read(self, request: SourceRequest) -> Facts:
        seconds = parse_gpu_seconds(self.run(CLIENTS_COMMAND, self.timeout_seconds))
        if not seconds:
            raise SourceError("the GPU driver lists no Metal clients")
        wanted = {pid: ProcessFacts(gpu_seconds=seconds[pid]) for pid in request.pids() if pid in seconds}
        return Facts(processes=wanted)
