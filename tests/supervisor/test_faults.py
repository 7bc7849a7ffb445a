"""A slice of the fault-injection suite; all of it runs with ``python -m tests.supervisor.faults``."""

from __future__ import annotations

import sys

import pytest

from .faults.__main__ import PROOFS, play

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="strays are proved with /proc")
SLICE = ("before_spawn", "in_the_child", "running_both", "stopping_supervisor", "kill_and_restart_together", "ranks")


@pytest.mark.parametrize("scene", SLICE)
def test_a_scene_ends_without_faults(scene: str) -> None:
    assert play(scene).faults.all == []


@pytest.mark.parametrize(("sabotage", "what"), [("pid_is_enough", "foreign_signals"), ("no_tree", "strays")])
def test_the_suite_notices_a_broken_rule(sabotage: str, what: str) -> None:
    faults = play(PROOFS[sabotage], sabotage).faults
    assert faults.all == getattr(faults, what) != [], "for that reason, and for no other"
