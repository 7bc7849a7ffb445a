"""Images and texts in the files of trackers: their names, steps and places, whatever else is said in them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from mpstui.core.formats import media
from mpstui.core.formats.files.tensorboard import TensorBoard
from mpstui.core.formats.files.wandb import WandbFile
from mpstui.core.formats.media import Media
from mpstui.core.formats.stores import find_runs
from mpstui.core.formats.stores.tensorboard import EventCurves
from mpstui.core.model.kept import Kept
from tests import wandb_files as w

PNG = b"\x89PNG\r\n\x1a\n and so on"


def told(kept: Kept) -> tuple[str, int | None, str | None]:
    return kept.name, kept.step, kept.text


def of_wandb(path: Path, rows: list[bytes]) -> tuple[Kept, ...]:
    file = WandbFile(w.write(path / "run-a.wandb", rows))
    file.poll()
    return file.media.found


def test_a_row_names_the_files_of_its_images(tmp_path: Path) -> None:
    image = {"_type": "image-file", "path": "media/images/a_7.png", "format": "png", "width": 8}
    several = {"_type": "images/separated", "filenames": ["media/images/b_0.png", "media/images/b_1.png"], "count": 2}
    rows = [
        w.history(7, {"a": image, "loss": 0.5, "b": several}),
        w.field(2, w.field(1, w.item(["old"], image, plain_key=True)) + w.field(1, w.item(["_step"], 8))),
    ]
    found = of_wandb(tmp_path, rows)
    files = {(one.name, one.step, Path(one.file).relative_to(tmp_path / "files").as_posix()) for one in found}
    assert files == {
        ("a", 7, "media/images/a_7.png"),
        ("b", 7, "media/images/b_0.png"),
        ("b", 7, "media/images/b_1.png"),
        ("old", 8, "media/images/a_7.png"),
    }
    assert [one.number for one in found] == [1, 2, 3, 4]
    assert found[0].time == w.START + 7


def test_texts_of_a_row_are_kept_and_what_describes_a_value_is_none(tmp_path: Path) -> None:
    values = {
        "sample": 'a "word"\nand é',
        "nested": {"said": "hello"},
        "hist": {"_type": "histogram", "bins": [1], "note": "of it"},
        "graph": {"_type": "graph-file", "path": "media/graph/g.json", "log_mode": "IMMUTABLE"},
        "odd": math.inf,
        "_private": "hidden",
    }
    found = of_wandb(tmp_path, [w.history(3, values)])
    assert sorted(map(told, found)) == [("nested.said", 3, "hello"), ("sample", 3, 'a "word"\nand é')]


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "media/../../x.png", "", 7, None, "a\0b"])
def test_a_path_that_leaves_the_folder_is_none(tmp_path: Path, path: object) -> None:
    assert of_wandb(tmp_path, [w.history(0, {"a": {"_type": "image-file", "path": path}})]) == ()


def test_a_look_at_the_end_of_a_long_log_counts_nothing_twice(tmp_path: Path) -> None:
    rows = [w.history(step, {"loss": 0.5, "said": f"{step} {'x' * 900}"}) for step in range(400)]
    file = WandbFile(w.write(tmp_path / "run-a.wandb", rows))
    assert file.glance()
    at_the_end = len(file.media.found)
    file.poll()
    assert (at_the_end, [one.step for one in file.media.found]) == (0, list(range(400)))


def test_images_and_texts_of_events_as_older_and_newer_writers_keep_them(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    old = w.field(1, "old") + w.field(4, w.field(1, 8) + w.field(2, 8) + w.field(4, PNG + b"1"))
    values = [
        old,
        w.tensor_of("new", "images", b"8", b"8", PNG + b"2", PNG + b"3"),
        w.tensor_of("said/text_summary", "text", "first é".encode()),
        w.tensor_of("layout", "custom_scalars", b"\x0a\x02ab"),
        w.field(1, "loss") + b"\x15\0\0\0\x3f",
    ]
    path.write_bytes(b"".join(w.event(5, value) for value in values))
    file = TensorBoard(path)
    points = file.poll()
    assert [point.loss for point in points] == [0.5]
    found = file.media.found
    assert [told(one) for one in found] == [
        ("old", 5, None), ("new", 5, None), ("new", 5, None), ("said", 5, "first é"),
    ]  # fmt: skip
    data = path.read_bytes()
    assert [data[one.offset : one.offset + one.bytes] for one in found[:3]] == [PNG + b"1", PNG + b"2", PNG + b"3"]
    assert {one.file for one in found[:3]} == {str(path)}


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_what_is_damaged_costs_itself(tmp_path: Path, cut: int) -> None:
    value = w.tensor_of("said", "text", b"hello") + w.field(9, w.field(1, w.field(1, "text")))
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(w.event(0, value[:-cut] or b"x") + w.event(1, w.tensor_of("said", "text", b"again")))
    file = TensorBoard(path)
    file.poll()
    assert file.media.found[-1].text == "again"


def test_arguments_beside_the_scalars_are_those_of_the_run(tmp_path: Path) -> None:
    w.events(tmp_path / "first" / "events.out.tfevents.1", range(3))
    w.events(tmp_path / "second" / "events.out.tfevents.1", range(3))
    beside = tmp_path / "first" / "1795450605.1388679"
    beside.mkdir()
    told = w.event(0, w.hparams(lr=0.001, bs=8.0, name="adam", flag=True)) + w.event(
        0, w.field(1, "hparam/acc") + b"\x15\0\0\0\x3f"
    )
    (beside / "events.out.tfevents.2").write_bytes(told)
    runs = {run.path.name: run for run in find_runs(tmp_path)}
    assert set(runs) == {"first", "second"}
    reader = runs["first"].open()
    assert isinstance(reader, EventCurves)
    names = [name for point in reader.poll() for name in (*point.metrics, *point.eval_metrics)]
    assert "hparam/acc" in names
    assert runs["first"].told(reader).config == {"lr": "0.001", "bs": "8", "name": "adam", "flag": "true"}


def test_no_more_is_kept_than_somebody_can_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MOST_KEPT", 20)
    monkeypatch.setattr(media, "MOST_CHARACTERS", 1000)
    kept = Media()
    for step in range(50):
        kept.add_image("image", step, math.nan, "file")
    assert [one.step for one in kept.found] == list(range(30, 50))
    assert kept.found is kept.found
    for _ in range(50):
        kept.add_text("text", math.nan, 7.0, "x" * 100)
    assert len(kept.found) == 1000 // 104
    assert (kept.found[-1].number, kept.found[-1].step, kept.found[-1].time) == (100, None, 7.0)
