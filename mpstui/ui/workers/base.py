"""What every worker is: a thread with a round of work, whose trouble becomes a message."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..messages import Toast
from ..rows import clean

if TYPE_CHECKING:
    from textual.message import Message

    from ..terminal import Terminal

Post = Callable[["Message"], object]

RETRY_SECONDS = 1.0


class Worker:
    """A daemon thread that works until it is told to stop, and says so when its work fails."""

    name = "worker"

    def __init__(self, post: Post) -> None:
        self._post = post
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"mpstui-{self.name}", daemon=True)
        self._trouble = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End soon; waits a moment, not for a read that hangs."""
        self._stopped.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def wake(self) -> None:
        """Begin the next round now. May be called from any thread."""
        self._woken.set()

    def _run(self) -> None:
        pause: float | None = 0.0
        while True:
            self._woken.wait(pause)
            self._woken.clear()
            if self._stopped.is_set():
                return
            try:
                pause = self._work()
                self._trouble = ""
            except Exception as error:  # noqa: BLE001 - a worker must survive whatever it reads, and must not be silent
                pause = RETRY_SECONDS
                trouble = clean(f"{type(error).__name__}: {error}", 300)
                if trouble != self._trouble:
                    self._trouble = trouble
                    self._post(Toast(f"reading {self.name} failed, trying again: {trouble}", "error"))

    def _work(self) -> float | None:
        """One round; the seconds until the next, None: when it is woken."""
        raise NotImplementedError


class TerminalWorker(Worker):
    """Ends the program when its terminal is gone, or when it was told to end and cannot.

    Textual's reader spins on a terminal that hung up, and its writer blocks for ever on one that stopped reading; with
    SIGHUP ignored (nohup) nothing else would end either.
    """

    name = "terminal"

    def __init__(self, post: Post, terminal: Terminal) -> None:
        super().__init__(post)
        self._terminal = terminal

    def _work(self) -> float:
        if self._terminal.gone() or self._terminal.overdue():
            self._terminal.die()
        return 0.5
