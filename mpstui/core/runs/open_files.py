"""The files that processes on this machine have open for writing, as far as this user may see them (Linux)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ...wire.liveness import writes

LOOK_SECONDS = 5.0
"""Minimum time between two listings, each of which takes 3 ms with 80 processes."""
LOOKING_SHARE = 0.01
"""Listing takes at most this share of a core: it is done less often with thousands of processes."""


class OpenFiles:
    """A listing of open files, shared by all runs that ask at about the same time."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[int, Path]]] = {}
        self._look_at = 0.0

    def writers(self, files: Iterable[Path], *, anew: bool = False) -> Iterator[int]:
        """Yield the pids of the processes that have one of these files open for writing.

        Args:
            anew: make a new listing now, since an earlier one lacks processes that have started since.
        """
        begun = time.monotonic()
        if anew or begun >= self._look_at:
            self._found = self._listed()
            self._look_at = begun + max(LOOK_SECONDS, (time.monotonic() - begun) / LOOKING_SHARE)
        for name in map(os.path.realpath, files):
            for pid, descriptor in self._found.get(name, ()):
                with suppress(OSError):  # the process has ended, or has closed the file
                    if writes(pid, descriptor.name) and os.readlink(descriptor) == name:  # noqa: PTH115
                        yield pid

    def _listed(self) -> dict[str, list[tuple[int, Path]]]:
        found: dict[str, list[tuple[int, Path]]] = {}
        try:
            pids = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
        except OSError:  # a system without /proc
            return found
        for pid in pids:
            with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
                for entry in entries:
                    with suppress(OSError):
                        name = os.readlink(entry.path)  # noqa: PTH115
                        if name.startswith("/") and (name.startswith("/dev/shm/") or not name.startswith("/dev/")):
                            found.setdefault(name, []).append((int(pid), Path(entry.path)))
        return found
