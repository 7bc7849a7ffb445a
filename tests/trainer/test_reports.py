"""What a training says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.agent.reporter import Reporter
from mpstui.wire.rundir import RunDir
from tests.trainer.building import points
from trainer.progress import Progress
from trainer.reports import Reports
from trainer.step import Reading


def test_samples_a_second_are_those_of_all_ranks(tmp_path: Path) -> None:
    RunDir(tmp_path).attempt(1).path.mkdir(parents=True)
    reporter = Reporter.from_environment({"MPSTUI_RUN_DIR": str(tmp_path), "MPSTUI_ATTEMPT": "1"})
    now = [0.0]
    reports = Reports(reporter, epochs=1, steps_per_epoch=9, ranks=2, clock=lambda: now[0])
    progress = Progress(step=4)
    for _ in range(4):
        reports.step_done(progress)
    now[0] = 2.0
    reports.report(progress, Reading(4 * 16, {"loss": 1.0}), 0.1)
    assert points(tmp_path, "steps_per_second") == [(4, 2.0)]
    assert points(tmp_path, "samples_per_second") == [(4, pytest.approx(64.0))]
