"""Checkpoints that are written while the training goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.building import job, train
from trainer import saving
from trainer.checkpoint import CheckpointFolder, load
from trainer.device import CudaDevice, Device
from trainer.errors import TrainingError
from trainer.loop import Loop

WORDS = ("--limit", "64", "--epochs", "3", "--save-steps", "3", "--save-every", "1", "--keep", "9", "--ema", "0.9")


@pytest.fixture(autouse=True)
def _copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU stands in for a device that can."""
    assert CudaDevice.copies_quickly
    assert not Device.copies_quickly
    monkeypatch.setattr(Device, "copies_quickly", True)


def _states(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.pt")):
        found[path.name] = dict(load(path, lambda state: None).state)
        found[path.name].pop("run", None)
    return found


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, torch.Tensor):
        return torch.equal(mine, theirs)
    if isinstance(mine, dict):
        return mine.keys() == theirs.keys() and all(_same(value, theirs[name]) for name, value in mine.items())
    if isinstance(mine, (list, tuple)):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    return bool(mine == theirs)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon"])
def test_they_are_those_that_would_have_been_written_at_once(
    optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, beside in (("beside", True), ("at-once", False)):
        monkeypatch.setattr(Device, "copies_quickly", beside)
        train(*WORDS, "--optimizer", optimizer, "--out", str(tmp_path / name))
    mine, theirs = _states(tmp_path / "beside"), _states(tmp_path / "at-once")
    assert len(mine) > 4
    assert _same(mine, theirs)


def _waiting(monkeypatch: pytest.MonkeyPatch, go: threading.Event, fails: bool = False) -> Callable[[], int]:
    """Holds up what writes checkpoints beside the training; returns how many have begun."""
    begun: list[int] = []
    write = CheckpointFolder.save

    def save(folder: CheckpointFolder, state: Any, step: int, **named: Any) -> Path:
        if threading.current_thread() is not threading.main_thread():
            begun.append(step)
            assert go.wait(60)
            if fails:
                raise OSError(28, "No space left on device")
        return write(folder, state, step, **named)

    monkeypatch.setattr(CheckpointFolder, "save", save)
    return lambda: len(begun)


def test_steps_go_on_meanwhile_and_the_checkpoint_is_of_the_step_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    _waiting(monkeypatch, go)
    made = job("--limit", "128", "--epochs", "1", "--save-steps", "3", "--keep", "9", folder=tmp_path)
    step, told = made.stepper.step, list[tuple[str, int]]()
    weights: dict[int, torch.Tensor] = {}
    monkeypatch.setattr(made.reports, "saved", lambda path, step: told.append((Path(path).name, step)))

    def counted(batch: Any, total: int, number: int) -> None:
        weights[number - 1] = next(made.model.parameters()).detach().clone()
        step(batch, total, number)
        if number == 5:
            assert told == []
            go.set()

    monkeypatch.setattr(made.stepper, "step", counted)
    Loop(made).run()
    assert told == [("step-00000003.pt", 3), ("step-00000006.pt", 6), ("step-00000008.pt", 8)]
    saved = load(tmp_path / "step-00000003.pt", lambda state: None).state["model"]
    assert torch.equal(next(iter(saved.values())), weights[3])
    assert not torch.equal(weights[3], weights[5])


def test_one_that_could_not_be_written_is_told_and_is_no_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    go.set()
    begun = _waiting(monkeypatch, go, fails=True)
    made = job("--limit", "32", "--epochs", "2", folder=tmp_path)
    scores, told = iter((0.9, 0.5)), list[str]()
    monkeypatch.setattr(type(made.task), "evaluate", lambda *_: iter([{"val_accuracy": next(scores)}]))
    monkeypatch.setattr(made.reports, "notify", lambda name, text, **_: told.append(text))
    Loop(made).run()
    assert begun() == 1
    assert sum("could not be written" in text for text in told) == 1
    best = load(tmp_path / "best.pt", lambda state: None).state["progress"]
    assert (best["best"], best["best_step"]) == (0.5, made.progress.step)


def test_a_training_that_fails_leaves_what_it_was_writing_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    _waiting(monkeypatch, go)
    made = job("--limit", "64", "--epochs", "1", "--save-steps", "2", folder=tmp_path)
    step = made.stepper.step

    def failing(batch: Any, total: int, number: int) -> None:
        if number == 3:
            go.set()
            raise TrainingError("no third step")
        step(batch, total, number)

    monkeypatch.setattr(made.stepper, "step", failing)
    with pytest.raises(TrainingError, match="no third step"):
        Loop(made).run()
    assert load(tmp_path / "step-00000002.pt", lambda state: None).state["progress"]["step"] == 2


def test_what_the_host_has_no_memory_for_is_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    begun = _waiting(monkeypatch, go)
    monkeypatch.setattr(saving, "_MOST_COPIED_BYTES", 1000)
    train("--limit", "32", "--epochs", "2", "--save-every", "1", "--out", str(tmp_path))
    monkeypatch.undo()
    monkeypatch.setattr(Device, "copies_quickly", True)
    begun_now = _waiting(monkeypatch, go)

    def refused(device: Device, state: Any) -> Any:
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(Device, "copied", refused)
    train("--limit", "32", "--epochs", "2", "--save-every", "1", "--out", str(tmp_path))
    assert (begun(), begun_now()) == (0, 0)
    assert (tmp_path / "step-00000004.pt").exists()
