"""Measuring a training in several configurations, each in its own process with a time limit, within one budget."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .training import Spread, Stretch, Training, samples_per_step, stretches, trainer_command, warm

DEVICE_GROUP, LOADERS = "devices", "loaders"
LOOK_SECONDS = 0.1
_SHORTEST_LIMIT_SECONDS = 12.0
_FIRST_SHARE = 0.4
"""Share of the budget for the first configuration, which is the reference and shows how fast this machine is."""
_FEWEST_STRETCHES = 2
_MORE_TIME = "--budget gives every configuration more"
_NEVER = "1000000"
_WORKERS = {2: 1.25, 4: 1.5}
"""Number of worker processes -> weight of a configuration that waits for them to load torch."""


@dataclass(frozen=True, slots=True)
class BenchConfig:
    """One way to run the task."""

    name: str
    group: str
    device: str
    precision: str = "fp32"
    """``auto``: precision and compilation are left to the task, or to the plan's arguments."""
    compile: str = "off"
    workers: int = 0
    """Number of spawned processes that make batches."""
    held_batches: int = 0
    """Number of batches made once and reused; 0: every batch is made when it is needed."""
    processes: int = 1
    """Number of processes that train together; more than one are started by torchrun."""
    threads: int | None = None
    """Threads per process; None: torch decides."""
    shard: bool = False
    weight: float = 1.0
    """Relative share of the time: compiling is slow, and so is bf16 on a CPU without bf16 instructions."""
    refusal: str | None = None
    """Why it cannot run here, in a sentence."""
    same_as: str | None = None
    """The name of a configuration with the identical command, whose result is used."""

    def words(self) -> list[str]:
        words = ["--device", self.device]
        words += [] if self.precision == "auto" else ["--precision", self.precision, "--compile", self.compile]
        words += ["--shard"] if self.shard else []
        words += ["--workers", str(self.workers)] if self.workers else []
        return words + (["--reuse-batches", str(self.held_batches)] if self.held_batches else [])


def bench_configs(
    device: str, refusals: Mapping[str, str] | None = None, *, loaders: bool = True
) -> tuple[BenchConfig, ...]:
    """Return what is worth comparing on ``device``: the CPU, the device, bf16, compile, and where batches come from.

    Args:
        device: the best device of this machine; if that is ``cpu``, everything is measured on the CPU.
        refusals: devices that one would expect here (``mps``, ``cuda``), and why they are missing.
        loaders: also compare ways to make batches.
    """
    configs = [BenchConfig("cpu", DEVICE_GROUP, "cpu")]
    configs += [
        BenchConfig(name, DEVICE_GROUP, name, refusal=why) for name, why in (refusals or {}).items() if name != device
    ]
    if device != "cpu":
        configs.append(BenchConfig(device, DEVICE_GROUP, device))
    configs.append(BenchConfig(f"{device} + bf16", DEVICE_GROUP, device, "bf16", weight=1.25))
    configs.append(BenchConfig(f"{device} + bf16 + compile", DEVICE_GROUP, device, "bf16", "on", weight=4.0))
    if loaders:
        plain = BenchConfig("made between steps", LOADERS, device, same_as=device)
        configs += [replace(plain, name="ready in memory", held_batches=4, same_as=None), plain]
        for count, weight in _WORKERS.items():
            name = f"{count} spawned workers"
            configs.append(replace(plain, name=name, workers=count, same_as=None, weight=weight))
    return tuple(configs)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """What to measure, and for how long."""

    task: str
    configs: tuple[BenchConfig, ...]
    budget_seconds: float
    """For all configurations together; time that one does not need goes to the next."""
    measure_seconds: float
    """Seconds of steps to time in each process, after warm-up."""
    repeats: int = 1
    """Processes per configuration; their stretches are pooled."""
    longest_step_seconds: float | None = None
    """On the CPU, reduce the samples per step to keep it that short; None: use the task's own sizes."""
    arguments: tuple[str, ...] = ()
    """Additional arguments for the trainer, the same for all configurations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The result for one configuration. If ``step_seconds`` is None, ``error`` says why there is no measurement."""

    config: BenchConfig
    step_seconds: Spread | None = None
    samples_per_step: float | None = None
    memory_bytes: int | None = None
    seconds: float = 0.0
    """Time taken by all its processes, including loading and compiling."""
    limit_seconds: float | None = None
    runs: int = 0
    notes: tuple[str, ...] = ()
    error: str | None = None

    @property
    def steps_per_second(self) -> float | None:
        return 1 / self.step_seconds.median if self.step_seconds else None

    @property
    def samples_per_second(self) -> float | None:
        """Speed at the median step time; None if that or the number of samples per step is unknown."""
        speed = self.steps_per_second
        return speed * self.samples_per_step if speed and self.samples_per_step else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchProgress:
    """The configuration being measured, for display."""

    config: BenchConfig
    doing: str
    elapsed_seconds: float
    limit_seconds: float


Watch = Callable[[BenchProgress], None]


def run_bench(
    plan: BenchPlan,
    *,
    python: str,
    environ: Mapping[str, str],
    watch: Watch = lambda progress: None,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[Measurement]:
    """Measure every configuration in turn; the failure of one does not end the rest.

    Yields every new measurement: with repeats there are several per configuration, of which the last counts.

    Raises:
        UsageError: the trainer does not know the task or an argument.
    """
    yield from (Measurement(config=config, error=config.refusal) for config in plan.configs if config.refusal)
    bench = _Bench(plan, python, environ, watch, monotonic, monotonic() + plan.budget_seconds)
    found: dict[BenchConfig, Measurement] = {}
    once = [config for config in plan.configs if not (config.refusal or config.same_as)]
    turns = once * plan.repeats
    while turns:
        config, *turns = turns
        if (earlier := found.get(config)) and earlier.error:
            continue
        found[config] = bench.refused(config) or bench.measure(config, [config, *turns])
        for same in plan.configs:
            if same == config or same.same_as == config.name:
                yield replace(found[config], config=same)


@dataclass(slots=True)
class _Tally:
    """The results of one configuration's processes so far."""

    stretches: list[Stretch] = field(default_factory=list)
    seconds: float = 0.0
    runs: int = 0
    memory_bytes: int | None = None


@dataclass(slots=True)
class _Bench:
    """Keeps track of what was measured, how much time is left, and how large a step on the CPU may be."""

    plan: BenchPlan
    python: str
    environ: Mapping[str, str]
    watch: Watch
    monotonic: Callable[[], float]
    ends: float
    tallies: dict[BenchConfig, _Tally] = field(default_factory=dict)
    sizes: list[str] = field(default_factory=list)
    start_seconds: float = 0.0
    """Seconds from the start of the first process to its first step."""

    def refused(self, config: BenchConfig) -> Measurement | None:
        """Return a failed measurement if the budget leaves no time to start a configuration, else None."""
        if self.ends - self.monotonic() >= self.start_seconds or config in self.tallies:
            return None
        budget = self.plan.budget_seconds
        return Measurement(config=config, error=f"the budget of {budget:.0f} s was spent before it; {_MORE_TIME}")

    def measure(self, config: BenchConfig, waiting: Sequence[BenchConfig]) -> Measurement:
        """Run a configuration once more and add the result to its earlier ones."""
        limit, began = self._limit(config, waiting), self.monotonic()
        with (
            tempfile.TemporaryDirectory(prefix="mpstui-bench-", ignore_cleanup_errors=True) as folder,
            Training(self._command(config), self._environ(config), Path(folder)) as training,
        ):
            error = self._follow(config, training, limit)
        tally = self.tallies.setdefault(config, _Tally())
        tally.stretches += stretches(training.points)
        tally.seconds += self.monotonic() - began
        tally.runs += 1
        tally.memory_bytes = max(filter(None, (tally.memory_bytes, training.memory_bytes)), default=None)
        size = next((note["samples_per_step"] for note in training.notes if "samples_per_step" in note), None)
        if config.device == "cpu" and not self.sizes and size:  # so that all CPU results are comparable
            self.sizes = ["--batch-size", str(size), "--accumulate", "1"]
        if not error:  # it may have trained differently from what was requested; its notes say so
            said = {note["unmet"]: note["text"] for note in training.notes if "unmet" in note}
            if config.precision != "auto" and training.precision not in (None, config.precision):
                error = said.get("precision") or f"it trained in {training.precision}"
            elif config.compile == "on":
                error = said.get("compile")
        return Measurement(
            config=config,
            step_seconds=None if error else Spread.of([stretch.step_seconds for stretch in tally.stretches]),
            samples_per_step=samples_per_step(training.points),
            memory_bytes=tally.memory_bytes,
            seconds=tally.seconds,
            limit_seconds=limit,
            runs=tally.runs,
            notes=tuple(note["text"] for note in training.notes),
            error=error,
        )

    def _limit(self, config: BenchConfig, waiting: Sequence[BenchConfig]) -> float:
        """Return its share of the remaining budget in seconds, but at least what starting and timing it takes here."""
        left = self.ends - self.monotonic()
        share = left * config.weight / sum(other.weight for other in waiting)
        if not self.start_seconds:
            return max(share, left * _FIRST_SHARE, _SHORTEST_LIMIT_SECONDS)
        # The first step may take twice as long as in the first configuration; each worker starts Python again.
        starts = 2.0 + 0.75 * config.workers
        return max(share, starts * self.start_seconds + 2 * self.plan.measure_seconds, _SHORTEST_LIMIT_SECONDS)

    def _environ(self, config: BenchConfig) -> Mapping[str, str]:
        return self.environ if config.threads is None else {**self.environ, "OMP_NUM_THREADS": str(config.threads)}

    def _command(self, config: BenchConfig) -> list[str]:
        plan = self.plan
        # With this many epochs, compiling would be automatic, but only users who ask for it want to wait for it.
        asked = ["--compile", "off", *plan.arguments] if config.precision == "auto" else plan.arguments
        words = trainer_command(self.python, plan.task, *asked, *config.words(), processes=config.processes)
        own_sizes = plan.longest_step_seconds is None or {"--batch-size", "--accumulate"} & set(plan.arguments)
        if config.device == "cpu" and not own_sizes:
            # Let a single process find the size before several are started: each might find a different one.
            fitted = ["--longest-step", str(plan.longest_step_seconds)] if config.processes == 1 else []
            words += self.sizes or fitted
        return [*words, "--epochs", _NEVER, "--eval-every", _NEVER, "--save-every", "0"]

    def _follow(self, config: BenchConfig, training: Training, limit: float) -> str | None:
        """Watch until enough was measured; return the reason if nothing was."""
        began = self.monotonic()
        while True:
            code = training.poll()
            elapsed, measured = self.monotonic() - began, stretches(training.points)
            timed = sum(stretch.seconds for stretch in measured)
            if training.points and not self.start_seconds:
                self.start_seconds = elapsed
            if code is not None:
                return training.failure(code) or (None if measured else "it ended before enough steps were timed")
            if timed >= self.plan.measure_seconds and len(measured) >= _FEWEST_STRETCHES:
                return None
            if elapsed >= limit and measured:
                return None
            if elapsed >= limit:
                not_begun = "was still compiling" if config.compile == "on" else "had not taken a step"
                reached = f"had reached step {training.points[-1]['step']}" if training.points else not_begun
                return f"it {reached} when its {limit:.0f} s were over; {_MORE_TIME}"
            if not training.points:
                doing = "starting" if config.compile == "off" or training.precision is None else "compiling"
            elif not warm(training.points):
                doing = "warming up"
            else:
                doing = f"measuring, {timed:.0f} of {self.plan.measure_seconds:.0f} s"
            self.watch(BenchProgress(config=config, doing=doing, elapsed_seconds=elapsed, limit_seconds=limit))
            time.sleep(LOOK_SECONDS)
