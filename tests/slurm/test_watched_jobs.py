"""Jobs that mpstui did not submit: one by its number, or all of a user's."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from mpstui.core.model.errors import UsageError
from mpstui.core.model.snapshot import State
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.watched_jobs import job_named, require_job

from .conftest import Cluster
from .fake import FakeCluster


def test_a_job_of_somebody_else_is_its_output_and_its_scheduler_s_word(
    runs: Cluster, cluster: FakeCluster, tmp_path: Path
) -> None:
    script, log = tmp_path / "job.sh", tmp_path / "other.log"
    script.write_text("#!/bin/sh\n")
    (ours,) = runs.launch()
    subprocess.run(["sbatch", f"--output={log}", "--job-name=other", str(script)], check=True, capture_output=True)
    log.write_text("epoch 1/9 loss 0.5\nepoch 2/9 loss 0.25\n")
    cluster.set("20", state="RUNNING", reason="None", nodes="n2")
    monitor = Monitor(runs.home)
    assert monitor.watch(Path("slurm:20")) == "slurm:20"
    found = monitor.snapshot("slurm:20")
    assert (found.state, found.name, found.numbers.loss) == (State.WATCHED, "other (slurm 20)", 0.25)
    assert found.reason.startswith("Slurm job 20 runs on n2; not started by mpstui")
    everything = Monitor(runs.home)
    everything.watch(Path("slurm:"))
    while len(seen := everything.refresh()) < 2 or seen[0].numbers.loss is None:
        time.sleep(0.05)
    assert sorted(one.run for one in seen) == sorted([ours, "slurm:20"])  # a run of ours is there once


def test_tasks_of_an_array_that_wait_are_one_row_and_nobody_asks_where_they_write(
    runs: Cluster, cluster: FakeCluster, tmp_path: Path
) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n")
    words = ["sbatch", f"--output={tmp_path}/%a.log", "--array=0-11", "--job-name=sweep", str(script)]
    subprocess.run(words, check=True, capture_output=True)
    cluster.set("10_0", state="RUNNING", reason="None", nodes="n2")
    monitor = Monitor(runs.home)
    monitor.watch(Path("slurm:"))
    while len(seen := monitor.refresh()) < 2 or not all(one.job for one in seen):
        time.sleep(0.05)
    told = {one.run: one.reason for one in seen}
    assert sorted(told) == ["slurm:10_0", "slurm:10_1"]
    assert told["slurm:10_1"].startswith("Slurm job 10_1 is pending: Priority, as 10 more of its array")
    asked = {line for line in (cluster.folder / "calls").read_text().splitlines() if '"scontrol"' in line}
    assert asked == {'["scontrol", "show", "job", "10_0"]'}


def test_what_cannot_be_watched_is_refused(runs: Cluster) -> None:
    with pytest.raises(UsageError, match="Slurm tells nothing of a job 77"):
        require_job("slurm:77", runs.home.state)
    assert job_named("slurm:17") == ("slurm", "17")
    assert [job_named(text) for text in ("slurm", "C:17", "slurm:a/b", "./slurm:1")] == [None] * 4
