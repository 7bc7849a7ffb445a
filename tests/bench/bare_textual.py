"""`make bench-start`: mpstui beside a bare Textual program, in turn, in one run (Linux).

    python -m tests.bench.bare_textual [--only start,commands,idle] [--runs 9] [--seconds 20]

start     from the call to the first frame, and to the first key that is answered: pressed once the frame is there
commands  what prints something and ends, beside a Python that does nothing
idle      processor time and wake-ups while nobody presses a key

Medians; processor time first, since a busy machine falsifies it less than the clock.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mpstui.core.model.home import Home
from tests.bench.scale import usage
from tests.core.runs.build import RunBuilder
from tests.terminal import fork_on_terminal

MPSTUI = str(Path(sys.executable).with_name("mpstui"))
BARE = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("first frame")
    def on_key(self):
        self.query_one(Static).update("answered")
Bare().run()
"""
SETTLING_SECONDS = 8.0
NAMES = (
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heath",
    "isle",
    "jade",
    "kelp",
    "larch",
    "maple",
)
LIVE = (
    "import sys, time\nfor step in range(9_000): print('step', step, 'loss', 9 / (step + 9), flush=True); time.sleep(1)"
)


class Program(NamedTuple):
    """One that is measured: what its first frame shows, a key, and what answers it."""

    name: str
    argv: Sequence[str]
    first: bytes
    key: str
    answer: bytes
    home: str = "ended"


class Taken(NamedTuple):
    """Milliseconds of processor time and by the clock."""

    cpu: float
    clock: float


def cpu_of(pid: int) -> float:
    """Processor seconds of a process until now, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)


class Shown:
    """A program on a terminal of its own, whose words are kept and not drawn."""

    def __init__(self, program: Program, home: Path) -> None:
        environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "MPSTUI_HOME": str(home)}
        self.began = time.monotonic()
        self.pid, self.terminal = fork_on_terminal(program.argv, environ, None, 40, 120)
        self.words = b""

    def read(self, seconds: float) -> None:
        if select.select([self.terminal], [], [], seconds)[0]:
            self.words += os.read(self.terminal, 1 << 16)

    def until(self, wanted: bytes, patience: float = 60.0) -> Taken:
        """What it has taken when it has written something."""
        while wanted not in self.words:
            self.read(0.5)
            if time.monotonic() - self.began > patience:
                raise SystemExit(f"never saw {wanted!r} in {self.words[-200:]!r}")
        return Taken(cpu_of(self.pid) * 1000, (time.monotonic() - self.began) * 1000)

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def started(program: Program, home: Path) -> tuple[Taken, Taken]:
    """What the first frame took, and the answer to a key after it."""
    shown = Shown(program, home)
    try:
        first = shown.until(program.first)
        shown.words = b""
        os.write(shown.terminal, program.key.encode())
        return first, shown.until(program.answer)
    finally:
        shown.end()


def make_home(folder: Path, *, live: int) -> Path:
    """Ended runs with curves, which a screen has read once before; so many that go on."""
    home = Home(folder, folder)
    home.runs.mkdir(parents=True)
    for at, name in enumerate(NAMES):
        run = RunBuilder(home, name, time.time() - 3600 + at).status("ended").launch().exit(code=0, ended=time.time())
        run.points(*({"attempt": 1, "step": step, "loss": 9 / (step + 9)} for step in range(500)))
    environ = {**os.environ, "MPSTUI_HOME": str(folder)}
    for number in range(live):
        words = (MPSTUI, "run", "--name", f"live {number}", "--", sys.executable, "-c", LIVE)
        subprocess.run(words, env=environ, check=True, capture_output=True)
    return folder


def programs() -> dict[str, Program]:
    newest, second = NAMES[-1], NAMES[-2]
    return {
        "bare Textual": Program("bare Textual", (sys.executable, "-c", BARE), b"first frame", "j", b"answered"),
        "list": Program("list", (MPSTUI,), newest.encode(), "j", second.encode()),
        "one run": Program("one run", (MPSTUI, newest), b"checkpoints", "?", b"palette"),
    }


def start(homes: Mapping[str, Path], runs: int) -> None:
    took: dict[str, list[tuple[Taken, Taken]]] = {name: [] for name in programs()}
    for turn in range(runs + 1):
        for name, program in programs().items():
            found = started(program, homes[program.home])
            if turn:  # the first one fills caches
                took[name].append(found)
    print("| start | first frame, CPU ms | clock ms | key answered, CPU ms | clock ms | of bare, CPU | clock |")
    print("|---|---|---|---|---|---|---|")
    bare = [median_of([pair[1] for pair in took["bare Textual"]])]
    for name, pairs in took.items():
        first, answered = (median_of([pair[at] for pair in pairs]) for at in (0, 1))
        ratios = f"{answered.cpu / bare[0].cpu:.2f} | {answered.clock / bare[0].clock:.2f}"
        print(
            f"| {name} | {first.cpu:.0f} | {first.clock:.0f} | {answered.cpu:.0f} | {answered.clock:.0f} | {ratios} |"
        )


def median_of(taken: Sequence[Taken]) -> Taken:
    return Taken(statistics.median(one.cpu for one in taken), statistics.median(one.clock for one in taken))


def commands(homes: Mapping[str, Path], runs: int) -> None:
    asked = {
        "python -c pass": (sys.executable, "-c", "pass"),
        **{
            f"mpstui {words}": (MPSTUI, *words.split())
            for words in ("--version", "--help", "ps", "ps --help", "show jade")
        },
    }
    took: dict[str, list[Taken]] = {name: [] for name in asked}
    for turn in range(runs + 1):
        for name, argv in asked.items():
            began = time.monotonic()
            done = os.posix_spawn(
                argv[0], argv, {**os.environ, "MPSTUI_HOME": str(homes["ended"])}, file_actions=_QUIET
            )
            spent = os.wait4(done, 0)[2]
            if turn:
                took[name].append(Taken((spent.ru_utime + spent.ru_stime) * 1000, (time.monotonic() - began) * 1000))
    print("| command | CPU ms | clock ms |\n|---|---|---|")
    for name, found in took.items():
        print(f"| {name} | {median_of(found).cpu:.0f} | {median_of(found).clock:.0f} |")


_QUIET = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]


def idle(homes: Mapping[str, Path], seconds: float) -> None:
    """All side by side in the same seconds, so that they suffer the same neighbours."""
    listed = programs()
    shown = {
        "bare Textual": listed["bare Textual"],
        "list, all ended": listed["list"],
        "list, six live": listed["list"]._replace(home="live"),
        "a run that has ended": listed["one run"],
        "a live run": Program("", (MPSTUI, "live 0"), b"checkpoints", "", b"", "live"),
    }
    running: dict[str, Shown] = {}
    try:
        for name, program in shown.items():
            running[name] = Shown(program, homes[program.home])
            running[name].until(program.first)
        drain(list(running.values()), SETTLING_SECONDS)
        before = {name: (cpu_of(one.pid), usage([one.pid]).switches) for name, one in running.items()}
        began = time.monotonic()
        drain(list(running.values()), seconds)
        took = time.monotonic() - began
        print("| idle | CPU, % of a core | of bare | wake-ups/s |\n|---|---|---|---|")
        bare = cpu_of(running["bare Textual"].pid) - before["bare Textual"][0]
        for name, one in running.items():
            spent = cpu_of(one.pid) - before[name][0]
            woken = (usage([one.pid]).switches - before[name][1]) / took
            print(f"| {name} | {spent / took * 100:.2f} | {spent / bare:.1f} | {woken:.0f} |")
    finally:
        for one in running.values():
            one.end()


def drain(running: Sequence[Shown], seconds: float) -> None:
    """Read what they write, so that none of them waits for its terminal."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        for one in select.select([one.terminal for one in running], [], [], left)[0]:
            os.read(one, 1 << 16)


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or what is new would be compiled at every start
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="start,commands,idle")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {', '.join(f'{one:.1f}' for one in os.getloadavg())}", flush=True)
    parts: dict[str, Callable[[Mapping[str, Path]], None]] = {
        "start": lambda homes: start(homes, chosen.runs),
        "commands": lambda homes: commands(homes, chosen.runs),
        "idle": lambda homes: idle(homes, chosen.seconds),
    }
    wanted = chosen.only.split(",")
    with tempfile.TemporaryDirectory(prefix="mpstui-bench-", ignore_cleanup_errors=True) as folder:
        homes = {"ended": make_home(Path(folder) / "ended", live=0)}
        try:
            if "idle" in wanted:
                homes["live"] = make_home(Path(folder) / "live", live=6)
            for name in wanted:
                parts[name](homes)
        finally:
            for number in range(6 if "live" in homes else 0):
                kill = (MPSTUI, "kill", f"live {number}")
                subprocess.run(
                    kill, env={**os.environ, "MPSTUI_HOME": str(homes["live"])}, capture_output=True, check=False
                )


if __name__ == "__main__":
    main()
