"""Every state has a glyph and a word of its own, and trouble is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.model.snapshot import ExitSummary, Health, RunSnapshot, State
from mpstui.core.present.colours import colour_system, ground
from mpstui.core.present.states import (
    HEALTH_FACES,
    STATE_FACES,
    WATCHED_MEANINGS,
    WIDEST_WORD,
    attention,
    face,
    legend,
    needs_attention,
)


def run(
    state: State, health: Health | None = None, exit_: ExitSummary | None = None, paused: bool = False
) -> RunSnapshot:
    return RunSnapshot("r", "r", Path("/r"), state, 0.0, health=health, exit=exit_, paused=paused)


def test_every_state_and_health_has_a_face() -> None:
    assert set(STATE_FACES) == set(State)
    assert set(HEALTH_FACES) == set(Health)
    words = [shown.word for shown in (*STATE_FACES.values(), *HEALTH_FACES.values(), *WATCHED_MEANINGS)]
    assert len(set(words)) == len(words)
    assert max(len(word) for word in words) <= WIDEST_WORD


def test_the_legend_explains_every_face() -> None:
    assert {shown for shown, _ in legend()} == {*STATE_FACES.values(), *HEALTH_FACES.values(), *WATCHED_MEANINGS}


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
    assert face(snapshot).word == word


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


def test_trouble_is_counted_the_worst_first() -> None:
    runs = [run(State.RUNNING, Health.STALLED), run(State.FAILED), run(State.FINISHED), run(State.FAILED)]
    assert [(count, shown.word) for count, shown in attention(runs)] == [(2, "failed"), (1, "stalled")]


@pytest.mark.parametrize(
    ("environ", "choice", "colours"),
    [
        ({"COLORTERM": "truecolor", "TERM": "xterm"}, "auto", "truecolor"),
        ({"TERM": "xterm-256color"}, "auto", "256"),
        ({"TERM": "xterm-ghostty"}, "auto", "16"),
        ({"COLORTERM": "truecolor"}, "16", "16"),
        ({}, "auto", "16"),
    ],
)
def test_a_terminal_has_the_colours_it_says(environ: dict[str, str], choice: str, colours: str) -> None:
    assert colour_system(environ, choice) == colours


@pytest.mark.parametrize(
    ("told", "choice", "found"),
    [
        (None, "auto", "dark"),
        ("15;0", "auto", "dark"),
        ("0;15", "auto", "light"),
        ("0;default;15", "auto", "light"),
        ("0;7", "auto", "light"),
        ("nonsense", "auto", "dark"),
        ("0;15", "dark", "dark"),
        ("15;0", "light", "light"),
    ],
)
def test_the_ground_of_the_terminal(told: str | None, choice: str, found: str) -> None:
    assert ground({} if told is None else {"COLORFGBG": told}, choice) == found
