"""The chart and the sparkline as plain strings."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpstui.core.model.snapshot import RunEvent, SeriesView, State
from mpstui.core.series.series import SeriesStore
from mpstui.core.telemetry.model import Stretch
from mpstui.ui.charting.canvas import Canvas, draw_line, draw_range
from mpstui.ui.charting.data import ChartData, chart_data, metric_names, over_time
from mpstui.ui.charting.moving import move_cursor, pan, zoom
from mpstui.ui.charting.picture import WIDTH, shapes
from mpstui.ui.charting.plot import GUTTER, SLOW_MARK, ChartView, draw, frame
from mpstui.ui.charting.scale import Frame, Scale, nice_step, tick_label, tick_labels, value_scale
from mpstui.ui.panels import RunFacts
from mpstui.ui.panels.chart import LossChart
from mpstui.ui.rows import Span, sparkline

from . import fakes
from .fakes import curve


def series(values: list[float], marks: tuple[float, ...] = ()) -> SeriesView:
    x = [float(place) for place in range(len(values))]
    last = values[-1] if values and math.isfinite(values[-1]) else None
    view = SeriesView("loss", "step", x, values, values, values, values, len(values), last=last, attempt_marks=marks)
    return replace(view, values=values)


@pytest.mark.parametrize(
    ("values", "width", "text"),
    [
        ([0, 1, 2, 3, 4, 5, 6], 7, "▁▂▃▄▅▆▇"),
        ([5, 5, 5], 5, "  ▄▄▄"),
        ([], 4, "    "),
        ([math.nan], 3, "   "),
        ([0, math.nan, math.inf, 6], 4, "▁  ▇"),
        ([1, 1, 9, 9], 2, "▁▇"),
        ([1, 2], 0, ""),
    ],
)
def test_sparkline(values: list[float], width: int, text: str) -> None:
    assert sparkline(values, width) == text


@given(st.lists(st.floats(), max_size=200), st.integers(0, 50))
def test_a_sparkline_survives_any_floats(values: list[float], width: int) -> None:
    assert len(sparkline(values, width)) == width


def lines(data: ChartData, view: ChartView | None = None, width: int = 40, height: int = 8) -> list[str]:
    return [line.text for line in draw(data, view or ChartView(), width, height)]


def test_a_straight_line_is_straight() -> None:
    drawn = lines(ChartData(name="loss", train=series([0, 1, 2, 3, 4])), width=15, height=6)
    assert [text[6:] for text in drawn[1:-1]] == ["┤      ⡠⠊", "│    ⢀⡎  ", "┤  ⡠⠔⠁   ", "┤⡠⠊      "]
    assert drawn[1].startswith("     4")
    assert drawn[-1].split()[0] == "0"


def test_a_curve_of_one_value_is_a_point_that_can_be_seen() -> None:
    assert sum(line.count("•") for line in lines(ChartData(name="loss", train=series([2.0])))) == 1
    assert not any("•" in line for line in lines(ChartData(name="loss", train=series([2.0, 1.0]))))


def test_a_gap_is_not_bridged() -> None:
    values = [1.0] * 20 + [math.nan] * 20 + [1.0] * 20
    drawn = lines(ChartData(name="loss", train=series(values)), width=67)
    curve_row = next(text[7:] for text in drawn[1:-1] if any(0x2800 < ord(c) < 0x2900 for c in text))
    assert curve_row[25:35].strip() == ""
    assert curve_row[5:15].strip() != ""


def test_a_spike_of_one_point_survives_any_width() -> None:
    values = [1.0] * 5000
    values[2500] = 9.0
    drawn = lines(ChartData(name="loss", train=series(values)), ChartView(log=False), width=60, height=10)
    assert all("░" in line[7:] for line in drawn[2:7]), "from the curve up to its value"


def dots(canvas: Canvas) -> set[tuple[int, int, int]]:
    """Line, column and bit of every braille dot."""
    cells = enumerate("".join(span.text for span in canvas.spans(line)) for line in range(canvas.lines))
    drawn = ((y, x, ord(cell) - 0x2800) for y, text in cells for x, cell in enumerate(text) if ord(cell) >= 0x2800)
    return {(y, x, bit) for y, x, bits in drawn for bit in range(8) if bits >> bit & 1}


def test_curves_that_share_a_cell_share_its_dots_in_the_colour_of_the_thinner_one() -> None:
    canvas = Canvas(2, 1)
    canvas.line(0, 0, 3, 0, "train")
    canvas.column(1, 3, 3, "val")
    assert canvas.spans(0) == [("⢉", "val"), ("⠉", "train")]
    canvas = Canvas(2, 1)
    canvas.line(0, 0, 3, 0, "train")
    canvas.column(1, 3, 3, "off")
    assert canvas.spans(0) == [("⢉⠉", "train")], "what is over gives way, however little of it there is"


CURVES = st.lists(st.lists(st.one_of(st.floats(0, 9), st.just(math.nan)), max_size=40), min_size=2, max_size=5)


@given(CURVES)
def test_no_curve_ever_hides_a_dot_of_another(curves: list[list[float]]) -> None:
    space = Frame(Scale(0, 40), Scale(0, 9), 17, 5)
    together, apart = Canvas(17, 5), set()
    for place, values in enumerate(curves):
        for canvas in (together, alone := Canvas(17, 5)):
            draw_line(canvas, series(values), values, space, f"layer {place}")
        apart |= dots(alone)
    assert dots(together) == apart


def test_validation_goes_on_beside_a_training_curve_to_its_end() -> None:
    """Drawn over it, it once made the training look as if it had stopped where both met."""
    train, val = [9 / (1 + x) for x in range(256)], [9 / (1 + x) + 0.01 for x in range(256)]
    rows = draw(ChartData(name="loss", train=series(train), evaluation=series(val)), ChartView(), 120, 30)
    roles = {role for row in rows[1:-1] for text, role in row.spans if any(ord(cell) >= 0x2800 for cell in text)}
    assert any("train" in role for role in roles)
    alone = draw(ChartData(name="loss", train=series(train)), ChartView(log=True), 120, 30)
    filled = [sum(ord(row.text[x]) >= 0x2800 for row in alone[1:-1]) for x in range(GUTTER, 118)]
    assert all(filled)


@pytest.mark.parametrize("blocks", [False, True])
def test_validation_is_told_from_training_without_colour(blocks: bool) -> None:
    train, val = series([9.0 - x * 0.02 for x in range(200)]), series([4.0 - x * 0.02 for x in range(200)])
    sparse = replace(val, x=[10.0 * x for x in range(20)], low=val.low[:20], high=val.high[:20], mean=val.mean[:20])
    few = draw(ChartData(name="loss", train=train, evaluation=sparse), ChartView(blocks=blocks), 120, 30)
    assert "".join(row.text for row in few[1:]).count("•") == 20
    assert "━ train" in few[0].text
    assert "• val" in few[0].text
    many = draw(ChartData(name="loss", train=train, evaluation=val), ChartView(blocks=blocks), 60, 30)
    cells = [cell for row in many[1:-1] for text, role in row.spans if role.startswith("val") for cell in text]
    drawn = [cell for cell in cells if cell != "░"]
    assert len(drawn) > 20
    joined = [cell for cell in drawn if cell != "•" if blocks or (ord(cell) & 0x47 and ord(cell) & 0xB8)]
    assert not joined, "points, or dots with gaps between them"


def test_the_line_runs_through_the_means_before_the_range_of_the_values() -> None:
    source = [1.0 + (7919 * step) % 997 / 100 for step in range(20_000)]
    store = SeriesStore()
    store.add([{"step": step, "loss": value} for step, value in enumerate(source)])
    rows = draw(ChartData(name="loss", train=store.views(most=1024)["loss"]), ChartView(log=False), 120, 30)
    shaded = [row.text.count("░") for row in rows[1:-1]]
    assert sum(count > 100 for count in shaded) > 18, "nearly all values are far from the mean"
    stroked = [row.text for row in rows[1:-1] if sum(ord(cell) >= 0x2800 for cell in row.text) > 3]
    assert len(stroked) <= 4, "and the mean is one line"
    over = {role for row in rows[1:-1] for text, role in row.spans if ord(text[0]) >= 0x2800}
    assert over == {"train train-range-over"}


def test_a_curve_without_noise_casts_no_shade() -> None:
    smooth = [2.0 - x / 1000 for x in range(1000)]
    assert not any("░" in line for line in lines(ChartData(name="lr", train=series(smooth)), width=120, height=30))


def test_a_zoomed_curve_is_a_line_and_a_closed_range() -> None:
    """Eight buckets over a hundred columns: no column between them is empty."""
    low, high = replace(series([1.0, 2.0] * 50), low=[0.5, 1.0] * 50), [2.0, 4.0] * 50
    data = ChartData(name="loss", train=replace(low, high=high))
    body = [line[GUTTER:] for line in lines(data, ChartView(left=40.0, right=48.0), width=107, height=30)[1:-1]]
    for column in range(100):
        cells = "".join(line[column] for line in body).strip()
        assert any(ord(cell) >= 0x2800 for cell in cells)
        assert "░" in cells


def test_a_label_stands_on_its_own_curve() -> None:
    canvas = Canvas(10, 4)
    canvas.line(0, 0, 9, 0, "short")
    canvas.line(0, 12, 19, 12, "whole")
    canvas.line(8, 15, 19, 14, "under")
    canvas.line(8, 15, 19, 14, "beneath")
    named = canvas.labels({name: Span(name[0], name) for name in ("short", "whole", "under", "beneath", "none")}, 4)
    assert named[0] == {4: Span("s", "short"), 0: Span("s", "short")}, "at its end, and again after four columns"
    assert named[3] == {
        3: Span("w", "whole"),  # in the cells that follow it would be another's too
        9: Span("u", "under"),  # shared all the way
        8: Span("b", "beneath"),
    }


def test_blocks_stand_in_for_braille() -> None:
    drawn = lines(ChartData(name="loss", train=series([0, 1, 2, 3])), ChartView(blocks=True), width=30)
    body = "".join(text[7:] for text in drawn[1:-1])
    assert set(body) <= set(" ▁▂▃▄▅▆▇█")
    assert body.strip()


def test_log_axis_has_decades_and_leaves_out_what_it_cannot_show() -> None:
    values = [1000.0, 100.0, 10.0, 1.0, 0.0, -1.0, 0.1]
    drawn = lines(ChartData(name="loss", train=series(values)), ChartView(log=True), width=50, height=14)
    assert "log" in drawn[0]
    assert [text[:6].strip() for text in drawn[1:-1] if text[:6].strip()] == ["1000", "10", "0.1"]


def test_scale_is_chosen_by_the_spread() -> None:
    assert value_scale([0.001, 1.0], None).log
    assert not value_scale([0.5, 1.0], None).log
    assert not value_scale([-1.0, 1.0], True).log or value_scale([-1.0, 1.0], True).low > 0
    assert not value_scale([-2.0, -1.0], True).log
    assert value_scale([], None) == Scale(0.0, 1.0)


@given(st.lists(st.floats(-1e12, 1e12), min_size=1), st.sampled_from([True, False, None]), st.integers(0, 60))
def test_scales_hold_their_values(values: list[float], log: bool | None, lines: int) -> None:
    scale = value_scale(values, log, lines)
    assert scale.low < scale.high
    for value in values:
        position = scale.position(value)
        assert position is None or position <= 1 + 1e-6
        assert scale.log or position is None or position >= -1e-6
    assert scale.ticks(5)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(10, 60))
def test_the_values_that_an_axis_names_are_whole_lines_apart(low: float, span: float, lines: int) -> None:
    scale = value_scale([low, low + span], False, lines)
    rows = [(1 - (scale.position(tick) or 0.0)) * (lines - 1) for tick in scale.ticks(99)]
    apart = {round(above - below, 3) for above, below in pairwise(rows)}
    assert len(rows) >= 2
    assert len(apart) == 1
    assert all(abs(row - round(row)) < 1e-3 for row in rows)
    assert span >= scale.span / 3, "the curve has a third of the height at least"


@pytest.mark.parametrize(
    ("rough", "step"), [(0.7, 1.0), (1.2, 2.0), (3.0, 5.0), (7.0, 10.0), (0.0, 1.0), (math.inf, 1.0)]
)
def test_steps_are_one_two_five(rough: float, step: float) -> None:
    assert nice_step(rough) == pytest.approx(step)


@pytest.mark.parametrize(
    ("value", "label"),
    [(0.0, "0"), (0.05, "0.05"), (200.0, "200"), (50_000.0, "50k"), (2e6, "2M"), (1e-5, "1e-5"), (5e-4, "0.0005")],
)
def test_tick_labels(value: float, label: str) -> None:
    assert tick_label(value) == label


@pytest.mark.parametrize(
    ("ticks", "room", "labels"),
    [
        ([30.942, 30.946, 30.95], 6, ["30.942", "30.946", "30.95"]),
        ([1.0, 1.5, 2.0], 6, ["1", "1.5", "2"]),
        ([5_000_000.0, 5_000_020.0, 5_000_040.0], 10, ["5M", "5.00002M", "5.00004M"]),
        ([1.25e18, 1.252e18, 1.254e18], 10, ["1.25e18", "1.252e18", "1.254e18"]),
        ([-1234.567, -1234.566], 6, ["-1235", "-1235"]),  # there is no room
        ([0.0], 6, ["0"]),
    ],
)
def test_ticks_of_one_axis_are_told_apart_where_there_is_room(ticks: list[float], room: int, labels: list[str]) -> None:
    """A loss between 30.940 and 30.950 had three times the same number beside it."""
    assert tick_labels(ticks, room) == labels


@example([5e158, 1e-180], 15, 4, False)  # their ratio is less than the least number
@given(st.lists(st.floats(), max_size=60), st.integers(0, 60), st.integers(0, 20), st.booleans())
def test_a_chart_survives_any_data_and_any_size(values: list[float], width: int, height: int, blocks: bool) -> None:
    data = ChartData(name="[loss]\x1b[2J", train=series(values), evaluation=series(values[::3]))
    for line in draw(data, ChartView(blocks=blocks), width, height)[:height]:
        assert "\x1b" not in line.text
        assert line.width <= max(width, 7)


def test_attempts_are_marked_and_the_cursor_reads_values() -> None:
    data = ChartData(name="loss", train=series([float(9 - x) for x in range(10)], marks=(4.0,)))
    assert "┊" in "".join(lines(data))
    read = lines(data, ChartView(cursor=3.0), width=70)
    assert "train 6.000" in read[0]
    assert "step 3" in read[0]
    assert any("│" in text[7:] for text in read[1:-1])


MEASURED_LOSS = [10.0 + (7919 * step) % 997 / 100 for step in range(50_000)]


def noisy(every: int = 1, first: int = 0) -> ChartData:
    """A curve of more points than it has buckets, noisier than its means."""
    store = SeriesStore()
    store.add([{"step": first + step * every, "loss": value} for step, value in enumerate(MEASURED_LOSS)])
    store.add([{"step": step, "val_loss": MEASURED_LOSS[step] + 1} for step in (20_000, 40_000)])
    curves = store.views(most=1024)
    return ChartData(name="loss", train=curves["loss"], evaluation=curves["val_loss"])


def numbers_of(text: str) -> list[float]:
    return [float(part.replace(",", "")) for part in text.split("–")]


@pytest.mark.parametrize("cursor", [0.0, 1999.6, 5000.2, 47_953.4, 49_999.0])
@pytest.mark.parametrize("window", [(None, None), (0.0, 8000.0), (47_900.0, 48_000.0), (49_000.0, None)])
def test_the_cursor_tells_what_was_measured_at_the_steps_it_names(
    cursor: float, window: tuple[float | None, float | None]
) -> None:
    view = ChartView(cursor=cursor, left=window[0], right=window[1])
    (read,) = lines(noisy(), view, width=160)[:1]
    named = re.search(r"train (\S+)  . val (\S+) at (\S+) .*steps? (\S+)", read)
    assert named is not None, read
    values, val, val_step, steps = map(numbers_of, named.groups())
    first, last = int(steps[0]), int(steps[-1])
    measured = MEASURED_LOSS[first : last + 1]
    told = [min(measured), sum(measured) / len(measured), max(measured)] if last > first else measured
    assert values == pytest.approx(told, abs=0.006)
    assert val == pytest.approx([MEASURED_LOSS[int(val_step[0])] + 1], abs=0.006)
    if (window[0] or 0.0) <= cursor <= (window[1] or 50_000.0):
        assert first - 1000 <= cursor <= last + 1000


def test_the_steps_of_a_range_begin_after_those_of_the_one_before_it_and_at_the_first() -> None:
    data = replace(noisy(first=1), evaluation=None)
    seen = []
    space = frame(data, ChartView(), 60 + GUTTER, 8)
    assert space is not None
    for column in range(60):
        (read,) = lines(data, ChartView(cursor=space.x_at(column)), width=60 + GUTTER)[:1]
        found = re.search(r"steps? (\S+)", read)
        assert found is not None
        seen.append(tuple(map(int, numbers_of(found.group(1)))))
    parts = sorted(set(seen))
    assert parts[0][0] == 1
    assert parts[-1][-1] == 50_000
    assert all(one[1] + 1 == other[0] for one, other in pairwise(parts))


def test_a_range_with_values_that_are_not_finite_says_so() -> None:
    values = [1.0, 2.0, math.nan, 3.0]
    store = SeriesStore()
    store.add([{"step": step, "loss": value} for step, value in enumerate(values * 1000)])
    told = lines(ChartData(name="loss", train=store.views(most=100)["loss"]), ChartView(cursor=500.0), width=90)[0]
    assert "train 1.000–2.000–3.000, NaN/inf" in told
    alone = lines(ChartData(name="loss", train=store.views(most=100)["loss"]), ChartView(cursor=500.0), width=90)[0]
    assert "steps" in alone


def test_of_a_history_read_in_part_the_cursor_names_single_points() -> None:
    data = replace(noisy(), evaluation=None)
    assert data.train is not None
    part = replace(data, train=replace(data.train, complete=False))
    assert re.search(r"train \d+\.\d+ .* step \d", lines(part, ChartView(cursor=20_000.0), width=120)[0])


def test_the_cursor_goes_from_point_to_point_where_they_are_apart() -> None:
    data = ChartData(name="loss", train=curve(points=100, stride=10))
    view = ChartView(left=200.0, right=260.0, cursor=230.0)
    space = frame(data, view, 80, 20)
    assert space is not None
    assert move_cursor(view, space, data, 1).cursor == 240.0
    assert move_cursor(view, space, data, -1).cursor == 220.0


def test_the_axis_counts_epochs_when_asked() -> None:
    data = ChartData(name="loss", train=series([1.0] * 100), steps_per_epoch=10.0)
    assert lines(data, ChartView(by_epoch=True), width=60)[-1].split() == ["0", "5", "10"]


def test_a_chart_without_data_says_so() -> None:
    assert any("no loss reported yet" in text for text in lines(ChartData(name="loss")))


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (State.RUNNING, "no loss reported yet"),
        (State.WATCHED, "no loss reported yet"),
        (State.UNREADABLE, "no loss reported yet"),
        (State.FINISHED, "this run reported no loss"),
        (State.KILLED, "this run reported no loss"),
    ],
)
def test_a_run_that_is_over_will_report_nothing_more(state: State, told: str) -> None:
    run = replace(fakes.running(), series={}, state=state)
    assert any(told in text for text in lines(chart_data(run, "loss")))


@pytest.mark.parametrize("unread", [{"brief": True}, {"loading": True}])
def test_a_chart_whose_history_is_only_being_read_claims_nothing_of_it(unread: dict[str, Any]) -> None:
    run = replace(fakes.running(), series={}, **unread)
    told = "\n".join(lines(chart_data(run, "loss")))
    assert "the history is being read" in told
    assert "reported yet" not in told


def test_a_long_run_in_hours_can_be_zoomed_as_closely_as_by_steps() -> None:
    by_steps = curve(points=400, stride=10)
    hours = replace(by_steps, axis="h", x=[x / 4000 for x in by_steps.x])
    data, view = ChartData(name="loss", train=hours), ChartView()
    for _ in range(10):
        space = frame(data, view, 80, 20)
        assert space is not None
        view = zoom(view, space, data, 0.5)
    assert view.left is not None
    assert sum(x >= view.left for x in hours.x) in (8, 9)


def test_zoom_pan_and_cursor() -> None:
    data = ChartData(name="loss", train=curve(points=400, stride=10))
    view = ChartView()
    space = frame(data, view, 80, 20)
    assert space is not None
    closer = zoom(view, space, data, 0.5)
    assert closer.left == pytest.approx(3990 / 2, rel=0.02)
    assert closer.right is None, "holding the right edge means following it"
    space = frame(data, closer, 80, 20)
    assert space is not None
    earlier = pan(closer, space, data, -0.25)
    assert earlier.right is not None
    space = frame(data, earlier, 80, 20)
    assert space is not None
    assert pan(earlier, space, data, 1.0).right is None
    assert zoom(earlier, space, data, 8.0) == ChartView()
    with_cursor = move_cursor(earlier, space, data, -1)
    assert with_cursor.cursor == pytest.approx(earlier.right, rel=0.01)
    moved = move_cursor(with_cursor, space, data, -10)
    assert moved.cursor is not None
    assert with_cursor.cursor is not None
    assert moved.cursor < with_cursor.cursor
    nothing = ChartData(name="loss")
    assert (
        zoom(view, space, nothing, 0.5)
        == pan(view, space, nothing, 0.5)
        == move_cursor(view, space, nothing, 1)
        == view
    )


def test_most_new_points_leave_the_axes_alone() -> None:
    before = ChartData(name="loss", train=series([1.0 + 0.001 * x for x in range(1010)]))
    after = ChartData(name="loss", train=series([1.0 + 0.001 * x for x in range(1013)]))
    first, second = frame(before, ChartView(), 80, 20), frame(after, ChartView(), 80, 20)
    assert first is not None
    assert second is not None
    assert (first.x, first.y) == (second.x, second.y)


def test_slow_steps_are_a_band_along_the_upper_edge() -> None:
    data = ChartData(name="loss", train=curve(points=100, stride=10), slow=(Stretch(400.0, 600.0),))
    rows = draw(data, ChartView(), 80, 12)
    band = [place for place, cell in enumerate(rows[1].text) if cell == SLOW_MARK]
    assert band[0] == pytest.approx(GUTTER + 0.4 * 73, abs=2)
    assert band[-1] == pytest.approx(GUTTER + 0.6 * 73, abs=2)
    assert SLOW_MARK in rows[0].text, "the legend says what the band is"
    assert not any(SLOW_MARK in row.text for row in rows[2:])


def test_slow_steps_out_of_the_window_or_on_another_axis_are_not_drawn() -> None:
    data = ChartData(name="loss", train=curve(points=100, stride=10), slow=(Stretch(900.0, 950.0),))
    zoomed = draw(data, ChartView(left=100.0, right=300.0), 80, 12)
    assert not any(SLOW_MARK in row.text for row in zoomed[1:])
    by_epoch = replace(data, train=replace(curve(points=100, stride=10), axis="epoch"))
    assert not any(SLOW_MARK in row.text for row in draw(by_epoch, ChartView(), 80, 12))
    short = replace(data, slow=(Stretch(500.0, 500.1),))
    assert draw(short, ChartView(), 80, 12)[1].text.count(SLOW_MARK) == 1


def test_time_is_an_axis_where_points_tell_it() -> None:
    curve = series([float(9 - x) for x in range(10)], marks=(4.0,))
    assert over_time(ChartData(name="loss", train=curve)) is None
    timed = replace(curve, times=[math.nan, *(1000.0 + 60 * x for x in range(9))])
    at_once = replace(curve, times=[1000.0] * 10)
    assert over_time(ChartData(name="loss", train=at_once)) is None, "a log that was read at once has no times"
    moved = over_time(ChartData(name="loss", train=timed))
    assert moved is not None
    assert moved.train is not None
    assert list(moved.train.x) == [float(x) for x in range(9)]
    assert list(moved.train.mean) == list(curve.mean)[1:]
    assert list(moved.train.attempt_marks) == [3.0]
    assert moved.axis == "min"
    assert "min" in lines(moved, ChartView(by_time=True), width=70)[0]
    long = over_time(ChartData(name="loss", train=replace(curve, times=[3600.0 * x for x in range(10)])))
    assert long is not None
    assert long.axis == "h"


def test_validation_over_another_axis_has_a_chart_of_its_own() -> None:
    """Printed epochs say nothing of where the agent's steps stood."""
    loss, validation = curve("loss"), curve("val_loss", evaluation=True)
    together = fakes.running(series={"loss": loss, "val_loss": validation})
    assert metric_names(together) == ["loss"]
    assert chart_data(together, "loss").evaluation is validation
    apart = fakes.running(series={"loss": loss, "val_loss": replace(validation, axis="epoch")})
    assert metric_names(apart) == ["loss", "val_loss"]
    assert chart_data(apart, "loss").evaluation is None
    assert chart_data(apart, "val_loss").axis == "epoch"


def test_where_no_loss_is_the_main_one_those_of_several_are_drawn_before_the_rest() -> None:
    names = ("D(G(z))", "D(x)", "Loss_D", "Loss_G", "lr")
    run = fakes.running(series={name: curve(name) for name in names})
    assert metric_names(run)[:3] == ["Loss_D", "Loss_G", "D(G(z))"]


@pytest.mark.parametrize("name", ["Val Loss", "validation loss", "eval/loss", "Test Average loss", "val_loss_epoch"])
def test_validation_is_drawn_over_training_however_it_is_spelt(name: str) -> None:
    run = fakes.running(series={"loss": curve("loss"), name: curve(name, evaluation=True), "acc": curve("acc")})
    assert metric_names(run) == ["loss", "acc"]
    assert chart_data(run, "loss").evaluation is run.series[name]


@pytest.mark.parametrize("name", ["val_nll", "eval/ce_loss", "Validation Cross-Entropy"])
def test_a_validation_loss_named_by_its_criterion_is_drawn_over_the_loss(name: str) -> None:
    of_it = curve(name, evaluation=True)
    run = fakes.running(series={"loss": curve("loss"), name: of_it, "val_accuracy": curve("", evaluation=True)})
    assert metric_names(run) == ["loss", "val_accuracy"]
    assert chart_data(run, "loss").evaluation is of_it


@pytest.mark.parametrize("others", [["val_loss"], ["val_bce"], ["train_nll"]])
def test_a_criterion_is_not_drawn_over_the_loss_where_another_value_stands_for_it(others: list[str]) -> None:
    names = ["loss", "val_nll", *others]
    run = fakes.running(series={name: curve(name, evaluation=name.startswith("val")) for name in names})
    assert chart_data(run, "loss").evaluation is run.series.get("val_loss")
    charts = [chart_data(run, name) for name in metric_names(run)]
    assert sum(run.series["val_nll"] in data.curves for data in charts) == 1


def test_every_curve_has_a_chart_also_where_two_evaluations_measure_the_same() -> None:
    names = ("val_acc", "test_acc", "acc")
    run = fakes.running(series={name: curve(name, evaluation=name != "acc") for name in names})
    assert metric_names(run) == ["acc", "test_acc"]
    assert chart_data(run, "acc").evaluation is run.series["val_acc"]
    assert chart_data(run, "test_acc").evaluation is run.series["test_acc"]


NAN = math.nan
WITHOUT_A_MEAN = st.sampled_from([(NAN, NAN, NAN), (1.0, 2.0, NAN)])
MEASURED = st.tuples(st.floats(0, 0.5), st.floats(0, 0.5), st.floats(1, 4)).map(
    lambda parts: (parts[2] - parts[0], parts[2] + parts[1], parts[2])
)


def picture(canvas: Canvas) -> list[str]:
    return ["".join(span.text for span in canvas.spans(line)) for line in range(canvas.lines)]


AXES = st.sampled_from([Scale(0, 100), Scale(20, 60), Scale(50, 51)])
VALUES = st.sampled_from([Scale(0.25, 5), Scale(0.25, 5, log=True)])
FOUND = st.lists(st.one_of(MEASURED, MEASURED, WITHOUT_A_MEAN), max_size=80)


@given(FOUND, AXES, VALUES, st.integers(2, 30))
def test_every_value_is_shaded_or_drawn(
    found: list[tuple[float, float, float]], x: Scale, y: Scale, columns: int
) -> None:
    """To half a cell, at any zoom."""
    low, high, mean = (list(column) for column in zip(*found, strict=True)) if found else ([], [], [])
    curve = replace(series(mean), low=low, high=high)
    space, canvas = Frame(x, y, columns, 6), Canvas(columns, 6)
    draw_line(canvas, curve, mean, space, "train")
    draw_range(canvas, curve, space, "train-range", "train")
    cells = picture(canvas)
    for place, least, most in zip(curve.x, low, high, strict=True):
        if least == least and x.low <= place <= x.high:
            column = round((place - x.low) / x.span * (canvas.width - 1)) // 2
            tops = [(1 - (y.position(value) or 0.0)) * 23 for value in (most, least)]
            for line in range(6):
                inside = min(round(tops[1]), line * 4 + 3) - max(round(tops[0]), line * 4) + 1
                assert inside < 3 or cells[line][column] != " "


def test_what_a_log_axis_cannot_hold_leaves_it_at_the_edge() -> None:
    canvas, curve = Canvas(1, 2), replace(series([0.5]), low=[-1.0], high=[3.0])
    space = Frame(Scale(0, 1), Scale(0.1, 10, log=True), 1, 2)
    draw_line(canvas, curve, curve.mean, space, "train")
    draw_range(canvas, curve, space, "train-range", "train")
    assert picture(canvas) == ["░", "⠂"]


def test_a_loss_that_comes_late_takes_the_chart_unless_a_metric_was_chosen() -> None:
    run = fakes.running()
    early = replace(run, series={name: view for name, view in run.series.items() if "loss" not in name})
    for chosen in (False, True):
        chart = LossChart()
        chart.facts = RunFacts(snapshot=early)
        chart._take_facts()
        first = chart._metric
        assert first != "loss"
        chart._is_chosen = chosen
        chart.facts = RunFacts(snapshot=run)
        chart._take_facts()
        assert chart._metric == (first if chosen else "loss")


@pytest.mark.parametrize("width", [24, 60, 80, 100, 200])
@pytest.mark.parametrize("from_the_end", [0, 1, 2, 5, 8, 30])
def test_an_attempt_that_has_just_begun_is_told_at_the_edge_of_the_chart(width: int, from_the_end: int) -> None:
    """Its first point is the newest one, in the last column; the word once began beyond it, which ended the screen."""
    whole = curve(points=200, stride=1, start=2.0, floor=0.1, noise=0.0)
    resumed = replace(whole, attempt_marks=(whole.x[-1 - from_the_end],))
    lines = [line.text for line in draw(ChartData(name="loss", train=resumed), ChartView(), width, 16)]
    assert all(len(line) <= width for line in lines)
    assert width < 60 or any("resumed" in line for line in lines)


@pytest.mark.parametrize(
    ("checkpoint", "first_step", "word"),
    [
        ("/runs/epoch-3.pt", 50, "resumed"),
        ("/runs/epoch-0.pt", 1, "resumed"),
        (None, 1, "restarted"),
        (None, 20, "restarted"),  # its first point is a later one than that of the attempt before it
        ("unknown", 50, "resumed"),
        ("unknown", 1, "restarted"),
    ],
)
def test_an_attempt_that_began_from_the_start_is_not_called_resumed(
    checkpoint: str | None, first_step: int, word: str
) -> None:
    store = SeriesStore()
    store.add([{"attempt": 1, "step": step, "loss": 2.0 / step} for step in range(1, 101)])
    store.add([{"attempt": 2, "step": step, "loss": 1.0 / step} for step in range(first_step, 200)])
    told = {} if checkpoint == "unknown" else {"checkpoint": checkpoint}
    events = (
        RunEvent(1.0, 1, "launched", "attempt 1 started", {"checkpoint": None}),
        RunEvent(2.0, 2, "restart", "attempt 2 started", told),
        RunEvent(3.0, 2, "restart", "again, by rule", {"delay_seconds": 1.0}),
    )
    run = replace(fakes.running(), series=store.views(), events=events)
    shown = "\n".join(line.text for line in draw(chart_data(run, "loss"), ChartView(), 100, 20))
    assert re.findall("restarted|resumed", shown) == [word]


def test_the_axis_is_named_in_whole() -> None:
    counted = replace(curve(), axis="optimizer step")
    assert "optimizer step" in lines(ChartData(name="loss", train=counted), ChartView(), width=70)[0]


@pytest.mark.parametrize("axis", ["step", "optimizer step", "an axis of a program's own"])
def test_a_picture_names_its_axis_whole_and_below_the_ticks(axis: str) -> None:
    run = fakes.running(series={"loss": replace(series([3.0, 2.0, 1.0]), axis=axis)})
    words = [shape for shape in shapes(run, "loss") if shape.kind == "text"]
    (named,) = [shape for shape in words if shape.text == axis]
    (right, line) = named.points[0]
    assert named.anchor == "end"
    assert 0 < right - 10 * len(axis) < right < WIDTH
    assert all(abs(shape.points[0][1] - line) >= 14 for shape in words if shape is not named)
