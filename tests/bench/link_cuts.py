"""Real ssh lines that are cut, frozen and killed: ``python -m tests.bench.link_cuts [TIMES]``.

Three hosts with ten runs each. Again and again something happens to runs (they start, end, crash, are asked to stop)
while sessions of the daemon are killed or stopped; then every state must be right within two seconds of the line's
return, no request may be there twice or without having been told, and in the end no process of ours may be left.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from mpstui.core.hosts.joined import JoinedServices, connections
from mpstui.core.model.errors import ReportedError
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import State
from mpstui.core.settings import HostSettings, HostsSettings
from tests.core.runs.build import RunBuilder
from tests.ssh_lab import SshLab

HOSTS, RUNS = 3, 10
RIGHT_SECONDS = 2.0


class Soak:
    def __init__(self, folder: Path) -> None:
        daemon = shutil.which("sshd") or "/usr/sbin/sshd"
        self.lab = SshLab(folder, daemon)
        self.lab.wait_for_daemon()
        self.names = [f"gpu{number}" for number in range(HOSTS)]
        self.homes = {name: self._home(self.lab.host(name)) for name in self.names}
        named = {name: HostSettings(home=str(home.state)) for name, home in self.homes.items()}
        ways = connections(self.names, HostsSettings(named=named), {**os.environ, **self.lab.environ})
        self.services = JoinedServices(Home(folder / "own", folder / "own"), {}, folder, time.time, hosts=ways)
        self.monitor: Any = self.services.monitor()
        self.runs: dict[str, list[RunBuilder]] = {name: [] for name in self.names}
        self.right: dict[str, State] = {}
        self.sent: dict[str, int] = {}
        self.doubtful: dict[str, int] = {}
        self.worst = 0.0
        for name in self.names:
            for _ in range(RUNS):
                self.begin(name)
        self.services.start()

    @staticmethod
    def _home(home: Path) -> Home:
        state = home / "mpstui-home"
        state.mkdir(mode=0o700)
        return Home(state, state)

    def begin(self, name: str) -> None:
        run = RunBuilder(self.homes[name], f"run {len(self.runs[name])}", time.time()).status("running").launch().hold()
        self.runs[name].append(run)
        self.right[f"{name}:{run.run.run}"] = State.RUNNING

    def happens(self) -> None:
        """Something to a run."""
        name = random.choice(self.names)
        run = random.choice(self.runs[name])
        key = f"{name}:{run.run.run}"
        what = random.choice(["begin", "end", "crash", "ask", "ask"])
        if what == "begin" and len(self.runs[name]) < 2 * RUNS:
            self.begin(name)
        elif what in ("end", "crash") and self.right[key] is State.RUNNING:
            run.release().exit(code=0 if what == "end" else 3).status("ended")
            self.right[key] = State.FINISHED if what == "end" else State.FAILED
        elif what == "ask":
            self.ask(key)

    def ask(self, key: str) -> None:
        snapshot = next((one for one in self.monitor.refresh() if one.run == key), None)
        if snapshot is None or self.right[key] is not State.RUNNING:
            return  # one that has ended would be given a real supervisor
        try:
            self.services.actions.send(snapshot, "stop")
            self.sent[key] = self.sent.get(key, 0) + 1
        except ReportedError as error:
            if "as soon as it is heard" in error.sentence:
                self.doubtful[key] = self.doubtful.get(key, 0) + 1

    def breaks(self) -> None:
        """Something to the lines."""
        sessions = self.lab.sessions()
        how = random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
        for session in random.sample(sessions, min(len(sessions), random.randrange(1, 4))):
            try:
                session.send_signal(how)
            except psutil.NoSuchProcess:
                continue

    def wrong(self) -> list[str]:
        known = {one.run: one.state for one in self.monitor.refresh()}
        return [key for key, state in self.right.items() if known.get(key) is not state]

    def settle(self) -> None:
        """All lines are back, and soon all states are right."""
        while not all(host.link.live for host in self.services.hosts):
            self.monitor.refresh()
            time.sleep(0.02)
        back = time.monotonic()
        while wrong := self.wrong():
            took = time.monotonic() - back
            assert took < 5 * RIGHT_SECONDS, {key: (self.right[key], key) for key in wrong}
            if not all(host.link.live for host in self.services.hosts):
                return  # broken again by what broke it before
            time.sleep(0.02)
        self.worst = max(self.worst, time.monotonic() - back)

    def requests(self) -> int:
        return sum(
            not path.name.endswith(".ack.json")
            for runs in self.runs.values()
            for run in runs
            for path in run.run.requests.glob("*.json")
        )


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    random.seed(7)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder))
        try:
            soak.settle()
            for number in range(times):
                soak.happens()
                if number % 2:
                    soak.breaks()
                soak.happens()
                soak.settle()
            notices = list(soak.services.notices)
            done = sum("was done" in one for one in notices)
            told = sum(soak.sent.values()) + done
            print(
                f"{times} rounds: states right {soak.worst:.2f} s after a line's return at the latest; "
                f"{soak.requests()} requests there, {told} told as done, {sum(soak.doubtful.values())} in doubt first"
            )
            assert soak.worst <= RIGHT_SECONDS
        finally:
            soak.services.close()
            soak.lab.close()
        time.sleep(1.0)
        left = [one for one in psutil.process_iter(["cmdline"]) if folder in " ".join(one.info["cmdline"] or ())]
        assert not left, left


if __name__ == "__main__":
    main()
