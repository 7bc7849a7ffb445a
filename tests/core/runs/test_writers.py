"""A run that mpstui did not start lives while a process writes its files; then nobody calls it training any more."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Health, RunSnapshot, State
from mpstui.core.present import badge, needs_attention
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.open_files import OpenFiles
from mpstui.wire.liveness import system_process_table
from tests import wandb_files as w
from tests.core.runs.build import FakeClock, make_home, make_monitor

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux tells which files are open")

Begin = Callable[[Path, str], "subprocess.Popen[str]"]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Starts processes that have a file open."""
    begun = []

    def start(file: Path, mode: str) -> subprocess.Popen[str]:
        program = f"import sys; file = open({str(file)!r}, {mode!r}); print('open', flush=True); sys.stdin.read()"
        one = subprocess.Popen(
            [sys.executable, "-Sc", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert one.stdout is not None
        assert one.stdout.readline() == "open\n"
        begun.append(one)
        return one

    yield start
    for one in begun:
        end(one)


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(time.time())


@pytest.fixture
def monitor(home: Home, clock: FakeClock) -> Monitor:
    return make_monitor(home, clock, system_process_table())


def row(step: int) -> bytes:
    return w.history(step, {"train/loss": 1.0 / (step + 1)})


def told(shown: RunSnapshot) -> tuple[str, float | None, str]:
    return badge(shown).word, shown.numbers.steps_per_second, shown.health_note


def test_a_run_of_wandb_whose_writer_has_ended_without_recording_it_is_lost(
    monitor: Monitor, tmp_path: Path, clock: FakeClock, begin: Begin
) -> None:
    path = w.write(tmp_path / "offline-run-a" / "run-a.wandb", [w.run("a", {}), *map(row, range(4))])
    os.utime(path, (clock() - 20, clock() - 20))
    writer, key = begin(path, "ab"), monitor.watch(path.parent)
    assert monitor.snapshot(key).health is Health.TRAINING, "nobody has seen it grow, and it lives all the same"
    clock.advance(50)
    assert monitor.snapshot(key).health is Health.TRAINING, "an evaluation may take so long"
    end(writer)
    clock.advance(2)
    dead = monitor.snapshot(key)
    assert (*told(dead)[:2], dead.ended, needs_attention(dead)) == ("lost", None, dead.updated, True)
    pid = writer.pid
    assert dead.reason == f"W&B has recorded no end; process {pid}, which wrote it, has ended; last written 1 min ago"
    w.write(path, [w.run("a", {}), *map(row, range(5)), w.exited(0)])
    assert monitor.snapshot(key).state is State.FINISHED


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no files in memory here")
def test_a_writer_of_a_file_in_memory_is_seen(begin: Begin) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        file = Path(folder) / "metrics.csv"
        writer = begin(file, "ab")
        assert list(OpenFiles().writers([file])) == [writer.pid]
        end(writer)


def test_whoever_reads_a_run_proves_nothing(monitor: Monitor, tmp_path: Path, clock: FakeClock, begin: Begin) -> None:
    path = w.write(tmp_path / "offline-run-a" / "run-a.wandb", [w.run("a", {}), *map(row, range(4))])
    reader, key = begin(path, "rb"), monitor.watch(path.parent)
    assert told(monitor.snapshot(key)) == ("external", None, "")
    end(reader)
    clock.advance(9)
    assert told(monitor.snapshot(key)) == ("external", None, "")


@pytest.mark.parametrize(("name", "mode"), [("train.log", "ab"), ("train.log", "rb"), ("tfevents", "rb")])
def test_a_file_that_grew_is_no_training_once_its_writer_has_ended_or_it_is_silent(
    monitor: Monitor, tmp_path: Path, clock: FakeClock, begin: Begin, name: str, mode: str
) -> None:
    """TensorBoard names the process in the file. A program that opens its log for each line is not seen to have it."""
    log = tmp_path / "train.log"
    log.write_text("")
    writer = begin(log, mode)
    file = tmp_path / f"events.out.tfevents.1800000000.{socket.gethostname()}.{writer.pid}.0"
    monitor.watch(tmp_path)
    for step in range(2, 8):
        if name == "tfevents":
            w.events(file, range(step))
        else:
            log.write_text("".join(f"step {at} loss 0.5\n" for at in range(step)))
        os.utime(log if name == "train.log" else file, (clock(), clock()))
        clock.advance(6)
        (shown,) = monitor.refresh_whole()
    assert shown.health is Health.TRAINING
    end(writer)
    unseen = (name, mode) == ("train.log", "rb")
    for wait, silence in ((25, "31 s"), (35, "66 s"), (540, "10 min")):
        clock.advance(wait)
        (dead,) = monitor.refresh_whole()
        note = f"nothing written for {silence}" if unseen else f"process {writer.pid}, which wrote it, has ended"
        assert told(dead) == ("silent" if unseen else "ended", None, note)
        assert (dead.ended, dead.is_live) == (None if unseen else dead.updated, False)


def test_a_heartbeat_is_no_hanging_training_once_the_process_that_it_names_has_ended(
    home: Home, tmp_path: Path, clock: FakeClock, begin: Begin
) -> None:
    """One that names none, or one of another machine, is silent then: it may have ended, and it may hang."""
    (tmp_path / "log").touch()
    writer = begin(tmp_path / "log", "rb")
    named, nameless, broken = (tmp_path / f"{name}.json" for name in ("named", "nameless", "broken"))

    def look(monitor: Monitor) -> dict[str, str]:
        return {one.name: badge(one).word for one in monitor.refresh_whole()}

    def watching() -> Monitor:
        monitor = make_monitor(home, clock, system_process_table())
        for path in (named, nameless, broken):
            monitor.watch(path)
        return monitor

    monitor = None
    for step in range(1, 5):
        for path, more in ((named, {"pid": writer.pid}), (nameless, {}), (broken, {"pid": 2**22 + 1})):
            path.write_text(json.dumps({"step": step, "loss": 0.5, "time": clock(), **more}))
        monitor = monitor or watching()
        clock.advance(6)
        assert set(look(monitor).values()) == {"training"}
    assert monitor is not None
    clock.advance(3600)
    assert look(monitor) == {"named.json": "hung", "nameless.json": "silent", "broken.json": "silent"}
    end(writer)
    for one in (monitor, watching()):
        clock.advance(6)
        assert look(one) == {"named.json": "ended", "nameless.json": "silent", "broken.json": "silent"}
    assert monitor.snapshot(str(named)).ended == monitor.snapshot(str(named)).updated


def test_whoever_looks_next_knows_who_was_seen_to_write(
    home: Home, tmp_path: Path, clock: FakeClock, begin: Begin
) -> None:
    """A command that looks once says of a dead run what the screen says that saw it die, and the one after it too."""
    path = w.write(tmp_path / "offline-run-a" / "run-a.wandb", [w.run("a", {}), *map(row, range(4))])
    os.utime(path, (clock() - 20, clock() - 20))

    def look() -> tuple[str, str]:
        fresh = make_monitor(home, clock, system_process_table())
        shown = fresh.snapshot(fresh.watch(path.parent))
        return badge(shown).word, shown.reason

    writer = begin(path, "ab")
    assert look()[0] == "training"
    end(writer)
    for minutes in (2, 62):
        clock.advance(60 * minutes)
        word, reason = look()
        assert (word, f"process {writer.pid}, which wrote it, has ended" in reason) == ("lost", True)
    os.utime(path, (clock(), clock()))
    clock.advance(2)
    assert look()[0] == "external", "somebody whom nobody sees goes on"


def test_whoever_looks_next_knows_how_it_was_seen_to_grow(home: Home, tmp_path: Path, clock: FakeClock) -> None:
    """Nobody has the file open between two rows, and no row tells a time: only a second look shows that it grows."""
    path = tmp_path / "metrics.csv"

    def write(*steps: int) -> None:
        path.write_text("step,train_loss\n" + "".join(f"{step},{1 / (step + 1)}\n" for step in steps))
        os.utime(path, (clock(), clock()))

    def look(where: Home = home) -> str:
        fresh = make_monitor(where, clock, system_process_table())
        return badge(fresh.snapshot(fresh.watch(tmp_path))).word

    write(1, 2)
    clock.advance(5)
    assert look() == "external", "a copy that was made just now looks the same"
    clock.advance(15)
    write(1, 2, 3)
    clock.advance(1)
    screen = make_monitor(home, clock, system_process_table())
    shown = screen.snapshot(key := screen.watch(tmp_path))
    assert [badge(shown).word, look()] == ["training", "training"]
    clock.advance(39)
    assert [badge(screen.snapshot(key)).word, look()] == ["training", "training"]
    clock.advance(30)
    assert [badge(screen.snapshot(key)).word, look()] == ["silent", "silent"], "three times as long as before"
    other = make_home(tmp_path / "other")
    assert look(other) == "external", "nobody there knows how long its pauses are"
    clock.advance(600)
    assert [look(other), look()] == ["silent", "silent"]
    write(1, 2, 3, 4)
    assert [look(other), look()] == ["training", "training"]


def test_what_was_seen_before_the_machine_started_again_or_on_another_one(
    home: Home, tmp_path: Path, clock: FakeClock, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = w.write(tmp_path / "offline-run-a" / "run-a.wandb", [w.run("a", {}), *map(row, range(4))])
    os.utime(path, (clock() - 20, clock() - 20))

    def look(boot: str) -> str:
        fresh = Monitor(
            home, clock=clock, monotonic=clock.monotonic, table=system_process_table(), boot_id=boot, availability=None
        )
        return badge(fresh.snapshot(fresh.watch(path.parent))).word

    writer = begin(path, "ab")
    assert look("one") == "training"
    end(writer)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("os.uname", lambda: os.uname_result(("Linux", "another", "", "", "")))
        assert look("one") == "silent", "processes of another machine that shares the home cannot be seen"
    assert look("two") == "lost"
    (home.state / "cache" / "writers.json").write_text('{"a": [1], "b": {"writers": 3}}')
    assert look("two") == "silent", "nobody knows who wrote it"


def test_one_look_at_times_of_now_is_enough_and_at_those_of_another_clock_is_not(
    home: Home, tmp_path: Path, clock: FakeClock
) -> None:
    """A database is open in no process between two writes; what it says itself is true of a copy too."""

    def look(*ages: float) -> str:
        rows = [w.history(step, {"train/loss": 0.5}, clock() - age) for step, age in enumerate(ages)]
        path = w.write(tmp_path / "offline-run-a" / "run-a.wandb", [w.run("a", {}), *rows])
        os.utime(path, (clock(), clock()))
        fresh = make_monitor(home, clock, system_process_table())
        return badge(fresh.snapshot(fresh.watch(path.parent))).word

    assert look(40, 30, 20, 10) == "training"
    assert look(60, 50, 40, 35) == "external"
    assert look(200, 150, 100, 50) == "training", "half a minute is its usual pause"
    assert look(40, 30, 20, -100) == "external", "the clock of its machine goes wrong"
    assert look(1000, 990, 980) == "external", "a copy of what was written long ago"
