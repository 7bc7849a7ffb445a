"""Poisoned and damaged runs on the real screen: all are listed, each opens, nothing steers the terminal."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from mpstui.core.model.home import resolve_home
from mpstui.wire import storage
from mpstui.wire.rundir import RunDir

from ..core.runs.build import RunBuilder
from ..damage import STEERING, records_of, run_with_everything
from ..terminal import Terminal

STEERS = (b"\x1b]52", *(one.encode() for one in "\x9b\u202e\u2028\u200b"))


def poison_every_text(run: RunDir) -> None:
    """Each text of each record with what steers a terminal behind it; ids and words with a meaning stay."""
    meanings = ("run", "phase", "schema", "boot_id", "device", "state", "attempt", "signal")

    def poisoned(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: poisoned(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [poisoned(item) for item in value]
        return value + STEERING if isinstance(value, str) and key not in meanings else value

    for path in records_of(run):
        lines = [json.dumps(poisoned(json.loads(line))) for line in path.read_text().splitlines()]
        path.write_text("\n".join(lines) + "\n")
    with run.attempt(1).output.open("a") as output:
        output.write(f"epoch 2/3 loss 0.4 {STEERING}\nValueError: {STEERING}\n")


def test_poisoned_runs_are_shown_and_steer_nothing(tmp_path: Path) -> None:
    home = resolve_home(os.environ)
    home.runs.mkdir(parents=True)
    healthy = RunBuilder(home, "healthy", created=time.time() - 5000).status("ended").launch().exit(code=0).run.run
    for live in (True, False):
        poison_every_text(run_with_everything(home, healthy, live=live))
    os.mkfifo(home.runs / "20200101-000000-pipe")
    storage.make_private_folder(home.runs / "20200101-000001-piped")
    os.mkfifo(home.runs / "20200101-000001-piped" / "spec.json")
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    (profiles / "poisoned.toml").write_text(
        f"description = {json.dumps(STEERING)}\n"
        f'command = ["{{python}}", "t.py"]\n[args]\nlr = {json.dumps("0.1" + STEERING)}\n'
    )
    with Terminal([sys.executable, "-m", "mpstui"], columns=120, rows=40, cwd=tmp_path) as terminal:
        terminal.wait_text("healthy", "victim", "piped")
        for _ in range(2):
            terminal.press("enter")
            terminal.wait_text("6 events")
            terminal.press("R")
            terminal.wait_text("edit and restart", "victim␛")
            terminal.press("escape")
            terminal.wait_text("6 events")
            terminal.press("escape")
            terminal.wait_text("healthy", "victim")
            terminal.press("down")
        terminal.press("n")
        terminal.wait_text("poisoned")
        terminal.press("enter")
        terminal.wait_text("0.1␛")
    assert not [steering for steering in STEERS if steering in terminal.raw]
