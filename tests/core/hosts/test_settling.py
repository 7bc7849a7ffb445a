"""A run that arrives: who may put it together, what a failed move leaves, and what is there when it comes back."""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpstui.core.hosts import staging
from mpstui.core.hosts.departing import Departure
from mpstui.core.hosts.parcel import BESIDE, Item, digest_of, pack
from mpstui.core.hosts.relocation import choice_message
from mpstui.core.hosts.settling import Arrival
from mpstui.core.hosts.sources import manifest_of, source_tree
from mpstui.core.hosts.staging import code_folder, remove_abandoned, run_stage, take
from mpstui.core.hosts.stowing import arrived
from mpstui.core.launching.actions import Actions
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.editing import profile_toml, recorded_choice
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.profiles.model import profile_of_command
from mpstui.wire import labels, liveness, storage
from mpstui.wire.moves import Move, MoveStep
from mpstui.wire.records import Ack, Branch, ExitRecord, LaunchRecord, Origin, Request, Spec
from mpstui.wire.rundir import RunDir
from tests.core.runs.build import RunBuilder

NOW = 1_800_000_000.0


class Travel:
    """A run with a checkpoint beside it, on its way from one home to another."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.here, self.home = (Home(folder / name, folder / name) for name in ("here", "there"))
        self.cwd = folder / "code"
        self.cwd.mkdir(parents=True)
        branch, origin = Branch("other", 5, "/old/carried/brought/x.pt"), Origin("m", "/old/carried", 1)
        made = (
            RunBuilder(self.here, "carried", secret_env=["TOKEN"], branch=branch, origin=origin)
            .status("ended")
            .launch()
            .exit(signal=15)
        )
        self.run = made.run
        (self.run.path / "requests").rmdir()
        self.beside = folder / "last.json"
        self.beside.write_text("weights")
        self.beside_name = "out/1.json"
        profile = profile_of_command((sys.executable, "train.py"), cwd=self.cwd, name="toy", checkpoints="out/*")
        (self.cwd / "train.py").touch()
        self.launch = choice_message(LaunchChoice(profile))
        self.restarted: list[str] = []
        self.looks = 0
        """How often it was looked whether the run has begun again; the third look finds that."""
        monkeypatch.setattr(Actions, "restart", self._restart)
        monkeypatch.setattr(Actions, "answer", self._answer)

    def _restart(self, seen: RunSnapshot, device: str) -> Request:
        self.restarted.append(seen.run)
        return Request("restart-1", "restart", seen.attempt, "the mover", NOW)

    def _answer(self, folder: Path, request: str) -> Ack | None:
        assert request == "restart-1"
        self.looks += 1
        return Ack(request, True, "supervisor", NOW, "started") if self.looks == 3 else None

    def asked(self, token: str = "t", **more: Any) -> dict[str, Any]:
        files = self.files()
        return {
            "run": self.run.run,
            "token": token,
            "from": "here",
            "launch": self.launch,
            "cwd": str(self.cwd),
            "places": [],
            "files": [list(one) for one, _ in files],
            "times": {one.name: path.stat().st_mtime_ns for one, path in files},
            "attempt": 1,
            **more,
        }

    def files(self) -> list[tuple[Item, Path]]:
        own = [path for path in self.run.path.rglob("*") if path.is_file() and path.suffix != ".lock"]
        named = [(str(path.relative_to(self.run.path)), path) for path in own]
        return [
            (Item(name, *digest_of(path)), path)
            for name, path in [*named, (f"{BESIDE}/{self.beside_name}", self.beside)]
        ]

    def settle(self, arrival: Arrival, **more: Any) -> Arrival:
        packed = io.BytesIO()
        pack(self.files(), arrival.lacks(self.asked(**more))["lacking"], packed)
        packed.seek(0)
        arrival.settle(self.asked(**more), SimpleNamespace(receiving=lambda: packed))  # type: ignore[arg-type]
        return arrival

    def arrival(self) -> Arrival:
        return Arrival(self.home, os.environ, lambda: NOW)


@pytest.fixture
def travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Travel:
    return Travel(tmp_path, monkeypatch)


def test_of_two_that_put_a_run_together_exactly_one_wins(travel: Travel) -> None:
    first, second = travel.arrival(), travel.arrival()
    travel.settle(first, token="a")
    for refused in (second.lacks, second.expect):
        with pytest.raises(OperationError, match="just arriving"):
            refused(travel.asked())
    assert first.accept(travel.run.run, "a") == {"run": travel.run.run, "attempt": 2, "begun": False}
    assert not run_stage(travel.home, travel.run.run).exists()
    with pytest.raises(OperationError, match="there is a run"):
        travel.settle(second, token="b")


def test_a_checkpoint_beside_the_run_is_put_there_when_the_run_is_taken_over(travel: Travel) -> None:
    arrival = travel.settle(travel.arrival())
    assert not (travel.cwd / "out").exists(), "until then nothing but the hidden folder has changed"
    arrival.forget(travel.run.run)
    with pytest.raises(OperationError, match="nothing of the move"):
        arrival.accept(travel.run.run, "t")
    assert (travel.home.runs / travel.run.run).exists() == (travel.cwd / "out").exists() is False
    (travel.cwd / "out").mkdir()
    (travel.cwd / "out/1.json").write_text("of somebody else")
    with pytest.raises(OperationError, match="is another file"):
        travel.settle(arrival)
    (travel.cwd / "out/1.json").unlink()
    lacking = arrival.lacks(travel.asked())["lacking"]
    assert digest_of(travel.beside)[0] not in lacking, "what was sent is not sent again"
    travel.settle(arrival).accept(travel.run.run, "t")
    assert (travel.cwd / "out/1.json").read_text() == "weights"
    assert not (travel.home.runs / travel.run.run / BESIDE).exists()


def test_a_run_that_comes_back_finds_what_it_had_left_there(travel: Travel) -> None:
    labels.edit(travel.run, lambda said: said._replace(note="before"))
    travel.settle(travel.arrival()).accept(travel.run.run, "t")
    home = RunDir(travel.home.runs / travel.run.run)
    storage.write_json(home.moved, Move("u", "here", NOW, 1))
    for name in ("checkpoints/step-1.json", "checkpoints/old/.metadata", "telemetry.jsonl", "requests/1.json"):
        (home.path / name).parent.mkdir(parents=True, exist_ok=True)
        (home.path / name).write_text("old")
    labels.edit(home, lambda said: said._replace(note="written while it was away"))
    travel.beside.write_text("newer weights")
    travel.settle(travel.arrival(), token="v").accept(travel.run.run, "v")
    assert (home.path / "checkpoints/step-1.json").read_text() == "old"
    assert (home.path / "checkpoints/old/.metadata").exists()
    assert (home.path / "telemetry.jsonl").exists()
    assert list(home.requests.iterdir()) == []
    assert not home.moved.exists()
    assert labels.read(home).note == "written while it was away"
    assert (travel.cwd / "out/1.json").read_text() == "newer weights"


def test_a_run_that_comes_home_has_its_interpreter_its_folder_and_its_profile_again(
    travel: Travel, tmp_path: Path
) -> None:
    python, run = tmp_path / "venv/bin/python", RunDir(travel.home.runs / travel.run.run)
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    shutil.copytree(travel.run.path, run.path)
    profile = profile_of_command((str(python), "train.py"), cwd=travel.cwd, name="toy", checkpoints="out/*")
    spec = storage.read_json(run.spec) or {}
    spec["launch"]["cwd"] = str(travel.cwd)
    storage.write_json(run.spec, {**spec, "profile_text": profile_toml(profile)})
    storage.write_json(run.moved, Move("u", "here", NOW, 1))
    code = {**manifest_of(source_tree(travel.cwd)), "run": run.run, "below": ""}
    assert arrived(code, travel.home) == travel.cwd
    travel.settle(travel.arrival()).accept(run.run, "t")
    home = storage.read(Spec, run.spec)
    assert home is not None
    assert home.launch.variants["cpu"].argv[0] == str(python)
    assert (home.profile, home.branch) == ("cifar", Branch("other", 5, str(run.path / "brought" / "x.pt")))
    assert "TOKEN" in home.secret_env
    assert recorded_choice(run).profile.command == (str(python), "train.py")
    storage.write_json(run.moved, Move("u", "here", NOW, 1))
    (travel.cwd / "train.py").write_text("changed since")
    assert arrived(code, travel.home) is None


def test_checkpoints_that_are_folders_keep_their_order(travel: Travel) -> None:
    for name, moment in (("b", 1000.0), ("a", 3000.0), ("c", 2000.0)):
        path = travel.run.checkpoints / name / "inner" / "x"
        path.parent.mkdir(parents=True)
        path.write_text(name)
        os.utime(path, (moment, moment))
    travel.beside_name = "out/last/x"
    os.utime(travel.beside, (4000.0, 4000.0))
    travel.settle(travel.arrival()).accept(travel.run.run, "t")
    there = RunDir(travel.home.runs / travel.run.run)
    assert {path.name: path.stat().st_mtime for path in there.checkpoints.iterdir()} == {
        "b": 1000,
        "a": 3000,
        "c": 2000,
    }
    assert (travel.cwd / "out/last").stat().st_mtime == 4000.0


def test_what_a_dead_move_left_is_removed_unless_it_may_be_the_run_itself(
    travel: Travel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, code = run_stage(travel.home, travel.run.run), code_folder(travel.home) / f"{staging.ARRIVING}x"
    arrival = travel.settle(travel.arrival())
    storage.make_private_folder(code)
    remove_abandoned(travel.home)
    assert code.exists(), "whoever has just made it is about to lock it"
    os.utime(code, (1, 1))
    os.utime(stage, (1, 1))
    remove_abandoned(travel.home)
    assert not code.exists()
    assert stage.exists(), "somebody writes there"
    arrival.close()
    remove_abandoned(travel.home)
    assert stage.exists(), "its old home may have given it away"
    arrival.forget(travel.run.run)
    os.utime(stage)
    remove_abandoned(travel.home)
    assert stage.exists(), "the next try needs less"
    os.utime(stage, (1, 1))
    remove_abandoned(travel.home)
    assert not stage.exists()
    lock = take(stage)
    assert lock is not None
    assert take(stage) is None
    liveness.release(lock)


def test_a_run_is_taken_over_when_it_has_begun_again(travel: Travel) -> None:
    """Else who looks at once finds it stopped, as it came."""
    travel.settle(travel.arrival()).accept(travel.run.run, "t")
    assert (travel.restarted, travel.looks) == ([travel.run.run], 3)


def test_times_are_those_of_the_clock_here(travel: Travel) -> None:
    run, ahead = travel.run, -7200.0
    storage.append_line(run.metrics, {"time": NOW, "step": 1, "loss": 2.0})
    travel.settle(travel.arrival(), ahead=ahead).accept(run.run, "t")
    here = RunDir(travel.home.runs / run.run)
    launched, ended = (
        (storage.read(LaunchRecord, one.attempt(1).launch), storage.read(ExitRecord, one.attempt(1).exit))
        for one in (run, here)
    )
    assert launched[0] is not None
    assert launched[1] is not None
    assert ended[0] is not None
    assert ended[1] is not None
    assert (ended[0].time - launched[0].time, ended[1].ended - launched[1].ended) == (ahead, ahead)
    assert (travel.cwd / "out/1.json").stat().st_mtime_ns == travel.beside.stat().st_mtime_ns + int(ahead) * 10**9
    assert storage.load_object(here.metrics.read_bytes())["time"] == NOW + ahead


def test_of_two_that_move_a_run_away_the_second_is_told(travel: Travel) -> None:
    one, other = (Departure(travel.here, os.environ) for _ in range(2))
    one._begin(travel.run, "b", MoveStep.SAVE)
    with pytest.raises(OperationError, match="being moved already"):
        other.depart(travel.run.run, "c")
    storage.write_json(travel.run.moved, Move("t", "b", NOW, 1))
    one.close()
    with pytest.raises(OperationError, match="was moved to b meanwhile"):
        other.depart(travel.run.run, "c")
    travel.run.moved.write_text("{")
    for refused in (other.survey, lambda run: other.depart(run, "c")):
        with pytest.raises(OperationError, match="cannot be read"):
            refused(travel.run.run)
