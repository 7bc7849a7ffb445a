"""Small training programs, run in a Python where mpstui is not installed, as the agent meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mpstui
from mpstui.wire.rundir import RunDir
from tests import standin
from tests.warm import CAN_FORK, warm

BOOT = Path(mpstui.__file__).parent / "agent" / "boot"
TORCH_FOLDER = Path(pytest.importorskip("torch").__file__).parents[1]
# -S leaves out site-packages (and with it our editable install) but also sitecustomize, so the script calls it.
PRELUDE = f"try: import sitecustomize\nexcept ImportError: pass\nimport sys; sys.path.append({str(TORCH_FOLDER)!r})\n"
# Torch and its compiler are neither looked through while they are loaded, which takes a quarter of that time, nor once
# more at the end, which takes as long as to load them.
SCRIPT = """
import gc; gc.disable()
import sys, torch
torch.set_num_threads(1)
torch.manual_seed(0)
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05); gc.freeze(); gc.enable()
x = torch.randn(32, 8)
def step(scale=lambda loss: loss):
    optimizer.zero_grad()
    loss = ((net(x) - 1) ** 2).mean()
    scale(loss).backward()
    optimizer.step()
    return loss.item()
"""


def environment(run: Path | None, **extra: str) -> dict[str, str]:
    """Ours without what makes a Python find mpstui, with the agent switched on and torch's compiler stood in for."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    told = {"MPSTUI_RUN_DIR": str(run), "MPSTUI_ATTEMPT": "1"} if run else {}
    return {**kept, "PYTHONPATH": f"{BOOT}{os.pathsep}{standin.FOLDER}", "MPSTUI_AGENT": "1", **told, **extra}


def run(script: str, run: Path | None, *, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a script from a file of its own, so that its lines can be read as those of any program.

    With a ``PYTHONPATH`` of its own a Python is started for it and loads all of torch, compiler and all.
    """
    path = cwd / "program.py"
    path.write_text(PRELUDE + script)
    if CAN_FORK and "PYTHONPATH" not in extra:
        return warm(TORCH_FOLDER).run(str(path), env=environment(run, **extra), cwd=cwd)
    return subprocess.run(
        [sys.executable, "-S", str(path)],
        env=environment(run, **extra),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def ran(script: str, run_dir: Path) -> tuple[str, dict[str, Any]]:
    """What a script printed, and the last heartbeat of its agent; it ended well and nothing was said on stderr."""
    done = run(script, run_dir, cwd=run_dir)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout, beat(run_dir)


def beat(run_dir: Path, rank: int = 0) -> dict[str, Any]:
    """The newest heartbeat of the first attempt."""
    found: dict[str, Any] = json.loads(RunDir(run_dir).attempt(1).heartbeat(rank).read_text())
    return found
