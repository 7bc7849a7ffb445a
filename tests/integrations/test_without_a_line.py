"""Scripts as they are: what the agent knows of Trainer, Lightning, Keras, fastai, SB3 and YOLO without a callback."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integrations.conftest import Training
from tests.integrations.test_frameworks import ACCELERATE, FASTAI, PPO, YOLO
from tests.integrations.test_huggingface import GIVEN as TRANSFORMERS
from tests.integrations.test_lightning import GIVEN as LIGHTNING

TRAINER = (
    TRANSFORMERS.replace("1600", "240")
    + """
arguments = TrainingArguments("out", num_train_epochs=2, eval_strategy="epoch", save_strategy="epoch")
Trainer(model, arguments, train_dataset=train, eval_dataset=validation).train()
"""
)
MODULE = (
    LIGHTNING.replace("1600", "240").replace("LOG", 'self.log("train_loss", self.loss(batch))')
    + """
from lightning.pytorch.callbacks import ModelCheckpoint
Trainer(max_epochs=2, logger=False, callbacks=[ModelCheckpoint("out", save_top_k=-1)]).fit(module, train, validation)
"""
)
KERAS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy
x = numpy.random.rand(240, 8).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, activation="sigmoid")])
model.compile("sgd", "binary_crossentropy")
saves = keras.callbacks.ModelCheckpoint("out/{epoch}.keras")
model.fit(x, x[:, 0] > 0.5, batch_size=8, epochs=2, validation_data=(x[:32], x[:32, 0] > 0.5), callbacks=[saves])
"""

LEARNER = (
    FASTAI.replace("1600", "240")
    + """
from fastai.callback.tracker import SaveModelCallback
Learner(dls, model, loss_func=loss, cbs=[SaveModelCallback(every_epoch=True)]).fit(2, 0.05)
"""
)


@pytest.mark.parametrize(
    ("module", "program", "validation"),
    [
        ("transformers", TRAINER, "eval_loss"),
        ("lightning", MODULE, "val_loss"),
        ("keras", KERAS, "val_loss"),
        ("fastai", LEARNER, "valid_loss"),
    ],
)
def test_a_script_as_it_is(module: str, program: str, validation: str, train: Callable[[str, str], Training]) -> None:
    training = train(module, "import sys, time\n" + program)
    shown = training.mpstui.wait_state(training.run, "finished", timeout=600)
    assert [shown[name] for name in ("epoch", "epochs", "step", "steps")] == [2, 2, 60, 60]
    assert set(shown["told_by"].values()) == {"agent"}
    beat = shown["heartbeat"]
    assert (beat["epoch_step"], beat["epoch_steps"]) == (30, 30)
    assert (shown["loss"] is not None, beat["lr"] is not None) == (True, True)
    assert shown["metrics"][validation]["count"] == 2
    assert [one["step"] for one in shown["checkpoints"]] == [60, 30]


def test_an_algorithm_of_stable_baselines_as_it_is(train: Callable[[str, str], Training]) -> None:
    program = (
        PPO
        + """
from stable_baselines3.common.callbacks import CheckpointCallback
model = PPO("MlpPolicy", environment, n_steps=256)
model.learn(4000, callback=CheckpointCallback(1024, "out"))
"""
    )
    training = train("stable_baselines3", "import sys, time\n" + program)
    training.until(lambda shown: (shown["step"] or 0) > 512 and shown["eta_seconds"], "a remaining time")
    shown = training.mpstui.wait_state(training.run, "finished", timeout=600)
    assert (shown["step"], shown["steps"], shown["device"]) == (4096, 4096, "cpu")
    assert {"step", "steps", "loss", "lr"} <= {name for name, by in shown["told_by"].items() if by == "agent"}
    assert shown["metrics"]["loss"]["count"] > 10
    assert shown["metrics"]["rollout/ep_rew_mean"]["last"] > 0
    assert [one["step"] for one in shown["checkpoints"]] == [4096, 3072, 2048, 1024]


def test_a_detector_of_ultralytics_as_it_is(train: Callable[[str, str], Training]) -> None:
    program = YOLO + 'YOLO("yolo11n.yaml").train(data="data.yaml", epochs=2, **settings)\n'
    training = train("ultralytics", "import sys, time\n" + program)
    shown = training.mpstui.wait_state(training.run, "finished", timeout=600)
    assert (shown["epoch"], shown["epochs"], shown["device"]) == (2, 2, "cpu")
    assert shown["step"] == shown["steps"] == 2 * shown["heartbeat"]["epoch_steps"]
    assert {"step", "steps", "epochs", "loss"} <= {name for name, by in shown["told_by"].items() if by == "agent"}
    assert shown["metrics"]["metrics/mAP50-95(B)"]["count"] == 2
    assert {one["path"].rpartition("/")[2] for one in shown["checkpoints"]} == {"last.pt", "best.pt"}


@pytest.mark.parametrize("is_given", [True, False])
def test_a_loop_of_accelerate_whose_optimizer_counts_nothing_goes_on_where_it_was(
    is_given: bool, train: Callable[[str, str], Training]
) -> None:
    """Plain SGD has no state, and no schedule counts beside it: the run was told of the step that a checkpoint is of.

    An older one may be chosen, or none: this program looks for itself then.
    """
    program = f"""{ACCELERATE.replace("0.03", "0.01")}
import glob
found = sys.argv[2:] or sorted(glob.glob("out/step-*"))[:1]
accelerator = Accelerator()
model, optimizer, train = accelerator.prepare(model, optimizer, train)
if found:
    accelerator.load_state(found[0])
for step, loss in steps(accelerator, model, optimizer, train, begin=step_of(found[0] if found else None)):
    if step % 200 == 0:
        accelerator.save_state(f"out/step-{{step}}")
"""
    training = train("accelerate", "import sys, time\n" + program)
    shown = training.until(lambda shown: len(shown["checkpoints"]) == 2 and shown["step"] > 420, "two checkpoints")
    begins = shown["checkpoints"][-1]["path"] if is_given else "scratch"
    training.mpstui.json("kill", training.run)
    training.mpstui.wait_state(training.run, "killed")
    assert training.mpstui.call("restart", training.run, "--from", begins).returncode == 0
    again = training.until_next_attempt()
    assert again["step"] > 200
    done = training.mpstui.wait_state(training.run, "finished", timeout=600)
    assert done["step"] == 600


def test_a_tracker_is_told_steps_that_begin_anew_after_a_resume(train: Callable[[str, str], Training]) -> None:
    """As Accelerate's own examples have it: what is told of an epoch stands at the step of the run."""
    program = f"""{ACCELERATE.replace("0.03", "0.01")}
from mpstui.integrations.accelerate import MpstuiTracker
accelerator = Accelerator(log_with=MpstuiTracker())
accelerator.init_trackers("digits", {{"num_epochs": 3}})
model, optimizer, train = accelerator.prepare(model, optimizer, train)
begun = 0
if sys.argv[2:]:
    accelerator.load_state(sys.argv[2])
    begun = step_of(sys.argv[2])
for step, loss in steps(accelerator, model, optimizer, train, begin=begun):
    if step % 200 == 0:
        accelerator.log({{"accuracy": 0.5, "epoch": step // 200 - 1}}, step=step - begun)
        accelerator.save_state(f"out/step-{{step}}")
"""
    training = train("accelerate", "import sys, time\n" + program)
    training.until(lambda shown: shown["checkpoints"] and shown["step"] > 220, "a step behind a checkpoint")
    training.mpstui.json("kill", training.run)
    training.mpstui.wait_state(training.run, "killed")
    assert training.mpstui.call("restart", training.run).returncode == 0
    done = training.mpstui.wait_state(training.run, "finished", timeout=600)
    assert (done["step"], done["epochs"], done["metrics"]["accuracy"]["count"]) == (600, 3, 3)
