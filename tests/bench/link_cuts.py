"""Real ssh lines that are cut, frozen and killed: ``python -m tests.bench.link_cuts [TIMES] [SEED]``.

Three hosts with ten runs each, two of which print numbered lines. Again and again something happens to runs (they
start, end, crash, are asked to stop) while the daemon's sessions, the far processes and our own ssh are killed or
stopped. Every state must be right within two seconds of the line's return, no request may be there twice or without
having been told, no line of a log may be missing or there twice, neither on the screen nor in ``mpstui logs -f``, and
in the end no process of ours may be left.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import psutil  # type: ignore[import-untyped]

from mpstui.core.hosts.joined import JoinedServices, connections
from mpstui.core.model.errors import ReportedError
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import State
from mpstui.core.settings import HostSettings, HostsSettings
from tests.core.runs.build import RunBuilder
from tests.ssh_lab import SshLab

HOSTS, RUNS, TALKERS = 3, 10, 2
RIGHT_SECONDS = 2.0


class Talker:
    """A run whose log grows by numbered lines, sometimes by half of one."""

    def __init__(self, name: str, run: RunBuilder) -> None:
        self.host, self.run = name, run
        self.path = run.run.attempt(1).output
        self.path.touch(0o600)
        self.lines = 0
        self._rest = b""
        self._lock = Lock()

    def talk(self) -> None:
        with self._lock:
            new = b"".join(self._line(self.lines + number) for number in range(1, random.randrange(2, 20)))
            self.lines += new.count(b"\n")
            cut = random.randrange(len(new))
            with self.path.open("ab", 0) as file:
                file.write(self._rest + new[:cut])
            self._rest = new[cut:]

    def finish(self) -> None:
        with self._lock, self.path.open("ab", 0) as file:
            file.write(self._rest)

    @staticmethod
    def _line(number: int) -> bytes:
        return f"line {number} of a training, with an é {'x' * (number % 50)}\n".encode()


class Soak:
    def __init__(self, folder: Path) -> None:
        daemon = shutil.which("sshd") or "/usr/sbin/sshd"
        self.folder, self.lab = folder, SshLab(folder, daemon)
        self.lab.wait_for_daemon()
        self.names = [f"gpu{number}" for number in range(HOSTS)]
        self.homes = {name: self._home(self.lab.host(name)) for name in self.names}
        named = {name: HostSettings(home=str(home.state)) for name, home in self.homes.items()}
        self.environ = {**os.environ, **self.lab.environ, "MPSTUI_HOME": str(folder / "own")}
        own = Home(folder / "own", folder / "own")
        own.state.mkdir(mode=0o700)
        lines = (f'[hosts.{name}]\nhome = "{home.state}"\n' for name, home in self.homes.items())
        (own.config / "settings.toml").write_text("".join(lines))
        ways = connections(self.names, HostsSettings(named=named), self.environ)
        self.services = JoinedServices(own, {}, folder, time.time, hosts=ways)
        self.monitor: Any = self.services.monitor()
        self.runs: dict[str, list[RunBuilder]] = {name: [] for name in self.names}
        self.right: dict[str, State] = {}
        self.sent: dict[str, int] = {}
        self.doubtful = 0
        self.worst = self.worst_log = 0.0
        self.slow: list[tuple[float, str, float]] = []
        """Seconds, what was wrong last, and the load of this machine."""
        self.worst_idle = 0.0
        """While this machine had a processor for each that wanted one: others are not the line's delay."""
        self.breaks_done: dict[str, int] = {}
        self.stopped: list[psutil.Process] = []
        for name in self.names:
            for _ in range(RUNS):
                self.begin(name)
        self.talkers = [Talker(name, run) for name in self.names for run in self.runs[name][:TALKERS]]
        self.over = Event()
        self.talking = Thread(target=self._talk, daemon=True)
        self.talking.start()
        self.followers = [self._follower(talker) for talker in self.talkers[::TALKERS]]
        self.services.start()

    @staticmethod
    def _home(home: Path) -> Home:
        state = home / "mpstui-home"
        state.mkdir(mode=0o700)
        return Home(state, state)

    def _talk(self) -> None:
        while not self.over.wait(0.2):
            for talker in self.talkers:
                talker.talk()

    def _follower(self, talker: Talker) -> tuple[Talker, subprocess.Popen[bytes], Path]:
        out = self.folder / f"{talker.host}.followed"
        words = [sys.executable, "-m", "mpstui", "logs", "-f", talker.run.run.run, "--host", talker.host]
        with out.open("wb") as file, (self.folder / f"{talker.host}.said").open("wb") as said:
            return talker, subprocess.Popen(words, env=self.environ, stdout=file, stderr=said), out

    def begin(self, name: str) -> None:
        run = RunBuilder(self.homes[name], f"run {len(self.runs[name])}", time.time()).hold().status("running").launch()
        self.runs[name].append(run)
        self.right[f"{name}:{run.run.run}"] = State.RUNNING

    def happens(self) -> None:
        """Something to a run."""
        name = random.choice(self.names)
        run = random.choice(self.runs[name][TALKERS:])
        key = f"{name}:{run.run.run}"
        what = random.choice(["begin", "end", "crash", "ask", "ask"])
        if what == "begin" and len(self.runs[name]) < 2 * RUNS:
            self.begin(name)
        elif what in ("end", "crash") and self.right[key] is State.RUNNING:
            self.end(key, run, State.FINISHED if what == "end" else State.FAILED)
        elif what == "ask":
            self.ask(key)

    def end(self, key: str, run: RunBuilder, state: State) -> None:
        run.exit(code=0 if state is State.FINISHED else 3).status("ended").release()
        self.right[key] = state

    def ask(self, key: str) -> None:
        snapshot = next((one for one in self.monitor.refresh() if one.run == key), None)
        if snapshot is None or self.right[key] is not State.RUNNING:
            return  # one that has ended would be given a real supervisor
        try:
            self.services.actions.send(snapshot, "stop")
            self.sent[key] = self.sent.get(key, 0) + 1
        except ReportedError as error:
            self.doubtful += "as soon as it is heard" in error.sentence

    def breaks(self) -> None:
        """Something to the lines: to the daemon's sessions, to what runs in them, to our own ssh."""
        sessions = self.lab.sessions()
        within = [one for session in sessions for one in _children(session) if not _name(one).startswith("sshd")]
        ours = [one for one in _children(psutil.Process()) if _name(one) == "ssh"]
        where, found = random.choice([("sessions", sessions), ("far processes", within), ("ssh", ours)])
        how = random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
        for one in random.sample(found, min(len(found), random.randrange(1, 4))):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(how)
                self.breaks_done[f"{where} {how.name}"] = self.breaks_done.get(f"{where} {how.name}", 0) + 1
                self.stopped += [one] if how == signal.SIGSTOP else []

    def thaws(self) -> None:
        while self.stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                self.stopped.pop().send_signal(signal.SIGCONT)

    def wrong(self) -> dict[str, Any]:
        known = {one.run: one for one in self.monitor.refresh()}
        return {
            key: (state, found and (found.state, found.reason, found.heard))
            for key, state in self.right.items()
            if (found := known.get(key)) is None or found.state is not state
        }

    def is_live(self) -> bool:
        return all(host.link.live for host in self.services.hosts)

    def settle(self) -> None:
        """All lines are back, and soon all states and logs are right."""
        while not self.is_live():
            self.monitor.refresh()
            time.sleep(0.02)
        back, last = time.monotonic(), ""
        while wrong := self.wrong():
            last = str(wrong)
            assert time.monotonic() - back < 5 * RIGHT_SECONDS, wrong
            if not self.is_live():
                return  # broken again by what broke it before
            time.sleep(0.02)
        took = time.monotonic() - back
        load = os.getloadavg()[0]
        self.slow += [(round(took, 2), last, round(load, 1))] if took > RIGHT_SECONDS else []
        self.worst = max(self.worst, took)
        self.worst_idle = max(self.worst_idle, took if load <= (os.cpu_count() or 1) else 0.0)

    def look_at_log(self) -> None:
        """Any place of any log, as the screen has it."""
        talker = random.choice(self.talkers)
        there = talker.path.stat().st_size
        log = self.services.open_log(Path(f"{talker.host}:{talker.path}"))
        began = time.monotonic()
        while not (log.refresh() and log.size_bytes >= there):
            if not self.is_live() or time.monotonic() - began > 10 * RIGHT_SECONDS:
                assert not self.is_live(), f"{talker.host}: {log.size_bytes} of {there} bytes"
                return
            time.sleep(0.02)
        self.worst_log = max(self.worst_log, time.monotonic() - began)
        lines = log.tail(40)
        require_consecutive(lines, whole=False)
        require_consecutive(log.window(random.randrange(log.size_bytes), 60), whole=False)
        require_consecutive(log.at_line(random.randrange(1, max(2, log.line_count or 1)), 60), whole=False)

    def read_logs_whole(self) -> None:
        """Window after window, from the first line to the last."""
        for talker in self.talkers:
            log = self.services.open_log(Path(f"{talker.host}:{talker.path}"))
            while not (log.refresh() and log.size_bytes == talker.path.stat().st_size):
                time.sleep(0.02)
            at, seen = 0, list[Any]()
            while window := log.window(at, 80):
                seen += window
                at = window[-1].end
            assert len(seen) == talker.lines, (len(seen), talker.lines)
            require_consecutive(seen, whole=True)

    def requests(self) -> int:
        return sum(
            not path.name.endswith(".ack.json")
            for runs in self.runs.values()
            for run in runs
            for path in run.run.requests.glob("*.json")
        )

    def finish(self) -> None:
        """Everything ends, and everything is counted."""
        self.thaws()
        self.over.set()
        self.talking.join()
        for talker in self.talkers:
            talker.finish()
        self.settle()
        self.read_logs_whole()
        for talker, process, out in self.followers:
            self.end(f"{talker.host}:{talker.run.run.run}", talker.run, State.FINISHED)
            assert process.wait(60) == 0, (self.folder / f"{talker.host}.said").read_text()
            assert out.read_bytes() == talker.path.read_bytes(), talker.host
        self.settle()


def require_consecutive(lines: Any, *, whole: bool) -> None:
    """Each line is the one after the line before it, and has its number."""
    told = [(int(line.text.split()[1]), line.number) for line in lines[: None if whole else -1]]
    first = 1 if whole or not told else told[0][0]
    assert [number for number, _ in told] == [*range(first, first + len(told))], told
    assert all(known in (number, None) for number, known in told), told


def _name(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return str(process.name())
    return ""


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 7)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder))
        try:
            soak.settle()
            for number in range(times):
                soak.happens()
                soak.breaks()
                soak.happens()
                soak.settle()
                soak.look_at_log()
                if number % 3 == 2:
                    soak.thaws()
            soak.finish()
            ends = ("was done before", "did not get there")
            done = [sum(end in one for one in soak.services.notices) for end in ends]
            told = sum(soak.sent.values()) + done[0]
            print(
                f"{times} times in {time.monotonic() - began:.0f} s: states right {soak.worst:.2f} s and the log's end "
                f"{soak.worst_log:.2f} s after a line's return at the latest; {soak.requests()} requests there, {told} "
                f"told as done, {soak.doubtful} in doubt first; {sum(one.lines for one in soak.talkers)} lines, none "
                f"lost or doubled; {sum(path.read_text().count('since') for path in Path(folder).glob('*.said'))} cuts "
                f"of `logs -f`\n{soak.breaks_done}\n" + "\n".join(map(str, soak.slow))
            )
            assert soak.worst_idle <= RIGHT_SECONDS
            assert soak.requests() == told
            assert soak.doubtful == sum(done)
        finally:
            soak.over.set()
            soak.thaws()
            soak.services.close()
            for _, process, _ in soak.followers:
                process.kill()
            deadline = time.monotonic() + 20
            while (left := _left(folder)) and time.monotonic() < deadline:
                time.sleep(0.2)
            soak.lab.close()
        assert not left, left


def _left(folder: str) -> list[psutil.Process]:
    """Processes of ours on either side, apart from the daemon."""
    found = []
    for one in psutil.process_iter(["cmdline", "environ", "name"]):
        words, around = " ".join(one.info["cmdline"] or ()), one.info["environ"] or {}
        if one.pid != os.getpid() and not one.info["name"].startswith("sshd"):
            found += [one] if folder in words or folder in around.get("HOME", "") else []
    return found


if __name__ == "__main__":
    main()
