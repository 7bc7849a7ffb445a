"""What Tab offers, asked of the candidates and of real shells."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from mpstui.cli.completion import FILES, candidates, known_hosts
from mpstui.cli.main import commands
from mpstui.cli.session import Session
from mpstui.core.model.home import Home
from mpstui.core.runs.queueing import set_slots
from tests.cli.programs import ok
from tests.core.runs.build import RunBuilder, make_home
from tests.terminal import Terminal

START = {
    "bash": ("--norc", "--noprofile", "-i"),
    "zsh": ("-f", "-i"),
    "fish": ("--no-config", "-i"),
}
LOAD = {
    "bash": 'eval "$(mpstui completion bash)"',
    "zsh": 'autoload -U compinit; compinit -u -D; eval "$(mpstui completion zsh)"',
    "fish": "mpstui completion fish | source",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = make_home(tmp_path)
    monkeypatch.setenv("MPSTUI_HOME", str(made.state))
    return made


def offered(line: str) -> list[str]:
    """What can stand at the end of ``mpstui LINE``."""
    return [word for word, _ in candidates(line.split(" "))]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("la", ["launch"]),
        ("--the", ["--theme"]),
        ("--theme l", ["light"]),
        ("launch quickst", ["quickstart"]),
        ("launch --dev", ["--device"]),
        ("launch quickstart --device c", ["cuda", "cpu"]),
        ("launch --device=c", ["--device=cuda", "--device=cpu"]),
        ("launch --device = c", ["cuda", "cpu"]),
        ("launch --set lr=1 quickst", ["quickstart"]),
        ("launch quickstart quickst", []),
        ("launch --recipe ", ["safe", "classic", "fast"]),
        ("queue p", ["pause"]),
        ("queue slots g a", ["auto"]),
        ("queue move r ", ["up", "down", "first", "last"]),
        ("profiles check ", [FILES]),
        ("restart r --from b", ["best", FILES]),
        ("bench --profiles quickstart quickst", ["quickstart"]),
        ("run --device cpu -- ", [FILES]),
        ("run -- --de", [FILES]),
        ("parse ", [FILES]),
        ("alerts ", ["test"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("no-such-command ", []),
    ],
)
def test_words_that_can_follow(home: Home, line: str, words: list[str]) -> None:
    assert offered(line) == words


def test_machines_are_offered_by_their_names(home: Home, tmp_path: Path) -> None:
    home.settings.write_text('[hosts]\nshow = ["mac"]\n[hosts.gpu1]\n')
    assert {"mac", "gpu1"} <= set(offered("ps --host ")) & set(offered("--host "))
    assert "launch" in offered("--host gpu1 l")
    config = tmp_path / "config"
    config.write_text("Host *\n  User me\nHost box *.lan !x\nHostName y\nhost=other\n")
    assert known_hosts(Session(), config) == ["mac", "gpu1", "box"]


def test_every_command_is_offered_with_its_line_of_help(home: Home) -> None:
    assert dict(candidates([""])) == {name: command.help for name, command in commands().items()}


def test_runs_and_groups_of_this_home_are_offered(home: Home) -> None:
    run = RunBuilder(home, "transformer").run.run
    set_slots(home, "night", 2)
    for line in ("", "show ", "logs -f ", "remove other ", "launch --after ", "diagnose ", "queue move ", "--run "):
        assert {run, "transformer"} <= set(offered(line)), line
    assert offered("stop tra") == ["transformer"]
    for line in ("queue ", "queue pause "):
        assert "night" in offered(line), line


@pytest.mark.parametrize("shell", START)
def test_a_shell_completes_a_command_and_a_run(home: Home, tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    run = RunBuilder(home, "transformer").run.run
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "mpstui"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m mpstui "$@"\n')
    command.chmod(0o755)
    env = {"PATH": f"{command.parent}:{os.environ['PATH']}", "PS1": "$ ", "HOME": str(tmp_path), "PYTHONSAFEPATH": ""}
    with Terminal([program, *START[shell]], env=env) as terminal:
        terminal.press(f"{LOAD[shell]}; echo rea''dy\r")
        terminal.wait_text("ready")
        terminal.press("mpstui sho\t")
        terminal.wait_text("mpstui show")
        terminal.press(f"{run[:8]}\t")
        shown = terminal.wait_text(f"show {run}")
    assert shown.count(run) == 1, "the name was completed in its place, once"


def test_the_scripts_are_printed() -> None:
    assert "complete -F" in ok("completion", "bash")
