"""Every command of docs/scripts.md is run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from tests.contract.test_house_rules import ROOT
from tests.core.runs.build import NOW, RunBuilder
from tests.core.sharing.build import resumed_run

LINES = [
    line
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/scripts.md").read_text(), re.DOTALL)
    for line in block.splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_every_line_runs(tmp_path: Path) -> None:
    home = Home(state=tmp_path / "home", config=tmp_path / "home")
    resumed_run(home, name="first")
    RunBuilder(home, "second", NOW + 1).status("ended").launch().output("no such file\n").exit(code=1)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpstui").write_text(f'#!/bin/sh\nexec {sys.executable} -m mpstui "$@"\n')
    (tmp_path / "bin" / "mpstui").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    environ = {"MPSTUI_HOME": str(home.state), "PATH": path, "PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen(
            ["bash", "-c", line], cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for line in LINES
    ]
    said = dict(zip(LINES, (one.communicate(timeout=60) for one in started), strict=True))
    wrong = {line: errors for line, (_, errors) in said.items() if errors}
    assert not wrong
    assert said["mpstui wait first second --json | jq -r 'select(.state != \"finished\") | .name'"][0] == "second\n"
    assert [line for line, (out, _) in said.items() if not out] == [line for line in LINES if "checkpoint" in line]
    assert said[next(line for line in LINES if "@csv" in line)][0].splitlines()[:2] == ["1,1", "2,0.5"]
