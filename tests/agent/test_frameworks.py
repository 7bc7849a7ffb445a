"""Frameworks are asked once the program has imported them: stand-ins of the same names and the same calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mpstui.wire.rundir import RunDir
from tests.agent.programs import SCRIPT, ran

HUGGING_FACE = (
    "transformers.trainer_callback",
    """
class CallbackHandler:
    def call_event(self, event, args, state, control): return control
""",
    """
from types import SimpleNamespace as Record
handler, args = transformers.trainer_callback.CallbackHandler(), Record(output_dir='out')
state = Record(global_step=40, max_steps=60, epoch=2.0, num_train_epochs=3, log_history=[{'loss': 9.0, 'step': 40}])
for number in range(8):
    handler.call_event('on_step_begin', args, state, 'as it was')
    step(lambda loss: loss / 2)
    state.global_step += 1
    state.epoch += 1 / 20
    assert handler.call_event('on_step_end', args, state, 'as it was') == 'as it was'
state.log_history += [
    {'loss': 5.5, 'learning_rate': 1e-5, 'epoch': 2.4, 'step': 48}, {'eval_loss': 6.5, 'eval_runtime': 3.0, 'step': 48}
]
torch.save(x, 'optimizer.pt')
handler.call_event('on_save', args, state, None)
""",
)
LIGHTNING = (
    "lightning.pytorch.trainer.call",
    """
def _call_callback_hooks(trainer, hook_name, *args, **kwargs): return hook_name
""",
    """
from types import SimpleNamespace as Record
from lightning.pytorch.trainer import call
from lightning.pytorch.trainer.connectors.logger_connector.logger_connector import _LoggerConnector
trainer = Record(global_step=0, max_steps=-1, max_epochs=3, current_epoch=2, num_training_batches=40, optimizers=[1],
                 accumulate_grad_batches=2, checkpoint_callback=Record(_last_checkpoint_saved='out/epoch=2.ckpt'))
for number in range(8):
    step(); trainer.global_step = 41 + number
    call._call_callback_hooks(trainer, 'on_train_batch_end', None)
    _LoggerConnector().log_metrics({'train_loss': torch.tensor(5.5), 'val_loss': 6.5, 'epoch': 2})
optimizer.param_groups[0]['lr'] = 1e-5
""",
)
KERAS = (
    "keras.src.callbacks.callback_list",
    """
class CallbackList:
    def on_epoch_begin(self, epoch, logs=None): pass
    def on_train_batch_end(self, batch, logs=None): pass
    def on_epoch_end(self, epoch, logs=None): pass
""",
    """
from types import SimpleNamespace as Record
callbacks = keras.src.callbacks.callback_list.CallbackList()
rate, count = Record(value=torch.tensor(1e-5)), Record(value=torch.tensor(40))
callbacks.params = {'epochs': 3, 'steps': 20}
callbacks._model = Record(optimizer=Record(iterations=count, learning_rate=rate))
callbacks.on_epoch_begin(2)
for number in range(8):
    ((net(x) - 1) ** 2).mean().backward()
    count.value += 1
    callbacks.on_train_batch_end(number, {'loss': 5.5})
callbacks.on_epoch_end(2, {'loss': 5.5, 'val_loss': 6.5})
""",
)


@pytest.mark.parametrize(
    ("framework", "metrics", "saved", "before_torch"),
    [
        (HUGGING_FACE, {"eval_loss": 6.5}, "out/checkpoint-48", True),
        (LIGHTNING, {"val_loss": 6.5}, "out/epoch=2.ckpt", False),
        (KERAS, {"val_loss": 6.5}, None, False),
    ],
    ids=["transformers", "lightning", "keras"],
)
def test_a_framework_is_asked(
    tmp_path: Path, framework: tuple[str, str, str], metrics: dict[str, float], saved: str | None, before_torch: bool
) -> None:
    module, source, program = framework
    _written(tmp_path, module, source)
    _written(
        tmp_path,
        "lightning.pytorch.trainer.connectors.logger_connector.logger_connector",
        "class _LoggerConnector:\n    def log_metrics(self, metrics, step=None): pass\n",
    )
    imported = f"import {module}\n"
    script = imported + SCRIPT if before_torch else SCRIPT + imported
    printed, beat = ran(script + program, tmp_path)
    told: dict[str, Any] = {"step": 48, "steps": 60, "epoch": 3, "epochs": 3, "loss": 5.5, "loss_seen": "trainer"}
    assert {name: beat[name] for name in told} == told
    assert (beat["lr"], beat["metrics"], beat["phase"]) == (pytest.approx(1e-5), metrics, "done")
    assert (beat.get("epoch_steps") in (20, None), "step_from" in beat) == (True, False)
    assert (beat.get("checkpoint", {}).get("path"), printed) == (saved and str(tmp_path / saved), "")
    points = [json.loads(line) for line in RunDir(tmp_path).metrics.read_text().splitlines()]
    assert (points[-1]["step"], points[-1]["loss"]) == (48, 5.5)


def _written(folder: Path, module: str, source: str) -> None:
    *packages, name = module.split(".")
    for package in packages:
        folder /= package
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    (folder / f"{name}.py").write_text(source)
