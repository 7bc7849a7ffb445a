"""Two machines between which runs move, and lines that break: for test_moving.py, and many times over as a program.

``python -m tests.core.hosts.moves --count 50 --seed 1`` moves runs with a fault at a random point each: a line that is
cut before, during or after a question, or the death of the program that moves. What a person does next is done: the
same command once more. Never are there two of a run, and every one ends as if it had never moved.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpstui.core.hosts.line import HostError
from mpstui.core.hosts.moving import MovePlan, Mover
from mpstui.core.hosts.ssh import connect
from mpstui.core.hosts.talk import Place
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.planning import launch_all, plan
from mpstui.core.machine import this_machine
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.profiles.model import profile_of_command
from mpstui.core.runs.monitor import Monitor
from mpstui.core.settings import HostSettings, HostsSettings
from mpstui.wire import liveness
from mpstui.wire.rundir import RunDir, run_dirs
from tests.ssh_lab import SshLab
from tests.waiting import wait_until

STEPS = 60
PROGRAM = f"""
# Trains as far as a file says.
import json, os, random, signal, sys, time
out = os.environ["MPSTUI_RUN_DIR"]
step, weight, chance = 0, 0.0, random.Random(7)
if "--resume" in sys.argv:
    step, weight, state = json.load(open(sys.argv[sys.argv.index("--resume") + 1]))
    chance.setstate((state[0], tuple(state[1]), state[2]))
def save():
    os.makedirs(out + "/checkpoints", exist_ok=True)
    with open(out + "/checkpoints/.new", "w") as file:
        json.dump([step, weight, chance.getstate()], file)
    os.rename(out + "/checkpoints/.new", f"{{out}}/checkpoints/step-{{step:06d}}.json")
def end(*_):
    save()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
save()
while step < {STEPS}:
    weight = weight * 0.9 + chance.random()
    step += 1
    print(f"step {{step}} loss {{weight:.6f}}", flush=True)
    if step % 5 == 0:
        save()
    while step >= int(open(sys.argv[1]).read()):
        time.sleep(0.01)
json.dump([step, weight], open(out + "/final.json", "w"))
"""


class Machines:
    """Two homes, and what happens between them; the second one is on another machine where there is a real sshd."""

    def __init__(self, folder: Path, lab: SshLab | None = None) -> None:
        self.homes = {name: Home(folder / name, folder / name) for name in ("a", "b")}
        self.lab, self.host = lab, f"b-{folder.name}"
        if lab is not None:
            lab.host(self.host)
        self.code = folder / "project"
        self.code.mkdir(parents=True)
        (self.code / "train.py").write_text(PROGRAM)
        self.pace = folder / "pace"
        self.allow(20)

    def allow(self, step: int) -> None:
        """Let trainings go on to this step, and stand there."""
        (self.pace.with_suffix(".new")).write_text(str(step))
        self.pace.with_suffix(".new").rename(self.pace)

    def end(self) -> None:
        """Let whatever trains come to its end."""
        self.allow(STEPS + 1)
        runs = [(name, one.run) for name, home in self.homes.items() for one in run_dirs(home.runs)]
        wait_until(lambda: not any(self.alive(*one) for one in runs), what="the end of all runs")

    def place(self, name: str) -> Place:
        if self.lab is not None and name == "b":
            there = HostSettings(home=str(self.homes["b"].state), python=sys.executable)
            hosts = HostsSettings(named={self.host: there})
            return Place(connect(self.host, hosts, ("transfer",), environ=self.lab.environ))
        return Place(connect(f"local:{self.homes[name].state}", HostsSettings(), ("transfer",), environ=os.environ))

    def mover(self, source: str = "a", target: str = "b", wrap: Callable[[Place], Place] = lambda one: one) -> Mover:
        return Mover(
            lambda: wrap(self.place(source)),
            lambda: wrap(self.place(target)),
            names=(source, target),
            pause_seconds=0.05,
        )

    def launch(self, *, resumes: bool = True) -> str:
        profile = profile_of_command(
            (sys.executable, "train.py", str(self.pace)),
            cwd=self.code,
            name="toy",
            resume_args=("--resume", "{checkpoint}") if resumes else None,
            checkpoints="checkpoints/*.json",
        )
        made = plan(LaunchChoice(profile), environ=os.environ, machine=this_machine())
        return launch_all([made], self.homes["a"], os.environ, time.time)[0]

    def look(self, name: str, run: str) -> RunSnapshot | None:
        found = self.homes[name].runs / run
        return Monitor(self.homes[name]).snapshot(run) if found.exists() else None

    def alive(self, name: str, run: str) -> bool:
        found = RunDir(self.homes[name].runs / run)
        return found.path.exists() and liveness.is_held(found.run_lock)

    def trains(self, name: str, run: str, steps: int = 3) -> None:
        def far() -> bool:
            seen = self.look(name, run)
            return seen is not None and (seen.numbers.step or 0) >= steps

        wait_until(far, what=f"{run} trains on {name}")

    def final(self, name: str, run: str) -> list[float]:
        path = self.homes[name].runs / run / "final.json"
        wait_until(path.exists, what="the end of the training")
        return list(json.loads(path.read_text()))


class Broken(Place):
    """A machine whose line breaks at one question, before it is asked, while it is answered, or after."""

    countdown = 0
    when = "before"

    def ask(self, what: str, fields: Any, send: Any = None, receive: Any = None) -> dict[str, Any]:
        Broken.countdown -= 1
        if Broken.countdown == 0 and Broken.when == "before":
            self.close()
            raise HostError(self.host, "cut", "the line is cut")
        if Broken.countdown == 0 and Broken.when == "during":
            self._line._process.kill()
        answer = super().ask(what, fields, send, receive)
        if Broken.countdown == 0:
            self._line._process.kill()
            raise HostError(self.host, "cut", "the line is cut")
        return answer


class Died(BaseException):
    """The program that moves is killed."""


class Killed(Place):
    """A machine whose mover dies at one question."""

    countdown = 0

    def ask(self, what: str, fields: Any, send: Any = None, receive: Any = None) -> dict[str, Any]:
        Killed.countdown -= 1
        answer = super().ask(what, fields, send, receive) if Killed.countdown != 0 or random.random() < 0.5 else None
        if answer is None or Killed.countdown == 0:
            raise Died
        return answer


def as_kind(kind: type[Place]) -> Callable[[Place], Place]:
    def wrap(place: Place) -> Place:
        place.__class__ = kind
        return place

    return wrap


def check_fault(machines: Machines, unmoved: list[float], when: str, number: int) -> None:
    run = machines.launch()
    machines.trains("a", run)
    kind: type[Place] = Killed if when == "killed" else Broken
    Broken.countdown = Killed.countdown = number
    Broken.when = when
    mover = machines.mover(wrap=as_kind(kind))
    try:
        planned = mover.plan(run)
        assert isinstance(planned, MovePlan)
        mover.carry_out(planned)
    except (OperationError, Died):
        pass
    finally:
        Broken.countdown = Killed.countdown = 0
        mover.close()
    deadline = time.monotonic() + 20
    again = machines.mover()
    told: OperationError | None = None
    while time.monotonic() < deadline:  # what a person does next: the same command once more
        assert not (machines.alive("a", run) and machines.alive("b", run))
        try:
            planned = again.plan(run)
            if isinstance(planned, MovePlan):
                again.carry_out(planned)
            break
        except OperationError as error:  # its machine is about to keep it
            told = error
            time.sleep(0.05)
    else:
        raise AssertionError(str(told))
    again.close()
    machines.allow(STEPS + 1)
    ended = [name for name in ("a", "b") if (machines.homes[name].runs / run).exists()]
    wait_until(lambda: any((machines.homes[one].runs / run / "final.json").exists() for one in ended), what="an end")
    assert not (machines.alive("a", run) and machines.alive("b", run))
    final = next(one for one in ("b", "a") if (machines.homes[one].runs / run / "final.json").exists())
    assert machines.final(final, run) == unmoved


QUESTIONS = 10
"""Of a move, from the survey to the acceptance."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance, faults = random.Random(args.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        alone = Machines(Path(folder) / "alone")
        alone.allow(STEPS + 1)
        unmoved = alone.final("a", alone.launch())
        for number in range(1, args.count + 1):
            when, question = chance.choice(["before", "during", "after", "killed"]), chance.randint(1, QUESTIONS)
            try:
                check_fault(Machines(Path(folder) / str(number)), unmoved, when, question)
            except (AssertionError, OperationError) as error:
                faults += 1
                print(f"{number}: {when} question {question}: {error}")
    print(f"{args.count} moves with a fault, seed {args.seed}: {faults} went wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
