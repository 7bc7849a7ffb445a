"""What mpstui did not start: logs, metric files, heartbeats, folders; nothing is claimed that no file says."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from mpstui.cli.screen import last_lines
from mpstui.core.actions import BY_ID, allowed
from mpstui.core.follow import Budget
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Health, RunSnapshot, State
from mpstui.core.present import SILENT, badge, needs_attention, total_progress
from mpstui.core.runs.foreign import external_heartbeat
from mpstui.core.runs.local_machine import LocalMachine
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.sources import PREVIEW_BYTES
from mpstui.core.runs.watched import FIND_SECONDS, WatchedReader
from mpstui.ui.widgets.run_header import header
from tests import wandb_files
from tests.core.runs.build import NOW, BusyClock, FakeClock, FakeTable, RunBuilder, make_home, make_monitor


def look(monitor: Monitor, path: Path) -> RunSnapshot:
    key = monitor.watch(path)
    return monitor.snapshot(key)


def test_a_log(monitor: Monitor, tmp_path: Path, clock: FakeClock) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"Epoch {i}/10 loss: {1 / i:.4f}\n" for i in range(1, 5)))
    os.utime(log, (NOW - 5, NOW - 5))
    shown = look(monitor, log)
    assert (shown.state, shown.name, shown.numbers.epoch, shown.numbers.epochs, shown.numbers.loss) == (
        State.WATCHED,
        "train.log",
        4,
        10,
        0.25,
    )
    assert "less than a minute ago" in shown.reason
    assert shown.pid is None
    assert shown.output == log
    assert shown.series["loss"].count == 4
    with log.open("a") as file:
        file.write("Epoch 5/10 loss: 0.2000\n")
    assert look(monitor, log).numbers.epoch == 5
    os.utime(log, (NOW - 5, NOW - 5))
    clock.advance(200)
    assert "3 min ago" in look(monitor, log).reason


CRASH = """step 6 loss 0.3000
step 7 loss 0.2500
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    model(x)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 9x2)
"""
IGNORED = """Exception ignored in: <function Workers.__del__ at 0x7f00>
Traceback (most recent call last):
  File "loader.py", line 9, in __del__
    self.end()
AssertionError: can only test a child process
"""
LAUNCHER = """slurmstepd: error: StepId=12.0 exited with code 1
  exitcode  : 1 (pid: 123)
wandb: loss 0.2500
wandb: step 7
"""


@pytest.mark.parametrize(
    "text",
    [
        CRASH + IGNORED + LAUNCHER,
        CRASH.replace("model(x)", "fit(x, epochs=10)"),
        "".join(f"[rank1]: {line}\n" for line in CRASH.replace("model(x)", "fit(epochs=10)").splitlines()[2:]),
        CRASH + "\nDuring handling of the above exception, another exception occurred:\n\n" + CRASH[38:],
    ],
)
def test_last_words_of_launchers_and_destructors_do_not_hide_the_exception(
    monitor: Monitor, tmp_path: Path, text: str
) -> None:
    log = tmp_path / "crashed.log"
    log.write_text(text)
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied" in (look(monitor, log).log_exception or "")


def test_a_log_that_ends_with_an_exception_says_so_until_training_goes_on(monitor: Monitor, tmp_path: Path) -> None:
    log = tmp_path / "crashed.log"
    log.write_text(CRASH)
    shown = look(monitor, log)
    assert shown.log_exception == "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 9x2)"
    assert (shown.state, shown.numbers.step, shown.numbers.loss) == (State.WATCHED, 7, 0.25)
    with log.open("a") as file:
        file.write("batch skipped\nstep 8 loss 0.2400\n")
    assert look(monitor, log).log_exception is None


def boxed(*, colour: bool, width: int, calls: int) -> str:
    """A crash as rich prints it, so many calls deep."""
    printed = io.StringIO()
    console = Console(file=printed, width=width, force_terminal=colour, color_system="256" if colour else None)

    def multiply(deeper: int) -> None:
        if deeper:
            multiply(deeper - 1)
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    try:
        multiply(calls)
    except RuntimeError:
        console.print_exception(max_frames=1000, show_locals=True)
    assert ("\x1b[" in printed.getvalue()) is colour
    return f"step 6 loss 0.3000\nstep 7 loss 0.2500\n{printed.getvalue()}"


@pytest.mark.parametrize(("colour", "width", "calls"), [(False, 80, 0), (True, 80, 0), (False, 30, 0), (True, 80, 90)])
def test_a_traceback_in_a_box_is_one_in_colour_too_narrow_or_longer_than_what_is_read(
    monitor: Monitor, tmp_path: Path, colour: bool, width: int, calls: int
) -> None:
    text = boxed(colour=colour, width=width, calls=calls)
    log = tmp_path / "crashed.log"
    log.write_text(text)
    shown = look(monitor, log)
    assert shown.log_exception is not None
    assert shown.log_exception.startswith("RuntimeError: mat1 and mat2")
    log.write_text(text + "step 8 loss 0.2400\n")
    assert look(monitor, log).log_exception is None


@pytest.mark.parametrize("looked_at", [True, False])
def test_the_word_for_a_log_that_ends_with_an_exception_tells_it(
    home: Home, clock: FakeClock, tmp_path: Path, looked_at: bool
) -> None:
    log, monitor = tmp_path / "crashed.log", make_monitor(home, clock)
    log.write_text(CRASH)
    os.utime(log, (NOW - 5, NOW - 5))
    key = monitor.watch(log)

    def word() -> str:
        (shown,) = monitor.refresh(key if looked_at else None)
        return badge(shown).word

    assert word() == "failed"
    clock.advance(7200)
    assert word() == "failed"
    (shown,) = monitor.refresh(key)
    assert (needs_attention(shown), shown.health_note) == (True, ""), "it failed, and does not stall"
    assert (shown.numbers.steps_per_second, shown.numbers.eta_seconds) == (None, None)
    with log.open("a") as file:
        file.write("batch skipped\nstep 8 loss 0.2400\n")
    os.utime(log, (clock.wall, clock.wall))
    assert word() == "training"


@pytest.mark.parametrize(("later", "ends"), [(-20.0, True), (1.0, True), (60.0, False)])
def test_a_heartbeat_that_goes_on_long_after_the_exception_has_survived_it(
    monitor: Monitor, tmp_path: Path, later: float, ends: bool
) -> None:
    log, beat = tmp_path / "run.log", tmp_path / "heartbeat.json"
    log.write_text(CRASH)
    os.utime(log, (NOW - 100, NOW - 100))
    beat.write_text(json.dumps({"step": 9, "loss": 0.75, "timestamp": NOW - 100 + later}))
    assert (look(monitor, tmp_path).log_exception is not None) is ends


@pytest.mark.parametrize(
    "text",
    [
        "step 1 loss 0.5\n",
        "ValueError: said a test\n",
        CRASH.rpartition("Runtime")[0],
        "",
        "╭────╮\n│ ok │\n╰────╯\nstep 1 loss 0.5\nValueError: said a test\n",
        CRASH + "step 8 loss 0.2400\nupload failed\nConnectionError: will be tried again\n",
        CRASH + "batch 8/100 ppl 23.1\n",
        CRASH + "val acc 0.81\n",
        CRASH + "loss nan\n",
        CRASH + "".join(f"sample {number} decoded\n" for number in range(200)),
        "step 7 loss 0.2500\n" + IGNORED + "training finished\n",
    ],
)
def test_a_log_without_a_whole_traceback_ends_with_no_exception(monitor: Monitor, tmp_path: Path, text: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(text)
    assert look(monitor, log).log_exception is None


@pytest.mark.parametrize("first", [0, 1])
def test_batches_of_an_epoch_are_counted_from_the_first_epoch_on(monitor: Monitor, tmp_path: Path, first: int) -> None:
    log = tmp_path / "train.log"
    lines = [
        f"epoch {epoch}/{first + 2} batch {batch}/64 loss {1 / (epoch + batch):.4f}\n"
        for epoch in range(first, first + 3)
        for batch in (16, 32, 64)
    ]
    log.write_text("".join(lines))
    steps = look(monitor, log).series["loss"].x
    assert (steps[0], steps[-1]) == (16, 3 * 64)


def test_a_csv(monitor: Monitor, tmp_path: Path) -> None:
    table = tmp_path / "metrics.csv"
    table.write_text("epoch,step,train_loss,val_loss\n0,10,2.5,\n1,20,1.5,1.75\n")
    shown = look(monitor, table)
    assert (shown.numbers.step, shown.numbers.loss) == (20, 1.5)
    assert shown.series["loss"].count == 2


YOLO = """
      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
        1/2      1.76G      2.034      3.517      1.422          5        512: 100%|██| 26/26 [00:07<00:00,  2.0it/s]
        2/2      1.76G      1.034      2.517      1.322          5        512: 100%|██| 26/26 [00:07<00:00,  2.0it/s]
"""
YOLO_CSV = "epoch,train/box_loss,train/cls_loss,train/dfl_loss\n1,2.034,3.517,1.422\n2,1.034,2.517,1.322\n"


@pytest.mark.parametrize(("text", "prefix"), [(YOLO, ""), (YOLO_CSV, "train/")])
def test_a_part_of_the_loss_is_never_the_loss(monitor: Monitor, tmp_path: Path, text: str, prefix: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(text)
    shown = look(monitor, log)
    assert (shown.numbers.loss, shown.numbers.epoch) == (None, 2)
    assert [*shown.series] == [f"{prefix}box_loss", f"{prefix}cls_loss", f"{prefix}dfl_loss"]
    assert shown.series[f"{prefix}box_loss"].last == 1.034


def test_a_log_of_test_and_training_lines_has_a_curve_for_each(monitor: Monitor, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    epoch = "Epoch {0}/9 - 2.7s\n  Train: Loss=1.{0}, Acc=3{0}.5%\n  Test:  Loss=2.{0}, Acc=5{0}.5%\n  LR: 0.001\n"
    log.write_text("Batch size: 256\nLearning rate: 0.5\n" + "".join(epoch.format(e) for e in range(1, 5)))
    shown = look(monitor, log)
    last = {name: (view.last, view.evaluation) for name, view in shown.series.items()}
    evaluated = {"Test Loss": (2.4, True), "Test Acc": (54.5, True)}
    assert last == {"loss": (1.4, False), "Acc": (34.5, False), "lr": (0.001, False)} | evaluated
    assert set(shown.numbers.metrics) == {"Acc", "Test Loss", "Test Acc"}


def test_a_heartbeat_of_another_program(monitor: Monitor, tmp_path: Path, clock: FakeClock) -> None:
    beat = tmp_path / "train_heartbeat.json"
    beat.write_text(json.dumps({"timestamp": NOW - 3, "global_step": 40, "total_steps": 100, "avg_loss": 0.5}))
    shown = look(monitor, beat)
    assert (shown.numbers.step, shown.numbers.steps, shown.numbers.loss, shown.updated) == (40, 100, 0.5, NOW - 3)
    assert shown.health is Health.TRAINING
    clock.advance(120)
    assert look(monitor, beat).health is Health.STALLED
    clock.advance(3600)
    assert badge(look(monitor, beat)) is SILENT


def test_a_folder_with_a_heartbeat_and_a_log(monitor: Monitor, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "heartbeat.json").write_text(json.dumps({"step": 7, "loss": 0.75}))
    (folder / "run.log").write_text("Epoch 1/3 loss: 0.9000\n")
    shown = look(monitor, folder)
    assert (shown.numbers.step, shown.numbers.loss) == (7, 0.75)
    assert shown.output == folder / "run.log"


def history(steps: int, of: int = 40) -> str:
    """As transformers writes it beside a checkpoint: an entry every ten steps."""
    entries = [{"epoch": 3 * i / of, "step": i, "loss": 10 / i, "learning_rate": 0.1} for i in range(10, steps + 1, 10)]
    plan = {"epoch": 3 * steps / of, "global_step": steps, "max_steps": of, "num_train_epochs": 3}
    return json.dumps({"best_metric": None, **plan, "log_history": entries, "logging_steps": 10})


@pytest.mark.parametrize(("steps", "word"), [(25, "external"), (40, "finished")])
@pytest.mark.parametrize("what", ["trainer_state.json", "", "checkpoint-40", "checkpoint-40/trainer_state.json"])
def test_the_output_of_the_trainer_of_transformers_is_a_metric_file(
    monitor: Monitor, tmp_path: Path, steps: int, word: str, what: str
) -> None:
    output = tmp_path / "output"
    (output / "checkpoint-40").mkdir(parents=True)
    (output / "vocab.json").write_text('{"a": 1}')
    for place, until in (("trainer_state.json", steps), ("checkpoint-40/trainer_state.json", steps)):
        (output / place).write_text(history(until))
        os.utime(output / place, (NOW - 100, NOW - 100))
    shown = look(monitor, output / what)
    numbers = shown.numbers
    assert (numbers.step, numbers.steps, numbers.epochs, numbers.epoch) == (steps, 40, 3, 3 * steps / 40)
    assert (list(shown.series["loss"].x), numbers.loss) == (list(range(10, steps + 1, 10)), 10 / (steps // 10 * 10))
    assert (badge(shown).word, needs_attention(shown)) == (word, False)
    assert set(numbers.metrics) == set()


@pytest.mark.parametrize("later", [0, 30, 3000])
def test_a_log_that_is_complete_is_finished_and_no_alarm(
    monitor: Monitor, tmp_path: Path, clock: FakeClock, later: float
) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"Epoch {i}/20 train_loss {2 / i:.4f} val_loss {3 / i:.4f}\n" for i in range(1, 21)))
    os.utime(log, (NOW, NOW))
    clock.advance(later)
    shown = look(monitor, log)
    assert (badge(shown).word, shown.health_note, needs_attention(shown)) == ("finished", "", False)
    assert (total_progress(shown.numbers), shown.numbers.eta_seconds) == (1.0, None)
    clock.advance(5)
    with log.open("a") as file:
        file.write("Epoch 1/20 train_loss 2.5 val_loss 3.1\n")
    os.utime(log, (clock.wall, clock.wall))
    assert badge(look(monitor, log)).word == "training", "it was started again"


def test_metric_files_are_found_as_parse_finds_them(monitor: Monitor, tmp_path: Path, clock: FakeClock) -> None:
    version = tmp_path / "lightning_logs" / "version_0"
    version.mkdir(parents=True)
    (version / "hparams.yaml").write_text("lr: 0.1\n")
    empty = look(monitor, version)
    assert empty.reason == "there is no .log .out .txt .csv .jsonl tfevents, heartbeat or trainer_state"
    assert header(empty, 80, NOW)[1].text.rstrip().endswith("trainer_state"), "all of it is seen in a narrow window"
    assert empty.health is None
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.txt").write_text("nothing of a training\n")
    assert look(monitor, tmp_path / "notes").reason == "readme.txt tells no numbers yet"
    (version / "data.csv").write_text("id,text\n1,a\n")
    (version / "metrics.csv").write_text("epoch,step,train_loss,val_loss\n0,10,2.5,\n1,20,1.5,1.75\n")
    clock.advance(5)
    shown = look(monitor, version)
    assert (shown.numbers.step, shown.numbers.loss, shown.readers) == (20, 1.5, "metrics.csv")


def test_a_watched_file_that_is_deleted_is_gone_until_it_is_there_again(monitor: Monitor, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    assert not look(monitor, log).gone, "what never was there is not gone"
    log.write_text("step 7 loss 0.5000\n")
    os.utime(log, (NOW - 5, NOW - 5))
    assert (look(monitor, log).gone, badge(look(monitor, log)).word) == (False, "external")
    log.unlink()
    gone = look(monitor, log)
    assert (gone.gone, badge(gone).word, needs_attention(gone)) == (True, "gone", True)
    assert (gone.numbers.step, gone.numbers.loss) == (7, 0.5), "what was known stays known"
    log.write_text("step 1 loss 2.5000\n")
    os.utime(log, (NOW, NOW))
    back = look(monitor, log)
    assert (back.gone, badge(back).word, back.numbers.step, back.numbers.loss) == (False, "training", 1, 2.5)


def test_a_value_that_is_named_like_a_field_of_every_record_is_none_of_them(
    monitor: Monitor, tmp_path: Path, clock: FakeClock
) -> None:
    log = tmp_path / "train.log"
    lines = [f"step {i} loss {1 / i:.4f} time {i / 10} attempt 7 rank 3\n" for i in range(1, 120)]
    log.write_text("".join(lines[:100]))
    look(monitor, log)
    clock.advance(5)
    with log.open("a") as file:
        file.writelines(lines[100:])
    curve = look(monitor, log).series["loss"]
    assert (curve.count, curve.times[-1], list(curve.attempt_marks)) == (119, clock.wall, [])
    assert set(look(monitor, log).series) == {"loss"}


@pytest.mark.parametrize("per_second", [20, 100])
def test_the_rate_of_a_program_that_prints_several_lines_a_look(
    monitor: Monitor, tmp_path: Path, clock: FakeClock, per_second: int
) -> None:
    log, step = tmp_path / "train.log", 0
    for _ in range(40):
        with log.open("a") as file:
            for _ in range(per_second // 5):
                step += 1
                file.write(f"step {step}/100000 loss {1 / step:.4f}\n")
        os.utime(log, (clock.wall, clock.wall))
        shown = look(monitor, log)
        clock.advance(0.2)
    assert shown.numbers.steps_per_second == pytest.approx(per_second)
    assert shown.numbers.eta_seconds == pytest.approx((100_000 - step) / per_second)


def refuse(path: object, *_: object, **__: object) -> int:
    raise PermissionError(13, "Permission denied", path)


def test_a_log_that_cannot_be_read_is_not_being_read(
    monitor: Monitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "locked.log"
    log.write_text("step 7 loss 0.5000\n")
    with monkeypatch.context() as locked:
        locked.setattr(os, "open", refuse)
        shown = look(monitor, log)
    assert (shown.numbers.step, shown.loading, shown.reason) == (None, False, "locked.log cannot be read")
    shown = look(monitor, log)
    assert (shown.numbers.step, shown.loading) == (7, False)
    assert "last written" in shown.reason


def test_nothing_there_yet_and_then_something(monitor: Monitor, tmp_path: Path, clock: FakeClock) -> None:
    log = tmp_path / "later.log"
    shown = look(monitor, log)
    assert (shown.state, shown.numbers.loss, shown.updated, shown.health) == (State.WATCHED, None, None, None)
    assert "no later.log" in shown.reason
    log.write_text("Epoch 1/3 loss: 0.5000\n")
    clock.advance(5)
    assert look(monitor, log).numbers.loss == 0.5


def test_a_run_directory_of_ours_is_a_run(monitor: Monitor, tmp_path: Path) -> None:
    elsewhere = make_home(tmp_path / "elsewhere")
    run = RunBuilder(elsewhere).status("ended").launch().exit(code=0)
    assert look(monitor, run.run.path).state is State.FINISHED


def test_a_run_directory_of_another_home_is_found_by_its_path(monitor: Monitor, home: Home, tmp_path: Path) -> None:
    """Also where a run of this home has the same id."""
    here = RunBuilder(home, "twice").status("ended").launch().exit(code=1).run
    there = RunBuilder(make_home(tmp_path / "elsewhere"), "twice").status("ended").launch().exit(code=0).run.path
    key = monitor.watch(there)
    seen = {one.run: one for one in monitor.refresh(key)}
    assert {name: one.state for name, one in seen.items()} == {key: State.FINISHED, here.run: State.FAILED}
    assert [one.is_elsewhere for one in seen.values()] == [True, False]
    assert "no run of this home" in allowed(seen[key], None, next(iter(BY_ID.values()))).why
    assert there.name == here.run


def test_watched_ones_come_first_and_once(monitor: Monitor, home: Home, tmp_path: Path) -> None:
    RunBuilder(home, "ours").status("ended").launch().exit(code=0)
    log = tmp_path / "x.log"
    log.write_text("hello\n")
    assert monitor.watch(log) == monitor.watch(log)
    assert [snapshot.name for snapshot in monitor.refresh()] == ["x.log", "ours"]


@pytest.mark.parametrize(
    ("record", "field", "value"),
    [
        ({"steps_total": 50, "loss": 1.0}, "step", 50),
        ({"step": 3, "steps_total": 50}, "steps", 50),
        ({"global_step": 3, "time": 1.8e12}, "time", 1.8e9),
        ({"global_step": 3, "updated_at": "2026-11-21T12:00:00+00:00"}, "time", 1795262400.0),
        ({"global_step": 3}, "time", 123.0),
        ({"epoch": 2.5, "learning_rate": 0.1}, "lr", 0.1),
        ({"step": 1, "loss": float("nan")}, "nonfinite", ("loss",)),
        ({"step": 1, "phase": "Validation"}, "phase", "eval"),
    ],
)
def test_heartbeats_of_other_programs(record: dict[str, object], field: str, value: object) -> None:
    beat = external_heartbeat(record, 123_000_000_000)
    assert beat is not None
    assert getattr(beat, field) == value


def test_a_json_that_counts_nothing_is_no_heartbeat() -> None:
    assert external_heartbeat({"hello": "world"}, 1) is None


def test_a_long_log_is_read_on_between_pictures_with_all_its_metrics(home: Home, clock: FakeClock) -> None:
    log = home.state / "train.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"step={i} loss={9 / (1 + i % 777):.4f} lr=1.0e-03 grad_norm={i % 991 / 100:.2f}" for i in range(60_000)]
    lines[40_000] = "step=40000 loss=77.5 lr=1.0e-03 grad_norm=88.25"
    log.write_text("\n".join([*lines, ""]))
    monitor = make_monitor(home, clock)
    key = monitor.watch(log)
    (first,) = monitor.refresh(key)
    assert first.numbers.step == 59_999, "the newest numbers come first"
    while monitor.read_on(key, 0.001):
        pass
    (whole,) = monitor.refresh(key)
    assert not whole.loading
    assert {name: (view.count, view.maximum, view.complete) for name, view in whole.series.items()} == {
        "loss": (60_000, 77.5, True),
        "lr": (60_000, 0.001, True),
        "grad_norm": (60_000, 88.25, True),
    }


def test_a_history_that_is_still_being_read_says_so(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpstui.core.runs.monitor.REFRESH_SECONDS", 0.003)
    log = home.state / "train.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(f"step={i} loss={9 / (1 + i):.4f}\n" for i in range(400_000)))
    monitor = make_monitor(home, BusyClock())
    key = monitor.watch(log)
    monitor.refresh(None)
    owed = monitor.read_on(key, 0)
    (picture,) = monitor.refresh(None)
    assert owed > 1 << 18
    assert picture.loading
    assert not picture.series["loss"].complete


def test_a_short_log_that_has_not_been_read_at_all_is_no_log_without_numbers(home: Home, clock: FakeClock) -> None:
    log = home.state / "train.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("step=1 loss=2.5\n")
    reader = WatchedReader(log, LocalMachine(FakeTable(), "boot", clock, clock.monotonic))
    unread = reader.refresh(full=False, budget=Budget(0.0))
    assert (unread.numbers.loss, unread.loading) == (None, True)
    read = reader.refresh(full=True, budget=Budget(1.0))
    assert (read.numbers.loss, read.loading) == (2.5, False)


def test_a_log_tells_its_device_and_that_the_training_is_done(monitor: Monitor, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    lines = [f"Epoch {e} [{s}/100] loss: {3 / (1 + 100 * e + s):.4f}\n" for e in (0, 1) for s in range(0, 100, 30)]
    log.write_text("".join(["Using device: cuda:0\n", *lines]))
    shown = look(monitor, log)
    assert (shown.numbers.device.type, shown.numbers.done, total_progress(shown.numbers)) == ("cuda", False, None)
    with log.open("a") as file:
        file.write("Training complete in 3m 2s\n")
    shown = look(monitor, log)
    assert (shown.numbers.done, total_progress(shown.numbers)) == (True, 1.0)
    with log.open("a") as file:
        file.write("Epoch 2 [0/100] loss: 0.001\n")
    assert not look(monitor, log).numbers.done


def test_of_a_long_log_the_end_tells_first_that_it_is_done(monitor: Monitor, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    lines = [f"step {s} loss: {3 / (1 + s):.6f} text that makes the line long enough for a test\n" for s in range(9000)]
    log.write_text("".join([*lines, "Training complete\n"]))
    assert log.stat().st_size > PREVIEW_BYTES
    seen = [run.numbers.done for _ in range(50) for run in monitor.refresh(monitor.watch(log)) if run.name == log.name]
    assert seen[0]
    assert seen[-1]


def test_a_file_that_is_no_text_has_no_log(monitor: Monitor, tmp_path: Path) -> None:
    rows = [wandb_files.history(step, {"loss": 1.0 / (step + 1)}) for step in range(40)]
    file = wandb_files.write(tmp_path / "run-a.wandb", [wandb_files.run("a", {}), *rows])
    shown = look(monitor, file)
    assert (shown.output, shown.numbers.step, shown.series["loss"].count) == (None, 39, 40)
    assert shown.series["loss"].times[3] == wandb_files.START + 3
    assert last_lines(file, 10) == []
    log = tmp_path / "a.log"
    log.write_bytes(b"\0" * 4096 + b"step 1 loss 0.5\n")  # a hole in front
    assert look(monitor, log).output == log


def test_a_table_that_an_earlier_run_left_does_not_stand_for_the_log_that_grows_beside_it(
    monitor: Monitor, tmp_path: Path, clock: FakeClock
) -> None:
    folder = tmp_path / "exp"
    folder.mkdir()
    table, log = folder / "results.csv", folder / "train.log"
    table.write_text("epoch,step,loss\n" + "".join(f"{epoch},{epoch * 10},{40 - epoch}\n" for epoch in range(40)))
    os.utime(table, (NOW - 86_400, NOW - 86_400))
    assert look(monitor, folder).numbers.epoch == 39
    log.write_text("".join(f"epoch {epoch}/10 loss {1 / epoch:.4f}\n" for epoch in range(1, 5)))
    os.utime(log, (NOW, NOW))
    clock.advance(FIND_SECONDS)
    shown = look(monitor, folder)
    assert (shown.numbers.epoch, shown.numbers.epochs, shown.numbers.loss) == (4, 10, 0.25)
    assert shown.series["loss"].count == 4


@pytest.mark.parametrize("last", [3, 4])
def test_a_table_with_a_row_for_each_long_epoch_stands_for_the_log_of_the_same_run(
    monitor: Monitor, tmp_path: Path, last: int
) -> None:
    folder = tmp_path / "exp"
    folder.mkdir()
    table, log = folder / "results.csv", folder / "train.log"
    table.write_text("epoch,loss\n" + "".join(f"{epoch},{40 - epoch}\n" for epoch in range(1, 4)))
    os.utime(table, (NOW - 7200, NOW - 7200))
    log.write_text("".join(f"epoch {epoch}/10 loss {1 / epoch:.4f}\n" for epoch in range(1, last + 1)))
    os.utime(log, (NOW, NOW))
    assert look(monitor, folder).numbers.loss == 37
