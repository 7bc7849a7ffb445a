"""A run that leaves this machine: it saves and ends, its files are listed, and then it is handed over or kept.

From the run's end to the decision, this process holds its supervisor lock: nobody can start it meanwhile, and if this
process dies, an ended run is left that can continue here. ``moved.json`` is the decision: once it has been written
durably, the run continues only on the machine that it names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...wire import liveness, storage
from ...wire.moves import Leaving, Move, MoveStep
from ...wire.records import Status
from ...wire.rundir import RunDir, event
from ..launching.actions import Actions
from ..launching.editing import recorded_choice
from ..launching.record import RecordedRun, availability, read_run
from ..model.errors import OperationError
from ..model.home import Home
from ..model.snapshot import Checkpoint, RunSnapshot, State
from ..runs.find import find_run
from ..stakes import at_stake, own_checkpoints, saves_when_stopped
from .marking import Mark, await_begin, is_moving, unmoved
from .parcel import BESIDE, STAYS, Item, below, digest_of, pack
from .relocation import choice_message
from .sources import SourceTree, code_of, manifest_of
from .talk import Ends

SAVE_SECONDS = 180.0
END_SECONDS = 600.0
"""How long a training may take to save and to end."""
_POLL_SECONDS = 0.1
_LOCK_POLL_SECONDS = 0.01
"""Short, so that no requested restart gets in between."""


class Departure:
    """Moves runs away from here over one line, one run at a time."""

    def __init__(self, home: Home, environ: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self._home, self._clock = home, clock
        self._actions = Actions(environ, clock)
        self._lock: int | None = None
        """The supervisor's lock."""
        self._mark: Mark | None = None
        self._held: str | None = None
        """The run that has ended, or is about to, for a move."""
        self._was_active = self._was_told_to_end = False
        self._tree: SourceTree | None = None
        self._files: tuple[tuple[Item, Path], ...] = ()

    def answers(self) -> dict[str, Callable[[dict[str, Any], Ends], Mapping[str, Any]]]:
        """The answers for :func:`.talk.serve`."""
        return {
            "survey": lambda asked, ends: self.survey(str(asked["run"])),
            "source": lambda asked, ends: self._send_source(asked, ends),
            "depart": lambda asked, ends: self.depart(str(asked["run"]), str(asked["to"]), ends.require_wanted),
            "clock": lambda asked, ends: {"now": self._clock()},
            "files": lambda asked, ends: self._send_files(asked, ends),
            "leave": lambda asked, ends: self.leave(str(asked["run"]), Move(**asked["move"])),
            "stay": lambda asked, ends: self.stay(str(asked["run"])),
        }

    def survey(self, name: str) -> dict[str, Any]:
        """What there is to move, and what prevents it; changes nothing.

        Raises:
            UsageError: there is no such run.
            OperationError: it cannot be moved.
        """
        run = find_run(self._home, name)
        if (moved := _moved(run)) is not None:
            return {"run": run.run, "moved": moved._asdict()}
        snapshot = unmoved(run)
        if liveness.is_held(run.moving_lock) or (not snapshot.state.active and liveness.is_held(run.supervisor_lock)):
            raise is_moving(run.run)
        recorded = read_run(run)
        self._require_movable(snapshot, recorded)
        choice = recorded_choice(run)
        own = [one.path for one in own_checkpoints(snapshot)]
        self._tree = code_of(choice.profile, self._home, choice.sets, own)
        newest = _newest(snapshot)
        saves = snapshot.state.active and self._can_save(snapshot)
        stake = at_stake(snapshot) if not saves else None
        return {
            "run": run.run,
            "name": snapshot.name,
            "state": snapshot.state.value,
            "active": snapshot.state.active,
            "attempt": snapshot.attempt,
            "step": snapshot.numbers.step if saves or newest is None else newest.step,
            "saves": saves,
            "checkpoint_bytes": newest.size_bytes if newest else None,
            "bytes": sum(path.stat().st_size for _, path in _files(snapshot)),
            "costs": stake.subject if stake else "",
            "launch": choice_message(choice),
            "cwd": str(choice.profile.cwd.resolve()),
            "named": str(choice.profile.cwd),
            "root": str(self._tree.root) if self._tree else "",
            "code": manifest_of(self._tree) if self._tree else None,
            "older": sum(one != newest and not (one.best and one.complete) for one in snapshot.checkpoints),
            "staying": [list(one) for one in self._tree.staying] if self._tree else [],
        }

    def _require_movable(self, snapshot: RunSnapshot, recorded: RecordedRun | None) -> None:
        if recorded is None or not snapshot.is_ours or snapshot.state is State.UNREADABLE:
            raise OperationError(f"{snapshot.name} cannot be moved: its record cannot be read")
        if not snapshot.attempt or snapshot.state is State.QUEUED:
            raise OperationError(
                f"{snapshot.name} has not begun", "take it out of the queue, and launch it there: --on"
            )
        if snapshot.state is State.FINISHED:
            raise OperationError(f"{snapshot.name} has finished: there is nothing left to continue")
        if recorded.template.resume_args is None:
            raise OperationError(
                f"{snapshot.name} cannot be moved: nothing says how it resumes, so it would begin from scratch",
                "give its profile [resume] args (`mpstui run --resume`), or launch it there with --on",
            )
        if not own_checkpoints(snapshot) and not (snapshot.state.active and self._can_save(snapshot)):
            raise OperationError(
                f"{snapshot.name} cannot be moved: it has no complete checkpoint"
                + (" yet" if snapshot.state.active else ""),
                "wait for its first one" if snapshot.state.active else "launch it there with --on",
            )

    def depart(self, name: str, to: str, require_wanted: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Have the run save and end, and list its files; if that fails, it continues here.

        Args:
            require_wanted: called repeatedly; if it raises, the run is left as it is then, for :meth:`stay`.

        Raises:
            OperationError: it did not end, or left no checkpoint.
        """
        run = find_run(self._home, name)
        self._begin(run, to, MoveStep.SAVE)
        snapshot = self._look(run)
        self._was_active, self._held = snapshot.state.active, run.run
        try:
            if self._was_active and not saves_when_stopped(snapshot) and availability(snapshot, "save").ok:
                self._ask(snapshot, "save", SAVE_SECONDS, require_wanted)
            if self._was_active:
                self._tell(MoveStep.END)
                self._was_told_to_end = True
                self._ask(snapshot, "stop", END_SECONDS, require_wanted)
            self._hold(run, snapshot.attempt, require_wanted)
            self._tell(MoveStep.LIST)
            return self._listed(run, to, require_wanted)
        except (OSError, OperationError) as error:
            self._was_told_to_end = False  # if it has not ended by now, do not wait for that again
            self.stay(name)
            if isinstance(error, OperationError):
                raise
            raise OperationError(f"{snapshot.name} is not moved: {error}") from error

    def _begin(self, run: RunDir, to: str, step: str) -> None:
        """Mark the run as moved by us, unless it is already; of several movers, only the first succeeds."""
        if self._mark is not None and self._mark.run == run:
            return self._tell(step)
        self._mark = Mark(run, Leaving(to, step, self._clock()))
        try:
            _require_here(run)
        except OperationError:
            self._release()
            raise

    def _tell(self, step: str) -> None:
        if self._mark is not None:
            self._mark.tell(step)

    def _listed(self, run: RunDir, to: str, meanwhile: Callable[[], None]) -> dict[str, Any]:
        snapshot = self._look(run)
        if self._was_active and snapshot.state is State.FINISHED:
            raise OperationError(f"{snapshot.name} is not moved: it has just finished by itself")
        newest = _newest(snapshot)
        if newest is None:
            raise OperationError(f"{snapshot.name} is not moved: it left no complete checkpoint")
        storage.append_line(run.events, event(self._clock(), snapshot.attempt, "moved", f"leaves for {to}"))
        self._files = tuple((Item(name, *digest_of(path, meanwhile)), path) for name, path in _files(snapshot))
        return {
            "files": [list(one) for one, _ in self._files],
            "times": {one.name: path.stat().st_mtime_ns for one, path in self._files},
            "attempt": snapshot.attempt,
            "step": newest.step,
        }

    def leave(self, name: str, move: Move) -> dict[str, Any]:
        """Hand it over: from now on it may only be started on its new machine.

        Raises:
            OperationError: we do not hold it, so somebody may have started it; or the disk is full, and it is kept.
        """
        run = find_run(self._home, name)
        if self._lock is None or self._held != run.run:
            raise OperationError(f"{run.run} is not about to leave", "begin the move again")
        try:
            storage.write_json(run.moved, storage.to_json(move), durable=True)
        except OSError as error:
            with suppress(OSError):
                run.moved.unlink()  # it may exist without being durable
            raise OperationError(f"{run.moved} cannot be written: {error.strerror}") from error
        self._held, self._was_active, self._was_told_to_end = None, False, False
        self._release()
        return {}

    def stay(self, name: str) -> dict[str, Any]:
        """Keep the run here; continue it if it was running, unless it still runs or has finished by itself."""
        run, was_active, is_ending = find_run(self._home, name), self._was_active, self._was_told_to_end
        self._held, self._was_active, self._was_told_to_end = None, False, False
        deadline = time.monotonic() + END_SECONDS
        self._tell(MoveStep.STAY)
        while is_ending and self._lock is None and self._look(run).state.active:
            if time.monotonic() > deadline:
                raise OperationError(f"{run.run} was asked to end, and has not")
            time.sleep(_POLL_SECONDS)
        self._make_way()
        try:
            snapshot = self._look(run) if was_active and not run.moved.exists() else None
            if snapshot is not None and not (snapshot.state.active or snapshot.state is State.FINISHED):
                await_begin(self._actions, snapshot, self._actions.restart(snapshot))
        finally:
            self._release()
        return {}

    def close(self) -> None:
        """End with the line: a run that was neither handed over nor kept is kept."""
        if self._held is not None:
            self.stay(self._held)
        self._release()

    def _look(self, run: RunDir) -> RunSnapshot:
        return unmoved(run)

    def _can_save(self, snapshot: RunSnapshot) -> bool:
        return saves_when_stopped(snapshot) or availability(snapshot, "save").ok

    def _ask(self, snapshot: RunSnapshot, action: str, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Send a request and wait for its answer; if saving fails, an older checkpoint has to do."""
        request = self._actions.send(snapshot, action)
        deadline = time.monotonic() + seconds
        while (answer := self._actions.answer(snapshot.dir, request.id)) is None:
            if time.monotonic() > deadline:
                raise OperationError(f"{snapshot.name} is not moved: no answer to {action} within {seconds:.0f} s")
            meanwhile()
            time.sleep(_POLL_SECONDS)
        if not answer.ok and action == "stop":
            raise OperationError(f"{snapshot.name} is not moved, it did not end: {answer.text}")

    def _hold(self, run: RunDir, attempt: int, meanwhile: Callable[[], None]) -> None:
        """Take the supervisor's lock as soon as it is free, unless another attempt has begun by then."""
        deadline = time.monotonic() + END_SECONDS
        while self._lock is None:
            self._lock = liveness.acquire(run.supervisor_lock)
            status = storage.read_or_none(Status, run.status)
            if status is not None and status.attempt > attempt:
                raise OperationError(f"{run.run} is not moved: somebody has just restarted it")
            if self._lock is None and time.monotonic() > deadline:
                raise OperationError(f"{run.run} is not moved: its supervisor did not leave")
            if self._lock is None:
                meanwhile()
                time.sleep(_LOCK_POLL_SECONDS)
        if liveness.is_held(run.run_lock):
            raise OperationError(f"{run.run} is not moved: processes of it still run", "`mpstui kill` ends them")

    def _make_way(self) -> None:
        """Release the supervisor's lock."""
        if self._lock is not None:
            liveness.release(self._lock)
        self._lock = None

    def _release(self) -> None:
        self._make_way()
        if self._mark is not None:
            self._mark.release()
        self._mark = None

    def _send_source(self, asked: dict[str, Any], ends: Ends) -> dict[str, Any]:
        if self._tree is None:
            raise OperationError("no code was looked at", "begin the move again")
        self._begin(find_run(self._home, str(asked["run"])), str(asked["to"]), MoveStep.CODE)
        with ends.sending() as out:
            pack(self._tree.paths(), asked["lacking"], out)
        return {}

    def _send_files(self, asked: dict[str, Any], ends: Ends) -> dict[str, Any]:
        self._tell(MoveStep.SEND)
        with ends.sending() as out:
            pack(self._files, asked["lacking"], out, asked["begun"])
        return {}


def _moved(run: RunDir) -> Move | None:
    """The move that took the run away from here, if any.

    Raises:
        OperationError: the record of a move cannot be read, so the run may be anywhere.
    """
    try:
        return storage.read(Move, run.moved)
    except (OSError, storage.UnreadableRecord) as error:
        raise OperationError(f"where {run.run} was moved to cannot be read: {run.moved}: {error}") from error


def _require_here(run: RunDir) -> None:
    if (moved := _moved(run)) is not None:
        raise OperationError(f"{run.run} was moved to {moved.to} meanwhile")


def _newest(snapshot: RunSnapshot) -> Checkpoint | None:
    """The checkpoint from which the next attempt would begin: this run's newest complete one."""
    return max(own_checkpoints(snapshot), key=lambda one: (one.time, one.step or 0), default=None)


def _files(snapshot: RunSnapshot) -> Iterator[tuple[str, Path]]:
    """Yield each file of the run that is useful over there; of its checkpoints, only the newest and the best.

    Raises:
        OperationError: one of these checkpoints lies where nobody would look for it over there.
    """
    newest = _newest(snapshot)
    kept = [one.path for one in snapshot.checkpoints if one == newest or (one.best and one.complete)]
    left = [one.path for one in snapshot.checkpoints if one.path not in kept]
    for path in below(snapshot.dir):
        where = path.relative_to(snapshot.dir)
        if any(path.is_relative_to(one) for one in kept):  # hidden files too: torch lists its parts in .metadata
            yield where.as_posix(), path
        elif where.parts[0] in STAYS or where.name in STAYS or where.name.startswith((".", "reserve")):
            continue
        elif where.suffix != ".lock" and not any(path.is_relative_to(one) for one in left):
            yield where.as_posix(), path
    recorded = read_run(RunDir(snapshot.dir))
    for one in kept:
        if not one.is_relative_to(snapshot.dir):
            folder = Path(recorded.template.cwd) if recorded else one.parent
            if not one.is_relative_to(folder):
                raise OperationError(
                    f"{snapshot.name} cannot be moved: it saves to {one.parent}, which is not its folder"
                )
            for path in below(one) if one.is_dir() else (one,):
                yield f"{BESIDE}/{path.relative_to(folder).as_posix()}", path
