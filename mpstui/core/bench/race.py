"""`--profiles A B`: two profiles, launched one after the other and read like any other run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ...wire import storage
from ...wire.rundir import RunDir
from ..launching.actions import Actions
from ..launching.launch import launch
from ..launching.planning import LaunchPlan
from ..model.errors import OperationError
from ..model.home import Home
from ..model.snapshot import RunSnapshot, State
from ..runs.monitor import Monitor
from ..telemetry.sampler import Sampler
from .training import Spread, samples_per_step, stretches

_POLL_SECONDS = 0.2
_LOG_BYTES = 64 << 20
_FALLBACK = re.compile(rb"operator '([^']+)'[^\n]{0,200}fall back to run on the CPU")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """The result for one profile; unknown values are None."""

    profile: str
    run: str
    state: str
    device: str | None = None
    step_seconds: Spread | None = None
    samples_per_second: float | None = None
    step: int | None = None
    loss: float | None = None
    losses: tuple[tuple[float, float], ...] = ()
    """The training loss by step, or else by epoch or by index."""
    process_bytes: int | None = None
    """Peak memory of all its processes together; on a Mac this includes GPU memory."""
    device_bytes: int | None = None
    """Peak memory on the device, as counted by the device."""
    mps_fallbacks: int | None = None
    """Number of lines that report an operator run on the CPU instead of MPS; torch reports only a process's first."""
    mps_fallback_operators: tuple[str, ...] = ()
    note: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return all but the curve as plain data; unknown values are None."""
        return {name: value for name, value in asdict(self).items() if name != "losses"}


@dataclass(slots=True)
class Race:
    """Runs plans one after the other in the user's normal home, where they stay like any other run."""

    home: Home
    environ: Mapping[str, str]
    seconds: float
    """Seconds of timed steps for each run."""
    steps: int | None
    """Stop after this many steps instead, so that both reach the same step."""
    limit_seconds: float
    """Time limit for one run, including startup and loading."""
    sampler: Sampler
    watch: Callable[[str], None]
    interrupted: bool = False
    monitor: Monitor = field(init=False)

    def __post_init__(self) -> None:
        self.monitor = Monitor(self.home)

    def run(self, plan: LaunchPlan) -> Entrant:
        """Launch a plan, poll until enough was measured, and stop the run. An interrupt stops it and is recorded.

        Raises:
            OperationError: it could not be launched, or does not end.
        """
        run = launch(plan, self.home, self.environ, time.time())
        record = _Record()
        try:
            why = self._follow(run, plan.name, record)
        except KeyboardInterrupt:
            self.interrupted, why = True, "interrupted"
        except BaseException:
            self._end(run)
            raise
        return _entrant(plan, self._end(run), record, why)

    def _follow(self, run: str, name: str, record: _Record) -> str:
        """Poll a run until enough was measured; return a sentence if that failed, else an empty text."""
        began = time.monotonic()
        sampled = float("-inf")
        while True:
            snapshot, elapsed = self.monitor.snapshot(run), time.monotonic() - began
            record.add(snapshot)
            if time.monotonic() - sampled >= 1.0 and snapshot.pid is not None:
                tree = self.sampler.sample({run: (snapshot.pid,)}).trees[run]
                record.most(tree.footprint_bytes or tree.rss_bytes, tree.gpu_memory_bytes)
                sampled = time.monotonic()
            if not snapshot.state.active:
                return "" if record.timed_seconds else "it ended before any steps could be timed"
            reached = record.points[-1]["step"] if record.points else 0
            if record.timed_seconds >= self.seconds if self.steps is None else reached >= self.steps:
                return ""
            if elapsed >= self.limit_seconds:
                return f"stopped at its limit of {self.limit_seconds:.0f} s"
            at = "starting" if snapshot.numbers.step is None else f"step {snapshot.numbers.step}"
            self.watch(f"{name}: {at} · {elapsed:.0f} s of at most {self.limit_seconds:.0f} s")
            time.sleep(_POLL_SECONDS)

    def _end(self, run: str) -> RunSnapshot:
        """Stop a run in the usual way, and wait until it has ended."""
        snapshot = self.monitor.snapshot(run)
        if not snapshot.state.active:
            return snapshot
        try:
            Actions(self.environ).send(snapshot, "stop")
        except OperationError:
            snapshot = self.monitor.snapshot(run)  # it has ended meanwhile; if not, the deadline below reports it
        deadline = time.monotonic() + 60.0
        while snapshot.state.active:
            if time.monotonic() >= deadline:
                raise OperationError(f"{run} does not end", f"see `mpstui show {run}`")
            self.watch(f"{snapshot.name}: stopping")
            time.sleep(_POLL_SECONDS)
            snapshot = self.monitor.snapshot(run)
        return snapshot


@dataclass(slots=True)
class _Record:
    """What was observed of one run."""

    points: list[dict[str, Any]] = field(default_factory=list)
    process_bytes: int | None = None
    device_bytes: int | None = None

    @property
    def timed_seconds(self) -> float:
        """Seconds of timed steps after the warm-up."""
        return sum(stretch.seconds for stretch in stretches(self.points))

    def add(self, snapshot: RunSnapshot) -> None:
        """Record a new step, with the time of the heartbeat or line that reported it."""
        numbers = snapshot.numbers
        self.most(numbers.memory.footprint or numbers.memory.rss, numbers.memory.driver)
        if numbers.step is None or (self.points and self.points[-1]["step"] >= numbers.step):
            return
        speeds = {"steps_per_second": numbers.steps_per_second, "samples_per_second": numbers.samples_per_second}
        self.points.append({"time": snapshot.updated or snapshot.seen, "step": numbers.step, **speeds})

    def most(self, process: int | None, device: int | None) -> None:
        """Update the peaks of memory of all processes and on the device."""
        self.process_bytes = max(filter(None, (self.process_bytes, process)), default=None)
        self.device_bytes = max(filter(None, (self.device_bytes, device)), default=None)


def _entrant(plan: LaunchPlan, snapshot: RunSnapshot, record: _Record, why: str) -> Entrant:
    timed = stretches(record.points)
    spread, size = Spread.of([stretch.step_seconds for stretch in timed]), samples_per_step(record.points)
    run = RunDir(snapshot.dir)
    outputs = [run.attempt(number).output for number in run.attempt_numbers()]
    there = [path for path in outputs if path.is_file()]
    fallbacks: list[str] = []  # operators reported as run on the CPU, one per line
    for path in there:
        with storage.open_file(path) as file:
            fallbacks += [match[1].decode(errors="replace") for match in _FALLBACK.finditer(file.read(_LOG_BYTES))]
    view = snapshot.train_loss
    losses = tuple((x, y) for x, y in zip(view.x, view.mean, strict=True) if y == y) if view else ()
    failed = snapshot.state in (State.FAILED, State.KILLED, State.LOST)
    ended = f"{snapshot.state}: {snapshot.exit.sentence() if snapshot.exit else snapshot.reason}" if failed else ""
    return Entrant(
        profile=plan.name,
        run=snapshot.run,
        state=str(snapshot.state),
        device=snapshot.numbers.device.type,
        step_seconds=spread,
        samples_per_second=size / spread.median if size and spread else None,
        step=snapshot.numbers.step,
        loss=snapshot.numbers.loss,
        losses=losses,
        process_bytes=record.process_bytes,
        device_bytes=record.device_bytes,
        mps_fallbacks=len(fallbacks) if there else None,
        mps_fallback_operators=tuple(dict.fromkeys(fallbacks)),
        note=". ".join(filter(None, (ended, why))) or None,
    )


def common_loss(entrants: Sequence[Entrant]) -> tuple[float, tuple[float, ...]] | None:
    """Return the last step that all entrants reached, and the loss of each there; None if one reported no loss."""
    if not entrants or not all(one.losses for one in entrants):
        return None
    step = min(one.losses[-1][0] for one in entrants)
    reached = [[loss for x, loss in one.losses if x <= step] for one in entrants]
    return (step, tuple(losses[-1] for losses in reached)) if all(reached) else None


def as_json(entrants: Sequence[Entrant]) -> dict[str, Any]:
    """Return the entrants and their comparison as plain data; unknown values are None."""
    common = common_loss(entrants)
    medians = [one.step_seconds.median if one.step_seconds else None for one in entrants]
    speedup = medians[0] / medians[1] if len(medians) == 2 and medians[0] and medians[1] else None
    return {
        "profiles": [one.as_json() for one in entrants],
        "speedup": speedup,
        "common_step": common[0] if common else None,
        "loss_at_common_step": list(common[1]) if common else None,
    }
