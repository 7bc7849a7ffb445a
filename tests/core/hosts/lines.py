"""Lines between two threads: as slow, as late and as broken as a test wants them, and the far end behind them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Condition, Thread
from typing import IO, Any, cast

from mpstui.core.hosts.frames import Frames
from mpstui.core.hosts.local import LocalServices
from mpstui.core.hosts.serve import Session
from mpstui.core.launching.actions import Actions
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home
from mpstui.core.runs.queueing import Moved


class Tube:
    """Bytes in one direction."""

    def __init__(self, *, rate: float | None = None, delay: float = 0.0) -> None:
        """``rate``: bytes a second; ``delay``: seconds that each byte is on its way."""
        self._rate, self._delay = rate, delay
        self._changed = Condition()
        self._parts: deque[tuple[float, bytes]] = deque()
        self._free_at = 0.0
        self.passed = 0
        """Bytes that were put in."""
        self.cut_after: int | None = None
        """The line breaks before this byte."""
        self.frozen = self.ended = False

    def write(self, data: bytes) -> int:
        with self._changed:
            if self.cut_after is not None and self.passed + len(data) > self.cut_after:
                data, self.ended = data[: max(0, self.cut_after - self.passed)], True
            elif self.ended:
                raise BrokenPipeError
            now = time.monotonic()
            for at in range(0, len(data), 256):
                part = data[at : at + 256]
                self._free_at = max(now, self._free_at) + (len(part) / self._rate if self._rate else 0.0)
                self._parts.append((self._free_at + self._delay, part))
            self.passed += len(data)
            self._changed.notify_all()
            return len(data)

    def read(self, most: int) -> bytes:
        with self._changed:
            while True:
                now = time.monotonic()
                if self._parts and self._parts[0][0] <= now and not self.frozen:
                    return self._parts.popleft()[1]
                if self.ended and not self._parts:
                    return b""
                self._changed.wait(max(0.001, self._parts[0][0] - now) if self._parts and not self.frozen else 0.05)
                if self.ended and self.frozen:
                    return b""

    def end(self) -> None:
        with self._changed:
            self.ended = True
            self._changed.notify_all()


class Wire:
    """A line to a far end that is a thread of this process."""

    def __init__(self, services: LocalServices, **how: float | None) -> None:
        self.up, self.down = Tube(**how), Tube(**how)  # type: ignore[arg-type]
        self.reads = cast("IO[bytes]", self.down)
        self.session = Session(services, Frames(self.up.read, self.down.write))
        self.thread = Thread(target=self.session.run, daemon=True)
        self.thread.start()

    def send(self, data: bytes) -> None:
        try:
            self.up.write(data)
        except BrokenPipeError as error:
            self.down.end()
            raise OperationError("connection lost") from error

    def failure(self) -> OperationError:
        return OperationError("connection lost")

    def close(self, patience: float = 1.0) -> None:
        self.up.end()
        self.down.end()

    def freeze(self) -> None:
        """Nothing comes through any more, and nobody is told."""
        self.up.frozen = self.down.frozen = True

    def thaw(self) -> None:
        """All that was held comes through."""
        self.up.frozen = self.down.frozen = False


class FarServices(LocalServices):
    """A home whose supervisors are nobody's business, and that counts what must happen once."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.time) -> None:
        super().__init__(home, {}, Path("/"), clock)
        self.__dict__["actions"] = Actions({}, clock, start=lambda run, env: None)
        self.moved: list[str] = []

    def move_in_queue(self, snapshot: Any, direction: str, call: str = "") -> Moved:
        self.moved.append(direction)
        return Moved("default", 1, len(self.moved))
