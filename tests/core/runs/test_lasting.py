"""How long a run took: its attempts together, without what lay between them; and how long the rest may take."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mpstui.core.runs.comparison import columns
from mpstui.core.runs.listing import BUILT_IN
from mpstui.core.stakes import lasted_seconds
from mpstui.wire import storage
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_home, make_monitor


def begun(run: RunBuilder, attempt: int, time: float, **fields: object) -> None:
    """A launch record of that time."""
    path = run.launch(attempt).run.attempt(attempt).launch
    storage.write_json(path, {**json.loads(path.read_text()), "time": time, **fields})


@pytest.mark.parametrize("rehearsed", [False, True])
def test_the_night_before_a_restart_is_no_part_of_it(rehearsed: bool, tmp_path: Path) -> None:
    home = make_home(tmp_path)
    run = RunBuilder(home, "train", NOW)
    begun(run, 1, NOW)
    run.exit(1, ended=NOW + 60.0, code=1)
    newest = 3 if rehearsed else 2
    if rehearsed:
        begun(run, 2, NOW + 1000.0, rehearsal={"of": 1})
        run.exit(2, ended=NOW + 1030.0, code=0)
    begun(run, newest, NOW + 30_000.0)
    run.exit(newest, ended=NOW + 30_040.0, code=0).status("done", newest)
    (seen,) = make_monitor(home, FakeClock(NOW + 40_000.0)).refresh()
    assert (seen.attempt, seen.idle, seen.lasted(seen.ended)) == (newest, 29_940.0, 100.0)
    assert (BUILT_IN["took"].value(seen, NOW), lasted_seconds(seen)) == (100.0, 100.0)
    assert next(one.values for one in columns([seen], "loss") if one.name == "took") == (100.0,)


@pytest.mark.parametrize(("since_the_line", "left"), [(0.0, 9 * 20.0), (12.0, 9 * 20.0 - 12.0), (90.0, 8 * 20.0)])
def test_the_first_look_at_a_run_counts_neither_its_start_nor_the_epoch_that_has_begun(
    since_the_line: float, left: float, tmp_path: Path
) -> None:
    """It loads torch and data for a minute, then an epoch takes 20 seconds; its lines have no times yet."""
    clock = FakeClock(NOW + 80.0 + since_the_line)
    home = make_home(tmp_path)
    run = RunBuilder(home, "train", NOW)
    begun(run, 1, NOW)
    run.status("running", trainer=[77, 5]).hold().output("epoch 1/10 train_loss=0.5 val_loss=0.6\n")
    lock = run.run.attempt(1).rank_lock(0)
    lock.touch()
    os.utime(lock, (NOW + 60.0, NOW + 60.0))
    os.utime(run.run.attempt(1).output, (NOW + 80.0, NOW + 80.0))
    run.beat(step=40, loss=0.5, loss_seen="backward", steps_per_second=2.0, time=clock.wall)
    (seen,) = make_monitor(home, clock).refresh()
    assert (seen.numbers.epoch, seen.numbers.steps) == (1, None)
    assert seen.numbers.eta_seconds == pytest.approx(left)
    run.release()
