"""What is on the terminal before the screen is: the title and the end of the log, and never a left-over."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyte
import pytest

from mpstui.cli import screen
from mpstui.cli.screen import early_paint, first_frame, last_lines

from ..terminal import Terminal


def shown(title: str, lines: list[str], width: int, height: int) -> list[str]:
    drawn = pyte.Screen(width, height)
    pyte.Stream(drawn).feed(first_frame(title, lines, width, height))
    return [line.rstrip() for line in drawn.display]


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (20, 5), (3, 2)])
def test_nothing_is_drawn_beyond_the_window(size: tuple[int, int]) -> None:
    rows = shown("train.log", ["x" * 500, "汉" * 300, "\x1b[2Jstep 1", *(f"line {i}" for i in range(40))], *size)
    assert len(rows) == size[1]
    if size[0] >= 20:
        assert rows[0] == " train.log"


def test_the_newest_lines_are_shown_as_they_were_drawn_last(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"old\n" * 9000 + b"step 1\r\n\r 10%\r 90% of it\nlast \xff\n")
    assert last_lines(log, 3) == ["step 1", " 90% of it", "last �"]
    assert last_lines(tmp_path / "none.log", 3) == []


def test_a_failure_gives_the_terminal_back(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(screen, "_write", written.append)
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((80, 24)))
    with pytest.raises(ImportError), early_paint("x", None):
        raise ImportError
    assert written[0].startswith("\x1b[?1049h")
    assert written[-1].endswith("\x1b[?1049l")


def test_the_log_is_on_the_terminal_before_the_panels_and_after(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step={i} loss={9 / (1 + i):.4f}\n" for i in range(50)))
    with Terminal([sys.executable, "-m", "mpstui", "watch", str(log)]) as terminal:
        terminal.wait_text("2 log")
        log_at, panels_at = (terminal.raw.find(text) for text in (b"step=49", b"2 log"))
        assert 0 <= log_at < panels_at, "the log comes first"
        terminal.wait_text("0.1800", "step=49")
        terminal.press("q")
        assert terminal.wait_exit() == 0
