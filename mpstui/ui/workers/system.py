"""Workers that watch the machine while somebody looks, and the terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...core.model.errors import SettingsError
from ..messages import SettingsMistaken, SystemReady
from ..widgets.machine_strip import remember
from .worker import Post, Worker

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ...core.settings import EnergySettings
    from ...core.telemetry.model import SystemSample
    from ...core.telemetry.run_telemetry import TelemetryRecorder
    from ...core.telemetry.sampler import Sampler, Snapshot, Trees
    from ..services import Services
    from ..terminal import Terminal

_SAMPLE_SECONDS, _SAMPLE_SECONDS_REMOTE, _HIDDEN_SECONDS = 1.0, 2.0, 5.0
_NO_PROCESS_TIMES = 5
"""The factor by which a run without a process is sampled less often."""
_LISTED_SECONDS, _RESTING_SECONDS, _FIRST_SECONDS = 5.0, 30.0, 1.5
"""Seconds between two samples for the list while something is live, and otherwise; the first follows the rows."""


class _Target(NamedTuple):
    """The run whose processes are sampled, and whether the panel that shows them is in view."""

    snapshot: RunSnapshot
    in_view: bool

    @property
    def key(self) -> tuple[str, int | None, bool]:
        """Identifies what is sampled; when it changes, a sample is due at once."""
        return self.snapshot.run, self.snapshot.pid, self.in_view


class SystemWorker(Worker):
    """Samples the machine for the run in view, less often while the panel that shows it is hidden, and even less often
    for the list."""

    name = "system"

    def __init__(self, services: Services, post: Post, newest: Callable[[], Sequence[RunSnapshot] | None]) -> None:
        """``newest`` returns the newest snapshots, which hold what the trainer itself reports."""
        super().__init__(post)
        self._services, self._newest = services, newest
        self._sampler: Sampler | None = None
        self._target: _Target | None = None
        self._sampled: tuple[_Target, float] | None = None
        self._listed = -math.inf
        self._past: tuple[SystemSample, ...] = ()
        self._began = time.monotonic()
        self._recorder: tuple[str, TelemetryRecorder] | None = None
        self._prices: EnergySettings | None = None

    def sample_for(self, snapshot: RunSnapshot | None, *, in_view: bool = True) -> None:
        """Sample for this run from now on; None stops it."""
        self._target = _Target(snapshot, in_view) if snapshot is not None else None
        self.wake()

    def stop(self) -> None:
        super().stop()
        if not self._thread.is_alive():
            self._close_recorder()
            if self._sampler is not None:
                self._sampler.close()

    def _work(self) -> float | None:
        target = self._target
        if target is None:
            self._close_recorder()
            return self._sample_for_list()
        if self._seconds_left(target) <= 0:
            self._sampled = target, time.monotonic()
            run = target.snapshot.run
            newest = next((one for one in self._newest() or () if one.run == run), target.snapshot)
            self._sample(newest)
        return self._seconds_left(target)

    def _seconds_left(self, target: _Target) -> float:
        if self._sampled is None or target.key != self._sampled[0].key:
            return 0.0
        shown = _SAMPLE_SECONDS_REMOTE if self._services.remote else _SAMPLE_SECONDS
        pause = shown if target.in_view else _HIDDEN_SECONDS
        pause *= 1 if target.snapshot.pid is not None else _NO_PROCESS_TIMES
        return max(0.0, self._sampled[1] + pause - time.monotonic())

    def _sample_for_list(self) -> float:
        """Sample the machine alone, if there are any runs; return the seconds until the next time."""
        runs, now = self._newest(), time.monotonic()
        if not runs or now - self._began < _FIRST_SECONDS:
            return _FIRST_SECONDS
        live = any(run.state.active for run in runs)
        due = self._listed + (_LISTED_SECONDS if live else _RESTING_SECONDS)
        if now >= due:
            self._listed = due = now
            sample = self._taken({})
            self._post(SystemReady(sample.system, None, None, past=self._past))
            due += _LISTED_SECONDS
        return min(_LISTED_SECONDS, due - now)

    def _taken(self, trees: Trees) -> Snapshot:
        self._sampler = self._sampler or self._services.sampler()
        sample = self._sampler.sample(trees)
        self._past = remember(self._past, sample.system)
        return sample

    def _sample(self, snapshot: RunSnapshot) -> None:
        run = snapshot.run
        sample = self._taken({run: (snapshot.pid,)} if snapshot.pid is not None else {})
        tree = sample.trees.get(run)
        telemetry = self._recorder_of(snapshot).poll(snapshot, sample.system, tree)
        self._post(SystemReady(sample.system, tree, run, telemetry, self._prices, self._past))

    def _recorder_of(self, snapshot: RunSnapshot) -> TelemetryRecorder:
        if self._recorder is None or self._recorder[0] != snapshot.run:
            self._close_recorder()
            self._recorder = snapshot.run, self._services.recorder(snapshot)
            try:
                self._prices = self._services.settings().energy
            except SettingsError as error:
                self._post(SettingsMistaken(error.mistakes))
        return self._recorder[1]

    def _close_recorder(self) -> None:
        if self._recorder is not None:
            self._recorder[1].close()
            self._recorder = None


class TerminalWorker(Worker):
    """Ends the program when its terminal is gone, or if it was asked to end and does not.

    Textual's reader spins on a terminal that hung up, and its writer blocks for ever on one that stopped reading; with
    SIGHUP ignored (nohup) nothing else would end the program either.
    """

    name = "terminal"

    def __init__(self, post: Post, terminal: Terminal) -> None:
        super().__init__(post)
        self._terminal = terminal

    def _work(self) -> float:
        if self._terminal.gone() or self._terminal.overdue():
            self._terminal.die()
        return 1.0
