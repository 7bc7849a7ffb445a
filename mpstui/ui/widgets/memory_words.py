"""The memory panel's sentences: how far from dying, what clearing the cache gives, energy, and why something is n/a."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.model.snapshot import RunSnapshot, State
from ...core.present import format as shown
from ..panels import RunFacts
from ..rows import Span, clean

if TYPE_CHECKING:
    from ...core.settings import EnergySettings
    from ...core.telemetry.energy import RunEnergy
    from ...core.telemetry.headroom import Headroom
    from ...core.telemetry.model import GpuSample, SystemSample

WARN_SHARE, BAD_SHARE = 0.85, 0.95
_SOON_SECONDS = 15 * 60
_LIMIT_NAMES = {"device": "device", "footprint": "footprint", "system": "system"}


def tone(share: float | None, calm: str = "") -> str:
    """The role of an amount by its share of a limit."""
    if share is None or share <= WARN_SHARE:
        return calm
    return "bad" if share > BAD_SHARE else "warn"


def about(seconds: float) -> str:
    """A time to come, no more exact than it is known: ``40 s``, ``12 min``, ``5 h``."""
    if seconds < 60:
        return f"{max(5, round(seconds / 5) * 5)} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{round(seconds / 3600)} h"


def verdict(facts: RunFacts) -> tuple[Span, ...]:
    """How far from dying, in one line."""
    found = facts.telemetry.headroom if facts.telemetry else None
    if found is None:
        return Span("headroom n/a", "faint"), Span(f"  {_why_no_headroom(facts)}", "faint")
    ended = not facts.snapshot.state.active
    where = Span(f" · {_LIMIT_NAMES[found.nearest]} {_of(found.used_bytes, found.limit_bytes)}", "dim")
    if ended:
        return Span("ended", "dim"), where, Span(" when last seen", "faint")
    if found.seconds_to_limit is not None:
        return _countdown(found)
    left = found.limit_bytes - found.used_bytes
    words = f"{shown.size(left)} left" if left >= 0 else f"{shown.size(-left)} above the limit"
    return Span(words, f"{tone(found.used_fraction, 'good')} strong"), where


def _countdown(found: Headroom) -> tuple[Span, ...]:
    seconds = found.seconds_to_limit or 0.0
    role = "bad strong" if seconds < _SOON_SECONDS else "warn strong"
    name = _LIMIT_NAMES[found.soonest or found.nearest]
    words = [Span("at the limit now" if seconds < 1 else f"limit in {about(seconds)}", role)]
    if found.soonest in (None, found.nearest):
        words.append(Span(f" · {name} {_of(found.used_bytes, found.limit_bytes)}", "dim"))
    else:
        words.append(Span(f" · {name}", "dim"))
    if found.growth_bytes_per_second:
        words.append(Span(f" · +{shown.size(60 * found.growth_bytes_per_second)}/min", "dim"))
    return tuple(words)


def _of(used: float, limit: float) -> str:
    """``7.2 of 21.3 GiB``: the unit once where it is the same."""
    one, other = shown.size(used), shown.size(limit)
    number, _, unit = one.partition(" ")
    return f"{number if other.endswith(unit) and unit else one} of {other}"


def _why_no_headroom(facts: RunFacts) -> str:
    if facts.telemetry is None or facts.system is None:
        return "the machine is being read"
    if not facts.snapshot.state.active:
        return "nothing was recorded while it ran"
    if facts.snapshot.pid is None and facts.snapshot.state is not State.WATCHED:
        return "it has no process yet"
    return facts.system.why_unknown("memory_used_bytes")


def cache_words(facts: RunFacts) -> tuple[Span, ...]:
    """What clearing can give back, before the key is pressed; afterwards what it gave."""
    done = facts.cleared
    if done is not None and done.before is not None and done.after is not None:
        freed = done.freed if done.freed is not None else max(0, done.before - done.after)
        change = f": {shown.size(done.before)} → {shown.size(done.after)} at {shown.clock(done.time)}"
        return Span(f"freed {shown.size(freed)}", "good"), Span(change, "dim")
    can_free = reclaimable(facts.snapshot)
    if can_free is None:
        return (Span(why_no_device(facts.snapshot), "faint"),)
    if not facts.snapshot.state.active:
        return (Span("when last seen", "faint"),)
    return Span("x", "key"), Span(" frees up to " + shown.size(can_free), "dim")


def reclaimable(snapshot: RunSnapshot) -> int | None:
    """Bytes that clearing the cache can give back at most: held by the driver, not by tensors."""
    memory = snapshot.numbers.memory
    if memory.allocated is None or memory.driver is None:
        return None
    return max(0, memory.driver - memory.allocated)


def why_no_device(snapshot: RunSnapshot) -> str:
    """Why nothing is known of the device's memory."""
    if snapshot.numbers.device.type == "cpu":
        return "it runs on the CPU"
    if snapshot.state is State.WATCHED or snapshot.numbers.beat is None:
        return "this program reports no device memory"
    return "the trainer has not reported it yet"


def why_no_footprint(facts: RunFacts) -> str:
    """Why the processes' memory is unknown."""
    if facts.snapshot.pid is None:
        return "no process of it is known" if facts.snapshot.state.active else "it has ended"
    return facts.tree.why_unknown("footprint_bytes") if facts.tree else "the machine is being read"


def why_no_system(facts: RunFacts, name: str) -> str:
    """Why a field of the machine is unknown."""
    return facts.system.why_unknown(name) if facts.system else "the machine is being read"


def energy_lines(facts: RunFacts, one_line: bool) -> list[tuple[str, str, str]]:
    """Label, amount and the rest: what it cost, of which share of the run it is, and what an epoch takes."""
    energy = facts.telemetry.energy if facts.telemetry else None
    if energy is None:
        return [("energy", shown.UNKNOWN, _why_no_energy(facts))]
    paid = _money(energy.watt_hours, facts.prices)
    notes = [paid, _measured(energy), "cards alone" if energy.whose == "gpu" else ""]
    epoch = energy.epoch_watt_hours
    if epoch is None:
        return [("energy", watt_hours(energy.watt_hours), _joined(*notes))]
    paid = _money(epoch, facts.prices)
    if one_line:
        notes.append(f"an epoch {watt_hours(epoch)}" + (f", {paid}" if paid else ""))
        return [("energy", watt_hours(energy.watt_hours), _joined(*notes))]
    mean = f"mean of {round(energy.epochs)}"
    return [
        ("energy", watt_hours(energy.watt_hours), _joined(*notes)),
        ("an epoch", watt_hours(epoch), _joined(paid, mean)),
    ]


def _measured(energy: RunEnergy) -> str:
    if energy.measured_fraction is None:
        return ""
    share = energy.measured_fraction
    return "whole run" if share >= 0.995 else f"{max(1, round(100 * share))} % of the run"


def _joined(*notes: str) -> str:
    return " · ".join(note for note in notes if note)


def watt_hours(value: float) -> str:
    """``0.31 Wh``, ``21.4 Wh``, ``1.20 kWh``."""
    amount, unit = (value / 1000, "kWh") if value >= 1000 else (value, "Wh")
    return f"{amount:.{2 if amount < 10 else 1 if amount < 100 else 0}f} {unit}"


def _money(amount: float, prices: EnergySettings | None) -> str:
    if prices is None or prices.price is None:
        return ""
    paid = amount / 1000 * prices.price
    digits = 2 if paid >= 1 or paid == 0 else 3 if paid >= 0.1 else 4
    text = f"{paid:.{digits}f}" if paid >= 0.0001 or paid == 0 else "<0.0001"
    return f"{text} {clean(prices.currency, 4)}".rstrip()


def _why_no_energy(facts: RunFacts) -> str:
    if facts.telemetry is None or facts.system is None:
        return "the machine is being read"
    if any(gpu.power_watts is not None for gpu in facts.system.gpus) or facts.system.power_watts is not None:
        return "measured from now on" if facts.snapshot.state.active else "nobody looked while it ran"
    names = ("power_watts", *(f"gpu{gpu.index}.power_watts" for gpu in facts.system.gpus), "gpus")
    reason = next((facts.system.reasons[name] for name in names if name in facts.system.reasons), None)
    return f"nothing tells watts: {reason or facts.system.why_unknown('power_watts')}"


def gpu_words(gpu: GpuSample) -> str:
    """What one card does."""
    return _joined(
        f"{gpu.busy_percent:.0f} % busy" if gpu.busy_percent is not None else "",
        f"{gpu.power_watts:.0f} W" if gpu.power_watts is not None else "",
        f"{gpu.temperature_celsius:.0f} °C" if gpu.temperature_celsius is not None else "",
        f"of {shown.size(gpu.memory_total_bytes)}" if gpu.memory_total_bytes is not None else "",
        ", ".join(gpu.throttle_reasons or ()),
    )


def machine_words(system: SystemSample | None) -> str:
    """Load and heat of the machine."""
    if system is None:
        return ""
    return _joined(
        f"cpu {system.cpu_percent:.0f} %" if system.cpu_percent is not None else "",
        f"thermal {system.thermal}" if system.thermal is not None else "",
    )
