"""Memory, told truly: what the allocator holds, what the driver holds, the limit, the processes, the machine.

On unified memory these are different questions with different answers, so each has its own line and none is guessed
from another. The difference between driver and allocator is what clearing the cache can give back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.present import format as shown
from ...core.runs.snapshot import RunSnapshot
from ..rows import Row, Span, bar, clip, fit, row, width_of
from .lines import LinePanel

if TYPE_CHECKING:
    from ...core.telemetry.model import SystemSample, TreeSample
    from ...wire.records import Ack

_LABEL, _VALUE = 11, 9


@dataclass(frozen=True, eq=False, kw_only=True)
class MemoryFacts:
    """All that the panel tells."""

    snapshot: RunSnapshot
    system: SystemSample | None = None
    tree: TreeSample | None = None
    cleared: Ack | None = None
    """The newest answer to "clear cache"."""


def memory_rows(facts: MemoryFacts, width: int) -> list[Row]:
    """One line a question; unknown is n/a."""
    memory = facts.snapshot.memory
    return [
        _amount("allocated", memory.allocated, memory.limit, "live tensors", width),
        _amount("driver", memory.driver, memory.limit, "with its cache", width),
        _line("limit", shown.size(memory.limit), _headroom(memory.driver, memory.limit), width),
        _cache(facts, width),
        _processes(facts, width),
        _system(facts.system, width),
        _swap(facts.system, width),
        *_accelerators(facts.system, width),
    ]


def reclaimable(snapshot: RunSnapshot) -> int | None:
    """Bytes that clearing the cache can give back at most: held by the driver, not by tensors."""
    memory = snapshot.memory
    if memory.allocated is None or memory.driver is None:
        return None
    return max(0, memory.driver - memory.allocated)


def _amount(label: str, value: int | None, limit: int | None, note: str, width: int) -> Row:
    share = shown.ratio(value, limit)
    room = min(24, width - 2 - _LABEL - _VALUE - 2 - 7)
    tone = "bad" if share is not None and share > 0.95 else "warn" if share is not None and share > 0.85 else "bar"
    parts = [*_start(label, shown.size(value))]
    if room >= 6 and value is not None and limit is not None:
        parts += [Span("  "), *bar(share, room, tone), Span(fit(shown.percent(share), 7, "right"), "dim")]
    elif value is not None:
        parts += [Span("  "), Span(note, "faint")]
    return row(*clip(tuple(parts), width))


def _start(label: str, value: str) -> list[Span]:
    known = value != shown.UNKNOWN
    return [Span(" "), Span(fit(label, _LABEL), "dim"), Span(fit(value, _VALUE, "right"), "" if known else "faint")]


def _line(label: str, value: str, note: str, width: int, tone: str = "dim") -> Row:
    return row(*clip((*_start(label, value), Span("  "), Span(note, tone)), width))


def _headroom(driver: int | None, limit: int | None) -> str:
    if driver is None or limit is None:
        return ""
    left = limit - driver
    if left < 0:
        return f"{shown.size(-left)} above it"
    return f"{shown.size(left)} left"


def _cache(facts: MemoryFacts, width: int) -> Row:
    can_free = reclaimable(facts.snapshot)
    done = facts.cleared
    if done is not None and done.before is not None and done.after is not None:
        note = f"{shown.size(done.before)} → {shown.size(done.after)} at {shown.clock(done.time)}"
        if done.freed is not None:
            note = f"freed {shown.size(done.freed)}: {note}"
        return _line("cache", shown.size(can_free), note, width, "good")
    note = "" if can_free is None or not facts.snapshot.state.active else "x frees up to this"
    return _line("cache", shown.size(can_free), note, width)


def _processes(facts: MemoryFacts, width: int) -> Row:
    tree, snapshot = facts.tree, facts.snapshot
    used = tree.footprint_bytes if tree and tree.footprint_bytes is not None else None
    kind = "footprint"
    if used is None:
        used = tree.rss_bytes if tree and tree.rss_bytes is not None else snapshot.tree_memory_bytes
        kind = "resident"
    if used is None:
        used = snapshot.memory.rss
    notes = [kind] if used is not None else []
    if tree and tree.process_count is not None:
        notes.append(f"{tree.process_count} proc")
    if tree and tree.cpu_percent is not None:
        notes.append(f"cpu {tree.cpu_percent:.0f} %")
    if used is not None and not snapshot.state.active:
        notes = ["when last seen"]
    return _line("processes", shown.size(used), " · ".join(notes), width)


def _system(system: SystemSample | None, width: int) -> Row:
    used = system.memory_used_bytes if system else None
    total = system.usable_memory_bytes if system else None
    notes = [f"of {shown.size(total)}"] if total is not None else []
    if system and system.pressure is not None:
        notes.append(f"pressure {system.pressure}")
    tone = {"warn": "warn", "critical": "bad"}.get(system.pressure or "" if system else "", "dim")
    return _line("system", shown.size(used), " · ".join(notes), width, tone)


def _swap(system: SystemSample | None, width: int) -> Row:
    used = system.swap_used_bytes if system else None
    notes = []
    if system and system.cpu_percent is not None:
        notes.append(f"cpu {system.cpu_percent:.0f} %")
    if system and system.thermal is not None:
        notes.append(f"thermal {system.thermal}")
    return _line("swap", shown.size(used), " · ".join(notes), width)


def _accelerators(system: SystemSample | None, width: int) -> list[Row]:
    lines = []
    for gpu in system.gpus if system else ():
        notes = [f"{gpu.busy_percent:.0f} % busy" if gpu.busy_percent is not None else ""]
        notes.append(f"{gpu.temperature_celsius:.0f} °C" if gpu.temperature_celsius is not None else "")
        notes.append(f"{gpu.power_watts:.0f} W" if gpu.power_watts is not None else "")
        notes.append(f"of {shown.size(gpu.memory_total_bytes)}" if gpu.memory_total_bytes is not None else "")
        label = f"gpu {gpu.index}" if len(system.gpus if system else ()) > 1 else "gpu"
        text = " · ".join(note for note in notes if note)
        lines.append(_line(label, shown.size(gpu.memory_used_bytes), text, width))
    return lines


class MemoryPanel(LinePanel):
    """The lines as a panel."""

    facts: MemoryFacts | None = None

    def show(self, facts: MemoryFacts) -> None:
        """A new picture."""
        self.facts = facts
        self.repaint()

    def rows(self, width: int, height: int) -> list[Row]:
        """See :func:`memory_rows`."""
        return memory_rows(self.facts, width) if self.facts else []


def narrowest() -> int:
    """Cells from which on no line loses its value."""
    return 2 + _LABEL + _VALUE + width_of("  ")
