"""`mpstui init`: what it finds out of a command is a profile that works, and that a person likes to read."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.launching.launch import spec_json
from mpstui.core.launching.planning import plan
from mpstui.core.launching.proposal import propose
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Checkpoint, Numbers, RunSnapshot, State
from mpstui.core.profiles.model import Profile, profile_of_command
from mpstui.core.profiles.parse import parse_profile
from mpstui.wire import storage
from mpstui.wire.heartbeat import CheckpointNote
from mpstui.wire.records import ExitRecord, LaunchRecord
from mpstui.wire.rundir import create_run_dir

from .conftest import linux

ARGPARSE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=14, help="number of epochs to train")
parser.add_argument("-b", "--batch-size", type=int, default=64)
parser.add_argument("--num-workers", "-n", type=int, default=4)
parser.add_argument("--arch", choices=["a", "b"], default="a")
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--amp", action="store_true")
DEVICE
parser.add_argument("--resume", metavar="PATH", help="latest checkpoint")
parser.parse_args()
"""


class Place:
    """A folder with a program, and what `init` makes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text = ""

    def made(self, text: str, *words: str, snapshot: RunSnapshot | None = None) -> Profile:
        (self.folder / "net.py").write_text(text)
        home = Home(self.folder / "home", self.folder / "home")
        file = self.folder / "profiles" / "net.toml"
        command = (sys.executable, "net.py", *words)
        found = propose(
            command, file.parent, cwd=self.folder, name=None, home=home, environ=os.environ, snapshot=snapshot
        )
        self.text = found.text
        return parse_profile(found.text, path=file, default_cwd=self.folder)

    def left(self, *names: str) -> RunSnapshot:
        """A run that has just ended and left these files, an older one among them."""
        for age, name in enumerate(("data/old_model.pt", *reversed(names))):
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text('{"step": 3, "loss": 0.5, "time": 1}' if name.endswith(".json") else "x")
            moment = 500 if age == 0 else 1100 - age
            os.utime(file, (moment, moment))
        return RunSnapshot(
            run="r", name="net", dir=self.folder, state=State.FINISHED, seen=1100.0, started=1000.0, ended=1100.0
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_arguments_roles_and_devices_come_from_the_parser(place: Place) -> None:
    text = ARGPARSE.replace("DEVICE", "parser.add_argument('--device', default='cpu', help='cpu|cuda')")
    profile = place.made(text, "--epochs", "3", "-b", "8", "--amp", "-n", "0", "--device", "cpu")
    assert profile.args == {"epochs": 3, "batch-size": 8, "amp": True, "num-workers": 0}
    assert profile.roles == {"batch_size": "batch-size", "workers": "num-workers", "epochs": "epochs"}
    assert profile.device_args["mps"] == ("--device", "mps")
    assert (profile.command, profile.python, profile.device) == (("{python}", "net.py"), sys.executable, "cpu")
    assert profile.cwd == place.folder
    lines = [" ".join(line.split()) for line in place.text.splitlines()]
    assert {"epochs = 3 # number of epochs to train", '# arch = "a" # one of a, b', "# lr = 0.1"} < {*lines}
    assert profile.resume_args is None
    assert '\n# args = ["--resume", "{checkpoint}"]\n' in place.text


@pytest.mark.parametrize(
    ("flag", "args"),
    [
        ("--no-accel", {"cpu": ("--no-accel",)}),
        ("--cuda", {"cuda": ("--cuda",)}),
        ("--use-gpu", {"mps": ("--use-gpu",), "cuda": ("--use-gpu",)}),
        ("--verbose", {}),
    ],
)
def test_a_switch_can_be_the_device(place: Place, flag: str, args: dict[str, tuple[str, ...]]) -> None:
    profile = place.made(ARGPARSE.replace("DEVICE", f"parser.add_argument('{flag}', action='store_true')"))
    assert profile.device_args == args


@pytest.mark.parametrize(
    ("action", "words", "args", "device"),
    [
        ("'store_false'", (), {"cpu": ("--cuda",)}, "auto"),
        ("'store_false'", ("--cuda",), {"cpu": ("--cuda",)}, "cpu"),
        ("argparse.BooleanOptionalAction, default=True", (), {"cuda": ("--cuda",), "cpu": ("--no-cuda",)}, "auto"),
        (
            "argparse.BooleanOptionalAction, default=True",
            ("--no-cuda",),
            {"cuda": ("--cuda",), "cpu": ("--no-cuda",)},
            "cpu",
        ),
    ],
)
def test_a_switch_that_turns_the_device_off_is_not_taken_for_one_that_turns_it_on(
    place: Place, action: str, words: tuple[str, ...], args: dict[str, tuple[str, ...]], device: str
) -> None:
    text = ARGPARSE.replace("DEVICE", f"parser.add_argument('--cuda', help='use CUDA', action={action})")
    profile = place.made(text, *words, "--lr", "1")
    assert (profile.device_args, profile.device, profile.args) == (args, device, {"lr": 1})


def test_an_argument_that_takes_the_number_of_a_gpu_is_told_no_device(place: Place) -> None:
    text = ARGPARSE.replace("DEVICE", "parser.add_argument('--device', type=int, default=0, help='which gpu to use')")
    assert place.made(text, "--lr", "1").device_args == {}


@pytest.mark.parametrize(
    ("words", "told"), [(("device=cpu",), ("device=mps",)), (("--device", "cpu"), ("--device", "mps"))]
)
def test_a_device_that_was_written_is_told_the_same_way_where_no_argument_is_known(
    place: Place, words: tuple[str, ...], told: tuple[str, ...]
) -> None:
    profile = place.made("print('no help')\n", *words)
    assert (profile.device, profile.device_args["mps"], profile.command) == ("cpu", told, ("{python}", "net.py"))


def test_checkpoints_that_a_run_told_of_are_known_wherever_they_lie(place: Place, tmp_path: Path) -> None:
    ran, there = place.left("net.log"), tmp_path.parent / "elsewhere" / "epoch_7.pt"
    ran = replace(ran, checkpoints=(Checkpoint(there, 4, 1050.0, complete=True),))
    assert place.made(ARGPARSE.replace("DEVICE", ""), snapshot=ran).checkpoints == str(there.with_name("epoch_*.pt"))


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (("out/ckpt_100.pt", "out/ckpt_200.pt"), "out/ckpt_*.pt"),
        (("last.pth.tar", "best.pth.tar"), "*.pth.tar"),
        (("run/checkpoint-5/model.safetensors", "run/checkpoint-10/optimizer.pt"), "run/checkpoint-*"),
        (("out/model.pt",), "out/model.pt"),
        (("logs/epoch=3-step=40.ckpt",), "logs/epoch=*-step=*.ckpt"),
        (("out/model000020.pt", "out/ema_0.999_000020.pt", "out/opt000020.pt"), "out/model*.pt"),
        (("opt-125m.pt",), "opt-*m.pt"),
    ],
)
def test_a_run_shows_where_the_checkpoints_are(place: Place, names: tuple[str, ...], pattern: str) -> None:
    profile = place.made(ARGPARSE.replace("DEVICE", ""), snapshot=place.left(*names))
    assert (profile.resume_args, profile.checkpoints) == (("--resume", "{checkpoint}"), pattern)


def test_a_program_that_cannot_resume_is_not_given_words_for_it(place: Place) -> None:
    text = ARGPARSE.replace("DEVICE", "").replace('"--resume"', '"--log-file"')
    profile = place.made(text, snapshot=place.left("net.pt"))
    assert (profile.resume_args, profile.checkpoints) == (None, "net.pt")
    assert "a restart begins from scratch" in place.text


@pytest.mark.parametrize("flag", ["--state_dict_path", "--pretrained_weights", "--load-model"])
def test_an_argument_that_loads_a_saved_model_continues_where_none_resumes(place: Place, flag: str) -> None:
    profile = place.made(ARGPARSE.replace("DEVICE", "").replace("--resume", flag), snapshot=place.left("net.pt"))
    assert (profile.resume_args, profile.checkpoints) == ((flag, "{checkpoint}"), "net.pt")
    assert "if loading a saved model is enough for that" in place.text


@pytest.mark.parametrize(
    "written", ['"--pretrained_weights", choices=["a", "b"]', '"--load-model", action="store_true"', '"--loss-weights"']
)
def test_an_argument_that_takes_no_saved_model_does_not_continue(place: Place, written: str) -> None:
    text = ARGPARSE.replace("DEVICE", "").replace('"--resume", metavar="PATH", help="latest checkpoint"', written)
    assert place.made(text, snapshot=place.left("net.pt")).resume_args is None


def test_a_run_shows_its_heartbeat_and_metrics(place: Place) -> None:
    snapshot = place.left("artifacts/beat.json", "artifacts/metrics.jsonl")
    profile = place.made("print('hello')", snapshot=snapshot)
    assert profile.watch == {"heartbeat": "artifacts/beat.json", "metrics": "artifacts/metrics.jsonl"}
    assert profile.checkpoints is None


def test_files_that_another_run_may_have_written_are_not_taken_for_its_own(place: Place) -> None:
    home = Home(place.folder / "home", place.folder / "home")
    mine = place.left("out/early.pt", "out/late.pt")  # at 1098 and 1099
    other = create_run_dir(home.runs, "other", 1090.0)
    choice = LaunchChoice(profile_of_command((sys.executable, "net.py"), cwd=place.folder))
    made = plan(choice, environ=os.environ, machine=linux(), check=False)
    storage.write_json(other.spec, spec_json(made, other, 1.0))
    folder = other.attempt(1)
    folder.path.mkdir(parents=True)
    storage.write_json(folder.launch, LaunchRecord(1, 1090.0, ["python"], str(place.folder), "cpu"))
    storage.write_json(folder.exit, ExitRecord(1, 1098.5, code=0))
    assert place.made(ARGPARSE.replace("DEVICE", ""), snapshot=mine).checkpoints == "out/late.pt"
    storage.write_json(folder.exit, ExitRecord(1, 1200.0, code=0))
    assert place.made(ARGPARSE.replace("DEVICE", ""), snapshot=mine).checkpoints is None
    told = replace(mine, numbers=Numbers(checkpoint=CheckpointNote(path="out/late.pt", step=1, time=1100.0)))
    assert place.made(ARGPARSE.replace("DEVICE", ""), snapshot=told).checkpoints == "out/late.pt"


def test_the_records_of_runs_are_not_taken_for_the_program_s_files(place: Place) -> None:
    """A home may lie in the folder of the program, with other runs that are alive."""
    home = Home(place.folder / "home", place.folder / "home")
    other = create_run_dir(home.runs, "other", 1000.0)
    other.spec.write_text("{}")
    other.attempt(1).path.mkdir(parents=True)
    inside = other.path.relative_to(place.folder)
    snapshot = place.left("net.pt", *(f"{inside}/{name}" for name in ("metrics.jsonl", "attempts/1/heartbeat.json")))
    profile = place.made(ARGPARSE.replace("DEVICE", ""), snapshot=snapshot)
    assert not profile.watch
    assert profile.checkpoints == "net.pt"


def test_settings_at_the_top_are_written_with_equals_signs(place: Place) -> None:
    text = (
        "init_from = 'scratch'  # 'scratch' or 'resume'\nmax_iters = 600\ndevice = 'cuda'\ncompile = True\n"
        "config_keys = list(globals())\nexec(open('configurator.py').read())\n"
    )
    profile = place.made(text, "config/small.py", "--max_iters=40", "--device=cpu", snapshot=place.left("out/ckpt.pt"))
    assert profile.command == ("{python}", "net.py", "config/small.py")
    assert (profile.arg_style, profile.args, profile.device) == ("equals", {"max_iters": 40}, "cpu")
    assert profile.device_args["cpu"] == ("--device=cpu",)
    assert (profile.resume_args, profile.checkpoints) == (("--init_from=resume",), "out/ckpt.pt")
    assert '\n# compile = "True"\n' in place.text
    assert profile.roles == {"steps": "max_iters"}


ONE_DASH = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-net", required=True)
parser.add_argument("-b", type=int, default=128, help="batch size")
parser.add_argument("-warm", type=int, default=1)
parser.add_argument("-gpu", action="store_true")
parser.add_argument("-resume", action="store_true")
parser.parse_args()
"""


def test_options_of_one_dash_are_written_with_one(place: Place) -> None:
    profile = place.made(ONE_DASH, "-net", "vgg", "-b", "32")
    assert profile.device_args == {"mps": ("-gpu",), "cuda": ("-gpu",)}
    assert 'args = ["-resume"]' in place.text
    choice = LaunchChoice(profile, sets={"warm": "2", "b": "16"}, device="cpu")
    planned = plan(choice, environ=os.environ, machine=linux(), check=False)
    assert planned.argv[1:] == ("net.py", "-net", "vgg", "-b", "16", "-warm", "2")


@pytest.mark.parametrize(
    ("others", "roles"),
    [
        ((), {"steps": "num_steps"}),
        (("total_timesteps",), {}),
        (("num_env_steps",), {}),
        (("epochs",), {"epochs": "epochs"}),
        (("max_iters",), {"steps": "max_iters"}),
    ],
    ids=lambda one: "-".join(one) if isinstance(one, tuple) else "",
)
def test_num_steps_is_the_plan_where_no_other_argument_says_how_long(
    place: Place, others: tuple[str, ...], roles: dict[str, str]
) -> None:
    """Beside steps of an environment they are those of a rollout, beside epochs often those of a sampler."""
    arguments = "".join(f'parser.add_argument("--{name}", type=int, default=9)\n' for name in ("num_steps", *others))
    profile = place.made(f"import argparse\nparser = argparse.ArgumentParser()\n{arguments}parser.parse_args()\n")
    assert profile.roles == roles


def test_a_program_that_tells_nothing_still_has_a_profile(place: Place) -> None:
    profile = place.made("print('hello')", "--epochs", "3")
    assert (profile.args, profile.roles) == ({"epochs": 3}, {"epochs": "epochs"})
