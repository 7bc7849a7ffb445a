"""What every pump is: a thread with a round of work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..messages import PumpFailed

if TYPE_CHECKING:
    from textual.message import Message

Post = Callable[["Message"], object]

RETRY_SECONDS = 1.0
_JOIN_SECONDS = 1.0


class Pump:
    """A daemon thread that works until it is told to stop, and says so when its work fails."""

    name = "pump"

    def __init__(self, post: Post) -> None:
        self._post = post
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"mpstui-{self.name}", daemon=True)
        self._trouble = ""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; waits a moment, not for a read that hangs."""
        self._stopped.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)

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
            except Exception as error:  # noqa: BLE001 - a pump must survive whatever it reads, and must not be silent
                pause = RETRY_SECONDS
                self._report(error)

    def _work(self) -> float | None:
        """One round; the seconds until the next, None: when it is woken."""
        raise NotImplementedError

    def _report(self, error: Exception) -> None:
        sentence = f"{type(error).__name__}: {error}"
        if sentence != self._trouble:
            self._trouble = sentence
            self._post(PumpFailed(self.name, sentence))
