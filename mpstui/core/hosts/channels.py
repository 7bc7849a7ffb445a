"""Values known on one side of a line and watched on the other: their changes are sent, no faster than agreed.

A channel holds one value of one type. All that has changed since it was last sent is one patch, and the next patch
waits as long as this one takes at the agreed rate. Nothing piles up: later changes join the next patch, or cancel out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .codec import form_of
from .delta import SAME, DoesNotFit, difference, patched
from .forms import Known, Malformed, Rules
from .outbox import Outbox

TOLD = Rules(digits=7)
"""More digits than any screen shows."""
_FIRST_SECONDS = 1.0
"""The longest wait after the first patch of a channel, which is the whole value and not a change."""


@dataclass(slots=True)
class _Channel:
    known: Known[Any] | None = None
    waits: bool = False
    """Its last patch has not been sent completely."""
    first: bool = True
    next_at: float = 0.0


class Teller:
    """Sends the values of channels. Use it from one thread; only the outbox calls back from another."""

    def __init__(self, outbox: Outbox, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._outbox, self._monotonic = outbox, monotonic
        self._channels: dict[str, _Channel] = {}

    def may_tell(self, name: str) -> bool:
        """True if a change of this channel could be sent now."""
        channel = self._channels.get(name)
        return channel is None or (not channel.waits and self._monotonic() >= channel.next_at)

    def told(self, name: str) -> Any:
        """The value that the other side has, or is about to have; None if nothing was sent."""
        channel = self._channels.get(name)
        return channel.known.value if channel is not None and channel.known is not None else None

    def tell(self, name: str, kind: Any, value: Any, bytes_a_second: float, *, urgent: bool = False) -> bool:
        """Send a value if it has changed, its turn has come and its last patch has left; return True if it was sent."""
        channel = self._channels.setdefault(name, _Channel())
        if channel.waits or (not urgent and self._monotonic() < channel.next_at):
            return False
        known = channel.known
        tree = form_of(kind).encode(value, TOLD, known)
        patch = [0, tree] if known is None else difference(known.tree, tree)
        channel.known = Known(value, tree)
        if patch is SAME:
            return False
        channel.waits = True

        def sent(size: int) -> None:
            cost = min(size / bytes_a_second, _FIRST_SECONDS) if channel.first else size / bytes_a_second
            channel.next_at = max(channel.next_at, self._monotonic()) + cost
            channel.first = channel.waits = False

        self._outbox.put(["told", name, patch], sent)
        return True

    def keep(self, names: set[str]) -> None:
        """Forget all channels but these: nobody looks at the others any more."""
        for name in self._channels.keys() - names:
            del self._channels[name]
            self._outbox.put(["gone", name], urgent=True)


class Hearer:
    """Receives the values of channels."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._known: dict[str, Known[Any]] = {}

    def hear(self, name: str, kind: Any, patch: Any) -> Any:
        """Apply a patch and return the new value.

        Raises:
            Malformed: the patch does not fit, or the result is not a value of this channel.
        """
        known = self._known.get(name)
        try:
            tree = patched(known.tree if known is not None else None, patch)
        except DoesNotFit as error:
            raise Malformed(f"{name}: {error}") from error
        value = form_of(kind).decode(tree, self._rules, known)
        self._known[name] = Known(value, tree)
        return value

    def drop(self, name: str) -> None:
        """Forget a channel, which will get no more values."""
        self._known.pop(name, None)
