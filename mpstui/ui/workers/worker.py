"""The base of every worker: a thread that feeds the screen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..messages import Toast
from ..rows import clean

if TYPE_CHECKING:
    from textual.message import Message

Post = Callable[["Message"], object]

RETRY_SECONDS = 1.0
"""Seconds after a failure until the work is retried."""


class Worker:
    """A daemon thread that works until it is stopped, and reports failures of its work."""

    name = "worker"

    def __init__(self, post: Post) -> None:
        self._post = post
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"mpstui-{self.name}", daemon=True)
        self._trouble = ""

    def start(self) -> None:
        """Start working, unless it already does."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Ask it to end, and wait a moment, but not for a read that hangs."""
        self._stopped.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def wake(self) -> None:
        """Start the next round now. May be called from any thread."""
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
        """Work one round; return the seconds until the next one, None to wait until woken."""
        raise NotImplementedError
