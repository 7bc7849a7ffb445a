"""``dataclass`` for what every start of the screen declares: at runtime a third of the price, for types the very same.

The one of the standard library compiles up to seven methods of each class when it is imported: 8.5 ms of processor time
for :mod:`.snapshot` alone. Here ``__init__`` is compiled, all else is shared. That nothing is assigned to a frozen
record is for the type checker to see to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import field as field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, eq=True, kw_only=False, **_ignored):
        """Like that of the standard library; ``frozen``, ``slots`` and ``repr`` change nothing."""
        if cls is None:
            return lambda cls: dataclass(cls, eq=eq, kw_only=kw_only)
        cls.__doc__ = cls.__doc__ or cls.__name__  # else its signature would be worked out
        made = dataclasses.dataclass(cls, eq=False, repr=False, kw_only=kw_only)
        if "__repr__" not in vars(made):
            made.__repr__ = _told
        if eq and (names := [one.name for one in dataclasses.fields(made) if one.compare]):
            made.__eq__, made.__hash__ = _by(attrgetter(*names))
        return made


def _told(record: Any) -> str:
    values = (f"{one.name}={getattr(record, one.name)!r}" for one in dataclasses.fields(record) if one.repr)
    return f"{type(record).__qualname__}({', '.join(values)})"


def _by(told: attrgetter[Any]) -> tuple[Callable[[Any, Any], bool], Callable[[Any], int]]:
    """Equality and hash of records by what is told of them."""

    def same(one: Any, other: Any) -> bool:
        alike: bool = one.__class__ is other.__class__ and told(one) == told(other)
        return alike

    def hashed(one: Any) -> int:
        return hash(told(one))

    for method in (same, hashed):  # as those that are compiled: who follows files is not led here
        method.__code__ = method.__code__.replace(co_filename="<record>")
    return same, hashed
