"""Launching on another machine: what travels, then the launch as that machine makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..launching.choice import LaunchChoice
from ..model.home import Home
from ..settings import HostSettings
from .parcel import pack
from .relocation import choice_message
from .sources import SourceTree, code_of, manifest_of
from .talk import Place


@dataclass(frozen=True, slots=True)
class Shipment:
    """What a launch sends to another machine; nothing has been sent yet."""

    tree: SourceTree | None
    """None: its program is mpstui's own, which is there."""
    folder: str | None
    """Where the same code lies there already."""
    lacking: tuple[str, ...] = ()
    """Digests of the files that it lacks."""
    size_bytes: int = 0
    """Of those, before they are compressed."""

    @property
    def files(self) -> int:
        """How many are sent."""
        return len(self.lacking)


def shipment(choice: LaunchChoice, place: Place, home: Home) -> Shipment:
    """Look at the code of a launch, and ask what of it is missing there.

    Raises:
        OperationError: it cannot be sent, or its script is among what stays.
    """
    tree = code_of(choice.profile, home)
    if tree is None:
        return Shipment(None, None)
    told = place.ask("code", manifest_of(tree))
    return Shipment(tree, told["folder"], tuple(told["lacking"]), int(told["bytes"]))


def send_code(found: Shipment, place: Place) -> str | None:
    """Send what is missing; the folder of the code there."""
    if found.tree is None or found.folder is not None:
        return found.folder
    tree = found.tree
    told = place.ask("stow", manifest_of(tree), lambda out: pack(tree.paths(), found.lacking, out))
    return str(told["folder"])


def launch_there(choices: Sequence[LaunchChoice], found: Shipment, place: Place, host: HostSettings) -> dict[str, Any]:
    """Start the runs there; ``runs`` and ``warnings`` of the answer.

    Raises:
        OperationError, UsageError: they cannot be started there; none was.
    """
    folder = send_code(found, place)
    cwd, places = "", [[old, new] for old, new in host.paths.items()]
    if found.tree is not None and folder is not None:
        cwd = str(Path(folder) / choices[0].profile.cwd.resolve().relative_to(found.tree.root))
        places.append([str(found.tree.root), folder])
    launches = [choice_message(one) for one in choices]
    return place.ask("launch", {"cwd": cwd, "places": places, "launches": launches})
