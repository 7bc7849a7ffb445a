"""The two ends of a move where something is broken: a run that ends meanwhile, a full disk, a list that is not true."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpstui.core.hosts import departing
from mpstui.core.hosts.departing import Departure
from mpstui.core.hosts.line import HostError
from mpstui.core.hosts.moving import MovePlan, Mover
from mpstui.core.hosts.parcel import Item, pack
from mpstui.core.hosts.settling import Arrival
from mpstui.core.hosts.talk import TRIES
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import State
from mpstui.wire import liveness, storage
from mpstui.wire.moves import Move
from mpstui.wire.rundir import RunDir
from tests.core.hosts.machines import STEPS, Machines
from tests.waiting import wait_until


def test_a_run_that_finishes_while_it_is_asked_to_stop_is_neither_moved_nor_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = Machines(tmp_path)
    run = machines.launch()
    machines.trains("a", run, 20)
    before = machines.look("a", run)
    machines.allow(STEPS + 1)
    wait_until(lambda: (seen := machines.look("a", run)) is not None and seen.state is State.FINISHED)
    departure = Departure(machines.homes["a"], os.environ)
    really, looks = departure._look, iter([before])
    monkeypatch.setattr(departure, "_look", lambda found: next(looks, None) or really(found))
    with pytest.raises(OperationError, match="not moved"):
        departure.depart(run, "b")
    departure.close()
    seen = machines.look("a", run)
    assert seen is not None
    assert (seen.state, seen.attempts) == (State.FINISHED, 1)


@pytest.fixture
def held(tmp_path: Path) -> tuple[Departure, RunDir]:
    """A departure that holds a run."""
    home = Home(tmp_path, tmp_path)
    run = RunDir(home.runs / "r")
    run.path.mkdir(parents=True)
    run.spec.write_text("{}")
    departure = Departure(home, os.environ)
    departure._held, departure._lock = "r", liveness.acquire(run.supervisor_lock)
    return departure, run


def test_a_run_is_kept_where_the_decision_could_not_be_made_durable(
    held: tuple[Departure, RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    departure, run = held

    def full(path: Path, value: Any, **named: Any) -> None:
        path.write_text(storage.dump_bytes(value).decode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "write_json", full)
    with pytest.raises(OperationError, match="No space left"):
        departure.leave("r", Move("t", "b", 1.0, 1))
    assert not run.moved.exists()
    departure.close()
    assert not liveness.is_held(run.supervisor_lock)


def test_only_the_run_that_is_held_can_be_given_away(held: tuple[Departure, RunDir]) -> None:
    departure, run = held
    other = RunDir(run.path.with_name("other"))
    other.path.mkdir()
    other.spec.write_text("{}")
    with pytest.raises(OperationError, match="not about to leave"):
        departure.leave("other", Move("t", "b", 1.0, 1))
    assert not other.moved.exists()
    departure.close()


def test_a_checkpoint_travels_whole_whatever_its_files_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("new/.metadata", "new/a.lock", "old/.metadata", ".hidden", "run.lock", "moved.json", "events.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    new, old = (
        SimpleNamespace(path=tmp_path / name, time=time, step=1, best=False, complete=True)
        for name, time in (("new", 2.0), ("old", 1.0))
    )
    monkeypatch.setattr(departing, "own_checkpoints", lambda snapshot: [new, old])
    snapshot: Any = SimpleNamespace(dir=tmp_path, checkpoints=(new, old), name="r")
    assert {name for name, _ in departing._files(snapshot)} == {"new/.metadata", "new/a.lock", "events.jsonl"}


DATA = b"a"
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.mark.parametrize(
    ("name", "times"),
    [("moved.json", {"moved.json": 1}), ("requests/a.json", {"requests/a.json": 1}), ("a", {}), ("../a", {"../a": 1})],
)
def test_a_list_that_cannot_be_true_is_refused_and_nothing_takes_the_runs_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, times: dict[str, int]
) -> None:
    home, packed = Home(tmp_path, tmp_path), io.BytesIO()
    (tmp_path / "a").write_bytes(DATA)
    pack([(Item(name, DIGEST, 1), tmp_path / "a")], [DIGEST], packed)
    packed.seek(0)
    arrival, ends = Arrival(home, os.environ), SimpleNamespace(receiving=lambda: packed)
    asked = {"run": "r", "cwd": "", "times": times, "files": [[name, DIGEST, 1]]}
    with pytest.raises(OperationError, match="the list of files cannot be used"):
        arrival.settle(asked, ends)  # type: ignore[arg-type]
    assert not (home.runs / "r").exists()


def test_a_machine_that_breaks_at_each_acceptance_is_not_asked_for_ever() -> None:
    asked = []

    class Place:
        def ask(self, what: str, fields: Any) -> dict[str, Any]:
            asked.append(what)
            if what == "survey":
                return {"run": "r", "moved": {"to": "b", "token": "t"}}
            raise HostError("b", "failed", "the far program ended")

        def close(self) -> None:
            pass

    mover = Mover(Place, Place, names=("a", "b"), pause_seconds=0.0)  # type: ignore[arg-type]
    with pytest.raises(OperationError, match="is not finished") as found:
        mover.plan("r")
    assert asked.count("accept") == TRIES
    assert "mpstui move r --to b" in found.value.hint


def test_a_question_that_cannot_be_read_is_an_answer_and_the_line_goes_on(tmp_path: Path) -> None:
    with Machines(tmp_path).place("a") as place:
        for _ in range(2):
            with pytest.raises(OperationError, match="lacks failed there: KeyError: 'run'"):
                place.ask("lacks", {"files": []})


def test_a_home_folder_is_no_more_sent_by_a_move_than_by_a_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = Machines(tmp_path)
    run = machines.launch()
    machines.trains("a", run, 5)
    (machines.code / ".env").write_text("TOKEN=1")
    departure = Departure(machines.homes["a"], os.environ)
    looked = departure.survey(run)
    assert [row[0] for row in looked["code"]["files"]] == ["train.py"]
    plan = MovePlan(run, "toy", 5, True, "", "cpu", 1, 10, 10, (), {}, looked, {})
    (behind,) = (line for line in plan.sentences("b") if line.startswith("stays behind: "))
    assert behind.endswith(".env (a secret by its name)")
    monkeypatch.setenv("HOME", str(machines.code))
    with pytest.raises(OperationError, match="your home folder, which is not sent"):
        departure.survey(run)
    machines.allow(STEPS + 1)
    machines.final("a", run)
