"""The stop ladder, with a clock that is a number."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.supervisor.ladder import (
    GIVE_UP_SECONDS,
    HEIR_GRACE_SECONDS,
    Ladder,
    Move,
    Rung,
    Sight,
    advance,
    asking_signal,
    begin,
    escalate,
)
from mpstui.wire.records import StopRule

RULE = StopRule(grace_seconds=30.0, saving_cap_seconds=300.0)
RUNS = Sight(leader=True, others=True)
SAVES = Sight(leader=True, others=True, saving=True)
HEIRS = Sight(leader=False, others=True)
NOTHING = Sight(leader=False, others=False)


def start(*, force: bool = False) -> Ladder:
    return begin(RULE, 100.0, force=force)[0]


def test_it_asks_first_and_continues_what_may_be_stopped() -> None:
    assert begin(RULE, 0.0, force=False)[1] == (Move.ASK, Move.CONTINUE)
    assert begin(RULE, 0.0, force=True)[1] == (Move.KILL,)


def test_the_profile_names_the_signal() -> None:
    assert asking_signal(StopRule(signal="int")) == signal.SIGINT
    assert asking_signal(StopRule()) == signal.SIGTERM


def test_it_kills_when_the_grace_is_over_and_not_before() -> None:
    ladder, moves = advance(start(), RUNS, 129.9)
    assert (ladder.rung, moves) == (Rung.ASKED, ())
    ladder, moves = advance(ladder, RUNS, 130.0)
    assert (ladder.rung, moves) == (Rung.KILLING, (Move.KILL,))


def test_saving_extends_the_grace_up_to_its_cap() -> None:
    assert advance(start(), SAVES, 399.9)[0].rung is Rung.ASKED
    assert advance(start(), SAVES, 400.0)[1] == (Move.KILL,)
    assert advance(start(), SAVES._replace(saving=False), 140.0)[1] == (Move.KILL,)


def test_heirs_get_the_time_that_workers_need_to_notice() -> None:
    ladder, _ = advance(start(), HEIRS, 101.0)
    assert advance(ladder, HEIRS, 101.0 + HEIR_GRACE_SECONDS - 0.1)[1] == ()
    assert advance(ladder, HEIRS, 101.0 + HEIR_GRACE_SECONDS)[1] == (Move.KILL,)


def test_it_kills_again_and_gives_up_after_a_while() -> None:
    ladder = start(force=True)
    assert advance(ladder, RUNS, 100.5)[1] == ()
    ladder, moves = advance(ladder, RUNS, 101.0)
    assert moves == (Move.KILL,)
    ladder, moves = advance(ladder, RUNS, 100.0 + GIVE_UP_SECONDS)
    assert (ladder.rung, moves) == (Rung.STUCK, ())
    assert advance(ladder, NOTHING, 500.0)[0].rung is Rung.GONE
    assert escalate(ladder, 200.0)[1] == (Move.KILL,)


def test_pressing_again_changes_a_killing_ladder_in_nothing() -> None:
    ladder = start(force=True)
    assert escalate(ladder, 105.0) == (ladder, ())


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.sampled_from([RUNS, SAVES, HEIRS, NOTHING])), max_size=60))
def test_it_only_climbs_and_always_ends(looks: list[tuple[float, Sight]]) -> None:
    ladder, now, order = start(), 100.0, [Rung.ASKED, Rung.KILLING, Rung.STUCK, Rung.GONE]
    for wait, sight in looks:
        now += wait
        after, moves = advance(ladder, sight, now)
        assert order.index(after.rung) >= order.index(ladder.rung)
        assert Move.ASK not in moves
        ladder = after
    for _ in range(1000):
        now += 1.0
        ladder, _ = advance(ladder, RUNS, now)
    assert ladder.rung in (Rung.STUCK, Rung.GONE)


@pytest.mark.parametrize("sight", [RUNS, SAVES, HEIRS])
def test_gone_needs_nothing_left(sight: Sight) -> None:
    assert advance(start(), sight, 101.0)[0].rung is Rung.ASKED
    assert advance(start(), NOTHING, 101.0)[0].over
