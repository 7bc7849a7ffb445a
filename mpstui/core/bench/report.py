"""What a bench found, as JSON, as a picture and on disk: written after every rung, so that nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...wire import storage
from ...wire.rundir import slug
from ...wire.storage import plain
from ..model.errors import OperationError
from ..model.home import Home
from .climb import Course, Measurement
from .drawing import Bar, bar_chart
from .rungs import LADDER, LOADERS, Rung
from .speed import Spread

_TITLES = {LADDER: "the ladder", LOADERS: "where batches come from"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What measurements depend on beside the program."""

    system: str
    architecture: str
    cores: int
    load_average: float
    """Over the minute before the start: programs that wanted a core."""

    @property
    def busy(self) -> bool:
        """Whether others took so much of the machine that times say less."""
        return self.load_average > self.cores / 2

    def sentence(self) -> str:
        """For a heading."""
        machine = f"{self.system} {self.architecture} · {self.cores} cores"
        return f"{machine} · load {self.load_average:.1f} at the start"


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderReport:
    """The measurements so far."""

    course: Course
    device: str
    machine: Surroundings
    started: float
    measurements: Mapping[Rung, Measurement]
    complete: bool = False

    def group(self, name: str) -> list[Measurement]:
        """The measurements of one group in the ladder's order."""
        known = (self.measurements.get(rung) for rung in self.course.rungs if rung.group == name)
        return [found for found in known if found is not None]

    def speedup(self, found: Measurement) -> float | None:
        """Samples a second against the first rung (the CPU), for a loader against batches made between steps.

        None when either was not measured, or steps of unknown sizes would have to be compared.
        """
        first = next((one for one in self.group(found.rung.group) if _is_yardstick(one.rung)), None)
        if first is None:
            return None
        mine, yardstick = found.samples_per_second, first.samples_per_second
        return mine / yardstick if mine and yardstick else None

    def as_json(self) -> dict[str, Any]:
        """Everything; unknown is None."""
        return {
            "task": self.course.task,
            "device": self.device,
            "machine": asdict(self.machine),
            "started": self.started,
            "complete": self.complete,
            "budget_seconds": self.course.budget_seconds,
            "measure_seconds": self.course.measure_seconds,
            "repeats": self.course.repeats,
            "arguments": list(self.course.arguments),
            "rungs": [self._as_json(found) for found in self.group(LADDER)],
            "loaders": [self._as_json(found) for found in self.group(LOADERS)],
        }

    def svg(self) -> str:
        """The measurements as bars of samples (else steps) a second."""
        title = f"mpstui bench {self.course.task}" + ("" if self.complete else " (not complete)")
        groups = [(_TITLES[name], [self._bar(one) for one in self.group(name)]) for name in (LADDER, LOADERS)]
        facts = self.machine.sentence()
        unit = "samples/s" if self._tells_samples else "steps/s"
        return bar_chart(title, f"{facts} · {unit}, median, range of the stretches measured", groups)

    @property
    def _tells_samples(self) -> bool:
        return all(one.samples_per_step for one in self.measurements.values() if one.step_seconds)

    def _bar(self, found: Measurement) -> Bar:
        name = found.rung.name
        if found.step_seconds is None:
            return Bar(name, reason=found.error or "not measured")
        per_step = (found.samples_per_step or 1.0) if self._tells_samples else 1.0
        spread, speedup = found.step_seconds, self.speedup(found)
        return Bar(
            name,
            value=per_step / spread.median,
            low=per_step / spread.high,
            high=per_step / spread.low,
            beside=f"{speedup:.2f}×" if speedup else "",
        )

    def _as_json(self, found: Measurement) -> dict[str, Any]:
        rung = found.rung
        return {
            "rung": rung.name,
            "device": rung.device,
            "precision": rung.precision,
            "compile": rung.compile == "on",
            "workers": rung.workers,
            "held_batches": rung.held_batches,
            "same_as": rung.same_as,
            "step_seconds": _spread(found.step_seconds),
            "steps_per_second": found.steps_per_second,
            "samples_per_second": found.samples_per_second,
            "samples_per_step": found.samples_per_step,
            "speedup": self.speedup(found),
            "memory_bytes": found.memory_bytes,
            "processes": found.runs,
            "seconds": found.seconds,
            "limit_seconds": found.limit_seconds,
            "notes": list(found.notes),
            "error": found.error,
        }


def report_folder(home: Home, name: str, now: float) -> Path:
    """A fresh folder for one report: ``bench/<UTC time>-<name>`` of the state folder.

    Raises:
        OperationError: it cannot be made.
    """
    folder = home.state / "bench" / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{slug(name)}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperationError(
            f"no report can be kept in {folder}: {error.strerror}", "name a folder by --out"
        ) from error
    return folder


def save(folder: Path, document: Mapping[str, Any], svg: str) -> None:
    """Replace ``report.json`` and ``report.svg`` in a folder, each whole or not at all.

    Raises:
        OperationError: they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        storage.write_json(folder / "report.json", plain(dict(document)))
        storage.write_bytes(folder / "report.svg", svg.encode())
    except OSError as error:
        raise OperationError(f"the report cannot be written to {folder}: {error.strerror}") from error


def _is_yardstick(rung: Rung) -> bool:
    return rung.same_as is not None if rung.group == LOADERS else rung.name == "cpu"


def _spread(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {"median": spread.median, "low": spread.low, "high": spread.high, "count": spread.count}
