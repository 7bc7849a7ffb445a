"""The other frameworks, each launched, asked, stopped and continued."""

from __future__ import annotations

import re
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
    saves: bool = True
    """At once; else at the end of an epoch."""
    resumes: bool = True
    """Its checkpoints say at which step they were written."""


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
YOLO = """
import os, pathlib
os.environ["YOLO_CONFIG_DIR"] = os.getcwd()
import cv2, numpy
from ultralytics import YOLO
from ultralytics.utils.callbacks.base import default_callbacks
for kind, count in (("train", 128), ("val", 4)):
    for folder in ("images", "labels"): pathlib.Path(folder, kind).mkdir(parents=True, exist_ok=True)
    for n in range(count):
        cv2.imwrite(f"images/{kind}/{n}.png", numpy.random.randint(0, 255, (32, 32, 3), dtype="uint8"))
        pathlib.Path(f"labels/{kind}/{n}.txt").write_text("0 0.5 0.5 0.5 0.5\\n")
text = f"path: {os.getcwd()}\\ntrain: images/train\\nval: images/val\\nnames: [thing]\\n"
pathlib.Path("data.yaml").write_text(text)
settings = dict(imgsz=32, batch=4, workers=0, plots=False, amp=False, device="cpu", pretrained=False)
default_callbacks["on_train_batch_end"].append(lambda trainer: time.sleep(0.15))
settings["project"] = os.path.abspath("runs")  # under pytest it is a folder of the environment, for all tests together
"""
PPO = """
import gymnasium
from stable_baselines3 import PPO
class Slow(gymnasium.Wrapper):
    def step(self, action):
        time.sleep(0.001)
        return super().step(action)
environment = Slow(gymnasium.make("CartPole-v1"))
"""
FASTAI = f"""{DATA}
from fastai.data.core import DataLoaders
from fastai.learner import Learner
class Model(torch.nn.Linear):
    def forward(self, x):
        time.sleep(0.03)
        return super().forward(x)
dls = DataLoaders(train, validation)
model, loss = Model(8, 2), torch.nn.functional.cross_entropy
"""
IGNITE = f"""{DATA}
from ignite.engine import Engine
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
def train_step(engine, batch):
    time.sleep(0.03)
    loss = torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""
FRAMEWORKS = {
    "Ultralytics": Framework("ultralytics", YOLO, 96, 3, frozenset({"loss"}), saves=False),
    "Stable-Baselines3": Framework("stable_baselines3", PPO, 50_000, None, frozenset({"loss", "lr"})),
    "fastai": Framework("fastai", FASTAI, 600, 3, frozenset({"loss", "lr"}), resumes=False),
    "Ignite": Framework("ignite", IGNITE, 600, 3, frozenset({"loss", "lr"})),
    "Keras": Framework("keras", KERAS, 600, 3, frozenset({"accuracy", "loss"})),
    "Accelerate": Framework("accelerate", ACCELERATE, 600, 3, clears="agent"),
}


def _patient(given: str) -> str:
    """The same, at a tenth of its pace from its fortieth step on: a busy machine takes long to look at it."""
    slower = re.sub(r"time\.sleep\((0\.03|0\.15)\)", r"time.sleep(\1 if next(calls) < 40 else 10 * \1)", given)
    return f"import itertools\ncalls = itertools.count()\n{slower}"


@pytest.mark.parametrize("heading", FRAMEWORKS)
def test_a_training(heading: str, example: Callable[[str, str], str], train: Callable[[str, str], Training]) -> None:
    one = FRAMEWORKS[heading]
    training = train(one.module, example(heading, _patient(one.given)))
    shown = training.until(lambda shown: (shown["step"] or 0) > 20 and shown["loss"], "twenty steps")
    assert (shown["epochs"], shown["steps"]) == (one.epochs, one.steps)
    assert shown["epoch"] == (1 if one.epochs else None)
    shown = training.until_told("step", "steps", "loss")
    assert one.metrics <= shown["metrics"].keys()
    training.until(lambda shown: shown["eta_seconds"], "a remaining time")
    if one.epochs:  # else a timestep is a sample
        training.until(lambda shown: shown["samples_per_second"], "samples a second")
    if one.saves:
        training.ask("save")
    training.ask("clear-cache", by=one.clears)
    stopped, _ = training.stop_and_go_on(resumes=one.resumes)
    assert stopped["step"] >= 20


def test_an_evaluator_that_also_sees_the_training_data_is_told_apart(train: Callable[[str, str], Training]) -> None:
    program = f"""{IGNITE.replace("0.03", "0.001")}
from ignite.engine import Events, create_supervised_evaluator
from ignite.metrics import Accuracy
from mpstui.integrations.ignite import attach
trainer = Engine(train_step)
evaluator = create_supervised_evaluator(model, {{"accuracy": Accuracy()}})
attach(trainer, evaluator=evaluator)
for data in (train, validation):
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda engine, data=data: evaluator.run(data))
trainer.run(train, max_epochs=2)
"""
    training = train("ignite", "import sys, time\n" + program)
    done = training.mpstui.wait_state(training.run, "finished", timeout=600)
    assert {name: done["metrics"][name]["count"] for name in ("train_accuracy", "val_accuracy")} == {
        "train_accuracy": 2,
        "val_accuracy": 2,
    }


def test_epochs_that_are_cut_short_have_no_length_and_the_training_no_total(
    train: Callable[[str, str], Training],
) -> None:
    """As episodes are in a training by rewards: each epoch ends when its episode does."""
    program = f"""{IGNITE}
from ignite.engine import Events
from mpstui.integrations.ignite import attach
trainer = Engine(train_step)
attach(trainer)
trainer.add_event_handler(Events.ITERATION_COMPLETED(every=7), lambda engine: engine.terminate_epoch())
trainer.run(train, max_epochs=100)
"""
    training = train("ignite", "import sys, time\n" + program)
    shown = training.until(lambda shown: (shown["epoch"] or 0) > 3, "the fourth epoch")
    assert (shown["epochs"], shown["steps"], shown["heartbeat"].get("epoch_steps")) == (100, None, None)
    assert 0 <= shown["heartbeat"]["epoch_step"] <= 7


def test_an_evaluator_that_has_run_is_run_on_request(train: Callable[[str, str], Training]) -> None:
    program = f"""{IGNITE}
from ignite.engine import Events, create_supervised_evaluator
from ignite.metrics import Accuracy
from mpstui.integrations.ignite import attach
trainer = Engine(train_step)
evaluator = create_supervised_evaluator(model, {{"accuracy": Accuracy()}})
attach(trainer, evaluator=evaluator)
trainer.add_event_handler(Events.STARTED, lambda engine: evaluator.run(validation))
trainer.run(train, max_epochs=3)
"""
    training = train("ignite", "import sys, time\n" + program)
    shown = training.until(lambda shown: (shown["step"] or 0) > 20, "twenty steps")
    training.ask("evaluate")
    training.until(lambda now: now["metrics"]["val_accuracy"]["count"] == 2, "another evaluation")
    training.until(lambda now: now["step"] > shown["step"] + 20 and now["health"] == "training", "going on")


def test_totals_among_the_settings_of_accelerate_are_those_of_the_run(
    example: Callable[[str, str], str], train: Callable[[str, str], Training]
) -> None:
    program = example("Accelerate", ACCELERATE)
    said = program.replace('"batch_size": 8}', '"batch_size": 8, "num_epochs": 3}').replace(', "epochs": 3}', "}", 1)
    said = said.replace('"steps": 600, ', "")
    assert said.count("600") == program.count("600") - 1
    training = train("accelerate", said)
    shown = training.until(lambda shown: shown["eta_seconds"] and shown["loss"], "a remaining time")
    assert (shown["epochs"], shown["told_by"]["epochs"]) == (3, "report")
