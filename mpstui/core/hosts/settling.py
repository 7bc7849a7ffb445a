"""A run that arrives from another machine: put together apart, taken over in one step, and then started.

What arrives lies in a folder of its own that no list shows, so that it may arrive in parts and again. Only after the
other machine has given the run away is it renamed into its place and started; both may be asked for again.

============ =========================================================================================
``new/``     files by their digests, as they came: what a next try need not send again
``RUN/``     the run put together; with ``arrived.json`` in it it waits for the other machine's decision.
             Checkpoints that belong into the training's working folder are below ``.cwd/``
``earlier/`` the run as it was here before it moved away, on its way out
============ =========================================================================================
"""

from __future__ import annotations

import os
import shutil
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...wire import liveness, storage
from ...wire.moves import Move
from ...wire.records import Spec, Status
from ...wire.rundir import RunDir, event
from ..engines.engine import LOCAL
from ..launching.actions import Actions
from ..launching.choice import LaunchChoice
from ..launching.devices import accelerator
from ..launching.editing import recorded_choice
from ..launching.planning import LaunchPlan, plan, spec_json
from ..machine import require_disk_space, this_machine
from ..model.errors import OperationError, UsageError
from ..model.home import Home, require_own
from ..runs.monitor import Monitor
from ..runs.waiting import restart_is_wished
from .parcel import BESIDE, HINT, STAYS, Item, below, digest_of, has, items_of, unpack
from .relocation import Places, relocated
from .staging import is_taken, remove_abandoned, run_stage, take
from .talk import Ends

ACCEPT_SECONDS = 20.0
"""What the far end of a line that was cut may take to see that, and to let go of what arrived over it."""

_ITS_OWN = ("run", "name", "created", "by", "profile", "profile_path", "branch")
"""What a run's record keeps wherever it is; secrets of a profile are found again where its file is."""


class Arrival:
    """Runs that come to one home over one line, one at a time."""

    def __init__(self, home: Home, environ: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self._home, self._environ, self._clock = home, dict(environ), clock
        self._taken: tuple[str, int] | None = None
        """The run that arrives, and the lock of its folder."""

    def answers(self) -> dict[str, Callable[[dict[str, Any], Ends], Mapping[str, Any]]]:
        """What :func:`.talk.serve` answers with."""
        return {
            "expect": lambda asked, ends: self.expect(asked),
            "lacks": lambda asked, ends: self.lacks(asked),
            "settle": lambda asked, ends: self.settle(asked, ends),
            "forget": lambda asked, ends: self.forget(str(asked["run"])),
            "accept": lambda asked, ends: self.accept(str(asked["run"]), str(asked["token"])),
        }

    def expect(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Whether a run could be taken over; changes nothing, but for what moves left that nobody will finish.

        Raises:
            OperationError, UsageError: why not.
        """
        remove_abandoned(self._home)
        name = str(asked["run"])
        self._require_free(name)
        if is_taken(self._stage(name)):
            raise _is_arriving(name)
        require_disk_space(self._home.state, int(asked.get("bytes", 0)))
        made = self._plan(asked, Path.home())
        return {"device": made.device, "warnings": list(made.warnings)}

    def lacks(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Digests of the files that are not here, from an earlier try or from when the run was here; and our time.

        Raises:
            OperationError: the run is just arriving over another line.
        """
        self._take(str(asked["run"]))
        places = self._at_hand(asked)
        lacking = sorted({one.digest for one in items_of(asked)} - places.keys())
        return {"lacking": lacking, "now": self._clock()}

    def settle(self, asked: Mapping[str, Any], ends: Ends) -> dict[str, Any]:
        """Put the run together, apart from all others.

        Raises:
            OperationError, UsageError: it did not arrive whole, or cannot be started here.
        """
        name = str(asked["run"])
        self._require_free(name)
        require_own(self._home)
        self._take(name)
        stage = self._stage(name)
        try:
            unpack(ends.receiving(), stage / "new")
            self._put_together(asked, stage)
        except (OSError, tarfile.TarError, EOFError, storage.UnreadableRecord) as error:
            detail = getattr(error, "strerror", None) or str(error)
            raise OperationError(f"run {name} did not arrive in {self._home.runs}: {detail}", HINT) from error
        return {}

    def forget(self, name: str) -> dict[str, Any]:
        """It stays where it was: what arrived is no run, and of use for the next try alone."""
        if self._stage(name).exists():
            self._take(name)
            RunDir(self._stage(name) / name).arrived.unlink(missing_ok=True)
            self.close()
        return {}

    def accept(self, name: str, token: str) -> dict[str, Any]:
        """Take the run over and start it; done already, only say so (``begun``).

        Raises:
            OperationError: nothing of this move is here, or it cannot be started.
        """
        self._take(name, ACCEPT_SECONDS)
        run, stage = RunDir(self._home.runs / name), self._stage(name)
        try:
            here = storage.read_or_none(Move, run.arrived)
            if here is None or here.token != token:
                here = storage.read_or_none(Move, RunDir(stage / name).arrived)
                if here is None or here.token != token:
                    raise OperationError(f"nothing of the move of {name} is here", "begin the move again")
                self._take_over(run, stage)
            try:
                begun = self._begin(run, here)
            finally:
                shutil.rmtree(stage, ignore_errors=True)
        finally:
            self.close()
        return {"run": name, "attempt": here.attempt + 1, "begun": begun}

    def close(self) -> None:
        """Let go of the run that arrives."""
        if self._taken is not None:
            liveness.release(self._taken[1])
            self._taken = None

    def _begin(self, run: RunDir, move: Move) -> bool:
        """Start the run where nobody has done so; whether somebody had."""
        snapshot, actions = Monitor(self._home).snapshot(run.run), Actions(self._environ, self._clock)
        if snapshot.state.active or snapshot.attempt > move.attempt:
            return True
        if restart_is_wished(run):  # by whoever asked first, and died before anybody could see to it
            actions.supervise(run)
            return True
        actions.restart(snapshot, move.device)
        return False

    def _take_over(self, run: RunDir, stage: Path) -> None:
        """Put everything into its place; may have been begun before."""
        self._require_free(run.run)
        new, spec = stage / run.run, storage.read(Spec, RunDir(stage / run.run).spec)
        if spec is not None and (new / BESIDE).exists():
            for path in below(new / BESIDE):
                _into_place(path, Path(spec.launch.cwd) / path.relative_to(new / BESIDE))
            shutil.rmtree(new / BESIDE)
        if run.path.exists():
            run.path.rename(stage / "earlier")
        for path in below(stage / "earlier"):  # checkpoints that did not travel, and what belongs to this machine
            where = path.relative_to(stage / "earlier")
            if not (new / where).exists() and not _is_passing(where):
                _into_place(path, new / where)
        new.rename(run.path)
        storage.sync_folder(self._home.runs)

    def _take(self, name: str, patience: float = 0.0) -> None:
        """Become the one over whose line the run arrives.

        Raises:
            OperationError: another one is.
        """
        if self._taken is not None and self._taken[0] == name:
            return
        self.close()
        try:
            lock = take(self._stage(name), patience)
        except OSError as error:
            raise OperationError(f"no run can arrive in {self._home.runs}: {error.strerror}") from error
        if lock is None:
            raise _is_arriving(name)
        self._taken = name, lock

    def _stage(self, name: str) -> Path:
        if "/" in name or name.startswith(".") or not name:
            raise UsageError(f"{name!r} is no run's id")
        return run_stage(self._home, name)

    def _require_free(self, name: str) -> None:
        """Its place may be taken only by itself, from before it moved away."""
        self._stage(name)
        run = RunDir(self._home.runs / name)
        if run.path.exists() and not run.moved.exists():
            raise OperationError(f"there is a run {name} already", "a run is moved to where it is not")

    def _at_hand(self, asked: Mapping[str, Any]) -> dict[str, Path]:
        """Where files of a run are already, by digest."""
        name = str(asked["run"])
        stage, found = self._stage(name), dict[str, Path]()
        for one in items_of(asked):
            places = (stage / name, self._home.runs / name)
            if (stage / "new" / one.digest).is_file():
                found[one.digest] = stage / "new" / one.digest
            elif (place := next((place for place in places if has(place, one)), None)) is not None:
                found[one.digest] = place / one.name
        return found

    def _put_together(self, asked: Mapping[str, Any], stage: Path) -> None:
        run, times, new = RunDir(stage / str(asked["run"])), dict(asked["times"]), stage / "new"
        cwd, ahead = Path(asked["cwd"]) if asked["cwd"] else Path.home(), float(asked.get("ahead", 0.0))
        items = items_of(asked)
        for one in items:
            if one.name.split("/")[0] in STAYS or one.name not in times:
                raise OperationError(f"the list of files cannot be used: {one.name[:80]!r}", HINT)
            if one.name.startswith(f"{BESIDE}/"):
                self._require_place(cwd / one.name.removeprefix(f"{BESIDE}/"), cwd, one, run.run)
            if has(run.path, one):  # of an earlier try
                (run.path / one.name).rename(new / one.digest)
        shutil.rmtree(run.path, ignore_errors=True)
        made, at_hand, left = self._plan(asked, cwd), self._at_hand(asked), Counter(one.digest for one in items)
        storage.make_private_folder(run.path)
        for one in items:
            source, path = at_hand.get(one.digest), run.path / one.name
            left[one.digest] -= 1
            if source is None or not _put(source, path, one, moves=source.parent == new and not left[one.digest]):
                raise OperationError(f"{one.name} did not arrive whole", HINT)
            os.utime(
                path, ns=(int(times[one.name]) + round(ahead * 1e9),) * 2
            )  # the newest checkpoint is told by its time
        storage.make_private_folder(run.requests)
        run.job.unlink(missing_ok=True)  # of another machine's scheduler
        self._write_records(asked, run, made)
        shutil.rmtree(new, ignore_errors=True)

    def _require_place(self, path: Path, cwd: Path, one: Item, name: str) -> None:
        """A checkpoint beside the run takes the place of no file but its own, from when the run was here before."""
        if not path.exists() or digest_of(path)[0] == one.digest:
            return
        before = storage.read_or_none(Spec, RunDir(self._home.runs / name).spec)
        if before is None or before.launch.cwd != str(cwd):
            raise OperationError(f"{path} is there already, and is another file", "move it away")

    def _write_records(self, asked: Mapping[str, Any], run: RunDir, made: LaunchPlan) -> None:
        """The records that say where and how it goes on: those of this machine."""
        now, attempt = self._clock(), int(asked["attempt"])
        before, last = storage.read_json(run.spec), storage.read_or_none(Status, run.status)
        if before is None:
            raise OperationError(f"spec.json of {asked['run']} did not arrive", HINT)
        spec = spec_json(made, run, now, self._home)
        spec |= {name: before[name] for name in _ITS_OWN if name in before}
        spec["secret_env"] = sorted({*spec["secret_env"], *before.get("secret_env", ())})
        spec["origin"] = {**spec["origin"], "folder": str(self._home.runs / run.run)}
        storage.write_json(run.spec, spec)
        status = Status(run.run, "ended", attempt, now, restarts=last.restarts if last is not None else [])
        storage.write_json(run.status, storage.to_json(status))
        if ahead := float(asked.get("ahead", 0.0)):
            _tell_in_our_time(run, ahead)
        origin, device = str(asked["from"]), made.device
        storage.append_line(run.events, event(now, attempt, "moved", f"arrived from {origin}"))
        move = Move(str(asked["token"]), origin, now, attempt, device)
        storage.write_json(run.arrived, storage.to_json(move), durable=True)

    def _plan(self, asked: Mapping[str, Any], cwd: Path) -> LaunchPlan:
        """The launch as it is made here: on the device that was asked for, else on the best one that it can use."""
        machine = this_machine()
        places = Places([(str(old), str(Path(new).expanduser())) for old, new in asked["places"]])
        choice = self._as_before(relocated(asked["launch"], cwd, places), str(asked.get("run", "-")))
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

    def _as_before(self, choice: LaunchChoice, name: str) -> LaunchChoice:
        """With the interpreter that the run had when it was here."""
        run = RunDir(self._home.runs / name)
        if not run.moved.exists():
            return choice
        with suppress(OperationError):  # its record cannot be read any more
            before, (first, *rest) = recorded_choice(run).profile, choice.profile.command
            command = (before.command[0] if first == "{python}" else first, *rest)
            return replace(choice, profile=replace(choice.profile, python=before.python, command=command))
        return choice


def _is_arriving(name: str) -> OperationError:
    return OperationError(
        f"{name} is just arriving there", "somebody else moves it; try again in a moment", field="held"
    )


def _tell_in_our_time(run: RunDir, ahead: float) -> None:
    """Move the times in its records to this clock: by them a checkpoint is told from those of other runs."""
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


def _is_passing(where: Path) -> bool:
    """Whether a file of a run that was here before meant something then alone."""
    if where.parts[0] == "requests" or where.name == "stack_signal":
        return True
    is_record = len(where.parts) == 1 and where.name.startswith((".", "reserve", "moved.", "arrived.", "job."))
    return is_record or (where.suffix == ".lock" and (len(where.parts) == 1 or where.parts[0] == "attempts"))


def _into_place(path: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.move(path, target)


def _put(source: Path, path: Path, one: Item, *, moves: bool) -> bool:
    """Whether it is what it should be, after the copy; what came just now was looked at when it did."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if moves:
        source.rename(path)
        return True
    shutil.copyfile(source, path)
    path.chmod(0o600)
    with storage.open_file(path) as file:
        storage.flush_to_disk(file.fileno(), drive_cache=False)
    return digest_of(path)[0] == one.digest
