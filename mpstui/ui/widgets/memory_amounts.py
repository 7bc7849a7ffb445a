"""The amounts of the memory panel: what each is now, what it is measured against, and its past."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.present import format as shown
from ..panels import RunFacts
from .memory_words import tone, why_no_device, why_no_footprint, why_no_system

if TYPE_CHECKING:
    from ...core.telemetry.headroom import MemoryPoint

_LEAST_SWAP_BYTES = 2**30
"""A swap of less fills no strip: a few megabytes are on every machine."""
_LEVELS = {"normal": 0.0, "warn": 0.5, "critical": 1.0}
_LEVEL_ROLES = {"warn": "warn", "critical": "bad"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """One amount with its past. ``importance`` says what stays where there is little room, 0 the longest."""

    label: str
    importance: int
    value: str
    """The present in words."""
    past: Callable[[MemoryPoint], float | None] | None = None
    top: float | None = None
    """What fills the strip; None: the highest that was."""
    role: str = ""
    share: float | None = None
    """Of the limit that can end the run, now."""
    note: str = ""
    note_role: str = "dim"
    reason: str = ""
    """Why the value is unknown, or what it is."""
    grows: bool = False
    """Whether its strip is worth more than one line."""

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.value != shown.UNKNOWN

    def role_of(self, value: float) -> str:
        """The role of a past value: those near the limit stand out."""
        if self.label == "pressure":
            return self.role if value < _LEVELS["warn"] else "warn" if value < 1 else "bad"
        return tone(value / self.top, self.role) if self.top and self.share is not None else self.role


def amounts(facts: RunFacts) -> Iterator[Amount]:
    """All of them, from the allocator outwards to the machine."""
    course = facts.telemetry.memory if facts.telemetry else ()
    now = course[-1] if course else None
    yield from _device(facts, now)
    yield _footprint(facts, course)
    yield _system(facts, now)
    yield _swap(facts, course)
    yield _pressure(facts, now)


def _measured(label: str, importance: int, value: int | None, limit: int | None, **more: object) -> Amount:
    share = shown.ratio(value, limit)
    note = "" if share is None or limit is None else f"{100 * share:.0f} %".rjust(5) + f" of {shown.size(limit)}"
    return Amount(
        label=label,
        importance=importance,
        value=shown.size(value),
        top=limit,
        share=share,
        note=note,
        note_role=tone(share, "dim"),
        grows=True,
        **more,  # type: ignore[arg-type]
    )


def _device(facts: RunFacts, now: MemoryPoint | None) -> Iterator[Amount]:
    memory, why = facts.snapshot.numbers.memory, why_no_device(facts.snapshot)
    limit = memory.limit or (now.limit if now else None)
    card = now.device_used if now else None
    if memory.allocated is None and memory.driver is None and card is None:
        yield Amount(label="device", importance=9, value=shown.UNKNOWN, reason=why)
        return
    yield _measured("allocated", 7, memory.allocated, limit, past=_allocated, role="busy", reason=why)
    yield _measured("driver", 1, memory.driver, limit, past=_driver, role="bar", reason=why)
    if card is not None:
        yield _measured("card", 1, card, limit, past=_card, role="cached")
    on_mac = facts.snapshot.numbers.device.type == "mps"
    meaning = "recommended by Metal" if on_mac else "all there is on the device"
    told = meaning if limit is not None else "the trainer does not tell it"
    yield Amount(label="limit", importance=11, value=shown.size(limit), reason=told)


def _footprint(facts: RunFacts, course: Sequence[MemoryPoint]) -> Amount:
    tree, memory = facts.tree, facts.snapshot.numbers.memory
    now = course[-1] if course else None
    used = _first(tree.footprint_bytes if tree else None, memory.footprint)
    if used is None and not facts.snapshot.state.active:
        used = next((point.footprint for point in reversed(course) if point.footprint is not None), None)
    label = "footprint"
    if used is None:
        used = _first(tree.rss_bytes if tree else None, facts.snapshot.tree_memory_bytes, memory.rss)
        label = "resident" if used is not None else label
    counts = facts.snapshot.numbers.device.type == "mps" and now is not None and now.limit is not None
    limit = (now.limit if counts else now.system_limit) if now else None
    return _measured(label, 4, used, limit, past=_processes, role="mark", reason=why_no_footprint(facts))


def _system(facts: RunFacts, now: MemoryPoint | None) -> Amount:
    system = facts.system
    sampled = system.memory_used_of_usable_bytes if system else None
    used = now.system_used if now else sampled
    limit = system.usable_memory_bytes if system else None
    why = why_no_system(facts, "memory_used_bytes")
    return _dated(facts, now, _measured("system", 5, used, limit, past=_machine, role="quiet", reason=why))


def _swap(facts: RunFacts, course: Sequence[MemoryPoint]) -> Amount:
    known = [point.swap_used for point in course if point.swap_used is not None]
    used = facts.system.swap_used_bytes if facts.system else None
    if known and not facts.snapshot.state.active:
        used = known[-1]
    grown = used - known[0] if used is not None and known else 0
    swap = Amount(
        label="swap",
        importance=6,
        value=shown.size(used),
        past=lambda point: point.swap_used,
        top=max([_LEAST_SWAP_BYTES, *known]),
        role="quiet",
        note=f"{'+' if grown > 0 else '-'}{shown.size(abs(grown))}" if grown else "steady" if known else "",
        note_role="warn" if grown >= _LEAST_SWAP_BYTES else "dim",
        reason=why_no_system(facts, "swap_used_bytes") if used is None else "",
    )
    return _dated(facts, course[-1] if course else None, swap)


def _pressure(facts: RunFacts, now: MemoryPoint | None) -> Amount:
    level = facts.system.pressure if facts.system else None
    if now is not None and now.pressure is not None and not facts.snapshot.state.active:
        level = now.pressure
    pressure = Amount(
        label="pressure",
        importance=12,
        value=level or shown.UNKNOWN,
        past=lambda point: None if point.pressure is None else _LEVELS[point.pressure],
        top=1.0,
        role="quiet",
        note_role=_LEVEL_ROLES.get(level or "", "dim"),
        reason=why_no_system(facts, "pressure") if level is None else "",
    )
    return _dated(facts, now, pressure)


def _dated(facts: RunFacts, now: MemoryPoint | None, amount: Amount) -> Amount:
    """What the machine shows beside a run that has ended and left no record is of the present: it says so."""
    if facts.snapshot.state.active or now is not None or not amount.known:
        return amount
    return replace(amount, note=f"{amount.note} now".strip())


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _allocated(point: MemoryPoint) -> float | None:
    return point.allocated


def _driver(point: MemoryPoint) -> float | None:
    return point.driver


def _card(point: MemoryPoint) -> float | None:
    return point.device_used


def _processes(point: MemoryPoint) -> float | None:
    return point.footprint


def _machine(point: MemoryPoint) -> float | None:
    return point.system_used
