"""A run directory whose files are cut, swapped, filled with noise and deleted while the monitor looks."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mpstui.core.model.snapshot import State
from mpstui.core.runs.report import as_json
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_home, make_monitor

FILES = (
    *("spec.json", "status.json", "metrics.jsonl", "events.jsonl"),
    *(f"attempts/1/{name}" for name in ("launch.json", "exit.json", "heartbeat.json", "output.log")),
)


def noise(source: random.Random, old: bytes) -> bytes:
    """Something else in the file's place."""
    choices: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: source.randbytes(source.randint(1, 300)),
        lambda: old[: source.randint(0, len(old))],
        lambda: old + old,
        lambda: bytes(len(old)),
        lambda: b'{"schema": 1, "time": NaN, "seq": Infinity, "step": 1e999, "loss": "x"}\n',
        lambda: b"[" * 3000,
        lambda: old.replace(b"1", b"null"),
    ]
    return source.choice(choices)()


def put(path: Path, content: bytes, moment: int) -> None:
    """Write in place; the file system's own clock may not tick between two writes."""
    path.write_bytes(content)
    os.utime(path, (moment, moment))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_to_the_files_the_monitor_goes_on(tmp_path: Path, seed: int) -> None:
    source, home, clock = random.Random(seed), make_home(tmp_path), FakeClock()
    run = RunBuilder(home).status("running", trainer=[7, 7]).launch().beat(step=3, loss=0.5).hold()
    run.points(*({"time": NOW + i, "attempt": 1, "step": i, "loss": 1.0 / (i + 1)} for i in range(50)))
    run.event("launched", "x").output("epoch 1/3 loss 0.5\r\n\x1b[31mred\n" * 20).exit(code=1)
    kept = {name: (run.run.path / name).read_bytes() for name in FILES}
    monitor, moments = make_monitor(home, clock), itertools.count(int(NOW))
    for _ in range(60):
        path = run.run.path / source.choice(FILES)
        if source.random() < 0.15:
            path.unlink(missing_ok=True)
        else:
            put(path, noise(source, kept[str(path.relative_to(run.run.path))]), next(moments))
        clock.advance(source.choice([0.1, 2.0, 500.0]))
        for snapshot in monitor.refresh(run.run.run if source.random() < 0.5 else None):
            assert snapshot.state in State
            assert snapshot.reason
            as_json(snapshot, full=False)
    for name, content in kept.items():
        put(run.run.path / name, content, next(moments))
    clock.advance(10)
    shown = monitor.snapshot(run.run.run)
    assert (shown.state, shown.series["loss"].count, len(shown.events)) == (State.FAILED, 50, 1)
    run.release()
    shutil.rmtree(run.run.path)
    assert monitor.refresh() == ()
