"""Rules of which nothing else is seen until the worst moment: what is given up, given back, and looked at last."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpstui.supervisor import starting
from mpstui.supervisor.attempt import Attempt
from mpstui.supervisor.journal import Journal
from mpstui.supervisor.loop import Supervisor
from mpstui.supervisor.machine import Clock, this_machine
from mpstui.supervisor.queue import QueueSlot
from mpstui.wire import rundir, storage
from mpstui.wire.records import ExitRecord, QueueRule, RestartRule, Status
from mpstui.wire.rundir import create_run_dir

from .kit import Run, wait_for

MakeRun = Callable[..., Run]


def test_the_reserve_is_given_up_for_the_exit_record_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run_dir(tmp_path / "runs", "t", 0.0)
    journal, create, write = (
        Journal(run, Status("t", "running", 1, 0.0), Clock()),
        storage.create_json,
        storage.write_json,
    )
    journal.keep_reserves()

    def on_a_full_disk(action: Callable[..., Any]) -> Callable[..., Any]:
        def full(*values: Any, **named: Any) -> Any:
            if run.reserve.exists():
                raise OSError(errno.ENOSPC, "No space left on device")
            return action(*values, **named)

        return full

    monkeypatch.setattr(storage, "create_json", on_a_full_disk(create))
    monkeypatch.setattr(storage, "write_json", on_a_full_disk(write))
    journal.update(phase="ended")
    assert run.reserve.stat().st_size == 8192
    assert journal.pending
    journal.exit(ExitRecord(1, 1.0, code=7))
    record = storage.read(ExitRecord, run.attempt(1).exit)
    assert record is not None
    assert record.code == 7
    assert not run.reserve.exists()


def no_byte_left(*_: object, **__: object) -> bool:
    """As where a program takes every byte that anybody gives back."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_the_reserve_itself_becomes_the_record_so_that_nobody_takes_its_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = create_run_dir(tmp_path / "runs", "t", 0.0)
    Journal(run, Status("t", "running", 1, 0.0), Clock()).keep_reserves()
    blocks = run.request_reserve.stat().st_ino
    monkeypatch.setattr(storage, "create_json", no_byte_left)
    asked = rundir.submit(run, rundir.new_request("kill", 1, 5.0))
    assert run.request(asked.id).stat().st_ino == blocks
    assert not run.request_reserve.exists()
    assert list(rundir.unanswered(run)) == [asked]


@pytest.mark.parametrize("why", ["too small", "another name"])
def test_a_reserve_that_is_no_room_of_its_own_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """A power cut may leave the record that it became under both names."""
    run = create_run_dir(tmp_path / "runs", "t", 0.0)
    earlier, tried = tmp_path / "earlier.json", [no_byte_left, storage.create_json]
    run.request_reserve.write_bytes(b" " if why == "too small" else b" " * 4096)
    os.link(run.request_reserve, earlier)
    before = earlier.read_bytes()
    monkeypatch.setattr(storage, "create_json", lambda *values, **named: tried.pop(0)(*values, **named))
    asked = rundir.submit(run, rundir.new_request("kill", 1, 5.0))
    assert list(rundir.unanswered(run)) == [asked]
    assert earlier.read_bytes() == before


def test_the_exit_record_goes_past_the_drives_own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run_dir(tmp_path / "runs", "t", 0.0)
    flushed: list[bool] = []
    monkeypatch.setattr(storage, "flush_to_disk", lambda descriptor, *, drive_cache: flushed.append(drive_cache))
    Journal(run, Status("t", "running", 1, 0.0), Clock()).exit(ExitRecord(1, 1.0, code=0))
    assert flushed == [True]


def test_a_slot_that_was_closed_is_free_for_the_same_process(make_run: MakeRun) -> None:
    run = make_run("pass")
    status = Status(run.dir.run, "queued", 1, 0.0, waiting_for="slot")
    first, second = (QueueSlot(run.dir, QueueRule(group="mps"), this_machine()) for _ in range(2))
    assert first.ask(dependencies_matter=False, status=status).go
    assert not second.ask(dependencies_matter=False, status=status).go
    first.close()
    third = QueueSlot(run.dir, QueueRule(group="mps"), this_machine())
    assert third.ask(dependencies_matter=False, status=status).go
    third.close()


def test_a_next_supervisor_waits_for_the_rest_of_the_time(make_run: MakeRun) -> None:
    run, now = make_run("pass", restart=RestartRule(on=["boom"], delays_seconds=[600.0])), time.time()
    storage.make_private_folder(run.dir.attempt(1).path)
    storage.create_json(run.dir.attempt(1).exit, ExitRecord(1, now, code=3))
    storage.write_json(run.dir.status, Status(run.dir.run, "backing_off", 1, now, next_start=now + 500.0))
    supervisor = Supervisor(run.dir, run.spec, run.status, this_machine())
    starting.arrive(supervisor.state)
    assert supervisor.state.upcoming is not None
    assert supervisor.state.upcoming.due - supervisor.state.now > 450.0


def test_the_trainer_is_reaped_after_its_family_was_looked_at(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, done = make_run("print('up')"), []
    supervisor = Supervisor(run.dir, run.spec, None, this_machine())
    refresh, collect = Attempt.refresh, Attempt.collect

    def looked(self: Attempt, *, thorough: bool = False) -> Any:
        done.append("looked" if thorough else "")
        return refresh(self, thorough=thorough)

    def reaped(self: Attempt) -> Any:
        done.append("reaped")
        return collect(self)

    monkeypatch.setattr(Attempt, "refresh", looked)
    monkeypatch.setattr(Attempt, "collect", reaped)
    starting.arrive(supervisor.state)

    def ended() -> object:
        supervisor.tick()
        return run.exit()

    wait_for(ended)
    assert "looked" in done[: done.index("reaped")]
