"""A training that only runs to be measured, in its own process group and a temporary run directory; its step times."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ...wire import storage
from ...wire.rundir import RunDir
from ...wire.storage import UnreadableRecord
from ..follow import LineTail
from ..machine import trainer_module
from ..model.errors import UsageError
from ..telemetry.procfs import psutil

_LONGEST_FAILURE = 300


_TOGETHER = ("torch.distributed.run", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--local-addr=localhost")


def trainer_command(python: str, *words: str, processes: int = 1) -> list[str]:
    """Return the command of the shipped trainer, with the current folder kept off its import path."""
    several = [*_TOGETHER, f"--nproc-per-node={processes}", "-m"] if processes > 1 else []
    return [python, "-P", "-m", *several, trainer_module(), *words]


class Training:
    """One training process and its reports so far. Leaving the context kills it and everything it started."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        self.points: list[dict[str, Any]] = []
        """Records of training steps, oldest first."""
        self.notes: list[dict[str, Any]] = []
        """Events with messages; ``unmet`` names a request that could not be fulfilled."""
        self.memory_bytes: int | None = None
        """Peak memory: on the device if its heartbeat reports that, else of the process."""
        self.precision: str | None = None
        """The precision that it actually trains in."""
        self._run = RunDir(folder)
        self._run.attempt(1).path.mkdir(parents=True)
        self._run.requests.mkdir()
        self._metrics, self._events = LineTail(self._run.metrics), LineTail(self._run.events)
        self._errors = folder / "errors.log"
        own = {"MPSTUI_RUN_ID": "bench", "MPSTUI_RUN_DIR": str(folder), "MPSTUI_ATTEMPT": "1"}
        with self._errors.open("wb") as errors, (folder / "output.log").open("wb") as output:
            self._process = subprocess.Popen(
                words,
                env={**environ, **own},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill it and everything it started, including workers and compilers in their own sessions."""
        if self._process.poll() is not None:
            return
        try:
            family = psutil.Process(self._process.pid).children(recursive=True)
        except psutil.Error:
            family = []
        with contextlib.suppress(ProcessLookupError, PermissionError):  # already gone; macOS reports that as EPERM
            os.killpg(self._process.pid, signal.SIGKILL)
        for member in family:
            with contextlib.suppress(psutil.Error):
                member.kill()
        self._process.wait(timeout=10.0)

    def poll(self) -> int | None:
        """Read new reports; return the exit code once it has ended."""
        code = self._process.poll()
        self.points += [record for record in _records(self._metrics) if "loss" in record and "step" in record]
        self.notes += [record for record in _records(self._events) if record.get("event") == "note"]
        with contextlib.suppress(UnreadableRecord, OSError):
            beat = storage.read_json(self._run.attempt(1).heartbeat()) or {}
            memory, device = beat.get("memory") or {}, beat.get("device") or {}
            self.precision = device.get("precision") or self.precision
            held = memory.get("driver") or memory.get("footprint") or memory.get("rss")
            self.memory_bytes = max(filter(None, (held, self.memory_bytes)), default=None)
        return code

    def failure(self, code: int) -> str:
        """Return its last error message, or how it ended; empty if all went well.

        Raises:
            UsageError: it does not know the task or an argument.
        """
        if not code:
            return ""
        lines = self._errors.read_text(encoding="utf-8", errors="replace").splitlines()
        said = [line.strip() for line in lines if line.strip()]
        if not said:
            return f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        # torchrun prints a long report of its own after a rank's message.
        last = next((line for line in reversed(said) if line.startswith("trainer: ")), said[-1])
        sentence = last.removeprefix("trainer: ")[:_LONGEST_FAILURE]
        if code == 2:  # called with wrong arguments
            raise UsageError(sentence, f"see `python -m {trainer_module()} TASK --help`")
        return sentence


def _records(tail: LineTail) -> list[dict[str, Any]]:
    """Return the records in newly added lines, skipping damaged ones."""
    found = []
    for line in tail.read().data.splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return [record for record in found if isinstance(record, dict)]


WARM_UP_STEPS = 3
WARM_UP_SECONDS = 1.0
"""After the first step, kernels are still being selected, shaders compiled and caches filled."""
_SHORTEST_STRETCH_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive steps that were timed together."""

    steps: float
    seconds: float

    @property
    def step_seconds(self) -> float:
        return self.seconds / self.steps


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range of repeated measurements."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        return cls(statistics.median(values), min(values), max(values), len(values)) if values else None


def stretches(points: Sequence[Mapping[str, Any]]) -> list[Stretch]:
    """Return the stretches timed after the warm-up, each at least a quarter of a second long.

    Args:
        points: records with ``time`` (Unix seconds) and ``step``, in order.
    """
    timed = warm(points)
    found: list[Stretch] = []
    if not timed:
        return found
    start = timed[0]
    for point in timed[1:]:
        steps, seconds = point["step"] - start["step"], point["time"] - start["time"]
        if steps > 0 and seconds >= _SHORTEST_STRETCH_SECONDS:
            found.append(Stretch(steps, seconds))
            start = point
    return found


def samples_per_step(points: Sequence[Mapping[str, Any]]) -> float | None:
    """Return samples per optimizer step, from the reported samples and steps per second; None if one is missing."""
    for point in reversed(points):
        samples, steps = point.get("samples_per_second"), point.get("steps_per_second")
        if samples and steps:
            return float(samples / steps)
    return None


def warm(points: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the points after the warm-up; none while that has not ended."""
    for at, point in enumerate(points):
        if point["step"] >= WARM_UP_STEPS and point["time"] - points[0]["time"] >= WARM_UP_SECONDS:
            return points[at:]
    return ()


_ASK = "from {trainer}.tasks import task_names; print(*task_names())"


def require_task(task: str, python: str, environ: Mapping[str, str]) -> None:
    """Refuse a task that the trainer does not have, before anything is measured; accept it if the trainer cannot say.

    Raises:
        UsageError: there is no such task.
    """
    try:
        done = subprocess.run(
            [python, "-P", "-c", _ASK.format(trainer=trainer_module())],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    known = done.stdout.split()
    if done.returncode == 0 and known and task not in known:
        near = get_close_matches(task, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"tasks: {', '.join(known)}"
        raise UsageError(f"there is no task {task!r}", hint, field="task", near=next(iter(near), None))
