"""Watts, temperatures and GPU clock of Apple silicon from ``macmon pipe``, if that program is installed.

It prints one JSON object per line, the first after one interval. ``gpu_usage`` [MHz, ratio], since 0.4, is scaled by
clock and is not a busy share; ``gpu_active_ratio``, since 0.8.0, is one, comparable with ioreg's. Ratios are 0 to 1.

A temperature, clock, size of used memory, ``sys_power`` or ``cpu_power`` of 0 could not be read (the chip is newer than
this macmon). A ``gpu_power`` of 0 is a sleeping GPU if the CPU's power is known, else it could not be read either. Now
and then a line gives an absurd power: more than a Mac can draw is discarded. ``macmon serve`` listens on all interfaces
and is never started.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..model import GpuSample, HostFacts
from ..source import Commands, Facts, Host, NotYet, Source, SourceError, SourceRequest

MOST_WATTS = 500.0
"""Beyond what any Mac with Apple silicon draws: the largest power supply, a Mac Studio's, has 480 W."""


def parse_line(line: str) -> Facts | None:
    """Return what one line of the pipe says, or None if it is cut short or not a JSON object."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return _facts(record) if isinstance(record, dict) else None


def sources(host: Host) -> list[Source]:
    return [Macmon(host.commands, host.which("macmon"))] if host.is_mac else []


class Macmon(Source):
    """One long-lived child process, killed on close. While nobody reads it blocks on its pipe, and costs nothing.

    If the program is not installed, that is the reason given. Other sources are preferred, hence the rank.
    """

    name = "macmon"
    gives = ("power_watts", "cpu_power_watts", "cpu_temperature_celsius")
    rank = 90

    def __init__(
        self, commands: Commands, program: str | None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._commands = commands
        self._program = program
        self._monotonic = monotonic
        self._child: subprocess.Popen[bytes] | None = None
        self._partial = b""
        self._read_at = 0.0

    def read(self, request: SourceRequest) -> Facts:
        if self._program is None:
            raise SourceError("not installed; `brew install macmon` adds watts and temperatures")
        child = self._child or self._start(self._program)
        paused = self._monotonic() - self._read_at > 3 * self.period_seconds
        self._read_at = self._monotonic()
        line = self._newest_line(child)
        if paused:  # what waited in the pipe is as old as the pause
            raise NotYet("macmon has been asked again; its next line is on its way")
        if line is None:
            if child.poll() is not None:
                self.close()
                raise SourceError(f"macmon ended with exit code {child.returncode}")
            raise NotYet("macmon has not printed a new line yet")
        facts = parse_line(line)
        if facts is None:
            raise SourceError(f"macmon printed no JSON object: {line[:80]!r}")
        return facts

    def close(self) -> None:
        child, self._child, self._partial = self._child, None, b""
        if child is None:
            return
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()
        self._commands.forget(child)

    def _start(self, program: str) -> subprocess.Popen[bytes]:
        self._child = self._commands.start((program, "pipe", "-i", str(int(self.period_seconds * 1000))))
        assert self._child.stdout is not None
        os.set_blocking(self._child.stdout.fileno(), False)
        self._read_at = self._monotonic()
        return self._child

    def _newest_line(self, child: subprocess.Popen[bytes]) -> str | None:
        assert child.stdout is not None
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(child.stdout.fileno(), 1 << 16):
                self._partial = (self._partial + chunk)[-(1 << 20) :]
        *lines, self._partial = self._partial.split(b"\n")
        return lines[-1].decode("utf-8", "replace") if lines else None


def _facts(record: Mapping[str, Any]) -> Facts:
    active = _number(record, "gpu_active_ratio")
    cpu_power, gpu_power = _watts(record, "cpu_power") or None, _watts(record, "gpu_power")
    host = HostFacts(
        memory_total_bytes=_bytes(record, "memory", "ram_total"),
        memory_used_bytes=_bytes(record, "memory", "ram_usage") or None,
        swap_total_bytes=_bytes(record, "memory", "swap_total"),
        swap_used_bytes=_bytes(record, "memory", "swap_usage"),
        cpu_temperature_celsius=_number(record, "temp", "cpu_temp_avg") or None,
        cpu_power_watts=cpu_power,
        power_watts=_watts(record, "sys_power") or None,
    )
    gpu = GpuSample(
        vendor="apple",
        busy_percent=None if active is None else active * 100,
        temperature_celsius=_number(record, "temp", "gpu_temp_avg") or None,
        power_watts=None if gpu_power == 0 and cpu_power is None else gpu_power,
        clock_mhz=_number(record, "gpu_freq_mhz") or _number(record, "gpu_usage", 0) or None,
    )
    scaled_only = {} if active is not None else {"gpu0.busy_percent": "this macmon gives the load scaled by clock only"}
    return Facts(host=host, gpus=(gpu,), reasons=scaled_only)


def _number(record: Any, *path: str | int) -> float | None:
    for key in path:
        try:
            record = record[key]
        except (LookupError, TypeError):
            return None
    return record if isinstance(record, (int, float)) and not isinstance(record, bool) else None


def _watts(record: Any, name: str) -> float | None:
    value = _number(record, name)
    return value if value is not None and value <= MOST_WATTS else None


def _bytes(record: Any, *path: str) -> int | None:
    value = _number(record, *path)
    return int(value) if value is not None and value == value // 1 else None
