"""A run with every record, and what may stand in place of each of its fields."""

from __future__ import annotations

import copy
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpstui.core.model.home import Home
from mpstui.wire import labels, storage
from mpstui.wire.liveness import boot_id
from mpstui.wire.records import AlertRule, CauseRule, GpuRule, Provenance, QueueRule, RestartRule, Totals
from mpstui.wire.rundir import RunDir

from .core.runs.build import RunBuilder

Place = tuple[str | int, ...]

STEERING = "\x1b]52;c;eA==\x07\x9b31m\u202e\u2028\u200b\x1b[2J"
"""Sets the clipboard, colours, turns the line round, ends it, hides, and clears the screen."""


def _nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


POISON: tuple[Any, ...] = (
    *("", "x", STEERING, "\ud800", "nul\0l", "a" * 70_000, "../../x", "/dev/zero", "~nobody/x"),
    *(None, True, 0, -1, 1.5, 1e18, 1e308, 10**400, -(10**30), 1 << 63, float("nan"), float("inf")),
    *([], {}, [None], [[]], [{}], ["x", "y"], [1, 2], [[1, 2]], _nested(300)),
    *({"a": None}, {"a": []}, {"\ud800": "x"}, {"run": 3}, [{"run": 3, "when": []}]),
)


def run_with_everything(home: Home, needed: str, *, live: bool) -> RunDir:
    """Every record with every field that is ever written; nothing of it really runs."""
    now = time.time()
    run = RunBuilder(
        home,
        "victim",
        created=now - 1000,
        restart=RestartRule(on=["killed_os"]),
        causes=[CauseRule("x", ["y"], [9], [1])],
        queue=QueueRule(group="g", after=[{"run": needed, "when": "ok"}]),
        gpus=GpuRule(["0", "1"]),
        watch={"metrics": "m.jsonl", "pattern": "loss (.*)"},
        secret_env=["A"],
        pid_file="pid",
        alerts=AlertRule("a", "b"),
    )
    run.status(
        "running" if live else "ended",
        started=now - 900,
        trainer=[7, 7],
        tree=[[7, 7]],
        supervisor=[6, 6],
        restarts=[{"time": now - 1, "attempt": 1, "cause": "x", "step": 3}],
        message="m",
        action="stop",
        survivors=[8],
        asked_at=now - 2,
        boot_id=boot_id(),
        waiting_for="runs",
    )
    run.launch(
        env={"A": "b"}, secret_env=["B"], checkpoint="x.pt", gpus=["0"], reason="r", by="me", totals=Totals(3, 100)
    )
    run.beat(
        step=3,
        steps=100,
        loss=0.5,
        lr=0.1,
        epoch=1.5,
        epochs=3.0,
        metrics={"acc": 0.1},
        rank=0,
        world_size=2,
        pid=7,
        samples_per_second=3.0,
        steps_per_second=2.0,
    )
    if not live:
        run.exit(
            code=1,
            evidence={"k": "v"},
            rusage={"maxrss": 3.0},
            cause="mps_oom",
            action="stop",
            requested_by="x",
            survivors=[8],
            started=now - 900,
        )
    run.points(*({"time": now - 900 + i, "attempt": 1, "step": i, "loss": 1 / (i + 1), "epoch": 1} for i in range(20)))
    run.event("launched", "x")
    labels.edit(run.run, lambda found: found._replace(name="victim", tags=("a", "b"), note="n"))
    storage.write_json(run.run.attempt(1).config, {"lr": 0.1, "model": {"depth": [1, {"a": "b"}]}})
    storage.write_json(run.run.provenance, Provenance("abc", "main", 3, True, "host", "Linux", "3", {"torch": "2"}))
    storage.append_line(run.run.telemetry, {"time": now - 3, "rss_bytes": 1e9, "device_used": 2e9, "gpu_percent": 3.0})
    run.output('epoch 1/3 loss 0.5\nTraceback (most recent call last):\n  File "t.py", line 3, in f\nRuntimeError: x\n')
    return run.run


def records_of(run: RunDir) -> list[Path]:
    """The files whose fields are worth changing."""
    first = run.attempt(1)
    files = [run.spec, run.status, run.metrics, run.events, first.launch, first.exit, first.heartbeat()]
    files += [run.labels, run.telemetry, run.provenance, first.config]
    return [path for path in files if path.exists()]


def damages(text: str, every: int = 1) -> Iterator[tuple[Place, Any, str]]:
    """Every change of the record in a file (of its last line, where it has several): where, by what, the new text."""
    *before, last = text.splitlines(keepends=True)
    record = json.loads(last)
    for place, poison in itertools.islice(itertools.product(_places(record), POISON), 0, None, every):
        yield place, poison, "".join([*before, json.dumps(_with(record, place, poison)), "\n"])


def _places(value: Any, above: Place = ()) -> Iterator[Place]:
    yield above
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from _places(item, (*above, key))


def _with(record: Any, place: Place, poison: Any) -> Any:
    if not place:
        return poison
    record = copy.deepcopy(record)
    at = record
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = poison
    return record
