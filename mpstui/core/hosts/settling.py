"""A run that arrives from another machine: put together apart, taken over in one step, and then started.

What arrives lies in a folder of its own that no list shows, so that it may arrive in parts and again. Only after the
other machine has given the run away is it renamed into its place and started; both may be asked for again.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...wire import storage
from ...wire.moves import Move
from ...wire.records import Spec, Status
from ...wire.rundir import RunDir, event
from ..engines.engine import LOCAL
from ..launching.actions import Actions
from ..launching.choice import LaunchChoice
from ..launching.devices import accelerator
from ..launching.planning import LaunchPlan, plan, spec_json
from ..machine import require_disk_space, this_machine
from ..model.errors import OperationError, UsageError
from ..model.home import Home, require_own
from ..runs.monitor import Monitor
from ..runs.waiting import restart_is_wished
from .parcel import BESIDE, HINT, STAYS, Item, digest_of, has, items_of, unpack
from .relocation import Places, relocated
from .talk import Ends


class Arrival:
    """Runs that come to one home."""

    def __init__(self, home: Home, environ: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self._home, self._environ, self._clock = home, dict(environ), clock

    def answers(self) -> dict[str, Callable[[dict[str, Any], Ends], Mapping[str, Any]]]:
        """What :func:`.talk.serve` answers with."""
        return {
            "expect": lambda asked, ends: self.expect(asked),
            "lacks": lambda asked, ends: self.lacks(asked),
            "settle": lambda asked, ends: self.settle(asked, ends),
            "accept": lambda asked, ends: self.accept(str(asked["run"]), str(asked["token"])),
        }

    def expect(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Whether a run could be taken over; changes nothing.

        Raises:
            OperationError, UsageError: why not.
        """
        self._require_free(str(asked["run"]))
        require_disk_space(self._home.state, int(asked.get("bytes", 0)))
        made = self._plan(asked, Path.home())
        return {"device": made.device, "warnings": list(made.warnings)}

    def lacks(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Digests of the files that are not here, from an earlier try or from when the run was here."""
        places = self._at_hand(asked)
        return {"lacking": sorted({one.digest for one in items_of(asked)} - places.keys())}

    def settle(self, asked: Mapping[str, Any], ends: Ends) -> dict[str, Any]:
        """Put the run together, apart from all others.

        Raises:
            OperationError, UsageError: it did not arrive whole, or cannot be started here.
        """
        name = str(asked["run"])
        self._require_free(name)
        require_own(self._home)
        stage = self._stage(name)
        try:
            storage.make_private_folder(stage)
            unpack(ends.receiving(), stage / "new")
            self._put_together(asked, RunDir(stage / name))
        except (OSError, tarfile.TarError, EOFError, storage.UnreadableRecord) as error:
            detail = getattr(error, "strerror", None) or str(error)
            raise OperationError(f"run {name} did not arrive in {self._home.runs}: {detail}", HINT) from error
        return {}

    def accept(self, name: str, token: str) -> dict[str, Any]:
        """Take the run over and start it; done already, only say so (``begun``).

        Raises:
            OperationError: nothing of this move is here, or it cannot be started.
        """
        run, stage = RunDir(self._home.runs / name), self._stage(name)
        here = storage.read_or_none(Move, run.arrived)
        if here is None or here.token != token:
            here = storage.read_or_none(Move, RunDir(stage / name).arrived)
            if here is None or here.token != token:
                raise OperationError(f"nothing of the move of {name} is here", "begin the move again")
            if run.path.exists():
                run.path.rename(stage / "earlier")
            (stage / name).rename(run.path)
            storage.sync_folder(self._home.runs)
        shutil.rmtree(stage, ignore_errors=True)
        snapshot = Monitor(self._home).snapshot(name)
        begun = snapshot.state.active or snapshot.attempt > here.attempt or restart_is_wished(run)
        if not begun:
            Actions(self._environ, self._clock).restart(snapshot, here.device)
        return {"run": name, "attempt": here.attempt + 1, "begun": begun}

    def _stage(self, name: str) -> Path:
        if "/" in name or name.startswith(".") or not name:
            raise UsageError(f"{name!r} is no run's id")
        return self._home.runs / f".arriving-{name}"

    def _require_free(self, name: str) -> None:
        """Its place may be taken only by itself, from before it moved away."""
        self._stage(name)
        run = RunDir(self._home.runs / name)
        if run.path.exists() and not run.moved.exists():
            raise OperationError(f"there is a run {name} already", "a run is moved to where it is not")

    def _at_hand(self, asked: Mapping[str, Any]) -> dict[str, Path]:
        """Where files of a run are already, by digest."""
        name = str(asked["run"])
        new, earlier = self._stage(name) / "new", self._home.runs / name
        found: dict[str, Path] = {}
        for one in items_of(asked):
            if (new / one.digest).is_file():
                found[one.digest] = new / one.digest
            elif has(earlier, one):
                found[one.digest] = earlier / one.name
        return found

    def _put_together(self, asked: Mapping[str, Any], run: RunDir) -> None:
        shutil.rmtree(run.path, ignore_errors=True)
        cwd, times = Path(asked["cwd"]) if asked["cwd"] else Path.home(), dict(asked["times"])
        made, at_hand = self._plan(asked, cwd), self._at_hand(asked)
        storage.make_private_folder(run.path)
        for one in items_of(asked):
            if one.name.split("/")[0] in STAYS or one.name not in times:
                raise OperationError(f"the list of files cannot be used: {one.name[:80]!r}", HINT)
            beside = one.name.startswith(f"{BESIDE}/")
            path = cwd / one.name.removeprefix(f"{BESIDE}/") if beside else run.path / one.name
            if beside and path.exists() and digest_of(path)[0] != one.digest:
                raise OperationError(f"{path} is there already, and is another file", "move it away")
            source = at_hand.get(one.digest)
            if source is None or not _copied(source, path, one):
                raise OperationError(f"{one.name} did not arrive whole", HINT)
            os.utime(path, ns=(int(times[one.name]),) * 2)  # the newest checkpoint is told by its time
        storage.make_private_folder(run.requests)
        run.job.unlink(missing_ok=True)  # of another machine's scheduler
        self._write_records(asked, run, made)

    def _write_records(self, asked: Mapping[str, Any], run: RunDir, made: LaunchPlan) -> None:
        """The records that say where and how it goes on: those of this machine."""
        now, attempt = self._clock(), int(asked["attempt"])
        before = storage.read(Spec, run.spec)
        if before is None:
            raise OperationError(f"spec.json of {asked['run']} did not arrive", HINT)
        spec = spec_json(made, run, now, self._home)
        place = self._home.runs / str(asked["run"])
        spec |= {"run": before.run, "name": before.name, "created": before.created, "by": before.by}
        spec["origin"] = {**spec["origin"], "folder": str(place)}
        storage.write_json(run.spec, spec)
        status = Status(before.run, "ended", attempt, now)
        storage.write_json(run.status, storage.to_json(status))
        origin, device = str(asked["from"]), made.device
        storage.append_line(run.events, event(now, attempt, "moved", f"arrived from {origin}"))
        move = Move(str(asked["token"]), origin, now, attempt, device)
        storage.write_json(run.arrived, storage.to_json(move), durable=True)

    def _plan(self, asked: Mapping[str, Any], cwd: Path) -> LaunchPlan:
        """The launch as it is made here: on the device that was asked for, else on the best one that it can use."""
        machine = this_machine()
        places = Places([(str(old), str(Path(new).expanduser())) for old, new in asked["places"]])
        choice: LaunchChoice = relocated(asked["launch"], cwd, places)
        if asked.get("on"):
            choice = replace(choice, on=str(asked["on"]), job=dict(asked.get("job") or {}))
        check = bool(asked["cwd"])
        if asked.get("device"):
            return plan(
                replace(choice, device=str(asked["device"])), environ=self._environ, machine=machine, check=check
            )
        # Of a scheduler's job nobody here knows what its nodes have.
        best = "auto" if choice.on not in (None, LOCAL) else accelerator("auto", self._environ, machine)
        with suppress(UsageError):
            return plan(replace(choice, device=best), environ=self._environ, machine=machine, check=check)
        return plan(replace(choice, device=None), environ=self._environ, machine=machine, check=check)


def _copied(source: Path, path: Path, one: Item) -> bool:
    """Whether it is what it should be, after the copy."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(source, path)
    path.chmod(0o600)
    with storage.open_file(path) as file:
        storage.flush_to_disk(file.fileno(), drive_cache=False)
    return digest_of(path)[0] == one.digest
