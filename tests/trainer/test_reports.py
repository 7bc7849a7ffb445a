"""What a training says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpstui.agent.reporter import Reporter
from mpstui.wire.rundir import RunDir
from tests.trainer.building import points, train
from trainer.progress import Progress
from trainer.reports import Reports
from trainer.startup import Startup
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


def test_epochs_of_a_tenth_of_a_second_have_a_speed_too_without_what_lies_between_them(tmp_path: Path) -> None:
    RunDir(tmp_path).attempt(1).path.mkdir(parents=True)
    reporter = Reporter.from_environment({"MPSTUI_RUN_DIR": str(tmp_path), "MPSTUI_ATTEMPT": "1"})
    now = [0.0]
    reports = Reports(reporter, epochs=8, steps_per_epoch=2, clock=lambda: now[0])
    progress = Progress()
    for _ in range(8):
        for _ in range(2):
            progress.step += 1
            reports.step_done(progress)
        now[0] += 0.125
        reports.report(progress, Reading(2 * 16, {"loss": 1.0}), 0.1)
        now[0] += 3.0  # an evaluation
        reports.restart_clock()
    assert points(tmp_path, "steps_per_second") == [(8, pytest.approx(16.0)), (16, pytest.approx(16.0))]
    assert points(tmp_path, "samples_per_second") == [(8, pytest.approx(256.0)), (16, pytest.approx(256.0))]


def test_a_start_tells_what_it_is_doing_and_in_the_end_what_each_took(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.attempt(1).path.mkdir(parents=True)
    now = [0.0]
    startup = Startup({"MPSTUI_RUN_DIR": str(tmp_path), "MPSTUI_ATTEMPT": "1"}, lambda: now[0])
    for doing, took in (("loading torch", 1.6), ("reading the data", 0.01), ("first step", 2.0)):
        startup.begin(doing)
        beat = json.loads(run.attempt(1).heartbeat().read_text())
        assert (beat["phase"], beat["doing"]) == ("setup", doing)
        now[0] += took
    assert startup.told() == "the first step is done after 3.6 s: loading torch 1.6, first step 2.0"
    assert startup.seconds == pytest.approx({"loading torch": 1.6, "reading the data": 0.01, "first step": 2.0})


def test_a_training_leaves_what_its_start_took_as_an_event(tmp_path: Path) -> None:
    train("--limit", "32", "--epochs", "1", run_dir=tmp_path)
    lines = [json.loads(line) for line in RunDir(tmp_path).events.read_text().splitlines()]
    (told,) = (line for line in lines if line["event"] == "first_step")
    assert list(told["seconds"]) == ["reading the data", "building the model", "first step"]
    assert "doing" not in json.loads(RunDir(tmp_path).attempt(1).heartbeat().read_text())
