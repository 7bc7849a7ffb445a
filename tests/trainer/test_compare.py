"""Two devices from the same state: equal when they are, and the operation that computes wrong is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from tests.trainer.cases import synthetic
from tests.trainer.running import command
from trainer.device import Device
from trainer.models import selective_scan
from trainer.tasks import shipped_tasks
from trainer.trace import Entry, OperationTrace, Sample, matched


class Sabotage(TorchFunctionMode):
    """One operation gives another result than it should, without a word."""

    def __init__(self, operation: Callable[..., Any], turn: int, spoil: Callable[[Any], Any]) -> None:
        super().__init__()
        self._operation = operation
        self._turn = turn
        self._spoil = spoil

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is not self._operation:
            return result
        self._turn -= 1
        return self._spoil(result) if self._turn == -1 else result


def trace(task: str, folder: Path, *more: str, steps: int = 3) -> int:
    words = ("compare", task, *synthetic(task), "--device", "cpu", "--steps", str(steps), *more)
    return command(*words, "--out", str(folder / "checkpoints"))


def compared(task: str, folder: Path, *more: str) -> dict[str, Any]:
    assert trace(task, folder, "--against", str(folder / "trace"), "--result", str(folder / "found"), *more) == 0
    found: dict[str, Any] = json.loads((folder / "found").read_text())
    return found


@pytest.mark.parametrize("task", shipped_tasks())
def test_the_same_device_twice_does_not_part(task: str, tmp_path: Path) -> None:
    assert trace(task, tmp_path, "--trace", str(tmp_path / "trace")) == 0
    found = compared(task, tmp_path)
    assert [one["apart"] for one in found["losses"]] == [0.0, 0.0, 0.0]
    assert found["operations"]["compared"] > 10  # a small recurrent model has a dozen
    assert found["operations"]["unmatched"] == found["operations"]["parted"] == 0
    assert found["parameters"][0]["apart"] == 0.0


@pytest.mark.parametrize("task", shipped_tasks())
def test_clipping_and_optimizers_of_another_kind_are_no_wrong_result(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace(task, tmp_path, "--trace", str(tmp_path / "trace"), "--clip", "1")
    monkeypatch.setattr(Device, "fuses", lambda self, optimizer: False)
    found = compared(task, tmp_path, "--clip", "1")
    assert found["operations"]["parted"] == 0
    assert found["operations"]["compared"] > 10  # a small recurrent model has a dozen
    assert found["gradient_nearest_the_loss"] is None


def test_a_layer_that_computes_wrong_is_named(tmp_path: Path) -> None:
    trace("cifar", tmp_path, "--trace", str(tmp_path / "trace"))
    with Sabotage(torch.conv2d, 3, lambda result: result.roll(1, dims=1)):
        found = compared("cifar", tmp_path)
    first = found["operations"]["first"][0]
    assert first["layer"].endswith("(Conv2d)")
    assert "conv2d" in first["operation"]
    assert first["apart"] > 0.1
    assert first["turn"] == 0
    assert found["losses"][0]["apart"] > 0
    assert found["gradients"][0]["apart"] > 1e-3


def test_a_layer_that_works_in_other_pieces_is_judged_by_what_it_makes_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace("genomics", tmp_path, "--trace", str(tmp_path / "trace"))
    monkeypatch.setitem(selective_scan._CHUNK_ELEMENTS, "cpu", 1 << 12)
    found = compared("genomics", tmp_path)
    assert found["operations"]["parted"] == 0
    assert found["operations"]["unmatched"] > 20
    assert found["operations"]["compared"] > 10
    real = selective_scan._states
    monkeypatch.setattr(selective_scan, "_states", lambda *inputs: real(*inputs) * 2)
    found = compared("genomics", tmp_path)
    first = found["operations"]["first"][0]
    assert (first["layer"], first["operation"]) == ("blocks.0.backwards (MambaMixer)", "torch.cat")


def test_a_result_of_nan_is_as_far_apart_as_can_be(tmp_path: Path) -> None:
    trace("cifar", tmp_path, "--trace", str(tmp_path / "trace"), steps=1)
    with Sabotage(torch.conv2d, 0, lambda result: result.index_fill(0, torch.tensor([0]), float("nan"))):
        found = compared("cifar", tmp_path)
    assert found["operations"]["first"][0]["apart"] is None
    assert found["losses"][0]["loss"] is None


def test_a_later_step_can_be_traced_from_the_references_own_state(tmp_path: Path) -> None:
    trace("cifar", tmp_path, "--trace", str(tmp_path / "trace"), "--trace-step", "3", steps=4)
    found = compared("cifar", tmp_path, "--trace-step", "3")
    assert found["traced_step"] == 3
    assert [one["step"] for one in found["losses"]] == [3, 4]
    assert found["operations"]["parted"] == 0
    with Sabotage(torch.nn.functional.linear, 0, lambda result: result + 1):
        found = compared("cifar", tmp_path, "--trace-step", "3")
    assert found["operations"]["first"][0]["layer"] == "head (Linear)"


def test_dropout_is_switched_off_and_said(tmp_path: Path) -> None:
    trace("indicator", tmp_path, "--trace", str(tmp_path / "trace"), "--dropout", "0.5", steps=1)
    assert compared("indicator", tmp_path, "--dropout", "0.5")["dropout_off"] > 0


@pytest.mark.parametrize("words", [(), ("--against", "x"), ("--trace", "x", "--trace-step", "9")])
def test_half_a_comparison_is_wrong_use(words: tuple[str, ...], tmp_path: Path) -> None:
    assert trace("cifar", tmp_path, *words) == 2


def test_rounding_of_what_is_nearly_zero_is_no_wrong_result() -> None:
    class Normalising(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            centred: torch.Tensor = x - x.mean()
            return torch.softmax(centred.mean(dim=0), dim=0)

    def traced(values: torch.Tensor) -> list[Entry]:
        with OperationTrace(Normalising()).recording() as trace:
            Normalising()(values)
        return trace.entries

    generator = torch.Generator().manual_seed(0)
    values = torch.randn(64, 1000, generator=generator)
    values -= values.mean(dim=0)
    rounded = traced(values * (1 + 1e-7 * torch.randn(64, 1000, generator=generator)))
    assert rounded[2].result.apart(traced(values)[2].result) > 1e-3  # against itself alone
    assert max(mine.apart(other) for mine, other in matched(rounded, traced(values))) < 1e-3
    with Sabotage(torch.softmax, 0, lambda result: result * 1.01):
        spoilt = traced(values)
    wrong = [mine.operation for mine, other in matched(spoilt, traced(values)) if mine.apart(other) > 1e-3]
    assert wrong == ["torch.softmax"]


def test_a_tensor_is_measured_against_the_reference() -> None:
    two, three = Sample.of(torch.full((10_000,), 2.0)), Sample.of(torch.full((10_000,), 3.0))
    assert three.apart(two) == pytest.approx(0.5)
    assert three.apart(two, least=4 * two.norm) == pytest.approx(0.125)
    assert Sample.of(torch.zeros(3)).apart(two) == float("inf")
    assert Sample.of(torch.zeros(0)).apart(Sample.of(torch.zeros(0))) == 0.0
