"""``b`` in the chart of a far run, over a real ssh: a new run there, from the checkpoint before the cursor."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mpstui.wire import storage
from mpstui.wire.records import Spec
from mpstui.wire.rundir import run_dirs
from tests.core.hosts.machines import STEPS, Machines
from tests.ssh_lab import SshLab, ssh_lab
from tests.terminal import Terminal

__all__ = ["ssh_lab"]


def test_b_in_the_chart_of_a_far_run_begins_a_new_run_there_from_the_checkpoint_before_the_cursor(
    tmp_path: Path, ssh_lab: SshLab
) -> None:
    machines = Machines(tmp_path, ssh_lab)
    there, own = machines.homes["b"], tmp_path / "own"
    machines.homes["a"] = there
    machines.allow(STEPS + 1)
    first = machines.launch()
    machines.final("a", first)
    own.mkdir(mode=0o700)
    settings = f'[hosts.{machines.host}]\nhome = "{there.state}"\npython = "{sys.executable}"\n'
    (own / "settings.toml").write_text(settings)
    environ = {**ssh_lab.environ, "MPSTUI_HOME": str(own)}
    command = [sys.executable, "-m", "mpstui", first, "--host", machines.host]
    with Terminal(command, columns=120, rows=40, env=environ) as screen:
        screen.wait_text("finished", "step 60")
        screen.press("1", *["left"] * 30)
        screen.wait_text("until step")
        screen.press("b")
        named = re.search(
            r"toy from (\d+)", screen.wait_text("launch · toy", "toy from ", f"starts on {machines.host[:20]}")
        )
        screen.press("\x13")
        assert named is not None
        screen.wait_text(f" toy from {named[1]} ", "attempt 1", "finished")
    (branch,) = (one for one in run_dirs(there.runs) if one.run != first)
    spec = storage.read(Spec, branch.spec)
    assert spec is not None
    left = spec.branch
    assert left is not None
    assert 0 < left.step <= int(named[1]) < STEPS
    assert machines.final("a", branch.run) == machines.final("a", first), "the same numbers from its step on"
    assert not (own / "runs").exists()
