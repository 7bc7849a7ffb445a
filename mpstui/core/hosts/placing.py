"""The launch form of a screen that knows other machines: one more field says where the run starts.

If that is the machine that has the profile, the form is that machine's own. Otherwise the code is sent to the chosen
machine, which says what it would start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from ..launching.choice import LaunchChoice
from ..launching.form_fields import AFTER, ENGINE, MACHINE, Field, Preview, at_field
from ..launching.scheduling import NONE
from ..launching.telling import preview_of
from ..model.errors import UsageError
from ..model.snapshot import RunSnapshot
from ..profiles.library import ProfileEntry
from .line import HostError
from .offering import Launches, launches_of
from .progress import Cancelled, Progress
from .sending import Sender, Shipment
from .ssh import LOCAL

if TYPE_CHECKING:
    from ...wire.records import Request
    from ..launching.cure import Cure

HERE = "this machine"
_SHIPPED = "shipped"
Connecting = Callable[[str, str], Sender]
"""Opens a connection from one machine to another, by their names."""


class PlacedLauncher:
    """The profiles of this machine, and of another one while a run there is selected; see :class:`.Launcher`."""

    def __init__(self, near: Any, far: Any, names: Sequence[str], at: str, connecting: Connecting) -> None:
        """Join two launchers.

        Args:
            near, far: launchers of this machine and of ``at``; ``far`` is None if ``at`` is this one.
            names: those of all machines.
            at: the machine that a form begins with.
        """
        self._near, self._far, self._names, self._at, self._connecting = near, far, names, at, connecting
        self.asks: str = at if far is not None else ""

    def entries(self, *, waits: bool = True) -> Sequence[ProfileEntry]:
        """This machine's profiles and the other's, if there is one; those shipped with mpstui are listed once."""
        near: Sequence[ProfileEntry] = self._near.entries()
        if self._far is None:
            return near
        far = [
            one if one.origin == _SHIPPED else replace(one, name=f"{self._at}:{one.name}", origin="there")
            for one in self._far.entries(waits=waits)
        ]
        return [*(one for one in near if one.origin != _SHIPPED), *far]

    def draft(self, name: str) -> Any:
        """A form for a profile.

        Raises:
            UsageError: there is no such profile, or it has mistakes.
        """
        there = name.removeprefix(f"{self._at}:")
        own = any(one.name == name and one.origin != _SHIPPED for one in self._near.entries())
        if self._far is None or (own and there == name):
            return self._placed(self._near.draft(name), LOCAL)
        return self._placed(self._far.draft(there), self._at)

    def draft_of(self, snapshot: RunSnapshot, cure: Cure | None = None) -> Any:
        """The form of a new attempt, which starts where the run is."""
        return self._of(snapshot).draft_of(snapshot, cure)

    def branch_of(self, snapshot: RunSnapshot, step: float) -> Any:
        """A form for a new run that branches off another one at a step.

        Raises:
            OperationError: why it cannot.
        """
        source = snapshot.host or LOCAL
        return self._placed(self._of(snapshot).branch_of(snapshot, step), source, source)

    def _of(self, snapshot: RunSnapshot) -> Any:
        return self._near if self._far is None or snapshot.host in (None, LOCAL) else self._far

    def _placed(self, draft: Any, source: str, at: str = "") -> Any:
        if len(self._names) < 2:
            return draft
        return PlacedDraft(draft, source, self._names, at or self._at, self._connecting)


class PlacedDraft:
    """One launch that is being filled in, and where it starts; see :class:`.Draft`."""

    def __init__(self, inner: Any, source: str, names: Sequence[str], at: str, connecting: Connecting) -> None:
        """``source``: the machine that has the profile; ``at``: where it starts unless the form says otherwise."""
        self._inner, self._source, self._at, self._connecting = inner, source, at, connecting
        self._names = names
        first, *others = inner.fields
        shown = tuple(HERE if one == LOCAL else one for one in names)
        machine = Field(MACHINE, "machine", HERE if at == LOCAL else at, shown)
        self.fields: tuple[Field, ...] = (first, machine, *others)
        self.title: str = getattr(inner, "face_title", inner.title)
        self.description: str = inner.description
        self._sender: Sender | None = None
        self._talking = RLock()
        """Only one question at a time goes over its line."""
        self._to = ""
        self._shipment: tuple[dict[str, str], Shipment] | None = None
        self._unsure: tuple[dict[str, str], Shipment] | None = None
        """What may have been launched when its line broke; repeating it is the same call, so it happens only once."""

    def _where(self, values: Mapping[str, str]) -> tuple[str | None, dict[str, str]]:
        """The machine that it is sent to, or None if it is there already, and the values without that field."""
        chosen = LOCAL if values[MACHINE] == HERE else values[MACHINE]
        rest = {key: text for key, text in values.items() if key != MACHINE}
        return None if chosen == self._source else chosen, rest

    def asking_the_program(self, values: Mapping[str, str]) -> PlacedDraft:
        """See :class:`.Draft`: the program is asked on the machine that has it."""
        _, rest = self._where(values)
        at = LOCAL if values[MACHINE] == HERE else values[MACHINE]
        inner = self._inner.asking_the_program(rest)
        return PlacedDraft(inner, self._source, self._names, at, self._connecting)

    def preview(self, values: Mapping[str, str]) -> Preview:
        """What these values would start; for another machine, :meth:`examine` knows."""
        to, rest = self._where(values)
        if to is None:
            return self._inner.preview(rest)  # type: ignore[no-any-return]
        if self._shipment is not None and self._shipment[0] == dict(values):
            return self._told(self._shipment[1])
        if self._source == LOCAL:  # otherwise it has to be asked
            self._launches(rest)
        return Preview("", host=HERE if to == LOCAL else to)

    def examine(self, values: Mapping[str, str]) -> Preview:
        """Ask the other machine, which may take some seconds, what it lacks of the code and what it would start.

        Raises:
            OperationError, UsageError: it cannot be started there.
        """
        to, rest = self._where(values)
        if to is None:
            return self._inner.examine(rest)  # type: ignore[no-any-return]
        with self._talking:
            return self._looked(to, values, rest)

    def _looked(self, to: str, values: Mapping[str, str], rest: Mapping[str, str]) -> Preview:
        if self._to != to or self._sender is None:
            self.close()
            self._sender, self._to = self._connecting(self._source, to), to
        try:
            found = self._sender.look(self._launches(rest))
        except HostError:
            self.close()
            raise
        except UsageError as error:
            raise at_field(error, values) from error
        if self._unsure is not None and self._unsure[0] == dict(values):
            found = replace(found, call=self._unsure[1].call)
        self._shipment = dict(values), found
        return self._told(found)

    def _told(self, found: Shipment) -> Preview:
        here = HERE if self._to == LOCAL else self._to
        sends = found.sends
        return replace(preview_of(found.runs), host=here, travels=tuple(found.sentences), sends=sends)

    def _launches(self, values: Mapping[str, str]) -> Launches:
        if values.get(AFTER, "").strip():
            raise UsageError("it waits for runs of another machine than the one it starts on", field=AFTER)
        if self._source != LOCAL:
            return self._inner.launches(values)  # type: ignore[no-any-return]
        return launches_from(self._inner.choices(values), values)

    def cancel(self) -> None:
        """End a launch that another thread is carrying out: nothing is launched."""
        if (sender := self._sender) is not None:
            sender.cancel()

    def launch(self, values: Mapping[str, str], tell: Callable[[Progress], None] = lambda now: None) -> str:
        """Start all its runs, and return the first one's id, ``HOST:RUN`` on another machine.

        Args:
            tell: called with the progress of sending.

        Raises:
            Cancelled: nothing was launched.
        """
        to, rest = self._where(values)
        if to is None:
            return self._inner.launch(rest)  # type: ignore[no-any-return]
        with self._talking:
            if self._shipment is None or self._shipment[0] != dict(values):
                self.examine(values)
            assert self._sender is not None
            assert self._shipment is not None
            try:
                run = str(self._sender.launch(self._shipment[1], tell)["runs"][0])
            except Cancelled:
                self.close()
                raise
            except HostError:
                self._unsure = self._shipment
                self.close()
                raise
            self._shipment = self._unsure = None
        return run if to == LOCAL else f"{to}:{run}"

    def restart(self, *rest: Any, **named: Any) -> Request:
        """A new attempt stays where its run is: its form has no machine."""
        raise NotImplementedError

    def save(self, values: Mapping[str, str], name: str) -> Path:
        """Save the values as a profile, without the machine."""
        return self._inner.save(self._where(values)[1], name)  # type: ignore[no-any-return]

    def completed(self, key: str, text: str) -> str | None:
        """See :class:`.Draft`."""
        return None if key == MACHINE else self._inner.completed(key, text)

    def close(self) -> None:
        """End the line to the other machine."""
        with self._talking:
            if self._sender is not None:
                self._sender.close()
            self._sender = self._shipment = None


def launches_from(choices: Sequence[LaunchChoice], values: Mapping[str, str]) -> Launches:
    """What a form asks of another machine; a scheduler that the form names replaces the profile's."""
    if ENGINE not in values:
        return launches_of(choices)
    return launches_of(choices, LOCAL if values[ENGINE] == NONE else values[ENGINE], choices[0].job)
