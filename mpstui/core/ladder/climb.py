"""The ladder of `mpstui bench`: the same training on the CPU, on the device, with bf16, with compile, each measured."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..wire.rundir import RunDir
from .errors import UsageError

STEPS = 60
TIMEOUT_SECONDS = 600.0
_WARM_UP = 3
"""The first third of the steps is not measured: kernels are chosen, shaders and graphs compiled."""
_REPORTS = 15
_NEVER = "1000000"
_USED_WRONGLY = 2


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to run the task."""

    name: str
    device: str
    precision: str
    compile: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a rung gave. None: not measured; then ``error`` says why."""

    rung: Rung
    steps_per_second: float | None
    samples_per_second: float | None
    seconds: float
    """The whole run, loading and compiling included."""
    error: str | None = None


def rungs(device: str) -> tuple[Rung, ...]:
    """The ladder up to a device; on a machine without an accelerator it is all climbed on the CPU."""
    ladder = [Rung("cpu", "cpu", "fp32", "off")]
    if device != "cpu":
        ladder.append(Rung(device, device, "fp32", "off"))
    ladder.append(Rung(f"{device} + bf16", device, "bf16", "off"))
    ladder.append(Rung(f"{device} + bf16 + compile", device, "bf16", "on"))
    return tuple(ladder)


def climb(
    task: str,
    device: str,
    *,
    python: str,
    environ: Mapping[str, str],
    steps: int = STEPS,
    timeout_seconds: float = TIMEOUT_SECONDS,
    arguments: Sequence[str] = (),
) -> Iterator[Measurement]:
    """Run one rung after the other, slowest first, each in a process of its own; one that fails does not end the rest.

    Args:
        arguments: further words for the trainer, the same on every rung.

    Raises:
        UsageError: the trainer knows no such task or argument.
    """
    for rung in rungs(device):
        with tempfile.TemporaryDirectory(prefix="mpstui-bench-") as folder:
            yield _measure(rung, _words(python, task, rung, steps, arguments), environ, Path(folder), timeout_seconds)


def rate(points: Sequence[Mapping[str, Any]], steps: int) -> tuple[float | None, float | None]:
    """Steps and samples per second over the steps after the warm-up; None when too few were reported."""
    warm = [point for point in points if point.get("step", 0) >= steps / _WARM_UP]
    if len(warm) < 2 or warm[-1]["time"] <= warm[0]["time"]:
        return None, None
    per_second = (warm[-1]["step"] - warm[0]["step"]) / (warm[-1]["time"] - warm[0]["time"])
    samples, told = warm[-1].get("samples_per_second"), warm[-1].get("steps_per_second")
    return per_second, per_second * samples / told if samples and told else None


def _words(python: str, task: str, rung: Rung, steps: int, arguments: Sequence[str]) -> list[str]:
    words = [python, "-P", "-m", "trainer", task, *arguments, "--device", rung.device, "--precision", rung.precision]
    words += ["--compile", rung.compile, "--stop-after", str(steps), "--report-every", str(max(1, steps // _REPORTS))]
    return [*words, "--eval-every", _NEVER, "--save-every", "0"]


def _measure(
    rung: Rung, words: list[str], environ: Mapping[str, str], folder: Path, timeout_seconds: float
) -> Measurement:
    """The trainer reports into a run directory that nobody keeps."""
    run = RunDir(folder)
    run.attempt(1).path.mkdir(parents=True)
    run.requests.mkdir()
    own = {"MPSTUI_RUN_ID": "bench", "MPSTUI_RUN_DIR": str(folder), "MPSTUI_ATTEMPT": "1"}
    started = time.monotonic()
    try:
        done = subprocess.run(
            words,
            env={**environ, **own},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Measurement(rung, None, None, timeout_seconds, f"no result within {timeout_seconds:.0f} s")
    seconds = time.monotonic() - started
    if done.returncode:
        return Measurement(rung, None, None, seconds, _failure(done))
    steps = int(words[words.index("--stop-after") + 1])
    steps_per_second, samples_per_second = rate(_points(run.metrics), steps)
    error = None if steps_per_second else "it reported too few steps to measure"
    return Measurement(rung, steps_per_second, samples_per_second, seconds, error)


def _failure(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else f"exit code {done.returncode}"
    if done.returncode == _USED_WRONGLY:
        raise UsageError(last.removeprefix("trainer: "), "see `python -m trainer --help`")
    return last


def _points(path: Path) -> list[dict[str, Any]]:
    """The reported training steps; a torn line is none."""
    points = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            point = json.loads(line)
        except ValueError:
            continue
        if isinstance(point, dict) and "loss" in point:
            points.append(point)
    return points
