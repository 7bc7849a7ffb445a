"""Which image is meant, and its pixels in few colours; whatever a file holds, it ends in pixels or in a reason."""

from __future__ import annotations

import json
import random
import struct
import zlib
from pathlib import Path

import pytest

from mpstui.core.runs import texts
from mpstui.core.runs.gallery import OwnGallery
from mpstui.core.runs.images import NewestImage
from mpstui.core.runs.journal import MOST_TEXTS, EventReader
from mpstui.core.runs.logged import Seen, Wanted, seen_item
from mpstui.core.runs.png import MOST_COLOURS, Pixels, in_few_colours
from mpstui.core.runs.texts import texts_of
from mpstui.wire.rundir import RunDir


def grey(width: int, height: int, shade: int = 128) -> bytes:
    """A PNG of one shade."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    lines = (b"\0" + bytes([shade]) * width) * height
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(chunk, (b"IHDR", b"IDAT", b"IEND"), (head, zlib.compress(lines), b"")))


def chunk(kind: bytes, data: bytes) -> bytes:
    """A piece of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def put(run: RunDir, number: int, step: int | None, name: str, data: bytes | None = None, ending: str = "png") -> None:
    """An image as `report.image` keeps it."""
    run.images.mkdir(parents=True, exist_ok=True)
    file = run.images / f"{number:09d}-1-{'x' if step is None else step}-{name}.{ending}"
    file.write_bytes(grey(4, 4, number % 256) if data is None else data)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


def at(run: RunDir, **wanted: object) -> tuple[str, int | None, int]:
    found = seen_item(OwnGallery(run), Wanted(box=(8, 8), **wanted))  # type: ignore[arg-type]
    assert found.item is not None
    return found.item.name, found.item.step, found.place


def test_the_newest_one_or_another_by_number_step_and_name(run: RunDir) -> None:
    for number, (step, name) in enumerate([(10, "a"), (10, "b"), (20, "a"), (30, "a"), (30, "b"), (40, "a")], 1):
        put(run, number, step, name)
    assert at(run) == ("a", 40, 3)
    assert at(run, name="b") == ("b", 30, 1)
    assert at(run, name="a", after=6, by=-2) == ("a", 20, 1)
    assert at(run, name="a", after=3, by=-9) == ("a", 10, 0)
    assert at(run, name="a", after=6, by=9) == ("a", 40, 3)
    assert at(run, name="b", step=29.5) == ("b", 10, 0)
    assert at(run, name="b", step=1) == ("b", 10, 0)
    assert at(run, step=35) == ("a", 30, 2)
    (run.images / "000000003-1-20-a.png").unlink()  # thinned out meanwhile
    assert at(run, name="a", after=3) == ("a", 10, 0)
    assert seen_item(OwnGallery(run), Wanted()).shelves == (("a", 3, False), ("b", 2, False))


def test_without_a_box_nothing_is_decoded_and_pixels_are_never_more_than_there_are(run: RunDir) -> None:
    put(run, 1, None, "x")
    found = seen_item(OwnGallery(run), Wanted())
    assert (found.kind, found.size, found.pixels, found.why_not) == ("png", (4, 4), None, "")
    pixels = seen_item(OwnGallery(run), Wanted(box=(100, 100))).pixels
    assert pixels is not None
    assert (pixels.width, pixels.height, pixels.palette) == (4, 4, ((1, 1, 1),))


def test_what_cannot_be_drawn_has_a_reason(run: RunDir) -> None:
    assert seen_item(OwnGallery(run), Wanted()) == Seen(why_not="nothing is there any more")
    whole = grey(9, 9)
    broken = (
        whole[:40],
        whole[:-20],
        b"",
        b"GIF89a",
        whole.replace(b"IDAT", b"IDAX"),
        whole[:16] + bytes(8) + whole[24:],
        whole.replace(b"IHDR", b"tEXt"),
        whole[:8] + chunk(b"tEXt", whole[16:29]) + whole[8:16] + bytes(8) + whole[24:],
        whole[:8] + chunk(b"IHDR", whole[16:24]) + whole[33:],
        whole[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", 9, 9, 1, 2, 0, 0, 0)) + whole[33:],  # a bit for each colour
    )
    for number, data in enumerate(broken, 1):
        put(run, number, number, "x", data)
        found = seen_item(OwnGallery(run), Wanted(box=(8, 8)))
        assert found.pixels is None
        assert found.why_not, number
    put(run, 50, 50, "x", b"\xff\xd8\xff\xc0\x00\x0b\x08\x00\x05\x00\x07\x01\x01\x11\0\xff\xda\x00\x02", "jpg")
    found = seen_item(OwnGallery(run), Wanted(box=(8, 8)))
    assert (found.kind, found.size, found.why_not) == (
        "jpeg",
        (7, 5),
        "a terminal is shown PNG alone; reports have this one too",
    )


def test_few_colours_stay_and_many_become_the_averages_of_those_alike() -> None:
    few = Pixels(2, 1, [b"\1\2\3\xff\xfe\xfd"])
    found = in_few_colours(few)
    assert [found.palette[place] for place in found.lines[0]] == [(1, 2, 3), (255, 254, 253)]
    chance = random.Random(1)
    many = Pixels(100, 100, [bytes(chance.randrange(256) for _ in range(300)) for _ in range(100)])
    found = in_few_colours(many)
    assert len(found.palette) == MOST_COLOURS
    wrong = [
        abs(one - other)
        for line, places in zip(many.lines, found.lines, strict=True)
        for x, place in enumerate(places)
        for one, other in zip(line[3 * x : 3 * x + 3], found.palette[place], strict=True)
    ]
    assert sum(wrong) / len(wrong) < 25  # of 256, where no colour is like another


def test_the_number_of_the_newest_image_is_followed(run: RunDir) -> None:
    newest = NewestImage(run)
    assert newest.number() == 0
    for number in (1, 7, 12):
        put(run, number, number, "x")
        assert newest.number() == number
    (run.images / "77-no-image.txt").write_text("")
    assert newest.number() == 12


def text(run: RunDir, name: str, step: int | None, words: str, attempt: int = 1, time: float = 1.0) -> None:
    """A text as `report.text` writes it."""
    record = {
        "time": time + (step or 0),
        "attempt": attempt,
        "event": "text",
        "text": words,
        "name": name,
        "step": step,
    }
    with run.events.open("a") as file:
        file.write(json.dumps(record) + "\n")


def test_texts_stand_beside_images_and_are_found_by_what_is_in_them(run: RunDir) -> None:
    put(run, 1, 10, "cats")
    for step, words in ((10, "a cat\nsat"), (20, "the mat"), (30, "a Cat")):
        text(run, "sample", step, words)
    with run.events.open("a") as file:
        file.write('{"event": "text", "name": 5, "text": "x"}\n{"event": "text", "name"\n{"torn')
    opened = seen_item(OwnGallery(run), Wanted())
    assert opened.shelves == (("cats", 1, False), ("sample", 3, True))
    assert opened.item is not None
    assert opened.item.name == "cats", "an image, though texts were logged after it"
    found = seen_item(OwnGallery(run), Wanted("sample", is_text=True)).item
    assert found is not None
    assert (found.text, found.step) == ("a Cat", 30)
    before = seen_item(OwnGallery(run), Wanted("sample", is_text=True, after=found.number, by=-1)).item
    assert before is not None
    assert (before.text, before.step) == ("the mat", 20)
    matching = seen_item(OwnGallery(run), Wanted("sample", is_text=True, pattern="cat$"))
    assert (matching.shelves, matching.place) == ((("sample", 2, True),), 1)
    assert seen_item(OwnGallery(run), Wanted(pattern="cat")).shelves == (("cats", 1, False), ("sample", 2, True))
    assert seen_item(OwnGallery(run), Wanted(pattern="Cat")).shelves == (("sample", 1, True),)
    assert seen_item(OwnGallery(run), Wanted(pattern="dog")) == Seen(why_not="nothing has that in it")


def test_what_a_later_attempt_says_again_counts_once_and_no_more_is_read_than_a_part(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (10, 20, 30):
        text(run, "x", step, f"first {step}")
    text(run, "x", 20, "again", attempt=2, time=100.0)
    assert [one.text for one in texts_of(run)["x"]] == ["first 10", "again"]
    monkeypatch.setattr(texts, "MOST_READ", 200)
    assert [one.text for one in texts_of(run)["x"]] == ["again"]


def test_texts_push_no_other_event_out(run: RunDir) -> None:
    run.events.write_text('{"time": 0.5, "attempt": 1, "event": "launched", "text": "begun"}\n')
    for step in range(2000):
        text(run, "x", step, "words")
    reader = EventReader(run.events)
    reader.read()
    assert (reader.events[0].text, len(reader.events)) == ("begun", 1 + MOST_TEXTS)
    assert reader.events[-1].details["step"] == 1999
