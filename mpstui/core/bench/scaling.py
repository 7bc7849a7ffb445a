"""`--gpus 1,2,4`: how much speed per GPU a training keeps on several GPUs, each with the same batch size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .measure import BenchConfig, Measurement
from .report import Curve, Measured, curve_chart

SCALING = "scaling"
_START_WEIGHT = 0.25
"""Weight of each additional process relative to the first: it loads torch, too."""


def scaling_configs(
    device: str, counts: Sequence[int], *, available: int | None, cores: int, shard: bool = False
) -> tuple[BenchConfig, ...]:
    """Return one configuration per number of processes, each process on its own GPU, or its own share of CPU threads.

    Args:
        counts: numbers of processes; a single process is always measured, as the reference for the others.
        available: the number of GPUs, or on the CPU, of cores; None: unknown, so that the training itself may fail.
        cores: the number of cores of this machine.
        shard: shard weights and optimizer state across the processes.
    """
    wanted = sorted({1, *counts})
    threads = max(1, cores // max(wanted)) if device == "cpu" else None

    def refusal(count: int) -> str | None:
        if device == "mps" and count > 1:
            return "a Mac has one MPS device: several processes would only share it"
        if available is None or count <= available:
            return None
        what = "core" if device == "cpu" else "GPU"
        return f"this machine has {available} {what}{'' if available == 1 else 's'}"

    return tuple(
        BenchConfig(
            f"{count} {_unit(device)}{'' if count == 1 else _plural(device)}",
            SCALING,
            device,
            precision="auto",
            processes=count,
            threads=threads,
            shard=shard and count > 1,
            weight=1 + _START_WEIGHT * (count - 1),
            refusal=refusal(count),
        )
        for count in wanted
    )


def _unit(device: str) -> str:
    return "process" if device == "cpu" else "GPU"


def _plural(device: str) -> str:
    return "es" if device == "cpu" else "s"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingReport(Measured):
    """The same training with different numbers of processes."""

    why_cpu: str = ""
    """Why no GPU was measured."""

    @property
    def rows(self) -> list[Measurement]:
        """The measurements and refusals, by number of processes."""
        return [found for config in self.plan.configs if (found := self.measurements.get(config))]

    def efficiency(self, found: Measurement) -> float | None:
        """Return the speed per process relative to a single process; None if either was not measured."""
        alone = next((one.samples_per_second for one in self.rows if one.config.processes == 1), None)
        mine = found.samples_per_second
        return mine / (alone * found.config.processes) if mine and alone else None

    @property
    def notes(self) -> list[str]:
        """What one must know to interpret the figures."""
        told = [note for one in self.rows for note in one.notes]
        threads = self.plan.configs[0].threads
        if threads:
            why = f"{self.why_cpu}: " if self.why_cpu else ""
            told.insert(
                0,
                f"{why}these are processes on the cores of one machine, each on {threads} thread"
                f"{'' if threads == 1 else 's'}; what they lose says nothing about GPUs",
            )
        return list(dict.fromkeys(told))

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data; unknown values are None."""
        return {
            **self.facts,
            "notes": self.notes,
            "scaling": [
                {
                    "processes": one.config.processes,
                    "shard": one.config.shard,
                    "threads": one.config.threads,
                    "step_seconds": asdict(one.step_seconds) if one.step_seconds else None,
                    "samples_per_second": one.samples_per_second,
                    "samples_per_step": one.samples_per_step,
                    "efficiency": self.efficiency(one),
                    "runs": one.runs,
                    "seconds": one.seconds,
                    "error": one.error,
                }
                for one in self.rows
            ],
        }

    def svg(self) -> str:
        """Draw samples per second over the number of processes, next to perfect scaling."""
        known = [(one, speed) for one in self.rows if (speed := one.samples_per_second)]
        counts = [float(one.config.processes) for one, _ in known]
        kept = [f"{share:.2f} on {one.config.processes}" for one, _ in known if (share := self.efficiency(one))]
        perfect = [known[0][1] * count / counts[0] for count in counts] if known else []
        unit = "processes" if self.device == "cpu" else "GPUs"
        title = f"mpstui bench {self.plan.task} --gpus" + ("" if self.complete else " (not complete)")
        facts = (
            f"{self.device} · {self.machine.cores} cores · samples/s, median · efficiency {', '.join(kept) or 'n/a'}"
        )
        curves = [Curve("measured", counts, [speed for _, speed in known]), Curve("nothing lost", counts, perfect)]
        return curve_chart(title, facts, curves, unit, "samples/s")
