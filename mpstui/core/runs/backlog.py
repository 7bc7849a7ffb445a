"""A long backlog read by a process of its own: a gigabyte must not pass through the interpreter that answers keys."""

from __future__ import annotations

import contextlib
import mmap
import os
import selectors
import struct
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, cast

from ..follow.budget import Budget

LONG_BYTES = 64 << 20
"""A shorter backlog is read within a second or two between keys and frames: no process is worth it."""
FEWEST_CORES = 2
"""On a single core another process would only take turns with the screen, and with the training."""
LENGTH = struct.Struct("<Q")
"""What a message begins with: the number of bytes that follow."""
_PIPE_BYTES = 1 << 20
_END_SECONDS = 1.0
_PROGRAM = Path(__file__).with_name("backlog_process.py").absolute()


class Owed(NamedTuple):
    """What is to be read elsewhere."""

    path: Path
    pattern: str | None
    """What the profile declares."""
    attempt: int
    size: int
    """Bytes that are owed."""


class Backlog(Protocol):
    """A reading that goes on elsewhere."""

    @property
    def over(self) -> bool:
        """Whether nothing more will come: it has got near the end of the file, or failed."""
        ...

    def newest(self, budget: Budget) -> Mapping[str, Any] | None:
        """The memory of the reader there (`ForeignPoints.memory`), if it is newer than what was given before.

        Waits for it as long as the budget allows.
        """
        ...

    def close(self) -> None:
        """End it, whatever it is doing."""
        ...


BacklogStarter = Callable[[Owed, Callable[[], Mapping[str, Any]]], Backlog | None]
"""Has a backlog read elsewhere, from the memory of its reader on; None where it is better read here."""


class BacklogProcesses:
    """Starts such processes, one at a time."""

    def __init__(self, *, least_bytes: int = LONG_BYTES, cores: int | None = None, program: Path = _PROGRAM) -> None:
        """``cores``: None counts those that this process may use."""
        self._least_bytes = least_bytes
        self._cores = _cores() if cores is None else cores
        self._program = program
        self._running: weakref.ref[BacklogProcess] | None = None

    def __call__(self, owed: Owed, memory: Callable[[], Mapping[str, Any]]) -> BacklogProcess | None:
        """See :data:`BacklogStarter`."""
        running = self._running() if self._running is not None else None
        if owed.size < self._least_bytes or self._cores < FEWEST_CORES or (running is not None and not running.over):
            return None
        from .carried import pack

        task = {"path": str(owed.path), "pattern": owed.pattern, "attempt": owed.attempt, "memory": memory()}
        try:
            begun = BacklogProcess([sys.executable, "-I", "-S", str(self._program)], pack(task))
        except (OSError, TypeError):
            return None  # no process to be had, or a log whose reader cannot be carried: it is read here
        self._running = weakref.ref(begun)
        return begun


class BacklogProcess:
    """One process that reads. It ends when its work is done, when it is closed, and when nobody holds its pipe."""

    def __init__(self, command: list[str], task: bytes) -> None:
        """Raises OSError when it cannot be started."""
        self.over = False
        self._arrival = _Arrival()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            bufsize=0,
            pipesize=_PIPE_BYTES,
        )
        self._end = weakref.finalize(self, _end, self._process)
        self._outlet = cast("IO[bytes]", self._process.stdout)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._outlet, selectors.EVENT_READ)
        with contextlib.suppress(BrokenPipeError), cast("IO[bytes]", self._process.stdin) as inlet:
            _write_all(inlet.fileno(), task)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def newest(self, budget: Budget) -> Mapping[str, Any] | None:
        """See :class:`Backlog`."""
        from .carried import unpack

        message = self._message(budget)
        try:
            return None if message is None else cast("Mapping[str, Any]", unpack(message))
        except ValueError:
            self.close()
            return None

    def close(self) -> None:
        """See :class:`Backlog`."""
        self.over = True
        self._selector.close()
        self._end()

    def _message(self, budget: Budget) -> memoryview | None:
        """The next whole message; None: none came in time."""
        message = None
        while message is None and not self.over and self._selector.select(budget.left_seconds):
            message = self._arrival.read(self._outlet.fileno())
            if self._arrival.ended:
                self.close()
            if budget.spent:
                break
        return message


class _Arrival:
    """A message on its way, in memory of its own that goes back to the system with it.

    A megabyte a second through the allocator would stay with this process as holes between what it keeps.
    """

    def __init__(self) -> None:
        self.ended = False
        """Nothing more will come: the other end is closed, or what it says makes no sense."""
        self._length = bytearray()
        self._body: mmap.mmap | None = None
        self._filled = 0

    def read(self, descriptor: int) -> memoryview | None:
        """Read once what is there; the message, where this was the last of it."""
        if self._body is None:
            self._begin(os.read(descriptor, LENGTH.size - len(self._length)))
            return None
        count = os.readv(descriptor, [memoryview(self._body)[self._filled :]])
        self.ended = not count
        self._filled += count
        if self._filled < len(self._body):
            return None
        message, self._body = memoryview(self._body), None
        return message

    def _begin(self, data: bytes) -> None:
        self.ended = not data
        self._length += data
        if len(self._length) == LENGTH.size:
            try:
                self._body, self._filled = mmap.mmap(-1, LENGTH.unpack(self._length)[0]), 0
            except (OSError, ValueError, OverflowError):
                self.ended = True
            self._length.clear()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave neither a process nor a zombie; one that hangs in the kernel is not waited for."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
