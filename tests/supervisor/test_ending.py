"""The end of an attempt is written down whenever the trainer happens to end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mpstui.supervisor import ending
from mpstui.supervisor.stop_sequence import StopStep


@pytest.mark.parametrize("seen_by", ["the first look", "the look of the stop"])
def test_a_trainer_that_ends_between_two_looks_of_its_stop_is_written_down_first(
    seen_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def end(supervision: Any, attempt: Any) -> None:
        attempt.ending = "found"
        done.append("how it ended")

    monkeypatch.setattr(ending, "_end", end)
    attempt: Any = SimpleNamespace(
        ending=None,
        stop_sequence=object(),
        leader_is_alive=lambda: seen_by != "the first look",
        advance_stop=lambda is_saving: StopStep.GONE,
    )
    supervision: Any = SimpleNamespace(
        accepted=(), saving=None, end_attempt=lambda **status: done.append(status["phase"]), launched=None
    )
    ending.watch(supervision, attempt, lambda: None)
    assert done == ["how it ended", "ended"]


def test_a_signal_that_came_before_the_end_is_heeded_before_that_is_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A scheduler that ends a job tells all of it: the supervisor too, which may be in the middle of a look."""
    done: list[str] = []

    def end(supervision: Any, attempt: Any) -> None:
        attempt.ending = "found"
        done.append("end")

    monkeypatch.setattr(ending, "_end", end)
    monkeypatch.setattr(ending, "_drain", lambda supervision, attempt: None)
    attempt: Any = SimpleNamespace(
        ending=None, stop_sequence=None, leader_is_alive=lambda: False, advance_stop=lambda is_saving: None
    )
    supervision: Any = SimpleNamespace(accepted=(), saving=None, launched=None)
    ending.watch(supervision, attempt, lambda: done.append("signals"))
    assert done == ["signals", "end"]
