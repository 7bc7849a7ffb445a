"""Noticing that the terminal is gone."""

from __future__ import annotations

from collections.abc import Callable

from .base import Post, Pump

_LOOK_SECONDS = 0.5


class TerminalWatch(Pump):
    """Ends the program when its terminal is gone, or when it was told to end and cannot.

    Textual's reader spins on a terminal that hung up, and its writer blocks for ever on one that stopped reading; with
    SIGHUP ignored (nohup) nothing else would end either.
    """

    name = "terminal"

    def __init__(
        self, post: Post, gone: Callable[[], bool], overdue: Callable[[], bool], die: Callable[[], None]
    ) -> None:
        super().__init__(post)
        self._gone, self._overdue, self._die = gone, overdue, die

    def _work(self) -> float:
        if self._gone() or self._overdue():
            self._die()
        return _LOOK_SECONDS
