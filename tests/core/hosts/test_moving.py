"""Moving runs: two homes on this machine, a far process for each, real trainings that save, end and resume."""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from mpstui.core.hosts.continuing import plan_here
from mpstui.core.hosts.line import HostError
from mpstui.core.hosts.moving import MovePlan
from mpstui.core.hosts.progress import Cancelled, Progress
from mpstui.core.hosts.talk import Place
from mpstui.core.launching.actions import Actions
from mpstui.core.model.errors import OperationError
from mpstui.core.model.snapshot import State
from mpstui.core.sharing.export import table_of
from tests.core.hosts.machines import STEPS, Machines, as_kind
from tests.core.hosts.moves import Died, break_line, check, move_once, tried, watched
from tests.ssh_lab import SshLab
from tests.waiting import wait_until


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    made = Machines(tmp_path)
    yield made
    made.end()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Machines, str]:
    """A run that trains to its end where it is."""
    found = Machines(tmp_path_factory.mktemp("unmoved"))
    found.allow(STEPS + 1)
    return found, found.launch()


@pytest.fixture(scope="module")
def unmoved(alone: tuple[Machines, str]) -> list[float]:
    machines, run = alone
    return machines.final("a", run)


def exported(machines: Machines, run: str) -> list[Any]:
    """Rows of ``export``, without when each was measured."""
    table = table_of(machines.seen("a", run))
    return [[value for name, value in zip(table.names, row, strict=True) if name != "time"] for row in table.rows]


def test_a_run_goes_there_over_ssh_and_back_and_ends_as_if_it_had_never_moved(
    tmp_path: Path, ssh_lab: SshLab, unmoved: list[float], alone: tuple[Machines, str]
) -> None:
    machines = Machines(tmp_path, ssh_lab)
    run = machines.launch()
    machines.trains("a", run, 20)
    before = machines.look("a", run)
    assert before is not None
    cut_while_it_arrives(machines, run)
    there = machines.mover()
    planned = there.plan(run)
    assert isinstance(planned, MovePlan)
    assert (planned.active, planned.code_files) == (True, 0), "its code has arrived"
    assert planned.step in {one.step for one in before.checkpoints}  # nobody knows that it saves when it is ended
    answer = there.carry_out(planned)
    again = there.plan(run)  # the same command once more starts nothing
    assert isinstance(again, dict)
    assert again["begun"]
    there.close()
    assert (answer["run"], answer["attempt"]) == (run, 3)
    assert answer["step"] >= 20
    seen = machines.look("a", run)
    assert seen is not None
    assert (seen.state, seen.moved_to) == (State.STOPPED, "b")
    with pytest.raises(OperationError, match="moved to b"):
        Actions(os.environ).restart(seen)
    machines.allow(40)
    machines.trains("b", run, 40)
    back = machines.mover("b", "a")
    planned = back.plan(run)
    assert isinstance(planned, MovePlan)
    assert back.carry_out(planned)["attempt"] == 4
    back.close()
    machines.end()
    assert machines.final("a", run) == unmoved
    wait_until(lambda: (seen := machines.look("a", run)) is not None and seen.state is State.FINISHED)
    home = machines.look("a", run)
    assert home is not None
    assert (home.moved_to, home.attempts) == (None, 4)
    assert exported(machines, run) == exported(*alone), "row by row"
    moves = [one.text for one in home.events if one.event == "moved"]
    assert moves == ["leaves for b", "leaves for b", "arrived from a", "leaves for a", "arrived from b"]
    assert {one.step for one in before.checkpoints} < {one.step for one in home.checkpoints}, "what stayed is there"
    ended = machines.mover()
    with pytest.raises(OperationError, match="has finished"):
        ended.plan(run)
    ended.close()


def cut_while_it_arrives(machines: Machines, run: str) -> None:
    """Kill the real line while the run's files are on it, for good: it goes on where it was, and is not there."""
    assert machines.lab is not None
    signal_lines = machines.lab.signal

    class Cut(Place):
        def ask(self, what: str, fields: Any, send: Any = None, receive: Any = None) -> dict[str, Any]:
            def send_and_cut(out: BinaryIO) -> None:
                signal_lines(signal.SIGKILL)
                send(out)

            return super().ask(what, fields, send_and_cut if what == "settle" else send, receive)

    def gone() -> Place:
        raise HostError("b", "unreachable", "it does not answer")

    mover = machines.mover(wrap=as_kind(Cut))
    mover._opened_if_wanted = gone  # type: ignore[method-assign]
    planned = mover.plan(run)
    assert isinstance(planned, MovePlan)
    with pytest.raises(OperationError, match="b: it does not answer; it continues where it was"):
        mover.carry_out(planned)
    mover.close()
    wait_until(lambda: machines.alive("a", run), what="its going on where it was")
    assert not (machines.homes["b"].runs / run).exists()


class Watched(Place):
    """Does something in the middle of the files, and counts what is handed over."""

    at_half: Callable[[], object] = lambda: None
    passed = 0

    def ask(self, what: str, fields: Any, send: Any = None, receive: Any = None) -> dict[str, Any]:
        class Counted(io.BytesIO):
            def __init__(self, out: BinaryIO) -> None:
                super().__init__()
                self.out = out

            def write(self, data: Any) -> int:
                Watched.passed += len(data)
                if Watched.passed > LARGE_BYTES // 2:
                    at_half, Watched.at_half = Watched.at_half, lambda: None
                    at_half()
                return self.out.write(data)

        count = (lambda out: send(Counted(out))) if what == "settle" else send
        return super().ask(what, fields, count, receive)


LARGE_BYTES = 24 << 20
"""Much more than ssh has on the line."""


@pytest.mark.parametrize("begins_anew", [False, True])
def test_files_that_were_cut_go_on_where_they_were(tmp_path: Path, ssh_lab: SshLab, *, begins_anew: bool) -> None:
    machines, heard = Machines(tmp_path, ssh_lab), list[Progress]()
    run = machines.launch()
    machines.trains("a", run)
    if begins_anew:
        Actions(os.environ).send(machines.seen("a", run), "stop")
        wait_until(lambda: not machines.alive("a", run), what="its end")
    large = machines.homes["a"].runs / run / "large.bin"
    large.write_bytes(random.Random(3).randbytes(LARGE_BYTES))
    Watched.passed, Watched.at_half = 0, lambda: ssh_lab.signal(signal.SIGKILL)
    if begins_anew:  # the program that moves it dies as well
        dies = machines.mover(wrap=as_kind(Watched))
        dies._opened_if_wanted = died  # type: ignore[method-assign]
        with tried(dies):
            move_once(dies, run)
        assert not (machines.homes["b"].runs / run).exists()
    mover = machines.mover(wrap=as_kind(Watched))
    planned = mover.plan(run)
    assert isinstance(planned, MovePlan)
    mover.carry_out(planned, heard.append)
    mover.close()
    assert LARGE_BYTES <= Watched.passed < 1.4 * LARGE_BYTES, "most of the first half was not sent twice"
    assert (machines.homes["b"].runs / run / "large.bin").read_bytes() == large.read_bytes()
    sent = [one for one in heard if one.doing == "its files are sent"]
    assert any(one.done_bytes > LARGE_BYTES // 4 for one in sent if one.rate is None), "told what had arrived before"
    assert max(one.done_bytes for one in sent) > 0.9 * LARGE_BYTES
    assert all(one.done_bytes <= one.total_bytes for one in sent)
    assert [one.can_cancel for one in heard if one.doing.startswith("b takes it over")] == [False]
    machines.end()


def died() -> Place:
    raise Died


def test_a_line_that_was_cut_for_a_while_moves_no_time(machines: Machines) -> None:
    """How the clocks differ is asked of both at once, however long ago the files were listed."""
    run, told = machines.launch(), list[float]()
    machines.trains("a", run, 20)

    class Late(Place):
        def ask(self, what: str, fields: Any, *rest: Any, **more: Any) -> dict[str, Any]:
            if what == "lacks" and not told:
                told.append(0.0)
                until = time.monotonic() + 4.0
                wait_until(lambda: time.monotonic() > until, what="a while in which nothing travels")
                raise HostError(self.host, "cut", "connection lost")
            if what == "settle":
                told.append(fields["ahead"])
            return super().ask(what, fields, *rest, **more)

    mover = machines.mover(wrap=as_kind(Late))
    planned = mover.plan(run)
    assert isinstance(planned, MovePlan)
    mover.carry_out(planned)
    mover.close()
    assert len(told) == 2
    assert told[1] < 3.5


@pytest.mark.parametrize("moment", ["it saves and ends", "its files are sent"])
def test_a_move_that_is_cancelled_leaves_the_run_going_on(
    machines: Machines, unmoved: list[float], moment: str
) -> None:
    def cancel_at_once(now: Progress) -> None:
        if now.doing == "its files are sent":
            seen = machines.seen("a", run)
            assert seen.state is State.MOVING
            with pytest.raises(OperationError, match="it is being moved to b"):
                Actions(os.environ).restart(seen)
        if now.doing == moment:
            mover.cancel()

    run = machines.launch()
    machines.trains("a", run)
    with watched(machines, run) as twice:
        mover = machines.mover()
        planned = mover.plan(run)
        assert isinstance(planned, MovePlan)
        with pytest.raises(Cancelled, match="was not moved: it was cancelled; it continues where it was"):
            mover.carry_out(planned, cancel_at_once)
        mover.close()
        wait_until(lambda: machines.alive("a", run), what="its going on where it was")
        machines.trains("a", run, 20)
        assert not (machines.homes["b"].runs / run).exists()
        with contextlib.closing(machines.mover()) as again:
            move_once(again, run)
        machines.allow(STEPS + 1)
        assert machines.final("b", run) == unmoved
    assert not twice


def test_ctrl_c_waits_until_the_run_goes_on_where_it_was(machines: Machines) -> None:
    run = machines.launch()
    machines.trains("a", run)
    here, there = (f"local:{machines.homes[name].state}" for name in ("a", "b"))
    command = [sys.executable, "-m", "mpstui", "move", f"{here}:{run}", "--to", there, "--yes"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        with machines.endless():
            while "it saves and ends" not in (line := process.stderr.readline()):
                assert line, "it ended"
            wait_until(lambda: machines.seen("a", run).state is State.STOPPING, what="its being asked to end")
            process.send_signal(signal.SIGINT)
            assert process.stderr.readline() == ("it stays where it was, and continues there as soon as it has ended\n")
        rest = process.stderr.read()
    assert process.returncode == 130
    assert f"{run} was not moved: it was cancelled; it continues where it was" in rest
    assert "Traceback" not in rest
    wait_until(lambda: machines.alive("a", run), what="its going on where it was")
    assert machines.seen("a", run).attempt == 2
    assert not (machines.homes["b"].runs / run).exists()


def test_what_cannot_go_on_there_is_refused_before_anything_changes(machines: Machines) -> None:
    run, stubborn = machines.launch(), machines.launch(resumes=False)
    machines.trains("a", run)
    machines.trains("a", stubborn)
    mover, there = machines.mover(), machines.homes["b"].runs / run
    with pytest.raises(OperationError, match="nothing says how it resumes"):
        mover.plan(stubborn)
    there.mkdir(parents=True)
    with pytest.raises(OperationError, match="there is a run"):
        mover.plan(run)
    there.rmdir()
    planned = mover.plan(run, on="slurm", job={"partition": "p"})
    mover.close()
    assert machines.alive("a", run)
    assert machines.alive("a", stubborn)
    assert isinstance(planned, MovePlan)
    # A scheduler of the other machine can be asked for, and can be left out.
    asked = {"run": run, "launch": planned.survey["launch"], "places": [], "cwd": "", **planned.wishes}
    made = plan_here(asked, machines.code, machines.homes["b"], os.environ)
    assert made.engine is not None
    assert (made.engine.name, made.device) == ("slurm", "auto")
    asked |= {"on": "local", "job": {}}
    assert plan_here(asked, machines.code, machines.homes["b"], os.environ).engine is None


@pytest.mark.parametrize(("question", "when"), [("leave", "during"), ("accept", "died before")])
def test_wherever_a_line_breaks_there_is_one_of_it_and_it_can_be_finished(
    machines: Machines, unmoved: list[float], question: str, when: str
) -> None:
    check(machines, unmoved, lambda run: break_line(machines, run, question, when))
