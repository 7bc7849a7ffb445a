"""The real program on a real pseudo-terminal: it gives the terminal back, whatever ends it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.ui.screens.help import help_rows
from mpstui.ui.screens.runs import RunsScreen
from mpstui.ui.terminal import Terminal as ScreensTerminal

from ..terminal import Terminal
from ..waiting import wait_until

MPSTUI = [sys.executable, "-m", "mpstui"]
LEAVES_THE_ALTERNATE_SCREEN, SHOWS_THE_CURSOR = b"\x1b[?1049l", b"\x1b[?25h"
NO_MOUSE, NO_KITTY_KEYS = b"\x1b[?1003l", b"\x1b[<u"


def given_back(terminal: Terminal) -> bool:
    """Whether everything that was switched on is off again."""
    echoes = termios.tcgetattr(terminal.descriptor)[3] & termios.ECHO
    return bool(echoes) and all(
        code in terminal.raw for code in (LEAVES_THE_ALTERNATE_SCREEN, SHOWS_THE_CURSOR, NO_MOUSE, NO_KITTY_KEYS)
    )


def test_q_gives_the_terminal_back() -> None:
    with Terminal(MPSTUI, columns=80, rows=24) as terminal:
        terminal.wait_text("no runs yet", "launch a profile")
        terminal.press("q")
        assert terminal.wait_exit() == 0
        assert given_back(terminal)


@pytest.mark.parametrize("colours", ["truecolor", ""])
def test_no_color_leaves_a_terminals_own_colours_alone(colours: str) -> None:
    with Terminal(MPSTUI, columns=80, rows=24, env={"NO_COLOR": "1", "COLORTERM": colours}) as terminal:
        terminal.wait_text("no runs yet", "launch a profile")
        assert not re.search(rb"\x1b\[[\d;]*\b(3[0-8]|4[0-8]|9\d|10\d)\b[\d;]*m", bytes(terminal.raw))
        terminal.press("q")
        assert terminal.wait_exit() == 0


FAILS = """
import sys
from mpstui.cli.main import main
from mpstui.ui.screens.runs import RunsScreen

def fail(self):
    token = "hidden" + "-value"
    raise AttributeError("a mistake of ours")

RunsScreen.action_compare = fail
sys.exit(main([]))
"""


def test_a_mistake_of_ours_ends_the_screen_at_once_and_prints_no_values() -> None:
    with Terminal([sys.executable, "-c", FAILS], columns=80, rows=24) as terminal:
        terminal.wait_text("no runs yet")
        terminal.press("C")
        assert terminal.wait_exit() == 1
        assert given_back(terminal)
        left = bytes(terminal.raw).rpartition(LEAVES_THE_ALTERNATE_SCREEN)[2]
        assert b"AttributeError: a mistake of ours" in left
        assert b"No training is affected" in left
        assert b"hidden-value" not in left


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_gives_the_terminal_back(number: signal.Signals) -> None:
    with Terminal(MPSTUI, columns=80, rows=24) as terminal:
        terminal.wait_text("no runs yet")
        terminal.signal(number)
        assert terminal.wait_exit() == 128 + number
        assert given_back(terminal)


def test_a_dead_terminal_ends_the_program_even_where_hangups_are_ignored() -> None:
    terminal = Terminal(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *MPSTUI], columns=80, rows=24)
    with contextlib.suppress(OSError), terminal:
        terminal.wait_text("no runs yet")
        os.close(terminal.descriptor)
        wait_until(lambda: terminal.exit_code() is not None, what="the end of the orphan")


def test_a_terminal_that_hung_up_before_the_screen_began_is_gone() -> None:
    master, slave = os.openpty()
    os.close(master)
    assert ScreensTerminal(slave).gone()
    os.close(slave)
    nothing = os.open(os.devnull, os.O_RDONLY)
    assert not ScreensTerminal(nothing).gone()
    os.close(nothing)


def test_a_frozen_terminal_does_not_outlive_sigterm() -> None:
    with Terminal(MPSTUI, columns=120, rows=40) as terminal:
        terminal.wait_text("no runs yet")
        for _ in range(150):
            os.write(terminal.descriptor, b"?\r")  # opens and closes the page of keys: much to draw, and nobody reads
        wait_until(lambda: _rests(terminal.pid), what="the program to be stuck")
        terminal.signal(signal.SIGTERM)
        wait_until(lambda: terminal.exit_code() is not None, what="the end")
        assert terminal.exit_code() == 128 + signal.SIGTERM


def _rests(pid: int) -> bool:
    """Whether the program uses no time for half a second."""
    process = psutil.Process(pid)
    before = process.cpu_times()
    time.sleep(0.5)
    after = process.cpu_times()
    return bool(after.user - before.user + after.system - before.system < 0.03)


def test_without_a_terminal_it_says_what_else_there_is() -> None:
    done = subprocess.run(MPSTUI, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert "needs a terminal" in done.stderr
    assert "mpstui ps" in done.stderr


def test_a_terminal_that_only_prints_lines_is_not_drawn_on() -> None:
    with Terminal(MPSTUI, columns=80, rows=24, env={"TERM": "dumb"}) as terminal:
        terminal.wait_text("TERM=dumb", "mpstui ps")
        assert terminal.wait_exit() == 1
        assert b"\x1b" not in terminal.raw


def test_the_screen_and_show_tell_the_same_numbers(tmp_path: Path) -> None:
    script = 'for i in 1 2 3; do echo "epoch $i/3 step ${i}0/30 loss 0.${i}234"; done'
    started = subprocess.run(
        [*MPSTUI, "run", "--json", "--name", "same numbers", "--", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    run = json.loads(started.stdout)["run"]
    subprocess.run([*MPSTUI, "wait", run, "--timeout", "60"], timeout=90, check=True, capture_output=True)
    shown = json.loads(subprocess.run([*MPSTUI, "show", run, "--json"], capture_output=True, check=True).stdout)
    with Terminal([*MPSTUI, "--run", run], columns=120, rows=40) as terminal:
        text = terminal.wait_text("same numbers", "finished", "loss 0.3234", f"train {shown['loss']:.4f}")
        assert f"{shown['step']}/{shown['steps']}" in text
        assert f"{shown['epoch']:.0f}/{shown['epochs']:.0f}" in text
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_watch_opens_a_log_that_mpstui_did_not_start(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"epoch {i} loss {1 / i:.4f}\n" for i in range(1, 30)))
    with Terminal([*MPSTUI, "watch", str(log)], columns=100, rows=30) as terminal:
        terminal.wait_text("epoch 29 loss 0.0345")
        with log.open("a") as file:
            file.write("epoch 30 loss 0.0111\n")
            file.flush()
            terminal.wait_text("epoch 30 loss 0.0111", "training")  # as long as somebody has it open for writing
        os.write(terminal.descriptor, b"/epoch 7\r")  # in one piece, as over a slow line
        terminal.wait_text("scrolled", "/epoch 7  1 of 1", "epoch 7 loss 0.1429")
        terminal.press("s")
        terminal.wait_text("only watches it")
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_partial_updates_leave_the_picture_a_full_one_would(tmp_path: Path) -> None:
    log = tmp_path / "train 日本語.log"
    log.write_text("epoch 1 step 1/900 loss 2.5000\n")
    with Terminal([*MPSTUI, "watch", str(log)], columns=90, rows=26) as terminal:
        terminal.wait_text("loss 2.5000")
        with log.open("a") as file:
            for step in range(2, 40):
                file.write(f"epoch {step // 4} 日本{'語' * (step % 3)} step {step}/900 loss {2.5 / step:.4f}\n")
                file.flush()
                terminal.pump(0.04)
        terminal.wait_text("step 39/900", "train 0.06410")  # the log is drawn before the curve
        partial = _settled(terminal)
        terminal.press("?")
        terminal.wait_text("everywhere")
        terminal.press("q")
        wait_until(lambda: "everywhere" not in _after(terminal, 0.2), what="the help to close")
        assert _settled(terminal) == partial
        terminal.press("q")
        terminal.wait_exit()


def _after(terminal: Terminal, seconds: float) -> str:
    terminal.pump(seconds)
    return terminal.text


def _settled(terminal: Terminal) -> list[str]:
    """The body once nothing is drawn there for most of a second."""
    wait_until(lambda: _body(terminal) == _body_after(terminal, 0.7), what="the screen to settle")
    return _body(terminal)


def _body_after(terminal: Terminal, seconds: float) -> list[str]:
    terminal.pump(seconds)
    return _body(terminal)


def _body(terminal: Terminal) -> list[str]:
    """The screen without its first lines, where a clock ticks."""
    return terminal.text.splitlines()[4:]


def test_a_log_that_grows_costs_little_more_than_its_own_lines(tmp_path: Path) -> None:
    """Each new line had every row of the panel written again: 24 kB a second at five lines a second."""
    log, chance = tmp_path / "train.log", random.Random(1)
    lines = [f"step {number} {''.join(chance.choices('abcdefgh ', k=80))}" for number in range(230)]
    log.write_text("".join(f"{line}\n" for line in lines[:200]))
    with Terminal([*MPSTUI, "watch", str(log)], columns=120, rows=40) as terminal:
        terminal.wait_text(lines[199].rstrip())
        terminal.press("2", "z")
        terminal.wait_text(lines[170].rstrip())
        terminal.pump(1.0)
        terminal.raw.clear()
        for line in lines[200:]:
            with log.open("a") as file:
                file.write(f"{line}\n")
            terminal.wait_text(line.rstrip())
        assert len(terminal.raw) < 4 * sum(map(len, lines[200:]))


def test_watch_needs_something_to_watch(tmp_path: Path) -> None:
    done = subprocess.run([*MPSTUI, "watch", str(tmp_path / "absent.log")], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no" in done.stderr


def test_a_page_that_is_scrolled_shows_whole_lines() -> None:
    known = {line.text.strip() for line in help_rows(74, 22, RunsScreen.SCOPES)} | {"↓ more"}
    with Terminal(MPSTUI, columns=80, rows=24) as terminal:
        terminal.wait_text("no runs yet")
        terminal.press("?")
        terminal.wait_text("everywhere", "↓ more")
        for _ in range(3):
            terminal.press("\x1b[6~")
            inner = [line[2:-2].strip() for line in _settled(terminal) if line[1:2] == "│"]
            assert len(inner) > 10
            assert set(inner) <= known
