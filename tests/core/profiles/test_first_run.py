"""A profile of the current folder is a stranger's until this user has launched it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mpstui.core.launching.actions import Actions
from mpstui.core.launching.drafts import Launcher
from mpstui.core.model.errors import UsageError
from mpstui.core.model.home import Home
from mpstui.core.profiles.first_run import Acquaintance, acquaintance, remember
from mpstui.core.profiles.library import FIRST, load_profile, shipped_profile
from mpstui.core.profiles.model import Profile

STRANGER = 12345


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Home:
    return Home(tmp_path / "state", tmp_path / "config")


def written(cwd: Path, name: str = "train", command: str = "train.py") -> Path:
    path = cwd / "profiles" / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'command = ["python", "{command}"]\n[env]\nAPI_TOKEN = "s3cret"\n')
    return path


def known(profile: Profile, home: Home, cwd: Path, *, asked: bool = False) -> Acquaintance:
    return acquaintance(profile, home, cwd, asked=asked)


def test_what_it_runs_is_shown_until_it_was_launched(tmp_path: Path, home: Home) -> None:
    written(tmp_path)
    profile = load_profile("train", home, tmp_path)
    shown = "\n".join(known(profile, home, tmp_path).shown)
    assert "train of ./profiles is launched for the first time" in shown
    assert "python train.py" in shown
    assert "  variables: API_TOKEN=•••" in shown
    remember(profile, home)
    assert known(profile, home, tmp_path) == Acquaintance()
    written(tmp_path, command="other.py")
    changed = known(load_profile("train", home, tmp_path), home, tmp_path)
    assert changed == Acquaintance(("train of ./profiles has changed since you launched it: python other.py",))


def test_a_name_that_ships_is_said_to_be_the_folders(tmp_path: Path, home: Home) -> None:
    written(tmp_path, FIRST)
    found = known(load_profile(FIRST, home, tmp_path), home, tmp_path)
    assert found.notes == (f"{FIRST} is from ./profiles, not the one that ships with mpstui",)
    assert shipped_profile(FIRST, tmp_path).text != load_profile(FIRST, home, tmp_path).text
    assert known(shipped_profile(FIRST, tmp_path), home, tmp_path) == Acquaintance()


def test_a_profile_that_everybody_can_write_is_launched_by_its_path_alone(tmp_path: Path, home: Home) -> None:
    written(tmp_path).parent.chmod(0o777)
    profile = load_profile("train", home, tmp_path)
    with pytest.raises(UsageError, match=r"from \./profiles, and .*profiles can be written by everybody"):
        known(profile, home, tmp_path)
    assert known(profile, home, tmp_path, asked=True).shown


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_another_users_profile_is_launched_by_its_path_alone(tmp_path: Path, home: Home) -> None:
    os.chown(written(tmp_path), STRANGER, -1)
    with pytest.raises(UsageError, match=f"belongs to user {STRANGER}, not to you"):
        known(load_profile("train", home, tmp_path), home, tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_a_profile_of_the_home_that_another_user_wrote_is_launched_by_its_path_alone(
    tmp_path: Path, home: Home
) -> None:
    home.config.mkdir()
    path = written(home.config)
    assert known(load_profile("train", home, tmp_path), home, tmp_path) == Acquaintance()
    os.chown(path, STRANGER, -1)
    profile = load_profile("train", home, tmp_path)
    with pytest.raises(UsageError, match=f"belongs to user {STRANGER}, not to you"):
        known(profile, home, tmp_path)
    assert known(profile, home, tmp_path, asked=True) == Acquaintance()


def test_the_form_opens_for_no_profile_that_everybody_can_write(tmp_path: Path, home: Home) -> None:
    written(tmp_path).parent.chmod(0o777)
    launcher = Launcher(home, {}, tmp_path, Actions({}), time.time)
    with pytest.raises(UsageError, match="can be written by everybody"):
        launcher.draft("train")
