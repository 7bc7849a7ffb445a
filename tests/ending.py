"""No run outlives its test, whatever became of that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mpstui.wire import liveness
from mpstui.wire.rundir import RunDir

from .waiting import wait_until


def end_runs(home: Path) -> None:
    """Kill the runs of a home and wait until the kernel says that they are gone."""
    for path in sorted((home / "runs").glob("*")):
        run = RunDir(path)
        if liveness.is_held(run.supervisor_lock) or liveness.is_held(run.run_lock):
            command = [sys.executable, "-m", "mpstui", "kill", run.run]
            subprocess.run(command, env={**os.environ, "MPSTUI_HOME": str(home)}, capture_output=True, check=False)
            wait_until(lambda run=run: not liveness.is_held(run.run_lock), timeout=60, what=f"the end of {run.run}")  # type: ignore[misc]
