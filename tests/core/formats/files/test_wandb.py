"""The transaction logs of Weights & Biases: every value, in its order, whatever state the file is in."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from mpstui.core.formats.files import detect, read_log
from mpstui.core.formats.files.wandb import WandbFile
from mpstui.core.formats.points import Point, PointColumns
from mpstui.core.model.snapshot import State
from tests import wandb_files as w

Values = dict[str, list[tuple[float, float]]]


def values_of(points: Iterable[Point], into: Values | None = None) -> Values:
    """Every value by its name, with its step."""
    found = {} if into is None else into
    for point in points:
        assert isinstance(point, PointColumns)
        columns = {**point.values, **({"loss": point.losses} if len(point.losses) else {})}
        columns |= {"lr": point.rates} if point.rates is not None else {}
        for name, column in columns.items():
            steps = point.steps or [math.nan] * len(column)
            found.setdefault(name, []).extend(zip(steps, column, strict=True))
    return found


def read(file: WandbFile, limit: int = 1 << 18) -> Values:
    found: Values = {}
    before = -1
    while file.position != before:
        before = file.position
        values_of(file.take(limit), found)
    return found


def rows(count: int, first: int = 0) -> list[bytes]:
    return [
        w.history(step, {"train/loss": 2.0 / (step + 1), "lr": 1e-3, "acc": step / 7})
        for step in range(first, first + count)
    ]


def test_every_value_has_its_step_and_its_time(tmp_path: Path) -> None:
    path = w.write(tmp_path / "run-a.wandb", rows(500))
    assert type(detect(path)) is WandbFile
    file = WandbFile(path)
    found = file.take(1 << 18)
    assert values_of(found)["loss"] == [(step, 2.0 / (step + 1)) for step in range(500)]
    assert values_of(found)["acc"] == [(step, step / 7) for step in range(500)]
    assert isinstance(found[0], PointColumns)
    assert list(found[0].times or ())[:2] == [w.START, w.START + 1]
    said = read_log(path)
    assert (said.format, said.step, said.learning_rate) == ("wandb", 499, 1e-3)
    assert said.train_loss is not None
    assert said.train_loss.count == 500


def test_rows_of_several_kinds_keep_the_order_of_each_metric(tmp_path: Path) -> None:
    records = []
    for step in range(60):
        more = {"val/loss": 1.0 / (step + 1), "epoch": step / 10} if step % 10 == 0 else {}
        records.append(w.history(step, {"loss": 1.0, "norm": float(step), **more}))
        if step % 7 == 0:
            records.append(w.history(step, {"alone": float(step)}))
    found = read(WandbFile(w.write(tmp_path / "run-a.wandb", records)))
    assert [step for step, _ in found["norm"]] == list(range(60))
    assert [value for _, value in found["val/loss"]] == [1.0 / (step + 1) for step in range(0, 60, 10)]
    assert [step for step, _ in found["alone"]] == list(range(0, 60, 7))


def test_what_is_no_plain_number_is_read_or_left_out(tmp_path: Path) -> None:
    nested = {"depth": 0.5, "note": "x"}
    pictures = {"_type": "histogram", "bins": [1, 2]}
    odd = {
        "nan": math.nan,
        "inf": math.inf,
        "least": -math.inf,
        "train": nested,
        "hist": pictures,
        "größe": 2.5,
        "text": "7",
    }
    typed = w.field(2, w.field(1, w.field(2, "whole") + w.field(5, 12)) + w.field(1, w.item(["_step"], 4)))
    path = w.write(tmp_path / "run-a.wandb", [w.history(3, odd), typed])
    found = read(WandbFile(path))
    assert {name: values[0][1] for name, values in found.items() if name != "nan"} == {
        "inf": math.inf, "least": -math.inf, "train.depth": 0.5, "größe": 2.5, "whole": 12.0,
    }  # fmt: skip
    assert math.isnan(found["nan"][0][1])
    assert found["whole"][0][0] == 4


def test_a_row_larger_than_a_block_is_joined(tmp_path: Path) -> None:
    wide = {f"layer{place}/norm": float(place) for place in range(2000)}
    path = w.write(tmp_path / "run-a.wandb", [*rows(40), w.history(40, wide), *rows(3, 41)])
    found = read(WandbFile(path))
    assert found["layer1999/norm"] == [(40, 1999.0)]
    assert len(found["loss"]) == 43


def test_a_live_file_is_read_as_it_grows_byte_by_byte(tmp_path: Path) -> None:
    whole = w.write(tmp_path / "whole.wandb", rows(300)).read_bytes()
    path, file, found = tmp_path / "run-a.wandb", None, Values()
    for end in [*range(7, len(whole), 611), len(whole)]:
        path.write_bytes(whole[:end])
        file = file or WandbFile(path)
        values_of(file.take(1 << 18), found)
    assert found["loss"] == [(step, 2.0 / (step + 1)) for step in range(300)]


def test_a_damaged_block_costs_itself_and_is_told(tmp_path: Path) -> None:
    path = w.write(tmp_path / "run-a.wandb", [*rows(1500), w.exited(0)])
    data = bytearray(path.read_bytes())
    data[40_000:40_010] = b"\xff" * 10
    path.write_bytes(data)
    file = WandbFile(path)
    steps = [step for step, _ in read(file)["loss"]]
    assert steps == sorted(steps)
    assert steps[-1] == 1499
    assert 1000 < len(steps) < 1500
    assert file.told.state is State.FINISHED
    assert file.summary().read_in_part == "1 damaged block passed over"


def test_half_a_chunk_at_the_end_is_not_yet_damage(tmp_path: Path) -> None:
    path = w.write(tmp_path / "run-a.wandb", rows(20))
    data = path.read_bytes()
    path.write_bytes(data[:-9] + b"\0" * 9)  # the size is on the disk before the bytes are
    file = WandbFile(path)
    assert len(read(file)["loss"]) == 19
    path.write_bytes(data)
    assert read(file)["loss"] == [(19, 2.0 / 20)]
    assert file.summary().read_in_part is None


@pytest.mark.parametrize(("code", "state"), [(0, State.FINISHED), (1, State.FAILED), (255, State.FAILED)])
def test_what_is_told_of_the_run(tmp_path: Path, code: int, state: State) -> None:
    config = {"lr": 0.001, "model": {"depth": 12, "act": "gelu"}, "flag": True, "_wandb": {"cli": 1}}
    told = [w.run("first", config, ["a", "b"], "a note"), w.environment("train.py", ["--epochs", "3"])]
    file = WandbFile(w.write(tmp_path / "run-a.wandb", [*told, *rows(5), w.exited(code)]))
    read(file)
    found = file.told
    assert (found.name, found.tags, found.note, found.project) == ("first", ("a", "b"), "a note", "cifar")
    assert found.config == {"lr": "0.001", "model.depth": "12", "model.act": "gelu", "flag": "true"}
    assert found.argv == ("train.py", "--epochs", "3")
    assert (found.state, found.exit_code, found.started, found.runtime) == (state, code, w.START, 60.0)


def test_a_long_file_tells_its_end_first(tmp_path: Path) -> None:
    records = [w.run("first", {}), *rows(6000), w.exited(0)]
    file = WandbFile(w.write(tmp_path / "run-a.wandb", records))
    newest = [point.newest for point in file.glance()]
    assert [point.counters.step for point in newest][-1] == 5999
    assert (file.told.name, file.told.state) == ("first", State.FINISHED)
    assert len(read(file)["loss"]) == 6000


def test_the_machine_and_a_step_that_the_program_declares(tmp_path: Path) -> None:
    declared = w.field(12, w.field(2, "*") + w.field(4, "trainer/global_step"))
    records = [declared]
    for step in range(10):
        records.append(w.history(step, {"train_loss": 1.0, "trainer/global_step": 50 * step}))
        records.append(w.stats(w.START + step + 0.5, {"gpu.0.temp": 60.0 + step}))
    file = WandbFile(w.write(tmp_path / "run-a.wandb", records))
    found = file.take(1 << 18)
    assert values_of(found)["system/gpu.0.temp"] == [(50 * step, 60.0 + step) for step in range(10)]
    assert values_of(found)["loss"] == [(50 * step, 1.0) for step in range(10)]
    heat = next(point for point in found if isinstance(point, PointColumns) and "system/gpu.0.temp" in point.values)
    assert heat.times is not None
    assert heat.times[3] == pytest.approx(w.START + 3.5)


def defined(name: str, step: str = "") -> bytes:
    """As ``define_metric`` writes it."""
    return w.field(12, w.field(2 if name.endswith("*") else 1, name) + (w.field(4, step) if step else b""))


def test_metrics_lie_at_the_count_that_each_was_defined_by(tmp_path: Path) -> None:
    records = [
        defined("trainer/global_step"), defined("train/*", "trainer/global_step"),
        defined("val/*", "seen"), defined("val/acc", "trainer/global_step"), defined("f1", "epoch"),
    ]  # fmt: skip
    for at in range(4):
        values = {"train/loss": 1.0, "trainer/global_step": 50 * at, "norm": 2.0, "epoch": at, "f1": 0.5}
        records.append(w.history(at, values))
    records.append(w.history(4, {"val/loss": 3.0, "val/acc": 0.25, "seen": 7000}))
    records.append(w.history(5, {"val/loss": 2.0}))
    records.append(w.stats(w.START + 9, {"cpu": 60.0}))
    file = WandbFile(w.write(tmp_path / "run-a.wandb", records))
    found = read(file)
    of_training = [0, 50, 100, 150]
    assert {name: [step for step, _ in one] for name, one in found.items()} == {
        "loss": of_training, "norm": of_training, "f1": of_training, "trainer/global_step": of_training,
        "val/acc": [150], "val/loss": [7000, 7000], "seen": [150], "system/cpu": [150],
    }  # fmt: skip
    assert file.summary().step == 150, "how many samples an evaluation has seen is no step of the run"


def test_a_count_that_only_some_metrics_have_is_not_that_of_the_run(tmp_path: Path) -> None:
    records = [defined("images/*", "images/number"), defined("never", "logged")]
    records += [w.history(at, {"loss": 1.0, "images/score": 0.5, "images/number": 3 * at}) for at in range(4)]
    records.append(w.history(4, {"never": 1.0}))
    found = read(WandbFile(w.write(tmp_path / "run-a.wandb", records)))
    assert [step for step, _ in found["loss"]] == [0, 1, 2, 3]
    assert [step for step, _ in found["images/score"]] == [0, 3, 6, 9]
    assert found["never"] == [(4, 1.0)], "what it counts by was never logged"


def test_what_describes_a_picture_or_a_table_is_no_curve(tmp_path: Path) -> None:
    picture = {"width": 8, "_type": "image-file", "height": 8, "size": 90}
    table = {"ncols": 1, "nrows": 9, "_type": "table-file", "path": "media/table.json"}
    row = {"loss": 1.0, "image": picture, "table": table, "image.sharpness": 0.5, "layer": {"norm": 2.0}}
    found = read(WandbFile(w.write(tmp_path / "run-a.wandb", [w.history(0, row)])))
    assert set(found) == {"loss", "layer.norm", "image.sharpness"}


TABLE = {"columns": ["input", "score"], "data": [["a\nb", 0.123456789], [{"_type": "image-file"}, None]]}


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (json.dumps(TABLE), "input         score\na b           0.123457\n<image-file>"),
        ("{", "a table that cannot be read: t.table.json is damaged"),
        ('{"columns": 1, "data": 2}', "a table that cannot be read: t.table.json is damaged"),
        (None, "a table that cannot be read: t.table.json: No such file or directory"),
    ],
)
def test_a_table_is_a_text_of_its_first_rows(tmp_path: Path, content: str | None, shown: str) -> None:
    path = tmp_path / "files" / "media" / "table" / "t.table.json"
    path.parent.mkdir(parents=True)
    if content is not None:
        path.write_text(content)
    table = {"_type": "table-file", "path": "media/table/t.table.json", "nrows": 2}
    file = WandbFile(w.write(tmp_path / "run-a.wandb", [w.history(3, {"loss": 1.0, "predictions": table})]))
    read(file)
    assert [(one.name, one.step, one.text) for one in file.media.found] == [("predictions", 3, shown)]


def test_of_a_large_table_there_are_fifty_rows(tmp_path: Path) -> None:
    path = tmp_path / "files" / "t.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"columns": [f"c{n}" for n in range(20)], "data": [list(range(20))] * 60}))
    row = {"loss": 1.0, "t": {"_type": "table-file", "path": "t.json"}}
    file = WandbFile(w.write(tmp_path / "run-a.wandb", [w.history(0, row)]))
    read(file)
    (text,) = (one.text or "" for one in file.media.found)
    lines = text.splitlines()
    assert (len(lines), lines[-1], lines[1].split()) == (52, "60 rows, 20 columns", [str(n) for n in range(12)])


def test_a_step_that_falls_begins_other_columns(tmp_path: Path) -> None:
    declared = w.field(12, w.field(2, "*") + w.field(4, "global_step"))
    order = [0, 1, 2, 1, 2, 3]
    records = [declared, *(w.history(at, {"loss": 1.0, "global_step": step}) for at, step in enumerate(order))]
    found = WandbFile(w.write(tmp_path / "run-a.wandb", records)).take(1 << 18)
    assert [list(point.steps or ()) for point in found if isinstance(point, PointColumns)] == [[0, 1, 2], [1, 2, 3]]


def test_no_bytes_of_any_kind_end_the_reading(tmp_path: Path) -> None:
    stuff = [w.run("first", {"a": 1}), *rows(30), w.stats(w.START, {"cpu": 1.0}), w.exited(1)]
    whole = w.write(tmp_path / "whole.wandb", stuff).read_bytes()
    numbers, path = random.Random(7), tmp_path / "run-a.wandb"
    for _ in range(300):
        data = bytearray(whole[: numbers.randrange(7, len(whole))])
        for _ in range(numbers.randrange(6)):
            data[numbers.randrange(len(data))] = numbers.randrange(256)
        path.write_bytes(data)
        read(WandbFile(path))
    for _ in range(300):  # the checksums are right, the records are not
        records = w.counted(stuff)
        broken = bytearray(numbers.choice(records))
        for _ in range(numbers.randrange(1, 6)):
            broken[numbers.randrange(len(broken))] = numbers.randrange(256)
        path.write_bytes(b":W&B\xe1\xbe\x00" + w.framed([bytes(broken)]))
        read(WandbFile(path))
