"""The table of metrics: it chooses what the chart draws, folds and filters, and uses the room there is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpstui.core.model.snapshot import RunSnapshot
from mpstui.ui.panels import RunFacts
from mpstui.ui.panels.metrics import MetricTable, metric_rows
from mpstui.ui.screens.run import RunScreen
from mpstui.ui.screens.run_body import shared

from . import fakes
from .driving import Driver, drive


def of_many(groups: int = 1, others: int = 12) -> RunSnapshot:
    names = ["loss", "val_loss", "lr", *(f"aux_{number:02}" for number in range(others))]
    names += [f"val_selection_{group}_{number:02}" for group in "abc"[:groups] for number in range(30)]
    series = {
        name: replace(fakes.curve(points=40, seed=place), name=name, evaluation=name == "val_loss")
        for place, name in enumerate(names)
    }
    return replace(fakes.running(), series=series)


def screen_of(driver: Driver) -> RunScreen:
    screen = driver.app.screen
    assert isinstance(screen, RunScreen)
    return screen


def lines_of(snapshot: RunSnapshot, width: int, height: int) -> list[str]:
    table = MetricTable()
    table.facts = RunFacts(snapshot=snapshot)
    return [row.text.rstrip() for row in table.rows(width, height)]


def test_the_table_tells_the_best_value_with_its_step_and_the_better_direction() -> None:
    train, accuracy = fakes.curve(), fakes.curve("val_accuracy", start=0.1, floor=0.9, evaluation=True)
    series = {
        "loss": replace(train, last=0.5, minimum=0.25, minimum_at=12_345.0),
        "val_accuracy": replace(accuracy, last=0.8, maximum=0.875, maximum_at=1_234_567.0),
        "lr": replace(train, name="lr", last=0.001),
    }
    run = replace(fakes.running(), series=series)
    head, *lines = lines_of(run, 80, 10)
    assert head.split() == ["metric", "last", "best", "at", "step"]
    told = {line.split()[0]: line.split()[1:4] for line in lines}
    assert told["loss"] == ["0.5000", "▼0.2500", "12,345"]
    assert told["val_accuracy"] == ["0.8000", "▲0.8750", "1,234,567"]
    assert told["lr"][0] == "0.001000"
    assert not {"▼", "▲"} & set("".join(told["lr"]))  # nobody knows which way is better
    narrow = lines_of(run, 34, 10)
    assert all(len(line) <= 34 for line in narrow)


def test_a_table_too_short_folds_and_one_that_is_wide_goes_on_beside() -> None:
    run = of_many()
    assert len(lines_of(run, 60, 60)) == 47
    short = lines_of(run, 60, 20)
    assert len(short) == 18
    assert short[-1].split() == ["val_selection_a_*", "30", "▸"]
    wide = lines_of(run, 190, 20)
    assert "▸" not in "".join(wide)
    assert sum(line.count("val_selection_") for line in wide) == 30


@pytest.mark.parametrize("height", [12, 30, 34, 54, 80])
def test_a_column_hides_nothing_while_lines_are_blank(height: int) -> None:
    wishes = [(46, 46), (14, 24), (3, 3), (7, 40)]
    given = shared(height, wishes)
    assert sum(given) == height
    assert all(lines <= whole for lines, (_, whole) in zip(given[:-1], wishes[:-1], strict=True))
    if any(lines < modest for lines, (modest, _) in zip(given, wishes, strict=True)):
        assert given[-1] <= 7
    assert shared(54, [(5, 5), (14, 24), (3, 3), (6, 6)]) == [5, 24, 3, 22]


def test_the_chart_follows_the_table_and_the_table_the_chart() -> None:
    run = of_many(others=2)

    async def play(driver: Driver) -> None:
        await driver.press("3")
        await driver.sees("val_selection_a_*")
        screen = screen_of(driver)
        await driver.press("down")
        assert screen.body.chart.metric == "loss"  # val_loss is drawn over its training loss
        await driver.press("down")
        assert screen.body.chart.metric == "aux_00"
        await driver.press("m")
        assert screen.body.chart.metric == "aux_01"
        assert "aux_01" in _lit(screen.body.metrics)
        await driver.press("M", "M")
        assert screen.body.chart.metric == "loss"
        await driver.press("end", "enter")
        await driver.sees("▾")
        await driver.press("down", "down")
        assert screen.body.chart.metric == "val_selection_a_01"
        await driver.press("enter")
        assert screen.panel == "chart"

    drive(fakes.world((run,)), play, size=(80, 24), opening=run.run)


def test_a_burst_of_keys_leaves_table_and_chart_at_the_same_metric() -> None:
    run = of_many(groups=0, others=5)

    async def play(driver: Driver) -> None:
        await driver.sees("aux_03")
        screen = screen_of(driver)
        await driver.press("3")
        screen.action_scroll(1)
        screen.action_scroll(1)
        screen.action_chart("left")  # before the table's message was handled
        await driver.until(lambda: screen.body.chart.metric == "aux_00")
        assert "aux_00" in _lit(screen.body.metrics)

    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


def _lit(table: MetricTable) -> str:
    return next(row.text for row in table.rows(*table.rows_size) if row.base == "selected")


def test_the_mouse_chooses_a_metric_and_a_second_click_enlarges_its_chart() -> None:
    run = of_many(groups=0, others=5)

    async def play(driver: Driver) -> None:
        await driver.sees("aux_03")
        screen = screen_of(driver)
        table = screen.body.metrics
        place = next(y for y, line in enumerate(driver.lines) if "aux_03" in line)
        await driver.pilot.click(table, offset=(4, place - table.region.y))
        await driver.until(lambda: screen.body.chart.metric == "aux_03")
        await driver.pilot.click(table, offset=(4, place - table.region.y))
        await driver.until(lambda: screen.panel == "chart" and screen.zoomed)

    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


def test_a_filter_shows_what_matches_says_so_and_esc_takes_it_back_first() -> None:
    run = of_many()

    async def play(driver: Driver) -> None:
        await driver.press("3", "z")
        await driver.sees("aux_03")
        await driver.press("slash", *"selection.*2[01]", "enter")
        await driver.sees("/selection.*2[01] · 2")
        assert "aux_03" not in driver.text
        await driver.press("slash", *"(", "enter")
        await driver.hears("no regular expression")
        await driver.press("escape")
        await driver.sees("aux_03")
        assert screen_of(driver).is_current

    drive(fakes.world((run,)), play, size=(120, 40), opening=run.run)


TOLD_APART = {
    "in the middle": [f"Training average {kind}_sample_loss" for kind in ("positive", "negative")],
    "at the end": ["system/disk./.usageGB", "system/disk./.usagePercent", "system/network.recv"],
    "in two places": [
        f"train/{part}_block_{number}/{of}_loss"
        for part in ("encoder", "decoder")
        for number in (1, 2)
        for of in ("commitment", "reconstruction")
    ],
    "by a number": [f"validation/precision_of_class_{number}" for number in range(8, 12)],
    "one begins as another": ["training_loss_of_all", "training_loss_of_all_heads", "training_loss_of_all_heads_again"],
}


@pytest.mark.parametrize("width", [46, 48, 60])
@pytest.mark.parametrize("names", TOLD_APART.values(), ids=TOLD_APART)
def test_names_that_are_cut_stay_distinguishable(names: list[str], width: int) -> None:
    run = replace(fakes.running(), series={name: fakes.curve(name) for name in names})
    cut = [line.text.split(" 0.")[0].strip() for line in metric_rows(RunFacts(snapshot=run), width, 30)[1:]]
    assert len(set(cut)) == len(cut) >= len(names)


def test_a_cut_name_keeps_its_beginning_and_the_part_in_which_it_differs() -> None:
    run = replace(fakes.running(), series={name: fakes.curve(name) for name in TOLD_APART["in the middle"]})
    shown = "\n".join(line.text for line in metric_rows(RunFacts(snapshot=run), 48, 30))
    assert " Tra…positive" in shown
    assert " Tra…negative" in shown


@pytest.mark.parametrize(
    ("width", "places"),
    [
        (49, {"update 450", "printed 900"}),
        (60, {"optimizer step 450", "printed step 900"}),
    ],
)
def test_what_is_counted_is_named_in_whole_words(width: int, places: set[str]) -> None:
    seen = replace(fakes.curve(), axis="optimizer step", minimum_at=450.0)
    printed = replace(fakes.curve("grad_loss"), axis="printed step", minimum_at=900.0)
    lines = lines_of(replace(fakes.running(), series={"loss": seen, "grad_loss": printed}), width, 10)
    assert {place for place in places if any(place in line for line in lines)} == places
    assert all(len(line) <= width for line in lines)


def test_a_long_name_is_whole_where_there_is_room_for_it() -> None:
    name = "validation/precision_recall_at_confidence_0.5"
    run = replace(fakes.running(), series={name: fakes.curve(name)})
    assert not any(name in line for line in lines_of(run, 60, 10))
    assert any(name in line for line in lines_of(run, 110, 10))


@pytest.mark.parametrize("width", range(49, 53))
def test_no_name_lacks_a_letter_for_the_sake_of_a_longer_course(width: int) -> None:
    """At 120 columns it was `loss · output.l…`, beside a course of six cells."""
    snapshot = of_many(others=0)
    told = replace(snapshot.numbers, told_by={"loss": "output.log", "step": "agent"})
    (first,) = [line for line in lines_of(replace(snapshot, numbers=told), width, 10) if "loss ·" in line]
    assert "loss · output.log" in first
    assert any(cell in first for cell in "▁▂▃▄▅▆▇")
