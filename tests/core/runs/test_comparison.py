"""What runs differ in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpstui.core.model.snapshot import RunSnapshot, State
from mpstui.core.runs.comparison import Difference, differences, settings_of


def run(*argv: str, **fields: Any) -> RunSnapshot:
    return RunSnapshot(
        run="r", name="r", dir=Path("/r"), state=State.RUNNING, seen=0.0, argv=("python", "t.py", *argv), **fields
    )


def test_arguments_of_every_style_are_read() -> None:
    found = settings_of(run("--lr", "0.1", "--ema", "--steps=5", "model.depth=3", "+extra=1", "--shift", "-1", "data"))
    assert found == {
        "word 0": "python",
        "word 1": "t.py",
        "lr": "0.1",
        "ema": "yes",
        "steps": "5",
        "model.depth": "3",
        "extra": "1",
        "shift": "-1",
        "word 2": "data",
    }


def test_a_word_is_the_same_whatever_options_stand_before_it() -> None:
    assert differences([run("--steps=5", "data"), run("data")]) == [Difference("steps", ("5", None))]


def test_only_what_differs_is_told_and_what_is_missing_is_none() -> None:
    one = run("--lr", "0.1", "--ema", profile="a", env={"OMP_NUM_THREADS": "4", "MPSTUI_RUN_ID": "x"})
    other = run("--lr", "0.2", profile="a", env={"OMP_NUM_THREADS": "8", "MPSTUI_RUN_ID": "y"})
    assert differences([one, other]) == [
        Difference("lr", ("0.1", "0.2")),
        Difference("ema", ("yes", None)),
        Difference("OMP_NUM_THREADS", ("4", "8")),
    ]
    assert differences([one, one]) == []
