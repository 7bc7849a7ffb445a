"""Whatever a field of a record holds, every command goes on, shows the other runs, and steers no terminal.

``python -m tests.fuzz records`` tries every value in every place; here each place gets a few of them.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from pathlib import Path

import pytest

from mpstui.cli.main import main
from mpstui.core.model.home import Home, resolve_home
from mpstui.wire.rundir import RunDir
from tests.core.runs.build import RunBuilder
from tests.damage import damages, records_of, run_with_everything

COMMANDS = (
    ["show", "{run}"],
    ["show", "{run}", "--json"],
    ["diagnose", "{run}"],
    ["logs", "{run}"],
    ["ps"],
    ["remove", "{run}", "--dry-run"],
    ["queue"],
    ["results"],
    ["wait", "{run}", "--timeout", "0"],
)
EVERY = 23
"""One damage in so many is tried; prime to the number of poisons, so that each place gets others."""


def home() -> Home:
    found = resolve_home(os.environ)
    found.runs.mkdir(parents=True)
    return found


@pytest.mark.parametrize("live", [False, True], ids=["ended", "live"])
def test_a_damaged_field_takes_nothing_else_away(live: bool, capsys: pytest.CaptureFixture[str]) -> None:
    here = home()
    healthy = RunBuilder(here, "healthy", created=time.time()).status("ended").launch().exit(code=0)
    run = run_with_everything(here, healthy.run.run, live=live)
    before, tries = states(capsys), 0
    command = itertools.cycle(COMMANDS)
    for path in records_of(run):
        whole = path.read_text()
        for place, poison, text in damages(whole, EVERY):
            path.write_text(text)
            tried = f"{path.name} {place} {str(poison)[:40]!r}"
            for words in (["ps", "--json"], next(command)):
                answer(words, run, tried, capsys)
            tries += 1
        path.write_text(whole)
    assert tries > len(records_of(run)), "fields of every record were damaged"
    assert states(capsys) == before, "and no look at them has changed anything"


def states(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The state of each run."""
    assert main(["ps", "--json"]) == 0
    return {one["run"]: one["state"] for one in json.loads(capsys.readouterr().out)}


def answer(words: list[str], run: RunDir, tried: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command's exit code is one of ours, the other run is listed, and nothing steers the terminal."""
    code = main([word.format(run=run.run) for word in words])
    printed = capsys.readouterr()
    assert code in (0, 1, 2), (words, tried)
    assert words[0] != "ps" or "healthy" in printed.out, (words, tried, printed)
    assert not set("\x1b\x9b\u202e\u2028\u200b") & set(printed.out + printed.err), (words, tried)
    assert "reading it failed" not in printed.out, (words, tried, printed.out)


@pytest.mark.parametrize("kind", ["pipe", "zero", "folder", "noise"])
def test_something_else_in_a_records_place_is_not_waited_for(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = home()
    healthy = RunBuilder(here, "healthy", created=time.time()).status("ended").launch().exit(code=0)
    run = run_with_everything(here, healthy.run.run, live=False)
    before = states(capsys)
    (run.requests / "1-1-x.json").write_text("{}")
    first = run.attempt(1)
    others = (run.requests / "1-1-x.json", run.supervisor_lock, run.run_lock, first.output)
    for path in (*records_of(run), *others):
        kept = tmp_path / "kept"
        if path.exists():
            path.rename(kept)
        replace(path, kind)
        for words in (["ps", "--json"], ["show", "{run}"], ["diagnose", "{run}"], ["logs", "{run}"], ["queue"]):
            answer(words, run, path.name, capsys)
        path.rmdir() if kind == "folder" else path.unlink()
        if kept.exists():
            kept.rename(path)
    assert states(capsys) == before


def replace(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\0\0[[[[{" * 1000)
