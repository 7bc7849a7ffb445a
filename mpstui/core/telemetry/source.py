"""What a telemetry source is, and how the system's own programs are called with a time limit.

A new source is a file in ``sources/`` and a test: modules there are discovered, and their function ``sources(host)``
returns what they can read on this machine. Another package adds one by naming such a module under the entry point
``mpstui.telemetry_sources``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .model import GpuSample, HostFacts, ProcessFacts


class SourceError(Exception):
    """A source cannot be read; the message is the reason shown to the user."""


class NotYet(SourceError):
    """A source has no value yet but will have one soon."""


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """What a reading is asked for: the processes of each watched tree, by the caller's key for that tree."""

    trees: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def pids(self) -> tuple[int, ...]:
        """Return every process that is asked for, once."""
        return tuple(dict.fromkeys(pid for members in self.trees.values() for pid in members))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One reading of one source: what it knows, and the reason for each field that it should know but does not.

    ``processes`` has an entry for each process that could be asked. A value of None in it was refused; a process that
    is absent has ended, or does not concern the source.
    """

    host: HostFacts = field(default_factory=HostFacts)
    gpus: tuple[GpuSample, ...] = ()
    processes: Mapping[int, ProcessFacts] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


class Source:
    """One place that readings come from, once every ``period_seconds``.

    ``read`` runs in a thread of its own, may block for up to ``timeout_seconds`` and may raise anything. It is never
    called again before it has returned. ``gives`` names the fields of SystemSample and TreeSample that it is there for
    (``"gpus"`` for all of a card), so that a failure of it explains why they are unknown. If several sources know a
    field, the one with the lowest ``rank`` wins. ``verified`` is False if no recording of the real thing has been
    parsed. ``per_process`` sources are read only while trees are watched.
    """

    name = "unnamed"
    gives: tuple[str, ...] = ()
    period_seconds = 2.0
    timeout_seconds = 3.0
    rank = 50
    verified = True
    per_process = False

    def read(self, request: SourceRequest) -> Facts:
        """Return what it knows now; raise SourceError with a reason that a person can act on."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what is held open."""


RunCommand = Callable[[Sequence[str], float], str]
"""Runs argv for at most so many seconds and returns its standard output; raises SourceError with the reason."""

# A bare SSH session may have any locale; the numbers and words we parse are those of C.
_LOCALE = {"LANG": "C", "LC_ALL": "C"}


class ProgramSource(Source):
    """A source that asks one of the system's own programs."""

    def __init__(self, run: RunCommand) -> None:
        self.run = run


class Commands:
    """Starts child processes and keeps track of them, so that :meth:`close` leaves none behind."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def run(self, argv: Sequence[str], timeout_seconds: float) -> str:
        """Return the standard output of ``argv``, which is killed after ``timeout_seconds``.

        Raises SourceError if the program is missing, fails, or does not answer in time.
        """
        child = self.start(argv)
        try:
            output, _ = child.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise SourceError(f"{argv[0]} did not answer within {timeout_seconds:g} s") from None
        finally:
            self.forget(child)
        if child.returncode != 0:
            raise SourceError(f"{argv[0]} ended with exit code {child.returncode}")
        return output.decode("utf-8", "replace")

    def start(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start ``argv`` with its standard output piped; the caller reads that, and calls :meth:`forget` at the end."""
        with self._lock:
            if self._closed:
                raise SourceError("telemetry is closed")
            try:
                # Without close_fds Python uses posix_spawn on macOS, which does not copy the monitor's page tables. Our
                # descriptors are close-on-exec anyway (PEP 446).
                child = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=os.environ | _LOCALE,
                    close_fds=False,
                )
            except OSError as error:
                raise SourceError(f"{argv[0]} cannot be started: {error.strerror}") from error
            self._running.add(child)
        return child

    def forget(self, child: subprocess.Popen[bytes]) -> None:
        """Note that a child has ended and was waited for."""
        with self._lock:
            self._running.discard(child)

    def close(self) -> None:
        """Kill every child that still runs, and start no more."""
        with self._lock:
            self._closed = True
            running = tuple(self._running)
        for child in running:
            child.kill()
        for child in running:
            with contextlib.suppress(subprocess.TimeoutExpired):  # one stuck in the kernel must not hold up our exit
                child.wait(timeout=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine that sources read: where its files are, and how its programs are found and called."""

    platform: str = sys.platform
    root: Path = Path("/")
    commands: Commands = field(default_factory=Commands)
    which: Callable[[str], str | None] = shutil.which

    @property
    def is_mac(self) -> bool:
        """Whether it runs macOS; anything else is taken for Linux."""
        return self.platform == "darwin"
