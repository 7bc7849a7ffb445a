"""Bounded calls of the system's own small programs, and one long-lived child where a program streams."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Sequence

from mpstui.core.telemetry.source import SourceError

RunCommand = Callable[[Sequence[str], float], str]
"""Runs argv for at most so many seconds and gives its standard output; raises SourceError with the reason."""

# A bare SSH session may have any locale; the numbers and words we parse are those of C.
_LOCALE = {"LANG": "C", "LC_ALL": "C"}


class Commands:
    """Starts children and knows those that still run, so that :meth:`close` leaves none behind."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def run(self, argv: Sequence[str], timeout_seconds: float) -> str:
        """Standard output of ``argv``, which is killed after ``timeout_seconds``.

        Raises SourceError when the program is missing, fails, or does not answer in time.
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
        """Start ``argv`` with its standard output piped; the caller reads it and calls :meth:`forget` at its end."""
        with self._lock:
            if self._closed:
                raise SourceError("telemetry is closed")
            child = self._spawn(argv)
            self._running.add(child)
        return child

    def forget(self, child: subprocess.Popen[bytes]) -> None:
        """The child has ended and was waited for."""
        with self._lock:
            self._running.discard(child)

    def close(self) -> None:
        """Kill what still runs and start nothing more."""
        with self._lock:
            self._closed = True
            running = tuple(self._running)
        for child in running:
            child.kill()
        for child in running:
            with contextlib.suppress(subprocess.TimeoutExpired):  # one stuck in the kernel must not hold up our exit
                child.wait(timeout=1)

    def _spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            # Without close_fds Python uses posix_spawn on macOS, which does not copy the monitor's page tables. Our
            # descriptors are close-on-exec anyway (PEP 446).
            return subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | _LOCALE,
                close_fds=False,
            )
        except OSError as error:
            raise SourceError(f"{argv[0]} cannot be started: {error.strerror}") from error
