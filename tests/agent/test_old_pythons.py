"""The agent inside Pythons older than our own: every one found on this machine from 3.9 on runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import mpstui
from mpstui.wire import rundir
from mpstui.wire.rundir import RunDir
from tests.waiting import wait_until

PACKAGE = Path(mpstui.__file__).parent
OLDEST = (3, 9)
FAKE_TORCH = """
class Tensor: pass
class _Mps:
    @staticmethod
    def is_available(): return False
class backends: mps = _Mps
class autograd:
    @staticmethod
    def backward(*args): pass
class amp:
    class GradScaler:
        def scale(self, loss): return loss
import torch.optim.optimizer
"""
OPTIMIZER = """
hooks = []
def register_optimizer_step_post_hook(hook): hooks.append(hook)
class Parameter:
    class device: type = "cpu"
class Optimizer:
    param_groups = [{"params": [Parameter], "lr": 0.5}]
    def step(self):
        for hook in hooks: hook(self, (), {})
"""
PROGRAM = """
import sitecustomize, sys, time, torch, torch.optim.optimizer
def mpstui_save(): return "w.pt"
optimizer = torch.optim.optimizer.Optimizer()
while True:
    optimizer.step()
    time.sleep(0.02)
"""


def older_pythons() -> Iterator[str]:
    """Interpreters from 3.9 up to ours, without ours: on PATH and of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for minor in range(OLDEST[1], sys.version_info[1]):
        name = f"python{OLDEST[0]}.{minor}"
        built = [str(path) for path in sorted(pyenv.glob(f"{OLDEST[0]}.{minor}.*/bin/{name}"))]
        on_path = shutil.which(name)
        yield from built or ([on_path] if on_path else [])


@pytest.fixture(params=list(older_pythons()) or [""])
def python(request: pytest.FixtureRequest) -> str:
    if not request.param:
        pytest.skip("no Python older than ours, from 3.9 on, was found on PATH or under pyenv")
    return str(request.param)


def test_every_module_can_be_imported(python: str) -> None:
    files = [path for folder in ("wire", "agent") for path in (PACKAGE / folder).glob("*.py")]
    modules = [f"mpstui.{path.parent.name}.{path.stem}" for path in files]
    code = f"import sys; sys.path.append({str(PACKAGE.parent)!r})\n" + "".join(f"import {name}\n" for name in modules)
    done = subprocess.run([python, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_training_reports_and_answers(python: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    for folder in (run.requests, run.attempt(1).path, tmp_path / "torch" / "optim"):
        folder.mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    (tmp_path / "torch" / "optim" / "__init__.py").touch()
    (tmp_path / "torch" / "optim" / "optimizer.py").write_text(OPTIMIZER)
    (tmp_path / "train.py").write_text(PROGRAM)
    asked = [rundir.submit(run, rundir.new_request(action, 1, time.time())) for action in ("clear_cache", "save")]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        **{"PYTHONPATH": str(PACKAGE / "agent" / "boot"), "MPSTUI_AGENT": "1"},
        **{"MPSTUI_RUN_DIR": str(run.path), "MPSTUI_ATTEMPT": "1"},
    }
    with (tmp_path / "out").open("wb") as out:
        child = subprocess.Popen([python, "-S", "train.py"], cwd=tmp_path, env=environment, stdout=out, stderr=out)
    try:
        wait_until(lambda: run.metrics.exists() and all(run.ack(request.id).exists() for request in asked))
    finally:
        child.kill()
        child.wait()
    assert (tmp_path / "out").read_text() == ""
    cleared, saved = (json.loads(run.ack(request.id).read_text()) for request in asked)
    assert (cleared["ok"], cleared["by"], saved["ok"]) == (True, "agent", True)
    assert saved["text"].endswith(": w.pt")
    beat = json.loads(run.attempt(1).heartbeat().read_text())
    assert (beat["phase"], beat["device"], beat["lr"]) == ("train", {"type": "cpu"}, 0.5)
    number, pid, _ = map(int, run.attempt(1).stack_signal.read_text().split())
    assert (number, pid) == (signal.SIGURG, child.pid)
