"""A run that is being moved: what it is meanwhile, by the lock of whoever moves it, and not without."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.actions import ACTIONS, allowed
from mpstui.core.model.home import Home
from mpstui.core.model.moves import Moving
from mpstui.core.model.snapshot import State
from mpstui.core.present import BADGES, badge
from mpstui.core.runs.report import as_json
from mpstui.core.runs.state import RunWitnesses, StateVerdict, while_moved
from mpstui.core.runs.summaries import Summaries
from mpstui.wire import liveness, storage
from mpstui.wire.moves import Leaving, Move, MoveStep
from mpstui.wire.rundir import RunDir
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_monitor

STEPS = [value for name, value in vars(MoveStep).items() if name.isupper()]


def under_way(run: RunDir, step: str) -> int:
    """The lock of whoever moves it."""
    lock = liveness.acquire(run.moving_lock)
    assert lock is not None
    storage.write_json(run.moving, Leaving("gpu1", step, NOW)._asdict())
    return lock


@pytest.mark.parametrize("step", STEPS)
def test_each_step_has_words_of_its_own(step: str) -> None:
    told = {Moving("gpu1", one, NOW).sentence for one in STEPS}
    assert len(told) == len(STEPS)
    assert f"to gpu1: {step}" not in told, "a word, not its name"


@pytest.mark.parametrize(
    ("step", "before", "state"),
    [
        (MoveStep.CODE, State.RUNNING, State.RUNNING),
        (MoveStep.CODE, State.FAILED, State.FAILED),
        (MoveStep.SAVE, State.RUNNING, State.RUNNING),
        (MoveStep.END, State.STOPPING, State.STOPPING),
        (MoveStep.END, State.STOPPED, State.MOVING),
        (MoveStep.LIST, State.STOPPING, State.MOVING),
        (MoveStep.SEND, State.STOPPED, State.MOVING),
        (MoveStep.STAY, State.STOPPING, State.STOPPING),
        (MoveStep.STAY, State.STOPPED, State.MOVING),
        (MoveStep.STAY, State.STARTING, State.STARTING),
        (MoveStep.ARRIVE, State.STOPPED, State.STARTING),
        (MoveStep.ARRIVE, State.QUEUED, State.QUEUED),
    ],
)
def test_an_end_for_a_move_is_none(step: str, before: State, state: State) -> None:
    seen = RunWitnesses(moving=Moving("gpu1", step, NOW))
    assert while_moved(seen, StateVerdict(before, "as it is")).state is state


def test_what_still_runs_is_left_to_the_other_witnesses() -> None:
    stopped, leaving = StateVerdict(State.STOPPED, ""), Moving("gpu1", MoveStep.SEND, NOW)
    assert while_moved(RunWitnesses(moving=leaving, run_held=True), stopped).state is State.STOPPED


def test_a_list_that_is_open_and_one_that_is_opened_show_the_move_and_its_end(home: Home, tmp_path: Path) -> None:
    run = RunBuilder(home).status("ended").launch().exit(code=0, action="stop", requested_by="ada").run
    clock, path = FakeClock(), tmp_path / "kept"
    open_list = make_monitor(home, clock, kept=Summaries(path))
    for _ in range(20):  # read to its end, and kept
        assert [one.state for one in open_list.refresh()] == [State.STOPPED]

    lock = under_way(run, MoveStep.SEND)
    for monitor in (open_list, make_monitor(home, clock, kept=Summaries(path))):
        clock.advance(60.0)
        (seen,) = monitor.refresh()
        assert (seen.state, seen.moving, seen.reason) == (
            State.MOVING,
            Moving("gpu1", "send", NOW),
            "it is being moved to gpu1: its files are sent",
        )
        assert badge(seen) is BADGES[State.MOVING]
        assert as_json(seen, full=False)["moving"] == {"to": "gpu1", "step": "send", "since": NOW}
        for action in ACTIONS:
            assert allowed(seen, None, action).why == "it is being moved to gpu1: its files are sent", action.id
    liveness.release(lock)  # whoever moved it has died: the record that is left means nothing
    clock.advance(60.0)
    (seen,) = open_list.refresh()
    assert (seen.state, seen.moving) == (State.STOPPED, None)


def test_a_run_that_was_moved_while_nobody_looked_is_not_shown_as_it_was_kept(home: Home, tmp_path: Path) -> None:
    run = RunBuilder(home).status("ended").launch().exit(code=0, action="stop", requested_by="ada").run
    first = make_monitor(home, FakeClock(), kept=Summaries(tmp_path / "kept"))
    for _ in range(20):  # read to its end, and kept
        assert [one.state for one in first.refresh()] == [State.STOPPED]

    storage.write_json(run.moved, Move("t", "gpu1", NOW, 1)._asdict())
    (seen,) = make_monitor(home, FakeClock(), kept=Summaries(tmp_path / "kept")).refresh()
    assert seen.moved_to == "gpu1"
