"""Disks that are full, fill up, or cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpstui.core.model.snapshot import State
from mpstui.wire.liveness import ProcessIdentity, system_process_table

from ..kit import alive, filled, wait_for
from . import trainers
from .stage import Scenes, Stage


def full_disk(stage: Stage) -> None:
    """The disk is full when the trainer ends: its exit record fits into the reserve."""
    stage.start_running()
    with filled(stage.home):
        stage.finish_trainer()
        stage.expect_exit(code=7)
        stage.expect(State.FAILED)
    stage.run.wait_unsupervised(40.0)
    stage.expect_that(stage.run.status.phase == "ended", "the status was not written later")
    stage.expect_that(bool(stage.run.events("crash")), "the event was not written later")


def full_disk_stop(stage: Stage) -> None:
    """A stop on a full disk: nothing is stopped because a save failed, and the stop works."""
    stage.start_running()
    request = stage.run.ask("stop")
    with filled(stage.home):
        stage.expect_exit(action="stop")
    stage.run.wait_ack(request, 40.0)
    stage.expect(State.STOPPED)


def disk_runs_full(stage: Stage) -> None:
    """The disk fills under a training: it is held, by a next supervisor too, and goes on when there is room again."""
    free = stage.home / "free"
    free.write_text(str(1 << 40))
    stage.start_running("--free", str(free))
    stage.run.look_twice()
    trainer = stage.run.status.trainer
    assert trainer is not None
    free.write_text(str(1 << 20))
    wait_for(lambda: stage.run.status.held_for == "disk" and _state(trainer) == "T", "the trainer to be held")
    stage.expect(State.RUNNING)
    wait_for(lambda: stage.run.events("phase"), "the word on it")
    stage.run.kill_supervisor()
    stage.start("--free", str(free))
    stage.run.wait_phase("running")
    stage.expect_that(_state(trainer) == "T", "the next supervisor let it go on a full disk")
    free.write_text(str(1 << 30))
    wait_for(lambda: stage.run.status.held_for is None and _state(trainer) != "T", "the trainer to go on")
    stage.finish_trainer()
    stage.expect_exit(unknown=True)
    stage.expect_that(len(stage.run.events("phase")) == 2, f"told {stage.run.events('phase')}")


def _state(identity: ProcessIdentity) -> str:
    found = system_process_table().find(identity.pid)
    return found.state if found else ""


def read_only_home(stage: Stage) -> None:
    """The home becomes read-only under a run: the trainer is not touched, its end is written when that is possible."""
    stage.start_running()
    trainer = stage.run.status.trainer
    assert trainer is not None
    with _frozen(stage.run.dir.path, stage.run.dir.attempt(1).path, stage.run.dir.requests):
        time.sleep(0.5)
        stage.expect_that(alive(trainer), "the trainer died with the disk")
        os.kill(trainer.pid, signal.SIGTERM)
        wait_for(lambda: not alive(trainer))
        time.sleep(0.6)
        stage.expect_that(stage.run.exit() is None, "the folder was not read-only")
    stage.expect_exit(signal=15, requested_by=None, seconds=40.0)
    stage.expect(State.KILLED)


def full_disk_log(stage: Stage) -> None:
    """The output itself fills the disk, which ends a Python program: its exit code is on record all the same."""
    stage.start()
    record = stage.expect_exit()
    stage.expect_that(record is None or record.code not in (0, None), f"exit code {record and record.code}")
    stage.expect(State.FAILED)
    os.truncate(stage.run.dir.attempt(1).output, 0)
    stage.run.wait_unsupervised(40.0)
    stage.expect_that(stage.run.status.phase == "ended", "the status was not written later")


@contextmanager
def _frozen(*folders: Path) -> Iterator[None]:
    """Nothing can be created in or renamed into these folders. (A mount with open files cannot be made read-only.)"""
    subprocess.run(["chattr", "+i", *map(str, folders)], check=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", *map(str, folders)], check=True)


SCENES: Scenes = {disk_runs_full: {"trainer": trainers.WAITS}}
SMALL_DISK_SCENES: Scenes = {
    full_disk: {"trainer": trainers.WAITS},
    full_disk_stop: {"trainer": trainers.WAITS},
    full_disk_log: {"trainer": trainers.FLOODS},
}
"""These need a file system of their own, hence root."""
FROZEN_SCENES: Scenes = {read_only_home: {"trainer": trainers.WAITS}}
"""These need ``chattr +i``, hence root and a file system that knows it."""
