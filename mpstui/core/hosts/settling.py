"""A run that arrives from another machine: assembled apart from all others, taken over in one step, then started.

What arrives is kept in a folder of its own that no list shows, so that it may arrive in parts and repeatedly. Only
after the other machine has handed the run over is it renamed into its place and started; both may be requested again.

============ =========================================================================================
``new/``     received files, named by their digests, the last one perhaps in part: a next try need not send them again
``RUN/``     the assembled run; once it holds ``arrived.json`` it waits for the other machine's decision.
             Checkpoints that belong in the training's working folder are below ``.cwd/``
``earlier/`` the run as it was here before it moved away, on its way out
============ =========================================================================================
"""

from __future__ import annotations

import os
import shutil
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from platform import node
from typing import Any

from ...wire import liveness, storage
from ...wire.moves import Leaving, Move, MoveStep
from ...wire.records import Spec
from ...wire.rundir import RunDir
from ..launching.actions import Actions
from ..machine import require_disk_space
from ..model.errors import OperationError, UsageError
from ..model.home import Home, require_own
from ..runs.waiting import restart_is_wished
from .continuing import plan_here, write_records
from .marking import Mark, await_begin, unmoved
from .parcel import BESIDE, HINT, PART, STAYS, Item, begun_in, below, digest_of, has, items_of, unpack
from .staging import is_taken, remove_abandoned, run_stage, take
from .talk import Ends

ACCEPT_SECONDS = 20.0
"""How long the far end of a cut line may take to notice the cut, and to release what arrived over it."""


class Arrival:
    """Takes in runs that arrive in one home over one line, one at a time."""

    def __init__(self, home: Home, environ: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self._home, self._environ, self._clock = home, dict(environ), clock
        self._taken: tuple[str, int] | None = None
        """The arriving run, and the lock of its folder."""

    def answers(self) -> dict[str, Callable[[dict[str, Any], Ends], Mapping[str, Any]]]:
        """The answers for :func:`.talk.serve`."""
        return {
            "expect": lambda asked, ends: self.expect(asked),
            "lacks": lambda asked, ends: self.lacks(asked),
            "settle": lambda asked, ends: self.settle(asked, ends),
            "forget": lambda asked, ends: self.forget(str(asked["run"])),
            "accept": lambda asked, ends: self.accept(str(asked["run"]), str(asked["token"])),
        }

    def expect(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Check if a run could be taken over; change nothing, but remove leftovers of moves that nobody will finish.

        Raises:
            OperationError, UsageError: why not.
        """
        remove_abandoned(self._home)
        name = str(asked["run"])
        self._require_free(name)
        if is_taken(self._stage(name)):
            raise _is_arriving(name)
        require_disk_space(self._home.state, int(asked.get("bytes", 0)))
        made = plan_here(asked, Path.home(), self._home, self._environ)
        return {"device": made.device, "warnings": list(made.warnings)}

    def lacks(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Digests of the files that nothing left by earlier attempts or stays can provide, and our time.

        Args:
            asked: ``patience``: seconds to wait for the far end of a broken line, which holds what arrived over it.

        Raises:
            OperationError: the run is already arriving over another line.
        """
        name = str(asked["run"])
        self._take(name, float(asked.get("patience", 0.0)))
        wanted, new = {one.digest for one in items_of(asked)}, self._stage(name) / "new"
        for path in below(new):
            if path.name.removeprefix(PART) not in wanted:  # from an earlier attempt: the run has saved again since
                path.unlink(missing_ok=True)
        lacking = wanted - self._at_hand(asked).keys()
        return {"lacking": sorted(lacking), "begun": begun_in(new), "now": self._clock()}

    def settle(self, asked: Mapping[str, Any], ends: Ends) -> dict[str, Any]:
        """Assemble the run, apart from all others.

        Raises:
            OperationError, UsageError: it did not arrive completely, or cannot be started here.
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
        """The run stays where it was: what arrived is not a run, and only useful for the next attempt."""
        if self._stage(name).exists():
            self._take(name)
            RunDir(self._stage(name) / name).arrived.unlink(missing_ok=True)
            self.close()
        return {}

    def accept(self, name: str, token: str) -> dict[str, Any]:
        """Take the run over and start it; if that was done already, only say so (``begun``).

        Raises:
            OperationError: nothing of this move is here, or it cannot be started.
        """
        self._take(name, ACCEPT_SECONDS)
        run, stage = RunDir(self._home.runs / name), self._stage(name)
        try:
            found = ((one, storage.read_or_none(Move, one.arrived)) for one in (run, RunDir(stage / name)))
            place, here = next(((one, move) for one, move in found if move and move.token == token), (run, None))
            if here is None:
                raise OperationError(f"nothing of the move of {name} is here", "begin the move again")
            with self._marked(place, run):
                if place != run:
                    self._take_over(run, stage)
                try:
                    begun = self._begin(run, here)
                finally:
                    shutil.rmtree(stage, ignore_errors=True)
        finally:
            self.close()
        return {"run": name, "attempt": here.attempt + 1, "begun": begun}

    @contextmanager
    def _marked(self, place: RunDir, run: RunDir) -> Iterator[None]:
        """Mark the run as about to begin while it is visible but not started; the mark moves with its folder."""
        mark = None
        with suppress(OperationError):  # on a full disk it looks stopped for a moment
            mark = Mark(place, Leaving(node(), MoveStep.ARRIVE, self._clock()))
        try:
            yield
        finally:
            if mark is not None:
                mark.run = run
                mark.release()

    def close(self) -> None:
        """Release the arriving run."""
        if self._taken is not None:
            liveness.release(self._taken[1])
            self._taken = None

    def _begin(self, run: RunDir, move: Move) -> bool:
        """Start the run unless somebody has done so; return True if somebody had."""
        snapshot, actions = unmoved(run), Actions(self._environ, self._clock)
        if snapshot.state.active or snapshot.attempt > move.attempt:
            return True
        if restart_is_wished(run):  # by an earlier call, which died before anybody could handle it
            actions.supervise(run)
            return True
        await_begin(actions, snapshot, actions.restart(snapshot, move.device))
        return False

    def _take_over(self, run: RunDir, stage: Path) -> None:
        """Put everything in its place; an earlier, interrupted call may have begun to."""
        self._require_free(run.run)
        new, spec = stage / run.run, storage.read(Spec, RunDir(stage / run.run).spec)
        if spec is not None and (new / BESIDE).exists():
            folders = {path: path.stat() for path in (new / BESIDE).rglob("*") if path.is_dir()}
            for path in below(new / BESIDE):
                _into_place(path, Path(spec.launch.cwd) / path.relative_to(new / BESIDE))
            for path, found in folders.items():
                os.utime(Path(spec.launch.cwd) / path.relative_to(new / BESIDE), ns=(found.st_mtime_ns,) * 2)
            shutil.rmtree(new / BESIDE)
        if run.path.exists():
            run.path.rename(stage / "earlier")
        for path in below(stage / "earlier"):  # checkpoints that were not sent, and what belongs to this machine
            where = path.relative_to(stage / "earlier")
            there = storage.stat_of(new / where)
            if there is None:
                is_kept = not _is_passing(where)
            else:  # labels may have been changed meanwhile, here or there
                is_kept = where.name == run.labels.name and path.stat().st_mtime > there.st_mtime
            if is_kept:
                _into_place(path, new / where)
        new.rename(run.path)
        storage.sync_folder(self._home.runs)

    def _take(self, name: str, patience: float = 0.0) -> None:
        """Claim the arriving run for this line.

        Raises:
            OperationError: another line has it.
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
        """Check that the run's place is free, or holds only the same run from before it moved away."""
        self._stage(name)
        run = RunDir(self._home.runs / name)
        if run.path.exists() and not run.moved.exists():
            raise OperationError(f"there is a run {name} already", "a run is moved to where it is not")

    def _at_hand(self, asked: Mapping[str, Any]) -> dict[str, Path]:
        """Paths of the run's files that are here already, by digest."""
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
            if has(run.path, one):  # from an earlier attempt
                (run.path / one.name).rename(new / one.digest)
        shutil.rmtree(run.path, ignore_errors=True)
        made = plan_here(asked, cwd, self._home, self._environ)
        at_hand, left = self._at_hand(asked), Counter(one.digest for one in items)
        storage.make_private_folder(run.path)
        for one in items:
            source, path = at_hand.get(one.digest), run.path / one.name
            left[one.digest] -= 1
            if source is None or not _put(source, path, one, moves=source.parent == new and not left[one.digest]):
                raise OperationError(f"{one.name} did not arrive whole", HINT)
            moment = int(times[one.name]) + round(ahead * 1e9)
            os.utime(path, ns=(moment, moment))  # the newest checkpoint is recognised by its time
        _tell_times_of_folders(run.path)
        storage.make_private_folder(run.requests)
        run.job.unlink(missing_ok=True)  # it belongs to another machine's scheduler
        write_records(asked, run, made, self._home, self._clock())
        shutil.rmtree(new, ignore_errors=True)

    def _require_place(self, path: Path, cwd: Path, one: Item, name: str) -> None:
        """A checkpoint beside the run may only replace its own earlier file, from when the run was here before."""
        if not path.exists() or digest_of(path)[0] == one.digest:
            return
        before = storage.read_or_none(Spec, RunDir(self._home.runs / name).spec)
        if before is None or before.launch.cwd != str(cwd):
            raise OperationError(f"{path} is there already, and is another file", "move it away")


def _is_arriving(name: str) -> OperationError:
    return OperationError(
        f"{name} is just arriving there", "somebody else moves it; try again in a moment", field="held"
    )


def _tell_times_of_folders(top: Path) -> None:
    """Give each folder the time of its newest file: a checkpoint may be a folder."""
    for base, folders, names in os.walk(top, topdown=False):
        if folders or names:
            newest = max(Path(base, name).lstat().st_mtime_ns for name in (*folders, *names))
            os.utime(base, ns=(newest, newest))


def _is_passing(where: Path) -> bool:
    """True if a file of a run's earlier stay here is of no use any more."""
    if where.parts[0] == "requests" or where.name == "stack_signal":
        return True
    is_record = len(where.parts) == 1 and where.name.startswith(
        (".", "reserve", "moving.", "moved.", "arrived.", "job.")
    )
    return is_record or (where.suffix == ".lock" and (len(where.parts) == 1 or where.parts[0] == "attempts"))


def _into_place(path: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.move(path, target)


def _put(source: Path, path: Path, one: Item, *, moves: bool) -> bool:
    """Move or copy a file to its place; return True if it is intact. One that has just arrived was checked then."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if moves:
        source.rename(path)
        return True
    shutil.copyfile(source, path)
    path.chmod(0o600)
    with storage.open_file(path) as file:
        storage.flush_to_disk(file.fileno(), drive_cache=False)
    return digest_of(path)[0] == one.digest
