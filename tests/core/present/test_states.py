"""Every state has a glyph and a word of its own, trouble is counted, events are told once and files to their run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.model.exits import ExitSummary
from mpstui.core.model.snapshot import Checkpoint, Health, Numbers, RunSnapshot, State
from mpstui.core.present import (
    BADGES,
    CANCELLED,
    ENDED,
    FINISHING,
    GONE,
    MOVED,
    NAN_LOSS,
    SILENT,
    UNHEARD,
    WIDEST_WORD,
    attention,
    badge,
    failed_or_stuck,
    legend,
    needs_attention,
    needs_explaining,
    short_paths,
    why_not_its_own,
)


def run(
    state: State, health: Health | None = None, exit_: ExitSummary | None = None, paused: bool = False
) -> RunSnapshot:
    return RunSnapshot("r", "r", Path("/r"), state, 0.0, health=health, exit=exit_, paused=paused)


BEHIND = (FINISHING, NAN_LOSS, SILENT, ENDED, GONE, MOVED, UNHEARD, CANCELLED)
"""Badges that more than the state tells."""


def test_every_state_and_health_has_a_badge() -> None:
    assert set(BADGES) == {*State, *Health}
    words = [shown.word for shown in (*BADGES.values(), *BEHIND)]
    assert len(set(words)) == len(words)
    assert max(len(word) for word in words) <= WIDEST_WORD


def test_a_run_that_goes_on_on_another_machine_is_no_stopped_one() -> None:
    moved = replace(run(State.STOPPED), moved_to="gpu1")
    assert badge(moved) == MOVED
    assert not needs_attention(moved)


def test_the_legend_explains_every_badge() -> None:
    assert set(legend()) == {*BADGES.values(), *BEHIND}
    assert all(shown.meaning for shown in legend())


def test_a_run_that_mpstui_did_not_start_lives_only_if_something_shows_it() -> None:
    watched = run(State.WATCHED)
    known = [watched, replace(watched, silent=True), replace(watched, ended=1.0)]
    assert [(badge(one).word, one.is_live, one.is_over) for one in known] == [
        ("external", False, False),
        ("silent", False, False),
        ("ended", False, True),
    ]
    assert run(State.WATCHED, Health.TRAINING).is_live


@pytest.mark.parametrize(
    ("snapshot", "word"),
    [
        (run(State.RUNNING, Health.TRAINING), "training"),
        (run(State.RUNNING), "running"),
        (run(State.RUNNING, Health.TRAINING, paused=True), "paused"),
        (run(State.RUNNING, Health.PAUSED), "paused"),
        (run(State.WATCHED, Health.STALLED), "stalled"),
        (run(State.FINISHED, Health.TRAINING), "finished"),
    ],
)
def test_a_running_run_says_what_it_does(snapshot: RunSnapshot, word: str) -> None:
    assert badge(snapshot).word == word


@pytest.mark.parametrize(
    ("snapshot", "needed"),
    [
        (run(State.FAILED), True),
        (run(State.LOST), True),
        (run(State.RUNNING, Health.HUNG), True),
        (run(State.RUNNING, Health.TRAINING), False),
        (run(State.STOPPED), False),
        (run(State.KILLED, exit_=ExitSummary(None, 9, None, "me")), False),
        (run(State.KILLED, exit_=ExitSummary(None, 9, None, None)), True),
    ],
)
def test_only_trouble_nobody_asked_for_needs_attention(snapshot: RunSnapshot, needed: bool) -> None:
    assert needs_attention(snapshot) is needed


def test_a_live_run_whose_loss_is_no_number_needs_a_person_and_no_failure_card() -> None:
    odd = Numbers(loss_is_finite=False)
    for state in (State.UNSUPERVISED, State.WATCHED, State.RUNNING):
        live = replace(run(state, Health.TRAINING), numbers=odd)
        assert (needs_attention(live), needs_explaining(live), badge(live).word) == (True, False, "NaN loss")
        assert not failed_or_stuck(live), "nothing of it has failed: there is nothing to diagnose or to rehearse"
    for other in (run(State.RUNNING, Health.HUNG), run(State.RUNNING, Health.PAUSED), run(State.FINISHED)):
        assert badge(replace(other, numbers=odd)) is badge(other), "where something else is more urgent, or over"
    assert [(count, shown.word) for count, shown in attention([live, run(State.FAILED)])] == [
        (1, "NaN loss"),
        (1, "failed"),
    ]


def test_trouble_is_counted_the_worst_first() -> None:
    runs = [run(State.RUNNING, Health.STALLED), run(State.FAILED), run(State.FINISHED), run(State.FAILED)]
    assert [(count, shown.word) for count, shown in attention(runs)] == [(2, "failed"), (1, "stalled")]


def test_own_files_have_short_names() -> None:
    assert (
        short_paths("from /runs/a/checkpoints/x.pt and /b/x.pt", Path("/runs/a")) == "from checkpoints/x.pt and /b/x.pt"
    )


def test_a_checkpoint_from_before_or_after_the_run_is_another_runs() -> None:
    run = RunSnapshot(run="r", name="r", dir=Path(), state=State.FINISHED, seen=900.0, started=100.0, ended=500.0)
    times = (99.0, 101.0, 540.0, 600.0)
    told = [why_not_its_own(Checkpoint(Path("e1.pt"), 1, time), run) for time in times]
    assert told == ["older than the run", "", "", "newer than the run"]


@pytest.mark.parametrize(
    ("state", "end"), [(State.QUEUED, None), (State.KILLED, ExitSummary(None, None, None, None, unbegun=True))]
)
def test_a_run_that_never_began_has_no_checkpoint(state: State, end: ExitSummary | None) -> None:
    run = RunSnapshot(run="r", name="r", dir=Path(), state=state, seen=900.0, ended=500.0 if end else None, exit=end)
    assert why_not_its_own(Checkpoint(Path("e1.pt"), 1, 300.0), run) == "of another run"
    assert why_not_its_own(Checkpoint(Path("e1.pt"), 1, 300.0), replace(run, started=100.0)) == ""


def test_what_a_checkpoint_says_of_itself_counts_more_than_its_time() -> None:
    run = RunSnapshot(run="r", name="r", dir=Path(), state=State.FINISHED, seen=900.0, started=100.0, ended=500.0)
    assert why_not_its_own(Checkpoint(Path("e1.pt"), 1, 300.0, owner="other"), run) == "of run other"
    assert why_not_its_own(Checkpoint(Path("e1.pt"), 1, 600.0, owner="r"), run) == ""
