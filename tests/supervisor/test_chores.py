"""What is done now and then while a trainer runs, and the command line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpstui.supervisor import disk_space
from mpstui.supervisor.disk_space import LogLimit
from mpstui.supervisor.journal import Journal
from mpstui.supervisor.machine import Clock
from mpstui.wire.records import Status

from .kit import SUPERVISOR, Run

MakeRun = Callable[..., Run]


def chores_of(run: Run, now: list[float]) -> tuple[LogLimit, Journal]:
    clock = Clock(monotonic=lambda: now[0])
    journal = Journal(run.dir, Status(run.dir.run, "running", 1, 0.0), clock)
    return LogLimit(run.dir, run.spec, clock), journal


def fill(run: Run, size: int) -> None:
    output = run.dir.attempt(1).output
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as file:
        file.write(b"x" * size)


def test_a_log_past_its_limit_is_trimmed_and_an_event_says_so(make_run: MakeRun) -> None:
    run, now = make_run("", max_log_bytes=1 << 20), [10.0]
    chores, journal = chores_of(run, now)
    fill(run, 3 << 20)
    chores.keep(journal, 1)
    fill(run, 3 << 20)
    chores.keep(journal, 1)  # not yet
    told = [event for event in run.events("note") if "output.log" in event["text"]]
    assert len(told) == 1
    now[0] += 5.0
    chores.keep(journal, 1)
    assert run.dir.attempt(1).output.stat().st_size == 6 << 20


def test_where_nothing_can_be_cut_it_is_said_once(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(path: Path, limit: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(disk_space, "trim", cannot)
    run, now = make_run(""), [10.0]
    chores, journal = chores_of(run, now)
    for _ in range(3):
        now[0] += 5.0
        chores.keep(journal, 1)
    told = [event["text"] for event in run.events("note") if "output.log" in event["text"]]
    assert len(told) == 1
    assert "cannot free a part of a file" in told[0]


@pytest.mark.parametrize("arguments", [[], ["/no/such/folder"], ["a", "b"]])
def test_wrong_use_is_said_with_2(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SUPERVISOR), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "RUN_DIR" in done.stderr


def test_what_no_supervisor_calls_is_loaded_when_it_is_called() -> None:
    code = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('started', sys.argv[1])\n"
        "spec.loader.exec_module(importlib.util.module_from_spec(spec))\n"
        "import pathlib, subprocess\n"
        "print(sorted({'ipaddress', 'locale', 'urllib.parse'} & set(sys.modules)))\n"
        "print(pathlib.Path('/a b').as_uri(), subprocess.run(['echo', 'x'], capture_output=True, text=True).stdout)\n"
        "import locale, urllib.parse\n"
        "print(locale.getlocale.__name__, urllib.parse.quote('a b'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(SUPERVISOR)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["[]", "file:///a%20b x", "", "getlocale a%20b"]


def test_the_supervisor_is_small_and_loads_nothing_later(make_run: MakeRun) -> None:
    code = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "import mpstui.supervisor.main\n"
        "print(*sorted(name for name in sys.modules if name.partition('.')[0] in ('mpstui', 'psutil', 'textual')))"
    )
    root = str(SUPERVISOR.parents[2])
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, root], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    files = {path.stem for path in SUPERVISOR.parent.glob("*.py")} - {"__init__", "__main__"}
    assert {f"mpstui.supervisor.{name}" for name in files} <= modules
    assert {name.split(".")[1] for name in modules if "." in name} == {"supervisor", "wire"}
    run = make_run("import time; print('up', flush=True); time.sleep(30)")
    run.start()
    run.wait_output("up")
    supervisor = run.wait_phase("running").supervisor
    assert supervisor is not None
    if sys.platform.startswith("linux"):
        pages = int(Path(f"/proc/{supervisor[0]}/statm").read_text().split()[1])
        assert pages * os.sysconf("SC_PAGE_SIZE") < 18 << 20
    run.wait_ack(run.ask("kill"))
