"""The Python that has the frameworks, and a training in it that is used as a person would."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import CommandLine
from tests.end_to_end.conftest import mpstui as mpstui  # a fixture of theirs
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
NAMED = os.environ.get("MPSTUI_INTEGRATIONS", "")
PYTHON = str(Path(NAMED).absolute()) if NAMED else ""

Shown = Mapping[str, Any]


@pytest.fixture
def example(request: pytest.FixtureRequest) -> Callable[[str, str], str]:
    """The example on the page of a framework and what it takes for given, as one program."""

    def program(heading: str, given: str) -> str:
        pages = {path.read_text().partition("\n")[0]: path for path in (ROOT / "docs" / "integrations").glob("*.md")}
        found = re.search(r"```python\n(.*?)```", pages[f"# {heading}"].read_text(), re.DOTALL)
        assert found is not None, heading
        return f"import sys, time\ncheckpoint = sys.argv[2] if len(sys.argv) > 2 else None\n{given}\n{found[1]}"

    return program


@functools.cache
def python_with(module: str) -> str:
    """The interpreter that can import a framework; without one the test is skipped."""
    if not PYTHON:
        pytest.skip("`make integrations` sets up an environment with the frameworks and runs this")
    command, environ = [PYTHON, "-c", f"import {module}"], {**os.environ, "KERAS_BACKEND": "torch"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        pytest.skip(f"{module} cannot be imported there: {done.stderr.strip().splitlines()[-1]}")
    return PYTHON


class Training:
    """One run of a program, from outside."""

    def __init__(self, mpstui: CommandLine, module: str, program: str) -> None:
        self.mpstui, python = mpstui, python_with(module)
        path = mpstui.cwd / "train.py"
        path.write_text(program)
        words = ("run", "--name", module, "--resume=--resume {checkpoint}", "--json", "--", python, str(path))
        mpstui.env["PYTHONPATH"] = str(ROOT)
        done = mpstui.call(*words)
        assert done.returncode == 0, done.stderr
        self.run = module

    def until(self, true: Callable[[Shown], Any], what: str) -> Shown:
        """Look until something is true of it; it must not end before."""

        def look() -> Shown | None:
            shown = self.mpstui.show(self.run)
            assert shown["state"] in ("starting", "running"), self.mpstui.call("logs", self.run).stdout[-3000:]
            return shown if true(shown) else None

        found = wait_until(look, timeout=180, what=what, every=0.3)
        assert found is not None
        return found

    def until_told(self, *names: str) -> Shown:
        """Look until the training itself tells these numbers: before its first values are read the agent does."""
        told = dict.fromkeys(names, "report")
        return self.until(lambda shown: {name: shown["told_by"].get(name) for name in names} == told, "its own numbers")

    def until_next_attempt(self) -> Shown:
        """Look until the second attempt has told a loss itself: before, what is known of the first one is shown."""

        def told(shown: Shown) -> bool:
            beat = shown["heartbeat"] or {}
            return beat.get("attempt") == 2 and beat.get("loss") is not None

        return self.until(told, "the next attempt")

    def ask(self, action: str, by: str = "trainer") -> Mapping[str, Any]:
        """Send a request; the answer, which must be yes."""
        answer: Mapping[str, Any] = self.mpstui.json(action, self.run)
        assert answer["ok"], answer
        assert answer["by"] == ("supervisor" if action == "stop" else by), answer
        return answer

    def stop_and_go_on(self, *, resumes: bool = True) -> tuple[Shown, Shown]:
        """Stop it: it saves and ends by itself; then go on. What was shown then, and of the continued training."""
        self.ask("stop")
        stopped = self.mpstui.wait_state(self.run, "stopped")
        assert (stopped["exit"]["code"], stopped["exit"]["signal"]) == (0, None), stopped["exit"]
        newest = stopped["heartbeat"]["checkpoint"]
        assert newest["path"] in [one["path"] for one in stopped["checkpoints"]]
        assert self.mpstui.call("restart", self.run).returncode == 0
        again = self.until_next_attempt()
        assert again["step"] >= newest["step"] if resumes else again["step"] < newest["step"]
        return stopped, again


@pytest.fixture
def train(mpstui: CommandLine) -> Callable[[str, str], Training]:
    """Start a program in the Python that has a module."""
    return lambda module, program: Training(mpstui, module, program)
