"""Every way MPS breaks a training, end to end on any machine, through the stand-in for the device."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from mpstui.ui.app import MpstuiApp
from mpstui.ui.services import Services
from mpstui.ui.theme import OWN_THEME
from mpstui.wire.rundir import RunDir
from tests.end_to_end.conftest import STANDIN, CommandLine
from tests.end_to_end.pressing import second_attempt
from tests.ui import fakes
from tests.ui.driving import Driver

pytestmark = [pytest.mark.end_to_end, pytest.mark.torch]

PROFILE = """
name = "on mps"
command = ["{{python}}", "-P", "-m", "trainer", "cifar"]
device = "{device}"
[env]
PYTHONPATH = "{standin}"
MPSTUI_STANDIN = "{fault}"
MPSTUI_STANDIN_PAUSE = "0.02"
[args]
model = "tiny"
width = 4
limit = 512
epochs = 20000
batch-size = 32
save-steps = 4
save-every = 0
eval-every = 20000
compile = "off"
precision = "fp32"
[resume]
args = ["--resume", "{{checkpoint}}"]
checkpoints = "checkpoints/*.pt"
[device_args]
auto = ["--device", "mps"]
cpu = ["--device", "cpu"]
mps = ["--device", "mps"]
[roles]
batch_size = "batch-size"
accumulate = "accumulate"
[defaults]
accumulate = 1
"""


def launch(mpstui: CommandLine, fault: str = "", *options: str, device: str = "auto") -> str:
    """Start a training on the stand-in; a device with a name is first looked for by the program's own Python."""
    path: Path = mpstui.cwd / "mps.toml"
    path.write_text(PROFILE.format(standin=STANDIN, fault=fault, device=device))
    return mpstui.launch(str(path), *options)


def folder(mpstui: CommandLine, run: str) -> RunDir:
    """Where a run keeps what it writes."""
    return RunDir(mpstui.home / "runs" / run)


def test_clearing_the_cache_is_answered_with_bytes_by_the_trainer(mpstui: CommandLine) -> None:
    run = launch(mpstui, device="mps")
    shown = mpstui.wait_step(run, 3)
    assert shown["device"] == "mps"
    beat = json.loads(folder(mpstui, run).attempt(1).heartbeat(0).read_text())
    assert beat["device"] == {"type": "mps", "name": "Stand-in for MPS", "precision": "fp32"}
    assert beat["memory"]["driver"] > beat["memory"]["allocated"] > 0
    answer = mpstui.json("clear-cache", run)
    assert (answer["ok"], answer["by"]) == (True, "trainer")
    assert answer["before"] - answer["after"] == answer["freed"] > 0
    os.kill(shown["pid"], signal.SIGTERM)
    assert mpstui.wait_state(run, "finished", "stopped", "failed", "killed")["exit"]["code"] == 0


def test_a_metal_assertion_is_told_apart_from_a_kill(mpstui: CommandLine) -> None:
    run = launch(mpstui, "abort@6")
    ended = mpstui.wait_state(run, "failed", "killed")
    assert ended["exit"]["signal"] == 6
    assert ended["exit"]["cause"] == "mps_assert_ndarray"
    assert ended["exit"]["requested_by"] is None
    assert "failed assertion" in folder(mpstui, run).attempt(1).output.read_text()


def test_nan_stops_before_it_reaches_the_weights(mpstui: CommandLine) -> None:
    run = launch(mpstui, "nan@6")
    ended = mpstui.wait_state(run, "failed")
    assert ended["exit"]["code"] == 1
    assert ended["diagnosis"]["findings"][0]["id"] == "nan_loss"
    printed = folder(mpstui, run).attempt(1).output.read_text()
    assert "non-finite (NaN or infinity) at step 6" in printed
    assert "step-00000004.pt" in printed


def test_a_hung_device_can_still_be_killed(mpstui: CommandLine) -> None:
    run = launch(mpstui, "hang@6")
    mpstui.wait_step(run, 4)
    assert mpstui.call("kill", run).returncode == 0
    ended = mpstui.wait_state(run, "killed")
    assert ended["exit"]["signal"] == 9
    assert ended["exit"]["requested_by"]


def test_the_remedy_halves_the_batch_and_the_run_goes_on(mpstui: CommandLine) -> None:
    # Both attempts tell the loss of each step, not that of each second, which a quick machine may not share.
    run = launch(mpstui, "oom@7", "--set", "report-every=1")
    failed = mpstui.wait_state(run, "failed")
    assert failed["exit"]["cause"] == "mps_oom"
    fix = ("restart", run, "--fix", "--env", "MPSTUI_STANDIN=oom-above@20")
    tried = mpstui.call(*fix, "--rehearse", "8")
    assert tried.returncode == 0, tried.stderr
    assert "batch-size 32, MPSTUI_STANDIN oom@7: " in tried.stdout
    assert " ✗ → 16 × 2, MPSTUI_STANDIN oom-above@20: " in tried.stdout
    assert "✓, loss " in tried.stdout
    fixed = mpstui.call(*fix)
    assert fixed.returncode == 0, fixed.stderr
    assert "batch-size 32 -> 16" in fixed.stderr
    again = mpstui.wait_step(run, 12)
    assert (again["device"], again["attempt"]) == ("mps", 3)
    output = mpstui.call("logs", run).stdout
    assert "32 samples a step (micro-batch 16)" in output
    assert "resumed from" in output
    assert "out of memory" not in output


def test_out_of_memory_is_named_its_remedy_is_one_key_away_and_the_flip_to_the_cpu_continues_the_run(
    mpstui: CommandLine,
) -> None:
    run = launch(mpstui, "oom@7")
    failed = mpstui.wait_state(run, "failed")
    assert (failed["exit"]["code"], failed["exit"]["cause"]) == (1, "mps_oom")
    printed = folder(mpstui, run).attempt(1).output.read_text()
    assert "RuntimeError: MPS backend out of memory (MPS allocated: 17.92 GiB" in printed
    assert failed["diagnosis"]["findings"][0]["id"] == "mps_oom"
    assert failed["diagnosis"]["findings"][0]["restart_on_cpu_helps"] is True
    home = Home(mpstui.home, mpstui.home)
    app = MpstuiApp(Services(home, mpstui.environment(), mpstui.cwd, time.time), opening=run, theme=OWN_THEME)

    async def press() -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            driver = Driver(app, pilot, fakes.world())
            await driver.sees("f apply the remedy")
            await driver.press("f")
            await driver.sees("batch-size 32 -> 16")
            await driver.press("ctrl+s")
            await second_attempt(driver, folder(mpstui, run))

    asyncio.run(press())
    # The stand-in counts the steps of each process, so that this attempt fails as well, seven steps further on.
    again = mpstui.wait_state(run, "failed")
    assert again["attempt"] == 2
    assert again["step"] >= 9
    assert again["exit"]["cause"] == "mps_oom"
    assert "32 samples a step (micro-batch 16)" in mpstui.call("logs", run, "--attempt", "2").stdout
    restarted = mpstui.call("restart", run, "--device", "cpu")
    assert restarted.returncode == 0, restarted.stderr
    flipped = mpstui.wait_step(run, again["step"] + 6)
    assert (flipped["device"], flipped["attempt"]) == ("cpu", 3)
    assert "resumed from" in mpstui.call("logs", run).stdout
