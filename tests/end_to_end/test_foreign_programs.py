"""Programs that were never written for mpstui, in Pythons where mpstui is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.conftest import CommandLine

pytestmark = pytest.mark.end_to_end

SCRIPT = """
import sys, time
print("using", sys.prefix)
for step in range(1, 100000):
    print(f"step {step}/100000 loss {1 / step:.4f} lr 1e-3", flush=True)
    time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment without mpstui, torch or anything else."""
    folder = tmp_path_factory.mktemp("other") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    return folder / "bin" / "python"


def test_a_foreign_script_in_another_environment(mpstui: CommandLine, other_python: Path) -> None:
    (mpstui.cwd / "train.py").write_text(SCRIPT)
    profile = mpstui.cwd / "foreign.toml"
    profile.write_text(
        f'name = "Foreign"\npython = "{other_python}"\ncommand = ["{{python}}", "train.py"]\ndevice = "cpu"\n'
    )
    run = mpstui.launch(str(profile))
    shown = mpstui.wait_step(run, 20)
    assert shown["steps"] == 100000
    assert 0 < shown["loss"] <= 1
    assert str(other_python.parent.parent) in mpstui.call("logs", run).stdout
    refused = mpstui.call("clear-cache", run)
    assert refused.returncode == 1
    assert refused.stderr.strip() or refused.stdout.strip()
    assert mpstui.call("stop", run).returncode == 0
    assert mpstui.wait_state(run, "stopped")["exit"]["signal"] == 15


def run_python(mpstui: CommandLine, name: str, code: str) -> str:
    """`mpstui run --json -- python -c CODE`; the run id."""
    done = mpstui.call("run", "--name", name, "--json", "--", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["run"])


def test_any_command_needs_no_profile(mpstui: CommandLine) -> None:
    run = run_python(mpstui, "three", "print('loss 3'); raise SystemExit(3)")
    assert mpstui.call("wait", run, "--timeout", "60").returncode == 1
    shown = mpstui.show(run)
    assert (shown["state"], shown["exit"]["code"]) == ("failed", 3)


def test_a_program_that_does_not_exist_is_refused_before_it_starts(mpstui: CommandLine) -> None:
    done = mpstui.call("run", "--", "no-such-program-anywhere")
    assert done.returncode == 2
    assert "no-such-program-anywhere" in done.stderr


@pytest.mark.parametrize("name", ["[red]x[/foo]", "\x1b]0;owned\x07evil", "né 東京 🚀", "a" * 5000])
def test_any_name_is_only_a_name(mpstui: CommandLine, name: str) -> None:
    run = run_python(mpstui, name, "pass")
    assert mpstui.call("wait", run, "--timeout", "60").returncode == 0
    listing = mpstui.call("ps", "--all").stdout
    assert "\x1b]0" not in listing
    assert mpstui.json("ps", "--all")[0]["run"] == run
