"""One real cluster for all tests of this folder; `make cluster` runs them, no other command does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ssh_lab import SshLab, ssh_lab

from .lab import Lab, missing

__all__ = ["ssh_lab"]

if not os.environ.get("MPSTUI_TEST_CLUSTER"):
    collect_ignore_glob = ["test_*.py"]

TRAINING = """
name = "training"
command = ["{python}", "-P", "-m", "{trainer}", "cifar", "--device", "cpu"]
device = "cpu"
[args]
model = "tiny"
limit = 512
epochs = 3
batch-size = 64
seed = 5
workers = 0
[env]
OMP_NUM_THREADS = "1"
[resume]
args = ["--resume", "{checkpoint}"]
checkpoints = "checkpoints/*.pt"
"""


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    if why := missing():
        pytest.skip(f"no cluster here: {why}")
    with tempfile.TemporaryDirectory(prefix="mpstui-lab") as folder:
        found = Lab(Path(folder))
        try:
            yield found.start()
        finally:
            found.stop()


class User:
    """Somebody on the login node, with a home and a profile."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        self.lab, self.folder = lab, folder
        (folder / "project").mkdir()
        self.profile = folder / "project" / "training.toml"
        self.profile.write_text(TRAINING)
        self.environ = {**os.environ, **lab.environ, "MPSTUI_HOME": str(folder / "home")}

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "mpstui", *words], env=self.environ, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def launch(self, *words: str) -> list[str]:
        """Ids of the runs."""
        return self.run("launch", str(self.profile), *words).split()

    def see(self, run: str, *on: str) -> dict[str, Any]:
        """What is known of a run, here or ``--host NAME``."""
        found: dict[str, Any] = json.loads(self.run(*on, "show", run, "--json"))
        return found

    def wait(
        self, run: str, condition: Callable[[dict[str, Any]], object], *on: str, seconds: float = 240
    ) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while not condition(found := self.see(run, *on)):
            told = {name: found[name] for name in ("state", "reason", "job", "step", "attempt")}
            assert time.monotonic() < deadline, (told, [event["text"] for event in found["events"]])
            time.sleep(0.5)
        return found

    def final_loss(self, run: str) -> tuple[int, float]:
        """Where it was validated last, and the loss then. What is printed meanwhile is an average over some time."""
        lines = (self.folder / "home" / "runs" / run / "metrics.jsonl").read_text().splitlines()
        points = [json.loads(line) for line in lines]
        return max((point["step"], point["val_loss"]) for point in points if point.get("val_loss") is not None)

    def weights(self, run: str) -> Any:
        import torch

        folder = self.folder / "home" / "runs" / run / "checkpoints"
        newest = max(folder.glob("step-*.pt"))
        return torch.load(newest, weights_only=True)["model"]


class Hosts(User):
    """Somebody at a desk, with a machine to train on and a login node of the cluster, both over ssh."""

    def __init__(self, folder: Path, lab: Lab, ssh: SshLab) -> None:
        super().__init__(folder, lab)
        ssh.host("gpu1")
        ssh.host("login", first=f"export SLURM_CONF={lab.environ['SLURM_CONF']}")
        self.environ["MPSTUI_SSH"] = ssh.environ["MPSTUI_SSH"]
        del self.environ["SLURM_CONF"]
        (folder / "home").mkdir()
        python = "".join(f'[hosts.{name}]\npython = "{sys.executable}"\n' for name in ("gpu1", "login"))
        (folder / "home" / "settings.toml").write_text(python)


@pytest.fixture
def desk(tmp_path: Path, lab: Lab, ssh_lab: SshLab) -> Hosts:
    return Hosts(tmp_path, lab, ssh_lab)


@pytest.fixture
def user(tmp_path: Path, lab: Lab) -> User:
    return User(tmp_path, lab)
