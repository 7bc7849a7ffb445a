"""What a launch on another machine needs from the machine that it comes from: its code, inspected and then sent."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from ...wire import storage
from ...wire.records import Branch
from ..launching.branching import branch_at, branch_choice
from ..launching.choice import LaunchChoice
from ..model.home import Home
from ..runs.find import find_run
from ..runs.monitor import Monitor
from .holding import checkpoint_files
from .parcel import Item, below, pack
from .relocation import Places, choice_message, relocated
from .sources import SourceTree, Staying, code_of, manifest_of
from .talk import Ends, Place


class Launches(NamedTuple):
    """Runs to be launched together, as one machine describes them to another."""

    told: Sequence[Mapping[str, Any]]
    """Each in the form of :func:`.choice_message`; empty if only a checkpoint is wanted."""
    cwd: str
    """Where they would run on the machine that they come from."""
    on: str | None = None
    """The scheduler that is to start them; None: the one in their profile, if it is there."""
    job: Mapping[str, str] = {}
    """Options of the scheduler."""
    branch: Sequence[Any] | None = None
    """The :class:`.Branch` they begin from; its checkpoint lies on the machine that they come from."""


def launches_of(
    choices: Sequence[LaunchChoice], on: str | None = None, job: Mapping[str, str] | None = None
) -> Launches:
    """Describe runs that were chosen here."""
    first = choices[0]
    told = [choice_message(one) for one in choices]
    branch = list(first.branch) if first.branch is not None else None
    return Launches(told, str(first.profile.cwd.resolve()), on, job or {}, branch)


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is to send; nothing has been sent yet."""

    root: str = ""
    """The folder to send; empty if its program is mpstui's own, which is everywhere."""
    code: Mapping[str, Any] | None = None
    """As :func:`.manifest_of` returns it."""
    staying: Sequence[Staying] = ()
    checkpoint: Mapping[str, Any] | None = None
    """The files of the checkpoint that it begins from."""

    @property
    def files(self) -> list[Item]:
        return [Item(*one) for one in self.code["files"]] if self.code else []


class Source(Protocol):
    """The machine that a launch comes from."""

    def offer(self, launches: Launches) -> Offer:
        """Look at what would be sent.

        Raises:
            OperationError: it cannot be sent, or its script is among the files that stay.
        """

    def send(self, lacking: Sequence[str], out: BinaryIO) -> None:
        """Write those files of the last offer, code and checkpoint, that the other machine lacks."""

    def branch(self, asked: Mapping[str, Any]) -> Launches:
        """The launch of a branch of a run on that machine.

        Args:
            asked: ``run``, ``at`` (the step; None: its newest checkpoint), ``sets``, ``env``, ``name`` and ``device``.

        Raises:
            UsageError: there is no such run. OperationError: why it cannot be branched.
        """


class Offering:
    """This machine as a :class:`Source`."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._files: tuple[tuple[Item, Path], ...] = ()
        self._weights: tuple[object, tuple[tuple[Item, Path], ...]] = None, ()
        """The files of the last checkpoint that was offered, which may be large and is read only once."""

    def answers(self) -> dict[str, Callable[[dict[str, Any], Ends], Mapping[str, Any]]]:
        """The answers for :func:`.talk.serve`."""
        return {
            "offer": lambda asked, ends: _written(self.offer(Launches(*asked["launches"]))),
            "offered": lambda asked, ends: self._send(asked, ends),
            "branch": lambda asked, ends: {"launches": list(self.branch(asked))},
        }

    def offer(self, launches: Launches) -> Offer:
        """See :class:`Source`."""
        tree: SourceTree | None = None
        if launches.told:
            choice = relocated(launches.told[0], Path(launches.cwd), Places([]))
            tree = code_of(choice.profile, self._home, choice.sets)
        self._files = tuple(tree.paths()) if tree is not None else ()
        found = Offer() if tree is None else Offer(str(tree.root), manifest_of(tree), tree.staying)
        if launches.branch is None:
            return found
        checkpoint = Path(Branch(*launches.branch).checkpoint)
        stamps = checkpoint, *(storage.stamp(one) for one in (checkpoint, *below(checkpoint)))
        if self._weights[0] != stamps:
            self._weights = stamps, checkpoint_files(checkpoint)
        weights = self._weights[1]
        self._files += weights
        return replace(found, checkpoint={"files": [list(one) for one, _ in weights]})

    def branch(self, asked: Mapping[str, Any]) -> Launches:
        """See :class:`Source`."""
        snapshot = Monitor(self._home).snapshot(find_run(self._home, str(asked["run"])).run)
        left = branch_at(snapshot, inf if asked["at"] is None else asked["at"])
        choice = branch_choice(snapshot, left, asked["sets"], asked["env"])
        name, device = asked["name"] or choice.name, asked["device"] or choice.device
        return launches_of([replace(choice, name=name, device=device)])

    def send(self, lacking: Sequence[str], out: BinaryIO) -> None:
        """See :class:`Source`."""
        pack(self._files, lacking, out)

    def _send(self, asked: dict[str, Any], ends: Ends) -> dict[str, Any]:
        with ends.sending() as out:
            self.send(asked["lacking"], out)
        return {}


class FarOffering:
    """Another machine as a :class:`Source`, over a line."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def offer(self, launches: Launches) -> Offer:
        """See :class:`Source`."""
        told = self._place.ask("offer", {"launches": list(launches)})
        return Offer(told["root"], told["code"], [Staying(*one) for one in told["staying"]], told["checkpoint"])

    def branch(self, asked: Mapping[str, Any]) -> Launches:
        """See :class:`Source`."""
        return Launches(*self._place.ask("branch", asked)["launches"])

    def send(self, lacking: Sequence[str], out: BinaryIO) -> None:
        """See :class:`Source`."""
        fields = {"lacking": list(lacking)}
        self._place.ask("offered", fields, receive=lambda reads: shutil.copyfileobj(reads, out))


def _written(offer: Offer) -> dict[str, Any]:
    staying = [list(one) for one in offer.staying]
    return {"root": offer.root, "code": offer.code, "staying": staying, "checkpoint": offer.checkpoint}
