"""What a launch takes along from the machine it comes from, to another one: its code, looked at and then sent."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from ..launching.choice import LaunchChoice
from ..model.home import Home
from .parcel import Item, pack
from .relocation import Places, choice_message, relocated
from .sources import SourceTree, Staying, code_of, manifest_of
from .talk import Ends, Place


class Launches(NamedTuple):
    """Runs to be launched together, as one machine tells another."""

    told: Sequence[Mapping[str, Any]]
    """Each as :func:`.choice_message` has it."""
    cwd: str
    """Where they would run on the machine that they come from."""
    on: str | None = None
    """The scheduler that is to start them; None: as their profile says, where that scheduler is there."""
    job: Mapping[str, str] = {}
    """Options of the scheduler."""


def launches_of(
    choices: Sequence[LaunchChoice], on: str | None = None, job: Mapping[str, str] | None = None
) -> Launches:
    """Runs that were chosen here."""
    return Launches([choice_message(one) for one in choices], str(choices[0].profile.cwd.resolve()), on, job or {})


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to send; nothing has been sent yet."""

    root: str = ""
    """The folder that travels; empty: none, since its program is mpstui's own, which is everywhere."""
    code: Mapping[str, Any] | None = None
    """As :func:`.manifest_of` has it."""
    staying: Sequence[Staying] = ()

    @property
    def files(self) -> list[Item]:
        return [Item(*one) for one in self.code["files"]] if self.code else []


class Source(Protocol):
    """The machine that a launch comes from."""

    def offer(self, launches: Launches) -> Offer:
        """Look at what would travel.

        Raises:
            OperationError: it cannot be sent, or its script is among what stays.
        """

    def send(self, lacking: Sequence[str], out: BinaryIO) -> None:
        """Write what the other machine lacks of what was offered last."""


class Offering:
    """This machine."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._files: tuple[tuple[Item, Path], ...] = ()

    def answers(self) -> dict[str, Callable[[dict[str, Any], Ends], Mapping[str, Any]]]:
        """What :func:`.talk.serve` answers with."""
        return {
            "offer": lambda asked, ends: _written(self.offer(Launches(*asked["launches"]))),
            "offered": lambda asked, ends: self._send(asked, ends),
        }

    def offer(self, launches: Launches) -> Offer:
        """See :class:`Source`."""
        choice = relocated(launches.told[0], Path(launches.cwd), Places([]))
        tree: SourceTree | None = code_of(choice.profile, self._home, choice.sets)
        self._files = tuple(tree.paths()) if tree is not None else ()
        return Offer() if tree is None else Offer(str(tree.root), manifest_of(tree), tree.staying)

    def send(self, lacking: Sequence[str], out: BinaryIO) -> None:
        """See :class:`Source`."""
        pack(self._files, lacking, out)

    def _send(self, asked: dict[str, Any], ends: Ends) -> dict[str, Any]:
        with ends.sending() as out:
            self.send(asked["lacking"], out)
        return {}


class FarOffering:
    """Another machine, over a line."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def offer(self, launches: Launches) -> Offer:
        """See :class:`Source`."""
        told = self._place.ask("offer", {"launches": list(launches)})
        return Offer(told["root"], told["code"], [Staying(*one) for one in told["staying"]])

    def send(self, lacking: Sequence[str], out: BinaryIO) -> None:
        """See :class:`Source`."""
        fields = {"lacking": list(lacking)}
        self._place.ask("offered", fields, receive=lambda reads: shutil.copyfileobj(reads, out))


def _written(offer: Offer) -> dict[str, Any]:
    return {"root": offer.root, "code": offer.code, "staying": [list(one) for one in offer.staying]}
