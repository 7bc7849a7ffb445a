"""Gathers the witnesses of one run at the price of a few system calls, of one for a run that has settled."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from ...wire import liveness, storage
from ...wire.liveness import Process, ProcessIdentity, ProcessTable
from ...wire.records import ExitRecord, LaunchRecord, Spec, Status
from ...wire.rundir import RunDir
from ..follow.file import RecordFile
from ..model.snapshot import State
from .state import RunWitnesses, StateVerdict, derive

TABLE_SECONDS = 2.0
"""How long a look at the process table serves: on macOS each one starts ``ps``."""
MANY_PROCESSES = 4


@dataclass
class LocalMachine:
    """This machine, as far as a verdict depends on it: clocks, boot id and process table are handed in."""

    table: ProcessTable
    boot_id: str
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    _states: dict[int, tuple[float, Process | None]] = field(default_factory=dict)

    def process(self, identity: ProcessIdentity) -> Process | None:
        """That very process if it lives, at most ``TABLE_SECONDS`` ago."""
        now = self.monotonic()
        asked, found = self._states.get(identity.pid, (-TABLE_SECONDS, None))
        if now - asked >= TABLE_SECONDS:
            found = self.table.find(identity.pid)
            if len(self._states) > 1000:
                self._states.clear()
            self._states[identity.pid] = (now, found)
        return found if found is not None and found.alive and found.start == identity.start else None

    def alive(self, identities: Iterable[ProcessIdentity]) -> tuple[int, ...]:
        """Pids of those that live now (asked afresh: a verdict hangs on it)."""
        wanted = list(dict.fromkeys(identities))
        if len(wanted) > MANY_PROCESSES:
            rows = self.table.snapshot()
            found = [rows.get(identity.pid) for identity in wanted]
        else:
            found = [self.table.find(identity.pid) for identity in wanted]
        pairs = zip(wanted, found, strict=True)
        return tuple(one.pid for one, row in pairs if row is not None and row.start == one.start and row.alive)


class WitnessReader:
    """Looks at one run directory again and again."""

    def __init__(self, run: RunDir, machine: LocalMachine) -> None:
        self.run = run
        self.machine = machine
        self.spec = RecordFile(run.spec, partial(storage.from_json, Spec))
        self.status = RecordFile(run.status, partial(storage.from_json, Status))
        self.folder = run.attempt(1)
        """The newest attempt's."""
        self.exit = RecordFile(self.folder.exit, partial(storage.from_json, ExitRecord))
        self.launch = RecordFile(self.folder.launch, partial(storage.from_json, LaunchRecord))
        self.attempt = 0
        self.settled = False
        """Nothing of the run lives and nothing is awaited: only a new attempt can change it."""
        self.same_boot: bool | None = None
        self.seen = RunWitnesses()
        """What was seen last; the phase of the heartbeat is not in it."""
        self.verdict = StateVerdict(State.STARTING, "")
        self.trainer_lives = False
        self._judged: RunWitnesses | None = None
        self._mark: tuple[object, object] | None = None
        self._name, self._status_name = str(run.path), str(run.status)
        self._attempts_folder = self.folder.path.parent
        self._locks = (run.supervisor_lock, run.run_lock)

    def unchanged(self) -> bool:
        """Whether a settled run is still as it was: two stats. A new attempt replaces ``status.json`` in its folder."""
        return self.settled and self._marks(self._folder_time()) == self._mark

    def poll(self) -> None:
        """Look at the records, locks and processes; :meth:`judge` says what they mean."""
        changed = self._folder_time()
        self._mark = self._marks(changed)
        age = max(0.0, self.machine.clock() - changed / 1e9) if changed is not None else 0.0
        self.seen = self._gather(age)
        if self.seen.exit is None and not self.seen.supervisor_held and not self.seen.trainer_lives:
            # Locks were looked at before the records: an attempt may have begun in between. Nothing is lost lightly.
            self.seen = self._gather(age)

    def judge(self, phase: str | None) -> StateVerdict:
        """What the witnesses say together.

        Args:
            phase: of the newest attempt's last heartbeat, read after its exit record was.
        """
        seen = replace(self.seen, phase=phase)
        if seen != self._judged:
            self._judged, self.verdict, self.trainer_lives = seen, derive(seen), seen.trainer_lives
            self.settled = not (self.verdict.state.active or seen.supervisor_held or self.trainer_lives)
        return self.verdict

    def trainer(self) -> Process | None:
        """The trainer's row in the process table, while it lives."""
        status = self.status.value
        identity = status.trainer if status and self.same_boot is not False else None
        return self.machine.process(identity) if identity else None

    def _gather(self, age_seconds: float) -> RunWitnesses:
        try:
            supervisor_held, run_held = (liveness.is_held(lock) for lock in self._locks)
        except OSError:
            supervisor_held = run_held = False  # may not be read: the records say so with their own errors
        self.spec.read()
        self.status.read()
        self._find_attempt()
        status, ended = self.status.value, self.exit.value
        boots = (status.boot_id, self.machine.boot_id) if status else ("", "")
        self.same_boot = boots[0] == boots[1] if all(boots) else None
        files = (self.spec, self.status, self.exit)
        return RunWitnesses(
            spec=self.spec.value,
            status=status,
            exit=ended,
            attempt=self.attempt,
            supervisor_held=supervisor_held,
            run_held=run_held,
            alive=self._alive(status, ended, supervisor_held and run_held),
            same_boot=self.same_boot,
            age_seconds=0.0 if supervisor_held and self.spec.value else age_seconds,
            ended_seconds_ago=self.machine.clock() - ended.ended if ended else None,
            begun=bool(ended or self.launch.value or (status and status.trainer) or self.launch.error),
            unreadable=tuple(file.error for file in files if file.error and not file.newer),
            newer=tuple(file.error for file in files if file.error and file.newer),
        )

    def _find_attempt(self) -> None:
        """The newest attempt is the one with the highest number, in the status or as a folder."""
        told = self.status.value.attempt if self.status.value else 0
        try:
            names = os.listdir(self._attempts_folder)  # noqa: PTH208 - a path object an entry is what costs
        except OSError:
            names = []
        self.attempt = max([told, *(int(name) for name in names if name.isascii() and name.isdigit())])
        if self.attempt > 0 and self.attempt != self.folder.number:
            self.folder = self.run.attempt(self.attempt)
            self.exit = RecordFile(self.folder.exit, partial(storage.from_json, ExitRecord))
            self.launch = RecordFile(self.folder.launch, partial(storage.from_json, LaunchRecord))
        self.exit.read()
        self.launch.read()

    def _alive(self, status: Status | None, ended: ExitRecord | None, both_held: bool) -> tuple[int, ...]:
        """Recorded processes that live; asked for only where the locks leave a question."""
        if status is None or self.same_boot is False:
            return ()
        identities = status.tree
        trainer = status.trainer
        if ended is not None:
            left = {*ended.survivors, *status.survivors}
            return self.machine.alive(one for one in identities if one.pid in left) if left else ()
        if both_held and status.phase != "stop_failed":
            return ()
        return self.machine.alive([trainer, *identities] if trainer else identities)

    def _marks(self, changed: int | None) -> tuple[object, object]:
        """Two changes within one tick of the file system's clock leave the folder's time as it was."""
        return changed, storage.stamp(self._status_name)

    def _folder_time(self) -> int | None:
        try:
            return os.stat(self._name).st_mtime_ns  # noqa: PTH116 - half the price of Path.stat
        except OSError:
            return None
