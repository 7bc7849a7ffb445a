"""Bytes to lines: redraws, escapes, encodings, limits, and nothing that can reach a terminal."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpstui.core.formats.console import (
    PENDING_LIMIT,
    ConsoleFrame,
    FrameSplitter,
    colour_only,
    strip_controls,
    style_spans,
)

PIECES = st.lists(
    st.sampled_from(
        [
            *(b"loss 0.5", b"\r", b"\n", b"\r\n", b"\x1b[A", b"\x1b[2K", b"\x1b[31m", b"\x08\x08", b"\0"),
            *("é".encode(), b"\xe9", b"\x1b]0;t\x07", b"\x1b["),
        ]
    ),
    max_size=30,
).map(b"".join)  # fmt: skip


def lines(data: bytes, *, size: int = 0) -> list[str]:
    """The lines that a terminal shows: of the frames drawn over each other the last visible one wins."""
    splitter = FrameSplitter()
    pieces = [data[i : i + size] for i in range(0, len(data), size)] if size else [data]
    frames = [frame for piece in pieces for frame in splitter.feed(piece)]
    shown, drawn = list[str](), ""
    for frame in (*frames, *splitter.close()):
        text = strip_controls(frame.text)
        drawn = text if text.strip() else drawn
        if frame.ends_line:
            shown.append(drawn)
            drawn = ""
    return [*shown, drawn] if drawn else shown


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\ntwo\r\nthree\n", ["one", "two", "three"]),
        (b"\r 10%\r 20%\r100%\nnext\n", ["100%", "next"]),
        (b"bar 3/3\r          \r\n", ["bar 3/3"]),
        (b"12%\x08\x08\x0899%\n", ["99%"]),
        (b"\x1b[31mred\x1b[0m and \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", ["red and link"]),
        (b"\0\0\0\0after the hole\n", ["after the hole"]),
        (b"\xef\xbb\xbfbom\n", ["bom"]),
        ("训练损失 0.5\n".encode("gb18030"), ["训练损失 0.5"]),
        ("loss é 0.5\n".encode("utf-16"), ["loss é 0.5"]),
        ("loss 0.5\n".encode("utf-16-le"), ["loss 0.5"]),
        (b"broken \xff\xfe here\n", ["broken \ufffd\ufffd here"]),
        (b"unfinished", ["unfinished"]),
    ],
)
def test_lines_as_a_person_sees_them(data: bytes, expected: list[str]) -> None:
    assert lines(data) == expected
    assert lines(data, size=1) == expected


def test_every_frame_of_a_redrawn_line_is_kept_for_the_metrics() -> None:
    frames = FrameSplitter().feed(b"first loss 1\rsecond loss 2\x1b[Athird\n")
    assert [frame.text for frame in frames] == ["first loss 1", "second loss 2", "third"]
    assert [frame.ends_line for frame in frames] == [False, False, True]


def test_colour_is_kept_apart_from_text() -> None:
    (frame,) = FrameSplitter().feed(b"\x1b[1;32mok\x1b[0m plain \x1b[2J\x1b[31mred\n")
    text, spans = style_spans(colour_only(frame.text))
    assert text == "ok plain red"
    assert [(text[s.start : s.end], s.codes) for s in spans] == [("ok", "1;32"), ("red", "31")]


def test_a_line_without_end_stays_within_bounds() -> None:
    splitter = FrameSplitter()
    frames: list[ConsoleFrame] = []
    pushed = 0
    for _ in range(40):
        frames += splitter.feed(b"x" * 10_000)
        pushed += 10_000
        assert pushed - sum(len(frame.text) for frame in frames) <= PENDING_LIMIT
    frames += splitter.feed(b"\n")
    assert all(frame.cut for frame in frames)
    assert sum(len(frame.text) for frame in frames) == 400_000


@given(PIECES, st.integers(min_value=1, max_value=5))
def test_lines_do_not_depend_on_the_chunks(data: bytes, size: int) -> None:
    assert lines(data, size=size) == lines(data)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda b: b.decode("latin-1")))
def test_stripped_text_cannot_move_a_cursor(text: str) -> None:
    safe = strip_controls(text)
    bad = [c for c in safe if unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n"]
    assert not bad
    assert strip_controls(safe) == safe


@given(st.text(max_size=100), st.sampled_from(["\x1b[31m", "\x1b[0m", "\x1b[1;4m", "\x1b]0;", "\x9b"]))
def test_spans_lie_within_the_plain_text(text: str, code: str) -> None:
    plain, spans = style_spans(text + code + text)
    assert plain == strip_controls(plain)
    assert all(0 <= span.start < span.end <= len(plain) for span in spans)


@pytest.mark.parametrize(
    "unit", [b"\x1b]", b"\x1b[", b"\x9d", b"\r", b"\x08", b"\x1b[31", b"\x1bP", b"\xc2\x9b", b"\xc2\x9d"]
)
def test_hostile_bytes_take_linear_time(unit: bytes) -> None:
    data = (unit * (300_000 // len(unit))) + b"\n"
    started = time.process_time()
    lines(data)
    assert time.process_time() - started < 3.0


@settings(max_examples=50)
@given(st.binary(max_size=600))
def test_any_bytes_are_lines(data: bytes) -> None:
    assert all("\x1b" not in line and "\r" not in line for line in lines(data))
