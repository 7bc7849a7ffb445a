"""The same files read by mpstui and by the tools that wrote them: every value, the first paint, the memory.

    python -m tests.bench.stores RUN.wandb EVENTS --python PYTHON [--screens]

RUN.wandb and EVENTS are a transaction log of Weights & Biases and an event file of TensorBoard, of any length; PYTHON
is an interpreter with wandb and tensorboard beside it. Values are compared with what `wandb leet inspect` prints and
with TensorBoard's EventAccumulator; ``--screens`` opens LEET and mpstui on the run, one after the other, in terminals.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from mpstui.core.formats.files import detect
from mpstui.core.formats.points import Point, PointColumns

Values = dict[str, list[tuple[float, float]]]
PATIENCE_SECONDS = 60.0
SETTLE_SECONDS = 8.0
"""A screen has read everything by then, and its memory is what it needs."""
_ACCUMULATED = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
found.Reload()
print(json.dumps({tag: [(one.step, one.value) for one in found.Scalars(tag)] for tag in found.Tags()["scalars"]}))
"""


def ours(path: Path) -> tuple[Values, float]:
    """Every value of a file as mpstui reads it, and the seconds that took."""
    begun, reader, before = time.perf_counter(), detect(path), -1
    points: list[Point] = []
    while reader.position != before:
        before = reader.position
        points += reader.take(1 << 18)
    lasted, found = time.perf_counter() - begun, Values()
    for point in points:
        assert isinstance(point, PointColumns)
        columns = {"loss": point.losses, "lr": point.rates or (), **point.values}
        for name, column in columns.items():
            if len(column):
                steps = point.steps if point.steps is not None else [math.nan] * len(column)
                found.setdefault(name, []).extend(zip(steps, column, strict=True))
    return found, lasted


def of_leet(log: Path, wandb: Path) -> tuple[Values, float]:
    """What LEET's own reader prints of a transaction log."""
    begun = time.perf_counter()
    done = subprocess.run([wandb, "leet", "inspect", "--json", log], capture_output=True, check=True)
    lasted, found = time.perf_counter() - begun, Values()
    for line in done.stdout.splitlines():
        record = json.loads(line)
        items = record["history"]["item"] if record["type"] == "history" else {}
        for name, value in items.items():
            if not name.startswith("_") and isinstance(value, (int, float)):
                found.setdefault(name, []).append((float(items["_step"]), float(value)))
    return found, lasted


def of_tensorboard(events: Path, python: Path) -> tuple[Values, float]:
    """What TensorBoard's own reader finds in an event file."""
    begun = time.perf_counter()
    done = subprocess.run([python, "-c", _ACCUMULATED, events], capture_output=True, check=True)
    told = json.loads(done.stdout)
    return {
        name: [(float(step), value) for step, value in rows] for name, rows in told.items()
    }, time.perf_counter() - begun


def compare(title: str, mine: tuple[Values, float], theirs: tuple[Values, float]) -> bool:
    """Print whether every value of theirs is ours."""
    (found, lasted), (wanted, their_seconds) = mine, theirs
    count = sum(map(len, wanted.values()))
    named = {
        name: name if name in found else "lr" if name.rpartition("/")[2] in ("lr", "learning_rate") else "loss"
        for name in wanted
    }
    wrong = [name for name, rows in wanted.items() if not same(found.get(named[name], []), rows)]
    said = "every value equal" if not wrong else f"DIFFERENT: {', '.join(wrong)}"
    print(
        f"{title}: {len(wanted)} metrics, {count:,} values, {said}; mpstui {lasted:.2f} s, {their_seconds:.2f} s there"
    )
    return not wrong


def same(mine: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]]) -> bool:
    """Bit for bit, step by step."""
    packed = [[struct.pack("<dd", *row) for row in rows] for rows in (mine, theirs)]
    return packed[0] == packed[1]


def screen(command: Sequence[str], mark: bytes) -> tuple[float, float, float]:
    """Seconds until something is on the screen, and until ``mark`` is; megabytes of all its processes once settled."""
    begun, (pid, terminal) = time.perf_counter(), pty.fork()
    if pid == 0:
        home = {"MPSTUI_HOME": tempfile.mkdtemp(), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        os.execvpe(command[0], list(command), {**os.environ, **home})
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    painted = told = math.nan
    seen, end = b"", begun + PATIENCE_SECONDS
    try:
        while time.perf_counter() < end:
            if select.select([terminal], [], [], 0.05)[0]:
                part = os.read(terminal, 1 << 16)
                for asked, answer in ((b"\x1b[c", b"\x1b[?62c"), (b"\x1b[6n", b"\x1b[1;1R")):
                    if asked in part:
                        os.write(terminal, answer)
                seen = (seen + part)[-(1 << 20) :]
                words = re.sub(rb"\x1b(?:\[[0-9;?=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)", b"", seen)
                now = time.perf_counter() - begun
                painted = now if math.isnan(painted) and len(words.split()) > 3 else painted
                if math.isnan(told) and mark in words:
                    told, end = now, time.perf_counter() + SETTLE_SECONDS
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        return painted, told, sum(one.memory_full_info().pss for one in family) / 1e6
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("events", type=Path)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--screens", action="store_true")
    parser.add_argument("--metric", default="m17", help="waited for on both screens, by its name or a part of it")
    args = parser.parse_args()
    wandb, right = args.python.with_name("wandb"), True
    if args.screens:
        here = Path(sys.executable).with_name("mpstui")
        for name, command in (("LEET", [wandb, "leet", "run", args.log]), ("mpstui", [here, "watch", args.log.parent])):
            painted, told, megabytes = screen(list(map(str, command)), args.metric.encode())
            print(f"{name}: first paint {painted:.2f} s, a metric by name {told:.2f} s, {megabytes:.0f} MB")
    read, lasted = ours(args.log)
    mine = {name: rows for name, rows in read.items() if not name.startswith("system/")}
    right &= compare("Weights & Biases", (mine, lasted), of_leet(args.log, wandb))
    right &= compare("TensorBoard", ours(args.events), of_tensorboard(args.events, args.python))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
