"""Buckets drawn column by column look as they do one by one."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from mpstui.ui.charting.canvas import Bucket, Canvas, Frame, Scale, draw_buckets

NAN = math.nan
WITHOUT_A_MEAN = st.sampled_from([(NAN, NAN, NAN), (1.0, 2.0, NAN)])
MEASURED = st.tuples(st.floats(0, 0.5), st.floats(0, 0.5), st.floats(1, 4)).map(
    lambda parts: (parts[2] - parts[0], parts[2] + parts[1], parts[2])
)
BUCKETS = st.lists(st.tuples(st.floats(0, 100), st.one_of(MEASURED, MEASURED, WITHOUT_A_MEAN)), max_size=80).map(
    lambda found: [(x, *rest) for x, rest in sorted(found, key=lambda item: item[0])]
)
AXES = st.sampled_from([Scale(0, 100), Scale(20, 60), Scale(50, 51)])
VALUES = st.sampled_from([Scale(0.25, 5), Scale(0.25, 5, log=True)])


def one_by_one(canvas: Canvas, space: Frame, buckets: list[Bucket]) -> None:
    previous: tuple[int, int] | None = None
    for x, low, high, mean in buckets:
        if not space.x.low <= x <= space.x.high:
            previous = None
            continue
        across = round((x - space.x.low) / space.x.span * (canvas.width - 1))
        dots = [space.y.position(value) for value in (low, high, mean)]
        bottom, top, here = (None if dot is None else round((1 - dot) * (canvas.height - 1)) for dot in dots)
        if bottom is not None and top is not None:
            canvas.column(across, top, bottom, "raw")
        if here is not None and previous is not None:
            canvas.line(*previous, across, here, "raw")
        previous = None if here is None else (across, here)


def picture(canvas: Canvas) -> list[str]:
    return ["".join(span.text for span in canvas.spans(line)) for line in range(canvas.lines)]


@given(BUCKETS, AXES, VALUES, st.integers(1, 30))
def test_columns_of_buckets_look_like_the_buckets(buckets: list[Bucket], x: Scale, y: Scale, columns: int) -> None:
    space = Frame(x, y, columns, 6)
    at_once, singly = Canvas(columns, 6), Canvas(columns, 6)
    draw_buckets(at_once, space, "raw", buckets)
    one_by_one(singly, space, buckets)
    assert picture(at_once) == picture(singly)


def test_what_a_log_axis_cannot_hold_leaves_it_at_the_edge() -> None:
    canvas = Canvas(1, 2)
    draw_buckets(canvas, Frame(Scale(0, 1), Scale(0.1, 10, log=True), 1, 2), "raw", [(0.0, -1.0, 3.0, 0.5)])
    assert picture(canvas) == ["⡄", "⡇"]
