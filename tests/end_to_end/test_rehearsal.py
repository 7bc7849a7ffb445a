"""A remedy is tried before it is taken: some steps beside the failed ones, and nothing of the run is touched."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpstui.core.launching.actions import Actions
from mpstui.core.model.home import Home
from mpstui.core.runs.monitor import Monitor
from mpstui.wire.rundir import RunDir
from tests.end_to_end.conftest import CommandLine

pytestmark = pytest.mark.end_to_end

PROGRAM = """
import argparse, os, sys, time
from pathlib import Path
from mpstui.agent.reporter import Reporter
from mpstui.wire.heartbeat import DeviceReading, MemoryReading
words = argparse.ArgumentParser()
for name, default in (("batch", 64), ("accumulate", 1), ("limit", 32), ("stop", 0)):
    words.add_argument(f"--{name}", type=int, default=default)
words.add_argument("--resume")
args = words.parse_args()
reporter = Reporter.from_environment(os.environ)
reporter.memory = lambda: MemoryReading(allocated=args.batch << 20)
saved = Path(os.environ["MPSTUI_RUN_DIR"]) / "checkpoints"
saved.mkdir(exist_ok=True)
first = int(Path(args.resume).read_text()) if args.resume else 0
for step in range(first + 1, 10_000):
    time.sleep(0.02)
    if step == 30 and args.batch > args.limit:
        raise RuntimeError("MPS backend out of memory (MPS allocated: 64.00 MiB)")
    reporter.point(step, 1.0, loss=1 / step + args.batch * 1e-9)
    reporter.beat("train", now=True, step=step, device=DeviceReading("mps"))
    if step % 10 == 0:
        (saved / f"step_{step}.pt").write_text(str(step))
    if args.stop and step >= args.stop:
        reporter.beat("done", now=True)
        break
"""
PROFILE = """
command = ["{python}", "train.py"]
agent = false
[args]
batch = 64
limit = 32
stop = 60
[resume]
args = ["--resume", "{checkpoint}"]
checkpoints = "checkpoints/*.pt"
[defaults]
accumulate = 1
[roles]
batch_size = "batch"
accumulate = "accumulate"
"""


@pytest.fixture
def crashed(mpstui: CommandLine) -> str:
    """A run that ran out of memory at step 30, and has saved at steps 10 and 20."""
    (mpstui.cwd / "train.py").write_text(PROGRAM)
    (mpstui.cwd / "p.toml").write_text(PROFILE)
    mpstui.env["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    run = mpstui.launch("./p.toml")
    mpstui.wait_state(run, "failed")
    return run


def test_a_remedy_proves_itself_and_then_goes_on_for_real(mpstui: CommandLine, crashed: str) -> None:
    before = mpstui.show(crashed)
    costs = mpstui.call("restart", crashed, "--fix", "--dry-run")
    assert costs.returncode == 0, costs.stderr
    assert re.fullmatch(
        r"would change batch 64 -> 32, accumulate 1 -> 2\n"
        r"9 steps \(\d+s\) since the checkpoint at step 20 are done again\.\n",
        costs.stdout,
    )
    other = mpstui.call("restart", crashed, "--command", "{python} train.py --stop 9", "--dry-run")
    assert other.stdout.splitlines()[0] == "would change stop 60 -> 9"
    done = mpstui.call("restart", crashed, "--fix", "--rehearse", "15")
    assert done.returncode == 0, done.stderr
    assert "batch 64: 64.0 MiB ✗ → 32 × 2: 32.0 MiB ✓, loss equal to" in done.stdout
    assert "steps done, past step 29 where it failed" in done.stdout
    assert "x the speed" in done.stdout
    run = RunDir(mpstui.home / "runs" / crashed)
    after = mpstui.show(crashed)
    assert after["state"] == "failed"
    assert [one["path"] for one in after["checkpoints"]] == [one["path"] for one in before["checkpoints"]]
    assert (after["attempt"], after["attempts"], after["step"]) == (1, 2, before["step"])
    assert after["metrics"] == before["metrics"]
    assert after["diagnosis"]["findings"][0]["id"] == "mps_oom"
    assert not list(run.checkpoints.glob("step_3*.pt"))
    Actions(mpstui.environment()).go_on(Monitor(Home(mpstui.home, mpstui.home)).snapshot(crashed))
    shown = mpstui.wait_state(crashed, "finished")
    assert (shown["attempt"], shown["step"]) == (3, 60)
    assert "--batch 32 " in " ".join(shown["argv"]) + " "
    assert any("step_20.pt" in word for word in shown["argv"])


def test_a_remedy_that_does_not_help_says_so_and_changes_nothing(mpstui: CommandLine, crashed: str) -> None:
    done = mpstui.call("restart", crashed, "--fix", "--set", "limit=8", "--rehearse", "40")
    assert done.returncode == 1
    assert "batch 64, limit 32: 64.0 MiB ✗ → 32 × 2, limit 8: 32.0 MiB ✗ MPS ran out of memory" in done.stderr
    assert mpstui.show(crashed)["state"] == "failed"
    again = mpstui.call("restart", crashed, "--rehearse", "0")
    assert again.returncode == 2
    assert "shows nothing" in again.stderr
    plain = mpstui.call("restart", crashed)
    assert plain.returncode == 0
    shown = mpstui.wait_state(crashed, "failed")
    assert shown["attempt"] == 3
    assert "--batch 64 --limit 32" in " ".join(shown["argv"])
