"""Small programs for the commands to start, and the commands as a person starts them: in a process of their own.

What only looks at runs or ends them is called inside the test's process. The others are forks of a Python that has
loaded them; Pythons are started for them by tests/end_to_end.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from mpstui.cli.main import main
from tests.waiting import wait_until
from tests.warm import CAN_FORK, warm

STEPS = """\
import sys, time
print("arguments:", sys.argv[1:], flush=True)
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 6000):
    print("epoch 1 step", step, "loss", 1 / (step + 1), flush=True)
    time.sleep(0.05)
"""


_INSIDE = {"wait", "show", "ps", "logs", "kill", "follow"}
_LOOKED_AT_BY_A_START = ("PYTHON", "LC_", "LANG")


def mpstui(*words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    if words[0] in _INSIDE and env is None:
        said = io.BytesIO(), io.BytesIO()
        out, err = (io.TextIOWrapper(one, "utf-8", write_through=True) for one in said)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(cwd or "."):
            code = main(words)
        return subprocess.CompletedProcess(words, code, *(one.getvalue().decode() for one in said))
    if CAN_FORK and not any(name.startswith(_LOOKED_AT_BY_A_START) for name in env or {}):
        return warm("mpstui").run(*words, env={**os.environ, **(env or {})}, cwd=cwd or Path.cwd())
    return subprocess.run(
        [sys.executable, "-m", "mpstui", *words],
        env={**os.environ, **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def ok(*words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """The output of a command that must exit with 0."""
    done = mpstui(*words, env=env, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(*words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> Any:
    """The JSON of a command that must exit with 0."""
    return json.loads(ok(*words, "--json", env=env, cwd=cwd))


def told(*words: str) -> Any:
    """The JSON of a reading command, asked inside this process: for asking again and again."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main([*words, "--json"]) == 0
    return json.loads(output.getvalue())


def state_of(run: str) -> str:
    """Where a run is now."""
    return str(told("show", run)["state"])


def wait_for_state(run: str, state: str) -> None:
    wait_until(lambda: state_of(run) == state, what=f"{run} to be {state}")


def write_settings(text: str) -> None:
    """Make this the user's settings."""
    path = Path(os.environ["MPSTUI_HOME"]) / "settings.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def run_folder(run: str) -> Path:
    return Path(os.environ["MPSTUI_HOME"]) / "runs" / run
