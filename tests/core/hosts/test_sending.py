"""Launching on another machine: a far process of its own with a home of its own, real code, real runs."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.hosts import progress
from mpstui.core.hosts.holding import checkpoint_files
from mpstui.core.hosts.line import HostError
from mpstui.core.hosts.offering import FarOffering, Offering, launches_of
from mpstui.core.hosts.parcel import pack
from mpstui.core.hosts.progress import Cancelled, Progress, Wish
from mpstui.core.hosts.relocation import Places, choice_message, relocated
from mpstui.core.hosts.sending import CALLED_OFF, Sender, Shipment, fetched
from mpstui.core.hosts.ssh import connect
from mpstui.core.hosts.talk import Place
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.model.errors import OperationError, UsageError
from mpstui.core.model.home import Home
from mpstui.core.profiles.model import profile_of_command
from mpstui.core.profiles.parse import parse_profile
from mpstui.core.settings import HostsSettings
from mpstui.wire import storage
from mpstui.wire.records import Branch, ExitRecord, LaunchRecord, Provenance
from mpstui.wire.rundir import RunDir, run_dirs
from tests.waiting import wait_until

PROGRAM = "import helper, sys; print('args', sys.argv[1:], helper.NAME)\n"


@pytest.fixture
def near(tmp_path: Path) -> Home:
    return Home(tmp_path / "near", tmp_path / "near")


@pytest.fixture
def far(tmp_path: Path) -> Home:
    return Home(tmp_path / "far", tmp_path / "far")


@pytest.fixture
def sender(near: Home, far: Home, tmp_path: Path) -> Iterator[Sender]:
    line = connect(f"local:{far.state}", HostsSettings(), ("transfer",), environ=os.environ)
    with Sender("gpu1", Offering(near), Place(line), [(f"{tmp_path}/data", "/data")]) as opened:
        yield opened


def looked_at(sender: Sender, made: LaunchChoice) -> Shipment:
    return sender.look(launches_of([made]))


def choice(folder: Path, *arguments: str, python: str = sys.executable) -> LaunchChoice:
    (folder / "code").mkdir(parents=True, exist_ok=True)
    (folder / "code" / "train.py").write_text(PROGRAM)
    (folder / "code" / "helper.py").write_text("NAME = 'here'\n")
    (folder / "pyproject.toml").write_text("")
    profile = profile_of_command((python, "train.py", *arguments), cwd=folder / "code", name="mine", agent=False)
    return LaunchChoice(profile)


def ended(far: Home, run: str) -> RunDir:
    found = RunDir(far.runs / run)
    wait_until(lambda: found.attempt(1).exit.exists(), what="the end of the run")
    return found


def test_code_is_sent_and_trained_there_with_paths_as_they_are_there(tmp_path: Path, sender: Sender) -> None:
    data = f"--data={tmp_path}/data/train"
    made = choice(
        tmp_path / "project", data, "--config", f"{tmp_path}/project/code/a.yaml", python="/opt/none/bin/python3"
    )
    found = looked_at(sender, made)
    assert (len(found.lacking), found.folder) == (2, None)
    (foreseen,) = found.runs
    answer = sender.launch(found)
    far = Home(tmp_path / "far", tmp_path / "far")
    run = ended(far, answer["runs"][0])
    record = storage.read(LaunchRecord, run.attempt(1).launch)
    assert record is not None
    code = Path(record.cwd)
    assert code.is_relative_to(far.state / "code")
    assert (foreseen["cwd"], foreseen["command"]) == (record.cwd, record.argv)
    assert list(record.argv)[:2] == [sys.executable, "train.py"]
    assert {"--data=/data/train", "--config", f"{code}/a.yaml"} <= set(record.argv)
    assert "here" in run.attempt(1).output.read_text()
    ending = storage.read(ExitRecord, run.attempt(1).exit)
    assert ending is not None
    assert ending.code == 0


def test_the_same_code_is_sent_once(tmp_path: Path, sender: Sender) -> None:
    made = choice(tmp_path / "project")
    first = sender.launch(looked_at(sender, made))
    again = looked_at(sender, made)
    assert again.folder is not None
    assert not again.lacking
    ended(Home(tmp_path / "far", tmp_path / "far"), first["runs"][0])


def test_what_a_launch_would_do_is_told_and_nothing_is_sent(tmp_path: Path, sender: Sender) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / ".env").write_text("TOKEN=1\n")
    made = choice(tmp_path / "project", "--config", "a.yaml")
    (tmp_path / "project" / "code" / "best.bin").write_bytes(b"\0" * ((32 << 20) + 1))
    found = looked_at(sender, made)
    told = found.json()
    assert told["code"]["stays"] == [{"name": "best.bin", "why": "large", "line": None}]
    assert (told["code"]["sent_files"], told["runs"][0]["name"]) == (2, "mine")
    assert found.sentences[1] == "stays here: best.bin (no code by its size)"
    assert not (tmp_path / "far" / "code").exists()
    with pytest.raises(UsageError, match=r"^local:.*there is no SkyPilot"):
        sender.look(launches_of([made], "sky"))


def test_code_goes_from_one_other_machine_to_another(tmp_path: Path, far: Home) -> None:
    made, second = choice(tmp_path / "project"), tmp_path / "second"
    near, there = (
        Place(connect(f"local:{folder}", HostsSettings(), ("transfer",), environ=os.environ))
        for folder in (second, far.state)
    )
    with Sender("gpu2", FarOffering(near), there, (), (near,)) as sender:
        found = looked_at(sender, made)
        assert found.sentences[0].startswith(f"gpu2 gets 2 files of {tmp_path}/project/code")
        (run,) = sender.launch(found)["runs"]
    assert "here" in ended(far, run).attempt(1).output.read_text()


def test_what_cannot_be_launched_there_is_told_and_starts_nothing(tmp_path: Path, sender: Sender) -> None:
    made = LaunchChoice(choice(tmp_path / "project").profile, device="mps")
    with pytest.raises((UsageError, OperationError), match=r"^local:.*mps"):
        sender.launch(looked_at(sender, made))
    assert not (tmp_path / "far" / "runs").exists()
    with pytest.raises(OperationError, match=r"not understood there"):
        sender._target.ask("anything", {})


def test_a_script_that_stays_here_is_told_before_anything_is_sent(tmp_path: Path, sender: Sender) -> None:
    made = choice(tmp_path / "project")
    (tmp_path / "project" / "code" / "train.py").write_text("KEY = 'hf_" + "a1B2c3D4e5" * 3 + "'\n")
    with pytest.raises(OperationError, match=r"train\.py stays here \(token\)"):
        looked_at(sender, made)


def test_the_run_there_knows_the_commit_it_came_from(tmp_path: Path, sender: Sender) -> None:
    made = choice(tmp_path / "project")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "a")):
        subprocess.run(["git", *who, *words], cwd=tmp_path / "project", check=True, capture_output=True)
    (tmp_path / "project" / "code" / "helper.py").write_text("NAME = 'changed'\n")
    answer = sender.launch(looked_at(sender, made))
    run = ended(Home(tmp_path / "far", tmp_path / "far"), answer["runs"][0])
    kept = storage.read(Provenance, run.provenance)
    assert kept is not None
    assert (len(kept.commit or ""), kept.changed_files) == (40, 1)
    assert "+NAME = 'changed'" in run.source_diff.read_text()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_launch_whose_line_breaks_is_asked_again_and_done_once(
    tmp_path: Path, near: Home, far: Home, when: str
) -> None:
    """Whether the far end did it and nobody heard, or never heard of it."""
    broken: list[int] = []

    class Breaking(Place):
        def ask(self, what: str, fields: Any, send: Any = None, receive: Any = None) -> dict[str, Any]:
            if what != "launch" or len(broken) > 1:
                return super().ask(what, fields, send, receive)
            broken.append(1)
            if when == "after":
                super().ask(what, fields, send, receive)
            raise HostError(self.host, "cut", "connection lost")

    def opened() -> Place:
        return Breaking(connect(f"local:{far.state}", HostsSettings(), ("transfer",), environ=os.environ))

    with Sender("gpu1", Offering(near), opened(), (), again=opened) as sender:
        (run,) = sender.launch(looked_at(sender, choice(tmp_path / "project")))["runs"]
    ended(far, run)
    assert (len(broken), [one.run for one in run_dirs(far.runs)]) == (2, [run])


LARGE_BYTES = 16 << 20


@pytest.fixture
def told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first part already: who hears of it late would cancel what has arrived."""
    monkeypatch.setattr(progress, "_TELL_SECONDS", 0.0)


def large(folder: Path) -> tuple[LaunchChoice, Path]:
    """A launch that begins from a checkpoint which takes a while."""
    weights = folder / "weights.pt"
    weights.write_bytes(random.Random(5).randbytes(LARGE_BYTES))
    made = choice(folder / "project")
    resumes = replace(made.profile, resume_args=("--resume", "{checkpoint}"), checkpoints="*.pt")
    left = Branch(run="parent", step=7, checkpoint=str(weights))
    return replace(made, profile=resumes, branch=left), weights


@pytest.mark.usefixtures("told_at_once")
def test_a_launch_that_sends_much_tells_how_far_it_is_and_can_be_called_off(
    tmp_path: Path, near: Home, far: Home, sender: Sender
) -> None:
    made, weights = large(tmp_path)
    heard = list[Progress]()

    def call_off(now: Progress) -> None:
        heard.append(now)
        if now.doing == "its checkpoint is sent" and now.done_bytes:
            assert now.can_cancel
            sender.cancel()

    with pytest.raises(Cancelled, match="the launch was cancelled; nothing was launched"):
        sender.launch(looked_at(sender, made), call_off)
    sender.close()
    assert list(dict.fromkeys(one.doing for one in heard)) == ["its code is sent", "its checkpoint is sent"]
    wait_until(lambda: not [*far.runs.glob("*"), *far.runs.glob(".held-*")], what="nothing of it there")
    heard.clear()
    line = connect(f"local:{far.state}", HostsSettings(), ("transfer",), environ=os.environ)
    with Sender("gpu1", Offering(near), Place(line), ()) as again:
        (run,) = again.launch(looked_at(again, made), heard.append)["runs"]
    assert (ended(far, run).path / "brought" / "weights.pt").read_bytes() == weights.read_bytes()
    sent = [one for one in heard if one.doing == "its checkpoint is sent"]
    assert (sent[0].total_bytes, sent[-1].done_bytes) == (LARGE_BYTES, LARGE_BYTES)
    assert (heard[-1].doing, heard[-1].can_cancel) == ("it is launched", False)


def test_what_has_arrived_whole_goes_when_the_launch_is_called_off(tmp_path: Path, far: Home, sender: Sender) -> None:
    """By whoever sends it, when the last byte has arrived there; and where its answer is still on its way."""
    made, _ = large(tmp_path)
    found, ask = looked_at(sender, made), sender._target.ask

    def asked(what: str, *rest: Any, **more: Any) -> dict[str, Any]:
        told = ask(what, *rest, **more)
        if what == "hold":
            assert [*far.runs.glob(".held-*/weights.pt")]
            sender.cancel()
        return told

    sender._target.ask = asked  # type: ignore[method-assign]
    with pytest.raises(Cancelled):
        sender.launch(found)
    wait_until(lambda: not [*far.runs.glob("*"), *far.runs.glob(".held-*")], what="nothing of it there")


@pytest.mark.usefixtures("told_at_once")
def test_a_checkpoint_that_is_brought_here_tells_how_far_it_is_and_can_be_called_off(
    tmp_path: Path, near: Home
) -> None:
    made, weights = large(tmp_path)
    files, packed = checkpoint_files(weights), io.BytesIO()
    pack(files, [one.digest for one, _ in files], packed)
    answers: dict[str, dict[str, Any]] = {
        "branch": {"launches": list(launches_of([made]))},
        "offer": {"root": "", "code": None, "staying": [], "checkpoint": {"files": [list(one) for one, _ in files]}},
        "offered": {},
    }

    class Far:
        host = "gpu1"

        def cancel_by(self, require_wanted: Callable[[], None]) -> None:
            pass

        def ask(self, what: str, fields: Any, receive: Any = None) -> dict[str, Any]:
            if receive is not None:
                receive(io.BytesIO(packed.getvalue()))
            return answers[what]

    heard, wish = list[Progress](), Wish(CALLED_OFF)

    def call_off(now: Progress) -> None:
        if now.done_bytes:
            wish.take_back()

    with pytest.raises(Cancelled, match="nothing was launched"):
        fetched(Far(), {}, near, call_off, wish)  # type: ignore[arg-type]
    assert not [*near.runs.glob(".held-*")]
    left = fetched(Far(), {}, near, heard.append, Wish())  # type: ignore[arg-type]
    assert (left.host, Path(left.checkpoint).read_bytes()) == ("gpu1", weights.read_bytes())
    assert {(one.doing, one.total_bytes) for one in heard} == {("the checkpoint is brought here", LARGE_BYTES)}
    assert heard[-1].done_bytes == LARGE_BYTES


@pytest.mark.parametrize("path", [None, Path("/p/toy.toml")])
def test_a_command_that_was_edited_is_the_one_that_starts_there(tmp_path: Path, path: Path | None) -> None:
    text = 'command = ["python3", "train.py"]\n[args]\nlr = 0.1\n[slurm]\npartition = "gpu"\n'
    made = LaunchChoice(parse_profile(text, path=path, default_cwd=tmp_path)).with_command(
        ["python3", "b.py", "--n", "2"]
    )
    there = relocated(choice_message(made), tmp_path, Places([(str(tmp_path), "/there")]))
    again = relocated(choice_message(there), tmp_path, Places([]))  # and on from there
    for one in (there, again):
        assert one.profile.command == ("{python}", "b.py", "--n", "2")
        assert (one.profile.args, one.profile.jobs) == (made.profile.args, made.profile.jobs)


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("/home/me/data", "/data"),
        ("/home/me/data/x.bin", "/data/x.bin"),
        ("--a=/home/me/data/x,/home/me/code/y", "--a=/data/x,/c/y"),
        ("/home/me/database", "/home/me/database"),
        ("/mnt/home/me/data", "/mnt/home/me/data"),
        ("/home/me/data/deep/x", "/deep/x"),
        ("words", "words"),
    ],
)
def test_paths_are_told_where_they_lie_there(text: str, there: str) -> None:
    places = Places([("/home/me/data", "/data"), ("/home/me/data/deep", "/deep/"), ("/home/me/code/", "/c")])
    assert places.moved(text) == there
