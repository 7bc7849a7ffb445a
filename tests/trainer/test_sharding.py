"""Weights divided over two ranks: the same training in half the memory, from and to the same checkpoints."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.trainer.building import ROOT, environment, torchrun
from tests.trainer.building import train as train_cifar
from tests.trainer.running import command, metrics, parsed, train
from tests.trainer.sharded_ranks import TRAININGS
from tests.warm import CAN_FORK
from trainer import options
from trainer.checkpoint import incomplete, load
from trainer.errors import UsageError
from trainer.models.caduceus import Caduceus
from trainer.models.resnet import ResNet
from trainer.sharding import blocks

AVERAGE = TRAININGS["average"][1:]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two ranks did: their folder. All workers share it, since that takes longer than every test here."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "pair"
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _train(folder)
            (folder / "done").touch()
    return folder


def _train(folder: Path) -> None:
    train("cifar", *AVERAGE, "--batch-size", "16", "--stop-after", "5", run_dir=folder / "alone")
    ranks = ("tests.trainer.sharded_ranks", str(folder))
    child = subprocess.run(
        [sys.executable, "-m", *ranks] if CAN_FORK else torchrun(*ranks),
        env=environment(compiler=True), cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-4000:]


def _found(pair: Path) -> list[dict[str, Any]]:
    return [json.loads((pair / f"rank{rank}.json").read_text()) for rank in (0, 1)]


def _agree(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert [point.keys() for point in found] == [point.keys() for point in expected]
    for one, other in zip(found, expected, strict=True):
        assert [name for name in one if one[name] is None] == [name for name in other if other[name] is None]
        told = {name: value for name, value in other.items() if value is not None}
        assert {name: one[name] for name in told} == pytest.approx(told, rel=2e-5, abs=1e-6)


@pytest.mark.parametrize("name", TRAININGS)
def test_a_sharded_training_is_the_unsharded_one(pair: Path, name: str) -> None:
    whole = metrics(pair / f"{name}-whole")
    assert whole[-1]["step"] >= 2
    assert "val_loss" in whole[-1]
    _agree(metrics(pair / f"{name}-sharded"), whole)


def test_a_step_that_overflows_on_one_rank_is_skipped_by_both(pair: Path) -> None:
    whole = metrics(pair / "scaled-whole")
    _agree(metrics(pair / "scaled-sharded"), whole)
    norms = [point["grad_norm"] for point in whole if "grad_norm" in point]
    assert norms[0] is None
    assert norms[-1] is not None
    for found in _found(pair):
        assert found["overflows"]
        assert not found["fits"]


def test_weights_that_are_written_count_at_once_although_nothing_was_backpropagated(pair: Path) -> None:
    for found in _found(pair):
        assert found["before"] > 0
        assert found["after"] == 0


def test_each_rank_holds_half_of_the_weights_and_of_the_optimizers_state(pair: Path) -> None:
    for found in _found(pair):
        assert found["weights"] == pytest.approx(found["all"] / 2, rel=0.02)
        assert found["bytes"] == pytest.approx(4 * found["all"] / 2, rel=0.02)
        assert found["state"] == pytest.approx(found["all"], rel=0.02)  # two moments of each
        assert not found["compiled"]


@pytest.mark.parametrize("name", ["average", "genomics", "walls", "reduced"])
def test_its_checkpoints_are_what_an_unsharded_training_writes(pair: Path, name: str) -> None:
    last = "checkpoints/best.pt"
    one, other = (dict(load(pair / f"{name}-{way}" / last, incomplete).state) for way in ("sharded", "whole"))
    assert [len(states["torch"]) for states in one.pop("rng_of_ranks")] == [len(other["rng"]["torch"])] * 2
    assert _shape_of(one) == _shape_of(other)
    torch.testing.assert_close(one["model"], other["model"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(one["optimizer"], other["optimizer"], rtol=1e-4, atol=1e-5)


def _shape_of(value: Any) -> Any:
    """What is where in a checkpoint, without the numbers."""
    if isinstance(value, torch.Tensor):
        return (type(value), value.dtype, value.shape, value.device)
    if isinstance(value, dict):
        return {key: _shape_of(item) for key, item in value.items()}
    return [_shape_of(item) for item in value] if isinstance(value, (list, tuple)) else type(value)


def test_its_checkpoint_is_judged_and_exported_by_one_process(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = pair / "average-sharded" / "checkpoints" / "step-00000010.pt"
    assert command("evaluate", str(checkpoint), *AVERAGE, "--device", "cpu") == 0
    judged = json.loads(capsys.readouterr().out)
    told = metrics(pair / "average-sharded")[-1]
    assert {name: judged[name] for name in ("step", "val_loss", "val_accuracy")} == pytest.approx(
        {name: told[name] for name in ("step", "val_loss", "val_accuracy")}, rel=1e-5
    )
    assert command("export", str(checkpoint), str(pair / "weights.safetensors"), *AVERAGE) == 0
    assert load_file(pair / "weights.safetensors")


def test_a_checkpoint_goes_on_in_the_other_layout_and_with_another_number_of_ranks(pair: Path) -> None:
    rest = [point for point in metrics(pair / "average-whole") if point["step"] > 5]
    _agree(metrics(pair / "sharded-from-whole"), rest)
    _agree(metrics(pair / "whole-from-sharded"), rest)
    _agree(metrics(pair / "sharded-from-alone"), metrics(pair / "whole-from-alone"))
    stopped = pair / "genomics-stopped" / "checkpoints"
    found = train(*TRAININGS["genomics"], "--accumulate", "4", "--resume", str(stopped), run_dir=pair / "one")
    assert found["step"] == 2
    assert found["val_loss"] == pytest.approx(metrics(pair / "genomics-whole")[-1]["val_loss"], rel=1e-5)


def test_both_ranks_end_with_the_same_sentence_whichever_of_them_met_the_failure(pair: Path) -> None:
    one, other = _found(pair)
    assert one == other
    for optimizer in ("adamw", "lion"):
        assert "non-finite (NaN or infinity) at step 1" in one[f"spoiled {optimizer}"]
    assert one["full"] == "trained to the end, but the last checkpoint could not be written"


def test_a_rank_that_is_asked_to_stop_while_all_validate_stops_and_saves_with_the_others(pair: Path) -> None:
    assert [point["step"] for point in metrics(pair / "stopped") if "val_loss" in point] == []
    assert [path.name for path in (pair / "stopped" / "checkpoints").iterdir()] == ["step-00000003.pt"]


def test_weights_with_two_uses_and_those_of_recurrent_modules_learn_in_bf16_what_they_learn_unsharded(
    pair: Path,
) -> None:
    assert all(found["unusual"] for found in _found(pair))


def test_drawings_are_made_by_one_rank(pair: Path) -> None:
    assert [path.name for path in sorted((pair / "walls-sharded" / "samples").glob("*.svg"))] == ["plans-0001.svg"]


def test_alone_it_trains_unsharded_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train_cifar("--limit", "32", "--epochs", "1", "--shard", "--out", str(tmp_path))
    printed = capsys.readouterr().out
    assert "this is one: training unsharded" in printed
    assert "done: 2 steps" in printed


def test_muon_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--shard .* muon needs whole ones; use another --optimizer"):
        options.from_namespace(parsed("cifar", "--shard", "--optimizer", "muon"))


def test_blocks_are_the_outermost_repeated_parts() -> None:
    model = ResNet((1, 2), 4, 10)
    assert list(blocks(model)) == list(model.stages)
    same = Caduceus(
        tokens=6, classes=2, width=8, layers=2, states=2, norm="rms", both_strands=True,
        opposite=lambda tokens, lengths: tokens, reverse=lambda tokens, lengths: tokens,
    )  # fmt: skip
    assert list(blocks(same)) == list(same.blocks)
