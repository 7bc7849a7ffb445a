"""The panels of a run: what each depends on, whose checkpoints they list, and that none of them touches a file."""

from __future__ import annotations

import builtins
import os
from dataclasses import replace
from itertools import permutations
from math import nan
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.model.snapshot import Checkpoint, RunEvent, RunSnapshot, SeriesView
from mpstui.ui.charting.data import chart_data
from mpstui.ui.panels import ListPanel, RunFacts, panels
from mpstui.ui.panels.checkpoints import checkpoint_rows
from mpstui.ui.panels.events import event_rows
from mpstui.ui.panels.metrics import MetricTable
from mpstui.ui.rows import Row
from mpstui.ui.screens.run import RunScreen
from mpstui.ui.screens.run_body import Progress, RunHeader
from mpstui.ui.widgets.peek import peek
from mpstui.ui.widgets.run_row import run_row
from mpstui.wire.heartbeat import MemoryReading
from tests.snapshots import changed

from . import fakes
from .driving import Driver, drive
from .test_charting import series

RUN = replace(fakes.finished(), started=1000.0, ended=2000.0)


def metric_rows(facts: RunFacts, width: int, height: int = 30) -> list[Row]:
    table = MetricTable()
    table.facts = facts
    return table.rows(width, height)


def test_checkpoints_of_other_runs_in_the_same_folder_are_marked() -> None:
    files = tuple(Checkpoint(Path(f"e{time:.0f}.pt"), 1, time) for time in (3000.0, 1500.0, 500.0))
    newer, own, older = (row.text for row in checkpoint_rows(RunFacts(snapshot=replace(RUN, checkpoints=files)), 80))
    assert "e3000.pt  newer than the run" in newer
    assert "e500.pt  older than the run" in older
    assert "than the run" not in own


def test_the_step_of_a_saved_checkpoint_is_in_view() -> None:
    path = "checkpoints/cifar/step-00000160.pt"
    event = RunEvent(1500.0, 1, "checkpoint", f"saved {path}", {"path": path, "step": 160})
    (line,) = event_rows(RunFacts(snapshot=replace(RUN, events=(event,))), 50)
    assert line.text.endswith("saved step-00000160.pt at step 160")


def test_a_curve_of_the_agent_is_not_told_as_the_few_losses_that_are_printed() -> None:
    """The newest loss is the one printed last, fifty steps ago; the curve is of all steps."""
    told = {"loss": "output.log", "step": "agent"}
    both = {"loss": series([4.0] * 81 + [3.697]), "loss (output.log)": series([2.3, 2.6])}
    printed = changed(RUN, series=both, loss=2.6, told_by=told)
    rows = [row.text for row in metric_rows(RunFacts(snapshot=printed), 80)]
    (ours,) = (row for row in rows if "loss · agent" in row)
    assert "3.697" in ours
    assert not any("loss · output.log" in row for row in rows)
    assert chart_data(printed, "loss").now == ""
    assert chart_data(changed(printed, series={"loss": both["loss (output.log)"]}), "loss").now == "2.600"


def test_lists_of_a_picture_without_them_do_not_say_that_there_is_nothing() -> None:
    bare = changed(RUN, series={}, metrics={}, loss=None, lr=None, checkpoints=(), checkpoint=None, events=())
    lists = (metric_rows, checkpoint_rows, event_rows)
    told = [rows(RunFacts(snapshot=bare), 80)[0].text for rows in lists]
    assert told[0] == " this run reported no metrics"
    assert ["yet" in text for text in told[1:]] == [True, True]
    brief = [rows(RunFacts(snapshot=replace(bare, brief=True)), 80)[0].text for rows in lists]
    assert [("being read" in text, "yet" in text) for text in brief] == [(True, False)] * 3
    loading = [rows(RunFacts(snapshot=replace(bare, loading=True)), 80)[0].text for rows in lists]
    assert ["being read" in text for text in loading] == [True, False, False]


def test_a_metric_that_was_never_finite_is_not_unknown() -> None:
    gaps = SeriesView("loss", "step", [1.0], [nan], [nan], [nan], [nan], 3)
    run = changed(RUN, series={"loss": gaps}, metrics={}, lr=None)
    told = metric_rows(RunFacts(snapshot=run), 80)[1].text.split()
    assert told == ["loss", "NaN/inf"]


@pytest.mark.parametrize("name", [name for name, panel in panels().items() if panel.widget().drawn_from])
def test_a_panel_depends_on_nothing_but_what_it_says_it_is_drawn_from(name: str) -> None:
    panel = panels()[name].widget()

    def drawn(snapshot: RunSnapshot) -> list[Row]:
        panel.facts = RunFacts(snapshot=snapshot)
        return panel.rows_of(panel.facts, 80) if isinstance(panel, ListPanel) else panel.rows(80, 30)

    assert panel.drawn_from is not None
    kept = [field.removeprefix("snapshot.") for field in panel.drawn_from if field.startswith("snapshot.")]
    for one, other in permutations(fakes.several(), 2):
        values: dict[str, Any] = {field: getattr(one, field) for field in kept if "." not in field}
        numbers = {field.removeprefix("numbers."): attrgetter(field)(one) for field in kept if "." in field}
        mixed = replace(other, seen=one.seen, numbers=replace(other.numbers, **numbers), **values)
        assert drawn(one) == drawn(changed(mixed, beat=one.numbers.beat))


def test_drawing_touches_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    widgets = [*(panel.widget() for panel in panels().values()), RunHeader(), Progress()]

    def touched(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"drawn from a file: {args}")

    for module, name in ((os, "stat"), (os, "open"), (os, "scandir"), (os, "listdir"), (builtins, "open")):
        monkeypatch.setattr(module, name, touched)
    for run in fakes.several():
        facts = RunFacts(snapshot=run)
        for widget in widgets:
            widget.facts = facts
            assert (widget.rows_of(facts, 80) if isinstance(widget, ListPanel) else widget.rows(80, 30)) is not None
        run_row(run, 120)
        peek(run, 120, 20)


def test_a_list_says_how_many_of_its_lines_are_below_those_in_view() -> None:
    events = tuple(RunEvent(fakes.NOW - 100 + number, 1, "note", f"event_{number:02}") for number in range(40))
    run = replace(fakes.running(), events=events)

    async def play(driver: Driver) -> None:
        panel = driver.app.screen.query_one("#events", ListPanel)
        await driver.until(lambda: bool(panel.status()))
        shown = panel.rows_size[1]
        assert panel.status()[0].text == f"… {40 - shown} more"
        await driver.sees(f"… {40 - shown} more")
        panel.scroll_rows(2)
        assert panel.status()[0].text == f"… {38 - shown} more"
        panel.to_edge(1)
        assert panel.status() == ()
        assert "event_00" in panel.rows(*panel.rows_size)[-1].text
        assert len(panel.rows(*panel.rows_size)) == panel.rows_size[1]

    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


def test_a_log_is_as_wide_as_the_window_where_other_panels_would_be_blank() -> None:
    size = (200, 60)
    quiet = replace(fakes.finished(), checkpoints=(), events=())
    quiet = changed(quiet, memory=MemoryReading())

    async def play(driver: Driver) -> None:
        screen = driver.app.screen
        assert isinstance(screen, RunScreen)
        body, log = screen.body, screen.body.log_pane
        await driver.until(lambda: log.region.width == size[0])
        right = body.query_one("#right").region
        assert log.region.y == right.bottom == body.chart.region.bottom
        assert log.region.bottom == body.region.bottom
        assert body.chart.region.right < right.x
        await driver.press("1", "left")  # a read-out moves nothing
        await driver.sees("at step")
        assert body.query_one("#right").region == right
        await driver.press("z")
        await driver.until(lambda: body.chart.region == body.region)
        await driver.press("2")
        await driver.until(lambda: log.region == body.region)

    drive(fakes.world((quiet,)), play, size=size, opening=quiet.run)


def test_a_log_stays_beside_panels_that_have_much_to_say() -> None:
    run = fakes.running()

    async def play(driver: Driver) -> None:
        screen = driver.app.screen
        assert isinstance(screen, RunScreen)
        body, log = screen.body, screen.body.log_pane
        await driver.until(lambda: screen.snapshot is not None and log.region.width > 0)
        await driver.sees("83 % busy")
        right = body.query_one("#right").region
        assert log.region.right < right.x
        assert right.height == body.region.height
        assert body.chart.region.width == log.region.width

    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


def test_the_event_of_a_restart_names_its_checkpoint_without_its_folder() -> None:
    path = "/home/ada/work/a/long/way/to/checkpoints/epoch-2.pt"
    text = f"attempt 2 started, from {path} (the newer epoch-3.pt holds NaN)"
    events = (
        RunEvent(1.0, 1, "launched", "attempt 1 started", {"checkpoint": None}),
        RunEvent(2.0, 2, "restart", text, {"checkpoint": path, "not_finite": ["epoch-3.pt"]}),
    )
    rows = event_rows(RunFacts(snapshot=replace(fakes.running(), events=events)), 100)
    assert "attempt 2 started, from epoch-2.pt (the newer epoch-3.pt holds NaN)" in rows[0].text
