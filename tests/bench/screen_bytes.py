"""What the screen writes to its terminal: ``python -m tests.bench.screen_bytes [--seconds 10] [--only WORD]``.

Bytes a second are what an SSH session has to carry. Each row is the real program on a pseudo-terminal, looking at real
runs of a script that prints some lines a second; `deflated` is what ``ssh -C`` would send of it, `bursts` how many
writes a second there are. Prints the table of docs/screen-internals.md, "Measured".
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]

from tests.terminal import Terminal
from tests.ui.pixel_terminal import PixelTerminal

MPSTUI = (sys.executable, "-m", "mpstui")
_SETTLING_SECONDS = 8.0
_TRAINING = """
import math, random, sys, time
pause, step = 1 / float(sys.argv[1]), 0
while step < 40_000:
    step += 1
    loss = 0.3 + 2 * math.exp(-step / 300) + random.random() * 0.05
    print(time.strftime("%H:%M:%S"), f"INFO epoch {step // 400 + 1}/100 step {step}/40000 loss {loss:.4f}"
          f" acc {1 - loss / 3:.4f} lr {3e-4:.2e} grad_norm {0.5 + random.random():.3f}", flush=True)
    time.sleep(pause)
"""


class Scene(NamedTuple):
    """One row: a screen, and the keys that lead to it."""

    name: str
    live: int = 1
    """So many runs train."""
    keys: tuple[str, ...] = ()
    columns: int = 120
    rows: int = 40
    remote: bool = False
    colours: str = "truecolor"
    pixels: str = ""
    """The way in which its terminal shows pixels."""


_OPEN = ("enter",)
SCENES = (
    Scene("a live run", keys=_OPEN),
    Scene("the same over SSH", keys=_OPEN, remote=True),
    Scene("the same over SSH, 256 colours", keys=_OPEN, remote=True, colours=""),
    Scene("the same, 80x24 over SSH", keys=_OPEN, columns=80, rows=24, remote=True),
    Scene("its chart alone", keys=(*_OPEN, "1", "z")),
    Scene("a live run, pixels of kitty", keys=_OPEN, pixels="kitty"),
    Scene("the same over SSH, pixels of kitty", keys=_OPEN, pixels="kitty", remote=True),
    Scene("a live run, pixels of sixel", keys=_OPEN, pixels="sixel"),
    Scene("its chart alone, pixels of kitty", keys=(*_OPEN, "1", "z"), pixels="kitty"),
    Scene("its log alone", keys=(*_OPEN, "2", "z")),
    Scene("its log alone, over SSH", keys=(*_OPEN, "2", "z"), remote=True),
    Scene("the list, 6 live", live=6),
    Scene("the list, 6 live, over SSH", live=6, remote=True),
    Scene("the list, all ended", live=0),
)


def measured(scene: Scene, seconds: float) -> str:
    """One row of the table."""
    changes = {"COLORTERM": scene.colours, "SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22" if scene.remote else ""}
    size: dict[str, Any] = {"columns": scene.columns, "rows": scene.rows, "env": changes}
    pixels = PixelTerminal(MPSTUI, scene.pixels, **size) if scene.pixels else None
    with pixels or Terminal(MPSTUI, **size) as terminal:
        terminal.wait_text("training" if scene.live else "killed")
        for key in scene.keys:
            terminal.press(key)
            terminal.pump(1.0)
        terminal.pump(_SETTLING_SECONDS)
        terminal.raw.clear()
        process = psutil.Process(terminal.pid)
        spent, began, bursts = sum(process.cpu_times()[:2]), time.monotonic(), 0
        while (left := began + seconds - time.monotonic()) > 0:
            before = len(terminal.raw)
            terminal.pump(min(0.02, left))
            bursts += len(terminal.raw) > before
        took = time.monotonic() - began
        cpu = (sum(process.cpu_times()[:2]) - spent) / took
        told = f"{len(terminal.raw) / took:,.0f} | {len(zlib.compress(bytes(terminal.raw), 6)) / took:,.0f}"
        terminal.press("q")
        terminal.wait_exit()
    return f"| {scene.name} | {told} | {bursts / took:.1f} | {cpu:.1%} |"


def start(count: int, rate: float) -> list[str]:
    """Runs of the script; their ids."""
    runs = []
    for number in range(count):
        words = ("run", "--json", "--name", f"indicators {number}", "--", sys.executable, "-c", _TRAINING, str(rate))
        done = subprocess.run([*MPSTUI, *words], capture_output=True, check=True)
        runs.append(str(json.loads(done.stdout)["run"]))
    return runs


def stop(runs: Sequence[str]) -> None:
    for run in runs:
        subprocess.run([*MPSTUI, "kill", run], capture_output=True, check=True)
        subprocess.run([*MPSTUI, "wait", run, "--timeout", "30"], capture_output=True, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=5.0, help="lines a second of each run")
    parser.add_argument("--only", default="", help="rows whose name has this word")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(MPSTUI_HOME=str(Path(folder) / "home"), PYTHONUNBUFFERED="1")
        ended = start(1, 1000.0)
        stop(ended)
        print("| what | bytes/s | deflated | bursts/s | CPU |\n|---|---|---|---|---|")
        for count in (1, 6, 0):
            scenes = [one for one in SCENES if one.live == count and arguments.only in one.name]
            runs = start(count, arguments.rate) if scenes else []
            for scene in scenes:
                print(measured(scene, arguments.seconds), flush=True)
            stop(runs)


if __name__ == "__main__":
    main()
