"""The requests that a supervisor takes, and everything it writes.

A failed write is kept in memory and retried; it never stops a run.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..wire import rundir, storage
from ..wire.records import ENDS, TRAINER_ACTIONS, Ack, ExitRecord, Request, Status
from ..wire.rundir import RunDir
from .machine import Clock

FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0
LIST_ANYWAY_SECONDS = 2.0
"""How often to list the folder even if its time has not changed: a write within one clock tick may not change it."""


MOST_AT_ONCE = 5
"""Requests per tick, besides those that end a run: each answer is synced to disk, which takes time."""
MOST_READ_AT_ONCE = 500


class Pending(NamedTuple):
    """A write that has not succeeded yet."""

    key: str
    """A later write with the same key replaces this one; every event and answer has a key of its own."""
    write: Callable[[], object]


class Journal:
    """The supervisor's own records of one run."""

    def __init__(self, run: RunDir, status: Status, clock: Clock) -> None:
        self.run = run
        self.status = status
        self._clock = clock
        self._pending: list[Pending] = []
        self._serial = itertools.count(1)
        self._retry_at = 0.0
        self._pause = FIRST_RETRY_SECONDS

    @property
    def pending(self) -> bool:
        """True if something exists only in memory."""
        return bool(self._pending)

    def update(self, **changes: Any) -> None:
        self.status = self.status._replace(**changes, updated=self._clock.wall())
        snapshot = self.status
        self._save("status", lambda: storage.write_json(self.run.status, snapshot))

    def event(self, name: str, text: str, *, attempt: int | None = None, **details: Any) -> None:
        number = self.status.attempt if attempt is None else attempt
        line = rundir.event(self._clock.wall(), number, name, text, **details)
        self._save(f"event {next(self._serial)}", lambda: storage.append_line(self.run.events, line))

    def exit(self, record: ExitRecord) -> None:
        """Record an attempt's end, once and as durably as the machine can; an existing record is kept."""
        path = self.run.attempt(record.attempt).exit
        self._save(f"exit {record.attempt}", lambda: self._write_exit(path, record))

    def answer(self, request: Request, *, ok: bool, text: str, noted: str | None = None) -> None:
        """Answer a request; only the first answer counts.

        Args:
            noted: the event's text, if another event already says what the answer says.
        """
        ack = Ack(request.id, ok, "supervisor", self._clock.wall(), text)
        reserve = self.run.answer_reserve if request.action in ENDS else None
        self._save(f"ack {next(self._serial)}", lambda: rundir.answer(self.run, ack, reserve))
        self.event("ack", noted or text, attempt=request.attempt, request=request.id, action=request.action, ok=ok)

    def retry(self) -> None:
        """Retry failed writes, less and less often."""
        if not self._pending or self._clock.monotonic() < self._retry_at:
            return
        waiting, self._pending = self._pending, []
        for item in waiting:
            self._save(item.key, item.write)
        if self._pending:
            self._pause = min(self._pause * 2, LONGEST_RETRY_SECONDS)
            self._retry_at = self._clock.monotonic() + self._pause
        else:
            self._pause = FIRST_RETRY_SECONDS
            self.keep_reserves()

    def keep_reserves(self) -> None:
        """Reserve disk space for a request to end the run, its answer, and the exit record."""
        for path, size in ((self.run.reserve, 8192), (self.run.request_reserve, 4096), (self.run.answer_reserve, 4096)):
            with contextlib.suppress(OSError):
                if not path.exists():  # not zeros: some disks store those without taking any room
                    storage.write_bytes(path, os.urandom(size), sync=False)

    def _write_exit(self, path: Any, record: ExitRecord) -> None:
        storage.make_private_folder(path.parent)
        rundir.create_in_reserve(path, record, self.run.reserve, durable=True)

    def _save(self, key: str, write: Callable[[], object]) -> None:
        self._pending = [item for item in self._pending if item.key != key]
        if not self.run.path.is_dir():
            return  # somebody deleted the run: a record in a new folder of that name would bring it back as a ghost
        try:
            write()
        except OSError as error:
            complain(f"{key} is kept in memory: {error}")
            self._pending.append(Pending(key, write))
            self._retry_at = max(self._retry_at, self._clock.monotonic() + FIRST_RETRY_SECONDS)


@contextlib.contextmanager
def told_of_requests(folder: Path) -> Iterator[bool]:
    """Have the kernel send SIGIO, which wakes the loop, for each new file in ``folder``; yields whether it does."""
    descriptor = None
    try:
        if hasattr(fcntl, "F_NOTIFY"):
            signal.signal(signal.SIGIO, lambda number, frame: None)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.fcntl(descriptor, fcntl.F_NOTIFY, fcntl.DN_CREATE | fcntl.DN_RENAME | fcntl.DN_MULTISHOT)
        told = descriptor is not None
    except OSError:
        told = False
    try:
        yield told
    finally:
        if descriptor is not None:
            os.close(descriptor)


class Inbox:
    """Hands out each request once: those that end the run first, and a few of the others at a time."""

    def __init__(self, run: RunDir, clock: Clock) -> None:
        self.newest_end: Request | None = None
        """The last stop or kill handed out; a restart requested before it is not carried out."""
        self._run = run
        self._clock = clock
        self._looked_at: set[str] = set()
        self._kept: dict[str, Request] = {}
        """Requests read but not handed out yet."""
        self._changed = -1
        self._list_at = 0.0

    def poll(self, *, trainer_lives: bool) -> list[Request]:
        """Return new requests, without those that a living trainer answers itself."""
        self._look(anyway=not trainer_lives)
        mine = [item for item in self._kept.values() if not (trainer_lives and item.action in TRAINER_ACTIONS)]
        mine.sort(key=lambda item: item.id)
        ends = [item for item in mine if item.action in ENDS]
        others = [item for item in mine if item.action not in ENDS]
        handed = [*ends, *others[: MOST_AT_ONCE if trainer_lives else 20 * MOST_AT_ONCE]]
        for item in handed:
            del self._kept[item.id]
        self.newest_end = max([*ends, *([self.newest_end] if self.newest_end else [])], key=_id, default=None)
        return [item for item in handed if not self._run.ack(item.id).exists()]

    @property
    def is_behind(self) -> bool:
        """True if there may be requests left to hand out that no new file will announce."""
        return self._changed < 0 or any(item.action not in TRAINER_ACTIONS for item in self._kept.values())

    def mark_seen(self, request: Request) -> None:
        """Do not hand out a request that is already being carried out."""
        self._looked_at.add(self._run.request(request.id).name)
        self._kept.pop(request.id, None)

    def waiting(self) -> bool:
        """True if there is a request that was not handed out."""
        self._look(anyway=True)
        return any(not self._run.ack(name).exists() for name in self._kept)

    def _look(self, *, anyway: bool) -> None:
        now = self._clock.monotonic()
        found = storage.stat_of(self._run.requests)
        if found is None or (found.st_mtime_ns == self._changed and now < self._list_at and not anyway):
            return
        fresh = list(rundir.unanswered(self._run, self._looked_at, MOST_READ_AT_ONCE))
        self._kept.update((item.id, item) for item in fresh)
        settled = storage.is_settled(found.st_mtime_ns / 1e9, self._clock.wall())
        self._changed = found.st_mtime_ns if settled and len(fresh) < MOST_READ_AT_ONCE // 2 else -1
        self._list_at = now + LIST_ANYWAY_SECONDS


def _id(request: Request) -> str:
    return request.id


def complain(text: str) -> None:
    """Write one line to supervisor.log (our stderr); a full disk must not turn a complaint into a failure."""
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno() if sys.stderr else 2, f"{text}\n".encode("utf-8", "replace"))


def complain_of(error: BaseException) -> None:
    """Log a bug of ours with its traceback. The interpreter prints it: importing ``traceback`` costs 8 ms."""
    with contextlib.suppress(OSError):
        sys.__excepthook__(type(error), error, error.__traceback__)
