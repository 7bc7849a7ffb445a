"""Moves with a fault each, at a random point: for test_moving.py, and many times over as a program.

``python -m tests.core.hosts.moves --count 50 --seed 1`` moves runs, and each time something breaks: a line, one of the
processes at either end, the program that moves; a disk is full or read-only, the clock of the other machine is hours
off, its Python is replaced, two people move the same run to different machines. What a person does next is done: the
same command once more. Never are there two of a run, and every one ends as if it had never moved.

Full and read-only disks need root, a replaced Python an sshd; without them those faults are left out, and that is said.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, TextIO

from mpstui.core.hosts.line import HostError
from mpstui.core.hosts.moving import MovePlan, Mover
from mpstui.core.hosts.talk import Place
from mpstui.core.launching.actions import Actions
from mpstui.core.model.errors import ReportedError
from mpstui.core.model.snapshot import State
from tests.core.hosts.machines import STEPS, Machines, as_kind
from tests.ssh_lab import SshLab, find_daemon
from tests.waiting import wait_until

QUESTIONS = ("survey", "code", "expect", "source", "stow", "depart", "lacks", "files", "settle", "leave", "accept")
MOMENTS = ("before", "during", "after", "died before", "died after")
RETRY_SECONDS = 90.0
TOLD: TextIO = Path(os.devnull).open("w")  # noqa: SIM115
"""Where it is said what a move that failed said; ``--tell`` is standard output."""


class Died(BaseException):
    """The program that moves is killed."""


class Broken(Place):
    """A machine whose line breaks at one question, or whose mover dies there."""

    question = ""
    when = ""

    def ask(self, what: str, fields: Any, send: Any = None, receive: Any = None) -> dict[str, Any]:
        if what != Broken.question:
            return super().ask(what, fields, send, receive)
        Broken.question, when = "", Broken.when
        if when == "before":
            self.close()
            raise HostError(self.host, "cut", "connection lost")
        if when == "died before":
            raise Died
        if when == "during":
            self._line._process.kill()
        super().ask(what, fields, send, receive)
        if when == "died after":
            raise Died
        self._line._process.kill()
        raise HostError(self.host, "cut", "connection lost")


def move_once(mover: Mover, run: str, between: Callable[[], None] = lambda: None) -> None:
    """As `mpstui move` does; ``between`` happens while it is asked whether to go on."""
    planned = mover.plan(run)
    if isinstance(planned, MovePlan):
        between()
        mover.carry_out(planned)


@contextlib.contextmanager
def tried(mover: Mover) -> Iterator[Mover]:
    """A move that may fail, or be killed."""
    try:
        yield mover
    except (ReportedError, Died) as error:
        print(f"  {error}", file=TOLD)
    finally:
        mover.close()


def break_line(machines: Machines, run: str, question: str, when: str) -> None:
    """Cut the line at a question, or have the mover die."""
    Broken.question, Broken.when = question, when
    with tried(machines.mover(wrap=as_kind(Broken))) as mover:
        move_once(mover, run)
    Broken.question = ""


def kill_near(machines: Machines, run: str, chance: random.Random) -> None:
    """The whole program that moves is killed at a random moment."""
    here, there = (f"local:{machines.homes[name].state}" for name in ("a", "b"))
    machines.names = {"a": here, "b": there}
    command = [sys.executable, "-m", "mpstui", "move", f"{here}:{run}", "--to", there, "--yes"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.5, 4.0))
        process.kill()


def kill_far(machines: Machines, run: str, chance: random.Random) -> None:
    """The far process of one end is killed at a random moment."""
    with tried(machines.mover()) as mover:
        victim = chance.choice([mover._source, mover._target])._line._process

        def kill() -> None:
            time.sleep(chance.uniform(0.0, 2.0))
            victim.kill()

        move_once(mover, run, Thread(target=kill, daemon=True).start)


def two_people(machines: Machines, run: str, chance: random.Random) -> None:
    """Two move it at once, to different machines."""

    def move(target: str, later: float) -> None:
        time.sleep(later)
        with tried(machines.mover(target=target)) as mover:
            move_once(mover, run)

    delays = {"b": 0.0, "c": chance.choice([0.0, chance.uniform(0.0, 1.5)])}
    people = [Thread(target=move, args=item, daemon=True) for item in delays.items()]
    for one in people:
        one.start()
    for one in people:
        one.join()


def fill(machines: Machines, run: str, chance: random.Random, name: str) -> None:
    """The disk of one end runs full after the question, and is emptied later."""
    left, state, delay = chance.choice([0, 4, 16, 64]) << 10, machines.homes[name].state, chance.uniform(0.0, 1.5)

    def write() -> None:
        time.sleep(delay)
        with contextlib.suppress(OSError), (state / "filler").open("wb", buffering=0) as file:
            free = shutil.disk_usage(state).free - left
            while free > 0 and (count := file.write(bytes(min(free, 4096)))):
                free -= count

    with tried(machines.mover()) as mover:
        writer = Thread(target=write, daemon=True)
        move_once(mover, run, writer.start)
    writer.join()
    (state / "filler").unlink()


def read_only(machines: Machines, run: str, *, has_code: bool) -> None:
    """The home of the other machine takes nothing any more, for a while; its code may have arrived before."""
    state = machines.homes["b"].state

    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", str(state)], check=True)

    with tried(machines.mover()) as mover:
        if has_code and isinstance(planned := mover.plan(run), MovePlan):
            mover._send_code(planned)
        move_once(mover, run, lambda: remount("ro"))
    remount("rw")


CLOCK = """
import os, subprocess, time
_ahead, _time, _rename = float(os.environ["CLOCK_AHEAD"]), time.time, os.rename
time.time = lambda: _time() + _ahead
def rename(old, new, **named):
    _rename(old, new, **named)
    if str(new).endswith(".json"):
        os.utime(new, (time.time(), time.time()))
os.rename = rename
_begin = subprocess.Popen.__init__
def begin(self, args, *rest, **named):
    _begin(self, [word for word in args if word not in ("-I", "-S")], *rest, **named)
subprocess.Popen.__init__ = begin
"""
"""In the far process, in the supervisors that it starts, and in their trainings."""


def other_clock(machines: Machines, run: str, chance: random.Random, folder: Path) -> None:
    """The clock of the other machine is hours off; it comes back from there, and no step is lost."""
    (folder / "clock").mkdir()
    (folder / "clock" / "sitecustomize.py").write_text(CLOCK)
    ahead = chance.choice([-1, 1]) * chance.uniform(600, 36_000)
    machines.environ["b"] = {"PYTHONPATH": str(folder / "clock"), "CLOCK_AHEAD": str(ahead)}
    with contextlib.closing(machines.mover()) as mover:
        move_once(mover, run)
    machines.allow(40)
    machines.trains("b", run, 40)
    with contextlib.closing(machines.mover("b", "a")) as mover:
        planned = mover.plan(run)
        assert isinstance(planned, MovePlan)
        step = mover.carry_out(planned)["step"]
        assert step >= 40, f"it went on from step {step}"
    with contextlib.closing(machines.mover()) as mover:
        move_once(mover, run)


def replace_python(machines: Machines, run: str, folder: Path) -> None:
    """The Python of the other machine does not start any more after the question, and does later."""
    python = folder / "python3"
    python.symlink_to(sys.executable)
    machines.python = str(python)

    def replace(by: str) -> None:
        python.unlink()
        python.symlink_to(by)

    with tried(machines.mover()) as mover:
        move_once(mover, run, lambda: replace("/bin/false"))
    replace(sys.executable)


@contextlib.contextmanager
def watched(machines: Machines, run: str) -> Iterator[list[str]]:
    """Where it was seen alive at two places at once."""
    seen: list[str] = []
    over = Event()

    def watch() -> None:
        while not over.wait(0.01):
            alive = [name for name in machines.homes if machines.alive(name, run)]
            if len(alive) > 1 and all(machines.alive(name, run) for name in alive):
                seen.append(" and ".join(alive))

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def check(machines: Machines, unmoved: list[float], fault: Callable[[str], None], *, beside: bool = False) -> None:
    """Move a run with a fault, then do as a person does who tries once more; see the top of this file."""
    run = machines.launch(beside=beside)
    machines.trains("a", run)
    with watched(machines, run) as twice:
        fault(run)
        finish(machines, run)
        for name in machines.homes:  # a training may have died of a full disk itself
            seen = machines.look(name, run)
            if seen is not None and seen.state is State.FAILED:
                Actions(os.environ).restart(seen)
        machines.allow(STEPS + 1)
        homes = [home.runs / run for home in machines.homes.values()]
        wait_until(lambda: any((home / "final.json").exists() for home in homes), what="an end")
    assert not twice, f"alive on {twice[0]}"
    ends = [name for name, home in machines.homes.items() if (home.runs / run / "final.json").exists()]
    assert len(ends) == 1, f"it ended on {ends}"
    assert machines.final(ends[0], run) == unmoved
    wait_until(lambda: not machines.alive(ends[0], run), what="the end of its process")


def finish(machines: Machines, run: str) -> None:
    """The same command once more, for as long as a machine is about to keep the run; it may have gone elsewhere."""
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        try:
            with contextlib.closing(machines.mover()) as mover:
                return move_once(mover, run)
        except ReportedError as error:
            if "was moved to c" in error.sentence:
                with contextlib.closing(machines.mover(target="c")) as mover:
                    return move_once(mover, run)
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextlib.contextmanager
def disk(state: Path) -> Iterator[None]:
    """A small disk of its own for a home."""
    state.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(state)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(state)], check=False)


def one_move(folder: Path, unmoved: list[float], chance: random.Random, kinds: list[str], lab: SshLab | None) -> str:
    """Move once with a fault of one of the kinds; what it was, for whoever reads of its failure."""
    kind = chance.choice(kinds)
    name, told = chance.choice(["a", "b"]), kind
    with contextlib.ExitStack() as stack:
        if kind in ("full", "read-only"):
            name = "b" if kind == "read-only" else name
            stack.enter_context(disk(folder / name))
        machines = Machines(folder, lab if kind == "python" else None)
        question, when = chance.choice(QUESTIONS), chance.choice(MOMENTS)
        faults: dict[str, Callable[[str], None]] = {
            "line": lambda run: break_line(machines, run, question, when),
            "near": lambda run: kill_near(machines, run, chance),
            "far": lambda run: kill_far(machines, run, chance),
            "two": lambda run: two_people(machines, run, chance),
            "full": lambda run: fill(machines, run, chance, name),
            "read-only": lambda run: read_only(machines, run, has_code=chance.random() < 0.7),
            "clock": lambda run: other_clock(machines, run, chance, folder),
            "python": lambda run: replace_python(machines, run, folder),
        }
        beside = kind not in ("full", "read-only") and chance.random() < 0.4
        told += f" {when} {question}" * (kind == "line") + f" on {name}" * (kind == "full") + " beside" * beside
        print(told, file=TOLD, flush=True)
        try:
            check(machines, unmoved, faults[kind], beside=beside)
        except (AssertionError, ReportedError) as error:
            return f"{told}: {error}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="line,line,line,near,far,two,full,read-only,clock,python")
    parser.add_argument("--tell", action="store_true", help="say what each fault was, and what the move said")
    args = parser.parse_args()
    if args.tell:
        global TOLD
        TOLD = sys.stdout
    chance, faults, kinds = random.Random(args.seed), 0, args.kinds.split(",")
    with contextlib.ExitStack() as stack:
        folder, lab = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))), None
        if os.geteuid() != 0:
            print("full and read-only disks are left out: they need root")
            kinds = [kind for kind in kinds if kind not in ("full", "read-only")]
        if (daemon := find_daemon()) is not None:
            (folder / "ssh").mkdir()
            lab = SshLab(folder / "ssh", daemon)
            stack.callback(lab.close)
            lab.wait_for_daemon()
        else:
            print("a replaced Python is left out: there is no sshd here")
            kinds = [kind for kind in kinds if kind != "python"]
        alone = Machines(folder / "alone")
        alone.allow(STEPS + 1)
        unmoved = alone.final("a", alone.launch())
        for number in range(1, args.count + 1):
            if wrong := one_move(folder / str(number), unmoved, chance, kinds, lab):
                faults += 1
                print(f"{number}: {wrong}", flush=True)
    print(f"{args.count} moves with a fault, seed {args.seed}: {faults} went wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
