"""Runs of stores are found by names alone: at any depth, once each, whatever else lies in the folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpstui.core.formats.stores import find_runs, require_path
from mpstui.core.model.errors import UsageError
from tests import wandb_files as w


def wandb_run(folder: Path, name: str = "a") -> Path:
    return w.write(folder / f"offline-run-20260101_000000-{name}" / f"run-{name}.wandb", [w.run(name, {})]).parent


def test_a_folder_of_runs_a_run_and_its_file(tmp_path: Path) -> None:
    runs = [wandb_run(tmp_path / "project" / "wandb", name) for name in "abc"]
    os.utime(runs[1], (1, 1))
    for path in (tmp_path, tmp_path / "project", tmp_path / "project" / "wandb"):
        assert {run.path for run in find_runs(path)} == set(runs)
        assert find_runs(path)[-1].path == runs[1]  # the oldest
    assert [run.path for run in find_runs(runs[0])] == [runs[0]]
    (file,) = find_runs(runs[0] / "run-a.wandb")
    assert (file.key, file.name) == (str(runs[0] / "run-a.wandb"), "a")
    assert find_runs(tmp_path / "none") == []


def test_links_are_not_followed_and_nothing_hidden_is_entered(tmp_path: Path) -> None:
    run = wandb_run(tmp_path / "wandb")
    (tmp_path / "wandb" / "latest-run").symlink_to(run)
    (tmp_path / "wandb" / "loop").symlink_to(tmp_path)
    wandb_run(tmp_path / "node_modules" / "wandb")
    assert [one.path for one in find_runs(tmp_path)] == [run]
    assert [one.path for one in find_runs(tmp_path / "wandb" / "latest-run")] == [run], "one that was named is"


def test_a_folder_that_may_not_be_read_costs_itself(tmp_path: Path) -> None:
    run, closed = wandb_run(tmp_path / "wandb"), tmp_path / "closed"
    closed.mkdir(mode=0)
    try:
        assert [one.path for one in find_runs(tmp_path)] == [run]
    finally:
        closed.chmod(0o700)


def test_very_many_runs_are_found_once(tmp_path: Path) -> None:
    for place in range(300):
        folder = tmp_path / f"run-{place}"
        folder.mkdir()
        (folder / f"run-{place}.wandb").touch()
        os.utime(folder, (place, place))
    found = find_runs(tmp_path)
    assert (len(found), found[0].name) == (300, "299")
    known = {str(run.path) for run in found[:100]}
    assert len(find_runs(tmp_path, known.__contains__)) == 200


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    with pytest.raises(UsageError, match="has no run 17"):
        require_path(tmp_path / "a.db#17")
    with pytest.raises(UsageError, match="there is no"):
        require_path(tmp_path / "b")
