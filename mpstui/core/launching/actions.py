"""Acts on runs: every action is a request file, answered by a supervisor, which is started if there is none."""

from __future__ import annotations

import contextlib
import errno
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...wire import liveness, queues, rundir, storage
from ...wire.records import ENDS, Ack, ExitRecord, Rehearsal, Request, Spec, Status
from ...wire.rundir import RunDir, event, run_dirs
from ..actions import BY_ID
from ..model.errors import OperationError, UsageError
from ..model.home import Home
from ..model.snapshot import RunSnapshot
from ..runs.waiting import is_abandoned
from .jobs import attend, hold, interim_answer
from .record import RecordedRun, availability, plan_restart, read_run
from .supervisors import Supervisors, start_supervisor

if TYPE_CHECKING:
    from ..machine import Machine
    from .choice import LaunchChoice


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NUDGE_SECONDS = 1.0
BY_SIGNAL = "signal-"
"""Prefix of the ids of requests that were sent by a signal, as no file could be written."""


@dataclass(slots=True)
class Actions:
    """Sends what :data:`mpstui.core.actions.ACTIONS` offers; the answer to a request is read with :meth:`answer`.

    Raises (all methods): OperationError if the action cannot work, with the reason from :func:`availability`.
    """

    environ: Mapping[str, str]
    clock: Callable[[], float] = time.time
    machine: Machine | None = None
    start: Callable[[RunDir, Mapping[str, str]], None] = start_supervisor
    nudged: dict[Path, float] = field(default_factory=dict)
    request_id: str = ""
    """The id for the next request only, if it was chosen on another machine; empty: a new one."""

    def send(self, snapshot: RunSnapshot, action: str, **options: Any) -> Request:
        """Request an action of the table by its id; ``options`` override those of its entry.

        Raises:
            UsageError: see :meth:`restart`.
        """
        entry = BY_ID[action]
        if entry.request == "restart":
            return self.restart(snapshot, **{**entry.options, **options})
        self._require(snapshot, action)
        run = RunDir(snapshot.dir)
        if snapshot.job is not None and snapshot.job.phase.waits and entry.request in ("pause", "continue"):
            recorded = self._available(snapshot, action)
            if recorded.spec.engine is not None:
                asked = rundir.new_request(entry.request, snapshot.attempt, self.clock())
                return hold(run, recorded.spec.engine, asked)
        return self._submit(snapshot, entry.request, {**entry.options, **options}, {})

    def restart(
        self,
        snapshot: RunSnapshot,
        device: str | None = None,
        source: str = "latest",
        choice: LaunchChoice | None = None,
        rehearsal: Rehearsal | None = None,
    ) -> Request:
        """Start a new attempt of the same run, whether it is running or has ended.

        Args:
            device: None keeps the current one.
            source: latest, best, scratch, or a checkpoint's path.
            choice: an edited launch, for this and later attempts.
            rehearsal: only try it out, for some steps.

        Raises:
            UsageError: the device or checkpoint does not exist, or the edited launch cannot work.
        """
        recorded = self._available(snapshot, "edit_restart" if choice else "restart")
        options, secrets = plan_restart(
            recorded,
            device,
            source,
            choice,
            rehearsal,
            runs=snapshot.dir.parent,
            environ=self.environ,
            machine=self._this_machine,
        )
        return self._submit(snapshot, "restart", options, secrets)

    def go_on(self, snapshot: RunSnapshot) -> Request:
        """Start for real what the newest rehearsal of a run tried out.

        Raises:
            OperationError: there was no rehearsal; otherwise see :meth:`restart`.
        """
        from .editing import rehearsed_launch  # only needed with the first rehearsal

        tried = rehearsed_launch(RunDir(snapshot.dir))
        if tried is None:
            raise OperationError(f"no rehearsal of {snapshot.name} is on record", "f opens the form with the remedy")
        return self.restart(snapshot, tried.device, tried.source, tried.choice)

    def answer(self, run_dir: Path, request_id: str) -> Ack | None:
        """Return the answer to a request, None while there is none; start a supervisor if none is there to answer."""
        run = RunDir(run_dir)
        by_signal = request_id.startswith(BY_SIGNAL)
        found = _ended_by_signal(run, request_id) if by_signal else rundir.answer_to(run, request_id)
        if found is None and (recorded := read_run(run)) is not None and recorded.spec.engine is not None:
            request = storage.read_or_none(Request, run.request(request_id))
            found = interim_answer(run, recorded.spec.engine, request) if request is not None else None
        if found is None and self.clock() - self.nudged.get(run_dir, 0.0) >= NUDGE_SECONDS:
            self.nudged[run_dir] = self.clock()
            if not by_signal:
                self.supervise(run, noting=False)
            elif request_id.startswith(f"{BY_SIGNAL}kill-"):
                _signal_supervisor(run, signal.SIGTERM)
        return found

    def supervise(self, run: RunDir, secrets: Mapping[str, str] = MappingProxyType({}), *, noting: bool = True) -> None:
        """Start a supervisor if none is alive; a second one that starts at the same time exits by itself.

        Args:
            secrets: those of an edited launch; others come from the run's profile and from our environment.
            noting: record in the run's events which secrets are missing.

        Raises:
            OperationError: it could not be started.
        """
        if liveness.is_held(run.supervisor_lock):
            _wake_supervisor(run, self.clock())
            return
        recorded = read_run(run)
        wanted = recorded.spec.secret_env if recorded else []
        environ = {**_profile_secrets(recorded), **self.environ, **secrets}
        if recorded is not None and recorded.spec.engine is not None:
            attend(run, recorded.spec.engine, environ, submits=noting)
            return
        missing = [name for name in wanted if name not in environ]
        if noting and missing:
            text = f"started again without {', '.join(missing)}: secrets are not kept, this shell has none"
            attempt = next(reversed(run.attempt_numbers()), 0)
            storage.append_line(run.events, event(self.clock(), attempt, "note", text))
        self.start(run, environ)

    @contextlib.contextmanager
    def supervising_many(self, runs: Path) -> Iterator[Callable[[RunDir], None]]:
        """Yield a :meth:`supervise` for many runs of a folder; on leaving, all have started, or a failure is raised."""
        with Supervisors(runs) as together:
            yield replace(self, start=together.start).supervise

    def _require(self, snapshot: RunSnapshot, action: str) -> None:
        found = snapshot.available.get(action) or availability(snapshot, action)
        if not found.ok:
            raise OperationError(f"{action.replace('_', ' ')} {snapshot.name}: {found.why}")

    def _available(self, snapshot: RunSnapshot, action: str) -> RecordedRun:
        self._require(snapshot, action)
        recorded = read_run(RunDir(snapshot.dir))
        if recorded is None:
            raise OperationError(f"the record of run {snapshot.run} cannot be read")
        return recorded

    def _submit(
        self, snapshot: RunSnapshot, action: str, options: dict[str, Any], secrets: Mapping[str, str]
    ) -> Request:
        run = RunDir(snapshot.dir)
        now = self.clock()
        try:
            asked = rundir.new_request(action, snapshot.attempt, now, options=options, name=self.request_id)
            request = rundir.submit(run, asked)
        except OSError as error:
            if action in ENDS and _signal_supervisor(run, signal.SIGTERM):
                self.nudged[snapshot.dir] = now
                return Request(f"{BY_SIGNAL}{action}-{int(now * 1000)}", action, snapshot.attempt, rundir.asker(), now)
            text = f"the request for run {run.run} could not be written: {error.strerror}"
            hint = "free some space or inodes, then ask again" if error.errno in _NO_ROOM else f"see {run.requests}"
            raise OperationError(text, hint) from error
        self.nudged[snapshot.dir] = now
        self.supervise(run, secrets, noting=action == "restart")
        return request

    def _this_machine(self) -> Machine:
        from ..machine import this_machine

        self.machine = self.machine or this_machine()
        return self.machine


def _supervisor_of(run: RunDir) -> liveness.Process | None:
    """Return the process that supervises a run now; None unless the one on record is alive and is its supervisor."""
    status = storage.read_or_none(Status, run.status)
    known = status.supervisor if status is not None and status.boot_id == liveness.boot_id() else None
    found = liveness.system_process_table().find(known.pid) if known is not None else None
    if found is None or found.identity != known or not found.alive or not liveness.is_held(run.supervisor_lock):
        return None
    try:
        return found if liveness.has_open(found.pid, run.supervisor_lock) else None
    except OSError:  # the system does not tell
        return found


def _signal_supervisor(run: RunDir, number: signal.Signals) -> bool:
    """Signal a run's supervisor, if no request can be written: SIGTERM stops the run, a second one kills it."""
    found = _supervisor_of(run)
    return found is not None and liveness.send_signal(found.identity, number)


def _wake_supervisor(run: RunDir, now: float) -> None:
    """Continue a supervisor that was stopped by a signal, and answers nothing until then."""
    found = _supervisor_of(run)
    if found is not None and found.state == "T" and liveness.send_signal(found.identity, signal.SIGCONT):
        text = "its supervisor was stopped by a signal and is resumed to answer a request"
        with contextlib.suppress(OSError):
            storage.append_line(run.events, event(now, next(reversed(run.attempt_numbers()), 0), "note", text))


def _ended_by_signal(run: RunDir, request_id: str) -> Ack | None:
    """Return the result of a stop by signal: no answer can be written, but the end can be seen."""
    number = next(reversed(run.attempt_numbers()), 0)
    record = storage.read_or_none(ExitRecord, run.attempt(number).exit)
    if record is None or liveness.is_held(run.run_lock):
        return None
    text = f"attempt {number} has ended (asked for by a signal to its supervisor: no request could be written)"
    return Ack(request_id, True, "supervisor", record.ended, text)


def _profile_secrets(recorded: RecordedRun | None) -> dict[str, str]:
    """Return the secrets that the run was started with and that its profile's file still contains."""
    if recorded is None or not recorded.spec.profile_path:
        return {}
    from ..profiles.library import read_profile  # only if a supervisor is missing

    try:
        profile = read_profile(Path(recorded.spec.profile_path), Path(recorded.spec.launch.cwd))
    except UsageError:
        return {}
    return {name: profile.env[name] for name in recorded.spec.secret_env if name in profile.env}


class SupervisorRecovery:
    """Finds waiting runs whose supervisor has died and starts another; an unchanged run costs one ``stat`` per look."""

    def __init__(
        self,
        home: Home,
        supervise: Callable[[RunDir], None],
        many: Callable[[Path], AbstractContextManager[Callable[[RunDir], None]]] | None = None,
    ) -> None:
        """``many`` starts several at lower cost: see :meth:`Actions.supervising_many`."""
        self._home = home
        self._supervise = supervise
        self._many = many
        self._settled: dict[Path, tuple[int, int, int]] = {}
        """For each run that needs nothing until its status changes: the stamp of that file."""

    def respawn_missing(self) -> list[str]:
        """Start a supervisor for every waiting run without one, the next in line first; return the ids of those runs.

        Raises:
            OperationError: one could not be started; the others were.
        """
        started, failures, abandoned = list[str](), list[OperationError](), list[RunDir]()
        for run in run_dirs(self._home.runs):
            stamp = storage.stamp(run.status)
            if stamp is None or self._settled.get(run.path) == stamp or liveness.is_held(run.supervisor_lock):
                continue
            self._settled[run.path] = stamp
            if is_abandoned(run):
                abandoned.append(run)
        if len(abandoned) < 2 or self._many is None:
            self._start(abandoned, self._supervise, started, failures)
        else:
            try:
                with self._many(self._home.runs) as supervise:
                    self._start(sorted(abandoned, key=_place_in_line), supervise, started, failures)
            except OperationError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return started

    def _start(
        self,
        runs: Iterable[RunDir],
        supervise: Callable[[RunDir], None],
        started: list[str],
        failures: list[OperationError],
    ) -> None:
        for run in runs:
            stamp = self._settled.pop(run.path)
            try:
                supervise(run)
                started.append(run.run)
                self._settled[run.path] = stamp
            except OSError as error:
                failures.append(OperationError(f"no supervisor for waiting run {run.run}: {error.strerror}"))
            except OperationError as error:
                failures.append(error)


def _place_in_line(run: RunDir) -> tuple[int, str]:
    """Return a sort key that keeps the queue's order after a reboot: the supervisor that starts first gets the slot."""
    spec = storage.read_or_none(Spec, run.spec)
    files = queues.files_of(run, spec.queue.group) if spec is not None and spec.queue.group else None
    queue = storage.read_or_none(queues.Queue, files.state) if files is not None else None
    order = list(queue.order) if queue is not None else []
    return (order.index(run.run) if run.run in order else len(order), run.run)
