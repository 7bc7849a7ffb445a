"""A launch that would save over the checkpoints of an earlier run says so."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.launch import spec_json
from mpstui.core.launching.planning import LaunchPlan, plan
from mpstui.core.launching.telling import told
from mpstui.core.model.home import Home
from mpstui.core.profiles.model import Profile
from mpstui.wire import liveness, storage
from mpstui.wire.rundir import RunDir, create_run_dir

from .conftest import mac

Build = Callable[[str], Profile]
SAVES = """name = "Saver"
command = ["{python}", "train.py"]
[args]
out = "%s"
[resume]
args = ["--from", "{checkpoint}"]
checkpoints = "ckpts/*.pt"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path / "home"))
    return Home(tmp_path / "home", tmp_path / "home")


def planned(profile: Profile) -> LaunchPlan:
    return plan(LaunchChoice(profile), environ=dict(os.environ), machine=mac(), check=False)


def earlier(profile: Profile, home: Home, saved: Path) -> RunDir:
    """A run of the profile that has saved there."""
    run = create_run_dir(home.runs, "Saver", 1_800_000_000.0)
    storage.write_json(run.spec, spec_json(planned(profile), run, 1_800_000_000.0))
    saved.parent.mkdir(parents=True, exist_ok=True)
    saved.write_bytes(b"x")
    return run


def warned(profile: Profile, home: Home) -> list[str]:
    return [one for one in told(planned(profile), home.runs)["warnings"] if "checkpoints" in one]


def test_a_run_that_still_lives_and_saves_there_is_named_with_what_to_do(profile_of: Build, home: Home) -> None:
    profile = profile_of(SAVES % "ckpts")
    run = earlier(profile, home, profile.cwd / "ckpts/1.pt")
    assert warned(profile, home) == [
        f"{profile.cwd / 'ckpts'} holds checkpoints of {run.run}, which this run may overwrite: "
        "give it another folder to keep them"
    ]
    held = liveness.acquire(run.run_lock)
    assert held is not None
    (warning,) = warned(profile, home)
    assert warning.startswith(f"{run.run} still runs and saves into {profile.cwd / 'ckpts'}")
    assert f"--after {run.run}" in warning
    liveness.release(held)
    assert told(planned(profile))["warnings"] == []


def test_what_saves_into_its_own_folder_shares_none(profile_of: Build, home: Home) -> None:
    profile = profile_of(SAVES % "x")
    run = earlier(profile, home, profile.cwd / "ckpts/1.pt")
    (run.path / "ckpts").mkdir()
    (run.path / "ckpts/1.pt").touch()
    assert warned(profile, home) == []


def test_another_folder_among_the_arguments_is_no_shared_one(profile_of: Build, home: Home) -> None:
    earlier(profile_of(SAVES % "ckpts"), home, profile_of(SAVES % "ckpts").cwd / "ckpts/1.pt")
    assert warned(profile_of(SAVES % "elsewhere"), home) == []
