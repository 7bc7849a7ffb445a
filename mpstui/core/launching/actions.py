"""Acting on runs. Every action is a request file, so that any number of screens and commands can act at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...wire import liveness, rundir, storage
from ...wire.records import Ack, Request, event
from ...wire.rundir import RunDir
from ..actions import BY_ID
from ..model.errors import OperationError, UsageError
from ..model.home import Home
from ..model.snapshot import RunSnapshot
from .availability import availability
from .record import RecordedRun, plan_restart, read_run
from .supervisors import start_supervisor

if TYPE_CHECKING:
    from ..machine import Machine
    from .choice import LaunchChoice

NUDGE_SECONDS = 1.0


class Actions:
    """Sends what :data:`mpstui.core.actions.ACTIONS` offers; the answer to a request is read with :meth:`answer`.

    Raises (all methods): OperationError when the action cannot work, with the reason of :func:`availability`.
    """

    def __init__(
        self,
        home: Home,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
        *,
        machine: Machine | None = None,
        start: Callable[[RunDir, Mapping[str, str]], None] = start_supervisor,
    ) -> None:
        self._home = home
        self._environ = environ
        self._clock = clock
        self._machine = machine
        self._start = start
        self._nudged: dict[Path, float] = {}

    def send(self, snapshot: RunSnapshot, action: str, **options: Any) -> Request:
        """Ask for an action of the table, by its id; ``options`` overrule the options of its entry.

        Raises:
            UsageError: see :meth:`restart`.
        """
        entry = BY_ID[action]
        if entry.request == "restart":
            return self.restart(snapshot, **{**entry.options, **options})
        self._available(snapshot, action)
        return self._submit(snapshot, entry.request, {**entry.options, **options}, {})

    def restart(
        self,
        snapshot: RunSnapshot,
        device: str | None = None,
        source: str = "latest",
        choice: LaunchChoice | None = None,
    ) -> Request:
        """Start a new attempt of the same run, whether it runs or has ended.

        Args:
            device: None keeps the one it has.
            source: latest, best, scratch, or a checkpoint's path.
            choice: an edited launch, for this and later attempts.

        Raises:
            UsageError: the device or checkpoint does not exist, or the edited launch cannot work.
        """
        recorded = self._available(snapshot, "edit_restart" if choice else "restart")
        wished = plan_restart(
            recorded,
            device,
            source,
            choice,
            runs=self._home.runs,
            environ=self._environ,
            machine=self._this_machine,
        )
        return self._submit(snapshot, "restart", wished.options, wished.secrets)

    def answer(self, run_dir: Path, request_id: str) -> Ack | None:
        """The answer to a request, None while there is none; starts a supervisor again if none is there to answer."""
        run = RunDir(run_dir)
        found = rundir.answer_to(run, request_id)
        if found is None and self._clock() - self._nudged.get(run_dir, 0.0) >= NUDGE_SECONDS:
            self._nudged[run_dir] = self._clock()
            self._supervise(run, {})
        return found

    def supervise(self, run: RunDir) -> None:
        """Start a supervisor for a run that has none; secrets come from its profile and from our environment.

        Raises:
            OperationError: it could not be started.
        """
        self._supervise(run, {}, noting=True)

    def _available(self, snapshot: RunSnapshot, action: str) -> RecordedRun:
        found = availability(snapshot, action)
        if not found.ok:
            raise OperationError(f"{action.replace('_', ' ')} {snapshot.name}: {found.why}")
        recorded = read_run(RunDir(snapshot.dir))
        if recorded is None:
            raise OperationError(f"the record of run {snapshot.run} cannot be read")
        return recorded

    def _submit(
        self, snapshot: RunSnapshot, action: str, options: dict[str, Any], secrets: Mapping[str, str]
    ) -> Request:
        run = RunDir(snapshot.dir)
        now = self._clock()
        try:
            request = rundir.submit(run, rundir.new_request(action, snapshot.attempt, now, options=options))
        except OSError as error:
            raise OperationError(f"the request for run {run.run} could not be written: {error.strerror}") from error
        self._nudged[snapshot.dir] = now
        self._supervise(run, secrets, noting=action == "restart")
        return request

    def _supervise(self, run: RunDir, secrets: Mapping[str, str], *, noting: bool = False) -> None:
        """Start a supervisor when none lives; a second one that starts at the same time leaves by itself."""
        if liveness.is_held(run.supervisor_lock):
            return
        recorded = read_run(run)
        wanted = recorded.spec.secret_env if recorded else []
        environ = {**self._profile_secrets(recorded), **self._environ, **secrets}
        missing = [name for name in wanted if name not in environ]
        if noting and missing:
            self._note(run, f"started again without {', '.join(missing)}: secrets are not kept, this shell has none")
        self._start(run, environ)

    def _note(self, run: RunDir, text: str) -> None:
        numbers = run.attempt_numbers()
        storage.append_line(run.events, event(self._clock(), numbers[-1] if numbers else 0, "note", text))

    def _profile_secrets(self, recorded: RecordedRun | None) -> dict[str, str]:
        """Secrets that the profile's file still has, under the names the run was started with."""
        if recorded is None or not recorded.spec.profile_path:
            return {}
        from ..profiles.library import read_profile  # only where a supervisor is missing

        try:
            profile = read_profile(Path(recorded.spec.profile_path), Path(recorded.spec.launch.cwd))
        except UsageError:
            return {}
        return _picked(profile.env, recorded.spec.secret_env)

    def _this_machine(self) -> Machine:
        from ..machine import this_machine

        self._machine = self._machine or this_machine()
        return self._machine


def _picked(values: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    return {name: values[name] for name in names if name in values}
