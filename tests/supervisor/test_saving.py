"""Whether a checkpoint is being written, with clocks to order."""

from __future__ import annotations

import os
from pathlib import Path

from mpstui.supervisor.checkpoints import QUIET_SECONDS, SAVING_POLL_SECONDS, SavingWatch
from mpstui.supervisor.machine import Clock
from mpstui.wire import storage
from mpstui.wire.records import LaunchTemplate, Spec
from mpstui.wire.rundir import RunDir

WALL = 1_000_000.0


class Scene:
    """A run directory, a clock, and a watch on both."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.run = RunDir(folder / "run")
        self.run.checkpoints.mkdir(parents=True)
        self.run.attempt(1).path.mkdir(parents=True)
        self.template = LaunchTemplate("cpu", {}, str(folder), checkpoints="checkpoints/*.pt")

    def watch(self) -> SavingWatch:
        clock = Clock(wall=lambda: WALL + self.now, monotonic=lambda: self.now)
        return SavingWatch(self.run, Spec("r", "r", 0.0, self.template), self.template, 1, clock)

    def write(self, size: int, age: float = 0.0) -> None:
        path = self.run.checkpoints / ".last.pt.tmp"
        path.write_bytes(b"x" * size)
        os.utime(path, (WALL + self.now - age, WALL + self.now - age))

    def after(self, seconds: float, watch: SavingWatch) -> bool:
        self.now += seconds
        return watch()


def test_growth_counts_until_it_has_been_quiet(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    watch = scene.watch()
    assert not watch()
    scene.write(10)
    assert scene.after(SAVING_POLL_SECONDS, watch)
    assert scene.after(QUIET_SECONDS - 0.1, watch)
    assert not scene.after(0.2, watch)
    scene.write(20)
    assert scene.after(SAVING_POLL_SECONDS, watch)


def test_the_first_look_goes_by_the_age_of_the_newest_file(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write(10, age=1.0)
    watch = scene.watch()
    assert watch()
    assert not scene.after(QUIET_SECONDS, watch)
    scene.write(10, age=QUIET_SECONDS + 1)
    assert not scene.watch()()
    scene.write(10, age=-3600.0)
    assert not scene.watch()()


def test_the_trainers_own_word_counts(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    watch = scene.watch()
    storage.write_json(scene.run.attempt(1).heartbeat(), {"schema": 1, "time": WALL, "seq": 1, "phase": "save"})
    assert watch()
    storage.write_json(scene.run.attempt(1).heartbeat(), {"schema": 1, "time": WALL, "seq": 2, "phase": "train"})
    assert not scene.after(SAVING_POLL_SECONDS, watch)
