"""Run directories made by hand, written the way the supervisor and the trainer write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpstui.core.model.home import Home
from mpstui.core.runs.monitor import Monitor
from mpstui.wire import heartbeat, liveness, storage
from mpstui.wire.heartbeat import Heartbeat
from mpstui.wire.liveness import Process, ProcessTable
from mpstui.wire.records import ExitRecord, LaunchRecord, LaunchTemplate, Spec, Status, Variant
from mpstui.wire.rundir import RunDir, create_run_dir

NOW = 1_800_000_000.0
BOOT = "boot-1"


class FakeClock:
    """Wall and monotonic time that move when told; they part while the machine sleeps."""

    def __init__(self, now: float = NOW) -> None:
        self.wall = now
        self.mono = 5000.0

    def __call__(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.mono

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.mono += seconds

    def sleep(self, seconds: float) -> None:
        """The machine sleeps: the monotonic clock stands still."""
        self.wall += seconds


class BusyClock(FakeClock):
    """Each look at its monotonic time takes a millisecond: whoever reads until the time is up gets so many slices."""

    def monotonic(self) -> float:
        self.mono += 0.001
        return self.mono


class FakeTable:
    """A process table of whoever is put in it."""

    def __init__(self, *processes: Process) -> None:
        self.rows = {process.pid: process for process in processes}

    def snapshot(self) -> Mapping[int, Process]:
        return dict(self.rows)

    def find(self, pid: int) -> Process | None:
        return self.rows.get(pid)

    def add(self, pid: int, start: int, state: str = "S") -> None:
        self.rows[pid] = Process(pid, 1, pid, pid, start, state)


def make_home(path: Path) -> Home:
    """A home of its own."""
    home = Home(state=path / "home", config=path / "home")
    home.runs.mkdir(parents=True, exist_ok=True)
    return home


def make_monitor(home: Home, clock: FakeClock, table: ProcessTable | None = None, **options: Any) -> Monitor:
    """A monitor whose machine is all ours."""
    return Monitor(home, clock=clock, monotonic=clock.monotonic, table=table or FakeTable(), boot_id=BOOT, **options)


class RunBuilder:
    """One run directory; every method writes one file as its owner would."""

    def __init__(
        self, home: Home, name: str = "CIFAR ten", created: float = NOW, profile: str = "cifar", **spec: Any
    ) -> None:
        self.run: RunDir = create_run_dir(home.runs, name, created)
        self.name = name
        self.created = created
        self._locks: list[int] = []
        template = LaunchTemplate(device="auto", variants={"cpu": Variant(["python", "t.py"])}, cwd=str(home.state))
        self.spec = Spec(self.run.run, name, created, template, profile=profile, **spec)
        storage.write_json(self.run.spec, self.spec)

    def status(self, phase: str, attempt: int = 1, **fields: Any) -> RunBuilder:
        values = {"boot_id": BOOT, **fields}
        storage.write_json(self.run.status, Status(self.run.run, phase, attempt, self.created, **values))
        return self

    def launch(
        self, attempt: int = 1, device: str = "cpu", argv: Sequence[str] = ("python", "t.py"), **fields: Any
    ) -> RunBuilder:
        folder = self.run.attempt(attempt)
        storage.make_private_folder(folder.path)
        record = LaunchRecord(attempt, self.created + attempt, [*argv], "/", device, **fields)
        storage.write_json(folder.launch, record)
        return self

    def exit(self, attempt: int = 1, **fields: Any) -> RunBuilder:
        folder = self.run.attempt(attempt)
        storage.make_private_folder(folder.path)
        values = {"ended": self.created + 100, **fields}
        storage.write_json(folder.exit, ExitRecord(attempt, **values))
        return self

    def beat(self, attempt: int = 1, **fields: Any) -> RunBuilder:
        values: dict[str, Any] = {"time": NOW, "seq": 1, "phase": "train", "expect_next_in": 10.0, **fields}
        folder = self.run.attempt(attempt)
        storage.make_private_folder(folder.path)
        storage.write_json(folder.heartbeat(), heartbeat.to_json(Heartbeat(attempt=attempt, **values)), sync=False)
        return self

    def output(self, text: str, attempt: int = 1) -> RunBuilder:
        folder = self.run.attempt(attempt)
        storage.make_private_folder(folder.path)
        with folder.output.open("a") as file:
            file.write(text)
        return self

    def points(self, *records: Mapping[str, Any]) -> RunBuilder:
        with self.run.metrics.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        return self

    def event(self, name: str, text: str, **details: Any) -> RunBuilder:
        storage.append_line(self.run.events, {"time": NOW, "attempt": 1, "event": name, "text": text, **details})
        return self

    def hold(self, *, supervisor: bool = True, run: bool = True) -> RunBuilder:
        """Take locks, as living processes would."""
        for wanted, path in ((supervisor, self.run.supervisor_lock), (run, self.run.run_lock)):
            if wanted:
                held = liveness.acquire(path)
                assert held is not None
                self._locks.append(held)
        return self

    def release(self) -> RunBuilder:
        """Every process of the run dies."""
        for descriptor in self._locks:
            liveness.release(descriptor)
        self._locks.clear()
        return self

    def respec(self, **fields: Any) -> RunBuilder:
        self.spec = self.spec._replace(**fields)
        storage.write_json(self.run.spec, self.spec)
        return self
