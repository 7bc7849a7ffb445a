"""The lists of one run: whose checkpoints they are, and events with what differs in view."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mpstui.core.runs.snapshot import Checkpoint, RunEvent
from mpstui.ui.widgets.tables import checkpoint_rows, event_rows

from . import fakes

RUN = replace(fakes.finished(), started=1000.0, ended=2000.0)


def test_checkpoints_of_other_runs_in_the_same_folder_are_marked() -> None:
    files = tuple(Checkpoint(Path(f"e{time:.0f}.pt"), 1, time) for time in (3000.0, 1500.0, 500.0))
    newer, own, older = (row.text for row in checkpoint_rows(replace(RUN, checkpoints=files), 80))
    assert "e3000.pt  newer than the run" in newer
    assert "e500.pt  older than the run" in older
    assert "than the run" not in own


def test_the_step_of_a_saved_checkpoint_is_in_view() -> None:
    path = "checkpoints/cifar/step-00000160.pt"
    event = RunEvent(1500.0, 1, "checkpoint", f"saved {path}", {"path": path, "step": 160})
    (line,) = event_rows(replace(RUN, events=(event,)), 50)
    assert line.text.endswith("saved step-00000160.pt")
