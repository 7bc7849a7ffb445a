"""The real core behind the screen's ports. What the first picture does not need is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.home import Home
from ..core.runs.monitor import Monitor
from ..core.runs.snapshot import Availability, RunSnapshot
from .ports import LauncherPort, LogPort, SamplerPort, Services

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.diagnosis.model import Finding
    from ..core.launching.actions import Actions
    from ..wire.records import Ack, Request


def core_services(
    home: Home, monitor: Monitor, environ: Mapping[str, str], cwd: Path, clock: Callable[[], float]
) -> Services:
    """The screen's view of this home."""
    actions = LazyActions(home, environ, clock)

    def launcher() -> LauncherPort:
        from .drafts import CoreLauncher

        return CoreLauncher(home, environ, cwd, actions.real, clock)

    return Services(
        monitor=monitor,
        actions=actions,
        availability=_availability,
        sampler=_sampler,
        open_log=_open_log,
        diagnose=_diagnose,
        launcher=launcher,
        clock=clock,
        remote=bool(environ.get("SSH_CONNECTION")),
    )


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

    def stop(self, snapshot: RunSnapshot) -> Request:
        """Save a checkpoint, then end."""
        return self.real.stop(snapshot)

    def kill(self, snapshot: RunSnapshot) -> Request:
        """End at once."""
        return self.real.kill(snapshot)

    def pause(self, snapshot: RunSnapshot) -> Request:
        """Freeze the processes."""
        return self.real.pause(snapshot)

    def resume(self, snapshot: RunSnapshot) -> Request:
        """Let them go on."""
        return self.real.resume(snapshot)

    def clear_cache(self, snapshot: RunSnapshot) -> Request:
        """Give the device's cached memory back."""
        return self.real.clear_cache(snapshot)

    def restart(
        self, snapshot: RunSnapshot, device: str | None = None, source: str = "latest", choice: Any = None
    ) -> Request:
        """A new attempt."""
        return self.real.restart(snapshot, device, source, choice)

    def answer(self, run_dir: Path, request_id: str) -> Ack | None:
        """The answer to a request, None while there is none."""
        return self.real.answer(run_dir, request_id)


def _availability(snapshot: RunSnapshot, action: str) -> Availability:
    from ..core.launching.availability import availability

    return availability(snapshot, action)


def _sampler() -> SamplerPort:
    from ..core.telemetry.platforms import default_sampler

    return default_sampler()


def _open_log(path: Path) -> LogPort:
    from ..core.follow.document import LogDocument

    return LogDocument(path)


def _diagnose(snapshot: RunSnapshot) -> Sequence[Finding]:
    from ..core.diagnosis import diagnose
    from ..core.diagnosis.for_run import evidence_from_run_dir

    return diagnose(evidence_from_run_dir(snapshot.dir))
