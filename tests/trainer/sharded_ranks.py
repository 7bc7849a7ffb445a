"""What each of two ranks does for test_sharding.py: ``-m tests.trainer.sharded_ranks FOLDER``, under torchrun or alone.

Trainings run one after the other in one pair of processes, since starting a pair takes longer than all of them. What
rank R found is in ``rankR.json``, what the trainings told in a run directory for each.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from mpstui.agent.reporter import Reporter
from tests.trainer.forked_ranks import forked, prepare
from tests.trainer.running import parsed
from trainer import assemble, checkpoint, options, tasks
from trainer.checkpoint import CheckpointFolder
from trainer.control import Control
from trainer.device import Device
from trainer.distributed import Group, Ranks
from trainer.errors import TrainingError
from trainer.job import Job
from trainer.loop import Loop
from trainer.network import Precision
from trainer.run import resume
from trainer.sharding import layout_for
from trainer.tasks import Loss
from trainer.tasks.cifar import Cifar

CIFAR = ("--model", "tiny", "--width", "4", "--batch-size", "8", "--limit", "72", "--epochs", "2")
NARROW = ("--width", "16", "--layers", "2", "--epochs", "1")
PLANS = ("gsdiff", *NARROW, "--heads", "2", "--batch-size", "8", "--accumulate", "1", "--limit", "40", "--sample-every",
         "1", "--samples", "2", "--sample-steps", "3")  # fmt: skip
PAIRS = ("twotower", *NARROW, "--batch-size", "16", "--limit", "70", "--embedding", "8")
TRAININGS: dict[str, tuple[str, ...]] = {
    "sgd": ("cifar", *CIFAR, "--optimizer", "sgd", "--accumulate", "2"),
    "average": ("cifar", *CIFAR, "--optimizer", "adamw", "--clip", "0.5", "--ema", "0.9"),
    "lion": ("cifar", *CIFAR, "--optimizer", "lion", "--precision", "bf16"),
    "reduced": (
        "cifar",
        *CIFAR,
        "--optimizer",
        "adamw",
        "--clip",
        "0.5",
        "--ema",
        "0.9",
        "--accumulate",
        "2",
        "--precision",
        "bf16",
    ),
    "reduced uneven": ("cifar", *CIFAR, "--width", "5", "--precision", "bf16", "--optimizer", "sgd"),
    "reduced pairs": (*PAIRS, "--precision", "bf16"),
    "reduced indicator": (
        "indicator",
        *NARROW,
        "--heads",
        "2",
        "--limit",
        "64",
        "--dropout",
        "0",
        "--precision",
        "bf16",
    ),
    "reduced walls": (*PLANS, "--stage", "2", "--precision", "bf16"),
    "uneven": ("cifar", *CIFAR, "--batch-size", "4", "--accumulate", "2", "--limit", "25"),
    "radam": ("cifar", *CIFAR, "--optimizer", "radam"),
    "mamba": PAIRS,
    "gru": (*PAIRS, "--backbone", "gru"),
    "transformer": (*PAIRS, "--backbone", "transformer"),
    "indicator": ("indicator", *NARROW, "--heads", "2", "--limit", "64", "--dropout", "0"),
    "corners": PLANS,
    "walls": (*PLANS, "--stage", "2"),
    "genomics": ("genomics", *NARROW, "--states", "4", "--batch-size", "8", "--accumulate", "2", "--limit", "48"),
}
"""Each is trained twice, with all weights on both ranks and with a part on each."""
SCALED = ("cifar", *CIFAR, "--optimizer", "adam", "--clip", "1")
"""The same with a loss and a scale so large that some steps overflow, in some rows of some weights."""


class Pair:
    """This rank of several."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ranks = Ranks.from_environment(os.environ)
        self._device = Device()
        self.group = Group(self.ranks, self._device)
        self.found: dict[str, Any] = {}

    def job(self, run: str, task: str, *words: str) -> Job:
        """The parts of a training, begun or gone on with ``--resume PATH``."""
        args = parsed(task, *words)
        args.seed = args.seed or 0
        asked = options.from_namespace(args)
        os.environ["MPSTUI_RUN_DIR"] = str(self.folder / run)
        loaded = checkpoint.load(Path(asked.resume), lambda state: None) if asked.resume else None
        wish = assemble.Request(
            name=task, task=tasks.find(task)(args), options=asked, seed=args.seed, device=self._device,
            group=self.group, folder=CheckpointFolder(self.folder / run / "checkpoints", 3),
            reporter=Reporter.from_environment(os.environ), control=Control(), loaded=loaded,
        )  # fmt: skip
        made = assemble.assemble(wish)
        if loaded:
            resume(made, loaded)
        return made

    def train(self, run: str, task: str, *words: str) -> None:
        """Train to the end."""
        Loop(self.job(run, task, *words)).run()

    def failing(self, run: str, task: str, *words: str, spoil: Callable[[Job], None]) -> str:
        """The sentence that a spoiled training ends with."""
        made = self.job(run, task, *words)
        spoil(made)
        try:
            Loop(made).run()
        except TrainingError as error:
            return str(error)
        return "it did not fail"


def main(folder: Path) -> None:
    """Every training there is."""
    pair = Pair(folder)
    for name, (task, *words) in TRAININGS.items():
        pair.train(f"{name}-whole", task, *words)
        pair.train(f"{name}-sharded", task, *words, "--shard")
    _scale(pair)
    _count(pair)
    _write(pair)
    _overflow(pair)
    _go_on(pair)
    _stop(pair)
    _fail(pair)
    _share(pair)
    (folder / f"rank{pair.ranks.rank}.json").write_text(json.dumps(pair.found))
    pair.group.close()


class _Scaled(Precision):
    """What float16 has on a GPU; the CPU refuses it."""

    def scaler(self) -> torch.amp.GradScaler:
        """One at work."""
        return torch.amp.GradScaler(self.device_type, init_scale=2.0**127)


def _scale(pair: Pair) -> None:
    plain = Cifar.loss

    def large(*arguments: Any) -> Loss:
        return Loss(8 * plain(*arguments).value)

    scaled = _Scaled("fp32", "cpu", None)
    with patch.object(assemble, "resolve_precision", return_value=scaled), patch.object(Cifar, "loss", large):
        for way in ((), ("--shard",)):
            pair.train("scaled-sharded" if way else "scaled-whole", *SCALED, *way)


def _count(pair: Pair) -> None:
    """How much this rank holds, in weights and in the optimizer's state after a step."""
    made = pair.job("counted", "cifar", *CIFAR, "--width", "16", "--shard", "--compile", "on")
    pair.found["compiled"] = made.network.compiled
    made.stepper.step(*next(made.feed.epoch(1)), 1)
    state = (value for kept in made.optimizer.state.values() for value in kept.values() if value.ndim)
    pair.found["all"] = sum(weight.numel() for weight in made.model.parameters())
    pair.found["bytes"] = sum(weight.untyped_storage().nbytes() for weight in made.layout.weights())
    pair.found["weights"] = sum(weight.numel() for weight in made.layout.weights())
    pair.found["state"] = sum(value.numel() for value in state)


def _write(pair: Pair) -> None:
    """What the model gives after all its weights were set to 0, right after it was called without a backward pass."""
    made = pair.job("written", "cifar", *CIFAR, "--shard")
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        pair.found["before"] = float(made.model(images).abs().sum())
        for weight in made.layout.weights():
            weight.zero_()
        pair.found["after"] = float(made.model(images).abs().sum())


def _overflow(pair: Pair) -> None:
    """A gradient that only the second rank has."""
    layout = pair.job("overflow", "cifar", *CIFAR, "--shard").layout
    for name, value in (("overflows", float("inf")), ("fits", 1.0)):
        gradients = [torch.ones(2), torch.full((2,), value if pair.ranks.rank == 1 else 1.0)]
        layout.spread_overflow(gradients)
        pair.found[name] = not all(bool(gradient.isfinite().all()) for gradient in gradients)


def _go_on(pair: Pair) -> None:
    """From one layout into the other, and from a checkpoint that the test wrote in one process into both."""
    words = TRAININGS["average"]
    half = "checkpoints/step-00000005.pt"
    pair.train("sharded-from-whole", *words, "--resume", str(pair.folder / "average-whole" / half), "--shard")
    pair.train("whole-from-sharded", *words, "--resume", str(pair.folder / "average-sharded" / half))
    alone = ("--resume", str(pair.folder / "alone" / half))
    pair.train("whole-from-alone", *words, *alone)
    pair.train("sharded-from-alone", *words, *alone, "--shard")
    pair.train("genomics-stopped", *TRAININGS["genomics"], "--stop-after", "1", "--shard")


def _stop(pair: Pair) -> None:
    """One rank alone is asked to stop, in the middle of a validation."""
    made = pair.job("stopped", *TRAININGS["walls"], "--sample-every", "0", "--shard")
    evaluate = made.task.evaluate

    def stopped(*arguments: Any) -> Iterator[dict[str, float] | None]:
        for reading in evaluate(*arguments):
            made.control.stop_requested = pair.ranks.rank == 1
            yield reading

    with patch.object(made.task, "evaluate", stopped):
        Loop(made).run()


def _fail(pair: Pair) -> None:
    """What one rank meets ends both: a loss of the second that is not finite, a disk of the first that is full."""

    def spoil_a_loss(made: Job) -> None:
        if pair.ranks.rank == 1:
            made.task._mean = torch.full((3,), float("nan"))  # type: ignore[attr-defined]

    def fill_the_disk(made: Job) -> None:
        if pair.ranks.leads:
            (pair.folder / "full").mkdir(exist_ok=True)
            (pair.folder / "full" / "checkpoints").write_text("no folder")

    for optimizer in ("adamw", "lion"):
        pair.found[f"spoiled {optimizer}"] = pair.failing(
            "spoiled", "cifar", *CIFAR, "--optimizer", optimizer, "--shard", spoil=spoil_a_loss
        )
    pair.found["full"] = pair.failing("full", "cifar", *CIFAR, "--shard", spoil=fill_the_disk)


class _Unusual(nn.Module):
    """An embedding whose weights are a product's too, a module that lists its weights, and some that do not learn."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.words = nn.Embedding(5, 8)
        self.reader = nn.GRU(8, 8, batch_first=True)
        self.norm = nn.LayerNorm(8).requires_grad_(False)
        self.head = nn.Linear(8, 5, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(self.norm(self.reader(self.words(tokens))[0]))
        return found


def _share(pair: Pair) -> None:
    """Whether the gradients of an unusual model in reduced precision are the unsharded ones."""
    tokens = torch.tensor([[0, 1, 3], [2, 4, 4]])[pair.ranks.rank][None]
    gradients = []
    for divided in (False, True):
        layout = layout_for(model := _Unusual(), pair.group, divided=divided, reduced=torch.bfloat16)
        trained = layout.held([{"params": [one for one in model.parameters() if one.requires_grad]}])[0]["params"]
        for _ in range(2):  # gradients add up
            with torch.autocast("cpu", torch.bfloat16):
                model(tokens).float().square().mean().backward()
        layout.take_gradients()
        gradients.append([one.grad for one in trained])
    (words, *reader), (my_words, *my_reader) = layout.parts(gradients[0]), gradients[1]
    pair.found["unusual"] = torch.allclose(words, my_words, rtol=1e-6, atol=1e-9) and all(
        # Unsharded, autocast casts these once, and adds the gradients of all words in bfloat16.
        torch.allclose(expected, found, rtol=0.02, atol=1e-2 * float(expected.abs().max()))
        for expected, found in zip(reader, my_reader, strict=True)
    )


if __name__ == "__main__":
    prepare()
    place = Path(sys.argv[1])
    if "RANK" in os.environ:
        main(place)
    else:
        forked(place / "store", 2, functools.partial(main, place))
