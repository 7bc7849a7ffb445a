"""Machines between which runs move, and a training that is the same wherever it goes on.

For the tests of moving, and for :mod:`tests.core.hosts.moves`, which moves runs with a fault each.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from mpstui.core.hosts.moving import Mover
from mpstui.core.hosts.ssh import connect
from mpstui.core.hosts.talk import Place
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.launch import launch_all
from mpstui.core.launching.planning import plan
from mpstui.core.machine import this_machine
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
place = "saved" if "--beside" in sys.argv else out + "/checkpoints"
step, weight, chance = 0, 0.0, random.Random(7)
if "--resume" in sys.argv:
    step, weight, state = json.load(open(sys.argv[sys.argv.index("--resume") + 1]))
    chance.setstate((state[0], tuple(state[1]), state[2]))
def save():
    os.makedirs(place, exist_ok=True)
    with open(place + "/.new", "w") as file:
        json.dump([step, weight, chance.getstate()], file)
    os.rename(place + "/.new", f"{{place}}/step-{{step:06d}}.json")
def end(*_):
    save()
    while os.path.exists(sys.argv[1] + ".hold"):
        time.sleep(0.01)
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
with open(out + "/.final", "w") as file:
    json.dump([step, weight], file)
os.rename(out + "/.final", out + "/final.json")
"""


class Machines:
    """Homes, and what happens between them; ``b`` is on another machine where there is a real sshd."""

    def __init__(self, folder: Path, lab: SshLab | None = None) -> None:
        self.homes = {name: Home(folder / name, folder / name) for name in ("a", "b", "c")}
        self.names = {name: name for name in self.homes}
        """What movers call the machines."""
        self.lab, self.host = lab, f"b-{folder.name}"
        self.python = sys.executable
        """The Python of ``b``."""
        self.environ: dict[str, dict[str, str]] = {}
        """What far processes of a home find beside our own environment."""
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

    @contextlib.contextmanager
    def endless(self) -> Iterator[None]:
        """Trainings that are asked to end do so afterwards."""
        hold = self.pace.with_name("pace.hold")
        hold.touch()
        yield
        hold.unlink()

    def end(self) -> None:
        """Let whatever trains come to its end."""
        self.allow(STEPS + 1)
        runs = [(name, one.run) for name, home in self.homes.items() for one in run_dirs(home.runs)]
        wait_until(lambda: not any(self.alive(*one) for one in runs), what="the end of all runs")

    def place(self, name: str) -> Place:
        if self.lab is not None and name == "b":
            there = HostSettings(home=str(self.homes["b"].state), python=self.python)
            hosts = HostsSettings(named={self.host: there})
            return Place(connect(self.host, hosts, ("transfer",), environ=self.lab.environ))
        environ = {**os.environ, **self.environ.get(name, {})}
        return Place(connect(f"local:{self.homes[name].state}", HostsSettings(), ("transfer",), environ=environ))

    def mover(
        self,
        source: str = "a",
        target: str = "b",
        wrap: Callable[[Place], Place] = lambda one: one,
    ) -> Mover:
        return Mover(
            lambda: wrap(self.place(source)),
            lambda: wrap(self.place(target)),
            names=(self.names[source], self.names[target]),
            pause_seconds=0.05,
        )

    def launch(self, *, resumes: bool = True, beside: bool = False) -> str:
        """``beside``: it saves in its own folder, and not in the run's."""
        profile = profile_of_command(
            (sys.executable, "train.py", str(self.pace), *(["--beside"] if beside else [])),
            cwd=self.code,
            name="toy",
            resume_args=("--resume", "{checkpoint}") if resumes else None,
            checkpoints="saved/*.json" if beside else "checkpoints/*.json",
        )
        profile = replace(profile, min_free_bytes=0)  # disks of tests are small
        made = plan(LaunchChoice(profile), environ=os.environ, machine=this_machine())
        return launch_all([made], self.homes["a"], os.environ, time.time)[0]

    def look(self, name: str, run: str) -> RunSnapshot | None:
        found = self.homes[name].runs / run
        return Monitor(self.homes[name]).snapshot(run) if found.exists() else None

    def seen(self, name: str, run: str) -> RunSnapshot:
        found = self.look(name, run)
        assert found is not None
        return found

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


def as_kind(kind: type[Place]) -> Callable[[Place], Place]:
    """What makes the places of a mover break as a subclass of them does."""

    def wrap(place: Place) -> Place:
        place.__class__ = kind
        return place

    return wrap
