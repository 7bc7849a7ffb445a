"""Runs for notebooks and scripts: ``mpstui.runs()``, ``mpstui.run(NAME).series("loss")``, ``mpstui.launch(PROFILE)``.

Everything is told from the snapshots that the screen draws. A :class:`Run` is a handle: what is asked of it is as it is
now, at most half a second old; :meth:`Run.snapshot` is one frozen moment. Any number of threads and processes may ask.
"""

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
from ..core.formats.stores import require_path, store_of
from ..core.model.errors import OperationError, UsageError
from ..core.model.home import Home, resolve_home
from ..core.model.snapshot import Checkpoint, Health, RunEvent, RunSnapshot, SeriesView, State
from ..core.runs.comparison import named_settings
from ..core.runs.find import find_run
from ..core.runs.follower import RunFollower
from ..core.runs.gallery import Gallery, OwnGallery, gallery_of
from ..core.runs.local_machine import LocalMachine
from ..core.runs.monitor import SNAPSHOT_SECONDS, Monitor
from ..core.runs.one import Awaited, OneRun
from ..core.runs.query import findable, parse_query
from ..core.runs.reader import RunReader
from ..core.runs.summaries import Summaries
from ..core.runs.texts import LoggedText
from ..core.runs.watching import Watching
from ..wire import storage
from ..wire.liveness import boot_id, system_process_table
from ..wire.rundir import RunDir
from .shown import Curve as Curve
from .shown import Image as Image
from .shown import cells, curve_of, last_of, logged_image, table

Text = LoggedText
MOST_POINTS = 4_000_000
"""Points of a metric that are told one by one; of a longer history every few are one."""
FRESH_SECONDS = 0.5
ANSWER_SECONDS = 120.0
_LOOK_SECONDS, _POLL_SECONDS = 1.0, 0.1


class Run:
    """One run: of ours, or a log, a folder or a store's that mpstui did not start."""

    def __init__(self, home: Home, reader: RunFollower, snapshot: RunSnapshot | None = None) -> None:
        """Made by :func:`run`, :func:`runs` and :func:`launch`."""
        self._home, self._reader = home, reader
        self._lock = threading.RLock()
        self._seen = snapshot
        self._looked = time.monotonic() if snapshot is not None else -math.inf

    def snapshot(self) -> RunSnapshot:
        """All that is known of it now, frozen: with every curve, event and checkpoint."""
        with self._lock:
            found = self._reader.refresh(full=True, budget=Budget(SNAPSHOT_SECONDS))
            self._seen, self._looked = found, time.monotonic()
            return found

    def _now(self) -> RunSnapshot:
        """The same without curves, a moment old at most."""
        with self._lock:
            if self._seen is None or time.monotonic() - self._looked > FRESH_SECONDS:
                self._seen = self._reader.refresh(full=False, budget=Budget(_LOOK_SECONDS))
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
        """A text, too: ``run.state == "running"``."""
        return self._now().state

    @property
    def health(self) -> Health | None:
        return self._now().health

    @property
    def reason(self) -> str:
        """Why it is said to be in its state."""
        return self._now().reason

    @property
    def epoch(self) -> float | None:
        return self._now().numbers.epoch

    @property
    def epochs(self) -> float | None:
        """How many are planned."""
        return self._now().numbers.epochs

    @property
    def step(self) -> int | None:
        return self._now().numbers.step

    @property
    def steps(self) -> int | None:
        """How many are planned."""
        return self._now().numbers.steps

    @property
    def loss(self) -> float | None:
        """The newest; NaN where it is no finite number, None where nobody told it."""
        numbers = self._now().numbers
        return numbers.loss if numbers.loss_is_finite else math.nan

    @property
    def eta_seconds(self) -> float | None:
        return self._now().numbers.eta_seconds

    @property
    def started(self) -> float | None:
        """Unix seconds, like :attr:`ended`."""
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
        """What it was started with, secrets masked: profile, device, arguments, and the environment that shapes it."""
        return named_settings(self._now())

    @property
    def argv(self) -> tuple[str, ...]:
        """Its command, secrets masked."""
        return self._now().argv

    @property
    def metrics(self) -> Mapping[str, float]:
        """The newest value of each metric; NaN where it is no finite number."""
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
        """What its code has logged with ``report.image``, name by name, each in the order of steps; also to a store."""
        gallery = self._gallery
        return tuple(logged_image(gallery, one) for one in gallery.items() if one.text is None)

    @property
    def texts(self) -> tuple[Text, ...]:
        """What its code has logged with ``report.text`` under a name, likewise."""
        found = ((one, one.text) for one in self._gallery.items() if one.text is not None)
        return tuple(Text(one.name, one.step, one.attempt, one.time, text) for one, text in found)

    @property
    def _gallery(self) -> Gallery:
        return OwnGallery(RunDir(self.dir)) if isinstance(self._reader, RunReader) else gallery_of(self.snapshot())

    def series(self, name: str = "loss") -> Curve:
        """Every point of a metric; none yet, where a run that lives may still measure it.

        Raises:
            KeyError: it has none of this name; says which it has.
        """
        seen = self.snapshot()
        curves = seen.series
        if name not in curves and seen.state.active and seen.state is not State.WATCHED:
            return curve_of(SeriesView(name, "step", (), (), (), (), (), 0))
        if name not in curves:
            raise KeyError(f"{self.name} has no metric {name!r}; it has {', '.join(curves) or 'none'}")
        return curve_of(curves[name])

    def logs(self, lines: int | None = None, attempt: int | None = None) -> list[str]:
        """Lines of its output.

        Args:
            lines: the last so many; None: all.
            attempt: of which one; None: the newest.
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
        """Until it has ended; the state that it has then.

        Raises:
            TimeoutError: so many seconds have passed.
        """
        awaited = Awaited([OneRun(self._home, self._ours())], self._respawn)
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not awaited.ended():
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{self.name} has not ended within {timeout:g} s")
            time.sleep(_POLL_SECONDS)
        self._looked = -math.inf
        return self.state

    def stop(self, *, force: bool = False) -> str:
        """End it: it may save first, and is waited for; what came of it, as a sentence.

        Raises:
            OperationError: it cannot be stopped, or has not answered.
        """
        return self.act("stop", **({"force": True} if force else {}))

    def restart(self, device: str | None = None, source: str = "latest") -> str:
        """Start another attempt, from its newest checkpoint (``best``, ``scratch`` or a path: from that).

        Raises: see :meth:`stop`.
        """
        return self.act("restart", device=device, source=source)

    def act(self, action: str, **options: Any) -> str:
        """Ask for any action of ``mpstui --help``: ``kill pause continue clear_cache save evaluate dump_stacks``.

        Raises:
            UsageError: there is no such action, or no run of ours.
            OperationError: it cannot work, was refused, or was not answered.
        """
        from ..core.actions import BY_ID
        from ..core.launching.actions import Actions

        if action not in BY_ID or not BY_ID[action].request or not (BY_ID[action].command or action == "restart"):
            raise UsageError(f"there is no action {action!r}", "such as stop, pause, continue, save")
        one = OneRun(self._home, self._ours())
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

    def _ours(self) -> str:
        if not isinstance(self._reader, RunReader):
            raise UsageError(f"{self.name} was not started by mpstui", "it can be looked at")
        return self._reader.run.run

    def _respawn(self) -> bool:
        """This run, or one that it waits for, may have lost its supervisor; another run's trouble ends no wait."""
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


class Runs(list[Run]):
    """Runs, newest first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        return table([one._now() for one in self])


def runs(words: str = "") -> Runs:
    """Every run of this machine, newest first.

    Args:
        words: those that match, as in the screen and with ``--filter``: ``resnet lr>=0.01 failed -test``.

    Raises:
        UsageError: a condition makes no sense.
    """
    home, query = _home(), parse_query(words)
    if query.mistake:
        raise UsageError(f"{words!r}: {query.mistake}", "such as runs('resnet lr>=0.01 failed')")
    monitor = Monitor(home, kept=Summaries(home.state / "cache" / "runs.jsonl"), columns=MOST_POINTS)
    found = (one for one in monitor.refresh_whole() if query.matches(findable(one)))
    return Runs(Run(home, reader, one) for one in found if (reader := monitor.reader(one.run)) is not None)


def run(name: str) -> Run:
    """One run: an id, its beginning, a name, a profile (its newest run), or the path of a log, a folder or a store.

    Raises:
        UsageError: there is none, or several.
    """
    home, machine, path = _home(), _machine(), Path(name).expanduser().absolute()
    if "/" in name and store_of(path).exists():
        require_path(path)
        watching = Watching(machine, MOST_POINTS, home.state)
        keys = list(watching.watch(path))
        if len(keys) != 1:
            raise UsageError(f"{name} holds {len(keys)} runs", f"name one: {', '.join(keys[:5])}")
        return Run(home, watching[keys[0]])
    return _ours(home, find_run(home, name), machine)


def launch(
    profile: str,
    *,
    name: str | None = None,
    device: str | None = None,
    env: Mapping[str, str] | None = None,
    queue: str | None = None,
    **settings: object,
) -> Run:
    """Start a saved profile in the background, as ``mpstui launch`` does; it goes on when this program has ended.

    Args:
        queue: wait for a slot in that queue.
        settings: arguments of the profile: ``launch("cifar", epochs=3, lr=0.1)``.

    Raises:
        UsageError: there is no such profile, or a value cannot be.
        OperationError: it could not be started.
    """
    from ..core.launching.choice import LaunchChoice
    from ..core.launching.planning import launch_all, plan
    from ..core.machine import this_machine
    from ..core.profiles.first_run import acquaintance
    from ..core.profiles.library import load_profile
    from ..wire.records import QueueRule

    home, environ = _home(), dict(os.environ)
    found = load_profile(profile, home, Path.cwd())
    for said in acquaintance(found, home, Path.cwd(), asked="/" in profile).notes:
        warnings.warn(said, stacklevel=2)
    sets = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}
    rule = QueueRule(queue)
    choice = LaunchChoice(found, sets=sets, name=name, device=device, env=dict(env or {}), queue=rule)
    planned = plan(choice, environ=environ, machine=this_machine())
    for said in planned.warnings:
        warnings.warn(said, stacklevel=2)
    [started] = launch_all([planned], home, environ, time.time)
    return _ours(home, RunDir(home.runs / started), _machine())


def _ours(home: Home, run: RunDir, machine: LocalMachine) -> Run:
    return Run(home, RunReader(run, machine, columns=MOST_POINTS))


def _home() -> Home:
    return resolve_home(os.environ)


def _machine() -> LocalMachine:
    return LocalMachine(table=system_process_table(), boot_id=boot_id())


def _end_of(path: Path, lines: int | None) -> bytes:
    """Enough of the end of a file for so many lines."""
    with storage.open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        want = size if lines is None else 1 << 16
        while True:
            file.seek(max(0, size - want))
            data = file.read(want)
            if want >= size or data.count(b"\n") > (lines or 0):
                return data
            want *= 4
