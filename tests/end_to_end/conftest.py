"""A home, the real command line and a promise to leave nothing running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli.programs import told
from tests.ending import end_runs
from tests.waiting import wait_until
from tests.warm import CAN_FORK, warm

ROOT = Path(__file__).resolve().parents[2]
STANDIN = ROOT / "tests" / "standin"
LOOK_SECONDS = 0.25
"""Between two looks at a run, which cost more than most waits: reading all of it takes some hundredths."""


@dataclass
class CommandLine:
    """The real `mpstui`, in a home of the test's own."""

    home: Path
    cwd: Path
    env: dict[str, str] = field(default_factory=dict)
    began: bool = False
    """A command was called."""

    def environment(self, **more: str) -> dict[str, str]:
        """What the programs of this test see."""
        return {**os.environ, "MPSTUI_HOME": str(self.home), **self.env, **more}

    def call(
        self, *arguments: str, timeout: float = 300, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end: the first one in a Python of its own, those after it as forks of one."""
        began, self.began = self.began, True
        more = {**self.env, **(env or {})}
        if began and CAN_FORK and "PYTHONPATH" not in more:
            return warm("mpstui").run(*arguments, env=self.environment(**more), cwd=self.cwd, timeout=timeout)
        return subprocess.run(
            [sys.executable, "-m", "mpstui", *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self.environment(**more),
            cwd=self.cwd,
            check=False,
        )

    def json(self, *arguments: str, timeout: float = 300) -> Any:
        """Run a command that must succeed and read its JSON."""
        done = self.call(*arguments, "--json", timeout=timeout)
        assert done.returncode == 0, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def launch(self, *arguments: str) -> str:
        """Launch and return the run id."""
        return str(self.json("launch", *arguments)["run"])

    def show(self, run: str) -> dict[str, Any]:
        """`mpstui show RUN --json`, inside this process: it is asked again and again."""
        return dict(told("show", run))

    def wait_state(self, run: str, *states: str, timeout: float = 300) -> dict[str, Any]:
        """Poll until the run is in one of the states."""
        seen: list[str] = []

        def reached() -> dict[str, Any] | None:
            shown = self.show(run)
            seen.append(shown["state"])
            return shown if shown["state"] in states else None

        try:
            found = wait_until(reached, timeout=timeout, what=f"{run} in {states}", every=LOOK_SECONDS)
        except AssertionError as error:
            output = self.call("logs", run).stdout[-2000:]
            raise AssertionError(f"{error}; states seen: {sorted(set(seen))}; output:\n{output}") from None
        assert found is not None
        return found

    def wait_step(self, run: str, step: int, timeout: float = 300) -> dict[str, Any]:
        """Poll until the run has passed a step."""

        def passed() -> dict[str, Any] | None:
            shown = self.show(run)
            assert shown["state"] in {"starting", "running"}, (shown["state"], self.call("logs", run).stdout[-3000:])
            return shown if (shown["step"] or 0) >= step else None

        found = wait_until(passed, timeout=timeout, what=f"{run} at step {step}", every=LOOK_SECONDS)
        assert found is not None
        return found


@pytest.fixture
def mpstui(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line; every run it started is ended when the test is over."""
    cwd = tmp_path / "work"
    cwd.mkdir()
    command_line = CommandLine(tmp_path / "home", cwd)
    monkeypatch.setenv("MPSTUI_HOME", str(command_line.home))
    yield command_line
    end_runs(command_line.home)
