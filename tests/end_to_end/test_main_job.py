"""The main job with real processes: launch a training, watch it, act on it, leave, come back."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.end_to_end.conftest import STANDIN, CommandLine
from tests.terminal import Terminal

pytestmark = [pytest.mark.end_to_end, pytest.mark.torch]

TINY = """
name = "tiny"
command = ["{python}", "-P", "-m", "trainer", "cifar"]
device = "cpu"
[env]
MPSTUI_STANDIN_PAUSE = "0.02"
[args]
model = "tiny"
width = 4
limit = 512
epochs = 20000
batch-size = 32
save-every = 320
eval-every = 320
seed = 1
[resume]
args = ["--resume", "{checkpoint}"]
checkpoints = "checkpoints/*.pt"
[device_args]
cpu = ["--device", "cpu"]
mps = ["--device", "mps"]
[stop]
grace_seconds = 20
"""


@pytest.fixture
def tiny(mpstui: CommandLine) -> Path:
    path = mpstui.cwd / "tiny.toml"
    path.write_text(TINY)
    return path


def screen(mpstui: CommandLine, *arguments: str, columns: int = 120, rows: int = 40) -> Terminal:
    """The real screen on a pseudo-terminal."""
    argv = [sys.executable, "-m", "mpstui", *arguments]
    return Terminal(argv, columns=columns, rows=rows, env=mpstui.environment(), cwd=mpstui.cwd)


def test_stop_saves_restart_continues_the_curve_and_a_killed_trainer_is_told_apart(
    mpstui: CommandLine, tiny: Path
) -> None:
    run = mpstui.launch(str(tiny), "--env", f"PYTHONPATH={STANDIN}")
    mpstui.wait_step(run, 10)
    stopped = mpstui.call("stop", run)
    assert stopped.returncode == 0, stopped.stderr
    ended = mpstui.wait_state(run, "stopped")
    assert ended["exit"]["code"] == 0
    assert ended["checkpoints"]

    restarted = mpstui.call("restart", run, "--device", "cpu")
    assert restarted.returncode == 0, restarted.stderr
    again = mpstui.wait_step(run, ended["step"] + 5)
    assert again["attempt"] == 2
    assert again["metrics"]["loss"]["count"] > ended["metrics"]["loss"]["count"]

    os.kill(again["pid"], signal.SIGKILL)
    killed = mpstui.wait_state(run, "killed")
    assert killed["exit"]["signal"] == 9
    assert killed["exit"]["requested_by"] is None
    assert mpstui.call("wait", run).returncode == 1


def test_the_screen_may_die_the_run_goes_on_and_the_next_screen_acts_on_it(mpstui: CommandLine, tiny: Path) -> None:
    run = mpstui.launch(str(tiny), "--env", f"PYTHONPATH={STANDIN}")
    mpstui.wait_step(run, 5)
    with screen(mpstui) as first:
        first.wait_text("tiny")
        os.kill(first.pid, signal.SIGKILL)
        assert first.wait_exit() == -signal.SIGKILL
    before = mpstui.show(run)
    assert before["state"] == "running"
    mpstui.wait_step(run, before["step"] + 5)
    with screen(mpstui) as second:
        second.wait_text("tiny", "training")
        second.press("enter")
        second.wait_text("attempt 1", "memory")
        second.press("x")
        second.wait_text("nothing to free")
        second.press("s")
        ended = mpstui.wait_state(run, "stopped")
        second.wait_text("■ stopped")
    assert ended["exit"]["code"] == 0
