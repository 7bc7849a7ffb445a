"""Actions are requests; what cannot work is refused with one honest sentence; nobody is left without a supervisor."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.launching.actions import Actions
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.editing import recorded_choice, save_profile
from mpstui.core.launching.launch import launch, spec_json
from mpstui.core.launching.planning import plan
from mpstui.core.launching.record import availability
from mpstui.core.model.errors import OperationError, UsageError
from mpstui.core.model.home import Home
from mpstui.core.model.queue_place import QueuePlace
from mpstui.core.model.snapshot import Health, Numbers, RunSnapshot, State
from mpstui.core.profiles.model import Profile, profile_of_command
from mpstui.wire import liveness, rundir, storage
from mpstui.wire.heartbeat import DeviceReading
from mpstui.wire.records import Ack, LaunchRecord, Request, Status
from mpstui.wire.rundir import RunDir, create_run_dir

from .conftest import linux

Build = Callable[[str], Profile]
TEXT = 'command = ["{python}", "train.py"]\n[args]\nlr = 1\n[env]\nHF_TOKEN = "hf_fromprofile"\n'
RESUME = (
    '[resume]\nargs = ["--resume", "{checkpoint}"]\ncheckpoints = "*.pt"\n[device_args]\ncpu = ["--device", "cpu"]\n'
)


class Starts:
    """Stands in for the supervisor's start and remembers each one."""

    def __init__(self) -> None:
        self.environs: list[Mapping[str, str]] = []

    def __call__(self, run: RunDir, environ: Mapping[str, str]) -> None:
        self.environs.append(environ)


class Bench:
    """One run on disk, and actions on it with a clock of our own."""

    def __init__(self, home: Home, choice: LaunchChoice, environ: Mapping[str, str]) -> None:
        self.home = home
        self.now = 1000.0
        made = plan(choice, environ={**environ, "PATH": "/usr/bin:/bin"}, machine=linux())
        self.run = create_run_dir(home.runs, made.name, self.now)
        storage.write_json(self.run.spec, spec_json(made, self.run, self.now))
        self.starts = Starts()
        self.actions = self.acting({"PATH": "/usr/bin:/bin"})

    def acting(self, environ: Mapping[str, str]) -> Actions:
        return Actions(environ, lambda: self.now, machine=linux(), start=self.starts)

    def snapshot(self, state: State = State.RUNNING, **known: Any) -> RunSnapshot:
        return RunSnapshot(
            run=self.run.run, name="net", dir=self.run.path, state=state, seen=self.now, attempt=1, **known
        )

    def written(self, request: Request) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run.request(request.id).read_text())
        return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "state", tmp_path / "config")


@pytest.fixture
def bench(home: Home, profile_of: Build) -> Bench:
    return Bench(home, LaunchChoice(profile_of(TEXT + RESUME), sets={"lr": "2"}), {"WANDB_API_KEY": "w" * 8})


def test_a_request_names_its_attempt_and_wakes_a_supervisor(bench: Bench) -> None:
    request = bench.actions.send(bench.snapshot(), "stop", force=True)
    written = bench.written(request)
    assert (written["action"], written["attempt"], written["options"]) == ("stop", 1, {"force": True})
    assert len(bench.starts.environs) == 1


def test_a_living_supervisor_is_left_alone(bench: Bench) -> None:
    held = liveness.acquire(bench.run.supervisor_lock)
    assert held is not None
    bench.actions.send(bench.snapshot(), "kill")
    assert bench.starts.environs == []
    liveness.release(held)


def test_an_unanswered_request_wakes_a_supervisor_again_but_not_all_the_time(bench: Bench) -> None:
    request = bench.actions.send(bench.snapshot(), "pause")
    for bench.now in (1000.1, 1000.5, 1001.5, 1001.6):
        assert bench.actions.answer(bench.run.path, request.id) is None
    assert len(bench.starts.environs) == 2
    rundir.answer(bench.run, Ack(request.id, True, "supervisor", bench.now, "paused"))
    found = bench.actions.answer(bench.run.path, request.id)
    assert found is not None
    assert found.text == "paused"


def test_a_restart_takes_secrets_from_the_profile_and_names_the_rest(bench: Bench) -> None:
    bench.actions.restart(bench.snapshot(State.FAILED))
    assert bench.starts.environs[0]["HF_TOKEN"] == "hf_fromprofile"
    assert "WANDB_API_KEY" in bench.run.events.read_text()
    bench.acting({"WANDB_API_KEY": "again"}).restart(bench.snapshot(State.FAILED))
    assert bench.run.events.read_text().count("WANDB_API_KEY") == 1


def test_restart_options(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "a.pt").touch()
    request = bench.actions.restart(bench.snapshot(), device="cpu", source=str(tmp_path / "a.pt"))
    assert bench.written(request)["options"] == {"device": "cpu", "from": str(tmp_path / "a.pt")}
    with pytest.raises(UsageError, match="no checkpoint"):
        bench.actions.restart(bench.snapshot(), source="gone.pt")
    with pytest.raises(OperationError, match="cannot be told to use mps"):
        bench.actions.restart(bench.snapshot(), device="mps")


def test_a_restart_needs_the_room_a_launch_needs(bench: Bench) -> None:
    spec = json.loads(bench.run.spec.read_text())
    assert spec["min_free_bytes"] > 0
    storage.write_json(bench.run.spec, {**spec, "min_free_bytes": 1 << 60})
    with pytest.raises(OperationError, match="free on the disk"):
        bench.actions.restart(bench.snapshot(State.FAILED))


def test_an_edited_restart_keeps_the_environment_of_the_run(home: Home, profile_of: Build) -> None:
    profile = profile_of("agent = true\n" + TEXT)
    shell = {"VIRTUAL_ENV": "/venv", "OMP_NUM_THREADS": "3", "PYTHONPATH": "/mine", "HF_HOME": "/hub"}
    bench = Bench(home, LaunchChoice(profile, env={"LANG": "C", "MKL_NUM_THREADS": "2"}), shell)
    before = storage.read_json(bench.run.spec)
    assert before is not None
    other = {"PATH": "/elsewhere:/bin", "CONDA_PREFIX": "/conda", "OMP_NUM_THREADS": "9", "HF_TOKEN": "hf_ofthisshell"}
    edited = replace(recorded_choice(bench.run), sets={"lr": "3"}, env={"MKL_NUM_THREADS": "4"})
    request = bench.acting(other).restart(bench.snapshot(), choice=edited)
    env = bench.written(request)["options"]["launch"]["variants"]["auto"]["env"]
    expected = {**before["launch"]["variants"]["auto"]["env"], "MKL_NUM_THREADS": "4"}
    del expected["LANG"]
    assert env == expected
    assert "hf_ofthisshell" not in bench.run.request(request.id).read_text()


def test_an_edited_restart_stays_on_the_device_the_run_was_moved_to(bench: Bench) -> None:
    assert recorded_choice(bench.run).device is None
    for number, device in ((1, "auto"), (2, "cpu")):
        bench.run.attempt(number).path.mkdir(parents=True)
        storage.write_json(bench.run.attempt(number).launch, LaunchRecord(number, 1.0, ["x"], "/", device))
    request = bench.actions.restart(bench.snapshot(), choice=replace(recorded_choice(bench.run), sets={"lr": "3"}))
    assert bench.written(request)["options"]["launch"]["device"] == "cpu"


def test_an_edited_restart_carries_its_template_and_can_be_edited_again(bench: Bench) -> None:
    before = recorded_choice(bench.run)
    assert (dict(before.sets), before.profile.args) == ({"lr": "2"}, {"lr": 1})
    assert before.profile.env == {}
    edited = LaunchChoice(before.profile, sets={"lr": "3"}, recipe="classic")
    request = bench.actions.restart(bench.snapshot(), choice=edited)
    options = bench.written(request)["options"]
    assert options["launch"]["variants"]["auto"]["argv"][-4:] == ["--lr", "3", "--device", "cpu"]
    assert recorded_choice(bench.run).sets == {"lr": "2"}
    storage.write_json(bench.run.status, Status(bench.run.run, "running", 2, 1.0, template=options["launch"]))
    after = recorded_choice(bench.run)
    assert (after.sets, after.recipe) == ({"lr": "3"}, "classic")
    words = [before.profile.command[0], "train.py", "now"]
    request = bench.actions.restart(bench.snapshot(), choice=after.with_command(words))
    options = bench.written(request)["options"]
    assert options["launch"]["variants"]["auto"]["argv"][1:] == ["train.py", "now", "--lr", "3", "--device", "cpu"]
    storage.write_json(bench.run.status, Status(bench.run.run, "running", 3, 2.0, template=options["launch"]))
    assert recorded_choice(bench.run).written_command == tuple(words)
    assert 'train.py", "now"' in save_profile(recorded_choice(bench.run), "mine", bench.home).read_text()


@pytest.mark.parametrize(
    ("action", "state", "part"),
    [
        ("stop", State.FINISHED, "not running (finished)"),
        ("kill", State.STOPPED, "not running (stopped)"),
        ("stop", State.WATCHED, "only watches it"),
        ("stop", State.UNREADABLE, "cannot be read"),
        ("pause", State.QUEUED, "has not been started yet"),
        ("continue", State.RUNNING, "not paused"),
        ("restart", State.QUEUED, "waiting to start"),
        ("queue_move", State.RUNNING, "is not in a queue"),
        ("queue_pause", State.QUEUED, "not in a queue"),
        ("clear_cache", State.RUNNING, "has not reported yet"),
        ("clear_cache", State.FINISHED, "not running"),
        ("remove", State.RUNNING, "still running: stop it first"),
        ("remove", State.WATCHED, "only watches it"),
    ],
)
def test_refusals(bench: Bench, action: str, state: State, part: str) -> None:
    found = availability(bench.snapshot(state), action)
    assert not found.ok
    assert part in found.why


@pytest.mark.parametrize(
    ("action", "state"),
    [
        *[(action, State.RUNNING) for action in ("stop", "kill", "pause", "restart", "restart_cpu", "edit_restart")],
        *[(action, State.FAILED) for action in ("restart", "restart_cpu", "edit_restart")],
        ("stop", State.QUEUED),
        ("stop", State.BACKING_OFF),
        ("kill", State.STOP_FAILED),
        ("stop", State.UNSUPERVISED),
        ("kill", State.LOST),
        ("remove", State.FINISHED),
    ],
)
def test_what_can_work(bench: Bench, action: str, state: State) -> None:
    assert availability(bench.snapshot(state), action).ok


def test_the_queue_is_changed_for_what_waits_in_one(bench: Bench) -> None:
    waiting = bench.snapshot(State.QUEUED, queue=QueuePlace("mps", 2))
    assert availability(waiting, "queue_move").ok
    assert availability(waiting, "queue_pause").ok


def test_clear_cache_needs_a_trainer_that_beats(bench: Bench) -> None:
    beat = bench.run.attempt(1).heartbeat()
    beat.parent.mkdir(parents=True)
    beat.write_text("{}")
    assert availability(bench.snapshot(), "clear_cache").ok
    paused = bench.snapshot(health=Health.PAUSED)
    assert "paused" in availability(paused, "clear_cache").why
    assert availability(paused, "continue").ok
    assert not availability(paused, "pause").ok


def test_a_program_that_reports_without_the_agent_is_asked_only_what_it_takes(bench: Bench) -> None:
    folder = bench.run.attempt(1)
    storage.make_private_folder(folder.path)
    beat = {"schema": 1, "time": 1.0, "seq": 1, "reported": ["loss"], "answers": ["save"]}
    storage.write_json(folder.heartbeat(), beat)
    found = {action: availability(bench.snapshot(), action) for action in ("clear_cache", "save", "evaluate")}
    assert [action for action, one in found.items() if one.ok] == ["save"]
    assert "takes no such request" in found["clear_cache"].why
    assert 'report.takes("clear_cache")' in found["clear_cache"].why
    with pytest.raises(OperationError, match="takes no such request"):
        bench.actions.send(bench.snapshot(), "clear_cache")
    folder.stack_signal.write_text("10 1 1\n")  # the agent has come, and answers for it
    assert availability(bench.snapshot(), "clear_cache").ok


def test_a_program_without_contracts_says_so(home: Home, profile_of: Build) -> None:
    bare = Bench(home, LaunchChoice(profile_of('command = ["{python}", "train.py"]\nagent = false\n')), {})
    assert "cannot be told to use cpu" in availability(bare.snapshot(), "restart_cpu").why
    caution = availability(bare.snapshot(), "restart")
    assert caution.ok
    assert "from step 0" in caution.why
    with pytest.raises(OperationError, match="no \\[resume\\]"):
        bare.actions.restart(bare.snapshot(), source="best")


@pytest.mark.parametrize("device", ["cpu", "mps", None])
def test_what_computes_on_the_cpu_is_not_sent_there(bench: Bench, device: str | None) -> None:
    shown = bench.snapshot(numbers=Numbers(device=DeviceReading(device)))
    assert ("runs on the CPU already" in availability(shown, "restart_cpu").why) == (device == "cpu")
    assert availability(shown, "restart").ok


def test_a_run_of_a_bare_command_is_not_told_of_its_profile(home: Home, tmp_path: Path) -> None:
    bare = Bench(home, LaunchChoice(profile_of_command(("sh", "-c", "true"), cwd=tmp_path, agent=False)), {})
    assert "this command cannot be told to use cpu" in availability(bare.snapshot(), "restart_cpu").why
    assert "this command has no way to resume" in availability(bare.snapshot(), "restart").why
    asked = [availability(bare.snapshot(), action).why for action in ("restart", "restart_cpu", "clear_cache")]
    assert not [why for why in asked if "its profile" in why]


@pytest.mark.parametrize(
    ("script", "words", "told"),
    [
        (
            'add_argument("--resume", default="")',
            (),
            "its --resume is only used if you say so (`mpstui restart {} --set ",
        ),
        ('add_argument("-r", "--resume-from")', (), "--set resume-from=CHECKPOINT`"),
        ('add_argument("--resume", action="store_true")', (), "--set resume=true`"),
        ('add_argument("--resume")', ("--resume", "a.pt"), "it will start where the --resume of its command says"),
        ('add_argument("--lr")', (), "this command has no way to resume"),
    ],
)
def test_a_command_whose_program_can_resume_is_told_how(
    home: Home, tmp_path: Path, script: str, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "train.py").write_text(f"import argparse\nargparse.ArgumentParser().{script}\n")
    command = (sys.executable, "train.py", *words)
    bare = Bench(home, LaunchChoice(profile_of_command(command, cwd=tmp_path, agent=False)), {})
    assert told.format(bare.run.run) in availability(bare.snapshot(), "restart").why


def test_a_damaged_record_is_only_looked_at(bench: Bench) -> None:
    bench.run.spec.write_text("{torn")
    with pytest.raises(OperationError, match="cannot be read"):
        bench.actions.send(bench.snapshot(), "pause")
    assert list(bench.run.requests.iterdir()) == []
    assert availability(bench.snapshot(), "stop").ok  # what lives is ended all the same
    assert not availability(bench.snapshot(State.FINISHED), "stop").ok


def test_a_trainer_that_reported_before_is_only_starting(bench: Bench) -> None:
    storage.make_private_folder(bench.run.attempt(1).path)
    storage.write_json(bench.run.attempt(1).heartbeat(), {"schema": 1, "time": 1.0, "seq": 1})
    found = availability(replace(bench.snapshot(State.RUNNING), attempt=2), "clear_cache")
    assert "still starting" in found.why


def test_a_launch_whose_record_cannot_be_written_leaves_no_run_behind(
    profile_of: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    home = Home(tmp_path / "home", tmp_path)
    made = plan(LaunchChoice(profile_of(TEXT)), environ={"PATH": "/usr/bin:/bin"}, machine=linux())
    monkeypatch.setattr(storage, "write_json", full)
    with pytest.raises(OperationError, match="No space left"):
        launch(made, home, {}, 1000.0)
    assert list(home.runs.iterdir()) == []
