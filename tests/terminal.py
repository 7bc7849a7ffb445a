"""A terminal for tests: runs a program in a pseudo-terminal of a given size and keeps what its screen shows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte
from wcwidth import wcwidth

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
}


class Terminal:
    """One program on one pseudo-terminal; use as a context manager, which ends the program by its process id."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int = 120,
        rows: int = 40,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        environment = {**os.environ, "TERM": "xterm-256color"}
        environment.pop("NO_COLOR", None)
        environment.update(env or {})
        self.pid, self.descriptor = fork_on_terminal(argv, environment, cwd, rows, columns)
        self.raw = bytearray()
        self._status: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.exit_code() is None:
            self.signal(signal.SIGKILL)
            self.wait_exit()
        with contextlib.suppress(OSError):
            os.close(self.descriptor)

    @property
    def text(self) -> str:
        """What the screen shows now, one line a row. In the middle of a frame a wide character may have lost a half."""
        rows = (self.screen.buffer[y] for y in range(self.screen.lines))
        return "\n".join(
            "".join(row[x].data or (" " if wcwidth(row[x - 1].data[:1] or " ") < 2 else "") for x in columns).rstrip()
            for row, columns in ((row, range(self.screen.columns)) for row in rows)
        )

    def pump(self, seconds: float = 0.05) -> None:
        """Read what the program writes for a moment."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([self.descriptor], [], [], left)
            if not ready:
                return
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:
                return
            if not data:
                return
            self.raw += data
            self.take(data)

    def take(self, data: bytes) -> None:
        """Show what the program wrote."""
        self._stream.feed(data)

    def press(self, *keys: str) -> None:
        """Send keys: names from ``KEYS`` or literal text."""
        for key in keys:
            os.write(self.descriptor, KEYS.get(key, key).encode())
            self.pump(0.05)

    def wait_text(self, *wanted: str, timeout: float = 60.0) -> str:
        """Read until every text is on the screen at once; the screen then.

        Raises:
            AssertionError: the time is up; says what the screen showed.
        """
        deadline, shown, known = time.monotonic() + timeout, "", -1
        while True:
            self.pump()
            if len(self.raw) != known:  # it takes longer to say what a screen shows than to draw it
                known, shown = len(self.raw), self.text
            if all(text in shown for text in wanted):
                return shown
            assert time.monotonic() < deadline, f"never saw {wanted!r}; the screen was:\n{shown}"

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, of which the program is told."""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def signal(self, number: int) -> None:
        """Send a signal to the program itself."""
        if self.exit_code() is None:
            os.kill(self.pid, number)

    def exit_code(self) -> int | None:
        """The exit code (negative: the signal), None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def wait_exit(self, timeout: float = 60.0) -> int:
        """Wait for the end of the program, reading what it still writes."""
        deadline = time.monotonic() + timeout
        while (code := self.exit_code()) is None:
            self.pump()
            assert time.monotonic() < deadline, f"still running; the screen was:\n{self.text}"
        self.pump()
        return code


def fork_on_terminal(
    argv: Sequence[str], environment: Mapping[str, str], cwd: Path | None, rows: int, columns: int
) -> tuple[int, int]:
    import pty

    pid, descriptor = pty.fork()
    if pid == 0:  # pragma: no cover - the child becomes the program
        try:
            if cwd:
                os.chdir(cwd)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(argv[0], list(argv), dict(environment))
        finally:
            os._exit(127)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return pid, descriptor
