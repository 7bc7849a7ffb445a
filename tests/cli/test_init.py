"""`mpstui init` writes a profile that launches, stops and goes on, without asking anything."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.programs import mpstui, ok, run_folder, told

TRAIN = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3, help="how many")
parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
parser.add_argument("--resume", default="")
args = parser.parse_args()
os.makedirs("out", exist_ok=True)
print(args.resume, args.epochs, args.device)
for epoch in range(args.epochs):
    open(f"out/net_{epoch}.pt", "w").write("x" * 64)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(TRAIN)
    return tmp_path


def test_a_run_becomes_a_profile_that_resumes(folder: Path) -> None:
    command = ["--", sys.executable, "net.py", "--epochs", "2"]
    first = ok("run", *command, cwd=folder).strip()
    ok("wait", first, "--timeout", "90")
    made = json.loads(ok("init", "--json", *command, cwd=folder))
    assert (made["path"], made["run"]) == (str(folder / "profiles" / "net.toml"), first)
    assert "nothing is wrong with it" in ok("profiles", "check", "net", cwd=folder)
    run = ok("launch", "net", cwd=folder).strip()
    ok("wait", run, "--timeout", "90")
    ok("restart", run, "--set", "epochs=1")
    ok("wait", run, "--timeout", "90")
    assert ok("logs", run) == f"{folder}/out/net_1.pt 1 cpu\n"
    launch = json.loads((run_folder(run) / "attempts" / "2" / "launch.json").read_text())
    assert launch["totals"] == {"epochs": 1, "steps": None}
    assert told("show", run)["profile"] == "net"


@pytest.mark.parametrize("name", ["train", "main"])
def test_a_profile_is_called_as_its_script_and_shown_with_its_folder(folder: Path, name: str) -> None:
    (folder / f"{name}.py").write_text(TRAIN)
    said = ok("init", "--", sys.executable, f"{name}.py", cwd=folder)
    assert f"start it with `mpstui launch {name}`" in said
    assert f'name = "{folder.name} {name}"\n' in (folder / "profiles" / f"{name}.toml").read_text()


def test_what_a_launch_of_the_profile_saved_is_added_to_it(folder: Path) -> None:
    command = ["--", sys.executable, "net.py", "--epochs", "2"]
    assert "with --replace adds what it saves" in ok("init", *command, cwd=folder)
    assert "# checkpoints" in (folder / "profiles" / "net.toml").read_text()
    run = ok("launch", "net", cwd=folder).strip()
    ok("wait", run, "--timeout", "90")
    assert json.loads(ok("init", "--replace", "--json", *command, cwd=folder))["run"] == run
    assert '\ncheckpoints = "out/net_*.pt"\n' in (folder / "profiles" / "net.toml").read_text()


def test_a_file_that_is_there_is_kept_and_options_may_follow_the_run(folder: Path) -> None:
    env = ["--env", "DATA=here", "--env", "HF_TOKEN=hf_secret"]
    run = ok("run", "--name", "mine", *env, "--", sys.executable, "net.py", cwd=folder).strip()
    ok("wait", run, "--timeout", "90")
    ok("init", "mine", "--to", "p.toml", "--name", "other", cwd=folder)
    text = (folder / "p.toml").read_text()
    assert ('name = "other"\n' in text, '[env]\nDATA = "here"\n' in text, "hf_secret" in text) == (True, True, False)
    done = mpstui("init", "mine", "--to", "p.toml", cwd=folder)
    assert (done.returncode, "there is a file" in done.stderr, "--replace" in done.stderr) == (2, True, True)
    ok("init", "mine", "--to", "p.toml", "--replace", cwd=folder)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "needs a command or a run"),
        (["nobody"], "there is no run 'nobody'"),
        (["python", "x.py", "--lr", "1"], " -- "),
    ],
)
def test_wrong_use(folder: Path, words: list[str], part: str) -> None:
    done = mpstui("init", *words, cwd=folder)
    assert (done.returncode, part in done.stderr, (folder / "profiles").exists()) == (2, True, False)


def test_a_program_that_fails_when_it_is_asked_is_told(folder: Path) -> None:
    (folder / "net.py").write_text(f"import no_such_module\n{TRAIN}")
    told = ok("init", "--", sys.executable, "net.py", cwd=folder)
    assert "made from the program's 3 arguments (its --help ended with exit code 1: " in told
    assert "No module named 'no_such_module', so they were read in its source)" in told
