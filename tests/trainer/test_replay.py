"""Steps that are recorded and replayed; the CPU stands in for a device that can (tests.bench.replayed has one)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from mpstui.agent.reporter import Reporter
from tests.trainer.building import events, job, points, train
from trainer.device import CudaDevice, Device
from trainer.distributed import Ranks
from trainer.job import Job


@dataclass(frozen=True)
class Recording:
    replay: Callable[[], None]
    reset: Callable[[], None]


class Recorder:
    """Records as a graph does: nothing happens, and what is replayed leaves its gradients where they were then."""

    def __init__(self) -> None:
        self.recorded = self.forgotten = 0
        self.refusal: BaseException | None = None
        self.job: Job | None = None

    def record(self, work: Callable[[], None]) -> Recording:
        if self.refusal is not None:
            raise self.refusal
        self.recorded += 1
        kept = [(tensor, tensor.clone()) for tensor in self._tensors()]
        work()
        for tensor, before in kept:
            tensor.data.copy_(before)
        assert self.job is not None
        weights = list(self.job.model.parameters())
        places = [weight.grad for weight in weights]

        def replay() -> None:
            work()
            for weight, place in zip(weights, places, strict=True):
                if place is not None and weight.grad is not None:
                    weight.grad = place.copy_(weight.grad)

        return Recording(replay, self._reset)

    def _reset(self) -> None:
        self.forgotten += 1

    def _tensors(self) -> Iterator[torch.Tensor]:
        assert self.job is not None
        yield from self.job.model.state_dict().values()
        for state in self.job.optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, torch.Tensor))
        for holder in (self.job.stepper._sums, vars(self.job.stepper._guard)):
            yield from (value for value in holder.values() if isinstance(value, torch.Tensor))


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    assert CudaDevice.replays_kernels
    assert not Device.replays_kernels
    made = Recorder()
    monkeypatch.setattr(Device, "record", lambda _, work: made.record(work))
    return made


def walked(made: Job, epochs: int) -> list[dict[str, float]]:
    """What every step reports."""
    found = []
    for epoch in range(1, epochs + 1):
        for batch, total in made.feed.epoch(epoch):
            made.progress.step += 1
            made.stepper.step(batch, total, made.progress.step)
            found.append(made.stepper.read().means)
    return found


@pytest.mark.parametrize("optimizer", ["sgd", "lion", "muon"])
@pytest.mark.parametrize("clip", ["0", "1"])
def test_replayed_steps_are_the_eager_ones_in_every_shape(
    optimizer: str, clip: str, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--limit", "56", "--batch-size", "8", "--accumulate", "3", "--optimizer", optimizer, "--clip", clip)
    monkeypatch.setattr(Device, "replays_kernels", True)
    eager = job(*words, "--replay", "off", folder=tmp_path)
    recorder.job = replayed = job(*words, folder=tmp_path)
    assert (eager.stepper.replayed, replayed.stepper.replayed) == (False, True)
    assert walked(replayed, 4) == walked(eager, 4)
    assert recorder.recorded == 2  # steps of 24 samples, and the last of an epoch with 8
    replayed.stepper.close()
    assert recorder.forgotten == 2
    for mine, theirs in zip(replayed.model.parameters(), eager.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_the_step_that_is_not_finite_is_known_after_a_replay_too(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Device, "replays_kernels", True)
    for optimizer in ("sgd", "lion"):
        recorder.job = made = job("--limit", "128", "--optimizer", optimizer, folder=tmp_path)
        for number, (batch, total) in enumerate(made.feed.epoch(1), start=1):
            if number == 7:
                made.task._mean.fill_(float("nan"))  # type: ignore[attr-defined]
            made.stepper.step(batch, total, number)
        assert made.stepper.read().first_bad_step == 7


@pytest.mark.parametrize("error", [RuntimeError("operation not permitted"), torch.OutOfMemoryError("out of memory")])
def test_steps_that_cannot_be_recorded_are_taken_eagerly_and_that_is_told(
    error: BaseException, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Device, "replays_kernels", True)
    recorder.refusal = error
    train("--limit", "96", "--epochs", "1", "--optimizer", "sgd", run_dir=tmp_path)
    assert [step for step, _ in points(tmp_path)] == [1, 2, 3, 4, 5, 6]
    told = [text for text in events(tmp_path) if "replayed" in text]
    assert told == [f"steps are not replayed ({type(error).__name__}: {error}): launching each kernel"]


def test_memory_that_graphs_hold_is_given_back_before_a_step_is_divided(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Device, "replays_kernels", True)
    told: list[str] = []
    recorder.job = made = job("--limit", "88", "--optimizer", "sgd", folder=tmp_path, reporter=Reporter(None))
    monkeypatch.setattr(made.stepper, "_notify", lambda _, text, **__: told.append(text))
    batches = list(made.feed.epoch(1))
    for number, (batch, total) in enumerate(batches[:5], start=1):
        made.stepper.step(batch, total, number)
    assert recorder.recorded == 1
    real, failing = made.task.loss, [True]

    def greedy(*given: object) -> object:
        if failing:
            failing.clear()
            raise torch.OutOfMemoryError("out of memory")
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(made.task, "loss", greedy)
    made.stepper.step(*batches[5], 6)  # the smaller last step: taken eagerly beside the graph
    assert not made.stepper.replayed
    assert made.stepper.micro_batch == 16
    assert [text[:28] for text in told] == ["steps are not replayed (OutO"]


def test_a_rank_that_cannot_record_takes_the_step_eagerly_since_the_others_wait_for_it(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Device, "replays_kernels", True)
    told: list[str] = []
    recorder.job = made = job("--limit", "96", "--optimizer", "sgd", folder=tmp_path)
    monkeypatch.setattr(made.stepper, "_ranks", Ranks(rank=1, world_size=2, local_rank=1))
    monkeypatch.setattr(made.stepper, "_notify", lambda _, text, **__: told.append(text))
    recorder.refusal = RuntimeError("operation not permitted")
    for number, (batch, total) in enumerate(made.feed.epoch(1), start=1):
        made.stepper.step(batch, total, number)
    assert told == ["steps are not replayed (RuntimeError: operation not permitted): launching each kernel"]
    monkeypatch.setattr(made.task, "loss", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError("out of memory")))
    with pytest.raises(torch.OutOfMemoryError):  # that cannot be survived by one of them
        made.stepper.step(batch, total, 7)
