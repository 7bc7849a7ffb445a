"""The images of a run on the screen: drawn, by words, by step and name, and one moment with its run."""

from __future__ import annotations

import struct
import time
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.model.errors import OperationError
from mpstui.core.model.snapshot import RunEvent, RunSnapshot
from mpstui.core.runs.logged import Seen, Wanted
from mpstui.ui.screens.images import ImagesScreen
from mpstui.ui.screens.run import RunScreen
from mpstui.ui.theme import ANSI_THEME, OWN_256_LIGHT_THEME
from mpstui.wire.rundir import RunDir
from tests.core.runs.build import RunBuilder, make_home
from tests.core.runs.test_logged import chunk, grey, put, text

from . import fakes
from .driving import Driver, drive
from .pixel_terminal import PixelTerminal
from .test_graphics import MPSTUI, until


def with_images(folder: Path, *images: tuple[int, str], newest: int | None = None) -> RunSnapshot:
    """A run that logged images at these steps under these names."""
    for number, (step, name) in enumerate(images, 1):
        put(RunDir(folder), number, step, name)
    return replace(fakes.running(), dir=folder, images=len(images) if newest is None else newest)


SIX = ((1100, "samples"), (1100, "maps"), (2200, "samples"), (3300, "samples"), (3300, "maps"), (4400, "samples"))


def drawn(driver: Driver) -> int:
    """Cells that show pixels."""
    screen = driver.app.screen
    assert isinstance(screen, ImagesScreen)
    return sum(strip.cell_length for strip in screen.view._cells)


def test_steps_and_names_are_chosen_and_the_newest_is_followed(tmp_path: Path) -> None:
    run = with_images(tmp_path, *SIX)

    async def play(driver: Driver) -> None:
        await driver.press("I")
        await driver.sees("samples · step 4,400 ·")
        assert "6 images" in driver.text
        assert "4 of 4 · newest" in driver.text
        assert "4 x 4 PNG" in driver.text
        assert " loss 1." in driver.text  # as it was at that step
        assert drawn(driver) > 100
        await driver.press("left")
        await driver.sees("samples · step 3,300 ·")
        assert "3 of 4" in driver.text
        assert "newest ·" not in driver.text
        await driver.press("down")
        await driver.sees("maps · step 3,300 ·")
        await driver.burst("left", "up")
        await driver.sees("samples · step 1,100 ·")
        await driver.burst("right", "right", "right", "left")
        await driver.sees("samples · step 3,300 ·")
        await driver.press("home")
        await driver.sees("1 of 4")
        put(RunDir(tmp_path), 7, 5500, "samples")
        await driver.press("G")
        await driver.sees("step 5,500 ·")
        put(RunDir(tmp_path), 8, 6600, "samples")
        driver.world.monitor.snapshots = (replace(run, images=8),)
        await driver.sees("step 6,600 ·")
        assert "6 of 6 · newest" in driver.text

    drive(fakes.world((run,)), play, size=(120, 30), opening=run.run)


def test_run_and_images_are_at_one_moment(tmp_path: Path) -> None:
    run = with_images(tmp_path, *SIX)

    async def play(driver: Driver) -> None:
        await driver.sees("I images")
        await driver.press("I")
        await driver.sees("samples · step 4,400 ·")
        await driver.press("left", "left")
        await driver.sees("samples · step 2,200 ·")
        await driver.press("escape")
        screen = driver.app.screen
        assert isinstance(screen, RunScreen)
        moment = screen._moments.moment
        assert moment is not None
        assert moment.step == 2200
        await driver.sees("at step 2,200")
        await driver.press("left", "I")  # from there on
        await driver.sees("samples · step 1,100 ·")
        await driver.press("escape")
        assert screen._moments.moment is not None  # nothing was chosen: the run stays where it was
        await driver.press("I")
        await driver.sees("step 1,100 ·")
        await driver.press("G")
        await driver.sees("· newest")
        await driver.press("escape")
        assert screen._moments.moment is None

    drive(fakes.world((run,)), play, size=(160, 40), opening=run.run)


def test_without_images_the_key_is_in_no_footer_and_says_why(tmp_path: Path) -> None:
    run = with_images(tmp_path)

    async def play(driver: Driver) -> None:
        await driver.press("I")
        await driver.hears("nothing was logged")
        assert "I images" not in driver.text
        await driver.press("ctrl+p", *"images")
        await driver.sees("not now: nothing was logged")

    drive(fakes.world((run,)), play, size=(200, 40), opening=run.run)


def test_the_palette_leads_to_them(tmp_path: Path) -> None:
    run = with_images(tmp_path, *SIX)

    async def play(driver: Driver) -> None:
        await driver.press("ctrl+p", *"images", "enter")
        await driver.sees("samples · step 4,400 ·")

    drive(fakes.world((run,)), play, opening=run.run)


@pytest.mark.parametrize("size", [(20, 8), (20, 3), (1, 1), (60, 15), (80, 24), (200, 60)])
def test_every_window_has_what_fits(tmp_path: Path, size: tuple[int, int]) -> None:
    run = with_images(tmp_path, *SIX)

    async def play(driver: Driver) -> None:
        await driver.press("I")
        screen = driver.app.screen
        assert isinstance(screen, ImagesScreen)
        await driver.until(lambda: screen.view.seen is not None)
        await driver.pilot.pause()
        assert all(len(line) <= size[0] for line in driver.lines)
        if size[1] >= 8:
            await driver.sees("4 of 4")
            assert "logged by" in driver.lines[0]
            assert drawn(driver) > 0

    drive(fakes.world((run,)), play, size=size, opening=run.run, theme=OWN_256_LIGHT_THEME)


def test_without_colours_words_tell_what_there_is(tmp_path: Path) -> None:
    run = with_images(tmp_path, (1100, "a%1B%5B31m\u202e"))

    async def play(driver: Driver) -> None:
        await driver.press("I")
        await driver.sees("4 x 4 pixels, PNG")
        assert drawn(driver) == 0
        assert str(tmp_path)[:30] in driver.text
        assert "\x1b" not in driver.text

    drive(fakes.world((run,)), play, opening=run.run, theme=ANSI_THEME)


def test_what_is_half_written_or_no_image_says_so_and_the_others_are_there(tmp_path: Path) -> None:
    run = with_images(tmp_path, (1100, "x"), newest=3)
    put(RunDir(tmp_path), 2, 2200, "x", grey(9, 9)[:30])
    put(RunDir(tmp_path), 3, 3300, "x", b"\x1b[2J")

    async def play(driver: Driver) -> None:
        await driver.press("I")
        await driver.sees("not drawn: it is neither PNG nor JPEG")
        assert "000000003-1-3300-x.png" in driver.text.replace("\n", "").replace(" ", "")
        await driver.press("left")
        await driver.sees("not drawn: it ends too early")
        await driver.press("left")
        await driver.sees("step 1,100 ·")
        await driver.until(lambda: drawn(driver) > 0)
        (tmp_path / "images" / "000000001-1-1100-x.png").unlink()
        for file in (tmp_path / "images").iterdir():
            file.unlink()
        await driver.press("right")
        await driver.sees("nothing is there any more")

    drive(fakes.world((run,)), play, size=(100, 30), opening=run.run)


def test_a_line_that_does_not_answer_is_named_and_asked_again(tmp_path: Path) -> None:
    run = with_images(tmp_path, *SIX)
    world = fakes.world((run,))
    ask, dead = world.services.image, [True]

    def image(snapshot: RunSnapshot, wanted: Wanted) -> Seen:
        if dead[0]:
            raise OperationError("gpu1: no answer yet")
        return ask(snapshot, wanted)

    world.services.image = image  # type: ignore[method-assign]

    async def play(driver: Driver) -> None:
        await driver.press("I")
        await driver.sees("gpu1: no answer yet")
        dead[0] = False
        driver.world.monitor.snapshots = (replace(run, note="new"),)
        await driver.sees("samples · step 4,400 ·")
        dead[0] = True
        await driver.press("left")
        await driver.sees("gpu1: no answer yet")
        assert "samples · step 4,400 ·" in driver.text  # what was there stays
        assert "3 of 4" in driver.text
        dead[0] = False
        driver.world.monitor.snapshots = (replace(run, note="newer"),)
        await driver.sees("samples · step 3,300 ·")
        assert "no answer" not in driver.text

    drive(world, play, size=(100, 30), opening=run.run)


def test_thousands_of_images_are_no_other_matter(tmp_path: Path) -> None:
    run = with_images(tmp_path, *((step, f"name {step % 20:02}") for step in range(1, 2001)))

    async def play(driver: Driver) -> None:
        await driver.press("I")
        await driver.sees("100 of 100")
        assert "2,000 images" in driver.text
        await driver.press("pageup")
        await driver.sees("90 of 100")
        await driver.press("up")
        await driver.sees("▌name 19")

    drive(fakes.world((run,)), play, opening=run.run)


def test_texts_are_read_searched_and_scrolled(tmp_path: Path) -> None:
    run, of = with_images(tmp_path, (1100, "samples")), RunDir(tmp_path)
    long = "\n".join(f"line {number}" for number in range(90))
    for step, words in ((1100, "once there was\na fox"), (2200, "a hen \x1b[2J"), (3300, long)):
        text(of, "story", step, words, time=4e9)
    run = replace(run, events=(*run.events, RunEvent(time=9e9, attempt=1, event="text", text="x")))

    async def play(driver: Driver) -> None:
        await driver.sees("I images")
        await driver.press("I")
        await driver.sees("1 image · 3 texts")
        await driver.sees("▌samples")
        await driver.press("down", "G")
        await driver.sees("▌¶ story")
        await driver.sees("line 0")
        assert "line 40" not in driver.text
        await driver.press(*["J"] * 40)
        await driver.sees("line 40")
        await driver.press("left")
        await driver.sees("a hen")
        assert "\x1b" not in driver.text
        await driver.press("slash", *"fox")
        await driver.sees("a fox")
        assert "1 of 1" in driver.text
        assert "samples" not in driver.text
        await driver.press("enter", "escape")
        await driver.sees("1 image · 3 texts")
        await driver.press("slash", *"nothing", "enter")
        await driver.sees("nothing has that in it")
        await driver.press("escape")
        await driver.sees("1 image · 3 texts")
        await driver.press("escape")
        await driver.until(lambda: isinstance(driver.app.screen, RunScreen))

    drive(fakes.world((run,)), play, opening=run.run)


@pytest.mark.parametrize("kind", ["kitty", "iterm", "sixel"])
def test_pixels_are_shown_where_the_terminal_can_and_make_way(kind: str, tmp_path: Path) -> None:
    home = make_home(tmp_path)
    run = RunBuilder(home, "one", time.time()).status("ended").launch().exit(code=0).run
    put(run, 1, 10, "x", coloured(90, 60, b"\xff\0\0", b"\0\0\xff"))
    put(run, 2, 20, "x", coloured(90, 60, b"\0\xff\0", b"\0\0\xff"))
    red, green, blue = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    with PixelTerminal([*MPSTUI, run.run], kind, env={"MPSTUI_HOME": str(home.state)}) as terminal:
        terminal.wait_text("I images")
        until(terminal, lambda: terminal.asked > 0, "the question")
        terminal.press("I")
        terminal.wait_text("2 of 2")
        until(terminal, lambda: bool(terminal.near(green)), "the newest one")
        upper, lower = terminal.near(green), terminal.near(blue)
        assert max(y for _, y in upper) < min(y for _, y in lower)
        assert "▀" not in terminal.text
        terminal.press("left")
        until(terminal, lambda: bool(terminal.near(red)), "the one before")
        until(terminal, lambda: not terminal.near(green), "and that alone")
        terminal.press("?")
        terminal.wait_text("show all keys")
        until(terminal, lambda: not terminal.near(red), "no pixels below a dialog")
        terminal.press("escape")
        until(terminal, lambda: bool(terminal.near(red)), "the picture again")
        terminal.press("escape")
        until(terminal, lambda: not terminal.near(red), "none on the run's screen")


def coloured(width: int, height: int, upper: bytes, lower: bytes) -> bytes:
    """A PNG of two colours, one above the other."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    lines = (b"\0" + upper * width) * (height // 2) + (b"\0" + lower * width) * (height - height // 2)
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(chunk, (b"IHDR", b"IDAT", b"IEND"), (head, zlib.compress(lines), b"")))


def test_names_and_slider_can_be_clicked(tmp_path: Path) -> None:
    run = with_images(tmp_path, *SIX)

    async def play(driver: Driver) -> None:
        await driver.press("I")
        await driver.sees("samples · step 4,400 ·")
        await driver.pilot.click("ImageView", offset=(3, 2))
        await driver.sees("maps · step 3,300 ·")
        slider = next(y for y, line in enumerate(driver.lines) if "2 of 2" in line)
        await driver.pilot.click("ImageView", offset=(1, slider))
        await driver.sees("maps · step 1,100 ·")
        await driver.press("up")
        await driver.sees("samples · step 1,100 ·")

    drive(fakes.world((run,)), play, opening=run.run)
