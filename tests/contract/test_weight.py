"""What the program loads to show something, asked of the real program: memory and processor time are spent on imports.

The sets name what belongs to a key, a failure or another command. Where a test fails, something has begun to import it
at the top of a module that every screen needs: import it where it is used, or only for its types.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from tests.core.runs.build import RunBuilder
from tests.terminal import Terminal

NOTE_MODULES = """
import atexit, os, sys
from pathlib import Path
atexit.register(lambda: Path(os.environ["MODULES_AT_EXIT"]).write_text("\\n".join(sys.modules)))
"""
LAUNCHING = (
    "mpstui.core.launching.actions",
    "mpstui.core.launching.choice",
    "mpstui.core.launching.planning",
    "mpstui.core.machine",
    "mpstui.core.profiles",
    "mpstui.ui.drafts",
    "mpstui.ui.form",
    "mpstui.ui.screens.launch",
    "tomllib",
    "tomlkit",
)
EXPLAINING = ("mpstui.core.diagnosis.engine", "mpstui.core.diagnosis.rules", "mpstui.core.diagnosis.engine")
OTHER_COMMANDS = ("mpstui.core.doctor", "mpstui.core.bench", "mpstui.cli.session")
ASKING = ("mpstui.ui.screens.dialogs", "mpstui.ui.ports")
READING = ("mpstui.core.formats.reader", "mpstui.core.formats.grammars", "mpstui.core.formats.files")
ONE_RUN = ("mpstui.ui.screens.run", "mpstui.ui.charting", "mpstui.core.telemetry.run_telemetry", "psutil")


def begins_with(loaded: Collection[str], names: Collection[str]) -> list[str]:
    """Those of ``loaded`` that are one of ``names``, or in a package of that name."""
    return sorted(one for one in loaded if f"{one}.".startswith(tuple(f"{name}." for name in names)))


def loaded_by_the_screen(tmp_path: Path, words: Collection[str], *shown: str) -> list[str]:
    """The modules of `mpstui WORDS` when it has shown what was asked for and was left again."""
    (tmp_path / "sitecustomize.py").write_text(NOTE_MODULES)
    noted = tmp_path / "modules"
    env = {"PYTHONPATH": str(tmp_path), "MODULES_AT_EXIT": str(noted)}
    with Terminal([sys.executable, "-m", "mpstui", *words], env=env) as terminal:
        terminal.wait_text(*shown, timeout=60.0)
        terminal.press("q")
        assert terminal.wait_exit(30) == 0
    return noted.read_text().split()


def test_a_watched_log_loads_nothing_that_a_key_or_a_failure_needs(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {at} loss {3 / (at + 1):.4f}\n" for at in range(4243)))
    loaded = loaded_by_the_screen(tmp_path, ("watch", str(log)), "4,242", "0.0007")
    assert "mpstui.core.formats.reader" in loaded  # it has read the log
    assert begins_with(loaded, (*LAUNCHING, *EXPLAINING, *OTHER_COMMANDS, *ASKING)) == []


def test_the_list_loads_nothing_of_one_run(tmp_path: Path) -> None:
    loaded = loaded_by_the_screen(tmp_path, (), "no runs yet")
    assert "mpstui.core.runs.monitor" in loaded  # it has looked for runs
    assert begins_with(loaded, (*LAUNCHING, *EXPLAINING, *OTHER_COMMANDS, *ASKING, *READING, *ONE_RUN)) == []


def loaded_by_ps(home: Home, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules of `mpstui ps`."""
    monkeypatch.setenv("MPSTUI_HOME", str(home.state))
    code = "import sys; from mpstui.cli.main import main; main(['ps']); print('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "0.5000" in done.stdout
    return done.stderr.split()


def test_a_listing_loads_no_reader_of_logs_for_a_run_that_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(state=tmp_path / "home", config=tmp_path / "home")
    run = RunBuilder(home).status("running").launch().beat(step=3, epoch=1, loss=0.5).output("step 3 loss 0.5\n").hold()
    loaded = loaded_by_ps(home, monkeypatch)
    run.release()
    assert begins_with(loaded, (*LAUNCHING, *EXPLAINING, *OTHER_COMMANDS[:2], *READING, "textual", "rich")) == []


def test_a_listing_loads_no_reader_for_a_log_that_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(state=tmp_path / "home", config=tmp_path / "home")
    run = RunBuilder(home).status("running").launch().output("step 3 loss 0.5\n").hold()
    assert begins_with(loaded_by_ps(home, monkeypatch), READING)
    assert begins_with(loaded_by_ps(home, monkeypatch), READING) == []
    run.release()


def test_what_stops_a_run_plans_no_launch() -> None:
    code = "import sys; import mpstui.cli.acting, mpstui.core.launching.actions; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert begins_with(done.stdout.split(), [name for name in LAUNCHING if not name.endswith("actions")]) == []
