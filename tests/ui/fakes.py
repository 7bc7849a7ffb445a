"""Stand-ins for the parts of the core that the screen asks, and canned runs: a fixed clock, no processes."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mpstui.core.actions import BY_ID
from mpstui.core.diagnosis.model import EvidenceLine, Finding, Kind, Remedy
from mpstui.core.diagnosis.remedy import Change
from mpstui.core.launching.actions import Actions
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.command import EnvLine
from mpstui.core.launching.cure import Cure
from mpstui.core.launching.drafts import Draft, Launcher
from mpstui.core.launching.explaining import Explanation
from mpstui.core.launching.form_fields import Field, Preview
from mpstui.core.launching.rehearsal import Rehearsed
from mpstui.core.logview.document import SEARCH_SECONDS, LogDocument
from mpstui.core.logview.line import LogLine
from mpstui.core.model.errors import OperationError, SettingsError, UsageError
from mpstui.core.model.exits import ExitSummary
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import (
    Availability,
    Checkpoint,
    Health,
    Numbers,
    RunEvent,
    RunSnapshot,
    SeriesView,
    State,
)
from mpstui.core.profiles.library import ProfileEntry
from mpstui.core.profiles.model import profile_of_command
from mpstui.core.runs.ghost import Ghost, GhostFinder, race
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.queueing import Moved
from mpstui.core.runs.removal import Removable, Removed
from mpstui.core.settings import EnergySettings, Settings
from mpstui.core.telemetry.energy import RunEnergy
from mpstui.core.telemetry.headroom import MemoryPoint, headroom
from mpstui.core.telemetry.model import GpuSample, SystemSample, TreeSample
from mpstui.core.telemetry.run_telemetry import RunTelemetry, TelemetryRecorder
from mpstui.core.telemetry.sampler import Sampler, Snapshot, Trees
from mpstui.ui.alarms import Alarm
from mpstui.ui.services import Services
from mpstui.wire.heartbeat import CheckpointNote, DeviceReading, MemoryReading
from mpstui.wire.queues import Queue
from mpstui.wire.records import Ack, Request
from mpstui.wire.rundir import RunDir
from tests.snapshots import changed

NOW = 1_795_262_400.0  # 2026-11-21 12:00:00 UTC
GIB = 1 << 30
MPS = DeviceReading("mps", "Apple M2 Max", "bf16")
CPU = DeviceReading("cpu", "Apple M2 Max", "fp32")


@cache
def curve(
    name: str = "loss",
    *,
    points: int = 400,
    stride: int = 55,
    start: float = 2.3,
    floor: float = 0.3,
    noise: float = 0.12,
    gap: range = range(0),
    marks: tuple[float, ...] = (),
    evaluation: bool = False,
    seed: int = 1,
) -> SeriesView:
    """A falling, noisy curve with a debiased average; ``gap`` names points that are not finite."""
    chance = random.Random(seed)
    x = [float(index * stride) for index in range(points)]
    mean = [
        floor + (start - floor) * math.exp(-4 * i / points) * (1 + noise * chance.gauss(0, 1)) for i in range(points)
    ]
    mean = [math.nan if i in gap else value for i, value in enumerate(mean)]
    finite = [value for value in mean if math.isfinite(value)]
    return SeriesView(
        name=name,
        axis="step",
        x=x,
        low=[value * (1 - noise / 2) for value in mean],
        high=[value * (1 + noise / 2) for value in mean],
        mean=mean,
        smooth=_average(mean),
        smoothing=0.95,
        count=points * 10,
        first=mean[0],
        last=None if math.isnan(mean[-1]) else mean[-1],
        minimum=min(finite, default=None),
        maximum=max(finite, default=None),
        minimum_at=x[mean.index(min(finite))] if finite else None,
        maximum_at=x[mean.index(max(finite))] if finite else None,
        attempt_marks=marks,
        evaluation=evaluation,
        values=mean,
    )


def _average(values: Sequence[float], keep: float = 0.95) -> list[float]:
    total, weight, out = 0.0, 0.0, []
    for value in values:
        if math.isfinite(value):
            total, weight = keep * total + (1 - keep) * value, keep * weight + (1 - keep)
        out.append(total / weight if math.isfinite(value) else math.nan)
    return out


def running(run: str = "20261121-104512-cifar", **changes: Any) -> RunSnapshot:
    """A healthy run in the middle of its training."""
    train = curve(marks=(9000.0,))
    validation = curve("val_loss", points=40, stride=550, floor=0.42, noise=0.03, evaluation=True, seed=2)
    accuracy = curve("val_accuracy", points=40, stride=550, start=0.1, floor=0.9, noise=0.02, evaluation=True, seed=3)
    made = RunSnapshot(
        run=run,
        name="CIFAR-10 · ResNet-18 · Adam",
        dir=Path("/runs") / run,
        state=State.RUNNING,
        seen=NOW,
        health=Health.TRAINING,
        profile="cifar",
        recipe="safe",
        device_asked="auto",
        numbers=Numbers(
            device=MPS,
            data="CIFAR-10",
            epoch=57,
            epochs=200,
            step=22_301,
            steps=78_200,
            epoch_step=405 - 391 + 61,
            epoch_steps=391,
            loss=train.last,
            lr=0.001,
            metrics={"val_loss": validation.last, "val_accuracy": accuracy.last},
            samples_per_second=3994.0,
            steps_per_second=31.2,
            eta_seconds=1791.0,
            epoch_eta_seconds=10.0,
            memory=MemoryReading(int(5.9 * GIB), int(7.2 * GIB), int(21.3 * GIB), int(2.1 * GIB)),
            checkpoint=CheckpointNote("checkpoints/epoch-056.pt", 21_896, NOW - 20),
        ),
        attempt=2,
        attempts=2,
        pid=4242,
        started=NOW - 4488,
        attempt_started=NOW - 2590,
        updated=NOW - 1,
        checkpoints=(
            Checkpoint(Path("checkpoints/epoch-056.pt"), 89_600_000, NOW - 20, 21_896),
            Checkpoint(Path("checkpoints/best.pt"), 89_600_000, NOW - 300, 19_550, best=True),
            Checkpoint(Path("checkpoints/epoch-055.pt"), 12_000, NOW - 40, None, complete=False),
        ),
        events=(
            RunEvent(NOW - 4488, 1, "launched", "attempt 1 started"),
            RunEvent(NOW - 2600, 1, "crash", "ended by SIGABRT: Metal command buffer failed"),
            RunEvent(NOW - 2590, 2, "restart", "attempt 2 started, from epoch-022.pt"),
            RunEvent(NOW - 300, 2, "checkpoint", "saved best.pt", {"path": "best.pt", "step": 19_550}),
            RunEvent(NOW - 20, 2, "checkpoint", "saved epoch-056.pt", {"path": "epoch-056.pt", "step": 21_896}),
        ),
        series={"loss": train, "val_loss": validation, "val_accuracy": accuracy},
        argv=("python", "-m", "trainer", "cifar"),
        output=Path("/runs") / run / "attempts/2/output.log",
        readers="heartbeat",
    )
    return changed(made, **changes)


def unsaved(**changes: Any) -> RunSnapshot:
    """A running one whose program saves nothing."""
    return running(checkpoint=None, checkpoints=(), argv=("python", "train.py"), **changes)


def failed(run: str = "20261121-093000-bigger-batch", **changes: Any) -> RunSnapshot:
    """A run that the device's memory ended."""
    made = running(
        run,
        name="CIFAR-10 · batch 4096",
        state=State.FAILED,
        health=None,
        epoch=2,
        epochs=90,
        step=118,
        steps=9000,
        steps_per_second=None,
        samples_per_second=None,
        eta_seconds=None,
        attempt=1,
        attempts=1,
        pid=None,
        started=NOW - 9000,
        attempt_started=NOW - 9000,
        ended=NOW - 8100,
        exit=ExitSummary(1, None, "mps_oom", None, ended=NOW - 8100),
        reason="the exit record says code 1",
        series={"loss": curve(points=60, stride=2, floor=1.6, seed=5)},
        checkpoints=(),
        checkpoint=None,
    )
    return changed(made, **changes)


def bare(run: str = "20261121-115959-new", **changes: Any) -> RunSnapshot:
    """A run of which nothing is known yet."""
    made = RunSnapshot(run=run, name="just launched", dir=Path("/runs") / run, state=State.STARTING, seen=NOW)
    return changed(made, **changes)


def stalled(run: str = "20261121-080000-llama", **changes: Any) -> RunSnapshot:
    """A run that lives and does not move."""
    made = running(
        run,
        name="LLaMA 1B · LoRA · alpaca",
        health=Health.STALLED,
        health_note="no beat for 90 s",
        epoch=1,
        epochs=3,
        step=4120,
        steps=14_600,
        steps_per_second=1.31,
        samples_per_second=5.2,
        eta_seconds=8000.0,
        attempt=1,
        attempt_started=NOW - 4488,
        series={"loss": curve(points=200, stride=20, start=3.1, floor=0.9, seed=7)},
    )
    return changed(made, **changes)


def finished(run: str = "20261120-220000-mnist", **changes: Any) -> RunSnapshot:
    """A run that is done."""
    made = running(
        run,
        name="MNIST · two layers",
        state=State.FINISHED,
        health=None,
        device=CPU,
        epoch=10,
        epochs=10,
        step=9380,
        steps=9380,
        epoch_step=938,
        epoch_steps=938,
        started=NOW - 50_000,
        attempt_started=NOW - 50_000,
        ended=NOW - 49_000,
        exit=ExitSummary(0, None, None, None, ended=NOW - 49_000),
        series={"loss": curve(points=100, stride=94, start=2.3, floor=0.03, seed=9)},
    )
    return changed(made, **changes)


def several() -> tuple[RunSnapshot, ...]:
    """One of each kind that matters, newest first."""
    return (bare(), running(), failed(), stalled(), finished())


FINDING = Finding(
    id="mps_oom",
    title="The device ran out of memory",
    kind=Kind.CAUSE,
    confidence=0.95,
    evidence=(EvidenceLine(118, "RuntimeError: MPS backend out of memory (MPS allocated: 17.9 GB, max: 18.1 GB)"),),
    cause="Activations of a batch of 4096 do not fit beside the model; the allocator asked for more than the limit.",
    remedy=Remedy(text="Halve the batch size and accumulate two steps, or restart on CPU.", device="cpu"),
    restart_on_cpu_helps=True,
)


def cure(finding: Finding = FINDING, **changes: Any) -> Cure:
    """What that finding's remedy does to some launch."""
    device = (Change("device", "mps", finding.remedy.device),) if finding.remedy.device else ()
    variables = tuple(Change(name, "unset", str(value)) for name, value in finding.remedy.env.items())
    choice = LaunchChoice(profile_of_command(("python", "train.py"), cwd=Path("/")))
    made = Cure(finding=finding, choice=choice, changes=device + variables, risk=finding.remedy.risk)
    return replace(made, **changes)


def available(snapshot: RunSnapshot) -> dict[str, Availability]:
    """Restarts always, everything else while it runs; the queue's keys for what waits in one."""
    return {action: _available(snapshot, action) for action in BY_ID}


def _available(snapshot: RunSnapshot, action: str) -> Availability:
    if action.startswith("queue"):
        waits = snapshot.queue is not None and snapshot.queue.group is not None
        return Availability(waits, "" if waits else "it is not in a queue")
    if action == "remove":
        return Availability(not snapshot.state.active, "it is still running" if snapshot.state.active else "")
    if BY_ID[action].request == "restart" or snapshot.state.active:
        return Availability(True)
    return Availability(False, "this run has ended")


@dataclass
class FakeMonitor(Monitor):
    """Gives what a test put there."""

    snapshots: tuple[RunSnapshot, ...] = ()
    focus: str | None = None
    compared: tuple[str, ...] = ()
    failure: Exception | None = None
    pending_bytes: int = 0
    hinted: set[str] = field(default_factory=set)
    refreshes: int = 0
    unread: bool = False
    """What can be done with the runs is not known yet."""

    @property
    def is_behind(self) -> bool:
        return False

    def hint(self, runs: Iterable[str]) -> None:
        self.hinted |= set(runs)

    def read_on(self, focus: str, seconds: float) -> int:
        self.pending_bytes = max(0, self.pending_bytes - 1) if seconds else self.pending_bytes
        return self.pending_bytes

    def refresh(
        self, focus: str | None = None, selected: Collection[str] = (), compared: Sequence[str] = ()
    ) -> tuple[RunSnapshot, ...]:
        self.focus, self.compared = focus, tuple(compared)
        self.refreshes += 1
        if self.failure is not None:
            raise self.failure
        wanted = set() if self.unread else {focus, *selected}
        return tuple(
            replace(item, available=available(item)) if item.run in wanted else item for item in self.snapshots
        )


@dataclass
class FakeActions(Actions):
    """Writes down what was asked; answers when told to."""

    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    answers: dict[str, Ack] = field(default_factory=dict)
    automatic: Ack | None = None
    failure: Exception | None = None

    def send(self, snapshot: RunSnapshot, action: str, **options: Any) -> Request:
        if self.failure is not None:
            raise self.failure
        request = BY_ID[action].request
        self.asked.append((request, snapshot.run, {**BY_ID[action].options, **options}))
        return Request(f"r{len(self.asked)}", request, snapshot.attempt, "me@here:1", NOW, options)

    def go_on(self, snapshot: RunSnapshot) -> Request:
        return self.send(snapshot, "restart", tried=True)

    def answer(self, run_dir: Path, request_id: str) -> Ack | None:
        return self.answers.get(request_id, self.automatic)


class FakeSampler(Sampler):
    """The same machine every time."""

    closed = False

    def __init__(self) -> None:
        super().__init__(())

    def sample(self, trees: Trees | None = None) -> Snapshot:
        system = SystemSample(
            time=NOW,
            memory_total_bytes=32 * GIB,
            memory_used_bytes=int(24.1 * GIB),
            swap_used_bytes=GIB // 5,
            cpu_percent=42.0,
            pressure="normal",
            thermal="nominal",
            gpus=(
                GpuSample(name="Apple M2 Max", busy_percent=83.0, memory_used_bytes=int(7.4 * GIB), power_watts=18.0),
            ),
        )
        tree = TreeSample(time=NOW, process_count=5, footprint_bytes=int(9.1 * GIB), cpu_percent=312.0)
        return Snapshot(system, dict.fromkeys(trees or {}, tree))

    def close(self) -> None:
        self.closed = True


def telemetry(growth_bytes: int = 0, count: int = 120) -> RunTelemetry:
    """Ten minutes of a steady, slightly breathing run that fits into its limits; ``growth_bytes`` a point grow."""
    course = tuple(
        MemoryPoint(
            time=NOW - 5.0 * (count - 1 - tick),
            allocated=int((5.7 + 0.2 * math.sin(tick / 9)) * GIB) + growth_bytes * (tick + 1 - count),
            driver=int((7.2 if tick > 30 else 6.1) * GIB) + growth_bytes * (tick + 1 - count),
            limit=int(21.3 * GIB),
            footprint=int((9.1 if tick > 30 else 7.8) * GIB) + growth_bytes * (tick + 1 - count),
            system_used=int((24.1 - 0.02 * (count - tick) % 1) * GIB),
            system_limit=32 * GIB,
            swap_used=GIB // 5,
            pressure="warn" if 50 < tick < 56 else "normal",
            cpu_percent=42.0 + 6 * math.sin(tick / 5),
            gpu_percent=12.0 if 28 < tick < 34 else 83.0 + 4 * math.sin(tick / 7),
        )
        for tick in range(count)
    )
    energy = RunEnergy(whose="machine", watt_hours=21.4, measured_fraction=0.81, epoch_watt_hours=0.31, epochs=46)
    return RunTelemetry(memory=course, headroom=headroom(course), energy=energy)


@dataclass
class FakeRecorder(TelemetryRecorder):
    """Knows the same whatever is sampled."""

    known: RunTelemetry = field(default_factory=telemetry)
    closed: bool = False

    def poll(self, snapshot: RunSnapshot, system: SystemSample, tree: TreeSample | None) -> RunTelemetry:
        self.closed = False
        return self.known

    def close(self) -> None:
        self.closed = True


class Log(LogDocument):
    """A real log; a search in it can be made to run out of time."""

    slices = 0
    """So many searches end before they find anything."""

    def write(self, lines: Iterable[str]) -> Log:
        self.path.write_text("".join(f"{line}\n" for line in lines))
        self.refresh()
        return self

    def append(self, line: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{line}\n")

    @property
    def texts(self) -> list[str]:
        return self.path.read_text().splitlines()

    def search(
        self, pattern: str, start_offset: int, backwards: bool = False, seconds: float = SEARCH_SECONDS
    ) -> LogLine | None:
        if self.slices:
            self.slices -= 1
            self.search_stopped_at = start_offset
            return None
        return super().search(pattern, start_offset, backwards, seconds)


def training_log(lines: int = 300) -> list[str]:
    """What the runs above would have printed."""
    texts = [
        f"epoch {57 - (lines - i) // 60:>3}  step {22301 - (lines - i) * 6}  loss {0.3 + 1 / (i + 3):.4f}  31.2 it/s"
        for i in range(lines)
    ]
    texts[-40] = "UserWarning: lr_scheduler.step() was called before optimizer.step()"
    texts[-12] = "saved checkpoints/epoch-056.pt"
    texts[-25] = "RuntimeError: could not read sample 4711, skipped"
    return texts


@dataclass
class FakeDraft(Draft):
    """A form whose command is made of its values."""

    launched: list[Mapping[str, str]] = field(default_factory=list)
    saved: list[str] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    """What the program says of arguments that the profile does not name, once it was asked."""
    rehearsed: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        return "CIFAR-10 · ResNet-18 · Adam"

    @property
    def description(self) -> str:
        return "The quick-start training."

    @property
    def fields(self) -> tuple[Field, ...]:
        return (
            Field("name", "name", "cifar"),
            Field("device", "device", "auto", ("auto", "mps", "cuda", "cpu")),
            Field("recipe", "recipe", "safe", ("safe", "classic", "fast")),
            Field("arg:epochs", "epochs", "200"),
            Field("arg:lr", "lr", "0.001"),
            Field("arg:batch-size", "batch-size", "128"),
            *(Field(f"arg:{key}", key, "", hint=hint) for key, hint in self.known.items()),
        )

    def asking_the_program(self, values: Mapping[str, str]) -> FakeDraft:
        self.known = {"momentum": "0.9  of SGD alone"}
        return self

    def completed(self, key: str, text: str) -> str | None:
        return f"{text}/batches" if text == "data" else None

    def preview(self, values: Mapping[str, str]) -> Preview:
        if not values["arg:epochs"].isdigit():
            raise UsageError(
                f"epochs: {values['arg:epochs']!r} is not a number", "write a whole number", field="arg:epochs"
            )
        arguments = " ".join(f"--{key[4:]} {value}" for key, value in values.items() if key.startswith("arg:"))
        warnings = ("bf16 is slower than fp32 on this chip",) if values["recipe"] == "fast" else ()
        return Preview(
            f"python -P -m trainer cifar {arguments} --device {values['device']}",
            (
                EnvLine("PYTORCH_ENABLE_MPS_FALLBACK", "1", "an operator the device lacks runs on CPU"),
                EnvLine(
                    "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
                    "0.0",
                    "lets the allocator use all memory",
                    "can freeze the whole machine",
                ),
            ),
            warnings,
            "/home/me/project",
            profile="cifar",
        )

    def launch(self, values: Mapping[str, str], *, call: str = "") -> str:
        self.launched.append(dict(values))
        return "20261121-115959-new"

    def restart(
        self, snapshot: RunSnapshot, values: Mapping[str, str], *, rehearse: bool = False, request_id: str = ""
    ) -> Request:
        (self.rehearsed if rehearse else self.restarted).append(snapshot.run)
        return Request("r9", "restart", snapshot.attempt, "me@here:1", NOW, {})

    def save(self, values: Mapping[str, str], name: str, *, again: bool = False) -> Path:
        self.saved.append(name)
        return Path("/home/me/.config/mpstui/profiles") / f"{name}.toml"


@dataclass
class FakeLauncher(Launcher):
    """Three profiles, one of them broken."""

    form: FakeDraft = field(default_factory=FakeDraft)
    cures: list[Cure | None] = field(default_factory=list)

    def entries(self, *, waits: bool = True) -> Sequence[ProfileEntry]:
        quick, broken = "Quick start.", "/me/broken.toml:3: unknown key `epoch`"
        return (
            ProfileEntry(
                "cifar",
                "CIFAR-10 · ResNet-18 · Adam",
                Path("profiles/cifar.toml"),
                "shipped",
                description=quick,
                command="python -m trainer cifar",
                arguments="epochs=90 lr=0.001",
            ),
            ProfileEntry("mine", "My own fine-tuning", Path("/me/mine.toml"), "yours"),
            ProfileEntry("broken", "broken", Path("/me/broken.toml"), "yours", broken),
        )

    def draft(self, name: str) -> FakeDraft:
        return self.form

    def draft_of(self, snapshot: RunSnapshot, cure: Cure | None = None) -> FakeDraft:
        self.cures.append(cure)
        return self.form


class FakeGhosts(GhostFinder):
    """Knows the best earlier run, where a test says one."""

    best: RunSnapshot | None = None

    def look(self, live: RunSnapshot, others: Sequence[RunSnapshot], seconds: float) -> Ghost | None:
        return race(live, self.best) if self.best is not None else None


class FakeServices(Services):
    """A core that holds what a test gives it."""

    def __init__(self, snapshots: tuple[RunSnapshot, ...], folder: Path, *, remote: bool) -> None:
        environ = {"SSH_CONNECTION": "10.0.0.1 22"} if remote else {}
        super().__init__(Home(folder, folder), environ, folder, lambda: NOW)
        self.monitored, self.acting = FakeMonitor(snapshots), FakeActions(environ)
        self.sampling, self.recording, self.launching = FakeSampler(), FakeRecorder(), FakeLauncher()
        self.log = Log(folder / "output.log")
        self.racing = FakeGhosts()
        self.findings: Sequence[Finding] = (FINDING,)
        self.exception: EvidenceLine | None = None
        self.remedy: Cure | None = None
        self.tried: Rehearsed | None = None
        self.mistakes: tuple[tuple[int, str], ...] = ()
        self.alarms: list[Alarm] = []
        self.queue_changes: list[tuple[str, object]] = []
        self.paused: tuple[str, ...] = ()
        self.checkpoints = 3
        self.refusal: Exception | None = None
        self.removed: list[tuple[str, bool]] = []

    def monitor(self, columns: int | None = None) -> Monitor:
        return self.monitored

    @property
    def actions(self) -> Actions:
        return self.acting

    def ghosts(self) -> GhostFinder:
        return self.racing

    def sampler(self) -> Sampler:
        return self.sampling

    def recorder(self, snapshot: RunSnapshot) -> TelemetryRecorder:
        return self.recording

    def open_log(self, path: Path) -> LogDocument:
        return self.log

    def explain(self, snapshot: RunSnapshot) -> Explanation:
        found = self.remedy or next((cure(one) for one in self.findings if one.can_be_cured), None)
        return Explanation(self.findings, self.exception, found, self.tried)

    def launcher(self) -> Launcher:
        return self.launching

    def settings(self) -> Settings:
        if self.mistakes:
            raise SettingsError(Path("/home/me/settings.toml"), self.mistakes)
        return Settings(energy=EnergySettings(price=0.32, currency="EUR"))

    def notification(self, found: Sequence[Alarm]) -> str:
        self.settings()
        self.alarms.extend(found)
        return ""

    def paused_queues(self) -> tuple[str, ...]:
        return self.paused

    def move_in_queue(self, snapshot: RunSnapshot, direction: str, call: str = "") -> Moved:
        self.queue_changes.append((snapshot.run, direction))
        return Moved("mps", 1, 3)

    def pause_queue(self, group: str, paused: bool) -> Queue:
        self.queue_changes.append((group, paused))
        self.paused = tuple({*self.paused, group} if paused else {*self.paused} - {group})
        (self.home.queue / group / str(len(self.queue_changes))).mkdir(parents=True)
        os.utime(self.home.queue)
        return Queue(group, paused=paused)

    def examine_removal(self, snapshot: RunSnapshot) -> Removable:
        if self.refusal is not None:
            raise self.refusal
        if snapshot.state.active:
            raise OperationError("it has not ended")
        saved = self.checkpoints * 100 << 20
        return Removable(
            run=RunDir(snapshot.dir),
            name=snapshot.name,
            ended=snapshot.ended or NOW,
            size_bytes=saved + (12 << 20),
            checkpoints=self.checkpoints,
            checkpoint_bytes=saved,
        )

    def looked_into(self, runs: Sequence[RunSnapshot]) -> list[RunSnapshot]:
        return [replace(one, available=available(one), brief=False) for one in runs]

    def remove(self, snapshot: RunSnapshot, *, keep_checkpoints: bool) -> Removed:
        self.removed.append((snapshot.run, keep_checkpoints))
        self.monitored.snapshots = tuple(item for item in self.monitored.snapshots if item.run != snapshot.run)
        kept = Path("/state/checkpoints") / snapshot.run if keep_checkpoints else None
        return Removed(run=snapshot.run, freed_bytes=12 << 20, kept=kept)


@dataclass
class World:
    """Everything a test holds on to."""

    services: FakeServices
    folder: TemporaryDirectory[str]
    undo_seconds: float = 0.0
    """So long a stop is held back."""

    @property
    def monitor(self) -> FakeMonitor:
        return self.services.monitored

    @property
    def actions(self) -> FakeActions:
        return self.services.acting

    @property
    def sampler(self) -> FakeSampler:
        return self.services.sampling

    @property
    def launcher(self) -> FakeLauncher:
        return self.services.launching

    @property
    def log(self) -> Log:
        return self.services.log

    @property
    def recorder(self) -> FakeRecorder:
        return self.services.recording


def world(snapshots: tuple[RunSnapshot, ...] = (), *, log: Sequence[str] | None = None, remote: bool = False) -> World:
    """A core that holds these runs."""
    folder = TemporaryDirectory(prefix="mpstui-ui-", ignore_cleanup_errors=True)
    services = FakeServices(snapshots, Path(folder.name), remote=remote)
    services.log.write(training_log() if log is None else log)
    return World(services, folder)
