"""How long a run took: its attempts together, without what lay between them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpstui.core.runs.comparison import columns
from mpstui.core.runs.lasting import lasted
from mpstui.core.runs.listing import BUILT_IN
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
    assert (seen.attempt, seen.idle, lasted(seen, seen.ended)) == (newest, 29_940.0, 100.0)
    assert BUILT_IN["took"].value(seen, NOW) == 100.0
    assert next(one.values for one in columns([seen], "loss") if one.name == "took") == (100.0,)
