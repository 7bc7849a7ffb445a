"""From the card of a failure to the line of code, in an editor that has the terminal meanwhile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from mpstui.ui.screens.editing import editor_command

from ..core.runs.build import RunBuilder
from ..terminal import Terminal
from ..waiting import wait_until

EDITOR = """
import pathlib, sys
print("an editor shows", sys.argv[1], pathlib.Path(sys.argv[2]).name, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, ["vi", "+3", "/a b.py"]),
        ({"EDITOR": "nano -l"}, ["nano", "-l", "+3", "/a b.py"]),
        ({"EDITOR": "nano", "VISUAL": "/opt/code --wait"}, ["/opt/code", "--wait", "--goto", "/a b.py:3"]),
        ({"EDITOR": "hx"}, ["hx", "/a b.py:3"]),
    ],
)
def test_each_editor_is_told_the_line_in_its_own_way(environ: dict[str, str], words: list[str]) -> None:
    assert editor_command(environ, Path("/a b.py"), 3) == words


def test_the_line_of_code_opens_and_the_screen_comes_back_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, editor = tmp_path / "train.py", tmp_path / "editor.py"
    code.write_text("import torch\nload()\n")
    editor.write_text(EDITOR)
    home = Home(tmp_path / "home", tmp_path / "home")
    home.runs.mkdir(parents=True)
    crashed = RunBuilder(home, "crashed", 1_800_000_000.0).status("ended").launch().exit(code=1)
    crashed.output(f'Traceback (most recent call last):\n  File "{code}", line 2, in <module>\nKeyError: 3\n')
    monkeypatch.setenv("MPSTUI_HOME", str(home.state))
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    monkeypatch.delenv("VISUAL", raising=False)
    with Terminal([sys.executable, "-m", "mpstui", crashed.run.run], columns=100, rows=30) as terminal:
        terminal.wait_text("^e code there")
        terminal.press("\x05")
        terminal.wait_text("an editor shows +2 train.py")
        terminal.press("\r")

        def back() -> bool:
            terminal.pump()
            return "^e code there" in terminal.text and "an editor shows" not in terminal.text

        wait_until(back, what="the screen to stand where the editor stood")
