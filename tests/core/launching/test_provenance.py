"""What a run was launched from: commit, changes, packages; told once, without running what a repository names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpstui.core.launching import provenance
from mpstui.core.launching.provenance import ProvenanceNotes, take
from mpstui.wire import storage
from mpstui.wire.records import Provenance
from mpstui.wire.rundir import create_run_dir

ENVIRON = {"PATH": os.environ["PATH"]}


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(name="repository")
def _repository(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "trunk")
    (folder / "train.py").write_text("lr = 0.1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_a_clean_repository_is_its_commit(repository: Path) -> None:
    found, diff = take(repository / "src", "python3", ENVIRON)
    assert found.commit is not None
    assert len(found.commit) == 40
    assert (found.branch, found.changed_files, found.diff_is_whole, diff) == ("trunk", 0, True, "")
    assert found.host
    assert found.system


def test_changes_are_kept_with_their_secrets_masked(repository: Path) -> None:
    (repository / "train.py").write_text("lr = 0.2\ntoken = 'hf_abcdefghijklmnopqrstuvwxyz'\n")
    (repository / "new.py").write_text("untracked\n")
    found, diff = take(repository, "python3", ENVIRON)
    assert found.changed_files == 1
    assert "-lr = 0.1" in diff
    assert "+lr = 0.2" in diff
    assert "hf_abc" not in diff
    assert "untracked" not in diff


def test_a_long_diff_is_cut_and_says_so(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "MOST_DIFF_BYTES", 40)
    (repository / "train.py").write_text("lr = 0.2\n" * 100)
    found, diff = take(repository, "python3", ENVIRON)
    assert not found.diff_is_whole
    assert len(diff) == 40


def test_nothing_that_the_repository_names_is_started(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "core.pager", "diff.evil.textconv"):
        git(repository, "config", key, str(trap))
    (repository / ".gitattributes").write_text("*.py diff=evil\n")
    (repository / "train.py").write_text("lr = 0.3\n")
    found, diff = take(repository, "python3", ENVIRON)
    assert found.changed_files == 1
    assert "+lr = 0.3" in diff
    assert not (tmp_path / "sprung").exists()


def test_no_repository_an_empty_one_and_a_broken_one(tmp_path: Path) -> None:
    assert take(tmp_path, "python3", ENVIRON)[0].commit is None
    git(tmp_path, "init", "-q", "-b", "trunk")
    assert take(tmp_path, "python3", ENVIRON)[0].branch == "trunk"
    (tmp_path / ".git" / "HEAD").write_text("nonsense")
    assert take(tmp_path, "python3", ENVIRON)[0].commit is None


def test_without_git_there_is_no_commit(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert take(repository, "python3", ENVIRON)[0].commit is None


def test_packages_are_told_by_their_folders(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.12" / "site-packages"
    for name in ("torch-2.13.0+cpu.dist-info", "numpy-2.1.0.dist-info", "obscure-1.0.dist-info", "torch"):
        (site / name).mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    found, _ = take(tmp_path, str(tmp_path / "bin" / "python"), ENVIRON)
    assert found.python == "3.12"
    assert found.packages == {"numpy": "2.1.0", "torch": "2.13.0+cpu"}
    assert take(tmp_path, "bash", ENVIRON)[0].python is None


def test_a_sweep_asks_once_and_a_full_disk_stops_nothing(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def take_once(*words: object) -> tuple[Provenance, str]:
        asked.append(words)
        return Provenance(commit="c" * 40), "+x\n"

    monkeypatch.setattr(provenance, "take", take_once)
    notes = ProvenanceNotes()
    runs = [create_run_dir(tmp_path / "runs", f"r{at}", 1000.0 + at) for at in range(3)]
    for run in runs:
        notes.write(run, repository, "python3", ENVIRON)
    assert len(asked) == 1
    assert storage.read(Provenance, runs[2].provenance) == Provenance(commit="c" * 40)
    assert runs[2].source_diff.read_text() == "+x\n"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "write_json", full)
    notes.write(runs[0], repository, "python3", ENVIRON)
