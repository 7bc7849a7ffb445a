"""Folders of Hydra, Lightning, Hugging Face's Trainer and TensorBoard: many runs at once, with their settings."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mpstui.core.formats.files import read_log
from mpstui.core.formats.stores import find_runs
from mpstui.core.model.snapshot import Health, RunSnapshot, State
from mpstui.core.present import BADGES, badge
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.store_folder import LOOK_SECONDS
from tests.core.runs.build import FakeClock, make_home, make_monitor
from tests.wandb_files import event, events, scalar

_REWARDS = (
    "time/iterations,time/total_timesteps,rollout/ep_rew_mean,train/loss\n1,2048,10,\n2,4096,20,0.5\n3,6144,30,0.4\n"
)
_LOSSES = "epoch,train_loss,valid_loss,time\n0,1.5,1.4,00:01\n1,0.4,1.1,00:01\n"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def monitor(tmp_path: Path, clock: FakeClock) -> Monitor:
    return make_monitor(make_home(tmp_path / "home"), clock)


def listed(monitor: Monitor, path: Path) -> dict[str, RunSnapshot]:
    assert monitor.watch(path) == ""
    return {one.name: one for one in monitor.refresh_whole()}


def test_jobs_of_a_sweep(monitor: Monitor, tmp_path: Path) -> None:
    for number, lr in enumerate((0.1, 0.2)):
        job = tmp_path / "multirun" / "2026-01-01" / "10-00-00" / str(number)
        (job / ".hydra").mkdir(parents=True)
        (job / ".hydra" / "config.yaml").write_text(f"optim:\n  lr: {lr}\n  betas:\n  - 0.9\n  - 0.99\nepochs: 5\n")
        (job / ".hydra" / "overrides.yaml").write_text(f"- optim.lr={lr}\n")
        (job / ".hydra" / "hydra.yaml").write_text("hydra:\n  job:\n    name: train\n")
        (job / "train.log").write_text("".join(f"epoch {epoch}/5 loss {lr / epoch}\n" for epoch in range(1, 4)))
    found = listed(monitor, tmp_path / "multirun")
    assert set(found) == {"10-00-00/0", "10-00-00/1"}
    shown = found["10-00-00/1"]
    assert (shown.store, shown.settings, shown.argv) == (
        "Hydra", {"optim.lr": "0.2", "optim.betas": "[0.9, 0.99]", "epochs": "5"}, ("train.py", "optim.lr=0.2"),
    )  # fmt: skip
    assert (shown.numbers.epoch, shown.numbers.epochs, shown.is_ours) == (3, 5, False)
    assert shown.output == shown.dir / "train.log"


def test_versions_of_lightning(monitor: Monitor, tmp_path: Path) -> None:
    for version in range(2):
        folder = tmp_path / "lightning_logs" / f"version_{version}"
        folder.mkdir(parents=True)
        (folder / "hparams.yaml").write_text(f"lr: 0.{version}\nbatch_size: 32\n")
        (folder / "metrics.csv").write_text(
            "epoch,step,train_loss\n" + "".join(f"0,{i},{1 / (i + 1)}\n" for i in range(9))
        )
    assert monitor.watch(tmp_path / "lightning_logs" / "version_1") == str(tmp_path / "lightning_logs" / "version_1")
    (shown,) = monitor.refresh_whole()
    assert (shown.name, shown.settings) == ("lightning_logs/version_1", {"lr": "0.1", "batch_size": "32"})
    assert (shown.numbers.step, shown.series["loss"].count) == (8, 9)
    assert len(find_runs(tmp_path)) == 2


def test_what_is_written_without_a_step_at_the_end_does_not_move_the_run_back(monitor: Monitor, tmp_path: Path) -> None:
    """As PyTorch's add_hparams does in a folder of its own, and whoever adds a scalar without a step."""
    own = tmp_path / "logs" / "a"
    events(tmp_path / "logs" / "b" / "events.out.tfevents.1.x", range(5))
    of_loss = b"".join(event(step, scalar("Loss/train", 1 / (step + 1))) for step in range(0, 300, 3))
    at_end = event(0, scalar("accuracy", 0.5), 1.7e9 + 400)
    own.mkdir(parents=True)
    (own / "events.out.tfevents.1.x").write_bytes(of_loss + at_end)
    results = own / "1700000500.25"
    results.mkdir()
    (results / "events.out.tfevents.2.x").write_bytes(event(0, scalar("hparam/loss", 0.25), 1.7e9 + 500))
    shown = listed(monitor, tmp_path / "logs")["logs/a"]
    assert shown.numbers.step == 297
    assert shown.numbers.loss == pytest.approx(1 / 298)


def test_the_folder_of_one_run_is_more_than_the_results_beside_its_arguments(monitor: Monitor, tmp_path: Path) -> None:
    """Those were written last, and were taken for the newest file of the folder."""
    own = tmp_path / "logs" / "a"
    events(own / "events.out.tfevents.1.x", range(40), "Loss/train")
    results = own / "1700000500.25" / "events.out.tfevents.2.x"
    results.parent.mkdir()
    results.write_bytes(event(0, scalar("hparam/loss", 0.25), 1.7e9 + 500))
    os.utime(own / "events.out.tfevents.1.x", (1.7e9, 1.7e9))
    key = monitor.watch(tmp_path / "logs")
    [seen] = monitor.refresh_whole()
    assert seen.numbers.step == 39
    assert seen.numbers.loss == pytest.approx(1 / 40)
    assert set(monitor.snapshot(key).series) == {"loss", "hparam/loss"}
    found = read_log(own)
    assert (found.step, found.train_loss and found.train_loss.count) == (39, 40)
    assert read_log(results.parent).step == 0, "who names that folder means it"


def test_results_beside_arguments_do_not_move_a_run_without_a_loss(monitor: Monitor, tmp_path: Path) -> None:
    own = tmp_path / "logs" / "a"
    results = own / "1700000500.25"
    results.mkdir(parents=True)
    events(tmp_path / "logs" / "b" / "events.out.tfevents.1.x", range(5))
    (own / "events.out.tfevents.1.x").write_bytes(event(5_000, scalar("rollout/ep_rew_mean", 20.0)))
    (results / "events.out.tfevents.2.x").write_bytes(event(0, scalar("hparam/reward", 20.0), 1.7e9 + 9_000))
    shown = listed(monitor, tmp_path / "logs")["logs/a"]
    assert (shown.numbers.step, shown.numbers.loss) == (5_000, None)


@pytest.mark.parametrize(("name", "table"), [("progress.csv", _REWARDS), ("history.csv", _LOSSES)])
def test_tables_in_sibling_folders_are_runs_of_their_own(
    monitor: Monitor, tmp_path: Path, name: str, table: str
) -> None:
    """Looked at from above they were one run, whose newest table stood for all."""
    for folder in ("ppo_1", "ppo_2", "ppo_2/eval"):
        (tmp_path / "logs" / folder).mkdir(parents=True)
        (tmp_path / "logs" / folder / name).write_text(table)
    found = listed(monitor, tmp_path / "logs")
    assert {name: one.numbers.loss for name, one in found.items()} == {"logs/ppo_1": 0.4, "logs/ppo_2": 0.4}
    assert not find_runs(tmp_path / "logs" / "ppo_1"), "one alone is a folder as any other"


def logs(*paths: Path) -> None:
    for number, path in enumerate(paths, 1):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"epoch {epoch}/5 loss {number / epoch}\n" for epoch in range(1, 4)))


def test_sibling_folders_with_nothing_but_a_log_are_runs_of_their_own(
    monitor: Monitor, tmp_path: Path, clock: FakeClock
) -> None:
    root = tmp_path / "runs"
    logs(*(root / name / "train.log" for name in ("run1/backup", "run1", "run2/eval", "run2")))
    found = listed(monitor, root)
    assert {name: one.numbers.loss for name, one in found.items()} == {"runs/run1": 2 / 3, "runs/run2": 4 / 3}
    logs(root / "run3" / "train.log")
    clock.advance(LOOK_SECONDS)
    monitor.refresh()  # finds it, and the next one reads it
    assert {one.name for one in monitor.refresh_whole()} == {"runs/run1", "runs/run2", "runs/run3"}


@pytest.mark.parametrize(
    "names",
    [
        ("run1/train.log",),
        ("logs/train.log", "notes/log.txt"),
        ("train.log", "old/train.log"),
        ("0/stdout.log", "1/stdout.log"),
        ("a/train.log", "b/train.log", "csv/progress.csv"),
    ],
    ids=["one", "of two kinds", "in the folder itself", "of processes", "beside a table"],
)
def test_logs_are_no_runs_where_they_may_be_parts_of_one(tmp_path: Path, names: tuple[str, ...]) -> None:
    logs(*(tmp_path / name for name in names))
    assert find_runs(tmp_path) == []


def test_trainings_of_ultralytics(monitor: Monitor, tmp_path: Path) -> None:
    for name in ("train", "train2"):
        folder = tmp_path / "runs" / "detect" / name
        (folder / "weights").mkdir(parents=True)
        (folder / "args.yaml").write_text("model: yolo11n.yaml\nepochs: 30\nlr0: 0.01\n")
        rows = "".join(f"{epoch},{1 / epoch},{epoch / 30}\n" for epoch in range(1, 4))
        (folder / "results.csv").write_text(f"epoch,train/box_loss,metrics/mAP50(B)\n{rows}")
    (tmp_path / "train.log").write_text("epoch 1/30 loss 9.0\n")
    found = listed(monitor, tmp_path)
    assert set(found) == {"detect/train", "detect/train2"}
    shown = found["detect/train"]
    assert (shown.store, shown.settings["lr0"]) == ("Ultralytics", "0.01")
    assert (shown.numbers.epoch, shown.numbers.epochs) == (3, 30)
    assert [run.key for run in find_runs(shown.dir)] == [shown.run], "the same one, whichever folder is named"
    assert badge(shown) is not BADGES[State.FINISHED]
    for epochs, ended in ((3, True), (4, False)):
        (shown.dir / "args.yaml").write_text(f"model: yolo11n.yaml\nepochs: {epochs}\n")
        again = make_monitor(make_home(tmp_path / "home"), FakeClock())
        (table,) = (one for one in listed(again, tmp_path).values() if one.dir == shown.dir)
        assert (badge(table) is BADGES[State.FINISHED]) is ended, "each row is told at the end of its epoch"


def test_a_folder_trains_once_it_is_seen_to_grow(monitor: Monitor, tmp_path: Path, clock: FakeClock) -> None:
    """Neither training, as a copy would be that looks new, nor stalled, as one of last week would be."""
    for version in range(2):
        metrics = tmp_path / "lightning_logs" / f"version_{version}" / "metrics.csv"
        metrics.parent.mkdir(parents=True)
        (metrics.parent / "hparams.yaml").write_text("lr: 0.1\n")
        metrics.write_text("epoch,step,train_loss\n0,0,1.0\n")
        os.utime(metrics, (clock(), clock()))
    assert {one.health for one in listed(monitor, tmp_path / "lightning_logs").values()} == {None}
    clock.advance(3600)
    assert {one.health for one in monitor.refresh()} == {None}
    with metrics.open("a") as file:
        file.write("0,1,0.5\n")
    os.utime(metrics, (clock(), clock()))
    assert {one.name: one.health for one in monitor.refresh()}["lightning_logs/version_1"] is Health.TRAINING


def test_output_folders_of_the_trainer(monitor: Monitor, tmp_path: Path) -> None:
    for name in ("a", "b"):
        for step in (10, 20):
            history = [{"step": at, "epoch": at / 10, "loss": 1 / at} for at in range(5, step + 1, 5)]
            state = {"global_step": step, "max_steps": 40, "log_history": history}
            saved = tmp_path / "out" / name / f"checkpoint-{step}"
            saved.mkdir(parents=True)
            (saved / "trainer_state.json").write_text(json.dumps(state))
    found = listed(monitor, tmp_path / "out")
    assert {name: (one.store, one.numbers.step, one.numbers.steps) for name, one in found.items()} == dict.fromkeys(
        ("out/a", "out/b"), ("Trainer", 20, 40)
    )
    assert find_runs(tmp_path / "out" / "a") == []  # alone, its folder is watched as ever


def test_a_log_directory_of_many_runs(monitor: Monitor, tmp_path: Path, clock: FakeClock) -> None:
    first = events(tmp_path / "logs" / "a" / "events.out.tfevents.1.x", range(10))
    events(tmp_path / "logs" / "a" / "events.out.tfevents.2.x", range(8, 20))
    events(tmp_path / "logs" / "b" / "events.out.tfevents.1.x", range(5))
    events(tmp_path / "logs" / "b" / "validation" / "events.out.tfevents.1.x", range(5))
    events(tmp_path / "logs" / "b" / "events.out.tfevents.2.x", range(3), "val/acc")
    found = listed(monitor, tmp_path / "logs")
    assert set(found) == {"logs/a", "logs/b", "b/validation"}
    assert found["logs/b"].numbers.step == 4, "two files are written side by side, and one is ahead"
    whole = monitor.snapshot(found["logs/a"].run)
    assert list(whole.series["loss"].x) == list(range(20))  # what the second file measured again stands
    assert whole.series["loss"].times[-1] == 1.7e9 + 19
    evaluated = monitor.snapshot(found["b/validation"].run)
    assert list(evaluated.series) == ["train/loss"]
    events(first / "events.out.tfevents.3.x", range(20, 30))
    events(tmp_path / "logs" / "c" / "events.out.tfevents.1.x", range(5))
    clock.advance(10)
    found = {one.name: one for one in monitor.refresh_whole()}
    assert (found["logs/a"].numbers.step, found["logs/c"].numbers.step) == (29, 4)
    assert find_runs(tmp_path / "logs" / "c") == []
