"""The thermal pressure level that macOS publishes, from ``notifyutil``.

The scale is that of OSThermalNotification.h. The level can stay nominal while the GPU's clock has already dropped, so
it can confirm a slowdown but never rule one out; `diagnosis/live.py` has the better alarm.
"""

from __future__ import annotations

import re

from ..model import HostFacts, ThermalLevel
from ..source import Facts, Host, ProgramSource, Source, SourceError, SourceRequest

_KEY = "com.apple.system.thermalpressurelevel"
COMMAND = ("/usr/bin/notifyutil", "-g", _KEY)
_LINE = re.compile(rf"^{re.escape(_KEY)} (\d+)\n", re.MULTILINE)
_LEVELS: tuple[ThermalLevel, ...] = ("nominal", "moderate", "heavy", "trapping", "sleeping")


def parse(text: str) -> ThermalLevel | None:
    """Return the level, or None for the failure text, which comes on standard output with exit code 0."""
    found = _LINE.search(text)
    level = int(found[1]) if found else len(_LEVELS)
    return _LEVELS[level] if level < len(_LEVELS) else None


def sources(host: Host) -> list[Source]:
    return [Thermal(host.commands.run)] if host.is_mac else []


class Thermal(ProgramSource):
    """``notifyutil -g``. A key that was never posted reads 0, the same as nominal."""

    name = "notifyutil"
    gives = ("thermal",)
    period_seconds = 10.0
    verified = False

    def read(self, request: SourceRequest) -> Facts:
        text = self.run(COMMAND, self.timeout_seconds)
        level = parse(text)
        if level is None:
            raise SourceError(f"notifyutil gave no thermal level: {text.strip()[:80]!r}")
        return Facts(host=HostFacts(thermal=level))
