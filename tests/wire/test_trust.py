"""Whose a file is, told from real files of real owners and modes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpstui.wire.liveness import machine_id
from mpstui.wire.storage import create_file, make_private_folder
from mpstui.wire.trust import distrust_of_any, distrusted

STRANGER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.touch(mode=0o600)
    return path


@pytest.mark.parametrize(("mode", "why"), [(0o600, ""), (0o644, ""), (0o602, "can be written by everybody")])
def test_what_everybody_can_write_is_not_obeyed(file: Path, mode: int, why: str) -> None:
    file.chmod(mode)
    assert distrusted(file) == why
    assert distrust_of_any(file.parent, file) == (f"{file} {why}" if why else "")


def test_what_is_not_there_is_left_to_whoever_reads_it(tmp_path: Path) -> None:
    assert distrusted(tmp_path / "none") == ""


@as_root
def test_a_group_that_is_not_the_users_own_is_told_from_one_that_is(file: Path) -> None:
    file.chmod(0o660)
    assert distrusted(file) == ""
    os.chown(file, -1, STRANGER)
    assert distrusted(file) == f"can be written by the group {STRANGER}"


@as_root
def test_a_folder_that_all_can_add_to_but_not_take_from_is_no_doubt(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    assert distrusted(tmp_path) == ""
    tmp_path.chmod(0o777)
    assert distrusted(tmp_path) == "can be written by everybody"


@as_root
def test_another_users_file_and_a_link_by_another_user_are_not_obeyed(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    assert distrusted(link) == ""
    os.lchown(link, STRANGER, -1)
    assert distrusted(link) == f"belongs to user {STRANGER}, not to you"
    os.chown(file, STRANGER, -1)
    assert distrusted(file) == f"belongs to user {STRANGER}, not to you"


@pytest.fixture(name="no_umask")
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_each_folder_that_is_made_is_private_whatever_the_umask(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "state" / "mpstui" / "runs")
    made = [tmp_path / "state", tmp_path / "state/mpstui", tmp_path / "state/mpstui/runs"]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * 3
    make_private_folder(made[-1])


def test_a_machine_is_told_from_others_without_telling_its_own_id() -> None:
    known = Path("/etc/machine-id")
    assert machine_id() == machine_id()
    assert len(machine_id()) == 16
    assert not known.exists() or machine_id() not in known.read_text()


@pytest.mark.usefixtures("no_umask")
def test_a_file_is_ones_own_whatever_the_umask_and_whatever_lies_in_its_place(tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_text("kept")
    link.symlink_to(other)
    (tmp_path / "wide").touch(mode=0o666)
    for path in (link, tmp_path / "wide", tmp_path / "new"):
        with create_file(path) as file:
            file.write(b"ours")
        assert (path.read_text(), stat.S_IMODE(path.lstat().st_mode)) == ("ours", 0o600)
    assert other.read_text() == "kept"


def test_what_is_roots_is_read_by_everybody_and_run_by_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    place = next(path for path in (Path("/etc"), Path("/")) if path.stat().st_uid == 0)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    assert distrusted(place) == ""
    assert distrusted(place, strict=True) == "belongs to user root, not to you"
