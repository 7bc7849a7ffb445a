"""SkyPilot behind the same seam, against recordings written after its documents."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from mpstui.core.engines.board import JobBoard
from mpstui.core.engines.engine import engine_named
from mpstui.core.engines.skypilot import SkyPilot
from mpstui.core.model.errors import UsageError
from mpstui.core.model.jobs import JobPhase
from mpstui.core.model.snapshot import State

from .conftest import PROFILE, Cluster
from .fake import FakeCluster

NEWER = {"job_id": 4, "task_id": 0, "job_name": "a", "status": "RECOVERING", "submitted_at": 1.5, "start_at": None}
QUEUE = [
    {"job_id": 3, "job_name": "a", "status": "SUCCEEDED", "submitted_at": 1.0, "start_at": 2.0},
    {**NEWER, "cloud": "-", "region": "-", "failure_reason": None},
    {"job_id": 5, "job_name": "b", "status": "RUNNING", "start_at": 7.0, "cloud": "AWS", "region": "us-east-1"},
    {"job_id": 6, "job_name": "c", "status": "FAILED_NO_RESOURCE", "failure_reason": "no V100 anywhere"},
    {"job_id": 7, "job_name": "d", "status": "SOMETHING_NEW"},
    {"job_id": 8, "job_name": "e", "status": "STARTING", "schedule_state": "ALIVE_BACKOFF"},
    {"job_id": 9, "job_name": "f", "status": "WINDING_DOWN", "schedule_state": "ALIVE"},
]


def test_the_queue_is_read_by_its_fields() -> None:
    found = {view.id: view for view in SkyPilot().listed(json.dumps(QUEUE))}
    assert (found["a"].phase, found["a"].reason) == (JobPhase.PENDING, "recovering")
    assert (found["b"].phase, found["b"].nodes, found["b"].starts) == (JobPhase.RUNNING, "AWS us-east-1", 7.0)
    assert found["b"].sentence() == "SkyPilot job b runs on AWS us-east-1"
    assert (found["c"].phase, found["c"].reason) == (JobPhase.FAILED, "no V100 anywhere")
    assert found["d"].phase is JobPhase.UNKNOWN
    assert (found["e"].phase, found["e"].reason) == (JobPhase.PENDING, "no resources are free, it is tried again")
    assert found["f"].phase is JobPhase.ENDING
    assert SkyPilot().listed("[]") == []
    # As it lists the newest fifty alone, an older job would be taken for one that is gone.
    assert {"--all", "--verbose"} <= set(SkyPilot().listing())


def test_an_answer_that_is_no_list_of_jobs_ends_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sky = tmp_path / "sky"
    sky.write_text("#!/bin/sh\necho 'A newer version is there'\n")
    sky.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = JobBoard(engine_named("sky"), tmp_path / "jobs.json").view("a")
    assert (found.phase, found.silent_since is None) == (JobPhase.UNKNOWN, False)
    assert "its answer cannot be read" in found.silence()


def test_a_launch_is_a_task_whose_shell_text_holds_no_word_of_a_user(
    runs: Cluster, cluster: FakeCluster, tmp_path: Path
) -> None:
    sky = cluster.folder / "bin" / "sky"
    answer = f'printf "%s\\n" "$@" >> {tmp_path}/asked; cat {tmp_path}/queue 2>/dev/null || echo "[]"'
    sky.write_text(f"#!/bin/sh\n{answer}\n")
    sky.chmod(0o700)
    (run,) = runs.launch(PROFILE, on="sky", job={"gpus": "A100:1", "use-spot": ""}, name="$(touch x)")
    folder = runs.home.runs / run
    asked = (tmp_path / "asked").read_text().split("\n")
    assert asked[:6] == ["jobs", "launch", "--yes", "--detach-run", f"--name={run}", "--gpus=A100:1"]
    task = json.loads((folder / "task.yaml").read_text())
    assert set(task["run"]) <= set('exec "$MPSTUI_JOB_WORD_0123456789')
    said = subprocess.run(
        ["sh", "-c", task["run"].replace("exec", "printf '%s\\n'")], env=task["envs"], capture_output=True, text=True
    )
    assert said.stdout.split("\n")[-2] == str(folder)
    (tmp_path / "queue").write_text(json.dumps([{"job_id": 1, "job_name": run, "status": "STARTING"}]))
    found = runs.wait(run, lambda seen: seen.job is not None and seen.job.phase is JobPhase.PENDING)
    assert (found.state, found.reason) == (State.QUEUED, f"SkyPilot job {run} is pending: being provisioned")


def test_wrong_options_are_refused(runs: Cluster) -> None:
    with pytest.raises(UsageError, match="`num-nodes` is 1"):
        runs.launch(PROFILE, on="sky", job={"num-nodes": "2"})
