"""The rungs of the ladder: the ways to run one training that are worth comparing, and why some cannot be had here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

LADDER, LOADERS = "ladder", "loaders"
_HELD_BATCHES = 4
_WORKERS = {2: 1.25, 4: 1.5}
"""Spawned processes, and the weight of a rung that waits for so many of them to load torch."""
_COMPILE_WEIGHT, _BF16_WEIGHT = 4.0, 1.25


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to run the task."""

    name: str
    group: str
    device: str
    precision: str = "fp32"
    compile: str = "off"
    workers: int = 0
    """Processes that make batches, each of them spawned."""
    held_batches: int = 0
    """Batches made once and taken again and again; 0: every batch is made when it is due."""
    weight: float = 1.0
    """Share of the time against a plain rung: compiling is slow, and so is bf16 on a CPU that has no such numbers."""
    refusal: str | None = None
    """Why it cannot run here, in a sentence."""
    same_as: str | None = None
    """The rung that has run this very command already."""

    def words(self) -> list[str]:
        """What it asks of the trainer."""
        words = ["--device", self.device, "--precision", self.precision, "--compile", self.compile]
        words += ["--workers", str(self.workers)] if self.workers else []
        return words + (["--reuse-batches", str(self.held_batches)] if self.held_batches else [])


def rungs(device: str, refusals: Mapping[str, str] | None = None, *, loaders: bool = True) -> tuple[Rung, ...]:
    """The ladder up to ``device`` and the loaders on it; without an accelerator it is all climbed on the CPU.

    Args:
        refusals: why a device that one would look for here (``mps``, ``cuda``) cannot be had.
    """
    ladder = [Rung("cpu", LADDER, "cpu")]
    ladder += [Rung(name, LADDER, name, refusal=why) for name, why in (refusals or {}).items() if name != device]
    if device != "cpu":
        ladder.append(Rung(device, LADDER, device))
    ladder.append(Rung(f"{device} + bf16", LADDER, device, "bf16", weight=_BF16_WEIGHT))
    ladder.append(Rung(f"{device} + bf16 + compile", LADDER, device, "bf16", "on", weight=_COMPILE_WEIGHT))
    return tuple(ladder) + (_loaders(device) if loaders else ())


def _loaders(device: str) -> tuple[Rung, ...]:
    plain = Rung("made between steps", LOADERS, device, same_as=device)
    held = replace(plain, name="ready in memory", held_batches=_HELD_BATCHES, same_as=None)
    spawned = [
        replace(plain, name=f"{count} spawned workers", workers=count, same_as=None, weight=weight)
        for count, weight in _WORKERS.items()
    ]
    return (held, plain, *spawned)
