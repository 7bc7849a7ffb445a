"""A home, a scheduler of our own making on PATH, and runs that are its jobs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mpstui.core.engines import board
from mpstui.core.launching.choice import LaunchChoice, combinations
from mpstui.core.launching.launch import launch_all
from mpstui.core.launching.planning import plan
from mpstui.core.machine import Machine, this_machine
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.profiles.parse import parse_profile
from mpstui.core.runs.monitor import Monitor
from tests.slurm.fake import FakeCluster

SAVES = """
import os, signal, sys, time
from pathlib import Path
folder = Path(os.environ["MPSTUI_RUN_DIR"]) / "checkpoints"
folder.mkdir(exist_ok=True)
begun = int(Path(sys.argv[sys.argv.index("--resume") + 1]).stem) if "--resume" in sys.argv else 0
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
print("begun at", begun, flush=True)
while not asked and not (Path.cwd() / "enough").exists():
    time.sleep(0.01)
if asked:
    (folder / f"{begun + 1}.tmp").write_text("x" * 10)
    (folder / f"{begun + 1}.tmp").rename(folder / f"{begun + 1}.ckpt")
"""
"""Trains until it is asked to end, or until there is enough; then saves how often it was begun."""
PROFILE = """
command = ["{python}", "-I", "-S", "train.py"]
agent = false
[resume]
args = ["--resume", "{checkpoint}"]
checkpoints = "checkpoints/*.ckpt"
[slurm]
partition = "gpu"
"""


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    board.board_of.cache_clear()
    monkeypatch.setattr(board, "ASK_EVERY_SECONDS", 0.25)
    monkeypatch.setattr(board, "EASY_TIMES", 0.0)
    monkeypatch.setattr(board, "JUST_SUBMITTED_SECONDS", 0.0)
    # A busy machine takes longer to start a program than a person would wait for what it says.
    monkeypatch.setattr(board, "FIRST_ANSWER_SECONDS", 60.0)
    monkeypatch.setattr(board, "GIVE_UP_SECONDS", 60.0)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    made = FakeCluster.install(tmp_path / "cluster")
    monkeypatch.setenv("PATH", f"{tmp_path / 'cluster' / 'bin'}:{os.environ['PATH']}")
    return made


class Cluster:
    """Launches runs of the profile, and looks at them."""

    def __init__(self, folder: Path, home: Home) -> None:
        self.folder, self.home = folder, home
        self.machine: Machine = this_machine()
        self.folder.mkdir()
        (folder / "train.py").write_text(SAVES)

    def launch(self, profile: str = PROFILE, **choice: object) -> list[str]:
        read = parse_profile(profile, path=self.folder / "job.toml", default_cwd=self.folder)
        made = combinations(LaunchChoice(read, **choice))  # type: ignore[arg-type]
        environ = dict(os.environ)
        plans = [plan(one, environ=environ, machine=self.machine) for one in made]
        return launch_all(plans, self.home, environ, time.time)

    def see(self, run: str) -> RunSnapshot:
        return Monitor(self.home).snapshot(run)

    def wait(self, run: str, condition: Callable[[RunSnapshot], object], what: str = "") -> RunSnapshot:
        deadline = time.monotonic() + 60
        while not condition(found := self.see(run)):
            assert time.monotonic() < deadline, f"{what or run}: {found.state}, {found.reason}, {found.job}"
            time.sleep(0.05)
        return found

    def enough(self) -> None:
        """The programs end by themselves."""
        (self.folder / "enough").touch()


@pytest.fixture
def runs(tmp_path: Path, cluster: FakeCluster) -> Cluster:
    assert sys.executable
    return Cluster(tmp_path / "code", Home(state=tmp_path / "home", config=tmp_path / "home"))
