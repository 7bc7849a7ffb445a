"""What must hold of a home that lost its power at any moment: nothing promised is lost, nothing untrue is read."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpstui.core.model.snapshot import State
from mpstui.core.runs.files import WitnessReader
from mpstui.core.runs.local_machine import LocalMachine
from mpstui.wire import rundir, storage
from mpstui.wire.liveness import Process
from mpstui.wire.records import Ack, ExitRecord, LaunchRecord, Request, Spec, Status
from mpstui.wire.rundir import run_dirs

from .power_cut import Disk, Outage, Tree, lay_out

_KINDS: dict[str, Any] = {
    r"runs/[^/]+/spec\.json": Spec,
    r"runs/[^/]+/status\.json": Status,
    r"runs/[^/]+/attempts/\d+/launch\.json": LaunchRecord,
    r"runs/[^/]+/attempts/\d+/exit\.json": ExitRecord,
    r"runs/[^/]+/requests/[^./]+\.ack\.json": Ack,
    r"runs/[^/]+/requests/[^./]+\.json": Request,
}


class _Nobody:
    """The process table after a reboot, as far as a run is concerned."""

    def snapshot(self) -> dict[int, Process]:
        return {}

    def find(self, pid: int) -> Process | None:
        return None


def faults_in(disk: Disk, *, seed: int = 0, samples: int = 6, looks: int = 1) -> Iterator[str]:
    """What is wrong, in any of the states the disk may be left in.

    Args:
        looks: one state in so many is laid out and looked at as a screen would; the records of all are checked.
    """
    judged: set[int] = set()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        for number, outage in enumerate(disk.outages(seed, samples)):
            found = [*_lost(outage), *_torn(outage), *_untrue(outage.tree)]
            mark = hash(frozenset(outage.tree.items()))
            if mark not in judged and number % looks == 0:
                judged.add(mark)
                found += _misread(outage.tree, Path(folder, str(number)))
            yield from (f"cut at {outage.moment}: {text}" for text in found)


def _value(data: bytes | None) -> Any:
    try:
        return storage.load_object(data or b"")
    except storage.UnreadableRecord:
        return None


def _lost(outage: Outage) -> Iterator[str]:
    """Promises that were not kept: the record itself, or one that was written later, must be there."""
    for promise in {promise.name: promise for promise in outage.promises if promise.created}.values():
        if "/." in promise.name or "/reserve" in promise.name:
            continue
        values = outage.begun[promise.name]
        later = values[len(values) - 1 - values[::-1].index(promise.value) :]
        if _value(outage.tree.get(promise.name)) not in later:
            yield f"{promise.name} was promised and is lost"


def _torn(outage: Outage) -> Iterator[str]:
    """Records that hold what nobody wrote."""
    for name, data in outage.tree.items():
        kind = next((kind for pattern, kind in _KINDS.items() if re.fullmatch(pattern, name)), None)
        if data is None or (kind is None and not re.fullmatch(r"queue/[^./]+\.json", name)):
            continue
        value = _value(data)
        if value is None or value not in outage.begun.get(name, [value]):
            yield f"{name} holds {data[:40]!r}"
        elif kind is not None:
            storage.from_json(kind, value)


def _untrue(tree: Tree) -> Iterator[str]:
    """Records that tell of something of which another record must be there, and is not."""
    for name, data in tree.items():
        value = _value(data) if name.endswith(".json") else None
        if value is None:
            continue
        run = "/".join(name.split("/")[:2])
        if name.endswith(".ack.json") and value["ok"]:
            asked = _value(tree.get(name.replace(".ack.json", ".json"))) or {}
            number = asked.get("attempt", 1)
            ended = asked.get("action") in ("stop", "kill", "restart")
            if ended and f"{run}/attempts/{number}/exit.json" not in tree:
                yield f"{asked['action']} is answered, and attempt {number} has no exit record"
            if asked.get("action") == "restart" and f"{run}/attempts/{number + 1}/launch.json" not in tree:
                yield f"a restart is answered, and attempt {number + 1} has no launch record"
        if name == f"{run}/status.json":
            attempt = f"{run}/attempts/{value['attempt']}"
            needs = {"running": f"{attempt}/launch.json", "ended": f"{attempt}/exit.json"}.get(value["phase"], name)
            if needs not in tree:
                yield f"{value['phase']} without {needs}"


def _misread(tree: Tree, root: Path) -> Iterator[str]:
    """The same through the eyes of whoever looks after the reboot."""
    lay_out(tree, root)
    for run in run_dirs(root / "runs"):
        reader = WitnessReader(run, LocalMachine(_Nobody(), "another boot"))
        reader.poll()
        state = reader.judge(None).state
        ended = reader.exit.value
        if state in (State.FINISHED, State.FAILED) and (
            ended is None or (ended.code == 0) != (state is State.FINISHED)
        ):
            yield f"{state} although the exit record is {ended}"
        if state.active and state not in (State.STARTING, State.QUEUED, State.BACKING_OFF):
            yield f"{state} after a reboot"
        if state is State.UNREADABLE and reader.spec.value is not None:
            yield f"unreadable: {reader.verdict.reason}"
        if any(run.ack(request.id).exists() for request in rundir.unanswered(run)):
            yield "an answered request is handed out again"
