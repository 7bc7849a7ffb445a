"""What a trainer reports about itself: heartbeats, points, events, answers. No failure here ends a training."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import errno
import faulthandler
import functools
import os
import resource
import signal
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..wire import liveness, rundir, storage
from ..wire.heartbeat import CheckpointNote, Heartbeat, MemoryReading, to_json
from ..wire.records import TRAINER_ACTIONS, Ack, Request
from ..wire.rundir import RunDir
from ..wire.storage import plain

BEAT_SECONDS = 1.0
RETRY_SECONDS = 10.0
"""How long to wait after a failed write (disk full) before the next try."""
MOST_WAITING_LINES = 10_000
_LONGEST_LINE_BYTES = 4096
_NO_REQUESTS: list[Request] = []
R = TypeVar("R")
POLL_SECONDS = 0.25
MOST_READ_AT_ONCE = 50
STACK_SIGNAL = signal.SIGURG
"""On this signal a process writes its stacks. Linux and macOS ignore it by default, so it ends no process, even one
where our handler was replaced or removed."""
_STATM = Path("/proc/self/statm")
_REPORTS = "_mpstui_report"
"""Where mpstui/reporting.py, or a copy of it, registers itself."""
_RUSAGE_INFO_V0 = 0
# struct rusage_info_v0 (<sys/resource.h>): a 16-byte UUID, then ten 64-bit counters; numbers 6 and 7 are
# ri_resident_size and ri_phys_footprint, the figure that macOS counts against a process.
_RUSAGE_FORMAT = "=16x10Q"


def _fail_open(default: Callable[[], R]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Let no exception escape from a reporter's method: the first one switches the reporter off, and is noted once."""

    def decorate(method: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(method)
        def guarded(self: Reporter, *args: Any, **kwargs: Any) -> R:
            if not self.enabled:
                return default()
            try:
                return method(self, *args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the training matters more than any report about it
                self.disable(f"{type(error).__name__}: {error}")
                return default()

        return guarded

    return decorate


class Reporter:
    """Writes one attempt's heartbeat, points and events into its run directory, on the caller's thread.

    While the disk is full nothing is lost: lines wait in memory and are written later.
    """

    def __init__(
        self,
        run: RunDir | None,
        attempt: int = 1,
        *,
        rank: int = 0,
        world_size: int = 1,
        by: str = "trainer",
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.enabled = run is not None
        self.memory: Callable[[], MemoryReading] = MemoryReading
        """Reads the device's memory counters; called on the caller's thread, only when a beat is written."""
        self.count: Callable[[], int | None] = lambda: None
        """The number of optimizer steps done, if this reporter belongs to the agent."""
        self._run = run or RunDir(Path(os.devnull))
        self._attempt = attempt
        self._rank = rank
        self._by = by
        self._clock = clock
        self._monotonic = monotonic
        self._facts: dict[str, Any] = {"attempt": attempt, "rank": rank, "world_size": world_size}
        self._mailbox = Mailbox(self._run, attempt, clock=clock, monotonic=monotonic)
        self._waiting: deque[tuple[Path, dict[str, Any]]] = deque(maxlen=MOST_WAITING_LINES)
        self._seq = 0
        self._last_beat = float("-inf")
        self._retry_at = float("-inf")
        self._complained = False
        self._folder: os.stat_result | None = None
        if self.enabled:
            try:
                self._facts.update(run=self._run.run, pid=os.getpid(), boot_id=liveness.boot_id() or None)
                storage.make_private_folder(self._run.attempt(attempt).path)
                self._folder = self._run.path.stat()
            except OSError as error:
                self._complain(error)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], *, by: str = "trainer") -> Reporter:
        """Return the reporter of the run that started us (``MPSTUI_RUN_DIR``), or one that reports nothing."""
        run, attempt = place_of(environ) if environ.get("MPSTUI_RUN_DIR") else (None, 1)
        try:
            rank, world_size = int(environ.get("RANK", "0")), int(environ.get("WORLD_SIZE", "1"))
        except ValueError:
            rank, world_size = 0, 1
        return cls(run, attempt, rank=rank, world_size=world_size, by=by)

    @_fail_open(lambda: False)
    def beat(self, phase: str | None = None, *, now: bool = False, **facts: Any) -> bool:
        """Update the facts and write a heartbeat, at most once a second; return whether it was written.

        A change of ``phase`` is written at once: call this before a long silence, with ``expect_next_in`` in seconds.
        Facts are fields of :class:`~mpstui.wire.heartbeat.Heartbeat` and stay until they are replaced.
        """
        changed = phase is not None and phase != self._facts.get("phase")
        self._facts.update(facts)
        if phase is not None:
            self._facts["phase"] = phase
        moment = self._monotonic()
        if not (changed or now) and moment - self._last_beat < BEAT_SECONDS:
            return False
        self._last_beat = moment
        return self._attempt_write(self._write_beat)

    @_fail_open(lambda: None)
    def point(self, step: int, epoch: float | None, **metrics: float | None) -> None:
        """Append one point to ``metrics.jsonl``, on rank 0 only.

        Args:
            metrics: values by name; with ``time`` in Unix seconds if they were measured earlier.
        """
        line = plain({"time": self._clock(), "attempt": self._attempt, "epoch": epoch, "step": step, **metrics})
        told = self._program()
        line = line if told is None else told.without_reported(line)
        if line is not None:
            self._append(self._run.metrics, line)

    @_fail_open(lambda: None)
    def event(self, name: str, text: str, **details: Any) -> None:
        """Append one event to ``events.jsonl``, on rank 0 only."""
        self._append(self._run.events, rundir.event(self._clock(), self._attempt, name, text, **details))

    @_fail_open(lambda: None)
    def saved(self, note: CheckpointNote, **besides: Any) -> None:
        """Write an event for a checkpoint, unless the program has reported it itself."""
        told = self._program()
        if told is None or not told.has_saved(note.path):
            self.event("checkpoint", f"saved {note.path}", path=note.path, step=note.step, **besides)

    def is_spoken_for(self) -> bool:
        """Return whether the program reports its own progress, beside the agent."""
        return self._program() is not None

    @_fail_open(lambda: _NO_REQUESTS.copy())
    def requests(self) -> list[Request]:
        """Return this attempt's requests since the last call; cheap enough to call at every step."""
        if self._rank != 0 or self._monotonic() < self._retry_at:
            return []
        found, told = self._mailbox.collect(), self._program()
        return found if told is None else [one for one in found if not told.answers(one.action)]

    @_fail_open(lambda: None)
    def answer(self, request: Request, *, ok: bool, text: str, **memory: int | None) -> None:
        """Answer a request; ``memory`` may hold ``before``, ``after`` and ``freed`` in bytes."""
        ack = Ack(request.id, ok, self._by, self._clock(), text, **memory)
        self._attempt_write(lambda: rundir.answer(self._run, ack))

    @_fail_open(lambda: None)
    def listen_for_stacks(self) -> None:
        """See :func:`listen_for_stacks`; unlike the rest, on every rank."""
        listen_for_stacks(self._run, self._attempt)

    def disable(self, reason: str) -> None:
        """Report nothing from now on, and say so once.

        An agent also removes its heartbeat, which would be out of date while the training goes on.
        """
        self.enabled = False
        if self._by == "agent" and not self.is_spoken_for():
            with contextlib.suppress(OSError):
                self._run.attempt(self._attempt).heartbeat(self._rank).unlink()
        self._say(f"reporting is off, the training goes on ({reason})")

    def _write_beat(self) -> None:
        self._seq += 1
        device, (rss, footprint) = self.memory(), read_process_memory()
        beat = Heartbeat(
            time=self._clock(),
            seq=self._seq,
            monotonic=self._monotonic(),
            memory=MemoryReading(device.allocated, device.driver, device.limit, rss, footprint),
            **self._facts,
        )
        told = self._program()
        if told is not None and told.joins(to_json(beat), self.count):
            return
        path = self._run.attempt(self._attempt).heartbeat(self._rank)
        _check_limit(path)
        storage.write_json(path, to_json(beat), sync=False)
        self._flush()

    def _program(self) -> Any:
        """Return the ``report`` that the program itself uses, which takes precedence; None if it uses none."""
        return getattr(sys.modules.get(_REPORTS), "report", None) if self._by == "agent" else None

    def _append(self, path: Path, line: dict[str, Any]) -> None:
        if self._rank == 0:
            self._waiting.append((path, line))
            self._attempt_write(self._flush)

    def _flush(self) -> None:
        while self._waiting:
            _check_limit(self._waiting[0][0])
            storage.append_line(*self._waiting[0])
            self._waiting.popleft()

    def _attempt_write(self, write: Callable[[], object]) -> bool:
        if self._monotonic() < self._retry_at:
            return False
        try:
            try:
                write()
            except OSError:
                if not self._follow():
                    raise
                write()
        except OSError as error:
            self._retry_at = self._monotonic() + RETRY_SECONDS
            self._complain(error)
            return False
        return True

    def _follow(self) -> bool:
        """Return whether the run's directory has been moved; if so, report to its new place from now on.

        The new place is found through a file of the run that is open in this process: a lock, or the output.
        """
        if self._folder is None or self._run.path.is_dir():
            return False
        places = [liveness.place_of(int(name)) for name in os.listdir("/dev/fd")]  # noqa: PTH208
        for folder in {folder for place in places if place is not None for folder in place.parents}:
            with contextlib.suppress(OSError):
                if os.path.samestat(folder.stat(), self._folder):
                    self._run = RunDir(folder)
                    self._mailbox = Mailbox(self._run, self._attempt, clock=self._clock, monotonic=self._monotonic)
                    moved = ((folder / path.name, line) for path, line in self._waiting)
                    self._waiting = deque(moved, maxlen=MOST_WAITING_LINES)
                    return True
        return False

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._say(f"cannot write into {self._run.path} ({error}); the training goes on, trying again later")
        self._complained = True

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # stderr may be gone too
            if self._by == "agent":  # a guest: the program's output stays its own
                _check_limit(self._run.events)
                storage.append_line(self._run.events, rundir.event(self._clock(), self._attempt, "note", text))
            else:
                print(f"mpstui: {text}", file=sys.stderr, flush=True)


def _check_limit(path: Path) -> None:
    """Raise an OSError if a write might exceed the file size limit, since SIGXFSZ could then end the process."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    found = None if limit == resource.RLIM_INFINITY else storage.stat_of(path)
    if limit != resource.RLIM_INFINITY and (found.st_size if found else 0) + _LONGEST_LINE_BYTES > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))


class Mailbox:
    """The requests of one attempt that a trainer answers (``clear_cache``, ``save``)."""

    def __init__(
        self,
        run: RunDir,
        attempt: int,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._attempt = attempt
        self._clock = clock
        self._monotonic = monotonic
        self._next_poll = 0.0
        self._seen_mtime = -1.0
        self._looked_at: set[str] = set()

    def collect(self) -> list[Request]:
        """Return new requests, oldest first. Looks at most four times a second, with one stat call if none came.

        Each file is read once, and only so many at a time that they never hold up the training.

        Raises:
            OSError: the folder cannot be read.
        """
        now = self._monotonic()
        if now < self._next_poll:
            return []
        self._next_poll = now + POLL_SECONDS
        if not self._changed():
            return []
        before = len(self._looked_at)
        fresh = list(rundir.unanswered(self._run, self._looked_at, MOST_READ_AT_ONCE))
        if len(self._looked_at) - before >= MOST_READ_AT_ONCE // 2:
            self._seen_mtime = -1.0  # there are more
        # Listing a folder of many thousands takes time: at most a twentieth of the training's.
        self._next_poll = now + max(POLL_SECONDS, 20 * (self._monotonic() - now))
        return [item for item in fresh if item.action in TRAINER_ACTIONS and item.attempt == self._attempt]

    def _changed(self) -> bool:
        try:
            mtime = self._run.requests.stat().st_mtime
        except FileNotFoundError:
            return False
        changed = mtime != self._seen_mtime
        self._seen_mtime = mtime if storage.is_settled(mtime, self._clock()) else -1.0
        return changed


def place_of(environ: Mapping[str, str]) -> tuple[RunDir, int]:
    """Return the run directory and the attempt that ``MPSTUI_RUN_DIR`` and ``MPSTUI_ATTEMPT`` name."""
    number = environ.get("MPSTUI_ATTEMPT", "1")
    return RunDir(Path(environ["MPSTUI_RUN_DIR"])), int(number) if number.isdigit() else 1


_listens = 0
"""Id of the process that ``listen_for_stacks`` was called in: a fork of it has another."""


def listen_for_stacks(run: RunDir, attempt: int) -> None:
    """Have every thread's stack written to stderr on a signal, and record that in ``stack_signal``; once per process.

    faulthandler does this in C, even while Python is stuck in a call that never returns. If the program uses the signal
    itself, it is left alone.
    """
    global _listens
    if _listens == os.getpid() or signal.getsignal(STACK_SIGNAL) is not signal.SIG_DFL:
        return
    folder, me = run.attempt(attempt), liveness.system_process_table().find(os.getpid())
    if me is None or not folder.path.is_dir():
        return
    _listens = me.pid
    with contextlib.suppress(OSError, ValueError, RuntimeError):  # no stderr, or a full disk
        faulthandler.register(STACK_SIGNAL, file=2, all_threads=True, chain=False)
        storage.append_text(folder.stack_signal, f"{int(STACK_SIGNAL)} {me.pid} {me.start}\n")


def read_process_memory() -> tuple[int | None, int | None]:
    """Return resident size and physical footprint of this process in bytes; None where the system does not tell.

    Linux has no footprint. Neither figure includes what a GPU driver holds outside the process.
    """
    if sys.platform == "darwin":
        library = ctypes.CDLL(ctypes.util.find_library("proc") or "libproc.dylib", use_errno=True)
        buffer = ctypes.create_string_buffer(struct.calcsize(_RUSAGE_FORMAT))
        failed = library.proc_pid_rusage(os.getpid(), _RUSAGE_INFO_V0, buffer)
        return (None, None) if failed else parse_rusage(buffer.raw)
    try:
        return parse_statm(_STATM.read_text(), os.sysconf("SC_PAGE_SIZE")), None
    except (OSError, ValueError):
        return None, None


def parse_statm(text: str, page_bytes: int) -> int | None:
    """Return resident bytes from ``/proc/PID/statm`` (proc(5): the second number counts resident pages)."""
    fields = text.split()
    return int(fields[1]) * page_bytes if len(fields) > 1 else None


def parse_rusage(buffer: bytes) -> tuple[int, int]:
    """Return resident size and physical footprint, in bytes, from a filled ``struct rusage_info_v0``."""
    counters = struct.unpack(_RUSAGE_FORMAT, buffer)
    return counters[6], counters[7]
