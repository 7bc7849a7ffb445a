"""Everything that a screen asks, for several machines at once: each question goes to the machine that has the run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model.errors import OperationError
from ..model.home import Home
from ..model.snapshot import RunSnapshot
from .desk import Desk
from .far import FarGhosts, FarHost, FarMachine, FarRecorder, FarWindow, HostsActions, HostsMonitor
from .far_forms import FarLauncher
from .link import Connect, Link
from .local import LocalServices, Stamp
from .logs import FarLog
from .reopening import Knock, unknown

if TYPE_CHECKING:
    from ...wire.queues import Queue
    from ..launching.explaining import Explanation
    from ..runs.details import Section
    from ..runs.logged import Seen, Wanted
    from ..runs.queueing import Moved
    from ..runs.removal import Removable, Removed
    from ..runs.window import Window
    from ..sharing.export import Table

MOST_PIXELS = 24_000
"""The most pixels of an image sent over a line: as many as a window of 160 x 75 cells shows in half blocks."""
IMAGE_PATIENCE = 20.0


class Way(NamedTuple):
    """How to reach one machine."""

    connect: Connect
    knock: Knock = unknown


class JoinedServices(LocalServices):
    """Like :class:`.LocalServices`, for several machines. The list and the settings are those of this machine."""

    def __init__(
        self,
        home: Home,
        environ: Mapping[str, str],
        cwd: Path,
        clock: Callable[[], float],
        *,
        hosts: Mapping[str, Way],
        local: bool = False,
    ) -> None:
        """``hosts``: how to open a line to each; ``local``: this machine is one of them."""
        super().__init__(home, environ, cwd, clock)
        self.notices = deque()
        self.hosts = [
            FarHost(name, Link(name, way.connect, clock=clock, knock=way.knock)) for name, way in hosts.items()
        ]
        for host in self.hosts:
            host.link.notices = self.notices
        self._local = local
        self._focused: FarHost | None = None if local else self.hosts[0]
        self._logs: deque[tuple[FarHost, str]] = deque(maxlen=1)
        self._local_stamp, self.stamp = self.stamp, self._stamp_of
        self.queues_stamp = self._always

    def start(self) -> None:
        """Open the lines."""
        for host in self.hosts:
            host.link.start()

    def close(self) -> None:
        """Close the connections; runs continue."""
        for host in self.hosts:
            host.link.stop()

    def machines(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(["local", *(host.name for host in self.hosts), *super().machines()]))

    def placed_launcher(self) -> Any:
        far = self._focused
        if far is None:
            return super().placed_launcher()
        return self._placed(super().launcher(), FarLauncher(far, self.actions.asked), far.name)

    @property
    def troubles(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(filter(None, (host.link.sentence for host in self.hosts)))

    @property
    def watched_folder(self) -> Path | None:
        return super().watched_folder if self._local else None

    def host_of(self, key: str | Path) -> FarHost | None:
        """The other machine that a run or a path is on; None: it is on this one."""
        return next((host for host in self.hosts if host.has(key)), None)

    def _here(self, snapshots: Sequence[RunSnapshot]) -> list[RunSnapshot]:
        return [one for one in snapshots if self.host_of(one.run) is None]

    # -- reading

    def monitor(self, columns: int | None = None) -> Any:
        services = self

        class Focusing(HostsMonitor):
            def refresh(self, focus: str | None = None, *rest: Any, **named: Any) -> tuple[RunSnapshot, ...]:
                if focus is not None:
                    services._focused = services.host_of(focus)
                return super().refresh(focus, *rest, **named)

        return Focusing(self.hosts, super().monitor(columns) if self._local else None)

    def ghosts(self) -> Any:
        return FarGhosts(self.host_of, super().ghosts())

    @cached_property
    def actions(self) -> Any:
        from ..launching.actions import Actions

        return HostsActions(self.host_of, Actions(self.environ, self.clock))

    @cached_property
    def recovery(self) -> Any:
        """Each machine looks after its own runs."""
        from ..launching.actions import Actions, SupervisorRecovery

        local = Actions(self.environ, self.clock)
        return SupervisorRecovery(self.home, local.supervise, local.supervising_many)

    @cached_property
    def _machine(self) -> FarMachine:
        return FarMachine(self.hosts, super().sampler if self._local else None)

    def sampler(self) -> Any:
        return self._machine

    def recorder(self, snapshot: RunSnapshot) -> Any:
        host = self.host_of(snapshot.run)
        if host is None:
            return super().recorder(snapshot)
        self._machine.record(snapshot.run)
        return FarRecorder(self._machine, host)

    def open_log(self, path: Path) -> Any:
        host = self.host_of(path)
        for other in self.hosts:
            other.look(logs=(host.there(path),) if host is other else ())
        return FarLog(Path(host.there(path)), host.link) if host is not None else super().open_log(path)

    def _stamp_of(self, path: Path) -> Stamp | None:
        host = self.host_of(path)
        if host is None:
            return self._local_stamp(path)
        end = host.link.values.get(f"log:{host.there(path)}")
        return (int(host.link.live), end.restarts, end.size) if end is not None and end.there else None

    def _always(self) -> Stamp:
        return time.time_ns(), 0, 0

    def explain(self, snapshot: RunSnapshot) -> Explanation:
        host = self.host_of(snapshot.run)
        return super().explain(snapshot) if host is None else host.link.ask(Desk.explain, run=host.ref(snapshot))

    def details(self, snapshot: RunSnapshot) -> tuple[Section, ...]:
        host = self.host_of(snapshot.run)
        return super().details(snapshot) if host is None else host.link.ask(Desk.details, run=host.ref(snapshot))

    def table(self, snapshot: RunSnapshot) -> Table:
        host = self.host_of(snapshot.run)
        if host is None:
            return super().table(snapshot)
        return host.link.ask(Desk.table, patience=120.0, run=host.ref(snapshot))

    def looked_into(self, runs: Sequence[RunSnapshot]) -> list[RunSnapshot]:
        found = {one.run: one for one in super().looked_into(self._here(runs))}
        for host in self.hosts:
            own = [one for one in runs if host.has(one.run)]
            asked = host.link.ask(Desk.looked_into, runs=tuple(map(host.ref, own))) if own else ()
            found |= {host.key(one.run): host.seen_here(one) for one in asked}
        return [found[one.run] for one in runs]

    def image(self, snapshot: RunSnapshot, wanted: Wanted) -> Seen:
        host = self.host_of(snapshot.run)
        if host is None:
            return super().image(snapshot, wanted)
        share = min(1.0, (MOST_PIXELS / max(1, wanted.box[0] * wanted.box[1])) ** 0.5)
        wanted = wanted._replace(box=(int(wanted.box[0] * share), int(wanted.box[1] * share)))
        return host.link.ask(Desk.image, patience=IMAGE_PATIENCE, run=host.ref(snapshot), wanted=wanted)

    def window_reader(self, snapshot: RunSnapshot, window: Window) -> Any:
        host = self.host_of(snapshot.run)
        return super().window_reader(snapshot, window) if host is None else FarWindow(host, snapshot, window)

    # -- launching

    def launcher(self) -> Any:
        """The launcher of the machine that the selected run is on."""
        if self._focused is None:
            return super().launcher()
        return FarLauncher(self._focused, self.actions.asked)

    # -- queues

    def paused_queues(self) -> tuple[str, ...]:
        here = super().paused_queues() if self._local else ()
        listings = ((host, host.link.values.get("list")) for host in self.hosts)
        return (*here, *(host.key(queue) for host, found in listings if found is not None for queue in found.paused))

    def move_in_queue(self, snapshot: RunSnapshot, direction: str, call: str = "") -> Moved:
        host = self.host_of(snapshot.run)
        if host is None:
            return super().move_in_queue(snapshot, direction, call)
        about = f"moving {snapshot.name} {direction}"
        return host.link.ask(Desk.move_in_queue, about=about, run=host.ref(snapshot), direction=direction)

    def pause_queue(self, group: str, paused: bool) -> Queue:
        host = self.host_of(group)
        group = host.there(group) if host is not None else group
        host = host or self._focused
        if host is None:
            return super().pause_queue(group, paused)
        about = f"{'pausing' if paused else 'resuming'} queue {group}"
        return host.link.ask(Desk.pause_queue, about=about, group=group, paused=paused)

    # -- labels and removal

    def label(self, snapshots: Sequence[RunSnapshot], what: str, before: str, text: str) -> None:
        here = self._here(snapshots)
        if here:
            super().label(here, what, before, text)
        for host in self.hosts:
            runs = tuple(host.ref(one) for one in snapshots if host.has(one.run))
            if runs:
                host.link.ask(Desk.label, about=f"the {what}", runs=runs, what=what, before=before, text=text)

    def examine_removal(self, snapshot: RunSnapshot) -> Removable:
        host = self.host_of(snapshot.run)
        if host is None:
            return super().examine_removal(snapshot)
        return host.link.ask(Desk.examine_removal, run=host.ref(snapshot))

    def remove(self, snapshot: RunSnapshot, *, keep_checkpoints: bool) -> Removed:
        host = self.host_of(snapshot.run)
        if host is None:
            return super().remove(snapshot, keep_checkpoints=keep_checkpoints)
        about = f"removing {snapshot.name}"
        return host.link.ask(
            Desk.remove, about=about, run=host.ref(snapshot), keep_checkpoints=keep_checkpoints, patience=60.0
        )


def connections(
    names: Sequence[str], settings: Any, environ: Mapping[str, str], watching: str | None = None
) -> dict[str, Way]:
    """How to open a line to each of these machines.

    Args:
        watching: a file or folder over there that mpstui did not start, shown beside the runs.

    Raises:
        UsageError: no machine can have such a name.
    """
    from .ssh import Knocking, connect, require_name

    def way(name: str) -> Way:
        words = ("serve",) if watching is None else ("serve", watching)
        return Way(lambda: connect(name, settings, words, environ=environ), Knocking(name, settings, environ))

    for name in names:
        require_name(name)
    if not names:
        raise OperationError("no machine is named")
    return {name: way(name) for name in names}
