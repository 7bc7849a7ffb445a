"""What was seen of the runs of other tools, who writes them and how they grow: kept in the home for whoever looks next.

One file holds all of them. Losing it costs only what nobody sees any more: a run without a recorded end is then
external, not lost, and one that grows unseen until somebody has looked twice.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...wire import liveness, storage
from ...wire.liveness import ProcessIdentity

MOST_KEPT = 2000
"""Runs, those whose writers were seen last."""
_MOST_BYTES = 1 << 20
_GREW = "\0grew"
"""In the key of a growth."""


class Sighting(NamedTuple):
    """The processes that had the files of one run open for writing, or stood in their names."""

    writers: tuple[ProcessIdentity, ...]
    boot: str
    """The boot of the machine on which they ran."""
    ended: float | None = None
    """Unix seconds, when they were first found to have ended; None: they lived."""


class Growth(NamedTuple):
    """How the files of one run grew."""

    moved: float
    """When they were last written, Unix seconds."""
    pauses: tuple[float, ...]
    """Seconds between the newest times that they were seen to be written; empty: they were seen once."""


class Sightings:
    """Those of one home. What was seen on another machine that shares it proves nothing here."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Any] | None = None
        self._machine = ""

    def find(self, files: Iterable[Path]) -> Sighting | None:
        """Who was seen to write exactly these files; with another file among them, somebody else may go on."""
        try:
            found = self._held()[self._key(files)]
            writers = tuple(ProcessIdentity(int(pid), int(start)) for pid, start in found["writers"])
            ended = found["ended"]
            return Sighting(writers, str(found["boot"]), None if ended is None else float(ended))
        except (LookupError, TypeError, ValueError):  # whatever the file has become
            return None

    def keep(self, files: Sequence[Path], seen: Sighting | None) -> None:
        """Remember it, or that it is out of date."""
        told = seen and {"writers": [list(one) for one in seen.writers], "boot": seen.boot, "ended": seen.ended}
        self._keep(self._key(files), told)

    def find_growth(self, place: Path) -> Growth | None:
        """How the run that is named so was last seen to grow."""
        try:
            found = self._held()[self._key([place], _GREW)]
            return Growth(float(found["moved"]), tuple(float(one) for one in found["pauses"]))
        except (LookupError, TypeError, ValueError):
            return None

    def keep_growth(self, place: Path, seen: Growth) -> None:
        """Remember it."""
        self._keep(self._key([place], _GREW), {"moved": seen.moved, "pauses": list(seen.pauses)})

    def _keep(self, key: str, told: dict[str, Any] | None) -> None:
        """A disk that accepts nothing costs only memory."""
        self._known = None  # others may have seen more since
        known = self._held()
        before = known.pop(key, None)
        if told is not None:
            known[key] = told
        elif before is None:
            return
        with contextlib.suppress(OSError):
            storage.make_private_folder(self._path.parent)
            kept = dict([*known.items()][-MOST_KEPT:])
            storage.write_bytes(self._path, json.dumps(kept).encode(), sync=False)

    def _key(self, files: Iterable[Path], of: str = "") -> str:
        """The machine stands in it by both its names: containers of one image share the first, and not the second."""
        import hashlib  # the first frame of a list need not wait for it

        self._machine = self._machine or f"{liveness.machine_id()}\0{os.uname().nodename}"
        names = "\0".join(sorted(map(os.path.realpath, files)))
        return hashlib.blake2b(f"{self._machine}{of}\0{names}".encode("utf-8", "replace"), digest_size=12).hexdigest()

    def _held(self) -> dict[str, Any]:
        if self._known is None:
            found: Any = None
            with contextlib.suppress(OSError, ValueError, RecursionError):
                found = json.loads(storage.read_bytes(self._path, _MOST_BYTES))
            self._known = found if isinstance(found, dict) else {}
        return self._known


def sightings_in(state: Path) -> Sightings:
    """Those of a home, by its state folder."""
    return Sightings(state / "cache" / "writers.json")
