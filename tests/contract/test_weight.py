"""How much of mpstui a command loads for its work: imports are processor time at each start, and memory while it runs.

Budgets are shares of all our lines, asked of the real program, so that they hold whatever modules are called. Where one
is exceeded, something has begun to import at the top of a module what belongs to a key, a failure or another command:
import it where it is used, or only for its types. `python -X importtime -m mpstui ...` shows who did.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from tests.contract.test_house_rules import ROOT
from tests.core.runs.build import RunBuilder
from tests.terminal import Terminal

NOTE_MODULES = """
import atexit, json, os, sys
from pathlib import Path
def note():
    files = {name: getattr(module, "__file__", None) or "" for name, module in list(sys.modules.items())}
    Path(os.environ["MODULES_AT_EXIT"]).write_text(json.dumps(files))
atexit.register(note)
"""
RULES = "mpstui.core.diagnosis.rules"
"""The 65 causes compile some hundred regular expressions; only what has failed needs them."""
GRAMMARS = "mpstui.core.formats.grammars"
"""Needed once a log is read; a run that reports its numbers itself never needs them."""


@dataclass(frozen=True)
class Loaded:
    """The modules of one process when it ended, with their files."""

    files: dict[str, str]

    @property
    def share(self) -> float:
        """How much of our code it loaded, by lines."""
        ours = {path for name, path in self.files.items() if name.partition(".")[0] == "mpstui" and path}
        return _lines(Path(path) for path in ours) / _lines((ROOT / "mpstui").rglob("*.py"))

    def has(self, name: str) -> bool:
        return any(f"{one}.".startswith(f"{name}.") for one in self.files)


def _lines(paths: Iterable[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where every Python that is started notes its modules when it ends."""
    (tmp_path / "sitecustomize.py").write_text(NOTE_MODULES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MODULES_AT_EXIT", str(tmp_path / "modules"))
    return tmp_path / "modules"


def on_screen(noted: Path, words: Collection[str], *shown: str) -> Loaded:
    """What `mpstui WORDS` loaded when it has shown something and was left again."""
    with Terminal([sys.executable, "-m", "mpstui", *words]) as terminal:
        terminal.wait_text(*shown, timeout=60.0)
        terminal.press("q")
        assert terminal.wait_exit(30) == 0
    return Loaded(json.loads(noted.read_text()))


def printed(noted: Path, *words: str) -> Loaded:
    """What `mpstui WORDS` loaded to print something."""
    subprocess.run([sys.executable, "-m", "mpstui", *words], capture_output=True, timeout=60, check=True)
    return Loaded(json.loads(noted.read_text()))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(state=tmp_path / "home", config=tmp_path / "home")
    monkeypatch.setenv("MPSTUI_HOME", str(home.state))
    return home


def test_a_watched_log_loads_nothing_that_a_key_or_a_failure_needs(tmp_path: Path, noted: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {at} loss {3 / (at + 1):.4f}\n" for at in range(4243)))
    loaded = on_screen(noted, ("watch", str(log)), "4,242", "0.0007")
    assert loaded.has(GRAMMARS)  # it has read the log
    assert not loaded.has(RULES)
    assert not loaded.has("tomlkit")
    assert loaded.share < 0.65


def test_the_list_loads_nothing_of_one_run(noted: Path, home: Home) -> None:
    loaded = on_screen(noted, (), "no runs yet")
    assert not loaded.has(GRAMMARS)
    assert not loaded.has(RULES)
    assert not loaded.has("psutil")
    assert not loaded.has("textual.command")
    assert not loaded.has("importlib.metadata")
    assert not loaded.has("mpstui.core.formats.stores")
    assert loaded.share < 0.35


def test_a_listing_loads_no_reader_of_logs_for_a_run_that_reports(noted: Path, home: Home) -> None:
    run = RunBuilder(home).status("running").launch().beat(step=3, epoch=1, loss=0.5).output("step 3 loss 0.5\n").hold()
    loaded = printed(noted, "ps")
    run.release()
    assert not loaded.has(GRAMMARS)
    assert not loaded.has("textual")
    assert loaded.share < 0.22


def test_a_listing_loads_no_reader_for_a_log_that_it_knows(noted: Path, home: Home) -> None:
    run = RunBuilder(home).status("running").launch().output("step 3 loss 0.5\n").hold()
    assert printed(noted, "ps").has(GRAMMARS)
    assert not printed(noted, "ps").has(GRAMMARS)
    run.release()


def test_acting_on_a_run_plans_no_launch(noted: Path, home: Home) -> None:
    run = RunBuilder(home).status("running").launch().hold()
    loaded = printed(noted, "pause", "--no-wait", run.run.run)
    run.release()
    assert loaded.share < 0.17


@pytest.mark.parametrize("words", [("--version",), ("ps", "--help")])
def test_what_reads_no_run_loads_little(noted: Path, words: tuple[str, ...]) -> None:
    assert printed(noted, *words).share < 0.1
