"""Real trainings as real processes: signals, requests, exit codes, several ranks, a device that hangs.

The other ways in which a device misbehaves are in tests/end_to_end/test_mps_crashes.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from mpstui.wire import rundir
from mpstui.wire.liveness import system_process_table
from mpstui.wire.records import Ack
from mpstui.wire.rundir import RunDir
from tests import standin
from tests.trainer.building import TINY, command, completed, environment, points, torchrun, train
from tests.waiting import wait_until

ENDLESS = ("--limit", "64", "--epochs", "100000", "--save-every", "0")
STARTUP_SECONDS = 300.0


def _beat(run: RunDir, rank: int = 0) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(run.attempt(1).heartbeat(rank).read_text())
    except FileNotFoundError:
        return {}
    return found


def _started(tmp_path: Path, *arguments: str, compiler: bool = False) -> tuple[subprocess.Popen[str], RunDir]:
    run = RunDir(tmp_path)
    run.requests.mkdir()
    child = subprocess.Popen(
        command(*arguments),
        env=environment(tmp_path, compiler=compiler) | standin.WATCHED,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: _beat(run).get("step", 0) > 2, timeout=STARTUP_SECONDS, what="the third step")
    return child, run


def _asked(run: RunDir, action: str) -> Ack:
    request = rundir.submit(run, rundir.new_request(action, 1, time.time()))
    ack = wait_until(lambda: rundir.answer_to(run, request.id), what=f"the answer to {action}")
    assert ack is not None
    return ack


def test_a_training_beats_answers_saves_and_ends_with_0_when_asked(tmp_path: Path) -> None:
    child, run = _started(tmp_path, *ENDLESS, compiler=True)
    beat = _beat(run)
    assert beat["phase"] in {"train", "eval", "save"}
    assert beat["device"]["type"] == "cpu"
    assert beat["data"].startswith("synthetic")
    assert beat["steps"] == 400_000
    assert beat["memory"]["rss"] > 10_000_000
    cleared = _asked(run, "clear_cache")
    assert (cleared.ok, cleared.by, cleared.freed, cleared.text) == (True, "trainer", 0, "nothing to free")
    assert _asked(run, "save").ok
    child.send_signal(signal.SIGTERM)
    printed, _ = child.communicate(timeout=300)
    assert child.returncode == 0
    assert "stopped: the checkpoint is saved" in printed
    assert printed.startswith("device: cpu")
    stopped_at = next(line for line in printed.splitlines() if "stopping at step" in line).split()[4]
    assert max(run.checkpoints.glob("step-*.pt")).name == f"step-{int(stopped_at):08d}.pt"
    assert _beat(run)["phase"] != "done"


def test_a_stop_that_reaches_the_data_workers_too_is_survived_until_all_is_saved(tmp_path: Path) -> None:
    child, _ = _started(tmp_path, *ENDLESS, "--workers", "1")
    os.killpg(child.pid, signal.SIGTERM)
    printed, _ = child.communicate(timeout=300)
    assert child.returncode == 0, printed
    assert "stopped: the checkpoint is saved" in printed


@pytest.mark.parametrize("layout", [(), ("--shard",)], ids=["whole", "sharded"])
def test_two_ranks_beat_each_for_itself_and_a_stop_saves_although_torchrun_passes_it_on(
    tmp_path: Path, layout: tuple[str, ...]
) -> None:
    run = RunDir(tmp_path)
    run.requests.mkdir()
    child = subprocess.Popen(
        torchrun("trainer", "cifar", *TINY, *ENDLESS, *layout),
        env=environment(tmp_path, compiler=True) | standin.WATCHED,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: all(_beat(run, rank).get("step", 0) > 1 for rank in (0, 1)), timeout=STARTUP_SECONDS)
    beats = [_beat(run, rank) for rank in (0, 1)]
    assert [(beat["rank"], beat["world_size"]) for beat in beats] == [(0, 2), (1, 2)]
    assert beats[0]["pid"] != beats[1]["pid"]
    assert _asked(run, "clear_cache").ok
    saved = _asked(run, "save")
    assert saved.ok
    step, path = re.fullmatch(r"saved at step (\d+): (.*)", saved.text).groups()  # type: ignore[union-attr]
    assert Path(path) == run.checkpoints / f"step-{int(step):08d}.pt"
    assert Path(path).exists()
    listen = [int(line.split()[1]) for line in run.attempt(1).stack_signal.read_text().splitlines()]
    assert {beat["pid"] for beat in beats} <= set(listen)
    os.killpg(child.pid, signal.SIGTERM)
    printed, _ = child.communicate(timeout=300)
    assert "32 samples a step (micro-batch 16)" in printed
    assert ("sharded over 2 processes" in printed) == bool(layout)
    assert "stopped: the checkpoint is saved" in printed
    stopped_at = next(line for line in printed.splitlines() if "stopping at step" in line).split()[4]
    assert max(run.checkpoints.glob("step-*.pt")).name == f"step-{int(stopped_at):08d}.pt"


def _hangs(run: RunDir, child: subprocess.Popen[bytes]) -> bool:
    """Two steps are told and the process sleeps."""
    if not run.metrics.exists() or not any(step == 2 for step, _ in points(run.path)):
        return False
    process = system_process_table().find(child.pid)
    return process is not None and process.state == "S"


def test_a_training_that_hangs_tells_where_and_can_only_be_killed(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    printed = tmp_path / "stderr"
    with printed.open("w") as stderr:
        child = subprocess.Popen(
            command("--limit", "64", "--epochs", "3", "--device", "mps"),
            env=environment(tmp_path, fault="hang@3"),
            cwd=tmp_path,
            stderr=stderr,
        )
    wait_until(lambda: _hangs(run, child), timeout=STARTUP_SECONDS, what="the third step")
    number, pid, _ = map(int, run.attempt(1).stack_signal.read_text().split())
    os.kill(pid, number)
    # A second signal while the first is pending goes to another thread, and the sleeping one would not hear of it.
    stack = re.compile(r"Current thread 0x.*(\n  File .*)*step")
    wait_until(lambda: stack.search(printed.read_text()) is not None, timeout=STARTUP_SECONDS, what="the stack")
    child.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(2)
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=60) == 128 + signal.SIGTERM


def test_a_checkpoint_from_mps_goes_on_on_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--limit", "64", "--epochs", "2")
    on_mps = command(*arguments, "--device", "mps", "--stop-after", "3")
    began = completed(on_mps, environment(tmp_path, fault=""), tmp_path)
    assert began.returncode == 0, began.stderr
    train(*arguments, "--resume", "latest", run_dir=tmp_path)
    assert "(step 3, written on mps)" in capsys.readouterr().out
    assert [step for step, _ in points(tmp_path)] == list(range(1, 9))
    assert _beat(RunDir(tmp_path))["phase"] == "done"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_does_not_end_a_training(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        child = subprocess.run(
            command("--limit", "32", "--epochs", "2"), env=environment(tmp_path), cwd=tmp_path, stdout=full, check=False
        )
    assert child.returncode == 0
    assert _beat(RunDir(tmp_path))["phase"] == "done"
