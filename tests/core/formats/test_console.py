"""Bytes to lines: redraws, escapes, encodings, limits, and nothing that can reach a terminal."""

from __future__ import annotations

import pickle
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpstui.core.formats.console import (
    PENDING_LIMIT,
    FrameSplitter,
    colour_only,
    decode_line,
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


def frames(data: bytes, *, size: int = 0) -> list[str]:
    """What was drawn between the movements of the cursor, where it shows anything."""
    splitter = FrameSplitter()
    pieces = [data[i : i + size] for i in range(0, len(data), size)] if size else [data]
    found = b"".join([splitter.feed(piece) for piece in pieces])
    texts = (strip_controls(decode_line(frame)) for frame in (found + b"".join(splitter.close())).split(b"\n"))
    return [text for text in texts if text and not text.isspace()]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\ntwo\r\nthree\n", ["one", "two", "three"]),
        (b"\r 10%\r 20%\r100%\nnext\n", [" 10%", " 20%", "100%", "next"]),
        (b"first\rsecond\x1b[Athird\x1b[2;3Hfourth\x1b[1Gfifth\n", ["first", "second", "third", "fourth", "fifth"]),
        (b"bar 3/3\r          \r\n", ["bar 3/3"]),
        (b"12%\x08\x08\x0899%\n", ["12%", "99%"]),
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
def test_every_frame_is_kept_for_the_metrics(data: bytes, expected: list[str]) -> None:
    assert frames(data) == expected
    assert frames(data, size=1) == expected


def test_colour_is_kept_apart_from_text() -> None:
    text, spans = style_spans(colour_only("\x1b[1;32mok\x1b[0m plain \x1b[2J\x1b[31mred"))
    assert text == "ok plain red"
    assert [(text[s.start : s.end], s.codes) for s in spans] == [("ok", "1;32"), ("red", "31")]


@pytest.mark.parametrize("piece", [1000, 10_000, 1_000_000])
def test_a_line_without_end_is_counted_and_not_kept(piece: int) -> None:
    splitter, data = FrameSplitter(), b"before\n" + b"x" * 400_000 + b"\nafter\n"
    found, held = b"", 0
    for start in range(0, len(data), piece):
        found += splitter.feed(data[start : start + piece])
        held = max(held, len(pickle.dumps(splitter)))
    assert [line for line in found.split(b"\n") if len(line) <= PENDING_LIMIT] == [b"before", b"after", b""]
    assert held < PENDING_LIMIT + 1000
    assert splitter.too_long == (piece < 400_000)


@given(PIECES, st.integers(min_value=1, max_value=5))
def test_frames_do_not_depend_on_the_chunks(data: bytes, size: int) -> None:
    assert frames(data, size=size) == frames(data)


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
    "unit",
    [b"\x1b]", b"\x1b[", b"\x9d", b"\r", b"\x08", b"\x1b[31", b"\x1bP", b"\xc2\x9b", b"\xc2\x9d", b"\x1b[A", b"\x1b"],
)
def test_hostile_bytes_take_linear_time(unit: bytes) -> None:
    started = time.process_time()
    frames((unit * (300_000 // len(unit))) + b"\n")
    assert time.process_time() - started < 3.0


@settings(max_examples=50)
@given(st.binary(max_size=600))
def test_any_bytes_are_frames(data: bytes) -> None:
    assert all("\x1b" not in line and "\r" not in line for line in frames(data))


@pytest.mark.parametrize(
    "moved",
    [
        b"\x1b[E",
        b"\x1b[B",
        b"\x1b[2F",
        b"\x1b8",
        b"\x1b[u",
        b"\x1b[2J",
        b"\x1b[2K",
        b"\x1b[1A\x1b[2K",
        b"\x1b[H\x1b[2J",
    ],
)
@pytest.mark.parametrize("size", [0, 1])
def test_what_is_drawn_elsewhere_or_over_what_was_erased_is_another_line(moved: bytes, size: int) -> None:
    assert frames(b"loss 0.5" + moved + b"loss 0.4" + moved + b"loss 0.3\n", size=size) == [
        "loss 0.5",
        "loss 0.4",
        "loss 0.3",
    ]


@pytest.mark.parametrize("size", [0, 1])
def test_what_the_cursor_has_moved_past_parts_words(size: int) -> None:
    assert frames(b"loss\x1b[5C0.5\x1b[40Gacc 0.9\n", size=size) == ["loss 0.5 acc 0.9"]
