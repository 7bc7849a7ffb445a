"""Moving runs: two homes on this machine, a far process for each, real trainings that save, end and resume."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from mpstui.core.hosts.continuing import plan_here
from mpstui.core.hosts.moving import MovePlan
from mpstui.core.hosts.talk import Place
from mpstui.core.launching.actions import Actions
from mpstui.core.model.errors import OperationError
from mpstui.core.model.snapshot import State
from tests.core.hosts.machines import STEPS, Machines, as_kind
from tests.core.hosts.moves import break_line, check
from tests.ssh_lab import SshLab
from tests.waiting import wait_until


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    made = Machines(tmp_path)
    yield made
    made.end()


@pytest.fixture(scope="module")
def unmoved(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    found = Machines(tmp_path_factory.mktemp("unmoved"))
    found.allow(STEPS + 1)
    return found.final("a", found.launch())


def test_a_run_goes_there_over_ssh_and_back_and_ends_as_if_it_had_never_moved(
    tmp_path: Path, ssh_lab: SshLab, unmoved: list[float]
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
    moves = [one.text for one in home.events if one.event == "moved"]
    assert moves == ["leaves for b", "leaves for b", "arrived from a", "leaves for a", "arrived from b"]
    assert {one.step for one in before.checkpoints} < {one.step for one in home.checkpoints}, "what stayed is there"
    ended = machines.mover()
    with pytest.raises(OperationError, match="has finished"):
        ended.plan(run)
    ended.close()


def cut_while_it_arrives(machines: Machines, run: str) -> None:
    """Kill the real line while the run's files are on it: it goes on where it was, and is not there."""
    assert machines.lab is not None
    signal_lines = machines.lab.signal

    class Cut(Place):
        def ask(self, what: str, fields: Any, send: Any = None, receive: Any = None) -> dict[str, Any]:
            def send_and_cut(out: BinaryIO) -> None:
                signal_lines(signal.SIGKILL)
                send(out)

            return super().ask(what, fields, send_and_cut if what == "settle" else send, receive)

    mover = machines.mover(wrap=as_kind(Cut))
    planned = mover.plan(run)
    assert isinstance(planned, MovePlan)
    with pytest.raises(OperationError, match="goes on where it was"):
        mover.carry_out(planned)
    mover.close()
    wait_until(lambda: machines.alive("a", run), what="its going on where it was")
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
