"""Metric files as programs write them, followed while they grow, torn, rewritten and replaced."""

from __future__ import annotations

import json
import math
import re
import struct
from pathlib import Path

import pytest

from mpstui.core.follow import LONGEST_LINE_BYTES, Budget
from mpstui.core.formats import thrift
from mpstui.core.formats.files import detect, json_document, read_log, tensorboard
from mpstui.core.formats.files.json_lines import JsonLines
from mpstui.core.formats.files.tensorboard import masked_crc32c
from mpstui.core.formats.points import MetricPoint
from mpstui.core.formats.records import read_record
from mpstui.core.runs.external import ExternalMetrics


def test_json_lines_grow_and_a_torn_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "trainer_log.jsonl"
    path.write_text(
        '{"current_steps": 10, "total_steps": 40, "loss": 2.5, "lr": 1e-5, "epoch": 0.5}\n{"current_steps": 20, "total'
    )
    reader = detect(path)
    (point,) = reader.poll()
    assert (point.loss, point.counters.step, point.counters.steps, point.learning_rate) == (2.5, 10, 40, 1e-5)
    with path.open("a") as file:
        file.write('_steps": 40, "loss": 2.0, "epoch": 1.0}\n{"current_steps": 20, "eval_loss": 2.2, "epoch": 1.0}\n')
    train, evaluation = reader.poll()
    assert (train.loss, evaluation.loss) == (2.0, None)
    assert evaluation.eval_metrics == {"eval_loss": 2.2}
    assert reader.poll() == []


def test_a_replaced_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 2.4}\n')
    reader = detect(path)
    assert len(reader.poll()) == 2
    other = tmp_path / "new"
    other.write_text('{"step": 1, "loss": 9.5}\n')
    other.replace(path)
    assert [point.loss for point in reader.poll()] == [9.5]


def test_validation_batches_do_not_move_the_step(tmp_path: Path) -> None:
    path = tmp_path / "20240101.log.json"
    lines = [
        {"mode": "train", "epoch": 1, "iter": 50, "lr": 0.1, "loss": 4.5},
        {"mode": "val", "epoch": 1, "iter": 9, "lr": 0.1, "loss": 9.5},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in [{"env_info": "x"}, *lines]))
    found = read_log(path)
    assert (found.step, found.train_loss and found.train_loss.count) == (50, 1)


def test_lightning_csv_keeps_step_and_epoch_values_apart(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(
        "epoch,step,train_loss_epoch,train_loss_step,val_loss\n0,9,,0.9,\n0,19,,0.8,\n0,19,,,0.85\n0,19,0.84,,\n1,29,,0.7,\n"
    )
    found = read_log(path)
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last, found.train_loss.count) == (0.9, 0.7, 3)
    assert (found.epoch, found.step) == (1, 29)
    assert "val_loss" in found.metrics


def test_csv_rewritten_with_a_new_column_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_text("time/total_timesteps,train/loss\n10,2.5\n20,")
    reader = detect(path)
    assert [point.loss for point in reader.poll()] == [2.5]
    path.write_text("time/total_timesteps,train/loss,rollout/ep_rew_mean\n10,2.5,\n20,2.25,1.0\n")
    assert [point.loss for point in reader.poll()] == [2.5, 2.25]


def test_ultralytics_results_of_several_runs(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    head = "      epoch,   train/box_loss,   train/cls_loss,     val/box_loss,           lr/pg0\n"
    path.write_text(head + "1,1.5,2.5,inf,0.01\n2,1.4,2.4,1.5,0.02\n1,1.25,2.0,1.0,0.03\n")
    found = read_log(path)
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.count, found.runs, found.learning_rate) == (1.25, 1, 2, 0.03)


def test_keras_csv_and_other_delimiters(tmp_path: Path) -> None:
    path = tmp_path / "training.csv"
    path.write_text("epoch;accuracy;loss;val_loss\r\n0;0.5;0.9;1.0\r\n1;0.6;0.8;nan\r\n")
    found = read_log(path)
    assert found.train_loss is not None
    assert (found.epoch, found.train_loss.last) == (1, 0.8)


def test_a_metric_may_be_called_like_what_is_no_number(tmp_path: Path) -> None:
    """How often a gradient was not finite, say."""
    path = tmp_path / "metrics.csv"
    path.write_text("step,train_loss,nan,inf\n1,0.5,0,0\n2,0.25,1,0\n3,0.125,2,1\n")
    assert (detect(path).name, read_log(path).step) == ("csv", 3)
    path.write_text("nan,0.5,1\nnan,0.25,2\n0.5,0.125,3\n")
    assert detect(path).name == "log", "a table without a header"


def test_rows_that_are_counted_beside_a_measure_are_a_metric_file(tmp_path: Path) -> None:
    path = tmp_path / "returns.csv"
    path.write_text("frame,mean reward,value\n" + "".join(f"{n}640,-1{n}.5,0.{n}25\n" for n in range(1, 5)))
    assert detect(path).name == "csv"
    assert "mean reward" in read_log(path).metrics
    path.write_text("id,score,word\n" + "".join(f"{n},1{n}.5,abc\n" for n in range(1, 5)))
    assert detect(path).name == "log"
    path.write_text("user,score\n" + "".join(f"{n * n},1{n}.5\n" for n in range(1, 5)))
    assert detect(path).name == "log"


def test_a_csv_of_something_else_is_no_metric_file(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name,age,time\nAda,36,1\n")
    assert read_log(path).train_loss is None


@pytest.mark.parametrize(
    ("record", "step", "steps", "loss"),
    [
        ({"step": 5, "steps_total": 100, "avg_loss": 0.5}, 5, 100, 0.5),
        ({"global_step": 5, "total_steps": 100, "loss": "0.5"}, 5, 100, 0.5),
        ({"total_steps": 500, "train_loss": 0.5, "epoch": 2}, 500, None, 0.5),
        (
            {"schema": 1, "time": 1.0, "seq": 3, "step": 5, "steps": 9, "loss": 0.5, "metrics": {"val_loss": 0.7}},
            5,
            9,
            0.5,
        ),
        ({"epoch": 3, "val_loss": 0.7}, None, None, None),
    ],
)
def test_heartbeats_of_other_programs(
    tmp_path: Path, record: dict[str, object], step: int | None, steps: int | None, loss: float | None
) -> None:
    path = tmp_path / "train_heartbeat.json"
    path.write_text(json.dumps(record, indent=2))
    (point,) = detect(path).close()
    assert (point.counters.step, point.counters.steps, point.loss) == (step, steps, loss)


def test_a_heartbeat_names_what_is_not_finite_and_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat.json"
    path.write_text(json.dumps({"step": 1, "loss": None, "nonfinite": ["loss"]}))
    reader = detect(path)
    (point,) = reader.poll()
    assert point.loss is not None
    assert math.isnan(point.loss)
    assert reader.poll() == []
    path.write_text('{"step": 2, "lo')
    assert reader.poll() == []
    path.write_text(json.dumps({"step": 2, "loss": 0.25, "epoch": 1}))
    assert [p.loss for p in reader.poll()] == [0.25]


def test_a_list_of_records_grows_by_rewriting(tmp_path: Path) -> None:
    """As Chainer's LogReport writes it, in a file called ``log``."""
    path = tmp_path / "log"
    records = [
        {"epoch": epoch, "iteration": 280 * epoch, "main/loss": 2.5 / epoch, "validation/main/loss": 3.0}
        for epoch in range(1, 4)
    ]
    path.write_text(json.dumps(records[:2], indent=4))
    reader = detect(path)
    assert [point.loss for point in reader.poll()] == [2.5, 1.25]
    path.write_text(json.dumps(records, indent=4))
    assert [point.counters.step for point in reader.poll()] == [840]
    summary = reader.summary()
    assert (summary.format, summary.epoch, summary.step) == ("json", 3, 840)


def test_lists_of_what_each_epoch_has_measured_are_a_history(tmp_path: Path) -> None:
    """As people write down what Keras returns."""
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"train_loss": [2.5, 1.25], "val_loss": [3.0, 2.5], "best_epoch": 2}, indent=2))
    reader = detect(path)
    points = reader.poll()
    assert [(point.counters.epoch, point.loss, point.eval_metrics) for point in points] == [
        (1, 2.5, {"val_loss": 3.0}),
        (2, 1.25, {"val_loss": 2.5}),
    ]
    path.write_text(json.dumps({"boxes": [1, 2], "labels": [3, 4], "scores": [0.5, 0.6]}, indent=2))
    assert detect(path).poll() == []


def test_a_list_of_other_objects_is_no_history(tmp_path: Path) -> None:
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps([{"id": 1, "score": 0.5}], indent=4))
    assert detect(path).name != "json"


def test_trainer_state_appends_by_rewriting(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    history: list[dict[str, float]] = [{"step": 10, "epoch": 0.5, "loss": 2.5, "learning_rate": 1e-5}]
    state = {"global_step": 10, "max_steps": 40, "num_train_epochs": 2, "epoch": 0.5, "log_history": history}
    path.write_text(json.dumps(state, indent=2))
    reader = detect(path)
    assert [point.loss for point in reader.poll()] == [2.5]
    history += [{"step": 20, "epoch": 1.0, "loss": 2.0}, {"step": 20, "epoch": 1.0, "eval_loss": 2.1}]
    path.write_text(json.dumps({**state, "global_step": 20, "epoch": 1.0}, indent=2))
    assert [point.loss for point in reader.poll()] == [2.0, None]
    found = reader.summary()
    assert (found.step, found.steps, found.epochs, found.epoch) == (20, 40, 2, 1.0)


@pytest.mark.parametrize("whole_bytes", [1 << 20, 50])
def test_an_evaluation_of_a_trainer_lies_at_its_own_step(
    tmp_path: Path, whole_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_document, "_WHOLE_BYTES", whole_bytes)
    path = tmp_path / "trainer_state.json"
    logged = [
        {"epoch": 0.5, "eval_loss": 3.0, "step": 5},
        {"epoch": 0.9, "learning_rate": 1e-5, "loss": 2.5, "step": 9},
        {"epoch": 1.0, "eval_loss": 2.1, "eval_runtime": 0.5, "step": 10},
    ]
    state = {"epoch": 1.0, "global_step": 10, "log_history": logged, "max_steps": 40, "num_train_epochs": 4}
    path.write_text(json.dumps(state))
    points = detect(path).close()
    assert [(one.counters.step, one.counters.epoch) for one in points] == [(5, 0.5), (9, 0.9), (10, 1.0)]
    assert [one.eval_metrics.get("eval_loss") for one in points] == [3.0, None, 2.1]


def test_a_history_without_a_state_keeps_what_its_evaluations_count_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text(json.dumps([{"step": 50, "loss": 2.0}, {"step": 1, "val_loss": 2.1}, {"step": 60, "loss": 1.0}]))
    assert [one.counters.step for one in detect(path).close()] == [50, 50, 60]


def test_event_files_grow_and_a_torn_record_waits(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1700000000.host.1.0"
    records = [record(event(0, version="brain.Event:2"))] + [
        record(event(step, scalars={"Loss/train": 2.0 - step / 10, "Loss/val": 3.0, "lr": 0.5})) for step in (1, 2, 3)
    ]
    data = b"".join(records)
    path.write_bytes(data[:-5])
    reader = detect(path)
    assert [point.loss for point in reader.poll()] == [pytest.approx(1.9), pytest.approx(1.8)]
    path.write_bytes(data)
    (last,) = reader.poll()
    assert reader.close() == []
    assert (last.counters.step, last.loss, last.learning_rate) == (3, pytest.approx(1.7), 0.5)  # type: ignore[comparison-overlap]
    assert last.eval_metrics == {"Loss/val": 3.0}


def test_what_is_counted_in_an_evaluation_is_no_metric(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    counts = {"val/epoch": 1.0, "val/num_samples": 64.0, "eval/global_step": 20.0, "test/images": 9.0}
    measured = {"val/loss": 3.0, "val/images_found": 0.5, "train/num_tokens": 7.0, "val/tp": 5.0}
    path.write_bytes(record(event(0, version="brain.Event:2")) + record(event(1, scalars={**counts, **measured})))
    reader = detect(path)
    (point,) = reader.close()
    assert {**point.metrics, **point.eval_metrics} == measured
    assert {*reader.summary().metrics} == {*measured}


def test_event_files_with_tensors_and_damage(tmp_path: Path) -> None:
    folder = tmp_path / "validation"
    folder.mkdir()
    path = folder / "events.out.tfevents.1"
    tensor = field(1, 0, varint(1)) + field(4, 2, sized(struct.pack("<f", 0.25)))
    value = field(1, 2, sized(b"epoch_loss")) + field(8, 2, sized(tensor))
    good = record(field(2, 0, varint(7)) + field(5, 2, sized(field(1, 2, sized(value)))))
    path.write_bytes(record(event(0, version="brain.Event:2")) + good + record(b"\x12\xff\xff") + b"\xff" * 64)
    (point,) = detect(path).close()
    assert point.loss is None, "Keras writes its validation loss under the name of the training loss"
    assert point.eval_metrics == {"epoch_loss": 0.25}


def test_event_files_of_plain_scalars_are_read_as_field_by_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.out.tfevents.1"
    names = ["Loss/train", "lr", "größe", "a" * 120, "acc"]
    records = [record(event(step, scalars={names[step % 5]: step / 7})) for step in range(400)]
    records.insert(7, record(event(5, scalars={"acc": math.nan, "lr": 0.5})))
    records.insert(9, record(event(-3 % (1 << 64), scalars={"acc": 1.0})))
    several = {**{"n" * length: length / 3 for length in range(1, 130)}, "größe": 0.5}
    records += [
        record(event(500 + step, scalars={name: several[name] for name in (*several,)[step:]})) for step in range(130)
    ]
    records.insert(50, record(field(5, 2, sized(b"\x0a" + sized(b"\x0a\x03big" + b"\x22" + sized(bytes(9000)))))))
    path.write_bytes(b"".join(records))

    def told(limit: int) -> list[tuple[object, ...]]:
        reader, found, before = detect(path), list[tuple[object, ...]](), -1
        while reader.position != before:
            before = reader.position
            for point in reader.poll(limit):
                values = {**point.metrics, "loss": point.loss, "lr": point.learning_rate, **point.eval_metrics}
                found += [(n, point.step, str(v), point.time) for n, v in values.items() if v is not None]
        assert reader.position == path.stat().st_size
        return sorted(found, key=str)

    fast = told(1 << 16)
    assert len(fast) == 403 + sum(range(1, 131))
    monkeypatch.setattr(tensorboard, "_SCALAR", re.compile(rb"\Zx"))
    monkeypatch.setattr(tensorboard, "_VALUE", re.compile(rb"\Zx"))
    assert told(1 << 16) == told(700) == fast


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, kind: int, payload: bytes) -> bytes:
    return varint(number << 3 | kind) + payload


def sized(data: bytes) -> bytes:
    return varint(len(data)) + data


def event(step: int, *, scalars: dict[str, float] | None = None, version: str = "") -> bytes:
    data = field(1, 1, struct.pack("<d", 1.7e9)) + (field(2, 0, varint(step)) if step else b"")
    if version:
        data += field(3, 2, sized(version.encode()))
    values = [
        field(1, 2, sized(tag.encode())) + field(2, 5, struct.pack("<f", value))
        for tag, value in (scalars or {}).items()
    ]
    return data + (field(5, 2, sized(b"".join(field(1, 2, sized(value)) for value in values))) if values else b"")


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def test_the_checksum_is_the_published_one() -> None:
    unmasked = (masked_crc32c(b"123456789") - 0xA282EAD8) & 0xFFFFFFFF
    assert ((unmasked >> 17) | (unmasked << 15)) & 0xFFFFFFFF == 0xE3069283


def test_an_infinite_count_is_unknown() -> None:
    reading = read_record({"step": float("inf"), "epoch": float("nan"), "loss": 0.5}, "test")
    assert reading is not None
    assert (reading.counters.step, reading.counters.epoch) == (None, None)


def _long_file(folder: Path, kind: str) -> Path:
    if kind == "csv":
        path, data = folder / "metrics.csv", b"step,train_loss\n" + b"".join(b"%d,%d.5\n" % (i, i) for i in range(4500))
    elif kind == "jsonl":
        path = folder / "metrics.jsonl"
        data = b"".join(b'{"step": %d, "loss": %d.5}\n' % (i, i) for i in range(4500))
    elif kind == "log":
        path, data = folder / "train.log", b"".join(b"step %d loss %d.5\n" % (i, i) for i in range(4500))
    else:
        path = folder / "events.out.tfevents.1"
        records = [record(event(step, scalars={"loss": step + 0.5})) for step in range(4500)]
        data = record(event(0, version="brain.Event:2")) + b"".join(records)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "log", "tensorboard"])
def test_a_long_file_is_read_in_slices(tmp_path: Path, kind: str) -> None:
    path = _long_file(tmp_path, kind)
    size = path.stat().st_size
    reader = detect(path)
    slices = 0
    losses: list[float | None] = []
    while reader.position < size:
        before = reader.position
        losses += [point.loss for point in reader.poll(4096)]
        assert reader.position - before < 8192
        slices += 1
    assert slices > 10
    losses += [point.loss for point in reader.close()]
    assert losses == [i + 0.5 for i in range(4500)]


def test_a_long_metric_file_of_another_program_shows_that_it_is_still_being_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(b"step,train_loss\n" + b"".join(b"%d,%d.25\n" % (i, i) for i in range(30_000)))
    points = ExternalMetrics(path, lambda: 0.0)
    points.poll()
    points.read(Budget(0.0))
    assert 0 < points.pending_bytes < path.stat().st_size
    points.read(Budget(60.0))
    assert points.views()["loss"].count == 30_000


def _history(entries: int, *, indent: str) -> bytes:
    told = [f'{{{indent}"epoch": {i / 100}, "loss": {i}.5,{indent}"step": {i}{indent}}}' for i in range(entries)]
    head = f'{{{indent}"epoch": 3.0,{indent}"global_step": {entries - 1},{indent}"log_history": [{indent}'
    return f'{head}{f",{indent}".join(told)}{indent}],{indent}"max_steps": 9000,"num_train_epochs": 4}}'.encode()


@pytest.mark.parametrize("indent", ["", "\n  "])
def test_a_history_too_long_to_be_held_is_read_entry_by_entry(
    tmp_path: Path, indent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_document, "_WHOLE_BYTES", 1000)
    monkeypatch.setattr(json_document, "CHUNK", 700)
    path = tmp_path / "trainer_state.json"
    path.write_bytes(_history(100, indent=indent))
    reader = detect(path)
    losses: list[float | None] = []
    while reader.position < path.stat().st_size:
        before = reader.position
        losses += [point.loss for point in reader.poll(500)]
        assert before < reader.position <= before + 700 or not before
    path.write_bytes(_history(150, indent=indent))
    losses += [point.loss for point in reader.close()]
    assert losses == [i + 0.5 for i in range(150)]
    found = reader.summary()
    assert (found.step, found.steps, found.epoch, found.epochs) == (149, 9000, 3, 4)
    assert found.format == "hugging face trainer_state"
    path.write_bytes(_history(120, indent=indent))
    reader.close()
    assert [point.loss for point in reader.close()] == [i + 0.5 for i in range(120)]


def test_a_half_written_long_history_waits_for_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_document, "_WHOLE_BYTES", 1000)
    path, whole = tmp_path / "trainer_state.json", _history(100, indent="")
    path.write_bytes(whole[: len(whole) // 2])
    reader = detect(path)
    losses = [point.loss for point in reader.close()]
    path.write_bytes(whole)
    losses += [point.loss for point in reader.close()]
    assert losses == [i + 0.5 for i in range(100)]


@pytest.mark.parametrize(
    "row", [b"[" * 9000, b'{"a": ' * 9000, b'{"loss": ' + b"9" * 9000 + b"}", b"}" * 9000, b"\xff" * 9]
)
def test_rows_that_are_no_records_cost_themselves(tmp_path: Path, row: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1, "loss": 1.5}\n' + row + b'\n{"step": 2, "loss": 0.5}\n')
    assert [point.step for point in JsonLines(path).close()] == [1, 2]


def test_a_row_too_long_to_be_a_record_is_said(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(b"step,loss,text\n1,1.5,a\n2,1.0," + b"x" * (LONGEST_LINE_BYTES + 9) + b"\n3,0.5,a\n")
    found = read_log(path)
    assert found.step == 3
    assert found.read_in_part == "1 line too long to be read"


def test_rows_beyond_what_their_bytes_pay_for_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thrift, "RESERVE", 10_000)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"".join(b'{"step": %d, "loss": %d.5}\n' % (i, i) for i in range(20_000)))
    reader, points = detect(path), list[MetricPoint]()
    while reader.position < path.stat().st_size:
        points += reader.poll(1 << 16)
    points += reader.poll()
    assert len(points) < 1500
    assert points[-1].step == 19_999
    assert reader.summary().read_in_part == f"{20_000 - len(points):,} lines passed over"


def test_names_without_end_are_no_metrics(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({"step": i, "loss": 0.5, "n" * 500 + str(i): 1.0}) + "\n" for i in range(20)))
    assert read_log(path).metrics == ("loss",)
