"""Memory in use as Activity Monitor counts it, from macOS ``vm_stat``.

Memory Used = (anonymous - purgeable) + wired + occupied by the compressor. The sum of active and wired pages that
psutil calls ``used`` leaves the compressor out and is 7 to 15 GiB too low on busy machines. ``Pages stored in
compressor`` is the size before compression and must not be added.
"""

from __future__ import annotations

import re

from ..model import HostFacts
from ..source import Facts, Host, ProgramSource, Source, SourceError, SourceRequest

COMMAND = ("/usr/bin/vm_stat",)
_PAGE_SIZE = re.compile(r"page size of (\d+) bytes")
# A dot ends each number: one without it was cut short.
_COUNTER = re.compile(r'^"?([^":]+)"?:\s+(\d+)\.\s*$', re.MULTILINE)
_NEEDED = ("Anonymous pages", "Pages purgeable", "Pages wired down", "Pages occupied by compressor")


def parse(text: str) -> int | None:
    """Return the bytes in use, or None if the page size or one of the four counters is missing or makes no sense."""
    page_size = _PAGE_SIZE.search(text)
    pages = {name: int(count) for name, count in _COUNTER.findall(text)}
    if page_size is None or any(name not in pages for name in _NEEDED):
        return None
    anonymous, purgeable, wired, compressor = (pages[name] for name in _NEEDED)
    used = (anonymous - purgeable + wired + compressor) * int(page_size[1])
    return used if used > 0 else None


def sources(host: Host) -> list[Source]:
    return [VmStat(host.commands.run)] if host.is_mac else []


class VmStat(ProgramSource):
    """The ``vm_stat`` command. Available memory follows from the total, which another source gives."""

    name = "vm_stat"
    gives = ("memory_used_bytes",)
    period_seconds = 3.0

    def read(self, request: SourceRequest) -> Facts:
        used = parse(self.run(COMMAND, self.timeout_seconds))
        if used is None:
            raise SourceError("vm_stat printed no page size or lacks one of the counters that make up used memory")
        return Facts(host=HostFacts(memory_used_bytes=used))
