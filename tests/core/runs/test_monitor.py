"""The monitor over real run directories: real files and locks, a clock of its own."""

from __future__ import annotations

import os
from typing import Any

import pytest

from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Availability, Health, RunSnapshot, State
from mpstui.core.present import badge, needs_attention
from mpstui.core.runs.listing import moment_of_end
from mpstui.core.runs.monitor import AVAILABLE_SECONDS
from mpstui.core.runs.reader import RunReader
from mpstui.core.runs.report import as_json
from mpstui.wire import storage
from mpstui.wire.heartbeat import CheckpointNote, DeviceReading, MemoryReading
from tests.core.runs.build import BOOT, NOW, FakeClock, FakeTable, RunBuilder, make_monitor


def points(count: int, *, attempt: int = 1, start: int = 1, seconds: float = 1.0) -> list[dict[str, Any]]:
    return [
        {
            "time": NOW - (count - i) * seconds,
            "attempt": attempt,
            "epoch": 1,
            "step": start + i,
            "loss": 1.0 / (start + i),
        }
        for i in range(count)
    ]


def running(home: Home, name: str = "CIFAR ten") -> RunBuilder:
    return RunBuilder(home, name).status("running", trainer=[77, 5]).launch().hold()


def only(snapshots: tuple[RunSnapshot, ...]) -> RunSnapshot:
    assert len(snapshots) == 1
    return snapshots[0]


def test_each_attempt_has_its_own_start_and_the_run_that_of_the_first(home: Home) -> None:
    run = running(home).launch(2)
    shown = only(make_monitor(home, FakeClock()).refresh())
    assert (shown.started, shown.attempt_started) == (run.created + 1, run.created + 2)


def test_a_run_that_is_held_for_the_disk_is_told_from_one_that_the_user_paused(home: Home) -> None:
    held = running(home).status("running", trainer=[77, 5], paused=True, held_for="disk", message="the disk is full")
    shown = only(make_monitor(home, FakeClock()).refresh())
    assert (shown.paused, shown.held_for, shown.reason) == (True, "disk", "the disk is full")
    held.status("running", trainer=[77, 5], paused=True)
    assert only(make_monitor(home, FakeClock()).refresh()).held_for is None


def test_a_run_whose_training_is_done_is_finishing_for_as_long_as_its_process_lives(home: Home) -> None:
    clock = FakeClock()
    run = running(home).beat(phase="done", step=1000, steps=1000, loss=0.5, expect_next_in=0.0)
    monitor = make_monitor(home, clock)
    for _ in range(2):
        shown = only(monitor.refresh())
        assert (shown.state, shown.health, badge(shown).word) == (State.RUNNING, None, "finishing")
        assert (shown.numbers.steps_per_second, shown.numbers.eta_seconds, moment_of_end(shown)) == (None, None, None)
        assert not needs_attention(shown)
        clock.advance(1000.0)
    run.release()


def test_a_running_run_shows_what_its_heartbeat_says(home: Home) -> None:
    clock = FakeClock()
    run = running(home).beat(
        step=120,
        steps=1000,
        epoch=2,
        epochs=10,
        loss=0.5,
        lr=0.1,
        device=DeviceReading("mps", "Apple M3", "bf16"),
        memory=MemoryReading(allocated=10, driver=20),
        checkpoint=CheckpointNote("checkpoints/step_100.pt", 100),
        metrics={"val_loss": 0.7},
        data="synthetic",
    )
    shown = only(make_monitor(home, clock).refresh())
    assert (shown.state, shown.health) == (State.RUNNING, Health.TRAINING)
    assert (
        shown.numbers.step,
        shown.numbers.steps,
        shown.numbers.epoch,
        shown.numbers.epochs,
        shown.numbers.loss,
        shown.numbers.lr,
    ) == (120, 1000, 2, 10, 0.5, 0.1)
    assert shown.numbers.device == DeviceReading("mps", "Apple M3", "bf16")
    assert shown.numbers.memory.driver == 20
    assert shown.pid == 77
    assert shown.numbers.metrics == {"val_loss": 0.7}
    assert shown.numbers.data == "synthetic"
    assert shown.readers == "heartbeat"
    assert shown.numbers.beat is not None
    run.release()


def test_unknown_is_none_and_never_zero(home: Home) -> None:
    run = running(home)
    shown = only(make_monitor(home, FakeClock()).refresh())
    for name in ("step", "steps", "epoch", "epochs", "loss", "lr", "eta_seconds", "steps_per_second"):
        assert getattr(shown.numbers, name) is None, name
    assert shown.updated is None
    assert shown.numbers.device.type == "cpu"  # asked for by name
    assert shown.numbers.loss_is_finite
    run.release()


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"cause": "dependency_failed", "evidence": {"dependency": "run a did not finish"}}, "never started"),
        ({"action": "stop", "requested_by": "me"}, "never started"),
        ({"action": "stop", "requested_by": "me", "unknown": True, "started": NOW}, "exit code unknown"),
        ({"unknown": True, "started": NOW}, "exit code unknown"),
    ],
)
def test_an_attempt_that_never_began_has_no_unknown_exit_code(home: Home, record: dict[str, Any], told: str) -> None:
    RunBuilder(home).status("ended").exit(**record)
    shown = only(make_monitor(home, FakeClock()).refresh())
    assert shown.exit is not None
    assert shown.exit.sentence() == told


def test_auto_is_no_device(home: Home) -> None:
    run = RunBuilder(home).status("running").launch(device="auto").hold()
    assert only(make_monitor(home, FakeClock()).refresh()).numbers.device.type is None
    run.release()


def test_a_loss_that_is_nan_is_told_apart_from_none(home: Home) -> None:
    run = running(home).beat(step=3, loss=float("nan"))
    shown = only(make_monitor(home, FakeClock()).refresh())
    assert shown.numbers.loss is None
    assert not shown.numbers.loss_is_finite
    run.release()


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"schema": 1, "ti', b"\xff\xfe", b"[1, 2]", b'{"schema": 9}', b"null"]
)
def test_a_damaged_heartbeat_keeps_the_last_good_one(home: Home, content: bytes) -> None:
    monitor = make_monitor(home, FakeClock())
    run = running(home).beat(step=5, loss=0.25)
    assert only(monitor.refresh()).numbers.loss == 0.25
    run.run.attempt(1).heartbeat().write_bytes(content)
    assert only(monitor.refresh()).numbers.loss == 0.25
    run.beat(step=6, loss=0.125, seq=2)
    assert only(monitor.refresh()).numbers.loss == 0.125
    run.run.attempt(1).heartbeat().unlink()
    assert only(monitor.refresh()).numbers.loss == 0.125
    run.release()


def test_a_stalled_run_revives_when_it_beats_again(home: Home) -> None:
    clock = FakeClock()
    monitor = make_monitor(home, clock)
    run = running(home).beat(step=5)
    os.utime(run.run.status)
    assert only(monitor.refresh()).health is Health.TRAINING
    clock.advance(11)
    assert only(monitor.refresh()).health is Health.STALLED
    clock.advance(600)
    assert only(monitor.refresh()).health is Health.HUNG
    run.beat(time=clock.wall, seq=2, step=6)
    assert only(monitor.refresh()).health is Health.TRAINING
    run.release()


def test_a_machine_that_slept_did_not_hang(home: Home) -> None:
    clock = FakeClock()
    monitor = make_monitor(home, clock)
    run = running(home).beat(step=5, monotonic=clock.mono, boot_id=BOOT)
    monitor.refresh()
    clock.sleep(6 * 3600)
    clock.advance(2)
    shown = only(monitor.refresh())
    assert (shown.health, shown.health_note) == (Health.SLEPT, "slept 6 h")
    run.beat(time=clock.wall, monotonic=clock.mono, boot_id=BOOT, seq=2, step=6)
    shown = only(monitor.refresh())
    assert (shown.health, shown.health_note) == (Health.TRAINING, "slept 6 h")
    run.release()


def test_the_life_of_a_run_from_lock_to_lock(home: Home) -> None:
    clock, table = FakeClock(), FakeTable()
    monitor = make_monitor(home, clock, table)
    run = running(home)
    table.add(77, 5)
    assert only(monitor.refresh()).state is State.RUNNING
    run.release()
    assert only(monitor.refresh()).state is State.UNSUPERVISED  # the process lives, its locks are gone
    table.rows.clear()
    assert only(monitor.refresh()).state is State.LOST
    run.exit(code=0)
    clock.advance(2)
    run.status("ended")
    shown = only(monitor.refresh())
    assert shown.state is State.FINISHED
    assert shown.ended == NOW + 100
    assert shown.exit is not None
    assert shown.pid is None


def test_a_run_that_is_continued_was_stopped_by_nobody_else(home: Home) -> None:
    clock, table = FakeClock(), FakeTable()
    run, monitor = running(home), make_monitor(home, clock, table)
    table.add(77, 5, "T")
    assert only(monitor.refresh()).health_note == "stopped by a signal that mpstui did not send"
    run.status("running", trainer=[77, 5], paused=True)
    clock.advance(0.2)
    assert only(monitor.refresh()).health is Health.PAUSED
    table.add(77, 5, "S")
    run.status("running", trainer=[77, 5])
    clock.advance(0.2)
    shown = only(monitor.refresh())
    assert (shown.health, shown.health_note) == (Health.WARMING, "nothing printed yet")
    run.release()


@pytest.mark.parametrize(
    ("more", "health"),
    [
        ("", Health.WARMING),
        ("│       precision: 32\n│       lr: 0.0006\n", Health.WARMING),
        ("step 1 loss 0.5\n", Health.TRAINING),
        ("Episode 1\tAverage reward: 10.5\n", Health.TRAINING),
    ],
)
def test_a_program_that_has_printed_no_step_is_still_warming_up(home: Home, more: str, health: Health) -> None:
    run, table = running(home), FakeTable()
    table.add(77, 5, "S")
    run.output(f"Using device: cpu\nloading the data\n{more}")
    os.utime(run.run.attempt(1).output, (NOW + 5, NOW + 5))
    shown = only(make_monitor(home, FakeClock(), table).refresh())
    assert (shown.health, shown.numbers.device.type) == (health, "cpu")
    run.release()


def test_a_recycled_pid_is_somebody_else(home: Home) -> None:
    table = FakeTable()
    table.add(77, 999)
    RunBuilder(home).status("running", trainer=[77, 5]).launch()
    assert only(make_monitor(home, FakeClock(), table).refresh()).state is State.LOST


def test_a_reboot_is_told_by_the_boot_id(home: Home) -> None:
    RunBuilder(home).status("running", trainer=[77, 5], boot_id="another boot").launch()
    shown = only(make_monitor(home, FakeClock(), FakeTable()).refresh())
    assert shown.state is State.LOST
    assert "reboot" in shown.reason


def test_torchrun_ranks_that_hold_no_lock_are_found(home: Home) -> None:
    table = FakeTable()
    table.add(81, 6)
    RunBuilder(home).status("running", trainer=[77, 5], tree=[[80, 6], [81, 6]]).launch()
    assert only(make_monitor(home, FakeClock(), table).refresh()).state is State.UNSUPERVISED


def test_a_silent_rank_is_named_while_rank_0_still_beats(home: Home) -> None:
    clock = FakeClock()
    run = running(home).beat(step=5, world_size=3)
    for rank, moment in ((1, NOW), (2, NOW - 50)):
        path = run.run.attempt(1).heartbeat(rank)
        beat = {"schema": 1, "time": moment, "seq": 1, "rank": rank, "expect_next_in": 10.0, "phase": "train"}
        storage.write_json(path, beat, sync=False)
    shown = only(make_monitor(home, clock).refresh())
    assert shown.health is Health.STALLED
    assert shown.health_note == "rank 2: no beat for 50 s, promised within 10 s"
    run.release()


def test_every_rank_is_told_with_its_own_step_and_memory(home: Home) -> None:
    run = running(home).beat(step=5, world_size=2)
    beat = {"schema": 1, "time": NOW, "seq": 1, "rank": 1, "step": 4, "loss": 0.25, "memory": {"driver": 7}}
    storage.write_json(run.run.attempt(1).heartbeat(1), beat, sync=False)
    monitor = make_monitor(home, FakeClock())
    shown = monitor.snapshot(run.run.run)
    assert [(one.rank or 0, one.step, one.memory.driver) for one in shown.ranks] == [(0, 5, None), (1, 4, 7)]
    assert [one.get("rank", 0) for one in as_json(shown, full=True)["ranks"]] == [0, 1]
    run.release()
    alone = running(home).beat(step=5)
    assert make_monitor(home, FakeClock()).snapshot(alone.run.run).ranks == ()
    alone.release()


def test_survivors_of_an_ended_run_are_listed(home: Home) -> None:
    table = FakeTable()
    table.add(81, 6)
    RunBuilder(home).status("ended", tree=[[80, 6], [81, 6]]).launch().exit(signal=9, survivors=[80, 81])
    shown = only(make_monitor(home, FakeClock(), table).refresh())
    assert shown.state is State.KILLED
    assert shown.survivors == (81,)


def test_a_second_attempt_continues_the_first(home: Home) -> None:
    clock = FakeClock()
    monitor = make_monitor(home, clock)
    run = RunBuilder(home).status("ended", 1).launch(1).beat(1, step=100, loss=0.5).exit(1, signal=9)
    run.points(*points(100))
    assert only(monitor.refresh()).state is State.KILLED
    run.status("running", 2, trainer=[78, 6]).launch(2, device="cpu").hold()
    clock.advance(2)
    shown = monitor.snapshot(run.run.run)
    assert (shown.attempt, shown.attempts, shown.state) == (2, 2, State.RUNNING)
    assert (shown.numbers.step, shown.numbers.loss, shown.series["loss"].count) == (None, None, 100)
    assert shown.health is Health.WARMING
    assert shown.started == NOW + 1
    run.beat(2, step=81, loss=0.6).points(*points(5, attempt=2, start=81))
    shown = monitor.snapshot(run.run.run)
    assert (shown.numbers.step, shown.numbers.loss) == (81, 0.6)
    curve = shown.series["loss"]
    assert list(curve.attempt_marks) == [81.0]
    assert list(curve.x) == [*range(1, 81), *range(81, 86)]
    assert [list(piece.x) for piece in curve.superseded] == [list(range(81, 101))]
    run.release()


def test_only_the_focused_run_comes_in_full(home: Home) -> None:
    monitor = make_monitor(home, FakeClock())
    first = running(home, "one").points(*({**p, "accuracy": 0.5} for p in points(1000))).event("note", "hello")
    second = running(home, "two").points(*points(1000)).event("note", "hello")
    shown = {s.name: s for s in monitor.refresh(first.run.run)}
    assert set(shown["one"].series) == {"loss", "accuracy"}
    assert shown["one"].series["loss"].count == 1000
    assert [event.text for event in shown["one"].events] == ["hello"]
    assert set(shown["two"].series) == {"loss"}
    assert len(shown["two"].series["loss"].x) <= 120
    assert not shown["two"].events
    first.release()
    second.release()


def test_newest_first_and_a_deleted_run_is_gone(home: Home) -> None:
    monitor = make_monitor(home, FakeClock())
    runs = [RunBuilder(home, f"run {i}", NOW + i).status("ended").launch().exit(code=0) for i in range(3)]
    assert [s.name for s in monitor.refresh()] == ["run 2", "run 1", "run 0"]
    for path in sorted(runs[1].run.path.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    runs[1].run.path.rmdir()
    assert [s.name for s in monitor.refresh()] == ["run 2", "run 0"]


def test_a_settled_run_is_the_same_object_until_it_is_restarted(home: Home) -> None:
    clock = FakeClock()
    monitor = make_monitor(home, clock)
    run = RunBuilder(home).status("ended").launch().exit(code=1).points(*points(10))
    monitor.refresh()
    before = only(monitor.refresh())
    clock.advance(5)
    assert only(monitor.refresh()) is before
    run.status("running", 2).launch(2).hold()
    monitor.hint([run.run.run])
    after = only(monitor.refresh())
    assert after.state is State.RUNNING
    run.release()


def test_without_a_hint_a_restart_is_seen_as_well(home: Home) -> None:
    clock = FakeClock()
    monitor = make_monitor(home, clock)
    run = RunBuilder(home).status("ended").launch().exit(code=1)
    monitor.refresh()
    run.status("running", 2).launch(2).hold()
    clock.advance(3)
    assert only(monitor.refresh()).state is State.RUNNING
    run.release()


def test_a_restart_within_one_tick_of_the_file_systems_clock_is_seen(home: Home) -> None:
    clock = FakeClock()
    monitor = make_monitor(home, clock)
    run = RunBuilder(home).status("ended").launch().exit(code=1)
    monitor.refresh()
    ticks = {path: path.stat().st_mtime_ns for path in (run.run.path, run.run.status)}
    run.status("running", 2).launch(2).hold()
    for path, tick in ticks.items():
        os.utime(path, ns=(tick, tick))
    clock.advance(3)
    assert only(monitor.refresh()).state is State.RUNNING
    run.release()


def test_a_torn_metrics_line_is_not_yet(home: Home) -> None:
    monitor = make_monitor(home, FakeClock())
    run = running(home).points(*points(3))
    assert monitor.snapshot(run.run.run).series["loss"].count == 3
    with run.run.metrics.open("a") as file:
        file.write('{"time": 1, "attempt": 1, "step": 4, "lo')
    assert monitor.snapshot(run.run.run).series["loss"].count == 3
    with run.run.metrics.open("a") as file:
        file.write('ss": 0.125}\n')
    assert monitor.snapshot(run.run.run).series["loss"].last == 0.125
    run.release()


def test_metrics_that_were_truncated_or_replaced_start_over(home: Home) -> None:
    monitor = make_monitor(home, FakeClock())
    run = running(home).points(*points(50))
    assert monitor.snapshot(run.run.run).series["loss"].count == 50
    run.run.metrics.write_text("")
    run.points(*points(2))
    assert monitor.snapshot(run.run.run).series["loss"].count == 2
    other = run.run.path / "other"
    other.write_text('{"time": 1, "attempt": 1, "step": 1, "loss": 9.0}\n' * 500)
    other.replace(run.run.metrics)
    assert monitor.snapshot(run.run.run).series["loss"].count == 500
    run.release()


def test_the_heartbeat_is_not_needed_for_numbers(home: Home) -> None:
    run = running(home).points({**points(1)[0], "lr": 0.01, "val_loss": None})
    shown = only(make_monitor(home, FakeClock()).refresh())
    assert (shown.numbers.step, shown.numbers.loss, shown.numbers.lr, shown.readers) == (1, 1.0, 0.01, "metrics.jsonl")
    assert shown.numbers.metrics["val_loss"] is None
    run.release()


def test_a_program_that_knows_nothing_of_us_is_read_from_its_output(home: Home) -> None:
    monitor = make_monitor(home, FakeClock())
    run = running(home).output("".join(f"Epoch {i}/10 loss: {1 / i:.4f} lr: 0.01\n" for i in range(1, 5)))
    shown = monitor.snapshot(run.run.run)
    assert (shown.numbers.epoch, shown.numbers.epochs, shown.numbers.loss, shown.readers) == (4, 10, 0.25, "output.log")
    assert shown.series["loss"].count == 4
    run.output("Epoch 5/10 loss: 0.2000 lr: 0.01\n")
    shown = monitor.snapshot(run.run.run)
    assert (shown.numbers.epoch, shown.numbers.loss) == (5, 0.2)
    run.release()


def test_the_outputs_of_all_attempts_are_one_curve(home: Home) -> None:
    lines = [f"step {i}/100 loss {1 / i:.4f}\n" for i in range(1, 41)]
    run = RunBuilder(home).status("ended", 2).launch(1).launch(2).exit(1, code=1).exit(2, code=1)
    run.output("".join(lines[:30]), 1).output("".join(lines[20:]), 2)
    monitor = make_monitor(home, FakeClock())
    monitor.refresh_whole()
    curve = monitor.snapshot(run.run.run).series["loss"]
    assert list(curve.x) == [float(i) for i in range(1, 41)]
    assert (list(curve.attempt_marks), list(curve.mark_attempts)) == ([21.0], [2])
    assert [list(piece.x) for piece in curve.superseded] == [[float(i) for i in range(21, 31)]]
    assert only(monitor.refresh()).numbers.step == 40
    (listed,) = make_monitor(home, FakeClock()).refresh_whole()
    assert listed.numbers.step == 40


def test_a_watched_heartbeat_of_another_program_counts_only_when_it_is_of_this_attempt(home: Home) -> None:
    run = running(home).respec(watch={"heartbeat": "train_heartbeat.json"})
    file = home.state / "train_heartbeat.json"
    storage.write_json(file, {"timestamp": NOW - 9000, "global_step": 7, "total_steps": 90, "avg_loss": 0.75})
    monitor = make_monitor(home, FakeClock())
    assert only(monitor.refresh()).numbers.step is None
    storage.write_json(file, {"timestamp": NOW + 5, "global_step": 8, "total_steps": 90, "avg_loss": 0.5})
    shown = only(monitor.refresh())
    assert (shown.numbers.step, shown.numbers.steps, shown.numbers.loss, shown.readers) == (
        8,
        90,
        0.5,
        "train_heartbeat.json",
    )
    run.release()


def test_checkpoints_are_found_named_and_checked(home: Home) -> None:
    run = running(home).beat(step=20, checkpoint=CheckpointNote("checkpoints/last.pt", 19))
    folder = run.run.checkpoints
    folder.mkdir()
    whole = b"PK\x03\x04" + b"x" * 100 + b"PK\x05\x06" + b"\0" * 18
    (folder / "step_10.pt").write_bytes(whole)
    (folder / "last.pt").write_bytes(whole)
    (folder / "best.pt").write_bytes(whole[:-22])
    (folder / ".step_11.pt.tmp").write_bytes(b"x")
    os.utime(folder / "step_10.pt", (NOW - 20, NOW - 20))
    os.utime(folder / "best.pt", (NOW - 10, NOW - 10))
    os.utime(folder / "last.pt", (NOW, NOW))
    found = make_monitor(home, FakeClock()).snapshot(run.run.run).checkpoints
    assert [(c.path.name, c.step, c.best, c.complete) for c in found] == [
        ("last.pt", 19, False, True),
        ("best.pt", None, False, False),
        ("step_10.pt", 10, False, True),
    ]
    run.release()


def test_eta_is_unknown_until_two_steps_are_and_goes_on_through_the_metrics(home: Home) -> None:
    clock = FakeClock()
    monitor = make_monitor(home, clock)
    run = running(home).beat(step=1, steps=100)
    assert only(monitor.refresh()).numbers.eta_seconds is None
    later = [{**point, "time": NOW + 2 * i} for i, point in enumerate(points(10, start=2), 1)]
    run.points(*later).beat(time=NOW + 20, step=11, steps=100, seq=2)
    shown = only(monitor.refresh())
    assert shown.numbers.eta_seconds == pytest.approx(89 * 2.0)
    assert shown.numbers.steps_per_second == pytest.approx(0.5)
    assert only(make_monitor(home, clock).refresh()).numbers.eta_seconds == pytest.approx(89 * 2.0)  # opened just now
    run.release()


def test_many_ended_runs_stay_the_objects_they_were(home: Home) -> None:
    for i in range(60):
        RunBuilder(home, f"run {i}", NOW + i).status("ended").launch().exit(code=0).points(*points(5))
    clock = FakeClock()
    monitor = make_monitor(home, clock)
    first = monitor.refresh_whole()
    assert all(s.series["loss"].count == 5 for s in first)
    clock.advance(10)
    assert all(a is b for a, b in zip(first, monitor.refresh(), strict=True))


def test_damaged_directories_are_shown_and_harm_nobody(home: Home) -> None:
    good = running(home, "good")
    bad = RunBuilder(home, "bad")
    bad.run.spec.write_bytes(b"\xff\xfe{")
    newer = RunBuilder(home, "newer")
    newer.run.spec.write_text('{"schema": 7, "name": "from tomorrow"}')
    (home.runs / "not a run").mkdir()
    (home.runs / "a file").write_text("x")
    clock = FakeClock(good.run.path.stat().st_mtime + 1000)
    shown = {s.run: s for s in make_monitor(home, clock).refresh()}
    assert shown[good.run.run].state is State.RUNNING
    assert shown[bad.run.run].state is State.UNREADABLE
    assert shown[newer.run.run].name == "from tomorrow"
    assert "newer" in shown[newer.run.run].reason
    assert shown["not a run"].state is State.UNREADABLE
    assert len(shown) == 4
    good.release()


@pytest.mark.parametrize(
    "record", ["[]", "{}", '{"run": 3}', '{"launch": 5, "name": 1, "run": 2, "created": "x"}', "\0"]
)
@pytest.mark.parametrize("name", ["spec.json", "status.json", "attempts/1/exit.json", "attempts/1/launch.json"])
def test_no_record_of_any_shape_raises(home: Home, name: str, record: str) -> None:
    run = running(home).exit(code=0)
    (run.run.path / name).write_text(record)
    assert only(make_monitor(home, FakeClock()).refresh("nothing")).state in State
    make_monitor(home, FakeClock()).snapshot(run.run.run)
    run.release()


def test_snapshots_of_a_run_that_has_not_changed_are_equal_whenever_they_were_made(home: Home) -> None:
    clock = FakeClock()
    run = running(home).beat(step=3, loss=0.5).points(*points(3)).launch()
    monitor = make_monitor(home, clock)
    before = only(monitor.refresh(run.run.run))
    clock.advance(1)
    after = only(monitor.refresh(run.run.run))
    assert (before == after, before.seen == after.seen) == (True, False)
    run.points(*points(1, start=4))
    assert only(monitor.refresh(run.run.run)) != after, "its curve has grown"
    run.release()


def test_what_can_be_done_is_told_of_the_runs_in_focus_and_looked_up_once_while_nothing_changes(home: Home) -> None:
    asked: list[str] = []

    def rule(snapshot: RunSnapshot) -> dict[str, Availability]:
        asked.append(snapshot.name)
        return {"stop": Availability(snapshot.state is State.RUNNING)}

    clock = FakeClock()
    runs = [running(home, name).beat(step=1) for name in ("one", "two", "three")]
    monitor = make_monitor(home, clock, availability=rule)
    for _ in range(3):
        shown = {item.name: item.available for item in monitor.refresh(runs[0].run.run, [runs[1].run.run])}
        assert shown == {"one": {"stop": Availability(True)}, "two": {"stop": Availability(True)}, "three": {}}
    assert sorted(asked) == ["one", "two"]
    runs[0].beat(step=2)
    monitor.refresh(runs[0].run.run, [runs[1].run.run])
    assert sorted(asked) == ["one", "two"], "a step decides nothing"
    runs[0].status("running", paused=True)
    monitor.refresh(runs[0].run.run, [runs[1].run.run])
    assert sorted(asked) == ["one", "one", "two"]
    clock.advance(AVAILABLE_SECONDS)
    monitor.refresh(runs[0].run.run, [runs[1].run.run])
    assert sorted(asked) == ["one", "one", "one", "two", "two"]
    for run in runs:
        run.release()


def test_what_the_supervisor_paused_a_run_for_is_a_field(home: Home) -> None:
    words = "paused: the disk is full"
    run = RunBuilder(home).status("running", paused=True, held_for="disk", message=words).launch().beat(step=3).hold()
    shown = only(make_monitor(home, FakeClock()).refresh())
    assert (shown.paused, shown.held_for, shown.reason) == (True, "disk", words)
    run.release()


def test_the_device_asked_for_is_that_of_the_newest_attempt(home: Home) -> None:
    """A run that was launched with ``auto`` and went on with ``--device cpu`` was asked for the CPU."""
    run = RunBuilder(home).status("ended", attempt=2).launch(device="auto").exit(code=1).launch(2, device="cpu")
    run.exit(2, code=0)
    assert make_monitor(home, FakeClock()).snapshot(run.run.run).device_asked == "cpu"


def test_many_runs_that_live_take_turns_and_each_is_looked_at_within_a_second(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [running(home, f"run {number}") for number in range(60)]
    looks, refresh, clock = list[str](), RunReader.refresh, FakeClock()

    def noted(reader: RunReader, **how: Any) -> RunSnapshot:
        looks.append(reader.run.run)
        return refresh(reader, **how)

    monkeypatch.setattr(RunReader, "refresh", noted)
    monitor = make_monitor(home, clock)
    monitor.refresh()
    runs[7].exit(code=0).status("ended").release()
    looks.clear()
    for _ in range(10):
        clock.advance(0.1)
        monitor.hint(run.run.run for run in runs)  # all write, all the time
        shown = monitor.refresh()
    assert {looks.count(run.run.run) for run in runs if run is not runs[7]} <= {3, 4, 5}  # in ten refreshes
    assert [one.run for one in shown if one.state is State.FINISHED] == [runs[7].run.run]
    for run in runs:
        run.release()


def test_a_log_that_tells_once_in_ten_minutes_is_not_stalled_for_whoever_comes_late(home: Home) -> None:
    run = running(home).output("".join(f"Epoch {epoch}/50 loss {1 / epoch:.4f}\n" for epoch in range(1, 7)))
    written = NOW + 3600
    os.utime(run.run.attempt(1).output, (written, written))
    late, later = make_monitor(home, FakeClock(written + 540)), make_monitor(home, FakeClock(written + 7200))
    assert only(late.refresh_whole()).health is Health.TRAINING
    assert only(later.refresh_whole()).health is Health.STALLED
