"""Values behave as frozen dataclasses do; importing the supervisor must not import those."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from mpstui.wire.values import Value, field

SUPERVISOR = Path(__file__).parents[2] / "mpstui" / "supervisor" / "__main__.py"


class Point(Value):
    KINDS: ClassVar[tuple[str, ...]] = ("a", "b")

    x: float
    y: float = 0.0


class Path3(Point):
    z: float = 1.0
    names: list[str] = field(default_factory=list)


def test_values_are_told_by_their_fields() -> None:
    assert Path3(1.0, z=2.0) == Path3(x=1.0, y=0.0, z=2.0, names=[])
    assert Path3(1.0) != Path3(2.0)
    assert Point(1.0) != Path3(1.0)
    assert hash(Point(1.0)) == hash(Point(1.0, 0.0))
    assert repr(Point(1.0)) == "Point(x=1.0, y=0.0)"


def test_a_default_that_can_be_changed_is_made_anew() -> None:
    first = Path3(1.0)
    first.names.append("a")
    assert Path3(1.0).names == []


def test_nothing_can_be_set_later() -> None:
    point = Point(1.0)
    with pytest.raises(AttributeError, match="x cannot be changed"):
        point.x = 2.0  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del point.x
    assert point.but(x=2.0) == Point(2.0)
    assert point == Point(1.0)


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((1.0, 2.0, 3.0), {}), ((1.0,), {"x": 2.0}), ((1.0,), {"w": 2.0})],
    ids=["missing", "too many", "twice", "unknown"],
)
def test_what_does_not_fit_the_fields_is_refused(values: tuple[float, ...], named: dict[str, float]) -> None:
    with pytest.raises(TypeError):
        Point(*values, **named)


def test_values_can_be_copied_and_pickled() -> None:
    value = Path3(1.0, names=["a"])
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_supervisor_starts_without_dataclasses() -> None:
    code = (
        f"import sys; sys.argv = ['x']; sys.path.append({str(SUPERVISOR.parents[2])!r})\n"
        "import mpstui.supervisor.__main__\n"
        "print(sorted({'dataclasses', 'inspect', 'traceback', 'logging'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
