"""Evaluations that somebody asks for between two steps: they are made, and the training computes what it would have."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from tests.integrations.conftest import ROOT, Training, python_with
from tests.integrations.test_frameworks import YOLO

ASKING = f"""
import os
os.environ["OMP_NUM_THREADS"] = "1"  # several gain nothing here, and wait for each other where a machine is busy
import hashlib, pathlib, random, sys, time
sys.path.append({str(ROOT)!r})
from mpstui.wire import rundir
folder, asked, steps = os.environ.get("MPSTUI_RUN_DIR"), [], 0
run = rundir.RunDir(pathlib.Path(folder)) if folder else None

def step_done(*_, **named):
    '''Ask the run that this is for an evaluation, as somebody else would, and go slowly until that is answered.'''
    global steps
    steps += 1
    if run and steps in ASK_AT:
        asked.append(rundir.submit(run, rundir.new_request("evaluate", 1, time.time())))
    if asked and rundir.answer_to(run, asked[-1].id) is None:
        time.sleep(0.3)
    return True

def tell(*states):
    '''What it has computed, and what the generators would draw next.'''
    import numpy, torch
    drawn = random.random(), numpy.random.rand(), torch.rand(1).item()
    print("computed", [hashlib.sha1(numpy.ascontiguousarray(one)).hexdigest()[:12] for one in states], drawn)
    print("answered", [rundir.answer_to(run, one.id).text for one in asked])
random.seed(1)
"""
KERAS = """
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy
from mpstui.integrations.keras import MpstuiCallback
keras.utils.set_random_seed(1)
x = numpy.random.rand(480, 8).astype("float32")
y = (x[:, 0] > 0.5).astype("float32")
class Shuffled(keras.utils.PyDataset):
    def __init__(self, data):
        super().__init__()
        self.data, self.order = data, numpy.arange(len(data[0]))
    def __len__(self): return len(self.data[0]) // 8
    def __getitem__(self, place): return tuple(part[self.order[8 * place:8 * place + 8]] for part in self.data)
    def on_epoch_end(self): numpy.random.shuffle(self.order)
class Noise(keras.layers.Layer):
    def call(self, x): return x + 0.01 * keras.random.normal(x.shape[1:])
layers = [keras.layers.Dense(16), keras.layers.BatchNormalization(), Noise(), keras.layers.Dropout(0.3)]
model = keras.Sequential([keras.Input((8,)), *layers, keras.layers.Dense(1, activation="sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy", keras.metrics.AUC()])
GIVEN
callbacks = [keras.callbacks.LambdaCallback(on_train_batch_end=step_done), MpstuiCallback(**given)]
told = model.fit(Shuffled((x, y)), epochs=3, validation_data=validation, verbose=2, callbacks=callbacks)
numbers = [value for name in sorted(told.history) for value in told.history[name]]
tell(*model.get_weights(), *[keras.ops.convert_to_numpy(one) for one in model.optimizer.variables], numbers)
"""
FASTAI = """
import numpy, torch
from fastai.callback.rnn import ModelResetter
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.callback.core import Callback
from fastai.metrics import accuracy
from mpstui.integrations.fastai import MpstuiCallback
numpy.random.seed(1), torch.manual_seed(1)
def items(count):
    x = torch.rand(count, 8)
    return [(one, (one.sum() > 4).long()) for one in x]
class Model(torch.nn.Module):
    '''With all that an evaluation might disturb: a mode, numbers counted along, a state from batch to batch.'''
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.3))
        self.last = torch.nn.Linear(16, 2)
        self.reset()
    def reset(self): self.state = torch.zeros(16)
    def forward(self, x):
        hidden = self.layers(x) + 0.1 * self.state
        self.state = hidden.detach().mean(0)
        return self.last(hidden)
class Asks(Callback):
    def after_batch(self):
        if self.training: step_done()
dls = DataLoaders(DataLoader(items(480), bs=8, shuffle=True), DataLoader(items(64), bs=8, shuffle=True))
callbacks = [ModelResetter, Asks, MpstuiCallback]
learner = Learner(dls, Model(), torch.nn.functional.cross_entropy, metrics=accuracy, cbs=callbacks)
with learner.no_bar(): learner.fit(3)
state = learner.opt.state_dict()["state"]
moments = [value.numpy() for one in state for value in one.values() if isinstance(value, torch.Tensor)]
numbers = [*map(float, learner.recorder.losses), *[value for row in learner.recorder.values for value in row]]
tell(*[one.numpy() for one in learner.model.state_dict().values()], *moments, numbers, learner.model.state.numpy())
"""
PPO = """
import gymnasium, numpy, torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList, ConvertCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from mpstui.integrations.stable_baselines3 import MpstuiCallback
if 1:
    def made(seed, **how): return VecNormalize(make_vec_env("CartPole-v1", 1, seed), **how)
GIVEN
model = PPO("MlpPolicy", made(1), n_steps=256, seed=1, verbose=1, device="cpu")
callbacks = CallbackList([ConvertCallback(step_done), *before, MpstuiCallback(**given)])
model.learn(1000, callback=callbacks)
numbers = [one for each in before for one in each.last_mean_reward.as_integer_ratio()]
optimizer = [value.numpy() for one in model.policy.optimizer.state_dict()["state"].values() for value in one.values()]
tell(*[one.numpy() for one in model.policy.state_dict().values()], *optimizer, numbers)
"""
DETECTOR = (
    "import numpy\nnumpy.random.seed(1)\n"
    + YOLO.replace("time.sleep(0.15)", "None")
    + """
import torch
from mpstui.integrations.ultralytics import attach
torch.manual_seed(1)
model = YOLO("yolo11n.yaml")
model.add_callback("on_train_batch_end", step_done)
attach(model)
found = model.train(data="data.yaml", epochs=2, seed=1, **settings)
trainer = model.trainer
ema = [one.numpy() for one in trainer.ema.ema.state_dict().values()]
moments = [one["momentum_buffer"].numpy() for one in trainer.optimizer.state.values() if "momentum_buffer" in one]
rows = (trainer.save_dir / "results.csv").read_text().splitlines()
numbers = [float(cell) for row in rows[1:] for cell in row.split(",")[2:]]
tell(*[one.numpy() for one in trainer.model.state_dict().values()], *ema, *moments, numbers, [trainer.best_fitness])
"""
)


@dataclass(frozen=True)
class Evaluated:
    """A training, at which of its steps somebody asks, and what comes of it."""

    module: str
    program: str
    at: tuple[int, ...]
    answers: tuple[str, ...]
    counts: Mapping[str, int]
    """How many values of a metric there are then, those measured in turn among them."""
    prints: bool = True
    """It prints the same each time but for what was measured by the clock."""


OF_ITS_OWN = "given, before = dict(eval_env=gymnasium.make('CartPole-v1'), n_eval_episodes=3), []"
BESIDE = (
    "given, before = {}, [EvalCallback(made(2, training=False, norm_reward=False), n_eval_episodes=3, eval_freq=400)]"
)
DATA = "validation = Shuffled((x[:64], y[:64]))\ngiven = "
NOT_YET = "Keras has not said yet what it validates on: ask again after one, or give MpstuiCallback validation_data too"
YES = "it evaluates after step {}"
EVALUATED = {
    "Keras": Evaluated(
        "keras",
        KERAS.replace("GIVEN", DATA + "dict(validation_data=validation)"),
        (20, 100),
        (YES, YES),
        {"val_loss": 5, "val_accuracy": 5},
    ),
    "Keras, as it validates": Evaluated(
        "keras", KERAS.replace("GIVEN", DATA + "{}"), (20, 100), (NOT_YET, YES), {"val_loss": 4, "val_accuracy": 4}
    ),
    "fastai": Evaluated("fastai", FASTAI, (20, 100), (YES, YES), {"valid_loss": 5, "accuracy": 5}),
    "Stable-Baselines3": Evaluated(
        "stable_baselines3", PPO.replace("GIVEN", OF_ITS_OWN), (100, 600), (YES, YES), {"eval/mean_reward": 2}
    ),
    "Stable-Baselines3, as it evaluates": Evaluated(
        "stable_baselines3", PPO.replace("GIVEN", BESIDE), (100, 600), (YES, YES), {"eval/mean_reward": 4}
    ),
    "Ultralytics": Evaluated(
        "ultralytics", DETECTOR, (5, 40), (YES, YES), {"val/box_loss": 4, "fitness": 4}, prints=False
    ),
}
BY_THE_CLOCK = re.compile(r"\d+m?s(/step|/epoch)?|\d\d:\d\d|(fps|time_elapsed) *\| *\d+ *\|")


@pytest.mark.parametrize("case", EVALUATED)
def test_an_evaluation_disturbs_no_training(case: str, train: Callable[[str, str], Training]) -> None:
    one = EVALUATED[case]
    program = ASKING.replace("ASK_AT", str(one.at)) + one.program
    training = train(one.module, program)
    done = training.mpstui.wait_state(training.run, "finished", timeout=1800)
    asked = training.mpstui.call("logs", training.run).stdout

    folder = training.mpstui.cwd / "alone"
    folder.mkdir()
    command = [python_with(one.module), str(training.mpstui.cwd / "train.py")]
    environ = training.mpstui.environment()
    ran = subprocess.run(
        command, env=environ, cwd=folder, stdout=-1, stderr=subprocess.STDOUT, text=True, timeout=1800, check=False
    )
    assert _computed(asked) == _computed(ran.stdout), asked
    if one.prints:
        assert _lines(asked) == _lines(ran.stdout)
    answers = [text.format(at) for text, at in zip(one.answers, one.at, strict=True)]
    assert f"answered {answers}" in asked
    assert {name: done["metrics"][name]["count"] for name in one.counts} == one.counts
    assert not [event for event in done["events"] if "the callback is off" in event["text"]]
    assert not [event for event in done["events"] if "could not evaluate" in event["text"]]


def test_who_has_nothing_to_evaluate_with_says_what_it_needs(train: Callable[[str, str], Training]) -> None:
    program = PPO.replace("GIVEN", "given, before = {}, []")
    training = train("stable_baselines3", ASKING.replace("ASK_AT", "(100,)") + program)
    training.mpstui.wait_state(training.run, "finished", timeout=1800)
    answer = "there is nothing to evaluate in: give it MpstuiCallback(eval_env=...)"
    assert f"answered {[answer]}" in training.mpstui.call("logs", training.run).stdout


def _computed(output: str) -> list[str]:
    found = [line for line in output.splitlines() if line.startswith("computed")]
    assert found, output
    return found


def _lines(output: str) -> list[str]:
    """What was printed, but for times, and for what was asked."""
    lines = [line for line in output.splitlines() if not line.startswith("answered")]
    return [BY_THE_CLOCK.sub("", line) for line in lines]
