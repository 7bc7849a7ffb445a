"""The stop sequence, with a clock that is a number."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.supervisor.stop_sequence import (
    GIVE_UP_SECONDS,
    HEIR_GRACE_SECONDS,
    Move,
    Sight,
    StopSequence,
    StopStep,
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


def start(*, force: bool = False) -> StopSequence:
    return begin(RULE, 100.0, force=force)[0]


def test_it_asks_first_and_continues_what_may_be_stopped() -> None:
    assert begin(RULE, 0.0, force=False)[1] == (Move.ASK, Move.CONTINUE)
    assert begin(RULE, 0.0, force=True)[1] == (Move.KILL,)


def test_the_profile_names_the_signal() -> None:
    assert asking_signal(StopRule(signal="int")) == signal.SIGINT
    assert asking_signal(StopRule()) == signal.SIGTERM


def test_it_kills_when_the_grace_is_over_and_not_before() -> None:
    sequence, moves = advance(start(), RUNS, 129.9)
    assert (sequence.step, moves) == (StopStep.ASKED, ())
    sequence, moves = advance(sequence, RUNS, 130.0)
    assert (sequence.step, moves) == (StopStep.KILLING, (Move.KILL,))


def test_saving_extends_the_grace_up_to_its_cap() -> None:
    assert advance(start(), SAVES, 399.9)[0].step is StopStep.ASKED
    assert advance(start(), SAVES, 400.0)[1] == (Move.KILL,)
    assert advance(start(), SAVES._replace(saving=False), 140.0)[1] == (Move.KILL,)


def test_heirs_get_the_time_that_workers_need_to_notice() -> None:
    sequence, _ = advance(start(), HEIRS, 101.0)
    assert advance(sequence, HEIRS, 101.0 + HEIR_GRACE_SECONDS - 0.1)[1] == ()
    assert advance(sequence, HEIRS, 101.0 + HEIR_GRACE_SECONDS)[1] == (Move.KILL,)


def test_it_kills_again_and_gives_up_after_a_while() -> None:
    sequence = start(force=True)
    assert advance(sequence, RUNS, 100.5)[1] == ()
    sequence, moves = advance(sequence, RUNS, 101.0)
    assert moves == (Move.KILL,)
    sequence, moves = advance(sequence, RUNS, 100.0 + GIVE_UP_SECONDS)
    assert (sequence.step, moves) == (StopStep.STUCK, ())
    assert advance(sequence, NOTHING, 500.0)[0].step is StopStep.GONE
    assert escalate(sequence, 200.0)[1] == (Move.KILL,)


def test_asking_again_changes_nothing_once_it_kills() -> None:
    sequence = start(force=True)
    assert escalate(sequence, 105.0) == (sequence, ())


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.sampled_from([RUNS, SAVES, HEIRS, NOTHING])), max_size=60))
def test_it_only_climbs_and_always_ends(looks: list[tuple[float, Sight]]) -> None:
    sequence, now, order = start(), 100.0, [StopStep.ASKED, StopStep.KILLING, StopStep.STUCK, StopStep.GONE]
    for wait, sight in looks:
        now += wait
        after, moves = advance(sequence, sight, now)
        assert order.index(after.step) >= order.index(sequence.step)
        assert Move.ASK not in moves
        sequence = after
    for _ in range(1000):
        now += 1.0
        sequence, _ = advance(sequence, RUNS, now)
    assert sequence.step in (StopStep.STUCK, StopStep.GONE)


@pytest.mark.parametrize("sight", [RUNS, SAVES, HEIRS])
def test_gone_needs_nothing_left(sight: Sight) -> None:
    assert advance(start(), sight, 101.0)[0].step is StopStep.ASKED
    assert advance(start(), NOTHING, 101.0)[0].over
