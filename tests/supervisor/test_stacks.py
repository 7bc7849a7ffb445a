"""A request for stacks: real processes that hang in C, several ranks, programs that cannot tell, py-spy replaced."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from mpstui.wire.liveness import ProcessIdentity

from .kit import Run, alive, python, wait_for

MakeRun = Callable[..., Run]

ROOT = Path(__file__).parents[2]
LISTENS = f"""
import ctypes, os, subprocess, sys, time
sys.path.append({str(ROOT)!r})
from mpstui.agent.reporter import listen_for_stacks, place_of
def hang():
    listen_for_stacks(*place_of(os.environ))
    print("up", os.getpid(), flush=True)
    while True:
        ctypes.PyDLL(None).sleep(1000)  # keeps the interpreter's lock: no Python code of this process runs again
"""
RANKS = (
    LISTENS
    + """
if "--rank" not in sys.argv:
    again = [sys.executable, "-I", "-S", "-u", "-c", sys.argv[1], sys.argv[1], "--rank"]
    for _ in range(2):
        subprocess.Popen(again, start_new_session=True)
    while True:
        time.sleep(0.05)
hang()
"""
)
SLEEPER = "import time; print('up', flush=True)\nwhile True: time.sleep(0.05)"


def dumped(run: Run) -> tuple[bool, str]:
    """The answer to a request for stacks."""
    ack = run.wait_ack(run.ask("dump_stacks"))
    return ack.ok, ack.text


def leader(run: Run) -> ProcessIdentity:
    found = run.status.trainer
    assert found is not None
    return found


def test_a_trainer_that_hangs_in_c_tells_where(make_run: MakeRun) -> None:
    run = make_run(LISTENS + "hang()")
    run.start()
    run.wait_output("up")
    begin = len(run.output())
    ok, text = dumped(run)
    assert ok, text
    assert text == f"the stacks of pid {leader(run).pid} are in the output, line 2 (from byte {begin:,})"
    assert re.search(r"^Current thread 0x.*\n.*line 9 in hang\n", run.output()[begin:], re.MULTILINE)
    assert dumped(run)[0]
    assert alive(leader(run))
    run.wait_ack(run.ask("kill"))


def test_every_rank_tells(make_run: MakeRun) -> None:
    run = make_run(argv=[*python(RANKS), RANKS])
    run.start()
    wait_for(lambda: run.output().count("\n") == 2, "two ranks")
    ok, text = dumped(run)
    assert ok, text
    assert text.startswith("the stacks of 2 processes are in the output, line ")
    assert run.output().count("Current thread 0x") == 2
    run.wait_ack(run.ask("kill"))


def test_a_program_that_cannot_tell_is_left_alone(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    run = make_run(SLEEPER)
    run.start()
    run.wait_output("up")
    ok, text = dumped(run)
    assert not ok
    assert text.startswith("this program does not dump its stacks by itself, and py-spy is not on PATH: `pip install")
    pid, start = leader(run)
    # Somebody who had this pid before it, and a signal that would end it.
    run.dir.attempt(1).stack_signal.write_text(f"{int(signal.SIGUSR1)} {pid} {start + 1}\nno numbers\n9 9\n")
    assert not dumped(run)[0]
    assert alive(leader(run))
    run.wait_ack(run.ask("kill"))


@pytest.mark.parametrize(
    ("script", "ok", "text"),
    [
        ('echo "Thread of $3"', True, r"the stacks of pid \d+ are in the output, line 2 \(from byte 3\)"),
        ("echo 'Permission Denied' >&2; exit 1", False, "py-spy could not: Permission Denied"),
    ],
)
def test_py_spy_tells_where_it_is_installed(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, ok: bool, text: str
) -> None:
    (tmp_path / "py-spy").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "py-spy").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    run = make_run(SLEEPER)
    run.start()
    run.wait_output("up")
    found = dumped(run)
    assert found[0] == ok
    assert re.fullmatch(text, found[1])
    assert ("Thread of" in run.output()) == ok
    run.wait_ack(run.ask("kill"))


def test_every_request_is_answered_also_when_the_training_ends(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "py-spy").write_text("#!/bin/sh\n/bin/sleep 2\n")
    (tmp_path / "py-spy").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    run = make_run(SLEEPER)
    run.start()
    run.wait_output("up")
    asked = [run.ask("dump_stacks") for _ in range(3)]
    run.wait_ack(run.ask("kill"))
    answers = [run.wait_ack(request) for request in asked]
    assert [ack.by for ack in answers] == ["supervisor"] * 3
    assert answers[-1].text == "the training has ended"


def test_an_earlier_attempt_has_no_stacks(make_run: MakeRun) -> None:
    run = make_run(SLEEPER)
    run.start()
    run.wait_output("up")
    assert run.wait_ack(run.ask("restart", source="scratch")).ok
    run.wait_output("up", 2)
    ack = run.wait_ack(run.ask("dump_stacks", attempt=1))
    assert (ack.ok, ack.text) == (False, "attempt 1 has ended; the run is at attempt 2 now")
    run.wait_ack(run.ask("kill", attempt=2))


def test_a_paused_trainer_is_to_be_continued_first(make_run: MakeRun) -> None:
    run = make_run(LISTENS + "hang()")
    run.start()
    run.wait_output("up")
    run.wait_ack(run.ask("pause"))
    assert dumped(run) == (False, "it is paused: continue it first")
    run.wait_ack(run.ask("continue"))
    assert dumped(run)[0]
    run.wait_ack(run.ask("kill"))


def test_a_program_that_uses_the_signal_keeps_it(make_run: MakeRun) -> None:
    code = "import signal\nsignal.signal(signal.SIGURG, lambda number, frame: print('mine', flush=True))\n"
    run = make_run(code + LISTENS + "listen_for_stacks(*place_of(os.environ)); print('up', flush=True)\n" + SLEEPER)
    run.start()
    run.wait_output("up")
    assert not run.dir.attempt(1).stack_signal.exists()
    run.wait_ack(run.ask("kill"))
