"""A long log read by a process of its own: the same curves as when it is read here, whatever happens to either."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.core.follow.budget import Budget
from mpstui.core.runs import backlog_process
from mpstui.core.runs.backlog import BacklogProcess, BacklogProcesses, Owed
from mpstui.core.runs.backlog_process import NEAR_BYTES, Outlet, read_backlog
from mpstui.core.runs.carried import unpack
from mpstui.core.runs.foreign import ForeignPoints
from mpstui.core.runs.monitor import Monitor
from tests.core.runs.build import NOW, FakeClock, make_home
from tests.waiting import wait_until

SIZE = 3 * NEAR_BYTES


def plain(i: int) -> str:
    return f"step={i} loss={9 / (1 + i % 997):.4f} lr=3e-4 gnorm={i % 991 / 100:.2f} and some words to fill the line\n"


def epochs_with_evaluations(i: int) -> str:
    epoch, step = i // 5000, i % 5000
    loss = "nan" if i == 12_345 else f"{2 / (1 + i % 1000):.5f}"
    evaluation = f"Epoch {epoch}: val_loss={1 / (1 + epoch):.4f} val_acc={epoch}.25\n" if step == 4999 else ""
    return f"Epoch [{epoch}/90] Step [{step}/5000] loss: {loss}, lr: {1e-3 / (1 + epoch):.6f}\n{evaluation}"


def runs_after_each_other(i: int) -> str:
    return f"step {i % 20_000} | loss {3 - i % 20_000 / 10_000:.4f} | tok/s {41_000 + i % 900}\n"


def write(path: Path, line: Callable[[int], str], size: int = SIZE, start: int = 0) -> int:
    number, written = start, 0
    with path.open("a") as file:
        while written < size:
            written += file.write(line(number))
            number += 1
    return number


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    write(path, plain)
    return path


@pytest.fixture
def processes() -> BacklogProcesses:
    return BacklogProcesses(least_bytes=NEAR_BYTES, cores=2)


def points_of(path: Path) -> ForeignPoints:
    return ForeignPoints(path, lambda: NOW)


def read_alone(path: Path) -> ForeignPoints:
    points = points_of(path)
    points.look()
    points.read(Budget(60))
    assert points.complete
    return points


def read_to_the_end(points: ForeignPoints) -> None:
    def complete() -> bool:
        points.look()
        points.read(Budget(0.05))
        return points.complete

    wait_until(complete, what="the end of the log")


def delegated(path: Path, start: BacklogProcesses) -> tuple[ForeignPoints, BacklogProcess]:
    points, begun = points_of(path), list[BacklogProcess]()

    def noting(owed: Owed, memory: Callable[[], Mapping[str, Any]]) -> BacklogProcess | None:
        begun.extend(filter(None, [start(owed, memory)]))
        return begun[0] if begun else None

    points.delegate(noting)
    return points, begun[0]


def same(points: ForeignPoints, others: ForeignPoints) -> bool:
    return _told(points) == _told(others)


def _told(points: ForeignPoints) -> str:
    """To twelve digits: what sums are rounded to depends on the blocks that were read."""
    return re.sub(
        r"\d+\.\d+(?:e-?\d+)?", lambda found: f"{float(found[0]):.12g}", repr((points.views(), points.newest))
    )


@pytest.mark.parametrize("line", [plain, epochs_with_evaluations, runs_after_each_other])
def test_it_is_the_same_as_reading_here(
    tmp_path: Path, processes: BacklogProcesses, line: Callable[[int], str]
) -> None:
    path = tmp_path / "train.log"
    write(path, line)
    points, process = delegated(path, processes)
    assert points.owed_here_bytes == 0 < points.owed_bytes
    read_to_the_end(points)
    assert same(points, read_alone(path))
    assert process.over
    assert points.views()["loss"].count > 10_000
    assert not psutil.pid_exists(process.pid)


def test_what_is_added_meanwhile_is_read_too(log: Path, processes: BacklogProcesses) -> None:
    points, _ = delegated(log, processes)
    write(log, plain, size=NEAR_BYTES, start=200_000)
    read_to_the_end(points)
    with log.open("a") as file:
        file.write("step=999999 loss=0.5 lr=3e-4 gnorm=0.25 and some words to fill the line\n")
    read_to_the_end(points)
    assert points.newest["step"] == 999_999
    alone = read_alone(log)
    assert {n: (v.count, v.minimum, v.maximum, v.last) for n, v in points.views().items()} == {
        n: (v.count, v.minimum, v.maximum, v.last) for n, v in alone.views().items()
    }


def test_it_can_begin_anywhere(log: Path, processes: BacklogProcesses) -> None:
    points = points_of(log)
    points.look()
    points.read(Budget(0))
    assert 0 < points.owed_bytes < SIZE
    points.delegate(processes)
    assert points.owed_here_bytes == 0
    read_to_the_end(points)
    assert same(points, read_alone(log))


def test_one_that_dies_leaves_the_reading_to_us(log: Path, processes: BacklogProcesses) -> None:
    points, process = delegated(log, processes)
    psutil.Process(process.pid).kill()
    read_to_the_end(points)
    assert same(points, read_alone(log))


@pytest.mark.parametrize(
    "words", ["raise SystemExit(1)", "print('nonsense ' * 9, flush=True); input()", "import time; time.sleep(60)"]
)
def test_one_that_talks_nonsense_or_nothing_costs_no_point(tmp_path: Path, log: Path, words: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import sys\nsys.stdin.read\n{words}\n")
    points, process = delegated(log, BacklogProcesses(least_bytes=NEAR_BYTES, cores=2, program=program))
    if "sleep" in words:
        points.read(Budget(0))
        process.close()
    read_to_the_end(points)
    assert same(points, read_alone(log))


def test_a_message_that_cannot_be_understood_ends_it(tmp_path: Path, log: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, time\nos.write(1, (9).to_bytes(8, 'little') + b'no memory')\ntime.sleep(60)\n")
    points, process = delegated(log, BacklogProcesses(least_bytes=NEAR_BYTES, cores=2, program=program))
    read_to_the_end(points)
    assert same(points, read_alone(log))
    assert not psutil.pid_exists(process.pid)


def test_a_log_that_is_written_anew_is_read_anew(log: Path, processes: BacklogProcesses) -> None:
    points, process = delegated(log, processes)
    log.write_text("step=1 loss=0.5\nstep=2 loss=0.25\nstep=3 loss=0.125\n")
    read_to_the_end(points)
    assert points.views()["loss"].count == 3
    assert not psutil.pid_exists(process.pid)


def test_a_log_that_is_replaced_is_read_anew(log: Path, processes: BacklogProcesses) -> None:
    points, process = delegated(log, processes)
    other = log.with_name("other.log")
    write(other, runs_after_each_other)
    other.replace(log)
    read_to_the_end(points)
    assert same(points, read_alone(log))
    assert not psutil.pid_exists(process.pid)


def test_there_is_one_at_a_time(log: Path, processes: BacklogProcesses) -> None:
    first, process = delegated(log, processes)
    second = points_of(log)
    second.delegate(processes)
    assert second.owed_here_bytes == second.owed_bytes > 0
    process.close()
    second.delegate(processes)
    assert second.owed_here_bytes == 0
    for points in (first, second):
        read_to_the_end(points)


def test_a_short_backlog_or_a_single_core_is_not_worth_it(log: Path) -> None:
    for start in (BacklogProcesses(least_bytes=2 * SIZE, cores=8), BacklogProcesses(least_bytes=1, cores=1)):
        points = points_of(log)
        points.delegate(start)
        assert points.owed_here_bytes == points.owed_bytes > 0


def test_a_file_that_is_no_console_output_is_read_here(tmp_path: Path, processes: BacklogProcesses) -> None:
    table = tmp_path / "metrics.csv"
    table.write_text("epoch,step,train_loss\n" + "".join(f"0,{i},1.5\n" for i in range(200_000)))
    points = points_of(table)
    points.delegate(processes)
    assert points.owed_here_bytes == points.owed_bytes > NEAR_BYTES


def test_utf_16_is_read_here_in_the_end(tmp_path: Path, processes: BacklogProcesses) -> None:
    path = tmp_path / "train.log"
    path.write_bytes("".join(map(plain, range(9000))).encode("utf-16"))
    points = points_of(path)
    points.delegate(processes)
    read_to_the_end(points)
    assert same(points, read_alone(path))


def test_it_ends_when_nobody_holds_it(log: Path, processes: BacklogProcesses) -> None:
    points, process = delegated(log, processes)
    pid = process.pid
    del points, process
    wait_until(lambda: not psutil.pid_exists(pid), what="the end of the process")


def test_it_ends_with_the_program_that_asked(tmp_path: Path) -> None:
    path = tmp_path / "endless.log"
    write(path, plain, size=24 * NEAR_BYTES)
    script = (
        "import sys, time; from pathlib import Path; from mpstui.core.runs.backlog import BacklogProcesses\n"
        "from mpstui.core.runs.foreign import ForeignPoints\n"
        "points = ForeignPoints(Path(sys.argv[1]), time.time)\n"
        "points.delegate(BacklogProcesses(least_bytes=1, cores=2))\n"
        "print(points._backlog.pid, flush=True); time.sleep(60)"
    )
    asking = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert asking.stdout is not None
    pid = int(asking.stdout.readline())
    assert psutil.Process(pid).nice() in (0, backlog_process.NICENESS)
    asking.kill()
    asking.communicate()
    wait_until(lambda: not lives(pid), what="the end of the process")


def lives(pid: int) -> bool:
    """An orphan that has ended stays as a zombie where the first process of a container collects none."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_it_tells_now_and_then_and_never_waits_for_a_slow_listener(log: Path) -> None:
    ours, theirs = os.pipe()
    moments = iter(range(1000))
    points = points_of(log)
    points.memory()
    outlet = Outlet(theirs)
    while select.select([], [theirs], [], 0)[1]:
        os.write(theirs, bytes(1 << 12))
    outlet.tell(b"what nobody takes")
    assert not outlet.flush()
    while select.select([ours], [], [], 0)[0]:
        os.read(ours, 1 << 16)
    assert outlet.flush()
    assert os.read(ours, 1 << 16).endswith(b"what nobody takes")
    told: list[float] = []
    outlet.tell = lambda message: told.append(unpack(message)["file"]["read_bytes"])  # type: ignore[method-assign]
    read_backlog(points, outlet, lambda: float(next(moments)))
    assert told == sorted(told)
    assert len(told) > 3
    assert SIZE - NEAR_BYTES <= told[-1] < SIZE
    os.close(ours)
    os.close(theirs)


def test_it_ends_when_nobody_listens(log: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    points = points_of(log)
    points.memory()
    with pytest.raises(BrokenPipeError):
        read_backlog(points, Outlet(theirs))
    os.close(theirs)


def test_the_monitor_has_the_run_in_focus_read_elsewhere(
    tmp_path: Path, log: Path, processes: BacklogProcesses
) -> None:
    monitor = Monitor(make_home(tmp_path), clock=FakeClock(), backlogs=processes)
    key = monitor.watch(log)
    monitor.refresh()
    assert monitor.read_on(key, 0.0) > 0
    (shown,) = monitor.refresh(key)
    assert monitor.read_on(key, 0.0) == 0
    assert shown.loading
    assert 0 <= shown.series["loss"].read_share < 1 if shown.series else True
    whole = monitor.snapshot(key)
    assert not whole.loading
    assert whole.series["loss"].count == read_alone(log).views()["loss"].count
    assert whole.series["loss"].read_share == 1.0


def test_its_program_needs_the_standard_library_alone() -> None:
    program = str(backlog_process.__file__)
    code = f"import runpy, sys; runpy.run_path({program!r}, run_name='imported'); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded <= {*sys.stdlib_module_names, "mpstui", "__main__"}
