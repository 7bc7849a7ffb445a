"""Scenes that take seconds: torch's own workers and launcher, and a store of five hundred runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from mpstui.core.model.snapshot import State
from mpstui.wire import storage
from mpstui.wire.records import ExitRecord, Status
from mpstui.wire.rundir import create_run_dir

from ..kit import wait_for
from . import trainers
from .stage import Scenes, Stage

SLOW_SECONDS = 60.0
PS_TIMES = 37
"""What `mpstui ps` may cost in bare interpreters beside it: 0.3 s where one takes 8 ms, as on a quiet machine."""
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def dataloader(stage: Stage) -> None:
    """torch's own eight workers: their parent is killed, and they are named while they have not noticed."""
    stage.start()
    stage.run.wait_output("up", seconds=SLOW_SECONDS)
    stage.run.wait_phase("running")
    stage.kill("trainer")
    record = stage.expect_exit(signal=9)
    # They look for their parent every 5 s, each in its own time: one or two may have noticed already.
    stage.expect_that(record is None or len(record.survivors) >= 5, f"survivors: {record and record.survivors}")
    stage.expect(State.KILLED)
    stage.run.wait_unsupervised(SLOW_SECONDS)


def torchrun(stage: Stage) -> None:
    """torch's own launcher with two ranks, killed: both ranks are named, and a kill finds them."""
    stage.start()
    wait_for(lambda: stage.run.output().count("up") == 2, "the ranks", SLOW_SECONDS)
    stage.run.wait_phase("running")
    stage.kill("trainer")
    record = stage.expect_exit(signal=9)
    stage.expect_that(record is None or len(record.survivors) >= 2, f"survivors: {record and record.survivors}")
    stage.expect(State.KILLED)


def five_hundred_runs(stage: Stage) -> None:
    """`mpstui ps` among five hundred runs that finished an hour ago: quick, once it has seen them."""
    an_hour_ago = time.time() - 3600
    whole = ExitRecord(1, 2.0, code=0)
    for number in range(500):
        run = create_run_dir(stage.home / "runs", f"finished {number}", float(number))
        storage.write_json(run.spec, {**storage.to_json(stage.run.spec), "run": run.run}, sync=False)
        storage.write_json(run.status, Status(run.run, "ended", 1, 2.0), sync=False)
        run.attempt(1).path.mkdir(parents=True)
        storage.write_json(run.attempt(1).exit, whole, sync=False)
        run.attempt(1).output.write_text("epoch 1 loss 0.5\n")
        os.utime(run.path, (an_hour_ago, an_hour_ago))
    stage.start_running()
    looks = [_cost([sys.executable, "-m", "mpstui", "ps"], stage) for _ in range(5)]
    bare = min(_cost([sys.executable, "-I", "-S", "-c", "pass"], stage)[0] for _ in range(5))
    stage.expect_that("warming" in looks[0][1], f"the one that runs is not told: {looks[0][1][:200]}")
    cost = min(seconds for seconds, told in looks)
    stage.expect_that(
        cost < PS_TIMES * bare, f"mpstui ps took {cost:.2f} s of CPU time, {cost / bare:.0f} interpreters'"
    )
    stage.finish_trainer()
    stage.expect_exit(code=7)


def _cost(words: list[str], stage: Stage) -> tuple[float, str]:
    """Seconds of CPU time, of that very process, and output."""
    process = subprocess.Popen(words, env={**os.environ, "MPSTUI_HOME": str(stage.home)}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    told = process.stdout.read().decode()
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # it is reaped
    return usage.ru_utime + usage.ru_stime, told


SCENES: Scenes = {five_hundred_runs: {"trainer": trainers.WAITS}}
TORCH_SCENES: Scenes = {
    dataloader: {"argv": [sys.executable, "-u", "-c", trainers.DATALOADER]},
    torchrun: {"argv": [*TORCHRUN, "--no-python", sys.executable, "-u", "-c", trainers.WAITS]},
}
"""The real thing beside the stand-ins ``workers`` and ``ranks``."""
