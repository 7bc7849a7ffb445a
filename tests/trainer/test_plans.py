"""Floor plans: read as they are stored, refused when they are something else, judged and drawn rightly."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.trainer.floor_plans import record, save, write_folder
from trainer.data import corridor_plans, plan_drawing, plan_graph, plans, synthetic_plans
from trainer.data.plans import CORNERS, FEATURES, BadPlan, Plan
from trainer.errors import UsageError

CORNER_KEY = "corner_list_np_normalized_padding_withsemantics"


def _drawing(places: list[tuple[float, float]], walls: list[tuple[int, int]]) -> Plan:
    corners = np.zeros((CORNERS, FEATURES), np.float32)
    corners[: len(places), :2] = np.reshape(places, (-1, 2))
    joined = np.zeros((CORNERS, CORNERS), bool)
    for one, other in walls:
        joined[one, other] = joined[other, one] = True
    return Plan(corners, np.arange(CORNERS) < len(places), joined)


SQUARE = [(0.0, 0.0), (0.5, 0.0), (0.5, 0.5), (0.0, 0.5)]
AROUND = [(0, 1), (1, 2), (2, 3), (3, 0)]


def test_reads_what_was_stored(tmp_path: Path) -> None:
    plan = synthetic_plans.generated(0, 0, 1)[0]
    found = plans.read_plan(save(tmp_path / "0.npy", record(plan)))
    assert np.array_equal(found.corners, plan.corners)
    assert np.array_equal(found.real, plan.real)
    assert np.array_equal(found.walls, plan.walls)


def test_fourteen_labels_become_seven_kinds_of_room() -> None:
    bits = plans.rooms_of_labels(np.eye(14) * 2)
    assert bits.sum(axis=1).tolist() == [1] * 14
    assert bits.argmax(axis=1).tolist() == [0, 1, 3, 4, 0, 1, 1, 1, 1, 5, 0, 2, 2, 6]


def test_a_file_is_read_when_it_is_asked_for_and_then_kept(tmp_path: Path) -> None:
    train, validation = plans.open_folder(write_folder(tmp_path))
    assert (len(train), len(validation)) == (12, 4)
    assert [path.stem for path in train.paths] == [str(number) for number in range(12)]
    first = train[3]
    train.paths[3].unlink()
    assert np.array_equal(train[3].walls, first.walls)
    train.paths[4].unlink()
    with pytest.raises(UsageError, match=r"4\.npy: cannot be read"):
        train[4]


class _Hostile:
    def __init__(self, touched: Path) -> None:
        self.touched = touched

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {self.touched}",)


def test_a_file_that_would_run_code_is_refused_before_it_does(tmp_path: Path) -> None:
    content = record(synthetic_plans.generated(0, 0, 1)[0]) | {"extra": _Hostile(tmp_path / "touched")}
    path = save(tmp_path / "hostile.npy", content)
    with pytest.raises(BadPlan, match="not allowed in a data file"):
        plans.read_plan(path)
    assert not (tmp_path / "touched").exists()


def test_plans_with_corridors_are_sound_drawn_by_seed_and_have_rooms_that_the_others_lack() -> None:
    found = corridor_plans.generated(0, 1, 60)
    assert all(plan_graph.soundness(plan).sound for plan in found)
    assert max(int(plan.real.sum()) for plan in found) <= corridor_plans.MOST_CORNERS
    assert corridor_plans.generated(0, 2, 1)[0].real.tolist() != found[0].real.tolist()
    slanted, kinds = 0, np.zeros(FEATURES - 2)
    for plan in found:
        places, walls = plan_graph.drawn(plan)
        ends = np.array([places[one] - places[other] for one, other in plan_graph.segments(walls)])
        slanted += bool((np.abs(ends) > 1e-6).all(axis=1).any())
        kinds += plan.corners[:, 2:].any(axis=0)
    assert 20 < slanted < 60
    assert (kinds >= 5).all()


def _without(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda stored: stored.pop(key)


def _with(key: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], object]:
    return lambda stored: stored.__setitem__(key, change(stored[key]))


def _joined_to_padding(edges: Any) -> Any:
    edges[CORNERS - 1] = 1
    return edges


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_without("edges"), "the key edges is missing"),
        (_with("edges", lambda value: value[:-1]), r"edges has the shape \[2808, 1\] instead of \[2809, 1\]"),
        (_with("edges", _joined_to_padding), "edges join a corner that padding_mask calls padding"),
        (_with("padding_mask", lambda value: value * 2), "padding_mask holds other values than 0 and 1"),
        (_with("padding_mask", lambda value: value * 0), "padding_mask leaves 0 corners"),
        (_with("global_matrix_np_padding", lambda value: value.tolist()), "is not an array of numbers"),
        (_with(CORNER_KEY, lambda value: value * np.nan), "holds NaN or infinity"),
        (_with(CORNER_KEY, lambda value: value * 128), r"coordinates reach .* must be \(pixel - 128\) / 128"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], sentence: str
) -> None:
    stored = record(synthetic_plans.generated(0, 0, 1)[0])
    change(stored)
    with pytest.raises(BadPlan, match=sentence):
        plans.read_plan(save(tmp_path / "bad.npy", stored))


def test_files_that_are_no_plans_at_all(tmp_path: Path) -> None:
    truncated = save(tmp_path / "truncated.npy", record(synthetic_plans.generated(0, 0, 1)[0]))
    truncated.write_bytes(truncated.read_bytes()[:5000])
    for path, sentence in (
        (truncated, "cannot be read"),
        (save(tmp_path / "plain.npy", np.zeros(3)), "a plain array"),
        (save(tmp_path / "list.npy", np.array([[1], [1, 2]], dtype=object)), "cannot be read"),
    ):
        with pytest.raises(BadPlan, match=sentence):
            plans.read_plan(path)


def test_a_folder_without_plans_is_refused_with_the_layout(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    with pytest.raises(UsageError, match=r"no \.npy files in train/ .* or leave --data out"):
        plans.open_folder(tmp_path)


def test_generated_plans_are_sound_and_the_same_for_the_same_seed() -> None:
    some, again, others = (synthetic_plans.generated(seed, 1, 40) for seed in (5, 5, 6))
    assert plan_graph.measures(some) == {"closed": 1.0, "connected": 1.0, "crossing": 0.0, "sound": 1.0}
    assert all(plan_graph.aligned(plan) == 1 for plan in some)
    synthetic_plans.generated.cache_clear()
    assert np.array_equal(some[7].corners, synthetic_plans.generated(5, 1, 40)[7].corners)
    assert again is some
    assert not np.array_equal(some[7].corners, others[7].corners)


def test_shuffling_leaves_counts_and_takes_meaning() -> None:
    some = synthetic_plans.generated(0, 1, 50)
    random = np.random.default_rng(0)
    walls = [synthetic_plans.with_walls_shuffled(plan, random) for plan in some]
    assert [plan.walls.sum() for plan in walls] == [plan.walls.sum() for plan in some]
    assert plan_graph.measures(walls)["sound"] < 0.1
    corners = synthetic_plans.with_corners_shuffled(some, random)
    assert [plan.real.sum() for plan in corners] == [plan.real.sum() for plan in some]
    assert np.mean([plan_graph.aligned(plan) for plan in corners]) < 0.8


@pytest.mark.parametrize(
    ("places", "walls", "closed", "connected", "crossing"),
    [
        (SQUARE, AROUND, True, True, 0.0),
        (SQUARE, AROUND[:3], False, True, 0.0),
        ([*SQUARE, (0.9, 0.9)], [*AROUND, (2, 4)], False, True, 0.0),
        ([*SQUARE, (0.9, 0.9)], AROUND, False, False, 0.0),
        (SQUARE, [*AROUND, (0, 2), (1, 3)], False, True, 2 / 6),
        ([*SQUARE, (0.8, 0.0), (0.9, 0.0), (0.9, 0.1)], [*AROUND, (4, 5), (5, 6), (6, 4)], True, False, 0.0),
        ([], [], False, False, 0.0),
    ],
    ids=["square", "open", "loose end", "lone corner", "diagonals", "two houses", "nothing"],
)
def test_soundness(
    places: list[tuple[float, float]], walls: list[tuple[int, int]], closed: bool, connected: bool, crossing: float
) -> None:
    found = plan_graph.soundness(_drawing(places, walls))
    assert (found.closed, found.connected, found.crossing) == (closed, connected, crossing)


def test_rooms_are_the_enclosed_faces() -> None:
    plan = _drawing([*SQUARE, (1.0, 0.0), (1.0, 0.5)], [*AROUND, (1, 4), (4, 5), (5, 2)])
    assert sorted(sorted(room) for room in plan_graph.rooms(*plan_graph.drawn(plan))) == [[0, 1, 2, 3], [1, 2, 4, 5]]


def test_drawings_are_valid_and_show_rooms_and_walls(tmp_path: Path) -> None:
    some = list(synthetic_plans.generated(0, 1, 6))
    vector, raster = plan_drawing.write(some, tmp_path / "deep" / "sheet", "six plans")
    drawn = ElementTree.fromstring(vector.read_text())
    space = "{http://www.w3.org/2000/svg}"
    assert drawn.findtext(f"{space}title") == "six plans"
    assert len(drawn.findall(f".//{space}circle")) == sum(plan.real.sum() for plan in some)
    assert len(drawn.findall(f".//{space}polygon")) >= 6 * 3
    content = raster.read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert (width, height) == (640, 320)
    start = content.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", content[start - 8 : start - 4])
    pixels = np.frombuffer(zlib.decompress(content[start : start + length]), np.uint8).reshape(height, -1)[:, 1:]
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) >= 6
