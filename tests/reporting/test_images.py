"""``report.image``: what it takes, how much of it is kept, and that it is read by nobody's word but its own."""

from __future__ import annotations

import base64
import errno
import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpstui import reporting
from mpstui.core.model.home import Home
from mpstui.core.runs.images import image_in, images_of, read_image
from mpstui.core.runs.png import decoded
from mpstui.core.sharing import page_images
from mpstui.core.sharing.page import page
from mpstui.wire.rundir import RunDir
from tests.core.runs.build import FakeClock, RunBuilder, make_home, make_monitor
from tests.core.sharing.test_page import data_of
from tests.reporting.test_report import events, report_to

JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    b"\xff\xfe\x00\x0ca comment!\xff\xe1\x00\x08where\xff"
    b"\xff\xc0\x00\x0b\x08\x00\x05\x00\x07\x01\x01\x11\0\xff\xda\x00\x08\x01\x01\0\0\x3f\0\x12\x34\xff\xd9"
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A monotonic time that moves when told."""
    now = [1000.0]
    monkeypatch.setattr("mpstui.reporting.time.monotonic", lambda: now[0])
    return now


def pixels(folder: Path) -> list[list[bytes]]:
    run = RunDir(folder)
    found = [read_image(run, one.file) for one in images_of(run)]
    return [decoded(one.data, (one.width, one.height), (0, 0, 0)).lines for one in found]


class Torch:
    """As a tensor of torch behaves, without one."""

    def __init__(self, of: Any) -> None:
        self._of, self.shape, self.dtype = of, of.shape, f"torch.{of.dtype}"

    def permute(self, *order: int) -> Torch:
        return Torch(self._of.transpose(*order))

    def clip(self, low: int, high: int) -> Torch:
        return Torch(self._of.clip(low, high))

    def __getitem__(self, place: Any) -> Torch:
        return Torch(self._of[place])

    def __mul__(self, by: int) -> Torch:
        return Torch(self._of * by)

    def detach(self) -> Torch:
        return self

    cpu = detach

    def byte(self) -> Torch:
        return Torch(self._of.astype("uint8"))

    def numpy(self) -> Any:
        return self._of


def test_arrays_of_every_shape_become_the_same_pixels(tmp_path: Path) -> None:
    report = report_to(tmp_path)
    image = np.arange(2 * 6 * 3, dtype="uint8").reshape(2, 6, 3)
    report.image("as it is", image, step=1)
    report.image("channels first", image.transpose(2, 0, 1) / 255 * 1.001)
    report.image("tensor", Torch(image.transpose(2, 0, 1)[None].astype("float32") / 255 * 1.001))
    report.image("wider numbers", image.astype("int64") + 0)
    report.image("grey", np.array([[False, True]]))
    report.image("too large", np.zeros((2000, 10)))
    *same, grey, large = pixels(tmp_path)
    assert same == [[bytes(range(18)), bytes(range(18, 36))]] * 4
    assert grey == [b"\0\0\0\xff\xff\xff"]
    assert (len(large), len(large[0])) == (667, 4 * 3)
    assert not events(tmp_path)


def test_files_bytes_and_what_saves_itself(tmp_path: Path, clock: list[float]) -> None:
    class Saves:
        def save(self, into: Any, *, format: str) -> None:  # noqa: A002 - Pillow's name
            into.write(JPEG if format == "png" else b"")

    report = report_to(tmp_path)
    (tmp_path / "x.jpg").write_bytes(JPEG)
    report(loss=1.0, step=7)
    for name, image in (("a/b é", tmp_path / "x.jpg"), ("bytes", JPEG), ("saves", Saves()), ("text", str(tmp_path))):
        report.image(name, image)
    for place, bad in enumerate((5, None, b"GIF89a", np.zeros((5, 5, 9)), b"\xff\xd8\xff" + bytes(5 << 20))):
        report.image(f"bad {place}", bad)
    run = RunDir(tmp_path)
    assert [(one.name, one.step, one.attempt) for one in images_of(run)] == [
        ("a/b é", 7, 1),
        ("bytes", 7, 1),
        ("saves", 7, 1),
    ]
    found = read_image(run, images_of(run)[0].file)
    assert (found.kind, found.width, found.height) == ("jpeg", 7, 5)
    assert b"comment" not in found.data  # nor where it was taken
    assert b"where" not in found.data
    assert [one["text"].partition(" is left out: ")[2] for one in events(tmp_path)] == [
        f"{str(tmp_path)!r} is no file",
        "int is no image",
        "NoneType is no image",
        "it is neither PNG nor JPEG",
        "its shape is (5, 5, 9)",
        "it is larger than 4 MiB",
    ]
    report(loss=1.0, step=8)  # it goes on
    assert report.is_on


def test_an_image_for_which_there_is_no_room_is_said_to_be_left_out(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_to(tmp_path)
    report(loss=1.0, step=1)
    with monkeypatch.context() as full:
        full.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
        report.image("x", JPEG)
    assert images_of(RunDir(tmp_path)) == ()
    assert [one["text"] for one in events(tmp_path)] == ["report.image('x') is left out: it could not be written"]
    clock[0] += 10.0
    report.image("x", JPEG)
    assert len(images_of(RunDir(tmp_path))) == 1


def test_few_are_kept_and_the_older_ones_thinned(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "MOST_IMAGES", 10)
    report = report_to(tmp_path)
    for step in range(40):
        report.image("one", JPEG, step=step)
        report.image("one", JPEG, step=step)  # too soon
        clock[0] += 1.0
    steps = [one.step for one in images_of(RunDir(tmp_path))]
    assert len(steps) <= 10
    assert (steps[0], steps[-1]) == (0, 39)
    for place in range(30):
        report.image(f"more {place}", JPEG)
    assert len({one.name for one in images_of(RunDir(tmp_path))}) == 20
    monkeypatch.setattr(reporting, "MOST_BYTES_OF_IMAGES", len(JPEG) * 8)
    clock[0] += 100.0
    report.image("one", JPEG, step=41)
    assert len([one for one in images_of(RunDir(tmp_path)) if one.name == "one"]) <= 6
    assert not report_to(tmp_path, RANK="1", WORLD_SIZE="2").image("ranks", JPEG)  # type: ignore[func-returns-value]
    assert "ranks" not in {one.name for one in images_of(RunDir(tmp_path))}


def test_a_later_attempt_takes_the_place_of_what_it_repeats(tmp_path: Path, clock: list[float]) -> None:
    for attempt, steps in (("1", (10, 20, 30)), ("2", (20, 40))):
        report = report_to(tmp_path, MPSTUI_ATTEMPT=attempt)
        for step in steps:
            report.image("x", JPEG, step=step)
            clock[0] += 1.0
    found = [(one.attempt, one.step) for one in images_of(RunDir(tmp_path))]
    assert found == [(1, 10), (2, 20), (2, 40)]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, depth: int, colour: int, lines: bytes, *more: tuple[bytes, bytes]) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = ((b"IHDR", head), *more, (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in parts)


KINDS = (
    (png(2, 1, 8, 0, b"\0\x10\x20"), [b"\x10\x10\x10\x20\x20\x20"]),
    (png(2, 1, 8, 2, b"\1\1\2\3\1\1\1"), [b"\1\2\3\2\3\4"]),
    (png(1, 2, 8, 2, b"\0\1\2\3\2\xff\1\1"), [b"\1\2\3", b"\0\3\4"]),
    (png(2, 2, 8, 0, b"\0\4\6\3\2\2"), [b"\4\4\4\6\6\6", b"\4\4\4\7\7\7"]),
    (png(2, 2, 8, 0, b"\0\4\6\4\2\2"), [b"\4\4\4\6\6\6", b"\6\6\6\x08\x08\x08"]),
    (png(9, 1, 1, 0, b"\0\x80\x80"), [b"\xff" * 3 + b"\0" * 21 + b"\xff" * 3]),
    (png(2, 1, 4, 3, b"\0\x10", (b"PLTE", b"\1\2\3\4\5\6")), [b"\4\5\6\1\2\3"]),
    (png(2, 1, 8, 3, b"\0\0\1", (b"PLTE", b"\1\2\3\4\5\6"), (b"tRNS", b"\0")), [b"\x09\x09\x09\4\5\6"]),
    (png(1, 1, 16, 6, b"\0\x64\0\x64\0\0\0\x80\0"), [b"\x36\x36\4"]),
)


@pytest.mark.parametrize("place", range(len(KINDS)))
def test_a_png_of_every_kind_becomes_pixels(place: int) -> None:
    data, lines = KINDS[place]
    known = image_in(data)
    assert decoded(known.data, (known.width, known.height), (9, 9, 9)).lines == lines


def test_pixels_are_averaged_into_a_box_or_repeated() -> None:
    data = png(4, 2, 8, 0, b"\0\x00\x10\x20\x30\0\x10\x20\x30\x40")
    assert decoded(data, (2, 2), (0, 0, 0)).lines == [b"\x10" * 3 + b"\x30" * 3]
    assert decoded(data, (8, 4), (0, 0, 0)).lines[0][:6] == b"\0" * 6


def test_damaged_and_lying_images_are_refused() -> None:
    good = png(4, 2, 8, 0, b"\0\x00\x10\x20\x30\0\x10\x20\x30\x40")
    for size in range(len(good) - 12):
        with pytest.raises(ValueError):
            decoded(image_in(good[:size]).data, (4, 2), (0, 0, 0))
    for size in range(len(JPEG) - 12):
        with pytest.raises(ValueError):
            image_in(JPEG[:size])
    for lie in (png(9000, 2, 8, 0, b""), png(0, 2, 8, 0, b""), b"<svg/>"):
        with pytest.raises(ValueError):
            image_in(lie)
    bomb = png(8000, 8000, 8, 2, b"\0" * (1 << 20))
    for lie in (bomb, png(4, 2, 8, 9, b""), png(4, 2, 3, 0, b""), png(4, 2, 8, 0, b"\7\0\0\0\0" * 2)):
        with pytest.raises(ValueError):
            decoded(lie, (4, 2), (0, 0, 0))


def test_names_in_the_folder_are_believed_no_more_than_what_is_in_it(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert images_of(run) == ()
    run.images.mkdir()
    for name in ("1-1-5-a.png", "x-1-1-b.png", "1-1.png", ".2-1-1-c.png.9.tmp", "3-1-1-d.gif"):
        (run.images / name).write_bytes(b"")
    os.mkfifo(run.images / "4-1-1-pipe.png")
    (run.images / "5-1-1-link.png").symlink_to("/etc/passwd")
    assert [one.name for one in images_of(run)] == ["a"]
    for file in ("1-1-5-a.png", "../events.jsonl", "4-1-1-pipe.png", "9-1-1-none.png"):
        with pytest.raises((OSError, ValueError)):
            read_image(run, file)


def images_in(html: str) -> list[dict[str, Any]]:
    found = data_of(html)["images"]
    assert isinstance(found, list)
    return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def test_the_page_has_them_within_bounds(home: Home, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunBuilder(home).status("ended").launch().exit(code=0)
    report = report_to(run.run.path)
    for step in range(12):
        report.image("</script>", JPEG, step=step)
        clock[0] += 1.0
    report.image("b", image := png(1, 1, 8, 0, b"\0\1", (b"tEXt", b"Author\0me")), step=3)
    shown = make_monitor(home, FakeClock()).snapshot(run.run.run)
    html = page([shown])
    one, other = images_in(html)
    assert (one["name"], one["count"], [shot["step"] for shot in one["shots"]]) == ("</script>", 12, [*range(12)])
    assert one["shots"][0]["src"].startswith("data:image/jpeg;base64,")
    sent = base64.b64decode(other["shots"][0]["src"].partition(",")[2])
    assert (b"me" in image, b"Author" in sent, sent[:4]) == (True, False, b"\x89PNG")
    for step in (4, 5):
        report.text(f"<b>\na hen at {step} \x1b[2J", name="story", step=step)
    story = images_in(html := page([make_monitor(home, FakeClock()).snapshot(run.run.run)]))[2]
    assert [shot["text"] for shot in story["shots"]] == ["<b>\na hen at 4 ", "<b>\na hen at 5 "]
    assert (story["name"], story["text"], html.count("a hen at 4")) == ("story", True, 1)
    monkeypatch.setattr(page_images, "BYTES_ON_A_PAGE", len(JPEG) * 2 * 4)
    one = images_in(page([shown]))[0]
    assert [shot["step"] for shot in one["shots"]] == [2, 5, 8, 11]
    assert json.dumps(one).count("base64") == 4
