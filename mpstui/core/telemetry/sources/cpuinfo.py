"""The name of a Linux machine's processor, from ``/proc/cpuinfo``. POWER calls it ``cpu``; ARM kernels give none."""

from __future__ import annotations

import re
from pathlib import Path

from ..model import HostFacts
from ..source import Facts, Host, Source, SourceError, SourceRequest

_NAME = re.compile(r"^(?:model name|cpu)[ \t]*:\s*(\S.*?)\s*\n", re.MULTILINE | re.IGNORECASE)


def parse(text: str) -> str | None:
    """Return the first processor's name, or None."""
    found = _NAME.search(text)
    return found[1] if found else None


def sources(host: Host) -> list[Source]:
    return [] if host.is_mac else [CpuInfo(host.root)]


class CpuInfo(Source):
    """Read once a day, below the given filesystem root."""

    name = "/proc/cpuinfo"
    gives = ("chip",)
    period_seconds = 24 * 3600.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._path = root / "proc/cpuinfo"

    def read(self, request: SourceRequest) -> Facts:
        try:
            chip = parse(self._path.read_text("utf-8", "replace"))
        except OSError as error:
            raise SourceError(f"{self._path} cannot be read: {error.strerror}") from error
        if chip is None:
            raise SourceError(f"{self._path} names no processor")
        return Facts(host=HostFacts(chip=chip))
