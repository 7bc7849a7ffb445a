"""`--compare-devices`: the same steps on the CPU and the device from the same state, and what a difference means."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..model.errors import OperationError
from .measure import LOOK_SECONDS
from .training import Training, trainer_command

STEPS = 20
TOLERANCE = 1e-3
_SMALL = {"--batch-size": "8", "--accumulate": "1"}
"""Enough samples to exercise every operation, few enough for the CPU."""
AGREES, DRIFTS, WRONG = "agrees", "drifts", "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to compare."""

    task: str
    device: str
    reference: str = "cpu"
    steps: int = STEPS
    tolerance: float = TOLERANCE
    limit_seconds: float = 600.0
    """Time limit for each of the two or four processes."""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The trainer's results (:mod:`trainer.compare`), with a second trace where the losses diverge, if needed."""

    question: Question
    first: Mapping[str, Any]
    again: Mapping[str, Any] | None = None
    """A second trace from the reference's state just before the first step out of tolerance; None if not needed."""

    @property
    def parting_step(self) -> int | None:
        """The first step whose loss is out of tolerance; None if there is none."""
        return _parting_step(self.first, self.question.tolerance)

    @property
    def decisive(self) -> Mapping[str, Any]:
        """The more telling trace: the second if there is one."""
        return self.first if self.again is None else self.again

    @property
    def verdict(self) -> str:
        """``agrees``, ``drifts`` (rounding grew) or ``wrong`` (something is computed differently)."""
        traces = [trace for trace in (self.first, self.again) if trace is not None]
        if any(trace["operations"]["parted"] or trace["gradient_nearest_the_loss"] for trace in traces):
            return WRONG
        return DRIFTS if self.parting_step is not None else AGREES

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data; infinity and NaN are None."""
        return {
            "task": self.question.task,
            "device": self.question.device,
            "reference": self.question.reference,
            "steps": self.question.steps,
            "tolerance": self.question.tolerance,
            "arguments": list(self.question.arguments),
            "verdict": self.verdict,
            "first_step_past_tolerance": self.parting_step,
            "comparison": dict(self.first),
            "again": dict(self.again) if self.again else None,
        }


def compare_devices(
    question: Question, *, python: str, environ: Mapping[str, str], watch: Callable[[str], None] = lambda doing: None
) -> Comparison:
    """Run both devices in turn, and once more if the losses diverge although the first step agrees.

    Raises:
        UsageError: the trainer does not know the task or an argument.
        OperationError: one of the processes failed.
    """

    def run(device: str, folder: Path, step: int, words: Sequence[str]) -> None:
        folder.mkdir()
        sizes = [word for pair in _SMALL.items() if pair[0] not in question.arguments for word in pair]
        command = trainer_command(python, "compare", question.task, *question.arguments, *sizes, *words)
        command += ["--device", device, "--steps", str(question.steps), "--trace-step", str(step)]
        began = time.monotonic()
        with Training([*command, "--tolerance", repr(question.tolerance)], environ, folder) as training:
            while (code := training.poll()) is None:
                elapsed = time.monotonic() - began
                if elapsed > question.limit_seconds:
                    raise OperationError(
                        f"{device} did not finish {question.steps} steps in {question.limit_seconds:.0f} s",
                        "ask for fewer --steps, or more time with --budget",
                    )
                watch(f"{device}: {question.steps} steps, step {step} by operation · {elapsed:.0f} s")
                time.sleep(LOOK_SECONDS)
            if failure := training.failure(code):
                raise OperationError(f"{device}: {failure}")

    def trace(step: int, place: Path) -> dict[str, Any]:
        """Trace one step on both devices, and return what differs there and in the losses."""
        place.mkdir()
        run(question.reference, place / "reference", step, ["--trace", str(place / "trace")])
        result = place / "result.json"
        run(question.device, place / "device", step, ["--against", str(place / "trace"), "--result", str(result)])
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return found

    with tempfile.TemporaryDirectory(prefix="mpstui-bench-", ignore_cleanup_errors=True) as folder:
        first = trace(1, Path(folder, "first"))
        parts = _parting_step(first, question.tolerance)
        explained = first["operations"]["parted"] or parts in (None, 1)
        again = None if explained else trace(parts or 1, Path(folder, "again"))
        return Comparison(question=question, first=first, again=again)


def explanation(found: Comparison) -> list[str]:
    """Return what the result means, in sentences, most important first."""
    trace, device = found.decisive, found.question.device
    operations = trace["operations"]
    step = trace["traced_step"]
    lines = []
    if operations["parted"]:
        first = operations["first"][0]
        lines.append(
            f"wrong: in step {step}, {first['operation']} in {first['layer']} is the first operation whose result on"
            f" {device} is another one ({share(first['apart'])} apart); everything before it agrees"
        )
    elif trace["gradient_nearest_the_loss"]:
        lines.append(
            f"wrong: every operation of step {step} agrees, its gradients do not; of those that differ,"
            f" {trace['gradient_nearest_the_loss']} is nearest the loss, so it begins in that layer's backward"
        )
    elif found.parting_step is not None:
        lines.append(
            f"drifts: the losses part at step {found.parting_step}, yet from one state every operation and gradient of"
            f" that step agrees: rounding that grows with the steps, which any two devices show"
        )
    else:
        lines.append(f"agrees: nothing differs by more than {share(found.question.tolerance)}")
    if trace["dropout_off"]:
        lines.append("dropout was switched off: two devices draw different random numbers")
    if operations["unmatched"]:
        lines.append(
            f"{operations['unmatched']} operations have no like on the other device (a layer that works in other pieces"
            " there); they are not compared, what their layers make of them is"
        )
    return lines


def share(value: float | None) -> str:
    """Format a relative difference; None stands for infinity or NaN."""
    if value is None:
        return "NaN or infinitely far"
    return f"{value:.1e}" if value < 1e-3 else f"{value * 100:.3g} %"


def _parting_step(found: Mapping[str, Any], tolerance: float) -> int | None:
    past = (one["step"] for one in found["losses"] if one["apart"] is None or one["apart"] > tolerance)
    return next(past, None)
