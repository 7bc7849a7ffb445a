"""How an arriving run continues here: its launch, planned for this machine, and the records that say so."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...wire import storage
from ...wire.moves import Move
from ...wire.records import Status
from ...wire.rundir import RunDir, event
from ..engines.engine import LOCAL
from ..launching.choice import LaunchChoice
from ..launching.devices import accelerator
from ..launching.editing import recorded_choice
from ..launching.launch import spec_json
from ..launching.planning import LaunchPlan, plan
from ..machine import this_machine
from ..model.errors import OperationError, UsageError
from ..model.home import Home
from .parcel import HINT
from .relocation import Places, relocated

_ITS_OWN = ("run", "name", "created", "by", "profile", "profile_path", "branch")
"""Fields of a run's record that move with it; a profile's secrets are found again if its file is there."""


def plan_here(asked: Mapping[str, Any], cwd: Path, home: Home, environ: Mapping[str, str]) -> LaunchPlan:
    """Plan the launch on the device that was asked for, or else on the best one that the run can use.

    Args:
        asked: ``launch``, ``places``, ``run``; ``device``, ``on`` and ``job`` if they were asked for; ``cwd`` once the
            code is there, so that what must exist can be checked.
        cwd: the folder that it runs in.

    Raises:
        UsageError, OperationError: it cannot be started here.
    """
    machine = this_machine()
    places = Places([(str(old), str(Path(new).expanduser())) for old, new in asked["places"]])
    choice = _as_before(relocated(asked["launch"], cwd, places), RunDir(home.runs / str(asked["run"])))
    if asked.get("on"):
        choice = replace(choice, on=str(asked["on"]), job=dict(asked.get("job") or {}))
    check = bool(asked["cwd"])
    if asked.get("device"):
        return plan(replace(choice, device=str(asked["device"])), environ=environ, machine=machine, check=check)
    # Nobody here knows what a scheduler's nodes have.
    best = "auto" if choice.on not in (None, LOCAL) else accelerator("auto", environ, machine)
    with suppress(UsageError):
        return plan(replace(choice, device=best), environ=environ, machine=machine, check=check)
    return plan(replace(choice, device=None), environ=environ, machine=machine, check=check)


def _as_before(choice: LaunchChoice, run: RunDir) -> LaunchChoice:
    """Use the interpreter that the run had when it was last here."""
    if not run.moved.exists():
        return choice
    with suppress(OperationError):  # its record can no longer be read
        before, (first, *rest) = recorded_choice(run).profile, choice.profile.command
        command = (before.command[0] if first == "{python}" else first, *rest)
        return replace(choice, profile=replace(choice.profile, python=before.python, command=command))
    return choice


def write_records(asked: Mapping[str, Any], run: RunDir, made: LaunchPlan, home: Home, now: float) -> None:
    """Turn the records of ``run``, which is not in its place yet, into this machine's; ``arrived`` is written last.

    Args:
        asked: ``token``, ``from``, ``attempt``, and ``ahead``: seconds by which this clock is ahead of the records'.

    Raises:
        OperationError: the run's own record did not arrive. OSError: the disk is full.
    """
    attempt, origin = int(asked["attempt"]), str(asked["from"])
    before, last = storage.read_json(run.spec), storage.read_or_none(Status, run.status)
    if before is None:
        raise OperationError(f"spec.json of {run.run} did not arrive", HINT)
    spec = spec_json(made, run, now, home)
    spec |= {name: before[name] for name in _ITS_OWN if name in before}
    spec["secret_env"] = sorted({*spec["secret_env"], *before.get("secret_env", ())})
    place, then = str(home.runs / run.run), (before.get("origin") or {}).get("folder")
    if spec["branch"] and then:  # the checkpoint that it began from may have been copied into its own folder
        moved = Places([(then, place)]).moved(spec["branch"]["checkpoint"])
        spec["branch"] = {**spec["branch"], "checkpoint": moved}
    spec["origin"] = {**spec["origin"], "folder": place}
    storage.write_json(run.spec, spec)
    status = Status(run.run, "ended", attempt, now, restarts=last.restarts if last is not None else [])
    storage.write_json(run.status, storage.to_json(status))
    if ahead := float(asked.get("ahead", 0.0)):
        _tell_in_our_time(run, ahead)
    storage.append_line(run.events, event(now, attempt, "moved", f"arrived from {origin}"))
    move = Move(str(asked["token"]), origin, now, attempt, made.device)
    storage.write_json(run.arrived, storage.to_json(move), durable=True)


def _tell_in_our_time(run: RunDir, ahead: float) -> None:
    """Convert the times in its records to this clock: they tell its checkpoints from those of other runs."""
    for number in run.attempt_numbers():
        for path in (run.attempt(number).launch, run.attempt(number).exit):
            if (record := storage.read_json(path)) is not None:
                storage.write_json(path, _later(record, ahead))
    for path in (run.metrics, run.events):
        if not path.exists():
            continue
        times, fresh = path.stat(), path.with_name(f".{path.name}.new")
        with storage.open_file(path) as lines, storage.create_file(fresh) as out:
            for line in lines:
                with suppress(storage.UnreadableRecord):
                    line = storage.dump_bytes(_later(storage.load_object(line), ahead))
                out.write(line)
        os.utime(fresh, ns=(times.st_mtime_ns,) * 2)
        fresh.replace(path)


def _later(record: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    moments = {name: record[name] for name in ("time", "started", "ended") if isinstance(record.get(name), float | int)}
    return {**record, **{name: moment + seconds for name, moment in moments.items()}}
