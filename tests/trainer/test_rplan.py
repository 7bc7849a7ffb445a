"""RPLAN's pictures become the plans they show, and what is no plan is left out with the reason."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.trainer.running import command
from trainer.data import plan_graph, rplan
from trainer.data.plans import BadPlan, read_plan
from trainer.data.synthetic_plans import generated

OUTER_WALL, INNER_WALL, INNER_DOOR = 14, 16, 17
Picture = npt.NDArray[np.uint8]


def picture(number: int) -> tuple[Picture, npt.NDArray[np.int64]]:
    """The label of every pixel of a generated plan, and where its corners are: walls are 4 pixels thick, some open."""
    plan = generated(5, 1, number + 1)[number]
    places, walls = plan_graph.drawn(plan)
    spots = np.rint(places * 128 + 128).astype(int)
    labels = np.full((256, 256), rplan.OUTSIDE, np.uint8)
    for kind, walk in enumerate(plan_graph.rooms(places, walls)):
        (left, top), (right, bottom) = spots[walk].min(axis=0).tolist(), spots[walk].max(axis=0).tolist()
        labels[top:bottom, left:right] = kind % 10
    for one, other in plan_graph.segments(walls):
        (left, right), (top, bottom) = (
            sorted((spots[one][0], spots[other][0])),
            sorted((spots[one][1], spots[other][1])),
        )
        labels[max(0, top - 2) : bottom + 2, max(0, left - 2) : right + 2] = INNER_WALL
        door = labels[top + 4 : top + 9, left + 2 : right - 2]
        door[door == INNER_WALL] = INNER_DOOR
    return labels, spots


def png(labels: Picture, path: Path) -> Path:
    """A picture of four channels, each line behind another of PNG's filters."""
    pixels = np.zeros((256, 256, 4), np.uint8)
    pixels[:, :, 1], pixels[:, :, 3] = labels, 255
    flat = np.pad(pixels, ((1, 0), (1, 0), (0, 0))).reshape(257, 257 * 4).astype(int)
    lines = []
    for row in range(1, 257):
        kind = row % 5
        now, left, up, corner = flat[row, 4:], flat[row, :-4], flat[row - 1, 4:], flat[row - 1, :-4]
        guess = left + up - corner
        nearest = np.stack([abs(guess - one) for one in (left, up, corner)]).argmin(axis=0)
        told = (0 * now, left, up, (left + up) // 2, np.choose(nearest, [left, up, corner]))[kind]
        lines.append(bytes([kind]) + ((now - told) % 256).astype(np.uint8).tobytes())
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 256, 256, 8, 6, 0, 0, 0)), (b"IDAT", zlib.compress(b"".join(lines)))]
    parts.append((b"IEND", b""))
    made = b"".join(struct.pack(">I", len(data)) + kind + data + bytes(4) for kind, data in parts)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + made)
    return path


@pytest.mark.parametrize("number", range(6))
def test_a_picture_is_the_plan_that_it_shows(tmp_path: Path, number: int) -> None:
    labels, spots = picture(number)
    read = rplan.read_labels(png(labels, tmp_path / "1.png"))
    assert np.array_equal(read, labels)
    np.save(tmp_path / "1.npy", np.array(rplan.plan_of(read), dtype=object), allow_pickle=True)
    plan = read_plan(tmp_path / "1.npy")
    found = np.rint(plan.corners[plan.real, :2] * 128 + 128).astype(int)
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, spots.tolist()))
    assert plan_graph.soundness(plan).sound
    assert plan.corners[plan.real, 2:].any(axis=1).all()


def test_a_folder_of_pictures_is_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pictures").mkdir()
    for number in range(20):
        png(picture(number % 6)[0], tmp_path / "pictures" / f"{number}.png")
    blank = np.full((256, 256), rplan.OUTSIDE, np.uint8)
    png(blank, tmp_path / "pictures" / "99.png")
    (tmp_path / "pictures" / "98.png").write_bytes(b"no picture")
    words = ("prepare", "rplan", "--from", str(tmp_path / "pictures"), "--to", str(tmp_path / "plans"))
    assert command(*words) == 0
    told = capsys.readouterr().out
    assert "1 left out: it shows no room" in told
    assert "1 left out: is no PNG file" in told
    assert len(list((tmp_path / "plans" / "val").glob("*.npy"))) <= 2
    assert command("gsdiff", "--data", str(tmp_path / "plans"), "--check-data") == 0
    assert command(*words) == 2
    assert "has plans already" in capsys.readouterr().err


def test_a_few_pictures_leave_one_to_validate_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pictures").mkdir()
    for number in range(3):
        png(picture(number)[0], tmp_path / "pictures" / f"{number}.png")
    assert command("prepare", "rplan", "--from", str(tmp_path / "pictures"), "--to", str(tmp_path / "plans")) == 0
    assert "1 in train/, 1 in val/, 1 in test/" in capsys.readouterr().out


def test_slanted_walls_and_too_many_corners_are_no_plan() -> None:
    slanted = np.full((256, 256), rplan.OUTSIDE, np.uint8)
    for row in range(40, 200):
        slanted[row, row // 2 + 10 : row // 2 + 100] = 1
    with pytest.raises(BadPlan, match=r"explain only \d+% of its rooms|corners, a plan has 53 at most"):
        rplan.plan_of(slanted)
    crowded = np.full((256, 256), OUTER_WALL, np.uint8)
    places = random.Random(0).sample(range(64), 64)
    for place in places:
        top, left = 8 + place // 8 * 30, 8 + place % 8 * 30
        crowded[top : top + 26, left : left + 26] = place % 10
    with pytest.raises(BadPlan, match="81 corners, a plan has 53 at most"):
        rplan.plan_of(crowded)
