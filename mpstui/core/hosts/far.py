"""Other machines as a screen sees them: one list of all runs, and each question goes to the right machine.

A run of another machine is called ``host:run``, its paths ``host:/path``, as ``scp`` writes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from platform import node
from typing import TYPE_CHECKING, Any

from ...wire import rundir
from ...wire.records import Ack, Request
from ..actions import BY_ID
from ..follow import Budget
from ..model.snapshot import RunSnapshot, SeriesView
from ..present import duration, short_paths
from ..profiles.library import ProfileEntry
from ..runs.ghost import Ghost, GhostFinder
from ..runs.monitor import Monitor
from ..runs.window import Window
from ..telemetry.model import SystemSample, TreeSample
from ..telemetry.run_telemetry import RunTelemetry
from ..telemetry.sampler import Sampler, Snapshot, Trees
from .desk import Desk
from .link import Link
from .ssh import LOCAL
from .view import Answers, Listing, MachineReading, Raced, RunRef, View

if TYPE_CHECKING:
    from ..launching.actions import Actions

_AWAITED = 20


class FarHost:
    """One machine."""

    def __init__(self, name: str, link: Link) -> None:
        self.name, self.link = name, link
        self.view = View()
        self.profiles: Sequence[ProfileEntry] | None = None
        """As last received."""
        self._seen: dict[str, tuple[RunSnapshot, tuple[float, str], RunSnapshot]] = {}
        """For each run, what its snapshot was made from, and the snapshot."""

    def look(self, **at: Any) -> None:
        """Change parts of what is looked at; the rest stays."""
        self.view = replace(self.view, **at)
        self.link.look(self.view)

    def key(self, run: str) -> str:
        """The name used here for one of its runs."""
        return f"{self.name}:{run}"

    def has(self, key: str | Path) -> bool:
        """True if a run or a path of this name is on that machine."""
        return str(key).startswith(f"{self.name}:")

    def there(self, key: str | Path) -> str:
        """The name used there for a run or a path."""
        return str(key)[len(self.name) + 1 :]

    def ref(self, snapshot: RunSnapshot) -> RunRef:
        return RunRef(self.there(snapshot.run), snapshot.attempt)

    def snapshots(self, closely: Collection[str]) -> list[RunSnapshot]:
        """Its runs, newest first; those looked at closely are complete as soon as they have been received."""
        listing: Listing | None = self.link.values.get("list")
        heard, current = self.link.heard_at, self.link.current
        found = []
        for run, listed in (listing.runs if listing is not None else {}).items():
            full = self.link.values.get(f"run:{run}") if run in closely else None
            found.append(self._here(full if full is not None else listed, heard, current))
        self._seen = {one.run: self._seen[one.run] for one in found}
        return found

    def seen_here(self, one: RunSnapshot) -> RunSnapshot:
        """As seen from here, a snapshot that was asked for."""
        return self._here(one, self.link.heard_at, self.link.current)

    def _here(self, one: RunSnapshot, heard: float | None, current: bool) -> RunSnapshot:
        """A snapshot as seen from here; the same object as long as nothing has changed."""
        age = "" if current or heard is None else duration(time.time() - heard)
        moment = float(int(heard or 0.0)) if one.state.active or one.seen == 0.0 else 0.0
        at = (moment if one.state.active else 0.0, age)
        key = self.key(one.run)
        kept = self._seen.get(key)
        if kept is not None and kept[0] is one and kept[1] == at:
            return kept[2]
        made = replace(
            one,
            run=key,
            host=self.name,
            moving=one.moving._replace(to=LOCAL) if one.moving and one.moving.to == node() else one.moving,
            moved_to=LOCAL if one.moved_to == node() else one.moved_to,
            dir=Path(f"{self.name}:{one.dir}"),
            output=None if one.output is None else Path(f"{self.name}:{one.output}"),
            seen=moment,
            heard=heard if age else None,
            health_note=f"not heard for {age}" if age and one.state.active else one.health_note,
            events=tuple(event._replace(text=short_paths(event.text, one.dir)) for event in one.events),
        )
        self._seen[key] = one, at, made
        return made


class HostsMonitor:
    """All runs of all machines, including this one if requested; see :class:`.Monitor`."""

    def __init__(self, hosts: Sequence[FarHost], local: Monitor | None) -> None:
        self._hosts, self._local = hosts, local
        self._beside: dict[str, tuple[RunSnapshot, RunSnapshot]] = {}

    def refresh(
        self, focus: str | None = None, selected: Collection[str] = (), compared: Sequence[str] = ()
    ) -> tuple[RunSnapshot, ...]:
        found: list[RunSnapshot] = []
        for host in self._hosts:
            own = [host.there(run) for run in compared if host.has(run)]
            mine = focus is not None and host.has(focus)
            at = host.there(focus) if mine and focus is not None else None
            host.look(
                focus=at,
                selected=tuple(host.there(run) for run in selected if host.has(run)),
                compared=tuple(own),
            )
            found += host.snapshots({*own, *([at] if at is not None else [])})
        if self._local is not None:
            found += self._local.refresh(focus, selected, compared)
        known = {one.run for one in found} | {f"{LOCAL}:{one.run}" for one in found if not one.host}
        shown = (
            one for one in found if f"{one.moved_to}:{_created(one)}" not in known
        )  # a moved run is one row, on the machine where it continues
        looked_at = {focus, *selected, *compared}
        return tuple(sorted(_once(shown, looked_at), key=_created, reverse=True))

    def read_on(self, focus: str, seconds: float) -> int:
        return self._local.read_on(focus, seconds) if self._local is not None else 0

    def hint(self, runs: Iterable[str]) -> None:
        if self._local is not None:
            self._local.hint(runs)

    @property
    def is_behind(self) -> bool:
        return self._local is not None and self._local.is_behind


def _once(snapshots: Iterable[RunSnapshot], looked_at: Collection[str | None]) -> list[RunSnapshot]:
    """List a run only once if several machines share its home; its id and its start time identify it.

    What somebody looks at stays; otherwise a machine is preferred that still has it, answers, and on which it is alive.
    """
    found: dict[Any, tuple[tuple[bool, ...], RunSnapshot]] = {}
    for one in snapshots:
        key = one.run if one.started is None else (_created(one), round(one.started, 2))
        worth = one.run in looked_at, one.moved_to is None, one.heard is None, one.state.active
        if key not in found or worth > found[key][0]:
            found[key] = worth, one
    return [one for _, one in found.values()]


def _created(snapshot: RunSnapshot) -> str:
    """Sort key: ids begin with the time; what is only watched comes first, as it does on one machine."""
    run = snapshot.run.removeprefix(f"{snapshot.host}:")
    return f"~{run}" if run.startswith("/") else run


class HostsActions:
    """Sends requests to the machine that a run is on; see :class:`.Actions`."""

    def __init__(self, host_of: Callable[[str | Path], FarHost | None], local: Actions) -> None:
        self._host_of, self._local = host_of, local

    def send(self, snapshot: RunSnapshot, action: str, **options: Any) -> Request:
        host = self._host_of(snapshot.run)
        if host is None:
            return self._local.send(snapshot, action, **options)
        entry = BY_ID[action]
        return self._asked(host, snapshot, entry.request, entry.name, Desk.act, action=action, options=options)

    def go_on(self, snapshot: RunSnapshot) -> Request:
        host = self._host_of(snapshot.run)
        if host is None:
            return self._local.go_on(snapshot)
        return self._asked(host, snapshot, "restart", "restart", Desk.go_on)

    def asked(self, host: FarHost, snapshot: RunSnapshot, method: Any, **arguments: Any) -> Request:
        """Send a restart from a form."""
        return self._asked(host, snapshot, "restart", "restart", method, **arguments)

    def _asked(
        self, host: FarHost, snapshot: RunSnapshot, wish: str, name: str, method: Any, **arguments: Any
    ) -> Request:
        call = rundir.new_request(wish, snapshot.attempt, time.time() + host.link.ahead).id
        about = f"{name} of {snapshot.name}"
        found: Request = host.link.ask(method, about=about, call=call, run=host.ref(snapshot), **arguments)
        host.look(asked=(*host.view.asked, (host.there(snapshot.run), found.id))[-_AWAITED:])
        return found

    def answer(self, run_dir: Path, request_id: str) -> Ack | None:
        host = self._host_of(run_dir)
        if host is None:
            return self._local.answer(run_dir, request_id)
        answers: Answers | None = host.link.values.get("answers")
        found = answers.acks.get(request_id) if answers is not None else None
        if found is not None:
            host.look(asked=tuple(one for one in host.view.asked if one[1] != request_id))
        return found


class FarWindow:
    """A part of a run's curves, read over there in one go; see :class:`.WindowReader`."""

    def __init__(self, host: FarHost, snapshot: RunSnapshot, window: Window) -> None:
        self.window, self._host, self._snapshot = window, host, snapshot
        self.curves: Mapping[str, SeriesView] = {}
        self.done = False

    def read(self, budget: Budget) -> None:
        window = self.window._replace(run=self._host.there(self.window.run))
        self.done = True
        self.curves = self._host.link.ask(Desk.window, patience=30.0, run=self._host.ref(self._snapshot), window=window)


class FarGhosts:
    """The best earlier run, as found over there; see :class:`.GhostFinder`."""

    def __init__(self, host_of: Callable[[str | Path], FarHost | None], local: GhostFinder) -> None:
        self._host_of, self._local = host_of, local
        self._asked: FarHost | None = None
        self.pending = False

    def look(self, live: RunSnapshot, others: Sequence[RunSnapshot], seconds: float) -> Ghost | None:
        host = self._host_of(live.run)
        if self._asked is not None and self._asked is not host:
            self._asked.look(raced=None)
        self._asked = host
        if host is None:
            found = self._local.look(live, [one for one in others if one.host is None], seconds)
            self.pending = self._local.pending
            return found
        host.look(raced=host.there(live.run))
        raced: Raced | None = host.link.values.get("race")
        ghost = raced.ghost if raced is not None else None
        if ghost is None or host.key(ghost.live) != live.run:
            return None
        return replace(ghost, live=live.run, run=host.key(ghost.run))


class FarMachine:
    """A machine's readings as received; see :class:`.Sampler`."""

    def __init__(self, hosts: Sequence[FarHost], local: Callable[[], Sampler] | None) -> None:
        """``local`` creates a sampler of this machine; None: it is not shown."""
        self._hosts, self._local = hosts, local() if local is not None else None
        self._recorded: str | None = None

    def sample(self, trees: Trees | None = None) -> Snapshot:
        run = next(iter(trees or {}), self._recorded)
        alone = self._hosts[0] if len(self._hosts) == 1 and self._local is None else None
        host = next((one for one in self._hosts if run is not None and one.has(run)), None if run else alone)
        for one in self._hosts:
            one.look(sampled=None if one is not host else one.there(run) if run is not None else "")
        if host is None and run is not None and self._local is not None:
            return self._local.sample(trees)
        reading: MachineReading | None = host.link.values.get("machine") if host is not None else None
        if (
            host is None
            or reading is None
            or reading.system is None
            or not host.link.live
            or reading.run != host.view.sampled
        ):
            why = "no machine is looked at" if host is None else f"{host.name} has not reported it yet"
            return Snapshot(SystemSample(time=time.time(), reasons={"gpus": why}))
        told: dict[str, TreeSample] = {run: reading.tree} if run is not None and reading.tree is not None else {}
        return Snapshot(replace(reading.system, host=host.name), told)

    def record(self, run: str) -> None:
        """Note that somebody is looking at this run."""
        self._recorded = run

    def forget(self) -> None:
        """Note that nobody is looking at a run any more."""
        self._recorded = None

    def close(self) -> None:
        for one in self._hosts:
            one.look(sampled=None)
        if self._local is not None:
            self._local.close()


class FarRecorder:
    """The telemetry of a run as known over there, where the first screen that looks records it."""

    def __init__(self, machine: FarMachine, host: FarHost) -> None:
        self._machine, self._host = machine, host

    def poll(self, snapshot: RunSnapshot, system: SystemSample, tree: TreeSample | None) -> RunTelemetry:
        reading: MachineReading | None = self._host.link.values.get("machine")
        told = reading is not None and reading.run == self._host.there(snapshot.run)
        return (reading.telemetry if reading is not None and told else None) or RunTelemetry()

    def close(self) -> None:
        self._machine.forget()
