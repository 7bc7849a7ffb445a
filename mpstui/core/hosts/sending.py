"""Launching on another machine: what travels, what it would start there, then the launch as that machine makes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..model.errors import UsageError
from ..model.home import Home
from ..present import size
from ..settings import HostsSettings
from .moving import paths_between
from .offering import FarOffering, Launches, Offer, Offering, Source
from .ssh import LOCAL, connect
from .talk import Place

REASONS = {
    "secret": "a secret by its name",
    "token": "holds a token or a private key",
    "checkpoint": "a checkpoint",
    "large": "no code by its size",
    "outside": "a link that leads out of the folder",
    "special": "no regular file",
}
"""Why a file stays, as people read it."""
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Shipment:
    """What a launch on another machine sends, and what it starts there; nothing has been sent yet."""

    host: str
    launches: Launches
    offer: Offer
    runs: Sequence[Mapping[str, Any]]
    """Of each run what :func:`mpstui.core.launching.telling.told` says there."""
    folder: str | None = None
    """Where the same code lies there already."""
    lacking: Sequence[str] = ()
    """Digests of the files that it lacks."""
    lacking_bytes: int = 0
    """Of those, before they are compressed."""

    @property
    def sentences(self) -> list[str]:
        """What travels and what stays, a line each."""
        if self.offer.code is None:
            return []
        source, files = self.offer.code["provenance"], self.offer.files
        commit = f", commit {source['commit'][:8]}" if source.get("commit") else ""
        if commit and source.get("changed_files"):
            commit += f" and {_counted(source['changed_files'], 'changed file')}"
        total = sum(one.size for one in files)
        whole = f"{_counted(len(files), 'file')} of {self.offer.root} ({size(total)}{commit})"
        if self.lacking:
            sent = f"{_counted(len(self.lacking), 'file')}, {size(self.lacking_bytes)}"
            lines = [f"{self.host} gets {whole}" + (f"; new there: {sent}" if self.lacking_bytes < total else "")]
        else:
            lines = [f"{self.host} has {whole} already"]
        return [*lines, *stays_here(self.offer.staying)]

    def json(self) -> dict[str, Any]:
        """The same with its fields."""
        return {
            "host": self.host,
            "runs": list(self.runs),
            "code": {
                "folder": self.offer.root,
                "files": len(self.offer.files),
                "bytes": sum(one.size for one in self.offer.files),
                "sent_files": len(self.lacking),
                "sent_bytes": self.lacking_bytes,
                "stays": [one._asdict() for one in self.offer.staying],
            }
            if self.offer.code is not None
            else None,
        }


def stays_here(staying: Sequence[Any]) -> list[str]:
    """The files of a folder that are not sent, in a line; none where there are none."""
    named = [
        f"{one.name} ({REASONS[one.why]}{f', line {one.line}' if one.line else ''})" for one in staying[:_MOST_NAMED]
    ]
    more = len(staying) - len(named)
    return ["stays here: " + ", ".join(named) + (f" and {more} more" if more else "")] if named else []


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


class Sender:
    """Launches of one machine on another one, over a line that stays open. A context."""

    def __init__(
        self, host: str, source: Source, target: Place, paths: Sequence[tuple[str, str]], places: Sequence[Place] = ()
    ) -> None:
        """``host``: what the target is called here; ``paths``: where folders of the source lie on it."""
        self._host, self._source, self._target, self._paths = host, source, target, paths
        self._places = (target, *places)

    def look(self, launches: Launches) -> Shipment:
        """What would travel, and what it would start there.

        Raises:
            OperationError, UsageError: it cannot be sent, or not be started there. HostError: the line broke.
        """
        offer = self._source.offer(launches)
        there: dict[str, Any] = {"folder": None, "lacking": [], "bytes": 0, "place": ""}
        if offer.code is not None:
            there = self._target.ask("code", offer.code)
        asked = self._asked(launches, offer, there["folder"] or there["place"])
        told = self._target.ask("plan", asked)
        return Shipment(
            self._host, launches, offer, told["runs"], there["folder"], there["lacking"], int(there["bytes"])
        )

    def launch(self, found: Shipment) -> dict[str, Any]:
        """Send what is missing and start the runs there; ``runs`` and ``warnings`` of the answer.

        Raises:
            OperationError, UsageError: they cannot be started there; none was. HostError: the line broke.
        """
        folder = found.folder
        if folder is None and found.offer.code is not None:
            told = self._target.ask("stow", found.offer.code, lambda out: self._source.send(found.lacking, out))
            folder = str(told["folder"])
        return self._target.ask("launch", self._asked(found.launches, found.offer, folder or ""))

    def _asked(self, launches: Launches, offer: Offer, folder: str) -> dict[str, Any]:
        cwd, places = "", [list(one) for one in self._paths]
        if offer.root and folder:
            cwd = str(PurePosixPath(folder) / PurePosixPath(launches.cwd).relative_to(offer.root))
            places.append([offer.root, folder])
        wishes = {"on": launches.on, "job": dict(launches.job)}
        return {"cwd": cwd, "places": places, "launches": list(launches.told), **wishes}

    def close(self) -> None:
        """End the far processes; runs go on."""
        for place in self._places:
            place.close()

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def sender(
    source: str, target: str, hosts: HostsSettings, home: Home, environ: Mapping[str, str] = os.environ
) -> Sender:
    """One between two machines, by their names; the files of this machine are those of ``home``.

    Raises:
        UsageError: they are the same.
        HostError: one of them is not reached.
    """
    if source == target:
        raise UsageError(f"it is on {target} already", "name another machine", field="on")
    place = Place(connect(target, hosts, ("transfer",), environ=environ))
    paths = paths_between(source, target, hosts)
    if source == LOCAL:
        return Sender(target, Offering(home), place, paths)
    try:
        other = Place(connect(source, hosts, ("transfer",), environ=environ))
    except BaseException:
        place.close()
        raise
    return Sender(target, FarOffering(other), place, paths, (other,))
