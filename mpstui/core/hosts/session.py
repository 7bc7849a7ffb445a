"""The near end of one line while it lasts: received messages are passed on, and sending never blocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import IO, Protocol

from ..model.errors import OperationError, ReportedError
from .channels import Hearer
from .forms import Malformed, Tree
from .frames import Frames, Garbled
from .outbox import Pieces


class LineLike(Protocol):
    """A line as :func:`mpstui.core.hosts.ssh.connect` opens it."""

    reads: IO[bytes]

    def send(self, data: bytes) -> object: ...

    def failure(self) -> OperationError: ...

    def close(self, patience: float = ...) -> None: ...


class NearSession:
    """One line while it lasts."""

    def __init__(self, line: LineLike, heard: Callable[[NearSession, Tree], None]) -> None:
        self.line, self._hear = line, heard
        self.frames = Frames(line.reads.read, line.send)
        self.ended = Event()
        self.why = ""
        self.heard_at = time.monotonic()
        self.answered_at: float | None = None
        self.clocks_apart = 0.0
        """Seconds by which the far clock was ahead of ours at the first answer."""
        self.hung = self.told_list = False
        self.behind_seconds = 0.0
        """Seconds from the far side's last look through its runs to its last answer."""
        self.hearer: Hearer | None = None
        """Created once the difference of the clocks is known."""
        self._out: SimpleQueue[Tree] = SimpleQueue()

    def start(self) -> None:
        for work in (self._read, self._write):
            Thread(target=work, name="mpstui-line", daemon=True).start()

    @property
    def spoken_seconds(self) -> float:
        """Seconds from the first answer to the last message."""
        return 0.0 if self.answered_at is None else max(0.0, self.heard_at - self.answered_at)

    def send(self, message: Tree) -> None:
        self._out.put(message)

    def end(self, why: str) -> None:
        self.why = self.why or why
        self.ended.set()
        self._out.put(None)

    def _write(self) -> None:
        try:
            while (message := self._out.get()) is not None and not self.ended.is_set():
                self.frames.send(message)
        except ReportedError as error:
            self.end(error.sentence)
        except (OSError, ValueError) as error:
            self.end(str(error))

    def _read(self) -> None:
        pieces = Pieces()
        try:
            while (message := self.frames.receive()) is not None and not self.ended.is_set():
                self.heard_at = time.monotonic()
                self.send(["got", self.frames.received])
                whole = pieces.take(message)
                if whole is not None:
                    self._hear(self, whole)
            if not self.ended.is_set():
                self.end(self.line.failure().sentence)
        except (Garbled, Malformed) as error:
            self.end(str(error))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            self.end(f"what came over the connection makes no sense: {error}")
