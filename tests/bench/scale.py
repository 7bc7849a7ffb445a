"""`make bench-scale`: two hundred live runs on one machine (Linux).

    python -m tests.bench.scale [--only launch,supervisors,screen,list] [--runs 200] [--seconds 20]

launch       wall time of a sweep of a hundred runs that wait in a queue, then until all of them run
supervisors  memory each has for itself (PSS) and the processor time of all, while their runs wait and while they run
screen       processor time of the list while each run writes a heartbeat and a line of output a second
list         ended runs, one of them with a log of a gigabyte, one with 50 metrics of 100,000 steps: seconds until all
             are read, and in the first frame of the next start how many are not; from a key to the first byte of its
             frame and the processor time of the key, in the list and in the grid of those metrics; memory after each

Everything that is started is ended again, by pid. The numbers belong to the machine: see its load in the first line.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpstui.core.model.home import Home
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.summaries import Summaries
from mpstui.wire import liveness, storage
from mpstui.wire.liveness import ProcessIdentity
from mpstui.wire.records import Status
from mpstui.wire.rundir import run_dirs
from tests.core.runs.build import RunBuilder

MPSTUI = str(Path(sys.executable).with_name("mpstui"))
SWEPT = 100
WIDE_METRICS, WIDE_STEPS = 50, 100_000
GRID_KEYS = ("\x1b[C", "\x1b[B", "\x1b[1;2D", "\x1b[D", "\x1b[A", "n", "\x1b[1;2D", "N")
"""Around some charts, the cursor through all, and to another page and back."""
REST_SECONDS = 10.0
"""A supervisor that has just started looks around more often."""
_TERMINALS: dict[int, int] = {}
"""Of the screens that are shown, by pid."""
TICKS = os.sysconf("SC_CLK_TCK")
PROGRAMS = {
    "a shell's sleep": ('["/bin/sh", "-c", "exec sleep 3600"]', "agent = false"),
    "Python without agent": ('["{python}", "-c", "import time; time.sleep(3600)"]', "agent = false"),
    "Python with agent": ('["{python}", "-c", "import time; time.sleep(3600)"]', ""),
}


@dataclass(frozen=True)
class Usage:
    """Of some processes together."""

    seconds: float
    """Processor time."""
    switches: int
    """How often they were woken or put aside."""


def usage(pids: list[int]) -> Usage:
    seconds, switches = 0.0, 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / TICKS
        for task in Path(f"/proc/{pid}/task").iterdir():
            lines = (task / "status").read_text().splitlines()
            switches += sum(int(line.split()[1]) for line in lines if "voluntary_ctxt_switches" in line)
    return Usage(seconds, switches)


def share(pids: list[int], seconds: float, meanwhile: Callable[[float], object] = time.sleep) -> str:
    """Processor time over so many seconds, as a sentence."""
    before, began = usage(pids), time.monotonic()
    meanwhile(seconds)
    after, took = usage(pids), time.monotonic() - began
    woken = (after.switches - before.switches) / took
    return f"{(after.seconds - before.seconds) / took * 100:.1f} % of a core, {woken:.0f} wake-ups a second"


def pss(pid: int) -> float:
    """MB of a process that are its own, and its part of what it shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


class World:
    """A home of its own."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "home", folder / "home")
        self.home.runs.mkdir(parents=True)
        self.environ = {**os.environ, "MPSTUI_HOME": str(self.home.state)}

    def mpstui(self, *words: str) -> str:
        return subprocess.run([MPSTUI, *words], env=self.environ, check=True, capture_output=True, text=True).stdout

    def sweep(self, program: str, count: int) -> float:
        """Launch so many runs of a program; the seconds that took."""
        command, extra = PROGRAMS[program]
        profile = self.home.state.with_name("sweep.toml")
        profile.write_text(f'name = "nap"\ncommand = {command}\n{extra}\n[args]\nseed = 1\n')
        began = time.monotonic()
        self.mpstui("launch", str(profile), "--sweep", "seed=" + ",".join(map(str, range(count))))
        return time.monotonic() - began

    def statuses(self) -> list[Status]:
        return [found for run in run_dirs(self.home.runs) if (found := storage.read_or_none(Status, run.status))]

    def supervisors(self) -> list[ProcessIdentity]:
        table = liveness.system_process_table()
        known = [status.supervisor for status in self.statuses() if status.supervisor is not None]
        return [one for one in known if liveness.is_same(table, one)]

    def release(self, count: int, seconds: float = 120.0) -> float:
        """Let them all run; the seconds until they do."""
        began = time.monotonic()
        self.mpstui("queue", "slots", "cpu", str(min(count, 256)))
        while sum(status.phase == "running" for status in self.statuses()) < count:
            if time.monotonic() - began > seconds:
                raise SystemExit(f"of {count} runs not all have started within {seconds:.0f} s")
            time.sleep(0.2)
        return time.monotonic() - began

    def end(self) -> None:
        """End every run: SIGTERM to a supervisor is a stop, and a second one a kill."""
        deadline = time.monotonic() + 60.0
        while (left := self.supervisors()) and time.monotonic() < deadline:
            for one in left:
                liveness.send_signal(one, signal.SIGTERM)
            time.sleep(0.5)
        if left:
            raise SystemExit(f"supervisors that did not end: {[one.pid for one in left]}")


@contextmanager
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="mpstui-scale-", ignore_cleanup_errors=True) as folder:
        made = World(Path(folder))
        try:
            yield made
        finally:
            made.end()


def launch() -> None:
    for program in PROGRAMS:
        with world() as made:
            took = made.sweep(program, SWEPT)
            print(f"sweep of {SWEPT}, {program}: launched in {took:.1f} s", end=", ", flush=True)
            print(f"all running {made.release(SWEPT):.1f} s after their slots were opened", flush=True)


def supervisors(count: int, seconds: float) -> None:
    for number in sorted({1, 20, count // 2, count}):
        with world() as made:
            made.sweep("a shell's sleep", number)
            if number > 1:  # one alone waits for nobody
                tell_of(made, "waiting", seconds)
            made.release(number)
            tell_of(made, "running", seconds)


def tell_of(made: World, what: str, seconds: float) -> None:
    time.sleep(REST_SECONDS)
    pids = [one.pid for one in made.supervisors()]
    sizes = sorted(map(pss, pids))
    print(
        f"{len(pids)} {what}: PSS {sum(sizes) / len(sizes):.2f} MB each, at most {sizes[-1]:.2f}", end="; ", flush=True
    )
    print(share(pids, seconds), flush=True)


def screen(count: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="mpstui-scale-") as folder:
        for lively in (False, True):
            home = Home(Path(folder) / str(lively), Path(folder) / str(lively))
            home.runs.mkdir(parents=True)
            with writer(home, count, lively=lively) as pid, shown(home) as (app, drain):
                drain(8.0)
                what = "a beat and a line a second each" if lively else "nothing new"
                print(f"screen, {count} live runs, {what}: {share([app], seconds, drain)}", end="", flush=True)
                print(f" (the writer: {share([pid], 3.0, drain)})", flush=True)


@contextmanager
def writer(home: Home, count: int, *, lively: bool) -> Iterator[int]:
    """One process that has the locks of all runs and writes in the place of their trainers."""
    pid = os.fork()
    if pid == 0:
        try:
            write_on(home, count, lively=lively)
        finally:
            os._exit(1)
    try:
        while len(list(home.runs.glob("*/run.lock"))) < count:
            time.sleep(0.05)
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def write_on(home: Home, count: int, *, lively: bool) -> None:
    found = liveness.system_process_table().find(os.getpid())
    me = found.identity if found else ProcessIdentity(os.getpid(), 0)
    known: dict[str, Any] = {"boot_id": liveness.boot_id(), "trainer": me, "supervisor": me}
    created = time.time()
    runs = [
        RunBuilder(home, f"run {number}", created).status("running", **known).launch().output("begins\n").hold()
        for number in range(count)
    ]
    began, step = time.monotonic(), 0
    while True:
        for number, run in enumerate(runs):
            if lively or not step:
                run.beat(
                    time=time.time(),
                    seq=step,
                    epoch=1,
                    step=step,
                    steps=100_000,
                    loss=9 / (step + 9),
                    steps_per_second=1.0,
                )
                run.output(f"step {step} loss {9 / (step + 9):.4f}\n")
            time.sleep(max(0.0, began + step + number / count - time.monotonic()))
        step += 1


@contextmanager
def shown(home: Home) -> Iterator[tuple[int, Callable[[float], None]]]:
    """The screen on a terminal of its own: its pid, and what reads its words for some seconds."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(MPSTUI_HOME=str(home.state), TERM="xterm-256color", COLORTERM="truecolor")
        os.execv(MPSTUI, [MPSTUI])
    _TERMINALS[pid] = terminal
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def drain(seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0] and not os.read(terminal, 1 << 16):
                raise SystemExit("the screen has ended")

    try:
        yield pid, drain
    finally:
        os.kill(pid, signal.SIGTERM)
        os.close(terminal)
        os.waitpid(pid, 0)


def ended_runs(home: Home, count: int, log_bytes: int) -> None:
    """Half of them print, half report; the newest has the long log."""
    for number in range(count):
        run = RunBuilder(home, f"run {number} lr={number % 7}", time.time() - 3600 + number).status("ended").launch()
        run.exit(code=0, ended=time.time() - 60)
        if number % 2:
            run.output("".join(f"step {step} loss {9 / (step + 9):.4f}\n" for step in range(100)))
        else:
            run.points(*({"attempt": 1, "step": step, "loss": 9 / (step + 9), "val_loss": 1.0} for step in range(100)))
    wide = RunBuilder(home, "wide", time.time()).status("ended").launch().exit(code=0, ended=time.time()).run
    with wide.metrics.open("w") as file:
        names = ["loss", *(f"layer{number}/norm" for number in range(WIDE_METRICS - 1))]
        known = [{name: (at % 977 + place) / (at + 9) for place, name in enumerate(names)} for at in range(5000)]
        told = [json.dumps(one)[1:] for one in known]
        file.writelines(f'{{"attempt": 1, "step": {at}, {told[at % 5000]}\n' for at in range(WIDE_STEPS))
    long = RunBuilder(home, "long log", time.time()).status("ended").launch().exit(code=0, ended=time.time()).run
    lines = "".join(f"step {step} loss {9 / (step + 9):.4f} and a few words more\n" for step in range(20_000))
    with long.attempt(1).output.open("w") as log:
        while log.tell() < log_bytes:
            log.write(lines)


def listing(count: int, log_bytes: int = 1 << 30) -> None:
    with tempfile.TemporaryDirectory(prefix="mpstui-scale-") as folder:
        home = Home(Path(folder), Path(folder))
        home.runs.mkdir(parents=True)
        ended_runs(home, count, log_bytes)
        kept, began = home.state / "cache" / "runs.jsonl", time.monotonic()
        with shown(home) as (_, drain):
            while not kept.exists() or kept.read_bytes().count(b"\t") < 3 * count:
                drain(0.5)
        print(f"list, {count} ended runs: all but the long one read in {time.monotonic() - began:.1f} s", end="; ")
        first = Monitor(home, kept=Summaries(kept)).refresh()
        print(f"not read in the first frame of the next start: {sum(one.unread for one in first)}", flush=True)
        with shown(home) as (app, drain):
            drain(6.0)
            tell_keys("list", app, drain, "j")
            for key in "/wide\r\rg":
                os.write(_TERMINALS[app], key.encode())
                drain(2.0)
            settle(app, drain)
            tell_keys("grid", app, drain, *GRID_KEYS)


def settle(app: int, drain: Callable[[float], None]) -> None:
    """Wait until it has read what it reads."""
    before = -1.0
    while usage([app]).seconds - before > 0.1:
        before = usage([app]).seconds
        drain(2.0)


def tell_keys(where: str, app: int, drain: Callable[[float], None], *keys: str) -> None:
    """How soon a hundred keys are answered, what each takes of the processor, and what is resident then."""
    before = usage([app]).seconds
    waits = sorted(pressed(app, drain, keys[number % len(keys)]) for number in range(100))
    took = (usage([app]).seconds - before) * 10
    memory = int(Path(f"/proc/{app}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    print(f"{where}: from a key to its frame {waits[50]:.0f} ms, 95 of 100 within {waits[95]:.0f} ms,", end=" ")
    print(f"{took:.0f} ms of processor time; resident {memory:.0f} MiB", flush=True)


def pressed(app: int, drain: Callable[[float], None], key: str) -> float:
    """Milliseconds from a key to the first byte that the screen writes."""
    drain(0.05)
    terminal = _TERMINALS[app]
    began = time.perf_counter()
    os.write(terminal, key.encode())
    select.select([terminal], [], [], 2.0)
    return (time.perf_counter() - began) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="launch,supervisors,screen")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # or two hundred supervisors would outlive it
    print(f"{os.cpu_count()} cores, load {', '.join(f'{one:.1f}' for one in os.getloadavg())}", flush=True)
    parts: dict[str, Callable[[], None]] = {
        "launch": launch,
        "supervisors": lambda: supervisors(chosen.runs, chosen.seconds),
        "list": lambda: listing(chosen.runs),
        "screen": lambda: screen(chosen.runs, chosen.seconds),
    }
    for name in chosen.only.split(","):
        parts[name]()


if __name__ == "__main__":
    main()
