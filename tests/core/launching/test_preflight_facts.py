"""What the disk says before a launch: versions beside the run's interpreter, and what an earlier run needed."""

from __future__ import annotations

import json
import os
from collections import namedtuple
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.launch import spec_json
from mpstui.core.launching.planning import plan
from mpstui.core.launching.preflight import EarlierRun, earlier_run, installed_version
from mpstui.core.model.home import Home
from mpstui.core.profiles.model import Profile
from mpstui.wire import storage
from mpstui.wire.rundir import create_run_dir

from .conftest import mac

Build = Callable[[str], Profile]


def environment(tmp_path: Path, *packages: str) -> Path:
    """A virtual environment as far as its folders tell."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/usr/bin/env")
    for package in packages:
        (tmp_path / "venv/lib/python3.11/site-packages" / f"{package}.dist-info").mkdir(parents=True)
    return python


def warnings(profile: Profile, environ: Mapping[str, str]) -> str:
    made = plan(LaunchChoice(profile), environ={**os.environ, **environ}, machine=mac(), check=False)
    return "\n".join(made.warnings)


def test_versions_are_read_beside_the_interpreter(tmp_path: Path) -> None:
    python = str(environment(tmp_path, "torch-2.5.1", "pytorch_lightning-1.9.5"))
    assert installed_version(python, "torch", {}) == "2.5.1"
    assert installed_version(python, "lightning", {}) is None
    assert installed_version("no-such-python", "torch", {"PATH": "/nowhere"}) is None


def test_an_old_torch_and_an_old_lightning_are_warned_of(profile_of: Build, tmp_path: Path) -> None:
    python = environment(tmp_path, "torch-2.5.1", "pytorch_lightning-1.9.5")
    profile = profile_of(
        f'command = ["{{python}}", "train.py"]\npython = "{python}"\n'
        '[args]\nprecision = "bf16-mixed"\n[roles]\nprecision = "precision"\n'
    )
    said = warnings(profile, {})
    assert "here is torch 2.5.1" in said
    assert "Lightning 1.x" in said


def test_what_an_earlier_run_needed_is_compared_with_what_is_there(
    profile_of: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home", tmp_path / "home")
    run = create_run_dir(home.runs, "big net", 1.0)
    run.checkpoints.mkdir()
    (run.checkpoints / "a.pt").write_bytes(b"x" * 1000)
    run.attempt(1).path.mkdir(parents=True)
    beat = {"schema": 1, "time": 1.0, "seq": 1, "memory": {"rss": 30 << 30}}
    run.attempt(1).heartbeat().write_text(json.dumps(beat))
    assert earlier_run(home, "big net") == EarlierRun(1000, 30 << 30)
    assert earlier_run(home, "other") == EarlierRun()
    memory = namedtuple("memory", "available")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory(8 << 30))
    profile = profile_of('name = "big net"\ncommand = ["{python}", "train.py"]\n')
    said = warnings(profile, {"MPSTUI_HOME": str(home.state)})
    assert "8.0 GiB of memory are available and this training took 30.0 GiB before" in said


def test_the_batch_of_the_earlier_run_is_known(profile_of: Build, tmp_path: Path) -> None:
    home = Home(tmp_path / "home", tmp_path / "home")
    text = 'name = "net"\ncommand = ["{python}", "train.py"]\n[args]\nbatch = 32\n[roles]\nbatch_size = "batch"\n'
    made = plan(LaunchChoice(profile_of(text), sets={"batch": "48"}), environ=os.environ, machine=mac(), check=False)
    run = create_run_dir(home.runs, "net", 1.0)
    storage.write_json(run.spec, spec_json(made, run, 1.0))
    run.attempt(1).path.mkdir(parents=True)
    run.attempt(1).heartbeat().write_text('{"schema": 1, "time": 1.0, "seq": 1, "memory": {"rss": 4096}}')
    assert earlier_run(home, "net") == EarlierRun(None, 4096, 48)
