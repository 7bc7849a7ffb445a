"""``pid_file``: it names the trainer as long as that lives, whole at any time, and is never another's to remove."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from .kit import Run, alive, wait_for

MakeRun = Callable[..., Run]
SLEEPER = "import time; print('up', flush=True)\nwhile True: time.sleep(0.05)"


def test_it_names_the_trainer_and_goes_with_it(make_run: MakeRun) -> None:
    run = make_run(SLEEPER, pid_file="train.pid")
    file = run.home / "train.pid"
    run.start()
    trainer = run.wait_phase("running").trainer
    assert trainer is not None
    wait_for(lambda: file.exists() and file.read_text() == f"{trainer.pid}\n")
    run.wait_ack(run.ask("restart"))
    again = wait_for(lambda: run.status.trainer if run.status.attempt == 2 else None)
    wait_for(lambda: file.exists() and file.read_text() == f"{again.pid}\n")
    file.write_text("1\n")
    run.wait_ack(run.ask("stop"))
    assert file.read_text() == "1\n"


def test_it_is_gone_after_an_end_that_no_supervisor_saw(make_run: MakeRun) -> None:
    run = make_run(SLEEPER, pid_file="train.pid")
    run.start()
    trainer = run.wait_phase("running").trainer
    assert trainer is not None
    wait_for((run.home / "train.pid").exists)
    run.kill_supervisor()
    os.kill(trainer.pid, signal.SIGKILL)
    wait_for(lambda: not alive(trainer))
    assert (run.home / "train.pid").exists()
    run.start()
    wait_for(lambda: not (run.home / "train.pid").exists())


def test_a_folder_that_is_not_there_costs_nothing(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("print('hello')", pid_file="gone/train.pid")
    run.start()
    assert run.wait_exit().code == 0
    assert any("pid file could not be written" in event["text"] for event in run.events())
