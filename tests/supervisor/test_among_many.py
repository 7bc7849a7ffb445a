"""Supervisors that come from one process are as independent of it, and of each other, as those started alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpstui.core.launching import supervisors
from mpstui.core.launching.supervisors import Supervisors
from mpstui.core.model.errors import OperationError
from mpstui.supervisor.family import linux_supervises
from mpstui.wire import liveness, queues
from mpstui.wire.records import QueueRule

from .kit import SUPERVISOR, Run, alive, decide, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each supervisor is started by itself")
MakeRun = Callable[..., Run]
WAITS = "import os, time\nprint('up', os.environ['WORD'], flush=True)\ntime.sleep(600)"


def start_together(*runs: Run, environs: Mapping[str, str] | None = None) -> None:
    with Supervisors(runs[0].dir.path.parent) as together:
        for run in runs:
            together.start(run.dir, {**os.environ, "WORD": (environs or {}).get(run.dir.run, "one")})


def pid_of(run: Run) -> int:
    supervisor = run.wait_phase("running").supervisor
    assert supervisor is not None
    return supervisor.pid


def test_each_has_a_session_a_parent_descriptors_and_a_command_line_of_its_own(make_run: MakeRun) -> None:
    runs = [make_run(WAITS, name=name) for name in ("a", "a-much-longer-name", "b")]
    start_together(*runs)
    pids = [pid_of(run) for run in runs]
    names = {str(run.dir.path) for run in runs}
    for run, pid in zip(runs, pids, strict=True):
        found = liveness.system_process_table().find(pid)
        assert found is not None
        assert (found.session, found.group, found.parent in pids) == (pid, pid, False)
        descriptors = Path(f"/proc/{pid}/fd")
        files = {str(entry.readlink()) for entry in descriptors.iterdir()}
        assert {name for name in files if any(name.startswith(f"{other}/") for other in names)} <= {
            str(run.dir.supervisor_log),
            str(run.dir.supervisor_lock),
            str(run.dir.requests),
        }
        shown = [str((descriptors / number).readlink()) for number in "012"]
        assert shown == [os.devnull, os.devnull, str(run.dir.supervisor_log)]
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        assert (words[-1], os.path.normpath(words[-2].decode())[-len(str(run.dir.path)) :]) == (b"", str(run.dir.path))
        assert words[1:-2] == [b"-I", b"-S", os.fsencode(SUPERVISOR)]
        assert linux_supervises(pid)


def test_the_end_of_one_is_not_the_end_of_another(make_run: MakeRun) -> None:
    first, second = make_run(WAITS), make_run("print('up')\nraise SystemExit(3)")
    start_together(first, second)
    assert second.wait_exit().code == 3
    second.wait_unsupervised()
    os.kill(pid_of(first), signal.SIGKILL)
    first.wait_unsupervised()
    trainer = first.status.trainer
    assert trainer is not None
    assert alive(trainer)
    start_together(first)
    assert first.wait_ack(first.ask("stop")).ok
    assert first.wait_exit().requested_by == "test@here:1"


def test_each_program_gets_the_environment_that_was_meant_for_it(make_run: MakeRun) -> None:
    runs = [make_run(WAITS) for _ in range(3)]
    start_together(*runs, environs={runs[1].dir.run: "another"})
    for run, word in zip(runs, ("one", "another", "one"), strict=True):
        run.wait_output(f"up {word}\n")


def test_they_stand_in_the_line_as_they_were_named(make_run: MakeRun) -> None:
    runs = [make_run(WAITS, queue=QueueRule(group="mps")) for _ in range(6)]
    decide(runs[0], "mps", paused=True)
    start_together(*reversed(runs))
    assert list(queues.read(queues.files_of(runs[0].dir, "mps")).order) == [run.dir.run for run in reversed(runs)]


def test_nothing_is_lost_when_the_process_they_come_from_is_killed(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, processes = [make_run(WAITS) for _ in range(4)], list[subprocess.Popen[bytes]]()
    popen = subprocess.Popen

    def noted(*arguments: object, **named: object) -> subprocess.Popen[bytes]:
        processes.append(popen(*arguments, **named))  # type: ignore[call-overload]
        return processes[-1]

    monkeypatch.setattr(supervisors, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": noted}))
    with Supervisors(runs[0].dir.path.parent) as together:
        for number, run in enumerate(runs):
            together.start(run.dir, {**os.environ, "WORD": "one"})
            if number == 1:
                runs[0].wait_output("up")
                processes[0].kill()
                processes[0].wait()
    for run in runs:
        run.wait_output("up one\n")
        wait_for(partial(run.events, "launched"), "the event, which may follow the output")
        assert len(run.events("launched")) == 1


def test_one_that_cannot_be_supervised_is_told_of_and_keeps_no_other(make_run: MakeRun) -> None:
    broken, whole = make_run(WAITS), make_run(WAITS)
    broken.dir.spec.unlink()
    with pytest.raises(OperationError, match=rf"the supervisor of {broken.dir.run} gave up: .*spec.json is missing"):
        start_together(broken, whole)
    whole.wait_output("up one\n")


def test_a_name_that_breaks_off_is_nobody(make_run: MakeRun) -> None:
    run = make_run(WAITS)
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SUPERVISOR), "--each", "/"],
        input=os.fsencode(run.dir.path),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, run.dir.status.exists()) == (0, b"", False)
