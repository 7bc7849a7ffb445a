"""Charts in pixels, on a real pseudo-terminal whose other end answers as a terminal with pixels does."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.ui.charting.data import ChartData
from mpstui.ui.charting.pixels import rasterise
from mpstui.ui.charting.plot import GUTTER, ChartView, frame
from mpstui.ui.graphics import KITTY_QUESTION, QUESTION, Answers, Cell, Graphics, Raster, may_ask, png, sixel
from mpstui.ui.theme import OWN_THEME, RUN_ROLES, ink_of, pixel_inks
from mpstui.ui.widgets.comparison_pixels import curves_picture
from mpstui.ui.widgets.overlay import draw_overlay, overlay, overlay_frame
from tests.core.runs.build import RunBuilder, make_home

from . import fakes
from .pixel_terminal import Colour, PixelTerminal, png_pixels, sixel_pixels

MPSTUI = [sys.executable, "-m", "mpstui"]
INKS = pixel_inks(OWN_THEME) or {}
PIXELS = ("kitty", "iterm", "sixel")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Metrics of a training that falls from 2 to 1 and breaks at its end."""
    source, path = random.Random(1), tmp_path / "train.jsonl"
    values = [2 - step / 1000 + source.random() / 10 for step in range(1000)] + [math.nan] * 30
    path.write_text("".join(f"{json.dumps({'step': step, 'loss': value})}\n" for step, value in enumerate(values)))
    return path


def watching(log: Path, kind: str, *options: str, **env: str) -> PixelTerminal:
    return PixelTerminal([*MPSTUI, "watch", *options, str(log)], kind, env=env)


def until(terminal: PixelTerminal, condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        terminal.pump()
        assert time.monotonic() < deadline, f"never: {what}; the screen was:\n{terminal.text}"


def drawn_in_characters(terminal: PixelTerminal) -> bool:
    return any("⠀" < cell <= "⣿" for cell in terminal.text)


def only_pixels_in(inks: Sequence[Colour], terminal: PixelTerminal) -> bool:
    """Whether each of these is in the picture, and nothing is drawn in characters as well."""
    return all(terminal.near(ink) for ink in inks) and not drawn_in_characters(terminal)


def falls_over_all_of_the_plot(terminal: PixelTerminal) -> bool:
    line = terminal.near(INKS["teal"])
    if not line or drawn_in_characters(terminal):
        return False
    left, right = min(line), max(line)
    return left[1] < right[1] - 3 and left[0] < 9 < 90 < right[0]


def bare_below(text: str, terminal: PixelTerminal) -> bool:
    """Whether a text in view has no pixels at its place."""
    places = [(row.find(text), y) for y, row in enumerate(terminal.text.splitlines())]
    return any(x >= 0 and terminal.pixel(x + 0.5, y) is None for x, y in places)


def quiet(terminal: PixelTerminal) -> int:
    """How many pictures were sent, once none has come for a second."""
    told = -1
    while told != terminal.told:
        told, deadline = terminal.told, time.monotonic() + 1
        while time.monotonic() < deadline:
            terminal.pump()
    return told


@pytest.mark.parametrize("kind", PIXELS)
def test_a_chart_is_drawn_in_pixels_and_makes_way(kind: str, log: Path) -> None:
    with watching(log, kind) as terminal:
        terminal.wait_text("train", "NaN/inf from step 1,000")
        until(terminal, lambda: len(terminal.shown) == 12 and falls_over_all_of_the_plot(terminal), "the picture")
        until(terminal, lambda: kind == "kitty" or bare_below("✗ NaN/inf", terminal), "the note upon it")

        terminal.press("left", "left", "left", "left")
        until(terminal, lambda: len({x for x, _ in terminal.near(INKS["cursor"])}) == 1, "one cursor")
        terminal.wait_text("step")

        terminal.press("?")
        terminal.wait_text("show all keys")
        until(terminal, lambda: not terminal.near(INKS["teal"]), "no pixels below a dialog")
        until(terminal, lambda: drawn_in_characters(terminal), "the curve beside the dialog")
        terminal.press("escape")
        until(terminal, lambda: falls_over_all_of_the_plot(terminal), "the picture again")

        if kind == "kitty":
            another_size_takes_it_away(terminal)
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_exit() == 128 + signal.SIGTERM
        assert kind != "kitty" or not terminal.shown


@pytest.mark.parametrize("kind", ["kitty", "sixel"])
def test_the_small_charts_of_all_metrics_are_drawn_in_pixels(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    lines = ({"step": step, "loss": 2 - step / 500, "acc": step / 1000, "lr": 0.1} for step in range(400))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with watching(path, kind) as terminal:
        terminal.wait_text("train")
        terminal.press("g")
        terminal.wait_text("metrics of", "▌loss 1.202", "acc 0.3990", "lr 0.1000")
        until(terminal, lambda: not drawn_in_characters(terminal), "no curve in characters")
        until(terminal, lambda: len({one.y for one in terminal.shown.values()}) > 1, "pictures below each other")
        for side in (range(50), range(50, 100)):
            inside = lambda side=side: any(int(x) in side for x, _ in terminal.near(INKS["teal"]))  # noqa: E731
            until(terminal, inside, f"a curve in {side}")
        told = quiet(terminal)
        terminal.press("right")  # the focus alone moves
        terminal.wait_text("▌acc 0.3990")
        assert quiet(terminal) == told
        terminal.press("escape")
        terminal.wait_text("1 chart", "2 log")
        until(
            terminal,
            lambda: bool(line := terminal.near(INKS["teal"])) and max(y for _, y in line) < 16,
            "one chart",
        )


@pytest.mark.parametrize("kind", ["kitty", "sixel"])
def test_curves_that_are_compared_are_drawn_in_pixels(kind: str, tmp_path: Path) -> None:
    home = make_home(tmp_path)
    for lr in (1, 2, 3):
        run = RunBuilder(home, f"train lr={lr}", time.time() + lr).status("ended").launch().exit(code=0)
        path = run.run.attempt(1).launch
        path.write_text(json.dumps({**json.loads(path.read_text()), "argv": ["python", "t.py", "--lr", str(lr)]}))
        run.points(*({"attempt": 1, "step": step, "loss": lr - step / 500} for step in range(200)))
    with PixelTerminal(MPSTUI, kind, env={"MPSTUI_HOME": str(home.state)}) as terminal:
        terminal.wait_text("lr=1", "finished")
        terminal.press("*", "C")
        terminal.wait_text("lower is better")
        inks = [ink_of(OWN_THEME, role) for role in RUN_ROLES[:3]]
        until(terminal, lambda: only_pixels_in(inks, terminal), "curves")
        terminal.press("?")
        terminal.wait_text("show all keys")
        until(terminal, lambda: not terminal.shown or kind != "kitty", "characters behind a page")
        terminal.press("escape")
        until(terminal, lambda: "show all keys" not in terminal.text, "the page to close")
        until(terminal, lambda: only_pixels_in(inks, terminal), "the curves again")
        terminal.press("p")
        terminal.wait_text("best")
        until(terminal, lambda: only_pixels_in([INKS["title"]], terminal), "the lines between the axes")


def another_size_takes_it_away(terminal: PixelTerminal) -> None:
    """Until the cells are measured again; no part of an answer is a key, however late the rest of it comes."""
    terminal.answers = False
    terminal.resize(90, 24)
    until(terminal, lambda: not terminal.shown and terminal.asked == 2, "no pixels, and a question")
    until(terminal, lambda: drawn_in_characters(terminal), "the curve in characters")
    os.write(terminal.descriptor, b"\x1b_Gi=31;OK\x1b\\\x1b[6;20;10t\x1b[?62;22")
    terminal.pump(0.3)
    os.write(terminal.descriptor, b"c")
    until(terminal, lambda: len(terminal.shown) == 11, "the picture of the smaller window")
    assert "show all keys" not in terminal.text


def test_a_terminal_without_pixels_has_characters(log: Path) -> None:
    with watching(log, "none") as terminal:
        terminal.wait_text("train", "NaN/inf from step 1,000", "⠤")
        assert terminal.asked == 1
        assert not terminal.told


def test_pixels_can_be_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[screen]\ngraphics = "off"\n')
    with PixelTerminal(MPSTUI, "sixel", env={"MPSTUI_HOME": str(tmp_path)}) as terminal:
        terminal.wait_text("no runs yet")
        terminal.press("q")
        assert terminal.wait_exit() == 0
        assert not terminal.asked


class Clock:
    """Stands still, else a busy machine would be a slow line."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


def heard(answers: str, environ: dict[str, str], clock: Clock | None = None) -> list[Graphics | None]:
    """What is made of answers; with a clock, of those that come 0.16 s later."""
    found: list[Graphics | None] = []
    listener = Answers(found.append, environ)
    listener.question()
    if clock is not None:
        clock.now += 0.16
    assert listener.without(f"x{answers}y") == "xy"
    return found


def test_what_a_terminal_says_decides() -> None:
    cell, can = "\x1b[6;18;9t", "\x1b[?62;4;22c"
    kitty = heard(f"\x1b_Gi=31;OK\x1b\\{cell}{can}", {"TERM": "xterm-kitty"})[0]
    assert kitty is not None
    assert (kitty.kind, kitty.cell) == ("kitty", Cell(9, 18))
    kinds = [
        found and found.kind
        for answers, name in (
            (f"\x1b_Gi=31;EINVAL\x1b\\{cell}\x1b[?62;22c", "xterm-kitty"),
            (cell + can, "foot"),
            (cell + "\x1b[?1;2c", "xterm"),
            (can, "foot"),
            ("\x1b[6;0;0t" + can, "foot"),
        )
        for found in heard(answers, {"TERM": name})
    ]
    assert kinds == [None, "sixel", None, None, None]
    iterm = heard(cell + can, {"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"})[0]
    assert iterm is not None
    assert iterm.kind == "iterm"


def test_over_ssh_pictures_need_a_fast_line(clock: Clock) -> None:
    cell, can, remote = "\x1b[6;18;9t", "\x1b[?62;4;22c", {"TERM": "foot", "SSH_CONNECTION": "1 2 3 4"}
    assert heard(cell + can, remote)[0] is not None
    assert heard(cell + can, remote, clock) == [None]
    assert heard(cell + can, {"TERM": "foot"}, clock)[0] is not None


def test_an_answer_in_pieces_is_no_key_and_no_key_is_lost(clock: Clock) -> None:
    found: list[Graphics | None] = []
    answers = Answers(found.append, {"TERM": "xterm-kitty"})
    assert answers.question() == KITTY_QUESTION + QUESTION
    whole = "a\x1b_Gi=31;OK\x1b\\\x1b[6;18;9tb\x1b[?62;4;22cd"
    assert "".join(answers.without(character) for character in whole) == "abd"
    assert found[0] is not None
    assert answers.without("\x1b") == "\x1b", "the escape key waits for nothing once the answer is there"
    assert answers.without("\x1b[A\x1b[200~c\x1b[201~\x1b[<0;5;5M") == "\x1b[A\x1b[200~c\x1b[201~\x1b[<0;5;5M"
    answers.question()
    assert answers.without("\x1b") == ""
    clock.now += 0.11
    assert answers.late() == "\x1b", "and little while one is awaited"
    assert answers.without("\x1b[?62;4") == ""
    clock.now += 0.11
    assert answers.late() == "", "what cannot be a key never is one"
    assert answers.without("cx") == "x"


def test_a_terminal_that_never_answers_delays_no_key(clock: Clock) -> None:
    answers = Answers(print, {"TERM": "foot"})
    answers.question()
    assert answers.without("\x1b") == ""
    clock.now += 5
    assert answers.late() == "\x1b"
    assert answers.without("\x1b") == "\x1b"


def test_a_multiplexer_is_not_asked_and_apc_is_for_those_that_know_it() -> None:
    assert may_ask({"TERM": "foot"})
    assert not any(may_ask({"TERM": term}) for term in ("screen-256color", "tmux-256color", "linux", "dumb"))
    assert not may_ask({"TERM": "foot", "TMUX": "/tmp/tmux"})
    assert not may_ask({"TERM": "foot", "STY": "1.tty"})
    assert Answers(print, {"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}).question() == QUESTION


def painted(seed: int, columns: int = 9, lines: int = 4) -> Raster:
    source, raster = random.Random(seed), Raster(columns, lines, Cell(7, 15), (10, 20, 30))
    inks = [raster.ink((source.randrange(256), source.randrange(256), source.randrange(256))) for _ in range(4)]
    for _ in range(400):
        top = source.uniform(-5, raster.height)
        raster.stroke(source.randrange(-2, 70), top, top + source.uniform(0, 20), source.choice(inks))
    return raster


@pytest.mark.parametrize("seed", range(4))
def test_what_is_encoded_is_what_was_painted(seed: int) -> None:
    raster = painted(seed)
    assert len(raster.palette) > 10, "with soft edges"
    rows = [[raster.palette[column[y]] for column in raster.columns] for y in range(raster.height)]
    assert png_pixels(png(raster.columns, raster.palette)) == rows
    decoded = sixel_pixels(sixel(raster.columns, raster.palette)[len("\x1bP9;1q") : -2])
    assert len(decoded) == raster.height // 6 * 6, "never a row beyond the last line"
    for mine, theirs in zip(rows, decoded, strict=False):
        pairs = zip(sum(mine, ()), sum(theirs, ()), strict=True)
        assert max(abs(one - other) for one, other in pairs) <= 2


def test_a_png_says_its_size() -> None:
    raster = Raster(3, 2, Cell(10, 20), (0, 0, 0))
    assert struct.unpack(">II", png(raster.columns, raster.palette)[16:24]) == (30, 40)


def test_pictures_keep_to_their_rate_on_average(clock: Clock) -> None:
    slow, fast = Graphics("kitty", Cell(7, 15), remote=True), Graphics("kitty", Cell(7, 15))
    for graphics, rate in ((slow, 450), (fast, 700)):
        for size in (4000, 0, 2000):
            graphics.sent(size)
        assert graphics.next - clock.now == pytest.approx(6000 / rate, abs=0.1)


def test_an_image_of_kitty_is_replaced_before_the_old_one_goes() -> None:
    graphics, raster = Graphics("kitty", Cell(7, 15)), painted(1)
    first, second, third = (graphics.strip(0, raster.strips()[0], raster.palette) for _ in range(3))
    ids = [one.partition("i=")[2].partition(",")[0] for one in (first, second, third)]
    assert ids[0] == ids[2] != ids[1]
    assert "a=d" not in first
    assert second.endswith(f"\x1b_Ga=d,d=I,i={ids[0]},q=2\x1b\\")
    assert all(len(piece) < 4300 for piece in first.split("\x1b\\"))
    assert graphics.gone() == f"\x1b_Ga=d,d=I,i={ids[2]},q=2\x1b\\"
    assert graphics.gone() == ""


def test_no_curve_goes_through_a_label() -> None:
    """kitty shows text over the picture: a letter with a line through it is hard to read."""
    runs = [replace(fakes.finished(), series={"loss": fakes.curve(points=200, floor=low)}) for low in (0.3, 0.6)]
    data, view, cell = overlay(runs, "step"), ChartView(), Cell(8, 16)
    space = overlay_frame(data, view, 80, 20)
    assert space is not None
    words = draw_overlay(data, view, 80, 20, bare=True)
    raster = curves_picture(data, view, space, None, cell, OWN_THEME, None, words).raster
    labels = [(x - GUTTER, y) for y, one in enumerate(words[:-1]) for x, text in enumerate(one.text) if text in "12"]
    labels = [(x, y) for x, y in labels if x >= 0]
    assert labels
    for x, y in labels:
        assert not any(any(column[y * 16 : y * 16 + 16]) for column in raster.columns[x * 8 : x * 8 + 8])
    assert any(map(any, raster.columns))


def test_few_points_are_joined_by_a_line() -> None:
    """Their ranges alone were specks."""
    steps = list(range(0, 300, 10))
    values = [2.0 + (place % 2) for place in range(30)]
    curve = replace(
        fakes.curve(points=30), x=steps, low=values, high=values, mean=values, smooth=[9.0] * 30, attempt_marks=()
    )
    data, view = ChartData(name="loss", train=curve), ChartView(left=0.0, right=290.0)
    space = frame(data, view, 100, 20)
    assert space is not None
    inks = pixel_inks(OWN_THEME) or {}
    raster = rasterise(data, view, space, Cell(8, 16), inks)
    ink = raster.ink(inks["trainrange"])
    empty = sum(ink not in column for column in raster.columns)
    assert empty < len(raster.columns) / 10
