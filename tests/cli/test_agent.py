"""The agent is in every Python that a run starts, however it is started; `show` says so, or why not."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from mpstui.cli.main import main
from tests.agent.test_old_pythons import FAKE_TORCH, OPTIMIZER
from tests.cli.programs import as_json, mpstui, ok, told

TRAIN = """
import sys, torch, torch.optim.optimizer
optimizer = torch.optim.optimizer.Optimizer()
for _ in range(5): optimizer.step()
print("arguments", sys.argv[1:])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "torch" / "optim").mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    (tmp_path / "torch" / "optim" / "__init__.py").touch()
    (tmp_path / "torch" / "optim" / "optimizer.py").write_text(OPTIMIZER)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "idle.py").write_text("print('no torch here')")
    (tmp_path / "run.sh").write_text(f"export PYTHONPATH=$PYTHONPATH:.\n{sys.executable} train.py --lr 1\n")
    (tmp_path / "lost.sh").write_text(f"PYTHONPATH=. {sys.executable} train.py\n")
    console = tmp_path / "trainit"  # as pip writes them: /bin/sh where the path of the interpreter is long
    console.write_text(f"#!/bin/sh\n'''exec' {sys.executable} \"$0\" \"$@\"\n' '''\n{TRAIN}")
    console.chmod(0o755)
    return tmp_path


PY = sys.executable
STARTED = [
    [PY, "train.py"],
    ["env", "X=1", PY, "-u", "train.py"],
    ["bash", "run.sh"],
    ["./trainit", "--epochs", "3"],
    pytest.param(
        ["script", "-qfec", f"{PY} train.py", "/dev/null"],
        marks=pytest.mark.skipif(not shutil.which("script") or sys.platform == "darwin", reason="no util-linux script"),
    ),
]


@pytest.mark.parametrize("command", STARTED, ids=lambda command: Path(command[0]).name)
def test_the_agent_is_in_however_it_is_started(folder: Path, command: list[str]) -> None:
    run = ok("run", "--", *command, cwd=folder).strip()
    ok("wait", run, "--timeout", "90")
    shown = told("show", run)
    assert (shown["state"], shown["agent"], shown["heartbeat"]["step"]) == (
        "finished",
        {"state": "on", "text": "on"},
        5,
    )
    assert "\nagent     on\n" in ok("show", run)


@pytest.mark.parametrize(
    ("command", "state", "part"),
    [
        (["--no-agent", "--", PY, "train.py"], "off", "--agent` turns it on"),
        (["--", PY, "-I", "-u", "idle.py"], "off", "python -I keeps it out"),
        (["--", PY, "idle.py"], "off", "no Python program of this attempt imported torch"),
        (["--", "bash", "lost.sh"], "off", "one that sets PYTHONPATH anew"),
        (["--", "true"], "off", "true is no Python program"),
    ],
    ids=["no-agent", "isolated", "no torch", "lost", "not python"],
)
def test_where_it_is_not_in_show_says_why(folder: Path, command: list[str], state: str, part: str) -> None:
    run = ok("run", *command, cwd=folder).strip()
    ok("wait", run, "--timeout", "90")
    agent = told("show", run)["agent"]
    assert agent["state"] == state
    assert part in agent["text"]


def test_of_a_program_that_failed_before_torch_nothing_is_said_of_its_environment(folder: Path) -> None:
    run = ok("run", "--", PY, "-c", "import gone", cwd=folder).strip()
    assert mpstui("wait", run, "--timeout", "90").returncode == 1
    assert told("show", run)["agent"]["text"].endswith("imported torch with it, it ended before that")


def test_a_profile_has_it_too_and_a_restart_can_turn_it_off_and_on(folder: Path) -> None:
    (folder / "p.toml").write_text('command = ["{python}", "train.py"]\n')
    run = as_json("launch", "./p.toml", cwd=folder)["run"]
    ok("wait", run, "--timeout", "90")
    for option, state in (("", "on"), ("--no-agent", "off"), ("--agent", "on")):
        if option:
            ok("restart", run, option)
            ok("wait", run, "--timeout", "90")
        assert told("show", run)["agent"]["state"] == state


def test_what_is_no_python_program_cannot_be_put_on_the_cpu(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--device", "cpu", "--", shutil.which("true") or "true"]) == 2
    assert "this command cannot be told to use cpu" in capsys.readouterr().err
