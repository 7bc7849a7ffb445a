"""How long a launch takes, from earlier runs of its profile; unknown where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpstui.core.model.snapshot import Numbers, RunSnapshot, State
from mpstui.core.runs.expected import Expected, expected


def run(took: float, epochs: float | None = 10, **fields: Any) -> RunSnapshot:
    given: dict[str, Any] = {"profile": "cifar", "state": State.FINISHED, "started": 0.0, "ended": took, **fields}
    return RunSnapshot(run="r", name="r", dir=Path("/r"), seen=0.0, numbers=Numbers(epochs=epochs), **given)


def test_earlier_runs_of_the_profile_tell_and_count_by_epochs() -> None:
    assert expected("cifar", 10, [run(100), run(300), run(200)]) == Expected(200, 3)
    assert expected("cifar", 100, [run(100), run(50, epochs=5)]) == Expected(1000, 2)
    assert expected("cifar", None, [run(100, epochs=None)]) == Expected(100, 1)


def test_nothing_is_assumed() -> None:
    others = [run(1, profile="other"), run(1, state=State.FAILED), run(1, started=None), run(1, ended=None)]
    assert expected("cifar", 10, others) is None
    assert expected(None, 10, [run(100, profile=None)]) is None
