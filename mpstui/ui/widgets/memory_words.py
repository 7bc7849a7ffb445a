"""The text of the memory panel: distance to the limit, each amount over time, what clearing the cache frees, energy.

With unified memory, allocator, driver, processes and machine are different questions with different answers: each has
its own line, and none is guessed from another. Unknown amounts are n/a with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot
from ..panels import RunFacts
from ..rows import Span, clean

if TYPE_CHECKING:
    from ...core.settings import EnergySettings
    from ...core.telemetry.headroom import Headroom, MemoryPoint

WARN_SHARE, BAD_SHARE = 0.85, 0.95
_SOON_SECONDS = 15 * 60
_LEAST_SWAP_BYTES = 2**30
"""Swap below this is not drawn: every machine uses a few megabytes."""
_MUCH_LATER = 15.0
"""If the newest heartbeat is this many seconds newer than the last recorded sample, nobody sampled since."""
_LEVELS = {"normal": 0.0, "warn": 0.5, "critical": 1.0}
_LEVEL_ROLES = {"warn": "warn", "critical": "bad"}
_NOT_READ = "the machine is being read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An amount on a line, with its history if any. If lines are few, the lowest ``importance`` numbers stay."""

    label: str
    importance: int
    value: str
    """The current amount as text."""
    past: str = ""
    """The field of :class:`MemoryPoint` that holds its history."""
    top: float | None = None
    """The amount that fills the strip; None: its highest value."""
    role: str = ""
    share: float | None = None
    """Current share of the limit that can end the run."""
    note: str = ""
    short_note: str = ""
    """Replaces the note if that does not fit beside the curve."""
    note_role: str = "dim"
    reason: str = ""
    """Why the value is unknown, or an explanation of it; shown if no curve is drawn."""
    words: tuple[Span, ...] = ()
    """Replaces note and reason."""
    grows: bool = False
    """True if its strip is worth more than one line."""

    def at(self, point: MemoryPoint) -> float | None:
        value = getattr(point, self.past) if self.past else None
        return _LEVELS[value] if isinstance(value, str) else value

    def role_of(self, value: float) -> str:
        """Return the role of a past value: those near the limit stand out."""
        if self.past == "pressure":
            return self.role if value < _LEVELS["warn"] else "warn" if value < 1 else "bad"
        return tone(value / self.top, self.role) if self.top and self.share is not None else self.role

    def said(self) -> tuple[Span, ...]:
        """What to show beside the value if there is no curve."""
        if self.words:
            return self.words
        if self.value == shown.UNKNOWN:
            return (Span(self.reason, "faint"),)
        return (Span(self.note.strip() or self.reason, self.note_role),)


def tone(share: float | None, calm: str = "") -> str:
    """Return the role of an amount by its share of a limit."""
    if share is None or share <= WARN_SHARE:
        return calm
    return "bad" if share > BAD_SHARE else "warn"


def ranks(snapshot: RunSnapshot) -> Iterator[tuple[Span, ...]]:
    """One line for each rank of a distributed training: its step, loss, memory and the heartbeat's age."""
    for beat in snapshot.ranks:
        held = beat.memory.allocated if beat.memory.driver is None else beat.memory.driver
        age = max(0.0, snapshot.seen - beat.time)
        late = age > (beat.expect_next_in or math.inf) and snapshot.state.active
        told = f"step {shown.whole(beat.step)} · loss {shown.number(beat.loss)} · {shown.size(held)}"
        yield (
            Span(f"rank {beat.rank or 0:<4} ", "dim"),
            Span(told),
            Span(f" · beat {shown.duration(age)} ago", "warn" if late else "dim"),
        )


# -- how far from the limit


def verdict(facts: RunFacts) -> tuple[Span, ...]:
    """How far the run is from the nearest limit, or when it will reach it."""
    found = facts.telemetry.headroom if facts.telemetry else None
    if found is None:
        return Span("headroom n/a", "faint"), Span(f"  {_why_no_headroom(facts)}", "faint")
    where = Span(f" · {found.nearest} {_of(found.used_bytes, found.limit_bytes)}", "dim")
    if not facts.snapshot.state.active:
        return Span("ended", "dim"), where, Span(" when last seen", "faint")
    if found.seconds_to_limit is not None:
        return _countdown(found, found.seconds_to_limit, where)
    left = found.limit_bytes - found.used_bytes
    words = f"{shown.size(left)} left" if left >= 0 else f"{shown.size(-left)} above the limit"
    return Span(words, f"{tone(found.used_fraction, 'good')} strong"), where


def _why_no_headroom(facts: RunFacts) -> str:
    if facts.telemetry is None or facts.system is None:
        return _NOT_READ
    if not facts.snapshot.state.active:
        return "nothing was recorded while it ran"
    if facts.snapshot.pid is None and facts.snapshot.is_ours:
        return "it has no process yet"
    return facts.system.why_unknown("memory_used_bytes")


def _countdown(found: Headroom, seconds: float, where: Span) -> tuple[Span, ...]:
    """Rounded to a meaningful precision: ``limit in 40 s``, ``12 min``, ``5 h``."""
    about = f"{max(5, round(seconds / 5) * 5)} s" if seconds < 60 else f"{round(seconds / 60)} min"
    about = about if seconds < 7200 else f"{round(seconds / 3600)} h"
    role = "bad strong" if seconds < _SOON_SECONDS else "warn strong"
    words = Span("at the limit now" if seconds < 1 else f"limit in {about}", role)
    name = where if found.soonest in (None, found.nearest) else Span(f" · {found.soonest}", "dim")
    growth = found.growth_bytes_per_second
    return (words, name, Span(f" · +{shown.size(60 * growth)}/min", "dim")) if growth else (words, name)


def _of(used: float, limit: float) -> str:
    """``7.2 of 21.3 GiB``: a shared unit is written once."""
    one, other = shown.size(used), shown.size(limit)
    number, _, unit = one.partition(" ")
    return f"{number if other.endswith(unit) and unit else one} of {other}"


# -- the amounts that decide it


def amounts(facts: RunFacts) -> Iterator[Amount]:
    """All amounts, from the allocator outwards to the machine."""
    course = facts.telemetry.memory if facts.telemetry else ()
    now = course[-1] if course else None
    yield from _device(facts, now)
    yield _footprint(facts, course)
    yield from _machine(facts, course, now)


def _measured(
    label: str, importance: int, value: int | None, limit: int | None, suffix: str = "", **more: Any
) -> Amount:
    share = shown.ratio(value, limit)
    percent = "" if share is None else f"{100 * share:.0f} %".rjust(5)
    return Amount(
        label=label,
        importance=importance,
        value=shown.size(value),
        top=limit,
        share=share,
        note=(f"{percent} of {shown.size(limit)}" if percent else "") + (suffix if value is not None else ""),
        short_note=percent,
        note_role=tone(share, "dim"),
        grows=True,
        **more,
    )


def _device(facts: RunFacts, now: MemoryPoint | None) -> Iterator[Amount]:
    memory, why = facts.snapshot.numbers.memory, why_no_device(facts)
    limit = memory.limit or (now.limit if now else None)
    card = now.device_used if now else None
    if memory.allocated is None and memory.driver is None and card is None:
        yield Amount(label="device", importance=9, value=shown.UNKNOWN, reason=why)
        return
    yield _measured("allocated", 7, memory.allocated, limit, past="allocated", role="busy", reason=why)
    yield _measured("driver", 1, memory.driver, limit, past="driver", role="bar", reason=why)
    if card is not None:
        yield _measured("card", 1, card, limit, past="device_used", role="cached")
    on_mac = facts.snapshot.numbers.device.type == "mps"
    meaning = "recommended by Metal" if on_mac else "all there is on the device"
    told = meaning if limit is not None else "the trainer does not report it"
    yield Amount(label="limit", importance=11, value=shown.size(limit), reason=told)


def _footprint(facts: RunFacts, course: Sequence[MemoryPoint]) -> Amount:
    """Memory of the processes: their footprint or, if unknown, the resident size."""
    snapshot, tree, memory = facts.snapshot, facts.tree, facts.snapshot.numbers.memory
    now = course[-1] if course else None
    used = _first(tree.footprint_bytes if tree else None, memory.footprint)
    beat = snapshot.numbers.beat
    told_later = beat is not None and memory.rss is not None and now is not None and beat.time > now.time + _MUCH_LATER
    if used is None and not snapshot.state.active and not told_later:  # early samples do not tell its end
        used = _first(*(point.footprint for point in reversed(course)))
    resident = _first(tree.rss_bytes if tree else None, memory.rss)
    label, used = ("resident", resident) if used is None and resident is not None else ("footprint", used)
    counts = snapshot.numbers.device.type == "mps" and now is not None and now.limit is not None
    limit = (now.limit if counts else now.system_limit) if now else None
    if snapshot.pid is None:
        why = "no process of it is known" if snapshot.state.active else "it has ended"
    else:
        why = tree.why_unknown("footprint_bytes") if tree else _NOT_READ
    return _measured(label, 4, used, limit, past="footprint", role="mark", reason=why)


def _machine(facts: RunFacts, course: Sequence[MemoryPoint], now: MemoryPoint | None) -> Iterator[Amount]:
    """Memory, swap and pressure of the machine: for an ended run as last recorded; without a record the current values,
    labelled as such."""
    system, active = facts.system, facts.snapshot.state.active
    why = system.why_unknown if system else lambda name: _NOT_READ
    suffix = "" if active or now is not None else " now"
    used = now.system_used if now else system.memory_used_of_usable_bytes if system else None
    limit = system.usable_memory_bytes if system else None
    past = {"past": "system_used", "role": "quiet", "reason": why("memory_used_bytes")}
    yield _measured("system", 5, used, limit, suffix, **past)

    swaps = [point.swap_used for point in course if point.swap_used is not None]
    swap = swaps[-1] if swaps and not active else system.swap_used_bytes if system else None
    grown = swap - swaps[0] if swap is not None and swaps else 0
    change = f"{'+' if grown > 0 else '-'}{shown.size(abs(grown))}" if grown else "steady" if swaps else ""
    yield Amount(
        label="swap",
        importance=6,
        value=shown.size(swap),
        past="swap_used",
        top=max([_LEAST_SWAP_BYTES, *swaps]),
        role="quiet",
        note=f"{change}{suffix}".strip() if swap is not None else change,
        note_role="warn" if grown >= _LEAST_SWAP_BYTES else "dim",
        reason=why("swap_used_bytes") if swap is None else "",
    )
    level = now.pressure if now is not None and now.pressure is not None and not active else None
    level = level or (system.pressure if system else None)
    yield Amount(
        label="pressure",
        importance=12,
        value=level or shown.UNKNOWN,
        past="pressure",
        top=1.0,
        role="quiet",
        note=suffix.strip() if level else "",
        note_role=_LEVEL_ROLES.get(level or "", "dim"),
        reason=why("pressure") if level is None else "",
    )


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def why_no_device(facts: RunFacts) -> str:
    """Why nothing is known about the device's memory."""
    if facts.snapshot.numbers.device.type == "cpu":
        return "it runs on the CPU"
    if not facts.snapshot.is_ours or not facts.beats:
        return "this program does not report device memory"
    return "not reported yet"


# -- what clearing the cache gives, what the cards do, what it costs


def loads(facts: RunFacts) -> Iterator[Amount]:
    """Current and past load of processor and accelerator, as far as known."""
    system, course = facts.system, facts.telemetry.memory if facts.telemetry else ()
    cards = [gpu.busy_percent for gpu in system.gpus if gpu.busy_percent is not None] if system else []
    now = {"gpu_percent": max(cards, default=None), "cpu_percent": system.cpu_percent if system else None}
    for label, past in (("gpu busy", "gpu_percent"), ("cpu busy", "cpu_percent")):
        then = [value for point in course if (value := getattr(point, past)) is not None]
        value = now[past] if facts.snapshot.state.active else then[-1] if then else None
        if value is not None and then:
            mean = f"avg {sum(then) / len(then):.0f}"
            looks: dict[str, Any] = {"top": 100.0, "role": "busy", "note": f"{mean} %", "short_note": f"{mean}%"}
            yield Amount(label=label, importance=14, value=f"{value:.0f} %", past=past, grows=True, **looks)


def others(facts: RunFacts, one_line: bool) -> Iterator[Amount]:
    """The lines below the curves. ``one_line``: put everything about energy on one."""
    yield _cache(facts)
    yield from _cards(facts)
    for importance, (label, value, notes) in enumerate(_energy(facts, one_line), start=8):
        role = "dim" if value != shown.UNKNOWN else "faint"
        yield Amount(label=label, importance=importance, value=value, words=(Span(notes, role),))


def _cache(facts: RunFacts) -> Amount:
    """How much clearing can free or, once the key was pressed, how much it freed."""
    done, memory = facts.cleared, facts.snapshot.numbers.memory
    can_free: int | None = None
    if memory.allocated is not None and memory.driver is not None:
        can_free = max(0, memory.driver - memory.allocated)  # held by the driver, not by tensors
    words: tuple[Span, ...]
    if done is not None and done.before is not None and done.after is not None:
        freed = done.freed if done.freed is not None else max(0, done.before - done.after)
        change = f": {shown.size(done.before)} → {shown.size(done.after)} at {shown.clock(done.time)}"
        words = (Span(f"freed {shown.size(freed)}", "good"), Span(change, "dim"))
    elif can_free is None:
        words = (Span(why_no_device(facts), "faint"),)
    elif not facts.snapshot.state.active:
        words = (Span("when last seen", "faint"),)
    else:
        words = (Span("x", "key"), Span(" frees up to " + shown.size(can_free), "dim"))
    return Amount(label="cache", importance=3, value=shown.size(can_free), words=words)


def _cards(facts: RunFacts) -> Iterator[Amount]:
    """One line for each card, the first with the machine's load and heat; without cards, only the machine."""
    system = facts.system
    if system is None:
        return
    around = _joined(
        f"cpu {system.cpu_percent:.0f} %" if system.cpu_percent is not None else "",
        f"thermal {system.thermal}" if system.thermal is not None else "",
    )
    for place, gpu in enumerate(system.gpus):
        words = _joined(
            f"{gpu.busy_percent:.0f} % busy" if gpu.busy_percent is not None else "",
            f"{gpu.power_watts:.0f} W" if gpu.power_watts is not None else "",
            f"{gpu.temperature_celsius:.0f} °C" if gpu.temperature_celsius is not None else "",
            f"of {shown.size(gpu.memory_total_bytes)}" if gpu.memory_total_bytes is not None else "",
            ", ".join(gpu.throttle_reasons or ()),
            "" if place else around,
        )
        label = f"gpu {gpu.index}" if len(system.gpus) > 1 else "gpu"
        used = shown.size(gpu.memory_used_bytes)
        yield Amount(label=label, importance=13 if place else 7, value=used, words=(Span(words, "dim"),))
    if not system.gpus and around:
        yield Amount(label="machine", importance=9, value="", words=(Span(around, "dim"),))


def _energy(facts: RunFacts, one_line: bool) -> list[tuple[str, str, str]]:
    """Label, amount and the rest: the cost, the share of the run that was measured, and the energy per epoch."""
    energy = facts.telemetry.energy if facts.telemetry else None
    if energy is None:
        return [("energy", shown.UNKNOWN, _why_no_energy(facts))]
    share, epoch = energy.measured_fraction, energy.epoch_watt_hours
    covers = "" if share is None else "whole run" if share >= 0.995 else f"{max(1, round(100 * share))} % of the run"
    notes = [_money(energy.watt_hours, facts.prices), covers, "cards alone" if energy.whose == "gpu" else ""]
    lines = [("energy", _watt_hours(energy.watt_hours), _joined(*notes))]
    if epoch is None:
        return lines
    paid = _money(epoch, facts.prices)
    if one_line:
        an_epoch = f"an epoch {_watt_hours(epoch)}" + (f", {paid}" if paid else "")
        return [("energy", _watt_hours(energy.watt_hours), _joined(*notes, an_epoch))]
    return [*lines, ("an epoch", _watt_hours(epoch), _joined(paid, f"mean of {round(energy.epochs)}"))]


def _why_no_energy(facts: RunFacts) -> str:
    system = facts.system
    if facts.telemetry is None or system is None:
        return _NOT_READ
    if any(gpu.power_watts is not None for gpu in system.gpus) or system.power_watts is not None:
        return "measured from now on" if facts.snapshot.state.active else "nobody was watching while it ran"
    names = ("power_watts", *(f"gpu{gpu.index}.power_watts" for gpu in system.gpus), "gpus")
    reason = next((system.reasons[name] for name in names if name in system.reasons), None)
    return f"power is not measured here: {reason or system.why_unknown('power_watts')}"


def _watt_hours(value: float) -> str:
    """``0.31 Wh``, ``21.4 Wh``, ``1.20 kWh``."""
    amount, unit = (value / 1000, "kWh") if value >= 1000 else (value, "Wh")
    return f"{amount:.{2 if amount < 10 else 1 if amount < 100 else 0}f} {unit}"


def _money(watt_hours: float, prices: EnergySettings | None) -> str:
    if prices is None or prices.price is None:
        return ""
    paid = watt_hours / 1000 * prices.price
    digits = 2 if paid >= 1 or paid == 0 else 3 if paid >= 0.1 else 4
    text = f"{paid:.{digits}f}" if paid >= 0.0001 or paid == 0 else "<0.0001"
    return f"{text} {clean(prices.currency, 4)}".rstrip()


def _joined(*notes: str) -> str:
    return " · ".join(note for note in notes if note)
