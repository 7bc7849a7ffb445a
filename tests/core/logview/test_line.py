"""One line as a person sees it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.logview.line import LONGEST_SHOWN, begins_error, level_of, make_line, visible


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain\n", "plain"),
        (b"windows\r\n", "windows"),
        (b" 10%|#   | 1/10\r 20%|##  | 2/10\r 30%|### | 3/10", " 30%|### | 3/10"),
        (b" 10%|#   | 1/10\r 20%|##  | 2/10\r", " 20%|##  | 2/10"),
        (b"bar 50%\r       \r", "bar 50%"),
        (b"1/9\x08\x08\x082/9", "2/9"),
        (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        (b"\x1b[2K\x1b[1Gdrawn again", "drawn again"),
        (b"\x1b]0;a title\x07text", "text"),
        (b"\0\0\0nul\0s", "nuls"),
        (b"caf\xc3\xa9 \xff torn \xe2\x82", "café \ufffd torn \ufffd"),
        (b"", ""),
    ],
)
def test_what_is_left_on_the_screen(raw: bytes, shown: str) -> None:
    assert visible(raw) == shown


def test_colours_become_spans() -> None:
    line = make_line(b"an \x1b[1;31merror\x1b[0m here\n", 0, 10)
    assert line.text == "an error here"
    assert [(span.start, span.end, span.codes) for span in line.spans] == [(3, 8, "1;31")]


def test_a_line_of_megabytes_is_cut_with_a_mark() -> None:
    line = make_line(b"x" * 60_000, 0, 60_000, missing=1_000_000)
    assert line.text.startswith("x" * LONGEST_SHOWN + " …")
    assert "1,055,904 more" in line.text
    assert line.hidden_characters == 60_000 - LONGEST_SHOWN + 1_000_000


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("Traceback (most recent call last):", "error"),
        ('  File "train.py", line 3, in <module>', "error"),
        ("RuntimeError: MPS backend out of memory (MPS allocated: 8.00 GB)", "error"),
        ("torch.OutOfMemoryError: x", "error"),
        ("KeyboardInterrupt", "error"),
        ("2026-01-01 ERROR worker died", "error"),
        ("[rank1]: ValueError: no", "error"),
        ("zsh: Killed: 9  python train.py", "error"),
        ("Segmentation fault (core dumped)", "error"),
        ("train.py:3: UserWarning: slow", "warning"),
        ("WARNING:root:careful", "warning"),
        ("INFO epoch 3", "info"),
        ("epoch 3 mean_error 0.1 val_error=0.2", None),
        ("rel error 1e-3, errors: 0", None),
        ("3.14 42", None),
        ("", None),
    ],
)
def test_levels(text: str, level: str | None) -> None:
    assert level_of(text) == level


def test_the_frames_of_a_traceback_are_no_errors_of_their_own() -> None:
    assert begins_error("Traceback (most recent call last):")
    assert not begins_error('  File "train.py", line 3, in <module>')


@given(st.binary(max_size=400).map(lambda raw: raw.replace(b"\n", b"")))
def test_no_bytes_leave_a_control_in_the_text(raw: bytes) -> None:
    line = make_line(raw, 0, len(raw))
    assert all(c == "\t" or c.isprintable() or ord(c) > 0xA0 for c in line.text)
    assert all(0 <= span.start < span.end <= len(line.text) for span in line.spans)
