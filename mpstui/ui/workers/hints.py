"""Hints that runs have changed, which arrive sooner than polling would notice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .worker import RETRY_SECONDS, Post, Worker


class HintWorker(Worker):
    """Watches the folder of runs for created or renamed files; polling finds the same, a little later."""

    name = "watcher"

    def __init__(self, root: Path, hint: Callable[[frozenset[str]], None], post: Post) -> None:
        super().__init__(post)
        self._root, self._hint = root, hint

    def _work(self) -> float:
        from ...core.runs.hints import RunsWatcher

        RunsWatcher(self._root, self._hint).run(self._stopped)
        return RETRY_SECONDS
