"""Looking at runs starts those that wait; what another user, another machine or a copy of a folder waits for stays."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mpstui.core.launching.actions import SupervisorRecovery
from mpstui.core.launching.launch import _origin
from mpstui.core.launching.supervisors import start_supervisor
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home, require_own
from mpstui.core.model.snapshot import State
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.queueing import set_slots
from mpstui.core.runs.waiting import is_abandoned
from mpstui.wire import storage
from mpstui.wire.liveness import boot_id
from mpstui.wire.records import LaunchTemplate, Origin, Spec, Status, Variant
from mpstui.wire.rundir import RunDir, create_run_dir

STRANGER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def home_of(folder: Path) -> Home:
    return Home(folder, folder)


def queued(home: Home, origin: Origin | None = None, boot: str | None = None) -> RunDir:
    run = create_run_dir(home.runs, "waits", 1.0)
    template = LaunchTemplate("cpu", {"cpu": Variant(["/bin/false"])}, "/")
    made = Spec(run.run, "waits", 1.0, template, by="ada@lab:7", origin=origin or _origin(run))
    storage.write_json(run.spec, made)
    storage.write_json(run.status, Status(run.run, "queued", 0, 2.0, boot_id=boot_id() if boot is None else boot))
    return run


def started(home: Home) -> list[RunDir]:
    """Those that looking would start."""
    found: list[RunDir] = []
    SupervisorRecovery(home, found.append).respawn_missing()
    return found


def reason(home: Home) -> str:
    (snapshot,) = Monitor(home).refresh()
    assert snapshot.state is State.LOST
    return snapshot.reason


def test_a_queued_run_survives_a_reboot_and_another_name_of_its_folder(tmp_path: Path) -> None:
    run = queued(home_of(tmp_path / "home"), boot="before the reboot")
    assert started(home_of(tmp_path / "home")) == [run]
    (tmp_path / "home").rename(tmp_path / "other")
    assert [run.run for run in started(home_of(tmp_path / "other"))] == [run.run]
    (tmp_path / "link").symlink_to(tmp_path / "other")
    assert [run.run for run in started(home_of(tmp_path / "link"))] == [run.run]


def test_a_copy_of_a_queued_run_is_shown_and_not_started(tmp_path: Path) -> None:
    run = queued(home_of(tmp_path / "home"))
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    copy = home_of(tmp_path / "copy")
    assert started(copy) == []
    assert reason(copy) == f"queued elsewhere, not started here: this is a copy of {run.path}"


def test_a_run_that_was_queued_on_another_machine_is_shown_and_not_started(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    run = queued(home, Origin("0123456789abcdef", str(tmp_path), 1))
    assert not is_abandoned(run)
    assert started(home) == []
    assert reason(home).endswith("it was queued on another machine by ada@lab:7")


def test_a_record_that_does_not_say_where_it_was_made_is_good_for_this_boot(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    run = queued(home)
    spec = storage.read(Spec, run.spec)
    assert spec is not None
    storage.write_json(run.spec, spec._replace(origin=None))
    assert started(home) == [run]
    storage.write_json(run.status, Status(run.run, "queued", 0, 2.0, boot_id="of-another-machine"))
    assert started(home) == []


@as_root
@pytest.mark.parametrize("whose", ["home", "runs", "run", "spec", "status"])
def test_nothing_of_another_user_is_started(tmp_path: Path, whose: str) -> None:
    home = home_of(tmp_path / "home")
    run = queued(home)
    path = {"home": home.state, "runs": home.runs, "run": run.path, "spec": run.spec, "status": run.status}[whose]
    os.chown(path, STRANGER, -1)
    assert started(home) == []
    assert reason(home).endswith(f"{path} belongs to user {STRANGER}, not to you")
    with pytest.raises(OperationError, match=f"is not started: .* belongs to user {STRANGER}"):
        start_supervisor(run, os.environ)


@pytest.mark.parametrize("whose", ["home", "runs", "run"])
def test_nothing_that_others_can_write_is_started(tmp_path: Path, whose: str) -> None:
    home = home_of(tmp_path / "home")
    run = queued(home)
    {"home": home.state, "runs": home.runs, "run": run.path}[whose].chmod(0o777)
    assert started(home) == []
    assert "can be written by everybody" in reason(home)


def test_nothing_is_launched_or_queued_in_a_home_that_others_can_write(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(OperationError, match="can be written by everybody"):
        require_own(home)
    with pytest.raises(OperationError, match=r"cannot be changed: .* can be written by everybody"):
        set_slots(home, "mps", 2)
