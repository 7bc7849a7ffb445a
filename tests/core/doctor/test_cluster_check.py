"""What is told of the schedulers that are here."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.doctor.cluster_check import cluster_facts, judge_clusters
from mpstui.core.doctor.report import Status
from mpstui.core.model.home import Home


def answers(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    (folder / "bin").mkdir()
    for name in ("sbatch", "squeue"):
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bin" / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}/bin")


def test_a_home_on_a_shared_file_system_is_fine_and_one_of_this_machine_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(tmp_path, monkeypatch, ":")
    home, mounts = Home(tmp_path, tmp_path), tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\n")
    (found,) = judge_clusters(cluster_facts(home, mounts))
    assert (found.id, found.status, found.text) == (
        "slurm",
        Status.OK,
        f"Slurm answers: 0 jobs of yours, {tmp_path} lies on nfs4",
    )
    mounts.write_text("/dev/sda1 / ext4 rw 0 0\n")
    (found,) = judge_clusters(cluster_facts(home, mounts))
    assert (found.status, found.advice) == (Status.NOTE, "set MPSTUI_HOME to a folder that the nodes share")


def test_a_scheduler_that_does_not_answer_is_a_warning_and_one_that_is_not_here_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(tmp_path, monkeypatch, "echo cannot contact the controller >&2; exit 1")
    (found,) = judge_clusters(cluster_facts(Home(tmp_path, tmp_path)))
    assert (found.status, found.text) == (Status.WARNING, "Slurm refuses: cannot contact the controller")
    monkeypatch.setenv("PATH", "/nowhere")
    assert cluster_facts(Home(tmp_path, tmp_path)) == []
