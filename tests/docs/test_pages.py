"""Every command of the tutorial and the cookbook is run, in the order of the page, on the files that it shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import standin
from tests.cli.programs import mpstui
from tests.slurm.fake import FakeCluster
from tests.ssh_lab import SshLab
from tests.terminal import Terminal
from tests.waiting import wait_until

DOCS = Path(__file__).resolve().parents[2] / "docs"
COOKBOOK = "cookbook.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\S+\.\w+)$")
ELSEWHERE = ("Two Macs and a GPU box", "A cluster")
"""Sections that need more than this machine; each is run alone."""


class Section(NamedTuple):
    """What stands below a heading: the first one, "", is what stands above all of them."""

    title: str
    text: str


class Command(NamedTuple):
    """A line of a page: what is typed, what is said of it, and how it must exit."""

    line: str
    remark: str

    @property
    def code(self) -> int:
        found = re.search(r"exits with (\d+)", self.remark)
        return int(found[1]) if found else 0


def sections(page: str) -> list[Section]:
    first, *others = re.split(r"^## ", (DOCS / page).read_text(), flags=re.MULTILINE)
    return [Section("", first), *(Section(*text.split("\n", 1)) for text in others)]


def commands(section: Section, folder: Path) -> Iterator[Command]:
    """The commands of a section; files that are shown between them are written on the way."""
    for kind, text in _BLOCK.findall(section.text):
        if kind == "sh":
            for line in text.splitlines():
                typed, _, remark = re.sub(r"\s+#", "\0", line, count=1).partition("\0")
                yield Command(typed, remark.strip())
        elif named := _FILE.match(text.partition("\n")[0]):
            path = folder / named[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the reader stands, with mpstui and its Python first on PATH.

    A tiny network gains nothing by the compiler that torch loads with its first optimizer.
    """
    monkeypatch.setenv("PYTHONPATH", str(standin.FOLDER))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: Command, folder: Path) -> None:
    """Type it: on a terminal what opens the screen, which is left again, through a shell what has more than words."""
    words = shlex.split(command.line)
    if "the screen" in command.remark:
        with Terminal([sys.executable, "-m", *words], env=os.environ, cwd=folder) as terminal:
            terminal.wait_text("q quit")
            terminal.press("q")
            assert terminal.wait_exit() == 0
        return
    if words[0] == "mpstui" and not set(command.line) & set("|<>&;$"):
        done = mpstui(*words[1:], cwd=folder)
    else:
        done = subprocess.run(
            ["bash", "-euc", command.line], cwd=folder, capture_output=True, text=True, check=False, timeout=60
        )
    assert done.returncode == command.code, f"{command.line}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", ["tutorial.md", COOKBOOK])
def test_every_command_of_the_page_works(page: str, folder: Path) -> None:
    ran = 0
    for section in sections(page):
        if section.title not in ELSEWHERE:
            for command in commands(section, folder):
                run(command, folder)
                ran += 1
    assert ran > 10


def _section(title: str, folder: Path) -> Iterator[Command]:
    """The commands of one section of the cookbook, with the files that stand above all."""
    first, *others = sections(COOKBOOK)
    assert not list(commands(first, folder))
    return commands(next(one for one in others if one.title == title), folder)


def test_the_cookbooks_commands_for_another_machine_work(
    folder: Path, ssh_lab: SshLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh_lab.host("gpu1")
    monkeypatch.setenv("MPSTUI_SSH", ssh_lab.environ["MPSTUI_SSH"])
    for command in _section("Two Macs and a GPU box", folder):
        run(command, folder)


def test_the_cookbooks_commands_for_a_cluster_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCluster.install(folder / "cluster")
    monkeypatch.setenv("PATH", f"{folder / 'cluster' / 'bin'}:{os.environ['PATH']}")
    for command in _section("A cluster", folder):
        run(command, folder)


FRAMEWORKS = sorted((DOCS / "integrations").glob("*.md"))
TRAINING = """
import sys, time
from mpstui import report
done = int(sys.argv[2].rpartition("-")[2]) if len(sys.argv) > 2 else 0
for step in range(done + 1, done + 20 if done else 1_000_000):
    time.sleep(0.02)
    report(loss=1 / step, step=step)
    stops = report.requested("stop")
    if report.requested("save") or stops:
        open(f"step-{step}", "w").write("saved")
        report.checkpoint(f"step-{step}", step=step)
    if stops:
        break
"""
"""Does what the callbacks do; the examples above the commands are run by `make integrations`."""


def test_the_commands_on_the_pages_of_frameworks_work(folder: Path) -> None:
    found = {
        next(one.text for one in sections(f"integrations/{path.name}") if "mpstui run" in one.text)
        for path in FRAMEWORKS
    }
    assert len(FRAMEWORKS) == 8
    assert len(found) == 1  # they are the same
    (folder / "train.py").write_text(TRAINING)
    typed = list(commands(Section("", found.pop()), folder))
    assert {one.line for one in commands(sections("integrations.md")[0], folder)} < {one.line for one in typed}
    for command in typed:
        if "once it trains" in command.remark:
            wait_until(lambda: json.loads(mpstui("show", "first", "--json", cwd=folder).stdout)["step"], what="a step")
        run(command, folder)


def test_each_page_of_a_framework_is_linked() -> None:
    table, front = (DOCS / "integrations.md").read_text(), (DOCS.parent / "README.md").read_text()
    for path in FRAMEWORKS:
        assert f"](integrations/{path.name})" in table
        assert f"](docs/integrations/{path.name})" in front


def test_the_cookbook_says_how_many_situations_it_has() -> None:
    assert len(sections(COOKBOOK)) - 1 == 22
