"""Queue groups as people see and change them: which runs wait and which run. Nothing here starts or ends a run.

What people decide is kept in ``queue/<group>.json`` (:mod:`mpstui.wire.queues`), which each waiting run reads once a
second. Every change is applied under the group's lock to the current content of the file, so that of two simultaneous
changes neither is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from ...wire import labels, liveness, queues, storage
from ...wire.queues import MOST_SLOTS, Queue, QueueBusy, QueueFiles
from ...wire.records import LaunchRecord, QueueRule, Spec, Status
from ...wire.rundir import RunDir, run_dirs
from ...wire.storage import UnreadableRecord
from ..model.errors import OperationError, UsageError
from ..model.home import Home
from ..model.queue_place import QueuePlace
from .editing import edited
from .find import run_name
from .waiting import is_waiting

_CALLS_KEPT = 50
DIRECTIONS = ("up", "down", "first", "last")


class Waiter(NamedTuple):
    """What the place of a queued run depends on."""

    run: str
    rule: QueueRule
    waiting_for: str | None
    """``runs``, ``group`` or ``slot``, as reported by its supervisor."""


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a group."""

    run: str
    name: str
    supervised: bool
    """False if it currently has no supervisor to wait for its turn or to watch it."""
    place: QueuePlace | None = None
    """None if it runs."""
    gpus: tuple[str, ...] | None = ()
    """The CUDA devices reserved for it while it runs; None if it is just starting and they are not recorded yet."""


@dataclass(frozen=True, slots=True)
class Group:
    """The current state of a group. ``name`` and ``slots`` are None for runs that wait only for other runs."""

    name: str | None
    slots: int | None
    paused: bool
    running: tuple[Member, ...]
    waiting: tuple[Member, ...]
    """The next to start first."""
    by_hand: bool = False
    """True if a person set the slots."""
    devices: tuple[str, ...] = ()
    """The CUDA devices for its runs, one each unless a run takes more; ``slots`` is their number if nobody set it."""

    @property
    def shares_devices(self) -> bool:
        """True if several runs may share a device."""
        return bool(self.devices) and (self.slots or 0) > len(self.devices)


@dataclass(frozen=True, slots=True)
class Moved:
    """The place of a run after it was moved."""

    group: str
    place: int
    """Counted from 1, the next to start."""
    count: int


def list_groups(home: Home) -> tuple[Group, ...]:
    """Return every group that has a file or runs, by name; runs that are in no group come last.

    Raises:
        OperationError: the file of a group cannot be read.
    """
    found = [item for item in map(_entry, run_dirs(home.runs)) if item]
    names = {item.rule.group for item in found} | set(_decided(home))
    by_slug = {QueueFiles(home.queue, name).state: name for name in sorted(filter(None, names), reverse=True)}
    groups = [_group(home, name, found) for name in sorted(by_slug.values())]
    loose = [item for item in found if not item.rule.group and item.waits]
    return (*groups, *([Group(None, None, False, (), _members(home, loose[::-1]))] if loose else []))


def find_group(home: Home, name: str) -> Group:
    """Return the group of this name; names that give the same file name mean the same group.

    Raises:
        UsageError: there is no such group.
        OperationError: its file cannot be read.
    """
    groups = {group.name: group for group in list_groups(home) if group.name}
    wanted = QueueFiles(home.queue, name).state
    for known, group in groups.items():
        if QueueFiles(home.queue, known).state == wanted:
            return group
    close = get_close_matches(name, groups, n=1) or sorted(groups)[:8]
    hint = f"there is {', '.join(close)}" if close else "`mpstui launch PROFILE --queue NAME` makes one"
    raise UsageError(f"there is no queue group {name!r}", hint, field="queue")


def paused_groups(home: Home) -> tuple[str, ...]:
    """Return the names of the paused groups, including empty ones; only the groups' files are read."""
    queues_of = (_peek(QueueFiles(home.queue, name)) for name in _decided(home))
    return tuple(sorted(queue.group for queue in queues_of if queue.paused))


def set_paused(home: Home, name: str, paused: bool) -> Queue:
    """Keep a group from starting runs, or let it continue; runs already started are not affected.

    Raises:
        UsageError: no such group; OperationError: it could not be changed.
    """
    find_group(home, name)
    return _edit(QueueFiles(home.queue, name), lambda queue: queue._replace(paused=paused))


def set_slots(home: Home, name: str, slots: int | None) -> Queue:
    """Set how many runs of a group may run at once; the group may still be empty.

    Args:
        slots: None restores the default: one, or one per GPU.

    Raises:
        UsageError: fewer than one or more than :data:`MOST_SLOTS`; OperationError: it could not be changed.
    """
    if slots is None:
        return _edit(QueueFiles(home.queue, name), lambda queue: queue._replace(slots=1, decided=False))
    if not 1 <= slots <= MOST_SLOTS:
        raise UsageError(f"a queue group has 1 to {MOST_SLOTS} slots, not {slots}", "`mpstui queue pause` starts none")
    return _edit(QueueFiles(home.queue, name), lambda queue: queue._replace(slots=slots, decided=True))


def move_run(home: Home, run: RunDir, direction: str, call: str = "") -> Moved:
    """Move a queued run within its group: one place up or down, or to either end.

    Args:
        call: an id for this request, which is carried out only once even if it arrives several times.

    Raises:
        UsageError: ``direction`` is not in :data:`DIRECTIONS`; OperationError: the run does not wait in a group.
    """
    if direction not in DIRECTIONS:
        raise UsageError(f"a run is moved {', '.join(DIRECTIONS)}, not {direction!r}")
    item = _entry(run)
    if item is None or not item.waits:
        raise OperationError(f"run {run.run} is not queued", "only what waits can be moved; see `mpstui queue`")
    if not item.rule.group:
        raise OperationError(f"run {run.run} waits for other runs, in no queue group")

    def change(queue: Queue) -> Queue:
        if call and call in queue.calls:
            return queue
        present = [name for name in queue.order if name == run.run or _waits(RunDir(home.runs / name))]
        calls = [*queue.calls, call][-_CALLS_KEPT:] if call else queue.calls
        return queue._replace(order=moved(queue.order, present, run.run, direction), calls=calls)

    after = _edit(QueueFiles(home.queue, item.rule.group), change)
    present = [name for name in after.order if name == run.run or _waits(RunDir(home.runs / name))]
    return Moved(item.rule.group, present.index(run.run) + 1, len(present))


def moved(order: Sequence[str], present: Sequence[str], run: str, direction: str) -> list[str]:
    """Return ``order`` with ``run`` moved relative to the runs ``present``.

    A run in the order that is not present (it has just started, or its folder is gone) keeps its place and is not
    counted: moving past it would have no visible effect.
    """
    others = [name for name in present if name != run]
    at = list(present).index(run) if run in present else len(others)
    to = {"up": at - 1, "down": at + 1, "first": 0, "last": len(others)}[direction]
    to = max(0, min(to, len(others)))
    rest = [name for name in order if name != run]
    if to == len(others):
        return [*rest, run]
    place = rest.index(others[to])
    return [*rest[:place], run, *rest[place:]]


def places(home: Home, waiting: Iterable[Waiter], names: Mapping[str, str]) -> dict[str, QueuePlace]:
    """Return the place of each of these queued runs, by id.

    Args:
        names: names of runs by id; a run without one is called by its id.
    """
    waiting = list(waiting)
    decided = {group: _peek(QueueFiles(home.queue, group)) for group in {item.rule.group for item in waiting} if group}
    found = {}
    for item in waiting:
        group = item.rule.group
        pending = item.waiting_for == "runs" or (group is None and item.waiting_for is None)
        others = [after.get("run", "?") for after in item.rule.after] if pending else []
        after = tuple(names.get(run, run) for run in others)
        if group is None:
            found[item.run] = QueuePlace(after=after)
            continue
        here = {other.run for other in waiting if other.rule.group == group}
        order = [run for run in decided[group].order if run in here]
        number = order.index(item.run) + 1 if item.run in order else None
        found[item.run] = QueuePlace(group, number, decided[group].paused, after)
    return found


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the store knows about a run that waits or is alive."""

    run: RunDir
    spec: Spec
    status: Status
    waits: bool
    supervised: bool

    @property
    def rule(self) -> QueueRule:
        return self.spec.queue

    def member(self, place: QueuePlace | None = None) -> Member:
        """Return it as shown to people."""
        gpus: tuple[str, ...] | None = ()
        if not self.waits and self.spec.gpus is not None:
            launched = storage.read_or_none(LaunchRecord, self.run.attempt(self.status.attempt).launch)
            gpus = tuple(launched.gpus) if launched else None
        return Member(self.run.run, labels.name_of(self.run, self.spec), self.supervised, place, gpus)


def _entry(run: RunDir) -> _Entry | None:
    """Return the entry of a run that waits or is alive; None if it has ended or its records cannot be read."""
    status = storage.read_or_none(Status, run.status)
    if status is None or status.phase in ("ended", "dependency_failed"):
        return None
    spec = storage.read_or_none(Spec, run.spec)
    supervised, waits = liveness.is_held(run.supervisor_lock), is_waiting(run, status)
    if spec is None or not (waits or supervised or liveness.is_held(run.run_lock)):
        return None
    return _Entry(run, spec, status, waits, supervised)


def _waits(run: RunDir) -> bool:
    status = storage.read_or_none(Status, run.status)
    return status is not None and is_waiting(run, status)


def _decided(home: Home) -> list[str]:
    """Return the names of the groups that have a file."""
    found = []
    for path in home.queue.glob("*.json") if home.queue.is_dir() else ():
        try:
            name = (storage.read_json(path) or {}).get("group")
        except (OSError, UnreadableRecord):
            name = path.stem
        if isinstance(name, str) and not path.name.startswith("."):
            found.append(name)
    return found


def _group(home: Home, name: str, found: Sequence[_Entry]) -> Group:
    files = QueueFiles(home.queue, name)
    try:
        queue = queues.read(files)
    except (OSError, UnreadableRecord) as error:
        raise OperationError(f"queue group {files.group} cannot be read: {error}", f"see {files.state}") from error
    mine = [item for item in found if item.rule.group and QueueFiles(home.queue, item.rule.group).state == files.state]
    rank = {run: place for place, run in enumerate(queue.order)}
    waiting = sorted((item for item in mine if item.waits), key=lambda item: rank.get(item.run.run, len(rank)))
    running = tuple(item.member() for item in mine if not item.waits)
    # The devices of all runs in the group; if it is empty, those of the last run that was in it.
    found_devices = dict.fromkeys(name for item in mine if item.spec.gpus for name in item.spec.gpus.devices)
    devices = tuple(found_devices) if mine else tuple(queue.devices)
    slots = queue.slots if queue.by_hand else max(len(devices), 1)
    return Group(name, slots, queue.paused, running, _members(home, waiting), queue.by_hand, devices)


def _members(home: Home, waiting: Sequence[_Entry]) -> tuple[Member, ...]:
    after = {rule.get("run", "") for item in waiting for rule in item.rule.after}
    names = {run: run_name(RunDir(home.runs / run)) or run for run in after if run}
    found = places(home, [Waiter(item.run.run, item.rule, item.status.waiting_for) for item in waiting], names)
    return tuple(item.member(found[item.run.run]) for item in waiting)


def _peek(files: QueueFiles) -> Queue:
    """Read a group for display: an unreadable one is shown as if nothing had been decided."""
    try:
        return queues.read(files)
    except (OSError, UnreadableRecord):
        return Queue(files.group)


def _edit(files: QueueFiles, change: Callable[[Queue], Queue]) -> Queue:
    """Change a group, waiting for anybody who is editing it at the moment."""
    what, folders = f"queue group {files.group}", (files.folder.parent, files.folder)
    return edited(what, files.state, lambda: queues.edit(files, change), folders=folders, busy=QueueBusy)
