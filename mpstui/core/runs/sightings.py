"""What was observed of foreign runs (who writes them and how they grow), kept in the home for the next process.

One file holds all of it. Losing it costs only what can no longer be observed: a run without a recorded end is then
external instead of lost, and a growing one is not known to grow until it has been looked at twice.
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
"""How many entries are kept: the most recent ones."""
_MOST_BYTES = 1 << 20
_GREW = "\0grew"
"""Part of the key of a growth."""


class Sighting(NamedTuple):
    """The processes that had the files of a run open for writing, or were named in the files' names."""

    writers: tuple[ProcessIdentity, ...]
    boot: str
    """The boot id of the machine while they ran."""
    ended: float | None = None
    """Unix seconds, when they were first found to have ended; None if they were alive."""


class Growth(NamedTuple):
    """How the files of a run grew."""

    moved: float
    """When they were last written, Unix seconds."""
    pauses: tuple[float, ...]
    """Seconds between the latest observed writes; empty if only one was observed."""


class Sightings:
    """The sightings kept in a home. Those made on another machine that shares the home prove nothing here."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Any] | None = None
        self._machine = ""

    def find(self, files: Iterable[Path]) -> Sighting | None:
        """Return who wrote exactly these files; if there is another file now, a different process may continue."""
        try:
            found = self._held()[self._key(files)]
            writers = tuple(ProcessIdentity(int(pid), int(start)) for pid, start in found["writers"])
            ended = found["ended"]
            return Sighting(writers, str(found["boot"]), None if ended is None else float(ended))
        except (LookupError, TypeError, ValueError):  # whatever the file has become
            return None

    def keep(self, files: Sequence[Path], seen: Sighting | None) -> None:
        """Save a sighting, or delete an outdated one if ``seen`` is None."""
        told = seen and {"writers": [list(one) for one in seen.writers], "boot": seen.boot, "ended": seen.ended}
        self._keep(self._key(files), told)

    def find_growth(self, place: Path) -> Growth | None:
        """Return how the run at this place was last seen to grow."""
        try:
            found = self._held()[self._key([place], _GREW)]
            return Growth(float(found["moved"]), tuple(float(one) for one in found["pauses"]))
        except (LookupError, TypeError, ValueError):
            return None

    def keep_growth(self, place: Path, seen: Growth) -> None:
        """Save how the run at this place grew."""
        self._keep(self._key([place], _GREW), {"moved": seen.moved, "pauses": list(seen.pauses)})

    def _keep(self, key: str, told: dict[str, Any] | None) -> None:
        """Save or delete an entry; if the disk refuses, only this process knows of it."""
        self._known = None  # other processes may have added entries
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
        """Return a key that includes the machine's id and host name: containers of one image share only the id."""
        import hashlib  # imported late, for a faster first frame

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
    """Return the sightings kept in a home's state folder."""
    return Sightings(state / "cache" / "writers.json")
