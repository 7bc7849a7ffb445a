"""What scrolls is whole after each key, on a real terminal: partial updates leave what a full paint would."""

from __future__ import annotations

import fcntl
import signal
import struct
import sys
import termios
from pathlib import Path

import pytest

from mpstui.core.model.home import Home

from ..core.runs.build import RunBuilder
from ..terminal import Terminal
from ..waiting import wait_until

COLUMNS, ROWS = 80, 24
DOWN, PAGE_DOWN, PAGE_UP = "\x1b[B", "\x1b[6~", "\x1b[5~"


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path))
    return Home(tmp_path, tmp_path)


def resize(terminal: Terminal, columns: int) -> None:
    fcntl.ioctl(terminal.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    terminal.signal(signal.SIGWINCH)


def settled(terminal: Terminal) -> str:
    """The screen once nothing more is written to it."""

    def still() -> bool:
        written = len(terminal.raw)
        terminal.pump(0.1)
        return len(terminal.raw) == written

    wait_until(still, what="the screen to settle")
    return terminal.text


def painted_anew(terminal: Terminal) -> str:
    """The screen after the program has painted all of it."""
    resize(terminal, COLUMNS - 8)
    settled(terminal)
    terminal.screen.reset()
    resize(terminal, COLUMNS)
    return settled(terminal)


def test_every_sheet_is_whole_after_it_was_scrolled(home: Home) -> None:
    for number in range(2):
        made = RunBuilder(home, f"run {number}", 1_800_000_000 + number).status("ended").exit(code=0)
        made.launch(env={f"SETTING_{place}": f"{number}" for place in range(30)})
    with Terminal([sys.executable, "-m", "mpstui"], columns=COLUMNS, rows=ROWS) as terminal:

        def whole(shows: str, *keys: str) -> None:
            before = terminal.wait_text(shows)

            def same() -> bool:
                terminal.press("".join(keys))
                scrolled = settled(terminal)
                return before != scrolled == painted_anew(terminal)

            wait_until(same, what=f"a whole picture where {shows} was scrolled", timeout=60.0)

        terminal.wait_text("2 runs")
        terminal.press("?")
        whole("everywhere", PAGE_DOWN, DOWN, PAGE_UP)
        terminal.press("q")
        wait_until(lambda: "2 runs" in settled(terminal), what="the help to close")
        terminal.press("n")
        whole("choose a profile", *[DOWN] * 13)
        terminal.press("\r")
        whole("page down", PAGE_DOWN)
        terminal.press("escape")
        wait_until(lambda: "choose a profile" in settled(terminal), what="the profiles")
        terminal.press("q", "  C")
        whole("SETTING_0", DOWN, DOWN)
