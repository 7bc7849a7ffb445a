"""The reporter: at most a beat a second, nothing lost on a full disk, never an exception."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from mpstui.agent.reporter import Mailbox, Reporter, parse_rusage, parse_statm, read_process_memory
from mpstui.wire import rundir, storage
from mpstui.wire.heartbeat import CheckpointNote, DeviceReading, MemoryReading, from_json
from mpstui.wire.records import Request
from mpstui.wire.rundir import RunDir


class Clock:
    """Time that stands still until it is told to move."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def _reporter(folder: Path, clock: Clock | None = None, rank: int = 0) -> Reporter:
    moving = clock or Clock()
    return Reporter(RunDir(folder), 1, rank=rank, clock=moving, monotonic=moving)


def _beat(folder: Path, rank: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RunDir(folder).attempt(1).heartbeat(rank).read_text())
    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_without_a_run_directory_it_reports_nothing() -> None:
    reporter = Reporter.from_environment({})
    assert not reporter.enabled
    assert not reporter.beat("train", step=1)
    assert reporter.requests() == []
    reporter.point(1, 1, loss=0.5)
    reporter.event("note", "nobody hears this")


def test_beats_once_a_second_and_at_once_when_the_phase_changes(tmp_path: Path) -> None:
    clock = Clock()
    reporter = _reporter(tmp_path, clock)
    assert reporter.beat("train", step=1)
    clock.now += 0.9
    assert not reporter.beat("train", step=2)
    assert _beat(tmp_path)["step"] == 1
    assert reporter.beat("eval", expect_next_in=60.0)
    assert (_beat(tmp_path)["phase"], _beat(tmp_path)["step"]) == ("eval", 2)
    clock.now += 1.0
    assert reporter.beat()
    assert _beat(tmp_path)["seq"] == 3


def test_a_beat_is_one_of_schema_1_with_all_that_is_known(tmp_path: Path) -> None:
    reporter = _reporter(tmp_path)
    reporter.memory = lambda: MemoryReading(allocated=1, driver=2, limit=3)
    note = CheckpointNote("best.pt", 4, 5.0)
    reporter.beat("train", device=DeviceReading("mps", "M3", "bf16"), checkpoint=note, loss=0.5, data="synthetic")
    beat = from_json(_beat(tmp_path))
    assert (beat.run, beat.attempt, beat.rank, beat.world_size, beat.pid) == (tmp_path.name, 1, 0, 1, os.getpid())
    assert beat.device == DeviceReading("mps", "M3", "bf16")
    assert (beat.memory.allocated, beat.memory.driver, beat.memory.limit) == (1, 2, 3)
    assert beat.memory.rss is not None
    assert beat.checkpoint == note
    assert beat.data == "synthetic"


def test_a_non_finite_loss_travels_as_null_with_its_name(tmp_path: Path) -> None:
    reporter = _reporter(tmp_path)
    reporter.beat("train", loss=float("nan"))
    reporter.point(3, 1, loss=float("inf"), lr=0.1)
    assert _beat(tmp_path)["nonfinite"] == ["loss"]
    assert _lines(RunDir(tmp_path).metrics)[0]["loss"] is None


def test_other_ranks_write_their_own_beat_and_nothing_else(tmp_path: Path) -> None:
    reporter = _reporter(tmp_path, rank=2)
    reporter.beat("train", step=1)
    reporter.point(1, 1, loss=0.5)
    reporter.event("note", "from rank 2")
    assert _beat(tmp_path, rank=2)["rank"] == 2
    assert not RunDir(tmp_path).metrics.exists()
    assert not RunDir(tmp_path).events.exists()


def test_a_full_disk_is_told_once_and_its_lines_follow_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    reporter = _reporter(tmp_path, clock)

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(storage, "append_line", full)
        disk.setattr(storage, "write_json", full)
        for step in (1, 2, 3):
            clock.now += 20
            reporter.point(step, 1, loss=0.5)
            reporter.beat("train", step=step)
    assert capsys.readouterr().err.count("No space left") == 1
    clock.now += 20
    reporter.point(4, 1, loss=0.4)
    assert [line["step"] for line in _lines(RunDir(tmp_path).metrics)] == [1, 2, 3, 4]
    assert reporter.beat("eval")
    assert _beat(tmp_path)["phase"] == "eval"


def test_any_other_surprise_switches_it_off_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = _reporter(tmp_path)
    reporter.beat("train", no_such_field=1)
    reporter.beat("eval", now=True)
    reporter.point(1, 1, loss=0.5)
    assert not reporter.enabled
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "the training goes on" in printed


def test_a_run_directory_that_cannot_be_made_costs_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    reporter = _reporter(tmp_path / "file")
    reporter.beat("train")
    reporter.event("note", "nowhere to go")
    assert reporter.requests() == []
    assert capsys.readouterr().err.count("\n") == 1


def test_requests_for_this_attempt_come_once_oldest_first(tmp_path: Path) -> None:
    run, clock = RunDir(tmp_path), Clock()
    reporter = _reporter(tmp_path, clock)
    for moment, action, attempt in ((3, "save", 1), (2, "clear_cache", 1), (1, "stop", 1), (4, "clear_cache", 2)):
        rundir.submit(run, rundir.new_request(action, attempt, float(moment)))
    found = reporter.requests()
    assert [request.action for request in found] == ["clear_cache", "save"]
    clock.now += 1
    assert reporter.requests() == []
    reporter.answer(found[0], ok=True, text="nothing to free", freed=0)
    ack = rundir.answer_to(run, found[0].id)
    assert ack is not None
    assert (ack.ok, ack.by, ack.freed, ack.text) == (True, "trainer", 0, "nothing to free")


def test_an_answered_request_is_not_taken_by_a_restarted_reporter(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    rundir.submit(run, rundir.new_request("save", 1, 1.0))
    first = _reporter(tmp_path)
    first.answer(first.requests()[0], ok=True, text="saved")
    assert _reporter(tmp_path).requests() == []


def test_the_folder_is_read_only_when_it_changed_and_four_times_a_second_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, moving = RunDir(tmp_path), Clock()
    run.requests.mkdir()
    os.utime(run.requests, (900, 900))
    looks: list[RunDir] = []

    def unanswered(asked: RunDir, *_: object) -> list[Request]:
        looks.append(asked)
        return []

    monkeypatch.setattr(rundir, "unanswered", unanswered)
    mailbox = Mailbox(run, 1, clock=moving, monotonic=moving)
    for _ in range(100):
        moving.now += 0.1
        mailbox.collect()
    assert len(looks) == 1
    os.utime(run.requests, (moving.now, moving.now))
    moving.now += 0.3
    mailbox.collect()
    assert len(looks) == 2


def test_of_a_flood_each_request_is_read_once_and_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, moving, read = RunDir(tmp_path), Clock(), storage.read
    for number in range(120):
        action = "save" if number == 60 else "pause"
        rundir.submit(run, rundir.new_request(action, 1, 0.0, by="test@here:1"))
    looks: list[int] = [0]

    def counted(kind: Any, path: Path) -> Any:
        looks[-1] += 1
        return read(kind, path)

    monkeypatch.setattr(storage, "read", counted)
    mailbox, found = Mailbox(run, 1, clock=moving, monotonic=moving), []
    for _ in range(5):
        moving.now += 1.0
        found += mailbox.collect()
        looks.append(0)
    assert [item.action for item in found] == ["save"]
    assert (sum(looks), max(looks)) == (120, 50)


def test_a_poll_costs_next_to_nothing(tmp_path: Path) -> None:
    reporter = Reporter(RunDir(tmp_path))
    reporter.beat("train")
    started = time.process_time()
    for step in range(10_000):
        reporter.beat("train", step=step)
        reporter.requests()
    assert (time.process_time() - started) / 10_000 < 50e-6


def test_memory_of_this_process_is_read_and_recorded_texts_are_parsed() -> None:
    resident, _ = read_process_memory()
    assert resident is not None
    assert resident > 1_000_000
    assert parse_statm("1200 300 40 1 0 200 0\n", 4096) == 300 * 4096
    counters = [0] * 6 + [111, 222, 0, 0]
    buffer = bytes(16) + b"".join(value.to_bytes(8, "little") for value in counters)
    assert parse_rusage(buffer) == (111, 222)


@pytest.mark.parametrize("open_file", ["run.lock", "attempts/1/output.log"])
def test_reports_follow_a_home_that_is_moved(open_file: str, tmp_path: Path) -> None:
    clock, old, new = Clock(), tmp_path / "home" / "runs" / "r", tmp_path / "moved" / "runs" / "r"
    reporter = _reporter(old, clock)
    reporter.beat("train", step=1)
    reporter.point(1, 1, loss=0.5)
    old.joinpath("requests").mkdir()
    with old.joinpath(open_file).open("ab"):
        (tmp_path / "home").rename(tmp_path / "moved")
        reporter.point(2, 1, loss=0.25)
        clock.now += 1
        assert reporter.beat(step=2)
        request = rundir.submit(RunDir(new), rundir.new_request("save", 1, clock.now))
        assert [one.id for one in reporter.requests()] == [request.id]
        reporter.answer(request, ok=True, text="saved")
    assert _beat(new)["step"] == 2
    assert [line["step"] for line in _lines(RunDir(new).metrics)] == [1, 2]
    assert RunDir(new).ack(request.id).exists()
    assert not old.exists()


def test_what_was_deleted_or_has_another_in_its_place_is_not_followed(tmp_path: Path) -> None:
    clock, old, other = Clock(), tmp_path / "r", tmp_path / "other"
    reporter, _ = _reporter(old, clock), _reporter(other, clock)
    reporter.beat("train", step=1)
    with (other / "run.lock").open("ab"):
        old.rename(tmp_path / "elsewhere")  # nothing of it is open here
        clock.now += 1
        assert not reporter.beat(step=2)
    assert not (other / "attempts/1/heartbeat.json").exists()
    assert reporter.enabled
