"""Memory pressure of a Linux machine: the kernel's pressure stall information (PSI).

``some`` is the share of the last 10 seconds in which at least one task waited for memory, ``full`` that in which all
of them did. The two thresholds are our own: losing a tenth of the time is noticeable, all tasks losing a fifth at once
is thrashing (systemd-oomd kills at 60 % held for 30 s).
"""

from __future__ import annotations

import re
from pathlib import Path

from ..model import HostFacts, PressureLevel
from ..source import Facts, Host, Source, SourceError, SourceRequest

WARN_SOME_PERCENT = 10.0
CRITICAL_FULL_PERCENT = 20.0
_LINE = re.compile(r"^(some|full) avg10=(\d+(?:\.\d+)?) ", re.MULTILINE)  # without the blank it was cut short


def parse(text: str) -> tuple[PressureLevel | None, float | None]:
    """Return the level and the ``some`` share of the last 10 seconds in percent; None for what is missing."""
    shares = {word: float(share) for word, share in _LINE.findall(text)}
    some, full = shares.get("some"), shares.get("full", 0.0)
    if some is None:
        return None, None
    if full >= CRITICAL_FULL_PERCENT:
        return "critical", some
    return ("warn" if some >= WARN_SOME_PERCENT else "normal"), some


def sources(host: Host) -> list[Source]:
    return [] if host.is_mac else [MemoryPressure(host.root)]


class MemoryPressure(Source):
    """``/proc/pressure/memory``, below the given filesystem root."""

    name = "pressure stall information"
    gives = ("pressure", "pressure_percent")

    def __init__(self, root: Path = Path("/")) -> None:
        self._path = root / "proc/pressure/memory"

    def read(self, request: SourceRequest) -> Facts:
        try:
            level, some = parse(self._path.read_text())
        except OSError as error:
            raise SourceError(f"{self._path} cannot be read: {error.strerror}; the kernel needs CONFIG_PSI") from error
        if level is None:
            raise SourceError(f"{self._path} has no line that begins with 'some avg10='")
        return Facts(host=HostFacts(pressure=level, pressure_percent=some))
