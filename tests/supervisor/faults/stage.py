"""What a scene plays on: a run, a bystander whose number somebody may mistake, and the four questions at the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpstui.core.model.snapshot import State
from mpstui.core.runs.files import WitnessReader
from mpstui.core.runs.local_machine import LocalMachine
from mpstui.supervisor.family import linux_heirs
from mpstui.wire import liveness
from mpstui.wire.liveness import ProcessIdentity, boot_id, system_process_table
from mpstui.wire.records import ExitRecord, StopRule
from mpstui.wire.rundir import RunDir

from ..kit import Run, alive, identity, python, wait_for

WRAPPED = Path(__file__).with_name("wrapped.py")
BYSTANDER = """
import signal, sys, time
def note(number, frame):
    with open(sys.argv[1], 'a') as file: file.write(f'{number}\\n')
for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    try: signal.signal(number, note)
    except (OSError, ValueError): pass
open(sys.argv[1], 'a').close()
while True: time.sleep(1)
"""


@dataclass
class Faults:
    """What went wrong in one scene; empty lists are what is hoped for."""

    wrong_states: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    foreign_signals: list[str] = field(default_factory=list)
    lost_exits: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[str]:
        return [*self.wrong_states, *self.strays, *self.foreign_signals, *self.lost_exits]


class Stage:
    """One scene's world. Whatever it starts is gone when it is left."""

    def __init__(
        self, home: Path, trainer: str = "", *, sabotage: str | None = None, seed: int = 0, **spec: Any
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.chance = random.Random(seed)
        self.home = home
        self.sabotage = sabotage
        command = {"argv": python(trainer), "stop": StopRule(grace_seconds=3.0)}
        self.run = Run(home, **{**command, **spec})
        self.run.among_many = seed % 2 == 0 and sys.platform == "linux"
        self.faults = Faults()
        self._machine = LocalMachine(system_process_table(), boot_id())
        self._received = home / "bystander-got"
        self.bystander = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", BYSTANDER, str(self._received)], start_new_session=True
        )
        wait_for(self._received.exists, "the bystander")

    # -- playing ---------------------------------------------------------------------------------------------------

    def start(self, *arguments: str) -> int:
        """Start a supervisor that can be broken."""
        broken = ("--sabotage", self.sabotage) if self.sabotage else ()
        return self.run.start(WRAPPED, *arguments, *broken)

    def start_running(self, *arguments: str) -> None:
        self.start(*arguments)
        self.run.wait_output("up")
        self.run.wait_phase("running")

    def reached(self, point: str) -> None:
        wait_for((self.run.dir.path / f"at-{point}").exists, f"{point}: {self.run.log()}")

    def go(self) -> None:
        (self.run.dir.path / "go").touch()

    def asked(self) -> None:
        """The trainer has its signal, and the supervisor has written down that it was sent."""
        wait_for(lambda: self.lines("terms") and self.run.status.asked_at, f"the stop: {self.run.log()}")

    def finish_trainer(self) -> None:
        (self.home / "finish").touch()

    def move_to(self, home: Path) -> None:
        """The home has been moved."""
        self.run.dir, self.run.home = RunDir(home / "runs" / self.run.dir.run), home
        self.home, self._received = home, home / self._received.name

    def kill(self, victim: str, *, wait: bool = True) -> None:
        """SIGKILL from outside: ``supervisor``, ``trainer`` or ``both``."""
        status = self.run.status
        victims = {"supervisor": [status.supervisor], "trainer": [status.trainer]}
        for found in victims.get(victim, [status.supervisor, status.trainer]):
            if found is not None:
                os.kill(found[0], signal.SIGKILL)
        if victim != "trainer" and wait:
            self.run.wait_unsupervised()

    def lines(self, name: str) -> int:
        path = self.home / name
        return len(path.read_text().splitlines()) if path.exists() else 0

    # -- asking ----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """What the monitor would say now."""
        reader = WitnessReader(self.run.dir, self._machine)
        reader.poll()
        return reader.judge(None).state

    def expect(self, *states: State) -> None:
        """One of these states, soon."""
        try:
            wait_for(lambda: self.state() in states, "the state", 20.0)
        except AssertionError:
            wanted = " or ".join(states)
            self.faults.wrong_states.append(f"{self.state()} instead of {wanted}")

    def expect_exit(self, attempt: int = 1, seconds: float = 30.0, **fields: Any) -> ExitRecord | None:
        """A record that a living supervisor was there to write."""
        try:
            record = self.run.wait_exit(attempt, seconds)
        except AssertionError:
            self.faults.lost_exits.append(f"attempt {attempt}: no exit record")
            return None
        wrong = {name: getattr(record, name) for name, value in fields.items() if getattr(record, name) != value}
        if wrong:
            self.faults.lost_exits.append(f"attempt {attempt}: {wrong} instead of {fields}")
        return record

    def expect_that(self, condition: bool, what: str) -> None:
        if not condition:
            self.faults.wrong_states.append(what)

    def expect_soon(self, begun: float, seconds: float) -> None:
        """Since ``begun`` (monotonic) no more than this has passed."""
        took = time.monotonic() - begun
        self.expect_that(took < seconds, f"it took {took:.1f} s, not {seconds:g}")

    # -- leaving ---------------------------------------------------------------------------------------------------

    def leave(self) -> Faults:
        """Kill what is left through the product, then look for strays and for signals that went astray."""
        try:
            self._kill_by_request()
            self._look_for_strays()
            self._ask_bystander()
        finally:
            self.run.clean_up()
            self.bystander.kill()
            self.bystander.wait()
        return self.faults

    def _kill_by_request(self) -> None:
        if not self.run.dir.spec.exists():
            return  # somebody deleted the run
        request = self.run.ask("kill", attempt=0)
        if not liveness.is_held(self.run.dir.supervisor_lock):
            self.start()
        try:
            self.run.wait_ack(request)
            self.run.wait_unsupervised()
        except AssertionError as error:
            self.faults.strays.append(f"kill was not answered: {error}")

    def _look_for_strays(self) -> None:
        mark = b"MPSTUI_RUN_DIR=" + os.fsencode(self.run.dir.path)
        left = [pid for pid in linux_heirs(self.run.dir.run_lock, mark) if self._lives(pid)]
        self.faults.strays += [f"pid {pid} outlived the kill" for pid in left]

    def _lives(self, pid: int) -> bool:
        found = self._machine.table.find(pid)
        return found is not None and found.alive

    def _ask_bystander(self) -> None:
        got = self._received.read_text().split()
        if self.bystander.poll() is not None:
            self.faults.foreign_signals.append("the bystander was killed")
        self.faults.foreign_signals += [f"the bystander got signal {number}" for number in got]


Scene = Callable[[Stage], None]
Scenes = dict[Scene, dict[str, Any]]
"""Scenes with what their stage is set with."""


def recycled(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    """The bystander's number with the start time of somebody who had it before."""
    found = identity(process.pid)
    assert alive(found)
    return ProcessIdentity(found.pid, found.start - 1)
