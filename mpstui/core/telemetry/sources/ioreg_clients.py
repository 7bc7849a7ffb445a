"""GPU time of each process on an Apple GPU, from the IORegistry's AGXDeviceUserClient nodes; no root needed.

A process has one node per Metal client. ``AppUsage`` lists its queues with a cumulative ``accumulatedGPUTime`` in
nanoseconds; ``IOUserClientCreator`` names the process, and is printed after it. The counters of a client vanish with
the client, so a sum may fall.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mpstui.core.telemetry.source import RunCommand
from mpstui.core.telemetry.ioregistry import Value, nodes
from mpstui.core.telemetry.model import ProcessFacts
from mpstui.core.telemetry.source import Facts, PlainSource, Request, SourceError

COMMAND = ("/usr/sbin/ioreg", "-r", "-d", "1", "-w", "0", "-c", "AGXDeviceUserClient")
_KEYS = frozenset({"AppUsage", "IOUserClientCreator"})
_CREATOR = re.compile(r"pid (\d+),")
_NANOSECONDS = 1e-9


def parse_text(text: str) -> dict[int, float]:
    """Cumulative GPU seconds of each process id; a node without a creator or without usage counts for nobody."""
    seconds: dict[int, float] = {}
    for node in nodes(text, _KEYS):
        creator = _CREATOR.match(str(node.get("IOUserClientCreator", "")))
        usage = _gpu_nanoseconds(node)
        if creator and usage is not None:
            pid = int(creator[1])
            seconds[pid] = seconds.get(pid, 0.0) + usage * _NANOSECONDS
    return seconds


class IoregClients(PlainSource):
    """Built to the documented shape: no whole recording of these nodes was at hand."""

    name = "ioreg AGXDeviceUserClient"
    gives = ("gpu_percent",)
    period_seconds = 10.0
    verified = False
    per_process = True

    def __init__(self, run: RunCommand) -> None:
        self._run = run

    def read(self, request: Request) -> Facts:
        seconds = parse_text(self._run(COMMAND, self.timeout_seconds))
        if not seconds:
            raise SourceError("the GPU driver lists no Metal clients")
        wanted = {pid: ProcessFacts(gpu_seconds=seconds[pid]) for pid in request.pids() if pid in seconds}
        return Facts(processes=wanted)


def _gpu_nanoseconds(node: Mapping[str, Value]) -> int | None:
    queues = node.get("AppUsage")
    if not isinstance(queues, list):
        return None
    counters = [queue.get("accumulatedGPUTime") for queue in queues if isinstance(queue, dict)]
    known = [counter for counter in counters if isinstance(counter, int) and counter >= 0]
    return sum(known) if known else None
