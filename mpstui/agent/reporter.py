"""What a trainer says of itself: heartbeats, points, events, answers. No training ever ends because of it."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..wire import liveness, records, storage
from ..wire.heartbeat import Heartbeat, MemoryReading, to_json
from ..wire.records import Ack, Request
from ..wire.rundir import RunDir
from ..wire.storage import plain
from .mailbox import Mailbox
from .process_memory import read_process_memory

BEAT_SECONDS = 1.0
RETRY_SECONDS = 10.0
"""After a write failed (disk full), how long to wait before the next try."""
MOST_WAITING_LINES = 10_000
_NO_REQUESTS: list[Request] = []
R = TypeVar("R")


def _fail_open(default: Callable[[], R]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Nothing leaves a reporter's method: any surprise switches the reporter off with one line on stderr."""

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

    A disk that is full for a while costs nothing: lines wait in memory and follow later.
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
        """Where the device's memory counters come from; asked on the caller's thread, only when a beat is written."""
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
        if self.enabled:
            self._identify()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], *, by: str = "trainer") -> Reporter:
        """The reporter of the run that started us (``MPSTUI_RUN_DIR``), or one that reports nothing."""
        folder = environ.get("MPSTUI_RUN_DIR")
        try:
            attempt = int(environ.get("MPSTUI_ATTEMPT", "1"))
            rank, world_size = int(environ.get("RANK", "0")), int(environ.get("WORLD_SIZE", "1"))
        except ValueError:
            attempt, rank, world_size = 1, 0, 1
        run = RunDir(Path(folder)) if folder else None
        return cls(run, attempt, rank=rank, world_size=world_size, by=by)

    @_fail_open(lambda: False)
    def beat(self, phase: str | None = None, *, now: bool = False, **facts: Any) -> bool:
        """Update what is known and write it, at most once a second; True when it was written.

        A change of ``phase`` is written at once: call it before a long silence, with ``expect_next_in`` in seconds.
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
        """Append one reported point to ``metrics.jsonl``. Rank 0 alone does."""
        line = {"time": self._clock(), "attempt": self._attempt, "epoch": epoch, "step": step, **metrics}
        self._append(self._run.metrics, plain(line))

    @_fail_open(lambda: None)
    def event(self, name: str, text: str, **details: Any) -> None:
        """Append one event to ``events.jsonl``. Rank 0 alone does."""
        self._append(self._run.events, records.event(self._clock(), self._attempt, name, text, **details))

    @_fail_open(lambda: _NO_REQUESTS.copy())
    def requests(self) -> list[Request]:
        """Requests that came since the last call, for this attempt; cheap enough to call every step."""
        if self._rank != 0 or self._monotonic() < self._retry_at:
            return []
        return self._mailbox.collect()

    @_fail_open(lambda: None)
    def answer(self, request: Request, *, ok: bool, text: str, **memory: int | None) -> None:
        """Answer a request; ``memory`` may hold ``before``, ``after`` and ``freed`` in bytes."""
        ack = Ack(request.id, ok, self._by, self._clock(), text, **memory)
        self._attempt_write(lambda: self._mailbox.answer(ack))

    def disable(self, reason: str) -> None:
        """Report nothing from now on, and say so once."""
        self.enabled = False
        self._say(f"mpstui: reporting is off, the training goes on ({reason})")

    def _identify(self) -> None:
        try:
            self._facts.update(run=self._run.run, pid=os.getpid(), boot_id=liveness.boot_id() or None)
            storage.make_private_folder(self._run.attempt(self._attempt).path)
        except OSError as error:
            self._complain(error)

    def _write_beat(self) -> None:
        self._seq += 1
        beat = Heartbeat(
            time=self._clock(),
            seq=self._seq,
            monotonic=self._monotonic(),
            memory=self._read_memory(),
            **self._facts,
        )
        path = self._run.attempt(self._attempt).heartbeat(self._rank)
        storage.write_json(path, to_json(beat), sync=False)
        self._flush()

    def _read_memory(self) -> MemoryReading:
        device, (rss, footprint) = self.memory(), read_process_memory()
        return MemoryReading(device.allocated, device.driver, device.limit, rss, footprint)

    def _append(self, path: Path, line: dict[str, Any]) -> None:
        if self._rank == 0:
            self._waiting.append((path, line))
            self._attempt_write(self._flush)

    def _flush(self) -> None:
        while self._waiting:
            storage.append_line(*self._waiting[0])
            self._waiting.popleft()

    def _attempt_write(self, write: Callable[[], None]) -> bool:
        if self._monotonic() < self._retry_at:
            return False
        try:
            write()
        except OSError as error:
            self._retry_at = self._monotonic() + RETRY_SECONDS
            self._complain(error)
            return False
        return True

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._say(f"mpstui: cannot write into {self._run.path} ({error}); the training goes on, trying again later")
        self._complained = True

    @staticmethod
    def _say(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # stderr may be gone too
            print(text, file=sys.stderr, flush=True)
