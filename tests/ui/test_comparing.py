"""Runs side by side: marked on the list, one metric of them over one axis, and the table of how each did with what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mpstui.core.model.snapshot import RunSnapshot, SeriesView, State
from mpstui.core.runs.comparison import Column
from mpstui.core.series.direction import Better
from mpstui.ui.charting.canvas import Canvas, Dashes, draw_line
from mpstui.ui.charting.plot import ChartView
from mpstui.ui.charting.scale import Frame
from mpstui.ui.rows import Row
from mpstui.ui.screens.comparing import ComparisonScreen
from mpstui.ui.widgets.comparison import Comparison
from mpstui.ui.widgets.comparison_words import lack, own_words, shared_words, whole_names
from mpstui.ui.widgets.overlay import LABELS, best_axis, draw_overlay, overlay
from mpstui.ui.widgets.parallel import parallel, parallel_rows
from tests.snapshots import changed

from . import fakes
from .driving import Driver, drive

SGD = fakes.running(
    "20261121-111000-sgd",
    name="CIFAR-10 · SGD",
    argv=("python", "-m", "trainer", "cifar", "--lr", "0.1"),
    series={"loss": fakes.curve(points=100, floor=0.5, seed=4)},
)
ADAM = fakes.running(
    name="CIFAR-10 · Adam\x1b[31m",
    argv=("python", "-m", "trainer", "cifar", "--lr", "0.001", "--ema"),
    series={"loss": fakes.curve(points=400, seed=5)},
)


TWENTY = tuple(
    fakes.finished(
        f"20261120-2200{place:02}-sweep",
        name=f"Digits opt={'sgd' if place % 2 else 'adam'} lr={10.0 ** -(place // 2):g}",
        profile="digits",
        argv=("python", "-m", "trainer", "digits", "--lr", f"{10.0 ** -(place // 2):g}"),
        series={
            "loss": fakes.curve(points=100, floor=0.2 + place / 40, seed=place),
            "val_accuracy": fakes.curve("val_accuracy", points=20, stride=250, start=0.1, floor=0.5 + place / 50,
                                        noise=0.0, evaluation=True),
        },
    )
    for place in range(20)
)  # fmt: skip


def row_of(driver: Driver, text: str) -> str:
    return next(line for line in driver.lines if text in line)


@pytest.mark.parametrize("size", [(40, 10), (60, 15), (80, 24), (120, 40), (200, 60)])
def test_marked_runs_are_compared(size: tuple[int, int]) -> None:
    world = fakes.world((SGD, ADAM, fakes.finished()))

    async def play(driver: Driver) -> None:
        await driver.press("space", "space")
        assert [line[0] for line in driver.lines if line[3:11] == "training"] == ["◆", "◆"]
        await driver.press("C")
        await driver.sees("loss, averaged")
        assert "by step" in driver.lines[0]
        assert driver.world.monitor.compared == (SGD.run, ADAM.run), "their whole curves are read"
        if size[0] >= 80:
            assert "0.1 " in row_of(driver, "SGD")
            assert "0.001" in row_of(driver, "Adam")
        await driver.press("t", "y")
        await driver.sees("by epoch")
        await driver.press("escape")
        await driver.sees("state")
        await driver.until(lambda: not driver.world.monitor.compared, "nothing is read whole any more")

    drive(world, play, size=size)


def test_one_marked_run_is_compared_with_the_selected_one_and_a_run_alone_with_nothing() -> None:
    world = fakes.world((SGD, ADAM))

    async def play(driver: Driver) -> None:
        await driver.press("C")
        await driver.hears("mark two or more runs with space")
        await driver.press("space", "C")
        await driver.sees("2 runs")
        assert "Adam" in driver.text

    drive(world, play)


def test_all_runs_of_a_sweep_are_compared_without_a_mark_sorted_by_the_best() -> None:
    world = fakes.world((fakes.running(), *reversed(TWENTY)))

    async def play(driver: Driver) -> None:
        await driver.press("down", "C")
        await driver.sees("20 runs")
        losses = [float(line.split()[4].strip("★")) for line in driver.lines if "adam" in line or "sgd" in line]
        assert losses == sorted(losses)
        assert "★" in row_of(driver, "adam 1 ")
        await driver.press("m")
        await driver.sees("higher is better")
        best = [line for line in driver.lines if "★" in line]
        assert best
        assert "sgd 1e-09" in best[0]
        assert driver.lines.index(best[0]) == next(i for i, line in enumerate(driver.lines) if "20 runs" in line) + 1
        await driver.press("M")
        await driver.sees("lower is better")

    drive(world, play, size=(120, 40))


def test_the_cursor_reads_all_curves_at_one_place() -> None:
    world = fakes.world((SGD, ADAM))

    async def play(driver: Driver) -> None:
        await driver.press("space", "C", "left")
        await driver.sees("at 21,9")  # the end of the longer one
        assert row_of(driver, "● SGD").split()[3] == "–", "it had ended before that step"
        await driver.pilot.hover(Comparison, offset=(20, 5))
        await driver.until(lambda: row_of(driver, "● SGD").split()[3] != "–", "a value of both")
        await driver.press("plus")
        await driver.until(lambda: "zoom" in driver.lines[0], "a part of it")
        await driver.press("0")
        await driver.until(lambda: "zoom" not in driver.lines[0], "the whole of it")

    drive(world, play, size=(120, 40))


def test_the_table_sorts_by_any_column_and_scrolls_sideways() -> None:
    world = fakes.world(tuple(reversed(TWENTY)))

    async def play(driver: Driver) -> None:
        await driver.press("C")
        await driver.sees("best▾")
        await driver.press("o", "o", "o")  # at step, last, lr
        await driver.sees("lr▾")
        rows = [line.split()[3] for line in driver.lines if "adam" in line or "sgd" in line]
        assert [float(one) for one in rows] == sorted(float(one) for one in rows)
        await driver.press("O")
        await driver.sees("lr▴")
        await driver.press(">", ">")
        await driver.sees("‹")
        await driver.press("enter")
        await driver.sees("Digits")
        await driver.until(lambda: not isinstance(driver.app.screen, ComparisonScreen), "the run alone")

    drive(world, play, size=(80, 24))


def test_a_click_on_a_heading_sorts_and_on_a_run_selects() -> None:
    world = fakes.world(tuple(reversed(TWENTY)))

    async def play(driver: Driver) -> None:
        await driver.press("C")
        await driver.sees("best▾")
        heading = next(place for place, line in enumerate(driver.lines) if "best▾" in line)
        at = driver.lines[heading].index("took") + 2
        await driver.pilot.click(Comparison, offset=(at, heading))
        await driver.sees("took▾")
        await driver.pilot.click(Comparison, offset=(at, heading))
        await driver.sees("took▴")
        await driver.pilot.click(Comparison, offset=(20, heading + 3))
        await driver.until(lambda: driver.lines[heading + 3].startswith("▌"), "the run that was clicked")

    drive(world, play, size=(120, 40))


def test_runs_without_the_metric_are_told_and_a_hidden_one_too() -> None:
    world = fakes.world((replace(SGD, series={"loss": SGD.series["loss"]}), ADAM))

    async def play(driver: Driver) -> None:
        await driver.press("space", "C", "m")
        await driver.sees("run 1: no val_accuracy")
        await driver.press("M", "space")
        await driver.sees("run 2: hidden")

    world.monitor.snapshots = (
        SGD,
        replace(ADAM, series={**ADAM.series, "val_accuracy": TWENTY[0].series["val_accuracy"]}),
    )
    drive(world, play)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"brief": True}, "still being read"),
        ({"unread": True}, "still being read"),
        ({"state": State.QUEUED}, "no loss yet"),
        ({"state": State.FINISHED}, "no loss"),
    ],
)
def test_a_run_without_a_curve_says_whether_there_may_be_one(change: dict[str, Any], words: str) -> None:
    assert lack(replace(SGD, series={}, **change), "loss") == words


def test_headings_are_whole_where_no_other_column_wants_the_room() -> None:
    async def play(driver: Driver) -> None:
        await driver.press("space", "C")
        await driver.sees("best a_rather_long_validation_accuracy")

    longer = {"a_rather_long_validation_accuracy": fakes.curve("a_rather_long_validation_accuracy", evaluation=True)}
    runs = (replace(SGD, series={**SGD.series, **longer}), replace(ADAM, series={**ADAM.series, **longer}))
    drive(fakes.world(runs), play, size=(200, 60))


def test_no_metric_is_denied_before_the_runs_were_read() -> None:
    panel = Comparison()
    one, other = (replace(run, series={"loss": run.series["loss"]}) for run in TWENTY[:2])
    panel.snapshots = (replace(one, brief=True), other)
    assert panel.press("metric") == "The runs are still being read. Try again in a moment."
    panel.snapshots = (one, other)
    assert panel.press("metric") == "There is no other metric."


def test_what_was_not_read_to_its_end_has_no_best_yet() -> None:
    part = replace(SGD, series={"loss": replace(SGD.series["loss"], complete=False, read_share=0.4)})
    world = fakes.world((part, ADAM))

    async def play(driver: Driver) -> None:
        await driver.press("space", "C")
        await driver.sees("still reading, 70 %")
        assert "…" in row_of(driver, "SGD")
        assert "★" not in driver.text

    drive(world, play)


def test_it_follows_runs_that_train_and_closes_when_all_are_gone() -> None:
    world = fakes.world((SGD, ADAM))

    async def play(driver: Driver) -> None:
        await driver.press("space", "space", "C")
        await driver.sees("22,301")
        world.monitor.snapshots = (changed(SGD, step=25_000), ADAM)
        await driver.sees("25,000")
        world.monitor.snapshots = (ADAM,)
        await driver.until(lambda: "SGD" not in driver.text, "the one that is left alone")
        world.monitor.snapshots = ()
        await driver.sees("no runs yet")

    drive(world, play, size=(120, 40))


def timed(run: RunSnapshot, start: float, seconds: float) -> RunSnapshot:
    view = run.series["loss"]
    return replace(run, series={"loss": replace(view, times=[start + seconds * place for place in range(len(view.x))])})


def test_each_run_has_its_own_epochs_and_its_own_start() -> None:
    pair = (changed(SGD, epoch_steps=10), changed(ADAM, epoch_steps=20))
    first, second = overlay(pair, "epoch").runs
    assert first is not None
    assert second is not None
    assert (first.x[1], second.x[1]) == (5.5, 2.75)
    one, other = overlay((timed(SGD, 1000.0, 60.0), timed(ADAM, 9e6, 30.0)), "time").runs
    assert one is not None
    assert other is not None
    assert (one.axis, one.x[0], other.x[0]) == ("h", 0.0, 0.0)
    assert (one.x[60], other.x[60]) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("axes", "drawn"), [(("sample", "sample"), ["sample", "sample"]), (("sample", "printed step"), [])]
)
def test_runs_that_count_samples_are_compared_over_them_and_never_over_different_counts(
    axes: tuple[str, str], drawn: list[str]
) -> None:
    runs = [
        changed(one, series={"loss": replace(one.series["loss"], axis=axis)})
        for one, axis in zip((SGD, ADAM), axes, strict=True)
    ]
    assert [one.axis for one in overlay(runs, "step").curves] == drawn


def test_a_run_without_a_curve_over_an_axis_keeps_its_number() -> None:
    by_epoch = replace(ADAM, series={"loss": replace(ADAM.series["loss"], axis="epoch")})
    none = replace(SGD, series={})
    assert overlay((none, by_epoch), "step").runs == (None, None)
    assert best_axis((none, by_epoch)) == "epoch"
    drawn = draw_overlay(overlay((none, by_epoch), "epoch"), ChartView(), 60, 12)
    assert "2" in "".join(line.text for line in drawn[:-1])
    assert draw_overlay(overlay((none,), "step"), ChartView(), 60, 12) == []


def test_without_colours_only_the_curve_of_the_selected_run_is_whole() -> None:
    def dots(hidden: int, *, colours: bool) -> str:
        chart = draw_overlay(
            overlay((SGD, ADAM), "step", hidden=frozenset({hidden})), ChartView(), 60, 12, 0, colours=colours
        )
        return "".join(line.text for line in chart[:-1])

    assert dots(1, colours=False) == dots(1, colours=True)
    assert dots(0, colours=False) != dots(0, colours=True)


def lone(view: SeriesView, number: int) -> RunSnapshot:
    return replace(SGD, run=str(number), series={"loss": view})


def test_without_colours_neighbours_have_lines_of_different_kinds() -> None:
    """Twenty dotted lines were told apart by their labels alone."""
    flat = replace(fakes.curve(points=200), low=[1.0] * 200, high=[1.0] * 200, mean=[1.0] * 200, smooth=[1.0] * 200)
    runs = [lone(replace(flat), number) for number in range(6)]

    def drawn(place: int) -> str:
        hidden = frozenset(range(6)) - {place}
        rows = draw_overlay(overlay(runs, "step", hidden=hidden), ChartView(), 100, 12, 0, colours=False)
        line = next(row.text for row in rows[:-1] if any(ord(cell) > 0x2800 for cell in row.text[7:]))
        return line[20:40]

    assert len({drawn(place) for place in range(5)}) == 5


def test_curves_that_are_the_same_are_named_side_by_side_again_and_again() -> None:
    """Their names stood at their very end alone, where others ended too."""
    same, other = [lone(fakes.curve(points=200), number) for number in range(3)], fakes.curve(points=200, floor=1.0)
    rows = draw_overlay(overlay([*same, lone(other, 3)], "step"), ChartView(), 120, 20)[:-1]
    text = [line.text[7:] for line in rows]
    assert sum(line.count("1") for line in text) > 1
    assert any("321" in line for line in text)


def test_a_label_does_not_stand_beyond_the_end_of_its_curve() -> None:
    """It once stood where another curve went on, and named that."""
    short = lone(fakes.curve(points=100, noise=0.0), 0)
    longer = [lone(fakes.curve(points=200, floor=floor, noise=0.0), number) for number, floor in ((1, 0.3), (2, 0.4))]
    drawn = draw_overlay(overlay([short, *longer], "step"), ChartView(), 107, 20)
    columns = [line.text.index("1", 7) - 7 for line in drawn[:-1] if "1" in line.text[7:]]
    assert columns
    assert max(columns) <= 50


def test_curves_that_are_the_same_have_a_label_each() -> None:
    runs = [lone(fakes.curve(points=200), number) for number in range(5)]
    text = "\n".join(line.text[7:] for line in draw_overlay(overlay(runs, "step"), ChartView(), 80, 12)[:-1])
    assert all(label in text for label in LABELS[:5])


def test_a_curve_that_ends_in_a_gap_is_named_before_it() -> None:
    view = SGD.series["loss"]
    gap = replace(view, smooth=[*view.smooth[:50], *[math.nan] * 50])
    drawn = draw_overlay(overlay((replace(SGD, series={"loss": gap}),), "step"), ChartView(), 60, 12)
    columns = [line.text.index("1", 8) for line in drawn[:-1] if "1" in line.text[8:]]
    assert columns
    assert all(column < 40 for column in columns)


def test_a_curve_that_stays_as_it_was_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty of them took 170 ms for each key, and for each new point of one."""
    drawn: list[SeriesView] = []

    def noted(
        canvas: Canvas, curve: SeriesView, values: Sequence[float], space: Frame, layer: str, *, dashes: Dashes
    ) -> None:
        drawn.append(curve)
        draw_line(canvas, curve, values, space, layer, dashes=dashes)

    monkeypatch.setattr("mpstui.ui.widgets.overlay.draw_line", noted)
    fresh = [replace(TWENTY[place], series={"loss": replace(TWENTY[place].series["loss"])}) for place in range(5)]
    panel = Comparison()
    panel.snapshots = fresh
    for key in ("sort", "reverse", "left", "wider"):
        panel.press(key)
        panel.scroll_rows(1)
        panel.rows(100, 30)
    assert len(drawn) == 5
    panel.snapshots = [replace(fresh[0], series={"loss": replace(fresh[0].series["loss"])}), *fresh[1:]]
    panel.repaint()
    panel.rows(100, 30)
    assert len(drawn) == 6, "the one that goes on"


@pytest.mark.parametrize("width", [20, 60, 120])
def test_it_keeps_to_the_width(width: int) -> None:
    panel = Comparison()
    panel.snapshots = (SGD, ADAM, replace(SGD, argv=("python", "a" * 300)))
    panel.repaint()
    for height in (3, 8, 20):
        drawn = panel.rows(width, height)
        assert len(drawn) <= height
        for line in drawn:
            assert line.width <= width
            assert "\x1b" not in line.text


def test_names_are_told_without_what_they_share() -> None:
    assert own_words(["CIFAR-10 · a lr=0.1 s=1", "CIFAR-10 · a lr=0.2 s=1"]) == ["0.1 1", "0.2 1"]
    assert own_words(["same", "same"]) == ["same", "same"]
    assert own_words(["one x=1", "one y=2"]) == ["x=1", "y=2"]


def test_the_axis_goes_on_to_the_next_that_two_runs_have() -> None:
    panel = Comparison()
    panel.snapshots = (changed(SGD, epoch_steps=None, steps=None), ADAM, replace(ADAM, run="third"))
    panel.repaint()
    assert [(panel.press("axis"), panel.axis)[1] for _ in range(2)] == ["epoch", "step"]


# -- settings as parallel axes


def parallel_axes(settings: Sequence[Column], result: Column, width: int, height: int) -> list[Row]:
    drawn, why_not = parallel(settings, result, width, height)
    return parallel_rows(drawn, width, height) if drawn is not None else why_not


def axes_of(*settings: Column, result: tuple[float | None, ...], better: Better | None = Better.LOWER) -> list[str]:
    drawn = parallel_axes(settings, Column("best", result, "best", better), 60, 12)
    assert all(line.width <= 60 for line in drawn)
    return [line.text for line in drawn]


def test_settings_are_axes_with_the_best_result_on_top() -> None:
    lines = axes_of(
        Column("lr", ("0.1", "0.001", "0.01")), Column("opt", ("sgd", "adam", None)), result=(0.3, 0.2, 0.9)
    )
    assert lines[0].split() == ["lr", "opt", "best"]
    heights = {text: next(n for n, line in enumerate(lines) if f"┤{text}" in line) for text in ("0.1", "0.01", "0.001")}
    assert heights["0.1"] == 1
    assert heights["0.01"] - heights["0.1"] == pytest.approx(heights["0.001"] - heights["0.01"], abs=1), "by decades"
    assert "2┤0.200" in lines[1]
    assert "0.900" in lines[-1]
    assert axes_of(Column("lr", ("1", "2")), result=(0.1, 0.9), better=Better.HIGHER)[1].rstrip().endswith("2┤0.900")


def test_the_parallel_view_says_what_it_needs() -> None:
    some = Column("lr", ("1", "2"))
    assert "needs 24 columns and 6 lines" in parallel_axes([some], some, 80, 4)[0].text
    assert "the same settings" in parallel_axes([], some, 80, 20)[0].text
    many = [Column(f"setting {place}", ("1", "2")) for place in range(9)]
    assert parallel_axes(many, some, 80, 20)[0].text.endswith("+4")


def test_each_line_between_two_axes_has_the_letter_of_its_run() -> None:
    """So that they are told apart without colour, and where they cross."""
    lines = axes_of(Column("lr", ("1", "2", "3")), Column("seed", ("1", "2", "1")), result=(0.1, 0.5, 0.9))
    seed = lines[0].index("seed")
    for cut in (slice(4, seed), slice(seed + 4, 42)):  # the labels of the results stand behind that
        letters = [character for line in lines[1:] for character in line[cut] if character in "123"]
        assert sorted(letters) == ["1", "2", "3"]


@pytest.mark.parametrize("size", [(40, 10), (60, 15), (200, 60)])
def test_a_sweep_in_parallel_axes(size: tuple[int, int]) -> None:
    world = fakes.world(tuple(reversed(TWENTY)))

    async def play(driver: Driver) -> None:
        await driver.press("C", "p")
        await driver.until(lambda: driver.lines[1].startswith(" lr"), "the axes")
        await driver.press("p")
        await driver.until(lambda: not driver.lines[1].startswith(" lr"), "curves")

    drive(world, play, size=size)


def test_a_run_whose_values_are_no_numbers_any_more_is_marked_beside_its_best() -> None:
    dead = changed(SGD, series={"loss": fakes.curve(points=400, floor=0.1, gap=range(300, 400))}, loss_is_finite=False)
    world = fakes.world((dead, ADAM))

    async def play(driver: Driver) -> None:
        await driver.press("space", "space", "C")
        await driver.sees("✗ run 1: NaN/inf since step 16,500")
        assert "★" in row_of(driver, "SGD")
        assert " ✗ " in row_of(driver, "SGD").partition("★")[2]
        assert "✗" not in row_of(driver, "Adam")

    drive(world, play, size=(120, 40))


def test_runs_of_one_name_are_named_by_their_settings() -> None:
    twins = tuple(
        fakes.running(f"r{rate}", name="train", argv=("python", "t.py", "--lr", rate)) for rate in ("0.1", "0.02")
    )

    async def play(driver: Driver) -> None:
        await driver.press("space", "space", "C")
        await driver.sees("2 runs")
        table = driver.lines[next(at for at, line in enumerate(driver.lines) if " 2 runs" in line) + 1 :]
        assert sorted(line.split()[2] for line in table[:2]) == ["0.02", "0.1"]

    drive(fakes.world(twins), play, size=(80, 24))


def test_an_axis_that_one_run_alone_has_is_passed_over_with_a_word() -> None:
    told = timed(SGD, 1000.0, 60.0)
    runs = [changed(one, epoch=None, epochs=None, epoch_steps=None) for one in (told, ADAM)]

    async def play(driver: Driver) -> None:
        await driver.press("space", "space", "C")
        await driver.sees("by step")
        await driver.press("t")
        await driver.hears("epochs are known for no run; times are known for run 1 only; the axis stays.")
        assert "by step" in driver.lines[0]

    drive(fakes.world(tuple(runs)), play, size=(120, 40))


def test_runs_that_nothing_but_their_start_tells_apart_are_called_by_it() -> None:
    """And the title says what all names have in common."""
    twins = [replace(SGD, run=f"20261121-11100{at}-sgd", started=fakes.NOW - 600 * at) for at in (1, 2)]
    names = whole_names(twins)
    assert shared_words(names) == "CIFAR-10 · SGD"
    assert len(set(own_words(names))) == 2
    assert all(":" in name for name in own_words(names))

    async def play(driver: Driver) -> None:
        await driver.press("asterisk", "C")
        await driver.sees("lower is better  ·  CIFAR-10 · SGD")

    drive(fakes.world(tuple(twins)), play, size=(120, 40))
