"""One optimizer step: accumulation, the guard against non-finite values, memory, precision."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.trainer.building import events, job, points, train
from trainer.device import Device, is_out_of_memory
from trainer.errors import TrainingError
from trainer.job import Job
from trainer.loop import Loop
from trainer.network import resolve_precision
from trainer.tasks import Batch, Loss
from trainer.tasks.cifar import Cifar

OOM_TEXT = "MPS backend out of memory (MPS allocated: 17.92 GiB, max allowed: 18.13 GiB)."


def _without_batch_statistics(made: Job) -> Job:
    """Batch norm sees micro-batches; without it accumulation must be exact."""
    made.model.eval()
    return made


def _weights(made: Job) -> torch.Tensor:
    return torch.cat([weight.detach().flatten() for weight in made.model.parameters()])


@pytest.mark.parametrize("samples", [48, 37])
def test_accumulation_equals_one_big_batch_even_in_the_last_smaller_step(tmp_path: Path, samples: int) -> None:
    arguments = ("--limit", str(samples), "--optimizer", "sgd", "--clip", "1")
    big = _without_batch_statistics(job(*arguments, "--batch-size", "24", folder=tmp_path))
    small = _without_batch_statistics(job(*arguments, "--batch-size", "8", "--accumulate", "3", folder=tmp_path))
    for made in (big, small):
        for number, (batch, total) in enumerate(made.feed.epoch(1)):
            made.stepper.step(batch, total, number + 1)
    assert big.feed.order.steps_per_epoch == small.feed.order.steps_per_epoch == 2
    torch.testing.assert_close(_weights(small), _weights(big), rtol=1e-4, atol=1e-6)
    losses = [made.stepper.read().means["loss"] for made in (big, small)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_no_kernels_are_timed_for_a_smaller_last_step_and_an_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed, called = [True], []

    class Rarely(contextlib.ContextDecorator):
        def __enter__(self) -> None:
            timed.append(False)

        def __exit__(self, *_: object) -> None:
            timed.pop()

    monkeypatch.setattr(Device, "rarely", lambda _: Rarely())
    made = job("--limit", "37", "--batch-size", "16", "--epochs", "1", folder=tmp_path)
    made.model.register_forward_hook(
        lambda module, given, _: called.append((module.training, len(given[0]), timed[-1]))
    )
    Loop(made).run()
    assert called == [(True, 16, True), (True, 16, True), (True, 5, False), (False, 37, False)]


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw", "radam", "lion", "muon"])
def test_every_optimizer_reduces_the_loss(tmp_path: Path, optimizer: str) -> None:
    shared = ("--limit", "64", "--epochs", "8", "--no-augment", "--width", "8", "--warmup-epochs", "0",
              "--eval-every", "8")  # fmt: skip
    # RAdam warms up by itself, over more steps than a test has.
    train(*shared, "--optimizer", optimizer, *(["--lr", "0.02"] if optimizer == "radam" else []), run_dir=tmp_path)
    losses = [loss for _, loss in points(tmp_path)]
    assert len(losses) == 32
    assert sum(losses[-4:]) < 0.97 * sum(losses[:4])


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "lion"])
def test_a_non_finite_step_never_reaches_the_weights(tmp_path: Path, optimizer: str) -> None:
    made = job("--limit", "32", "--optimizer", optimizer, folder=tmp_path)
    batches = list(made.feed.epoch(1))
    made.stepper.step(*batches[0], 1)
    before = _weights(made)
    made.task._mean = torch.full((3,), float("nan"))  # type: ignore[attr-defined]
    made.stepper.step(*batches[1], 2)
    assert torch.isfinite(_weights(made)).all()
    if optimizer != "lion":  # its kernel takes no found_inf: momentum moves on, by finite amounts
        assert torch.equal(_weights(made), before)
    assert made.stepper.read().first_bad_step == 2


def test_a_non_finite_loss_ends_the_training_at_the_next_report_and_names_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Cifar.loss
    calls = []

    def spoiled(self: Cifar, model: nn.Module, batch: Batch) -> Loss:
        calls.append(1)
        loss = real(self, model, batch)
        return Loss(loss.value * float("inf")) if len(calls) == 6 else loss

    monkeypatch.setattr(Cifar, "loss", spoiled)
    with pytest.raises(TrainingError, match=r"at step 6, .*step-00000004\.pt; resume with a lower --lr"):
        train("--limit", "64", "--epochs", "3", "--report-every", "2", run_dir=tmp_path)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["best.pt", "step-00000004.pt"]
    assert any("non-finite" in text for text in events(tmp_path))
    assert points(tmp_path)[-1] == (6, None)


def test_out_of_memory_halves_the_micro_batch_and_keeps_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Cifar.loss

    def greedy(self: Cifar, model: nn.Module, batch: Batch) -> Loss:
        if model.training and len(batch["labels"]) > 4:
            raise RuntimeError(OOM_TEXT)
        return real(self, model, batch)

    monkeypatch.setattr(Cifar, "loss", greedy)
    train("--limit", "32", "--epochs", "1", run_dir=tmp_path)
    assert [step for step, _ in points(tmp_path)] == [1, 2]
    told = [text for text in events(tmp_path) if "micro-batches of" in text]
    assert [text[:39] for text in told] == [
        "out of memory: micro-batches of 8 inste",
        "out of memory: micro-batches of 4 inste",
    ]


def test_out_of_memory_with_one_sample_is_not_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hopeless(self: Cifar, model: nn.Module, batch: Batch) -> Loss:
        raise RuntimeError(OOM_TEXT)

    monkeypatch.setattr(Cifar, "loss", hopeless)
    with pytest.raises(RuntimeError, match="MPS backend out of memory"):
        train("--limit", "32", "--epochs", "1", "--out", str(tmp_path))


def test_out_of_memory_with_one_sample_gives_up_compiling_and_then_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def hopeless(self: Cifar, model: nn.Module, batch: Batch) -> Loss:
        calls.append(len(batch["labels"]))
        assert len(calls) < 10, "tried for ever"
        raise RuntimeError(OOM_TEXT)

    made = job("--limit", "32", folder=tmp_path)
    made.network.compiled = True
    monkeypatch.setattr(Cifar, "loss", hopeless)
    with pytest.raises(RuntimeError, match="MPS backend out of memory"):
        made.stepper.step(*next(made.feed.epoch(1)), 1)
    assert calls == [16, 8, 4, 2, 1, 1]
    assert not made.network.compiled


def test_validation_without_memory_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def greedy(self: Cifar, model: nn.Module, device: Device) -> object:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(Cifar, "evaluate", greedy)
    train("--limit", "32", "--epochs", "1", "--out", str(tmp_path))
    assert "validation ran out of memory" in capsys.readouterr().out


def test_an_error_that_is_not_about_memory_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Cifar, model: nn.Module, batch: Batch) -> Loss:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(Cifar, "loss", wrong)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        train("--limit", "32", "--out", str(tmp_path))


def test_what_counts_as_out_of_memory() -> None:
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory."))
    assert is_out_of_memory(RuntimeError(OOM_TEXT))
    assert is_out_of_memory(RuntimeError("Invalid buffer size: 24.00 GiB"))
    assert not is_out_of_memory(ValueError("out of memory"))


def test_fp16_is_refused_on_the_cpu_with_a_reason_and_bf16_had() -> None:
    refused = resolve_precision("fp16", Device())
    assert refused.name == "fp32"
    assert refused.note is not None
    assert resolve_precision("bf16", Device()).dtype is torch.bfloat16
    assert resolve_precision("auto", Device()) == resolve_precision("fp32", Device())


def test_bf16_and_averaged_weights_train(tmp_path: Path) -> None:
    train("--limit", "64", "--epochs", "2", "--precision", "bf16", "--ema", "0.9", run_dir=tmp_path)
    assert [step for step, _ in points(tmp_path)] == list(range(1, 9))


def test_the_loss_is_read_back_only_when_it_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = job("--limit", "64", folder=tmp_path)
    reads: list[str] = []

    def counted(name: str) -> Callable[[torch.Tensor], object]:
        real = getattr(torch.Tensor, name)

        def read(tensor: torch.Tensor) -> object:
            reads.append(name)
            return real(tensor)

        return read

    for name in ("tolist", "item", "__bool__", "__float__"):
        monkeypatch.setattr(torch.Tensor, name, counted(name))
    for number, (batch, total) in enumerate(made.feed.epoch(1)):
        made.stepper.step(batch, total, number + 1)
    assert reads == []
    made.stepper.read()
    assert reads == ["tolist"]


def test_a_compiler_that_fails_is_given_up_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(model: nn.Module) -> Callable[..., torch.Tensor]:
        def call(*inputs: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("InductorError: no C++ compiler\nlong explanation")

        return call

    monkeypatch.setattr(torch, "compile", broken)
    train("--limit", "32", "--epochs", "1", "--compile", "on", run_dir=tmp_path)
    assert [step for step, _ in points(tmp_path)] == [1, 2]
    reason = "compiling failed (RuntimeError: InductorError: no C++ compiler): training without it"
    assert reason in events(tmp_path)


def test_worker_processes_make_the_same_batches(tmp_path: Path) -> None:
    here = job("--limit", "40", folder=tmp_path)
    there = job("--limit", "40", "--workers", "1", folder=tmp_path)
    for epoch in (1, 2):
        for (expected, _), (found, _) in zip(here.feed.epoch(epoch), there.feed.epoch(epoch), strict=True):
            assert all(torch.equal(expected[name], found[name]) for name in expected)
