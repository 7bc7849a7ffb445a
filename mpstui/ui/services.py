"""The real core behind the screen's ports. What the first picture does not need is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.model.errors import UsageError

if TYPE_CHECKING:
    from ..core.diagnosis.model import EvidenceLine, Finding
    from ..core.launching.actions import Actions, SupervisorRecovery
    from ..core.model.home import Home
    from ..core.model.snapshot import Availability, RunSnapshot
    from ..core.runs.monitor import Monitor
    from ..core.runs.queueing import Moved
    from ..core.runs.removal import Removable, Removed, Remover
    from ..core.settings import EnergySettings
    from ..wire.queues import Queue
    from ..wire.records import Ack, Request
    from ..wire.rundir import RunDir
    from .alarms import Alarm
    from .ports import (
        ActionsPort,
        LauncherPort,
        LogPort,
        MonitorPort,
        QueuePort,
        RecorderPort,
        RemoverPort,
        SamplerPort,
    )


REVIVE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything the screen is given. The heavy ones are factories, called when first needed."""

    monitor: MonitorPort
    actions: ActionsPort
    queue: QueuePort
    remover: RemoverPort
    availability: Callable[[RunSnapshot, str], Availability]
    sampler: Callable[[], SamplerPort]
    recorder: Callable[[RunSnapshot], RecorderPort]
    open_log: Callable[[Path], LogPort]
    diagnose: Callable[[RunSnapshot], Sequence[Finding]]
    launcher: Callable[[], LauncherPort]
    clock: Callable[[], float]
    runs_folder: Path | None = None
    """Watched for what is created or renamed; None: polling alone."""
    last_exception: Callable[[RunSnapshot], EvidenceLine | None] = lambda snapshot: None
    """The last exception of its log, asked for where diagnosis finds nothing."""
    remote: bool = False
    """Over SSH: draw once a second."""
    announce: Callable[[Sequence[Alarm]], str] = lambda found: ""
    """The control sequences that tell the terminal of alarms, as the user set it.

    Raises:
        UsageError: the settings have mistakes.
    """
    settings_mistake: Callable[[], str] = lambda: ""
    """What is wrong with the settings; empty where nothing is."""
    prices: Callable[[], EnergySettings | None] = lambda: None
    """What electricity costs.

    Raises:
        UsageError: the settings have mistakes.
    """


def core_services(
    home: Home, environ: Mapping[str, str], cwd: Path, clock: Callable[[], float], watching: Path | None = None
) -> Services:
    """The screen's view of this home, and of a file or folder that is only watched."""
    actions = LazyActions(home, environ, clock)

    def launcher() -> LauncherPort:
        from .drafts import CoreLauncher

        return CoreLauncher(home, environ, cwd, actions.real, clock)

    return Services(
        monitor=LazyMonitor(home, watching, lambda run: actions.real.supervise(run), clock),
        actions=actions,
        queue=LazyQueue(home, clock),
        remover=LazyRemover(home),
        availability=_availability,
        sampler=_sampler,
        recorder=_recorder,
        open_log=_open_log,
        diagnose=_diagnose,
        last_exception=_last_exception,
        launcher=launcher,
        clock=clock,
        runs_folder=home.runs,
        remote=bool(environ.get("SSH_CONNECTION")),
        announce=lambda found: _announce(home, environ, found),
        settings_mistake=lambda: _settings_mistake(home),
        prices=lambda: _prices(home),
    )


class LazyMonitor:
    """The core's monitor, made by the thread that reads: the first paint waits for neither its import nor its files."""

    def __init__(
        self, home: Home, watching: Path | None, supervise: Callable[[RunDir], None], clock: Callable[[], float]
    ) -> None:
        self._home = home
        self._watching = watching
        self._supervise = supervise
        self._clock = clock
        self._made: Monitor | None = None
        self._recovery: SupervisorRecovery | None = None
        self._revive_at = 0.0

    def refresh(self, focus: str | None = None) -> tuple[RunSnapshot, ...]:
        """See :class:`mpstui.core.runs.monitor.Monitor`."""
        if self._made is None:
            from ..core.runs.monitor import Monitor

            self._made = Monitor(self._home)
            if self._watching is not None:
                self._made.watch(self._watching)
            self._revive_at = self._clock() + REVIVE_SECONDS
        self._revive()
        return self._made.refresh(focus)

    def hint(self, runs: Iterable[str]) -> None:
        """See :class:`mpstui.core.runs.monitor.Monitor`."""
        if self._made is not None:
            self._made.hint(runs)

    def read_on(self, focus: str, seconds: float) -> int:
        """See :class:`mpstui.core.runs.monitor.Monitor`."""
        return self._made.read_on(focus, seconds) if self._made is not None else 0

    def _revive(self) -> None:
        """Give queued runs whose supervisor has died a new one, now and then."""
        now = self._clock()
        if now < self._revive_at:
            return
        self._revive_at = now + REVIVE_SECONDS
        if self._recovery is None:
            from ..core.launching.actions import SupervisorRecovery

            self._recovery = SupervisorRecovery(self._home, self._supervise)
        self._recovery.respawn_missing()


class LazyQueue:
    """The queue groups, imported with the first key that changes one."""

    def __init__(self, home: Home, clock: Callable[[], float]) -> None:
        self._home, self._clock = home, clock
        self._known: tuple[int, tuple[str, ...]] = (-1, ())

    def paused(self) -> tuple[str, ...]:
        """See :func:`mpstui.core.runs.queueing.paused_groups`; looked up again once a group was changed."""
        try:
            changed = self._home.queue.stat().st_mtime_ns
        except OSError:
            return ()
        if self._known[0] != changed:
            from ..core.runs.queueing import paused_groups
            from ..wire.storage import is_settled

            settled = is_settled(changed / 1e9, self._clock())
            self._known = changed if settled else -1, paused_groups(self._home)
        return self._known[1]

    def move(self, snapshot: RunSnapshot, direction: str) -> Moved:
        """See :func:`mpstui.core.runs.queueing.move_run`."""
        from ..core.runs.queueing import move_run
        from ..wire.rundir import RunDir

        return move_run(self._home, RunDir(snapshot.dir), direction)

    def set_paused(self, group: str, paused: bool) -> Queue:
        """See :func:`mpstui.core.runs.queueing.set_paused`."""
        from ..core.runs.queueing import set_paused

        return set_paused(self._home, group, paused)


class LazyRemover:
    """What deletes runs, imported with the first key that does."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def examine(self, snapshot: RunSnapshot) -> Removable:
        """See :class:`mpstui.core.runs.removal.Remover`."""
        return self._remover().examine(_folder(snapshot))

    def remove(self, snapshot: RunSnapshot, keep_checkpoints: bool) -> Removed:
        """The same; what an interrupted removal left goes with it."""
        remover = self._remover()
        remover.clean_up()
        return remover.remove(_folder(snapshot), keep_checkpoints=keep_checkpoints)

    def _remover(self) -> Remover:
        from ..core.runs.removal import Remover

        return Remover(self._home)


def _folder(snapshot: RunSnapshot) -> RunDir:
    from ..wire.rundir import RunDir

    return RunDir(snapshot.dir)


class LazyActions:
    """The core's actions, imported with the first key that acts."""

    def __init__(self, home: Home, environ: Mapping[str, str], clock: Callable[[], float]) -> None:
        self._arguments = (home, environ, clock)
        self._made: Actions | None = None

    @property
    def real(self) -> Actions:
        """The actions themselves."""
        if self._made is None:
            from ..core.launching.actions import Actions

            self._made = Actions(*self._arguments)
        return self._made

    def send(self, snapshot: RunSnapshot, action: str) -> Request:
        """Ask for an action of the table."""
        return self.real.send(snapshot, action)

    def restart(
        self, snapshot: RunSnapshot, device: str | None = None, source: str = "latest", choice: Any = None
    ) -> Request:
        """A new attempt."""
        return self.real.restart(snapshot, device, source, choice)

    def answer(self, run_dir: Path, request_id: str) -> Ack | None:
        """The answer to a request, None while there is none."""
        return self.real.answer(run_dir, request_id)


def _availability(snapshot: RunSnapshot, action: str) -> Availability:
    from ..core.launching.record import availability

    return availability(snapshot, action)


def _sampler() -> SamplerPort:
    from ..core.telemetry.sampler import default_sampler

    return default_sampler()


def _recorder(snapshot: RunSnapshot) -> RecorderPort:
    from ..core.telemetry.run_telemetry import TelemetryRecorder

    return TelemetryRecorder(snapshot)


def _settings_mistake(home: Home) -> str:
    from ..core.settings import load_settings

    try:
        load_settings(home)
    except UsageError as error:
        return error.sentence
    return ""


def _prices(home: Home) -> EnergySettings:
    from ..core.settings import load_settings

    return load_settings(home).energy


def _open_log(path: Path) -> LogPort:
    from ..core.logview.document import LogDocument

    return LogDocument(path)


def _announce(home: Home, environ: Mapping[str, str], found: Sequence[Alarm]) -> str:
    from ..core.settings import load_settings
    from .alarms import words_for

    return words_for(found, load_settings(home).alerts, environ)


def _diagnose(snapshot: RunSnapshot) -> Sequence[Finding]:
    from ..core.diagnosis.engine import diagnose_run

    return diagnose_run(snapshot.dir)


def _last_exception(snapshot: RunSnapshot) -> EvidenceLine | None:
    from ..core.diagnosis.evidence import evidence_from_run_dir
    from ..core.diagnosis.log_text import last_exception

    return last_exception(evidence_from_run_dir(snapshot.dir).lines)
