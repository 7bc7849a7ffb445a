"""A far process that dies anywhere in what it was asked to do: asked again, it was done once, whole, and is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.hosts.calls import Call, CallBook
from mpstui.core.hosts.desk import Desk
from mpstui.core.hosts.view import RunRef
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.editing import save_profile
from mpstui.core.launching.launch import launch
from mpstui.core.launching.planning import plan
from mpstui.core.model.home import Home
from mpstui.core.profiles.model import profile_of_command
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.queueing import move_run
from mpstui.wire import queues, storage
from mpstui.wire.queues import QueueFiles
from mpstui.wire.records import QueueRule, Spec, Status
from mpstui.wire.rundir import RunDir, run_dirs
from tests.core.runs.build import RunBuilder, make_home

from ..launching.conftest import linux
from .lines import FarServices

Work = Callable[[Call], dict[str, Any]]
Check = Callable[[dict[str, Any]], None]
CHANGES = {"os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "subprocess.Popen"}
DIED = 77
STRIDE = int(os.environ.get("MPSTUI_TEST_DEATHS", "9"))
"""Of so many places to die at one is tried; ``MPSTUI_TEST_DEATHS=1`` tries all."""


def launching(home: Home, folder: Path) -> tuple[Work, Check]:
    made = plan(
        LaunchChoice(profile_of_command(("/bin/sleep", "1"), cwd=folder)),
        environ={"PATH": "/bin"},
        machine=linux(),
    )
    starts = home.state / "starts"

    def start(run: RunDir, environ: Mapping[str, str]) -> None:
        storage.write_json(run.status, Status(run.run, "running", 1, 1.0))
        with starts.open("a") as file:
            file.write(f"{run.run}\n")

    def check(told: dict[str, Any]) -> None:
        (run,) = [one for one in run_dirs(home.runs) if storage.read_or_none(Spec, one.spec) is not None]
        assert (told["run"], run.status.exists()) == (run.run, True)
        assert not starts.exists() or starts.read_text() == f"{run.run}\n"

    return lambda call: {"run": launch(made, home, {}, 1000.0, start, call=call.id)}, check


def removing(home: Home, folder: Path) -> tuple[Work, Check]:
    run = RunBuilder(home, "done").status("ended").launch().exit(code=0).output("step 1\n" * 1000).run
    (run.path / "checkpoints").mkdir()
    (run.path / "checkpoints/step-1.pt").write_bytes(b"w")

    (snapshot,) = Monitor(home).refresh()

    def remove(call: Call) -> dict[str, Any]:
        done = Desk(FarServices(home), lambda name: snapshot if run.path.exists() else None).remove(
            call, RunRef(run.run), True
        )
        return {"run": done.run, "kept": str(done.kept)}

    def check(told: dict[str, Any]) -> None:
        assert [*home.runs.iterdir()] == []
        assert (Path(told["kept"]) / "checkpoints/step-1.pt").read_bytes() == b"w"

    return remove, check


def moving(home: Home, folder: Path) -> tuple[Work, Check]:
    files, runs = QueueFiles(home.queue, "g"), list[RunDir]()
    for name in "abcd":
        built = RunBuilder(home, name, queue=QueueRule("g")).status("queued", waiting_for="slot")
        queues.edit(files, lambda found, run=built.run.run: found._replace(order=[*found.order, run]))  # type: ignore[misc]
        runs.append(built.run)

    def check(told: dict[str, Any]) -> None:
        assert told == {"place": 3}
        assert [*queues.read(files).order] == [runs[place].run for place in (0, 1, 3, 2)]

    return lambda call: {"place": move_run(home, runs[3], "up", call.id).place}, check


def saving(home: Home, folder: Path) -> tuple[Work, Check]:
    choice = LaunchChoice(profile_of_command(("/bin/sleep", "1"), cwd=folder))

    def check(told: dict[str, Any]) -> None:
        assert [str(path) for path in home.user_profiles.iterdir() if path.suffix == ".toml"] == [told["path"]]

    return lambda call: {"path": str(save_profile(choice, "mine", home, again=call.again))}, check


def dies_at(place: int, work: Callable[[], object]) -> bool:
    """Whether a process that does this got to its ``place``-th change of the disk, before which it dies."""
    child = os.fork()
    if child == 0:
        left = place

        def watch(event: str, given: tuple[Any, ...]) -> None:
            nonlocal left
            writes = event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
            left -= event in CHANGES or bool(writes)
            if left <= 0:
                os._exit(DIED)

        sys.addaudithook(watch)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == DIED


@pytest.mark.parametrize("kind", [launching, removing, moving, saving])
def test_it_is_done_once(tmp_path: Path, kind: Callable[[Home, Path], tuple[Work, Check]]) -> None:
    place, died = 0, True
    while died:
        place += STRIDE
        (folder := tmp_path / str(place)).mkdir()
        home = make_home(folder)
        work, check = kind(home, folder)
        book = CallBook(home.state / "calls")
        died = dies_at(place, lambda: book.once("call-of-a-key", work))  # noqa: B023
        check(book.once("call-of-a-key", work))
        check(book.once("call-of-a-key", work))
