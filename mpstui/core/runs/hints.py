"""Watch the folder of runs for hints at what has changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event

CHECK_SECONDS = 1.0
"""Interval between checks for new events, and for whether the watched folder is still the same; each costs two
wake-ups. The wait is in Python, where ``stop`` ends it: a sleep in native code cannot be ended and would delay exit.
"""
STEP_MILLISECONDS, DEBOUNCE_MILLISECONDS = 30, 60
"""Changes are reported together, once a step brings no more of them, or at the latest this long after the first."""
MOST_PATIENCE_SECONDS = 30.0
HintReport = Callable[[frozenset[str]], None]


class RunsWatcher:
    """Watches ``root`` while :meth:`run` runs, only for hints: polling finds the same changes a little later.

    Hints cannot be relied on. On macOS FSEvents does not report appends to a file that stays open
    (notify-rs/notify#240), a watched root that is deleted and recreated stays silent for ever, new folders may fill
    before they are watched, and a single file name that is not UTF-8 ends the watch with an error.
    """

    def __init__(self, root: Path, report: HintReport) -> None:
        self.root = root
        self.error: str | None = None
        """Why there are no hints at present; None while they arrive."""
        self._report = report

    def run(self, stop: Event) -> None:
        """Report the names of runs in which something changed, until ``stop`` is set; never raises."""
        patience = CHECK_SECONDS
        while not stop.is_set():
            identity = _identity(self.root)
            if identity is None:
                self.error = f"{self.root} does not exist"
                stop.wait(CHECK_SECONDS)
                continue
            try:
                self._watch(stop, identity)
                patience = CHECK_SECONDS
            except Exception as error:  # noqa: BLE001 - native code, and optional: polling goes on without it
                self.error = f"no hints from the file system: {error}"
                stop.wait(patience)
                patience = min(2 * patience, MOST_PATIENCE_SECONDS)
            # Changes between two watches go unseen: report everything.
            self._report(frozenset(run_names(self.root)))

    def _watch(self, stop: Event, identity: tuple[int, int]) -> None:
        """Watch until ``stop`` is set or the folder is replaced by another one."""
        import watchfiles

        for changes in watchfiles.watch(
            self.root,
            watch_filter=None,
            step=STEP_MILLISECONDS,
            debounce=DEBOUNCE_MILLISECONDS,
            rust_timeout=1,
            yield_on_timeout=True,
            stop_event=stop,
            raise_interrupt=False,
        ):
            self.error = None
            names = changed_runs(self.root, (path for _, path in changes))
            if names:
                self._report(names)
            if stop.wait(CHECK_SECONDS) or _identity(self.root) != identity:
                return


def changed_runs(root: Path, paths: Iterable[str]) -> frozenset[str]:
    """Return the names of the runs that these paths belong to, ignoring temporary files of atomic writes."""
    prefix = os.path.join(os.path.realpath(root), "")  # noqa: PTH118 - a path object for each change is too slow
    plain = os.path.join(root, "")  # noqa: PTH118
    names = set()
    for path in paths:
        inside = path.removeprefix(prefix) if path.startswith(prefix) else path.removeprefix(plain)
        if inside != path and not inside.endswith(".tmp"):
            names.add(inside.partition("/")[0])
    return frozenset(names)


def run_names(root: Path) -> list[str]:
    """Return the name of every entry in ``root``."""
    try:
        return [entry.name for entry in root.iterdir()]
    except OSError:
        return []


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        found = root.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
