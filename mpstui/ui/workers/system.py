"""Sampling the machine while somebody looks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.model.errors import UsageError
from ..looking import Wanted
from ..messages import SettingsMistaken, SystemReady
from .base import Post, Pump

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ...core.settings import EnergySettings
    from ..ports import RecorderPort, SamplerPort
    from ..services import Services

_SAMPLE_SECONDS, _SAMPLE_SECONDS_REMOTE, _HIDDEN_SECONDS = 1.0, 2.0, 5.0
_NO_PROCESS_TIMES = 5
"""The machine alone is read so many times less often."""


class SystemPump(Pump):
    """Samples the machine while somebody looks at a run, less often while the panel that shows it is hidden."""

    name = "system"

    def __init__(self, services: Services, post: Post) -> None:
        super().__init__(post)
        self._services = services
        self._sampler: SamplerPort | None = None
        self._wanted: Wanted | None = None
        self._sampled: tuple[Wanted, float] | None = None
        self._recorder: tuple[str, RecorderPort] | None = None
        self._prices: EnergySettings | None = None

    def want(self, snapshot: RunSnapshot | None, *, in_view: bool = True) -> None:
        """Sample for this run from now on; None: nobody looks."""
        self._wanted = Wanted(snapshot, in_view) if snapshot is not None else None
        self.wake()

    def follow(self, snapshots: Sequence[RunSnapshot]) -> None:
        """Newer pictures; that of the wanted run is kept, for what the trainer itself reports."""
        wanted = self._wanted
        newer = next((one for one in snapshots if wanted and one.run == wanted.snapshot.run), None)
        if wanted is not None and newer is not None:
            self._wanted = wanted._replace(snapshot=newer)
            if self._wanted.subject != wanted.subject:
                self.wake()

    def stop(self) -> None:
        """End, and what the sampler started too."""
        super().stop()
        if not self._thread.is_alive():
            self._close_recorder()
            if self._sampler is not None:
                self._sampler.close()

    def _work(self) -> float | None:
        wanted = self._wanted
        if wanted is None:
            self._close_recorder()
            return None
        if self._left(wanted) <= 0:
            self._sampled = wanted, time.monotonic()
            self._sample(wanted.snapshot)
        return self._left(wanted)

    def _left(self, wanted: Wanted) -> float:
        """Seconds until the next sample is due."""
        if self._sampled is None or wanted.subject != self._sampled[0].subject:
            return 0.0
        pause = (
            (_SAMPLE_SECONDS_REMOTE if self._services.remote else _SAMPLE_SECONDS)
            if wanted.in_view
            else _HIDDEN_SECONDS
        )
        pause *= 1 if wanted.snapshot.pid is not None else _NO_PROCESS_TIMES
        return max(0.0, self._sampled[1] + pause - time.monotonic())

    def _sample(self, snapshot: RunSnapshot) -> None:
        self._sampler = self._sampler or self._services.sampler()
        run = snapshot.run
        sample = self._sampler.sample({run: (snapshot.pid,)} if snapshot.pid is not None else {})
        tree = sample.trees.get(run)
        telemetry = self._recorder_of(snapshot).poll(snapshot, sample.system, tree)
        self._post(SystemReady(sample.system, tree, run, telemetry, self._prices))

    def _recorder_of(self, snapshot: RunSnapshot) -> RecorderPort:
        if self._recorder is None or self._recorder[0] != snapshot.run:
            self._close_recorder()
            self._recorder = snapshot.run, self._services.recorder(snapshot)
            self._ask_prices()
        return self._recorder[1]

    def _ask_prices(self) -> None:
        try:
            self._prices = self._services.prices()
        except UsageError as error:
            self._post(SettingsMistaken(error.sentence))

    def _close_recorder(self) -> None:
        if self._recorder is not None:
            self._recorder[1].close()
            self._recorder = None
