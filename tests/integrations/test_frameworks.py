"""The other frameworks, each launched, asked, stopped and continued."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.integrations.conftest import Training


@dataclass(frozen=True)
class Framework:
    """A framework, and what its training of the page is expected to tell."""

    module: str
    given: str
    steps: int
    epochs: int | None
    metrics: frozenset[str] = frozenset()
    """Seen before it is stopped."""
    clears: str = "trainer"
    """Who answers a request to clear the cache."""


DATA = """
import torch
def loader(count):
    x = torch.randn(count, 8)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long()), batch_size=8)
train, validation = loader(1600), loader(64)
"""
KERAS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy
x = numpy.random.rand(320, 8).astype("float32")
class Data(keras.utils.PyDataset):
    def __len__(self): return steps_of_an_epoch
    def __getitem__(self, place):
        time.sleep(0.03)
        return x[:8], x[:8, 0] > 0.5
steps_of_an_epoch = 200
train, validation = Data(), (x[:32], x[:32, 0] > 0.5)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, activation="sigmoid")])
model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
"""
ACCELERATE = f"""{DATA}
from accelerate import Accelerator
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
def step_of(checkpoint): return int(checkpoint.rpartition("-")[2]) if checkpoint else 0
def steps(accelerator, model, optimizer, train, begin):
    step = begin
    while step < 600:
        for x, y in train:
            time.sleep(0.03)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            yield step, loss
"""
FRAMEWORKS = {
    "Keras": Framework("keras", KERAS, 600, 3, frozenset({"accuracy", "loss"})),
    "Accelerate": Framework("accelerate", ACCELERATE, 600, 3, clears="agent"),
}


@pytest.mark.parametrize("heading", FRAMEWORKS)
def test_a_training(heading: str, example: Callable[[str, str], str], train: Callable[[str, str], Training]) -> None:
    one = FRAMEWORKS[heading]
    training = train(one.module, example(heading, one.given))
    shown = training.until(lambda shown: (shown["step"] or 0) > 20 and shown["loss"], "twenty steps")
    assert (shown["epochs"], shown["steps"]) == (one.epochs, one.steps)
    assert shown["epoch"] == (1 if one.epochs else None)
    assert {shown["told_by"][name] for name in ("step", "steps", "loss")} == {"report"}
    assert one.metrics <= shown["metrics"].keys()
    training.until(lambda shown: shown["eta_seconds"], "a remaining time")
    training.ask("save")
    training.ask("clear-cache", by=one.clears)
    stopped, again = training.stop_and_go_on()
    assert again["step"] > stopped["step"] >= 20
