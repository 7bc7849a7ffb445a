"""Immutable values with the ease of a frozen dataclass and without its price.

Importing ``dataclasses`` (and ``inspect`` with it) and having it write twenty classes is a third of the CPU time of a
supervisor's start: it compiles every method of every class from text. Here all values share the same few methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

V = TypeVar("V", bound="Value")

if TYPE_CHECKING:
    from typing import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[type], type]:
        """For type checkers alone; ``typing`` has it from Python 3.11 on."""
        return lambda kind: kind


class _Fresh:
    """A default that is made anew for every value."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], Any]) -> Any:
    """A field whose default is made anew for every value: a list, a dictionary."""
    return _Fresh(default_factory)


_REQUIRED = object()


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value:
    """Base of classes that only name their fields, as a dataclass does: ``name: type`` or ``name: type = default``.

    Values are equal when they are of one class and all their fields are; nothing can be set after they were made.
    The module of a subclass needs ``from __future__ import annotations``.
    """

    _fields: ClassVar[Mapping[str, Any]] = {}
    """Every field with its default, in order."""

    def __init_subclass__(cls) -> None:
        named = [name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar")]
        cls._fields = {**cls._fields, **{name: cls.__dict__.get(name, _REQUIRED) for name in named}}

    def __init__(self, *values: Any, **named: Any) -> None:
        given = dict(zip(self._fields, values, strict=False))
        wrong = named.keys() & given.keys() | named.keys() - self._fields.keys()
        if wrong or len(values) > len(self._fields):
            raise TypeError(
                f"{type(self).__name__}: one value for each field, not {', '.join(sorted(wrong)) or values}"
            )
        given.update(named)
        for name, default in self._fields.items():
            if name in given:
                self.__dict__[name] = given[name]
            elif default is _REQUIRED:
                raise TypeError(f"{type(self).__name__} needs {name}")
            else:
                self.__dict__[name] = default.make() if isinstance(default, _Fresh) else default

    def but(self: V, **changes: Any) -> V:
        """The same value with some of its fields changed."""
        return type(self)(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed: make another one with but()")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({shown})"
