"""Records declared the cheap way behave like those of the standard library."""

from __future__ import annotations

import dataclasses
from dataclasses import field, replace

import pytest

from mpstui.core.model import frozen


@frozen.dataclass(frozen=True, slots=True)
class Cheap:
    name: str
    seen: float = field(default=0.0, compare=False)
    words: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)


@frozen.dataclass(frozen=True, eq=False, kw_only=True)
class Alone:
    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class Dear:
    name: str
    seen: float = field(default=0.0, compare=False)
    words: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)


@pytest.mark.parametrize("kind", [Cheap, Dear])
def test_records_are_equal_by_what_is_compared(kind: type[Cheap]) -> None:
    one, later = kind("a", 1.0, ("x",)), kind("a", 2.0, ("x",))
    assert one == later
    assert hash(one) == hash(later)
    assert one != replace(one, words=("y",))
    assert one != Alone(name="a")  # type: ignore[comparison-overlap]
    assert repr(one) == f"{kind.__name__}(name='a', seen=1.0, words=('x',))"
    assert [each.name for each in dataclasses.fields(kind)] == ["name", "seen", "words", "secret"]


def test_a_record_of_another_kind_is_another_one() -> None:
    assert Cheap("a") != Dear("a")  # type: ignore[comparison-overlap]
    assert Alone(name="a") != Alone(name="a")
    with pytest.raises(TypeError):
        Alone("a")  # type: ignore[call-arg]
