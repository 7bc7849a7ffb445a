"""Every command of docs/scripts.md is run as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from tests.cli.programs import mpstui
from tests.contract.test_house_rules import ROOT
from tests.core.runs.build import NOW, RunBuilder
from tests.core.sharing.build import resumed_run

LINES = [
    line
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/scripts.md").read_text(), re.DOTALL)
    for line in block.splitlines()
    if line and not line.startswith("#")
]


def in_shell(line: str, folder: Path) -> tuple[str, str]:
    """What a line prints. What stands before its first pipe is called in this process, but for what ends by that."""
    command, pipe, rest = line.partition(" | ")
    words, given = [*shlex.split(command.partition(" && ")[0])], None
    if "--watch" not in words and "&&" not in line:
        done = mpstui(*words[1:], cwd=folder)
        assert not done.stderr, line
        line, given = rest if pipe else "cat", done.stdout
    shell = subprocess.run(["bash", "-c", line], cwd=folder, input=given, capture_output=True, text=True, timeout=60)
    return shell.stdout, shell.stderr


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_every_line_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(state=tmp_path / "home", config=tmp_path / "home")
    resumed_run(home, name="first")
    RunBuilder(home, "second", NOW + 1).status("ended").launch().output("no such file\n").exit(code=1)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpstui").write_text(f'#!/bin/sh\nexec {sys.executable} -m mpstui "$@"\n')
    (tmp_path / "bin" / "mpstui").chmod(0o755)
    monkeypatch.setenv("MPSTUI_HOME", str(home.state))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    said = {line: in_shell(line, tmp_path) for line in LINES}
    wrong = {line: errors for line, (_, errors) in said.items() if errors}
    assert not wrong
    assert said["mpstui wait first second --json | jq -r 'select(.state != \"finished\") | .name'"][0] == "second\n"
    assert [line for line, (out, _) in said.items() if not out] == [line for line in LINES if "checkpoint" in line]
    rows = said[next(line for line in LINES if "@csv" in line)][0].splitlines()
    assert [[float(cell) for cell in row.split(",")] for row in rows[:2]] == [[1, 1], [2, 0.5]]
