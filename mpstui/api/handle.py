"""One run, as a notebook or a script holds it."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.follow import Budget
from ..core.model.errors import OperationError, UsageError
from ..core.model.home import Home
from ..core.model.snapshot import Checkpoint, Health, RunEvent, RunSnapshot, SeriesView, State
from ..core.present import epoch_shown
from ..core.runs.follower import RunFollower
from ..core.runs.gallery import Gallery, OwnGallery, gallery_of
from ..core.runs.monitor import SNAPSHOT_SECONDS
from ..core.runs.one import Awaited, OneRun
from ..core.runs.reader import RunReader
from ..core.runs.run_settings import named_settings
from ..core.runs.texts import LoggedText
from ..wire import storage
from ..wire.rundir import RunDir
from .shown import Curve, Image, cells, curve_of, last_of, logged_image, table

Text = LoggedText
FRESH_SECONDS = 0.5
ANSWER_SECONDS = 120.0
_LOOK_SECONDS, _POLL_SECONDS = 1.0, 0.1


class Run:
    """One run: one that mpstui started, or one it did not, in a log, a folder or a tracker's store.

    :func:`run`, :func:`runs` and :func:`launch` return these.
    """

    def __init__(self, home: Home, reader: RunFollower, snapshot: RunSnapshot | None = None) -> None:
        self._home, self._reader = home, reader
        self._lock = threading.RLock()
        self._seen = snapshot
        self._looked = time.monotonic() if snapshot is not None else -math.inf

    def snapshot(self) -> RunSnapshot:
        """Return everything known of the run now, frozen, with every curve, event and checkpoint."""
        with self._lock:
            found = self._reader.refresh(full=True, budget=Budget(SNAPSHOT_SECONDS, time.thread_time))
            self._seen, self._looked = found, time.monotonic()
            return found

    def _now(self) -> RunSnapshot:
        """Return a snapshot without curves, at most `FRESH_SECONDS` old."""
        with self._lock:
            if self._seen is None or time.monotonic() - self._looked > FRESH_SECONDS:
                self._seen = self._reader.look(_LOOK_SECONDS)
                self._looked = time.monotonic()
            return self._seen

    @property
    def id(self) -> str:
        return self._now().run

    @property
    def name(self) -> str:
        return self._now().name

    @property
    def state(self) -> State:
        """The state, which is also a string: ``run.state == "running"``."""
        return self._now().state

    @property
    def health(self) -> Health | None:
        return self._now().health

    @property
    def reason(self) -> str:
        """Why it is in this state."""
        return self._now().reason

    @property
    def epoch(self) -> float | None:
        """The epoch being trained, counted from 1 if the total is known."""
        return epoch_shown(self._now().numbers)

    @property
    def epochs(self) -> float | None:
        """The planned total."""
        return self._now().numbers.epochs

    @property
    def step(self) -> int | None:
        return self._now().numbers.step

    @property
    def steps(self) -> int | None:
        """The planned total."""
        return self._now().numbers.steps

    @property
    def loss(self) -> float | None:
        """The newest loss: NaN if it is not finite, None if none is known."""
        numbers = self._now().numbers
        return numbers.loss if numbers.loss_is_finite else math.nan

    @property
    def eta_seconds(self) -> float | None:
        return self._now().numbers.eta_seconds

    @property
    def started(self) -> float | None:
        """Unix seconds, as is :attr:`ended`."""
        return self._now().started

    @property
    def ended(self) -> float | None:
        return self._now().ended

    @property
    def tags(self) -> tuple[str, ...]:
        return self._now().tags

    @property
    def note(self) -> str:
        return self._now().note

    @property
    def dir(self) -> Path:
        return self._now().dir

    @property
    def config(self) -> Mapping[str, str]:
        """The settings it was started with: profile, device, arguments, relevant environment; secrets are masked."""
        return named_settings(self._now())

    @property
    def argv(self) -> tuple[str, ...]:
        """The command; secrets are masked."""
        return self._now().argv

    @property
    def metrics(self) -> Mapping[str, float]:
        """The newest value of each metric; NaN if it is not finite."""
        return {name: last_of(view) for name, view in self.snapshot().series.items()}

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Newest first."""
        return self.snapshot().checkpoints

    @property
    def events(self) -> tuple[RunEvent, ...]:
        return self.snapshot().events

    @property
    def images(self) -> tuple[Image, ...]:
        """Images that its code logged with ``report.image`` or to a store, by name and then by step."""
        gallery = self._gallery
        return tuple(logged_image(gallery, one) for one in gallery.items() if one.text is None)

    @property
    def texts(self) -> tuple[Text, ...]:
        """Texts that its code logged with ``report.text`` under a name, by name and then by step."""
        found = ((one, one.text) for one in self._gallery.items() if one.text is not None)
        return tuple(Text(one.name, one.step, one.attempt, one.time, text) for one, text in found)

    @property
    def _gallery(self) -> Gallery:
        return OwnGallery(RunDir(self.dir)) if isinstance(self._reader, RunReader) else gallery_of(self.snapshot())

    def series(self, name: str = "loss") -> Curve:
        """Return every point of a metric; an empty curve if the run is still active and may yet measure it.

        Raises:
            KeyError: the run has no such metric; the message lists those it has.
        """
        seen = self.snapshot()
        curves = seen.series
        if name not in curves and seen.state.active and seen.state is not State.WATCHED:
            return curve_of(SeriesView(name, "step", (), (), (), (), (), 0))
        if name not in curves:
            raise KeyError(f"{self.name} has no metric {name!r}; it has {', '.join(curves) or 'none'}")
        return curve_of(curves[name])

    def logs(self, lines: int | None = None, attempt: int | None = None) -> list[str]:
        """Return lines of its output.

        Args:
            lines: only this many, from the end; None for all.
            attempt: the attempt whose output is wanted; None for the newest.
        """
        newest = self._now().output or self.snapshot().output
        path = RunDir(self.dir).attempt(attempt).output if attempt is not None else newest
        if path is None:
            return []
        try:
            data = _end_of(path, lines)
        except FileNotFoundError:
            return []
        found = data.decode("utf-8", "replace").splitlines()
        return found if lines is None else found[-lines:] if lines else []

    def wait(self, timeout: float | None = None) -> State:
        """Wait until it has ended, and return its state.

        Raises:
            TimeoutError: it has not ended within ``timeout`` seconds.
        """
        awaited = Awaited([OneRun(self._ours())], self._respawn)
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not awaited.ended():
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{self.name} has not ended within {timeout:g} s")
            time.sleep(_POLL_SECONDS)
        self._looked = -math.inf
        return self.state

    def stop(self, *, force: bool = False) -> str:
        """Stop it and wait until it has ended; it may save first, unless ``force``. Returns the outcome as a sentence.

        Raises:
            OperationError: it cannot be stopped, or has not answered.
        """
        return self.act("stop", **({"force": True} if force else {}))

    def restart(self, device: str | None = None, source: str = "latest") -> str:
        """Start another attempt, and return the outcome as a sentence.

        Args:
            device: the device to run on; None for that of the last attempt.
            source: the checkpoint to resume from: ``latest``, ``best``, a path, or ``scratch`` for none.

        Raises:
            OperationError: it cannot be restarted, or has not answered.
        """
        return self.act("restart", device=device, source=source)

    def act(self, action: str, **options: Any) -> str:
        """Request an action, wait for the answer and return it as a sentence.

        Args:
            action: ``stop kill pause continue restart clear_cache save evaluate dump_stacks``.
            options: arguments of the action, such as ``force`` for ``stop``.

        Raises:
            UsageError: there is no such action, or mpstui did not start the run.
            OperationError: it is not possible now, was refused, or was not answered.
        """
        from ..core.actions import BY_ID
        from ..core.launching.actions import Actions

        if action not in BY_ID or not BY_ID[action].request or not (BY_ID[action].command or action == "restart"):
            raise UsageError(f"there is no action {action!r}", "such as stop, pause, continue, save")
        one = OneRun(self._ours())
        actions = Actions(dict(os.environ))
        request = actions.send(one.snapshot(), action, **options)
        patience = BY_ID[action].timeout or ANSWER_SECONDS
        deadline = time.monotonic() + patience
        while (ack := actions.answer(one.dir.path, request.id)) is None:
            if time.monotonic() >= deadline:
                raise OperationError(f"{self.name} has not answered within {patience:g} s", "the request stays")
            time.sleep(_POLL_SECONDS)
        self._looked = -math.inf
        if not ack.ok:
            raise OperationError(ack.text)
        return ack.text

    def _ours(self) -> RunDir:
        if not isinstance(self._reader, RunReader):
            raise UsageError(f"{self.name} was not started by mpstui", "it can be looked at")
        return self._reader.run

    def _respawn(self) -> bool:
        """Replace lost supervisors, of this run or one it waits for; another run's trouble does not end the wait."""
        from ..core.launching.abandoned import respawn_missing

        try:
            return bool(respawn_missing(self._home, dict(os.environ)))
        except OperationError as error:
            warnings.warn(error.sentence, stacklevel=3)
            return False

    def __repr__(self) -> str:
        return f"<Run {self.name!r} {' '.join(cells(self._now())[1:])}>"

    def _repr_html_(self) -> str:
        return table([self._now()])


def _end_of(path: Path, lines: int | None) -> bytes:
    """Return the end of a file with at least this many lines; all of it for None."""
    with storage.open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        want = size if lines is None else 1 << 16
        while True:
            file.seek(max(0, size - want))
            data = file.read(want)
            if want >= size or data.count(b"\n") > (lines or 0):
                return data
            want *= 4
