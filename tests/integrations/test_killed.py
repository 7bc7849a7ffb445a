"""Trainings with a callback that are killed within an epoch: the next attempt goes on in all that is shown."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from mpstui.core.model.home import Home
from mpstui.core.runs.monitor import Monitor
from mpstui.core.sharing.export import MOST_POINTS
from tests.integrations.conftest import Shown, Training
from tests.integrations.test_frameworks import ACCELERATE, FASTAI, IGNITE, KERAS, PPO, YOLO
from tests.integrations.test_huggingface import GIVEN as TRAINER
from tests.integrations.test_lightning import GIVEN as LIGHTNING


@dataclass(frozen=True)
class Killed:
    """A training that saves at the end of each epoch, or about as often."""

    module: str
    given: str
    changes: tuple[tuple[str, str], ...] = ()
    """Of the page's example, so that it saves by itself."""
    of_epoch: int = 200
    epochs: int | None = 3
    steps: int = 600
    validation: str = ""
    """What is measured once an epoch."""
    tells_best: bool = False


KILLED = {
    "Transformers": Killed(
        "transformers",
        TRAINER,
        (('save_strategy="epoch"', 'save_strategy="epoch", load_best_model_at_end=True'),),
        validation="eval_loss",
        tells_best=True,
    ),
    "Lightning": Killed(
        "lightning",
        "from lightning.pytorch.callbacks import ModelCheckpoint\n" + LIGHTNING.replace("LOG", "pass"),
        (("callbacks=[", 'callbacks=[ModelCheckpoint("out", monitor="val_loss", save_top_k=-1), '),),
        validation="val_loss",
        tells_best=True,
    ),
    "Keras": Killed(
        "keras",
        KERAS,
        (("callbacks = [", 'callbacks = [keras.callbacks.ModelCheckpoint("each-{epoch}.keras"), '),),
        validation="val_loss",
    ),
    "Accelerate": Killed(
        "accelerate", ACCELERATE, (('requested("save") or', 'requested("save") or step % 200 == 0 or'),)
    ),
    "Ultralytics": Killed("ultralytics", YOLO, of_epoch=32, steps=96, validation="val/box_loss"),
    "fastai": Killed(
        "fastai",
        "import re\nfrom fastai.callback.tracker import SaveModelCallback\n" + FASTAI,
        (
            ("cbs=[", 'cbs=[SaveModelCallback(every_epoch=True, fname="each"), '),
            ('load("asked")', 'load(re.sub(r".*/|\\.pth", "", checkpoint))'),
            ("fit(3)", 'fit(3, start_epoch=int(checkpoint[:-4].rpartition("_")[2]) + 1 if checkpoint else 0)'),
        ),
        validation="valid_loss",
    ),
    "Stable-Baselines3": Killed(
        "stable_baselines3",
        "from stable_baselines3.common.callbacks import CheckpointCallback\n" + PPO,
        (
            ('callback=MpstuiCallback(save_to="ppo.zip")', "callback=callbacks"),
            ("left =", 'callbacks = [CheckpointCallback(1024, "out"), MpstuiCallback(save_to="ppo.zip")]\nleft ='),
            ("50_000", "8_192"),
        ),
        of_epoch=1024,
        epochs=None,
        steps=8192,
    ),
    "Ignite": Killed(
        "ignite",
        "from ignite.engine import Events\n" + IGNITE,
        (("trainer.run(", "trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)\ntrainer.run("),),
    ),
}


@pytest.mark.parametrize("heading", KILLED)
def test_a_killed_training_goes_on(
    heading: str, example: Callable[[str, str], str], train: Callable[[str, str], Training]
) -> None:
    one = KILLED[heading]
    program = example(heading, one.given)
    for old, new in one.changes:
        assert old in program, old
        program = program.replace(old, new)
    training = train(one.module, program)
    shown = training.until(
        lambda shown: (shown["step"] or 0) > 1.2 * one.of_epoch and shown["checkpoints"], "a step behind a checkpoint"
    )
    os.kill(shown["pid"], signal.SIGKILL)
    killed = training.mpstui.wait_state(training.run, "killed")
    saved = killed["checkpoints"][0]["step"]
    assert saved == one.of_epoch < killed["step"]

    assert training.mpstui.call("restart", training.run).returncode == 0
    again = training.until_next_attempt()
    assert (again["epoch"], again["epochs"]) == (one.epochs and 2, one.epochs)
    assert saved < again["step"] < again["steps"]
    training.until(lambda shown: shown["eta_seconds"] and shown["loss"] is not None, "a remaining time, and a loss")

    done = training.mpstui.wait_state(training.run, "finished", timeout=600)
    assert [done[name] for name in ("epoch", "epochs", "step", "steps")] == [one.epochs] * 2 + [one.steps] * 2
    assert done["checkpoints"][0]["step"] == one.steps
    assert all(saved["step"] for saved in done["checkpoints"])
    _curves_are_whole(one, training, killed["step"], done)


def _curves_are_whole(one: Killed, training: Training, killed_at: int, done: Shown) -> None:
    """No point is there twice, and what was trained again is kept beside."""
    home = Home(training.mpstui.home, training.mpstui.home)
    curves = Monitor(home, columns=MOST_POINTS).snapshot(training.run).series
    for name, view in curves.items():
        assert list(view.x) == sorted(set(view.x)), name
        assert all(one.of_epoch <= x <= killed_at for piece in view.superseded for x in piece.x), name
    assert curves["loss"].x[-1] == one.steps
    if one.validation:
        measured = curves[one.validation]
        assert list(measured.x) == [one.of_epoch, 2 * one.of_epoch, one.steps]
    if one.tells_best:
        best = min(measured.values)
        assert done["heartbeat"]["metrics"]["best_metric"] == pytest.approx(best)
        at = measured.x[list(measured.values).index(best)]
        assert [saved["step"] for saved in done["checkpoints"] if saved["best"]] == [at]
