"""Launching on another machine: what is sent, what it would start there, and the launch itself."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from ...wire import rundir
from ...wire.records import Branch
from ..model.errors import OperationError, UsageError
from ..model.home import Home
from ..present import size
from ..settings import HostsSettings
from .holding import held, hold
from .line import HostError
from .moving import paths_between
from .offering import FarOffering, Launches, Offer, Offering, Source
from .parcel import Item, items_of
from .progress import Cancelled, Meter, Progress, Wish
from .sources import stays
from .ssh import LOCAL, connect
from .talk import TRIES, Place, opened_again

_LET_GO_SECONDS = 3.0
"""After cancelling a launch, wait no longer than this for the clean-up."""
CALLED_OFF = "the launch was cancelled; nothing was launched"


@dataclass(frozen=True, slots=True)
class Shipment:
    """What a launch on another machine sends, and what it starts there; nothing has been sent yet."""

    host: str
    launches: Launches
    offer: Offer
    runs: Sequence[Mapping[str, Any]]
    """For each run, what :func:`mpstui.core.launching.telling.told` says over there."""
    folder: str | None = None
    """Folder over there that already has the same code."""
    lacking: Sequence[str] = ()
    """Digests of the missing files."""
    lacking_bytes: int = 0
    """Their size before compression."""
    held: str | None = None
    """Folder over there that already has the same checkpoint."""
    behind: str = "here"
    """Where the files that are not sent stay."""
    call: str = field(default_factory=lambda: rundir.new_request("launch", 0, time.time()).id)
    """The id of this launch, which is carried out once, however often it is requested."""

    @property
    def branch(self) -> Branch | None:
        """The branch that it begins from, if any."""
        return Branch(*self.launches.branch) if self.launches.branch is not None else None

    @property
    def checkpoint_bytes(self) -> int:
        """The size of the checkpoint that it begins from; 0 if there is none."""
        return sum(Item(*one).size for one in (self.offer.checkpoint or {"files": ()})["files"])

    @property
    def sends(self) -> bool:
        """True if anything is sent; all of it may be there already."""
        return bool(self.lacking) or (self.offer.checkpoint is not None and self.held is None)

    @property
    def sentences(self) -> list[str]:
        """What is sent and what stays, one line each."""
        return [*self._of_checkpoint(), *self._of_code()]

    @property
    def _called(self) -> str:
        return "this machine" if self.host == LOCAL else self.host

    def _of_checkpoint(self) -> list[str]:
        if (branch := self.branch) is None:
            return []
        called = f"the checkpoint from step {branch.step:,} of {branch.left} ({size(self.checkpoint_bytes)})"
        return [f"{self._called} {f'gets {called}' if self.held is None else f'has {called} already'}"]

    def _of_code(self) -> list[str]:
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
            lines = [f"{self._called} gets {whole}" + (f"; new there: {sent}" if self.lacking_bytes < total else "")]
        else:
            lines = [f"{self._called} has {whole} already"]
        return [*lines, *stays(self.behind, self.offer.staying)]

    def json(self) -> dict[str, Any]:
        """The shipment as JSON."""
        branch = self.branch
        return {
            "host": self.host,
            "runs": list(self.runs),
            "checkpoint": None
            if branch is None
            else {
                **branch._asdict(),
                "bytes": self.checkpoint_bytes,
                "sent_bytes": self.checkpoint_bytes if self.held is None else 0,
            },
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


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


class Sender:
    """Launches from one machine on another, over a line that stays open. A context manager."""

    def __init__(
        self,
        host: str,
        source: Source,
        target: Place,
        paths: Sequence[tuple[str, str]],
        places: Sequence[Place] = (),
        come_from: str = "",
        again: Callable[[], Place] | None = None,
    ) -> None:
        """Connect two machines.

        Args:
            host: what the target is called here.
            paths: where folders of the source are on the target.
            places: further lines that end with this one.
            come_from: what the source is called there.
            again: opens another line to the target, if one breaks during a launch.
        """
        self._host, self._source, self._target, self._paths = host, source, target, paths
        self._come_from, self._behind = come_from or platform.node(), f"on {come_from}" if come_from else "here"
        self._places, self._again = places, again
        self._wish, self._meter = Wish(CALLED_OFF), Meter()

    def look(self, launches: Launches) -> Shipment:
        """Find out what would be sent, and what it would start there.

        Raises:
            OperationError, UsageError: it cannot be sent, or not be started there. HostError: the line broke.
        """
        if launches.branch is not None:
            left = Branch(*launches.branch)
            launches = launches._replace(branch=list(left._replace(host=left.host or self._come_from)))
        offer = self._source.offer(launches)
        there: dict[str, Any] = {"folder": None, "lacking": [], "bytes": 0, "place": ""}
        if offer.code is not None:
            there = self._target.ask("code", offer.code)
        asked = self._asked(launches, offer, there["folder"] or there["place"])
        told = self._target.ask("plan", asked)
        held = self._target.ask("held", offer.checkpoint)["folder"] if offer.checkpoint is not None else None
        code = there["folder"], there["lacking"], int(there["bytes"])
        return Shipment(self._host, launches, offer, told["runs"], *code, held, self._behind)

    def branch(self, asked: Mapping[str, Any]) -> Launches:
        """The launch of a branch of a run of the source; see :class:`.Source`."""
        return self._source.branch(asked)

    def cancel(self) -> None:
        """End a launch that another thread is carrying out, or that runs below a signal handler: no run starts.

        Impossible once it was requested; :attr:`.Progress.can_cancel` says so.
        """
        self._wish.take_back()

    def launch(self, found: Shipment, tell: Callable[[Progress], None] = lambda now: None) -> dict[str, Any]:
        """Send what is missing and start the runs there; return ``runs`` and ``warnings`` of the answer.

        Args:
            tell: called with the progress, in the calling thread.

        Raises:
            Cancelled: nothing was launched.
            OperationError, UsageError: they cannot be started there; none was. HostError: the line broke; the sentence
                says whether any was.
        """
        self._meter = Meter(tell)
        for place in (self._target, *self._places):
            place.cancel_by(self._wish.require)
        try:
            asked = self._sent(found)
            self._wish.require()
        except HostError as error:
            raise _told(error, "nothing was launched") from error
        except Cancelled:
            self._let_go()
            raise
        self._target.cancel_by(lambda: None)
        self._meter.begin("it is launched", can_cancel=False)
        for _ in range(TRIES):
            try:
                return self._target.ask("launch", {**asked, "call": found.call})
            except HostError as error:
                broken = error
                if self._again is None:
                    break
                try:
                    self._target = opened_again(self._target, self._again)
                except HostError as worse:
                    broken = worse
                    break
        raise _told(broken, "whether it was launched is not known", f"`mpstui ps --host {self._host}`")

    def _sent(self, found: Shipment) -> dict[str, Any]:
        """Send everything that the launch needs; return the request that starts it."""
        folder = found.folder
        if folder is None and found.offer.code is not None:
            self._meter.begin("its code is sent", found.lacking_bytes)
            folder = self._handed("stow", found.offer.code, found.lacking)
        asked, held = self._asked(found.launches, found.offer, folder or ""), found.held
        if found.offer.checkpoint is not None and held is None:
            lacking = sorted({Item(*one).digest for one in found.offer.checkpoint["files"]})
            self._meter.begin("its checkpoint is sent", found.checkpoint_bytes)
            held = self._handed("hold", found.offer.checkpoint, lacking)
        return {**asked, "held": held}

    def _let_go(self) -> None:
        """Have what was sent in vain removed there now; otherwise that happens after a day."""
        until = time.monotonic() + _LET_GO_SECONDS

        def in_time() -> None:
            if time.monotonic() > until:
                raise Cancelled("nobody waits any more")

        self._target.cancel_by(in_time)
        with suppress(OperationError):
            self._target.ask("let_go", {})

    def _handed(self, to: str, told: Mapping[str, Any], lacking: Sequence[str]) -> str:
        """Send files of the source; return the folder that has them over there."""

        def hand(out: BinaryIO) -> None:
            self._source.send(lacking, self._meter.sink(out, self._wish))
            self._meter.all_passed()

        return str(self._target.ask(to, told, send=hand)["folder"])

    def _asked(self, launches: Launches, offer: Offer, folder: str) -> dict[str, Any]:
        cwd, places = "", [list(one) for one in self._paths]
        if offer.root and folder:
            cwd = str(PurePosixPath(folder) / PurePosixPath(launches.cwd).relative_to(offer.root))
            places.append([offer.root, folder])
        wishes = {"on": launches.on, "job": dict(launches.job), "branch": launches.branch}
        return {"cwd": cwd, "places": places, "launches": list(launches.told), **wishes}

    def close(self) -> None:
        """End the far processes; runs continue."""
        for place in (self._target, *self._places):
            place.close()

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _told(error: HostError, what: str, hint: str = "") -> HostError:
    return HostError(error.host, error.kind, f"{error.why}; {what}", hint)


def fetched(
    place: Place,
    asked: Mapping[str, Any],
    home: Home,
    tell: Callable[[Progress], None],
    wish: Wish,
) -> Branch:
    """Bring a checkpoint of another machine's run here; ``asked`` as in :meth:`.Source.branch`.

    Args:
        tell: called with the progress.
        wish: withdraw it to end this.

    Raises:
        Cancelled: it was withdrawn.
        UsageError: there is no such run. OperationError: it cannot be branched, or did not arrive.
    """
    source = FarOffering(place)
    branch = source.branch(asked).branch
    assert branch is not None
    left = Branch(*branch)._replace(host=place.host)
    manifest = source.offer(Launches((), "", branch=branch)).checkpoint or {}
    folder = held(manifest, home)
    if folder is None:
        items, kept, meter = items_of(manifest), list[Path](), Meter(tell)
        place.cancel_by(wish.require)
        meter.begin("the checkpoint is brought here", sum(one.size for one in items))

        def receive(reads: BinaryIO) -> None:
            kept.append(hold(manifest, meter.tap(reads, wish), home))

        place.ask("offered", {"lacking": sorted({one.digest for one in items})}, receive=receive)
        meter.all_passed()
        (folder,) = kept
    return left._replace(checkpoint=str(folder / Path(left.checkpoint).name))


def sender(
    source: str, target: str, hosts: HostsSettings, home: Home, environ: Mapping[str, str] = os.environ
) -> Sender:
    """A sender between two machines, by their names; the files of this machine are those of ``home``.

    Raises:
        UsageError: they are the same.
        HostError: one of them cannot be reached.
    """
    if source == target:
        raise UsageError(f"it is on {target} already", "name another machine", field="on")

    def opened() -> Place:
        return Place(connect(target, hosts, ("transfer",), environ=environ))

    place, paths = opened(), paths_between(source, target, hosts)
    if source == LOCAL:
        return Sender(target, Offering(home), place, paths, again=opened)
    try:
        other = Place(connect(source, hosts, ("transfer",), environ=environ))
    except BaseException:
        place.close()
        raise
    return Sender(target, FarOffering(other), place, paths, (other,), source, opened)
