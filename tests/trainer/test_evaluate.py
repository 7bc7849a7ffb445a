"""A checkpoint is validated and exported without saying again what it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tests.trainer.cases.cifar import images
from tests.trainer.cases.twotower import pairs
from tests.trainer.floor_plans import write_folder
from tests.trainer.running import command, train

CIFAR = ("--model", "tiny", "--width", "4", "--limit", "64", "--epochs", "1", "--batch-size", "32", "--ema", "0.5")


@pytest.fixture(name="trained", scope="module")
def _trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    run_dir = tmp_path_factory.mktemp("run")
    found = train("cifar", *CIFAR, run_dir=run_dir)
    return run_dir / "checkpoints" / "best.pt", found


def test_evaluating_finds_what_validation_found(
    trained: tuple[Path, dict[str, float]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, metrics = trained
    assert command("evaluate", str(path), "--limit", "64", "--device", "cpu") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["step"] == 2
    assert found["data"].startswith("synthetic")
    assert found["val_accuracy"] == pytest.approx(metrics["val_accuracy"])
    assert found["val_loss"] == pytest.approx(metrics["val_loss"], rel=1e-5)


def test_a_folder_means_its_newest_checkpoint(
    trained: tuple[Path, dict[str, float]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trained[0].parent
    assert command("evaluate", str(folder), "--limit", "64", "--device", "cpu") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["checkpoint"] == str(folder / "step-00000002.pt")
    assert command("evaluate", str(tmp_path), "--device", "cpu") == 2
    told = capsys.readouterr().err
    assert (
        told == f"trainer: {tmp_path}: no checkpoints (*.pt) in that folder; name a checkpoint, or a folder of them\n"
    )


@pytest.mark.parametrize("verb", ["evaluate", "export", "cifar"])
@pytest.mark.parametrize("state", [{}, {"task": "cifar"}, {"task": "cifar", "signature": {}, "order": {"seed": "x"}}])
def test_a_checkpoint_that_lacks_a_part_is_one_sentence(
    state: dict[str, object], verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.pt"
    torch.save({"format": "mpstui.trainer/1", **state}, path)
    words = {
        "evaluate": ("evaluate", str(path)),
        "export": ("export", str(path), str(tmp_path / "x.safetensors")),
        "cifar": ("cifar", "--resume", str(path), *CIFAR, "--out", str(tmp_path)),
    }
    assert command(*words[verb]) == 2
    told = capsys.readouterr().err
    assert "is missing or damaged" in told
    assert told.count("\n") == 1


def test_exported_weights_are_the_averaged_ones_and_say_what_they_are(
    trained: tuple[Path, dict[str, float]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = trained
    target = tmp_path / "deep" / "weights.safetensors"
    assert command("export", str(path), str(target), "--limit", "64") == 0
    assert capsys.readouterr().out.startswith(f"{target}: ")
    state = torch.load(path, weights_only=True)
    found = load_file(target)
    assert found.keys() == state["model"].keys()
    torch.testing.assert_close(found["conv1.weight"], state["average"]["average"][0], rtol=0, atol=0)
    assert not torch.equal(found["conv1.weight"], state["model"]["conv1.weight"])
    with safe_open(target, "pt") as file:
        assert file.metadata()["task"] == "cifar"
        assert json.loads(file.metadata()["signature"])["width"] == 4
    assert [item.name for item in target.parent.iterdir()] == ["weights.safetensors"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["evaluate"], "trainer: evaluate needs CHECKPOINT: python -m trainer evaluate CHECKPOINT [options]"),
        (["export", "a.pt"], "trainer: export needs CHECKPOINT and FILE"),
        (["evaluate", "gone.pt"], "trainer: gone.pt does not exist; name a checkpoint, or a folder of them"),
    ],
)
def test_wrong_use_is_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str) -> None:
    assert command(*arguments) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(sentence)
    assert len(printed.splitlines()) == 1


@pytest.mark.parametrize("name", ["evaluate", "export"])
def test_help_is_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(name, "--help") == 0
    assert capsys.readouterr().out.startswith(f"usage: python -P -m trainer {name} CHECKPOINT")


def test_another_model_is_refused(trained: tuple[Path, dict[str, float]], capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = trained
    assert command("evaluate", str(path), "--width", "8", "--limit", "64") == 2
    assert "is a checkpoint of another model" in capsys.readouterr().err


def test_a_model_of_real_data_is_not_judged_by_synthetic_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = images(tmp_path)
    train("cifar", *CIFAR, *data, run_dir=tmp_path / "run")
    best = str(tmp_path / "run" / "checkpoints" / "best.pt")
    assert command("evaluate", best, "--device", "cpu") == 2
    assert "say where that data is" in capsys.readouterr().err
    assert command("evaluate", best, "--device", "cpu", *data) == 0


def test_judging_draws_only_what_is_asked_for_beside_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ("--width", "16", "--layers", "1", "--heads", "2", "--limit", "8", "--batch-size", "8", "--epochs", "1")
    train("gsdiff", "--stage", "2", *small, "--sample-every", "0", run_dir=tmp_path / "run")
    best, here = tmp_path / "run" / "checkpoints" / "best.pt", tmp_path / "elsewhere"
    here.mkdir()
    monkeypatch.chdir(here)
    capsys.readouterr()
    judge = ("evaluate", str(best), "--limit", "8", "--device", "cpu", "--samples", "2", "--sample-steps", "2")
    assert command(*judge) == 0
    assert "val_closed" not in json.loads(capsys.readouterr().out)
    assert command(*judge, "--sample-every", "1") == 0
    assert "val_closed" in json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(here.iterdir()) == []
    assert list((best.parent / "samples").glob("*.svg"))


def test_the_test_split_is_judged_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ("--data", str(write_folder(tmp_path / "data")))
    small = ("--width", "16", "--layers", "1", "--heads", "2", "--batch-size", "4", "--epochs", "1", "--stage", "2")
    train("gsdiff", *data, *small, "--sample-every", "0", run_dir=tmp_path / "run")
    capsys.readouterr()
    best = str(tmp_path / "run" / "checkpoints" / "best.pt")
    assert command("evaluate", best, *data, "--device", "cpu", "--validate-on", "test") == 0
    assert json.loads(capsys.readouterr().out)["data"].endswith("validated on test/: 12 training, 2 validation plans")


def test_exporting_needs_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--width", "8", "--layers", "1", "--epochs", "1", "--batch-size", "32", "--ema", "0.9")
    train("twotower", *pairs(tmp_path), *options, run_dir=tmp_path / "run")
    best = tmp_path / "run" / "checkpoints" / "best.pt"
    assert command("export", str(best), str(tmp_path / "weights.safetensors")) == 0
    assert load_file(tmp_path / "weights.safetensors").keys() == torch.load(best, weights_only=True)["model"].keys()
