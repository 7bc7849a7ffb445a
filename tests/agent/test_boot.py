"""The agent in programs that were never written for it: other Pythons, only PYTHONPATH and the environment."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import mpstui
from mpstui.wire import rundir
from mpstui.wire.records import Ack
from mpstui.wire.rundir import RunDir
from tests import standin
from tests.waiting import wait_until

BOOT = Path(mpstui.__file__).parent / "agent" / "boot"
TORCH_FOLDER = Path(pytest.importorskip("torch").__file__).parents[1]
# -S leaves out site-packages (and with it our editable install) but also sitecustomize, so the script calls it.
PRELUDE = f"import sitecustomize, sys; sys.path.append({str(TORCH_FOLDER)!r})\n"
SCRIPT = """
import sys, torch
torch.set_num_threads(1)
torch.manual_seed(0)
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(32, 8)
def step(scale=lambda loss: loss):
    optimizer.zero_grad()
    loss = ((net(x) - 1) ** 2).mean()
    scale(loss).backward()
    optimizer.step()
    return loss.item()
"""


def _environment(run: Path | None, **extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    told = {"MPSTUI_RUN_DIR": str(run), "MPSTUI_ATTEMPT": "1"} if run else {}
    return {**kept, "PYTHONPATH": str(BOOT), "MPSTUI_AGENT": "1", **told, **extra}


def _run(script: str, run: Path | None, *, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python where mpstui is not installed."""
    return subprocess.run(
        [sys.executable, "-S", "-c", PRELUDE + script],
        env=_environment(run, **extra),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _beat(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RunDir(run).attempt(1).heartbeat().read_text())
    return found


def test_a_program_that_only_asks_first_whether_there_is_a_torch_is_watched_too(tmp_path: Path) -> None:
    asks = "import importlib.util\nfor _ in range(2): assert importlib.util.find_spec('torch')\n"
    done = _run(
        asks + SCRIPT + "step()\nprint(sum('_TorchImport' in repr(one) for one in sys.meta_path))",
        tmp_path,
        cwd=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert _beat(tmp_path)["step"] == 1


def test_steps_loss_and_end_are_seen_and_nothing_of_ours_can_be_imported(tmp_path: Path) -> None:
    script = SCRIPT + (
        "losses = [step() for _ in range(25)]\n"
        "assert [name for name in sys.modules if name.split('.')[0] in {'mpstui', 'trainer'}] == []\n"
        "import importlib.util\n"
        # An older editable install leaves a folder of that name with nothing but profiles in it.
        "assert not importlib.util.find_spec('mpstui') or not importlib.util.find_spec('mpstui.wire')\n"
        "assert importlib.util.find_spec('_mpstui_private.core') is None\n"
        "print(losses[-1])\n"
    )
    done = _run(script, tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    beat = _beat(tmp_path)
    assert (beat["step"], beat["phase"], beat["device"]["type"], beat["lr"]) == (25, "done", "cpu", 0.05)
    assert beat["loss"] == pytest.approx(float(done.stdout))
    assert RunDir(tmp_path).metrics.exists()


def test_a_scaled_loss_is_reported_as_it_was_and_accumulation_is_counted(tmp_path: Path) -> None:
    script = SCRIPT + (
        "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)\n"
        "def scaled():\n"
        "    loss = ((net(x) - 1) ** 2).mean()\n"
        "    scaler.scale(loss).backward()\n"
        "    return loss.item()\n"
        "for _ in range(5):\n"
        "    optimizer.zero_grad(); scaled(); last = scaled(); scaler.step(optimizer); scaler.update()\n"
        "print(last)\n"
    )
    done = _run(script, tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    beat = _beat(tmp_path)
    assert beat["loss"] == pytest.approx(float(done.stdout))
    assert beat["metrics"]["backward_passes_per_step"] == 2.0


def test_two_optimizers_are_counted_each_for_itself(tmp_path: Path) -> None:
    script = SCRIPT + "other = torch.optim.Adam(net.parameters())\nfor _ in range(9):\n    step(); other.step()\n"
    assert _run(script, tmp_path, cwd=tmp_path).stderr == ""
    assert _beat(tmp_path)["step"] == 9


def test_an_exception_of_the_program_is_not_done(tmp_path: Path) -> None:
    done = _run(SCRIPT + "step(); raise ValueError('the program is wrong')", tmp_path, cwd=tmp_path)
    assert done.returncode == 1
    assert "the program is wrong" in done.stderr
    assert _beat(tmp_path)["phase"] == "train"


def test_a_program_that_only_imports_torch_writes_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert _run("import torch", run, cwd=tmp_path).returncode == 0
    assert not run.exists()


def test_an_agent_that_breaks_does_not_break_the_program(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way of the run directory")
    done = _run(SCRIPT + "print(len([step() for _ in range(3)]))", tmp_path / "file", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert done.stderr.count("\n") == 1
    assert "the training goes on" in done.stderr


def test_the_device_can_be_taken_away(tmp_path: Path) -> None:
    script = (
        "import torch, torch.mps, os\n"
        "print(torch.backends.mps.is_available(), torch.backends.mps.is_built(), torch.mps.is_available(),\n"
        "      os.environ.get('DISABLE_MPS'), os.environ.get('ACCELERATE_USE_CPU'))\n"
    )
    path = f"{standin.FOLDER}{os.pathsep}{BOOT}"
    there = _run(script, None, cwd=tmp_path, PYTHONPATH=path)
    assert there.stdout == "True True True None None\n", there.stderr
    gone = _run(script, None, cwd=tmp_path, PYTHONPATH=path, MPSTUI_AGENT_DEVICE="cpu")
    assert gone.stdout == "False False False 1 1\n", gone.stderr


def test_a_python_that_is_too_old_notices_nothing(tmp_path: Path) -> None:
    ast.parse((BOOT / "sitecustomize.py").read_text(), feature_version=(3, 4))
    script = "import sys\nsys.version_info = (2, 7)\nimport sitecustomize\nprint(sys.path[:1], sys.meta_path[3:])\n"
    environ = _environment(tmp_path, PYTHONPATH=f"{BOOT}{os.pathsep}{tmp_path}")

    def started() -> tuple[str, str]:
        command = [sys.executable, "-S", "-P", "-c", script]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout, done.stderr

    assert started() == (f"{[str(BOOT)]} []\n", "")
    (tmp_path / "sitecustomize.py").write_text("print('the other one')")
    assert started() == (f"the other one\n{[str(BOOT)]} []\n", "")


def test_a_shadowed_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('the other one')")
    environ = _environment(None) | {"PYTHONPATH": f"{BOOT}{os.pathsep}{tmp_path}"}
    done = subprocess.run(
        [sys.executable, "-c", "print('program')"], env=environ, capture_output=True, text=True, timeout=99, check=False
    )
    assert (done.stdout, done.stderr) == ("the other one\nprogram\n", "")


def _answers(run: RunDir, ids: list[str]) -> list[Ack]:
    """All the answers, or none while one is missing."""
    found = [ack for name in ids if (ack := rundir.answer_to(run, name)) is not None]
    return found if len(found) == len(ids) else []


SAVES = "def mpstui_save():\n    open('w.pt', 'w').close()\n    return 'w.pt'\n"
FAILS = "def mpstui_save():\n    raise OSError('disk full')\n"


@pytest.mark.parametrize(
    ("hook", "ok", "text"),
    [
        ("", False, "this program saves by its own rules: its main script has no function `mpstui_save` to call"),
        (SAVES, True, r"saved at step \d+: w.pt"),
        (FAILS, False, "`mpstui_save` failed: OSError: disk full"),
    ],
)
def test_clear_cache_and_save_are_answered(tmp_path: Path, hook: str, ok: bool, text: str) -> None:
    run = RunDir(tmp_path)
    run.requests.mkdir()
    asked = [rundir.submit(run, rundir.new_request(action, 1, time.time())) for action in ("clear_cache", "save")]
    child = subprocess.Popen(
        [
            sys.executable,
            "-S",
            "-c",
            PRELUDE + hook + SCRIPT + "import time\nwhile True:\n    step(); time.sleep(0.01)\n",
        ],
        env=_environment(tmp_path),
    )
    try:
        answers = wait_until(lambda: _answers(run, [request.id for request in asked]), timeout=120)
    finally:
        child.kill()
        child.wait()
    cache, save = answers
    assert (cache.ok, cache.by, cache.text) == (True, "agent", "nothing to free")
    assert (save.ok, save.by) == (ok, "agent")
    assert re.fullmatch(text, save.text)


def test_a_step_costs_microseconds(tmp_path: Path) -> None:
    script = SCRIPT + (
        "import time\n"
        "step()\n"
        "hooks = sys.modules['torch.optim.optimizer']._global_optimizer_post_hooks\n"
        "(hook,) = hooks.values()\n"
        "loss = torch.zeros(())\n"
        "watch = hook.__self__\n"
        "started = time.process_time()\n"
        "for _ in range(5000):\n"
        "    watch._before_backward(loss); hook(optimizer, (), {})\n"
        "print((time.process_time() - started) / 5000 * 1e6)\n"
    )
    done = _run(script, tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 60


def test_every_module_that_goes_abroad_parses_in_python_3_9() -> None:
    package = BOOT.parents[1]
    files = [path for folder in ("wire", "agent") for path in (package / folder).rglob("*.py")]
    assert len(files) > 10
    for path in files:
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 9))
