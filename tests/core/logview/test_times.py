"""When a line was printed: its own stamp, else when its step was measured, else unknown."""

from __future__ import annotations

import time
from math import nan
from pathlib import Path

import pytest

from mpstui.core.logview.document import LogDocument
from mpstui.core.logview.line import LogLine
from mpstui.core.logview.steps import LogSteps
from mpstui.core.logview.times import LogTimes, Stamp, own_stamp
from mpstui.core.model.snapshot import SeriesView
from mpstui.wire import storage
from mpstui.wire.records import ExitRecord, LaunchRecord

NOON = time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1))


def curve(steps: list[float], times: list[float]) -> SeriesView:
    values = [1.0] * len(steps)
    return SeriesView("loss", "step", steps, values, values, values, values, len(steps), times=times)


@pytest.mark.parametrize(
    ("text", "clock", "day"),
    [
        ("2026-11-20 10:35:12,123 INFO train: step 3 loss 0.5", "10:35:12", "2026-11-20"),
        ("[2026-11-20 10:35:12] step 3", "10:35:12", "2026-11-20"),
        ("[2026/11/20 10:35:12] epoch 3", "10:35:12", "2026-11-20"),
        ("9:35:12 - step 3 loss 0.5", "09:35:12", ""),
        ('{"timestamp": "2026-11-20T10:35:12.5Z", "loss": 0.5}', "10:35:12", "2026-11-20"),
        (f'{{"loss": 0.5, "_timestamp": {NOON:.0f}.25}}', "12:00:00", "2026-11-20"),
        (f"[{NOON:.0f}.123] step 3", "12:00:00", "2026-11-20"),
        ("step 3 loss 0.5 eta 10:35:12", None, ""),
        ("epoch 3: 100%|####| 9/9 [1:00:12<00:00, 2.3it/s]", None, ""),
        ("step 3 took 10:35:12", None, ""),
        ("", None, ""),
    ],
)
def test_a_stamp_is_what_stands_before_the_message(text: str, clock: str | None, day: str) -> None:
    stamp = own_stamp(LogLine(1, 0, len(text), text))
    assert stamp == (Stamp(clock, day) if clock is not None else None)


def times_of(folder: Path, lines: list[str], began: float = 1.0, ended: float | None = None) -> list[str]:
    """The times of a log's lines; step 10 was measured at noon, 20 ten seconds later, 30 nobody knows when, 40 late."""
    path = folder / "output.log"
    storage.write_json(folder / "launch.json", LaunchRecord(1, began, ["python"], "/", "cpu"))
    if ended is not None:
        storage.write_json(folder / "exit.json", ExitRecord(1, ended))
    path.write_text("".join(f"{line}\n" for line in lines))
    document = LogDocument(path)
    document.refresh()
    times = LogTimes(document, LogSteps(document))
    series = [curve([10, 20, 30, 40, 50], [NOON, NOON + 10, nan, NOON + 900, NOON + 2000])]
    found = [times.of(line, series) for line in document.window(0, 99)]
    return [stamp.clock if stamp is not None else "" for stamp in found]


def test_a_line_has_the_time_of_the_step_that_it_names(tmp_path: Path) -> None:
    steps = (9, 10, 15, 20, 30, 40, 45, 51)
    lines = ["loading data", *(f"step {step} loss 0.5" for step in steps), "saved"]
    clocks = ["", "", "12:00:00", "~12:00", "12:00:10", "", "12:15:00", "", "", ""]
    assert times_of(tmp_path, lines) == clocks


def test_times_of_other_attempts_are_not_those_of_these_lines(tmp_path: Path) -> None:
    lines = [f"step {step} loss 0.5" for step in (10, 20, 40)]
    assert times_of(tmp_path, lines, began=NOON + 60) == ["", "", "12:15:00"]
    assert times_of(tmp_path, lines, ended=NOON + 60) == ["12:00:00", "12:00:10", ""]


def test_a_log_with_stamps_is_told_by_these_alone(tmp_path: Path) -> None:
    lines = ["12:30:00 | step 10 loss 0.5", "step 20 loss 0.5", "12:31:00 | done"]
    assert times_of(tmp_path, lines) == ["12:30:00", "", "12:31:00"]
