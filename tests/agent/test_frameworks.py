"""Frameworks are asked once the program has imported them: stand-ins of the same names and the same calls."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from mpstui.agent.frameworks import hooks_of
from mpstui.agent.hooks import watched
from mpstui.agent.watch import Watch
from mpstui.wire.rundir import RunDir
from tests.agent.programs import SCRIPT, ran

CLOCK = "import time; at = [100.0]; time.monotonic = lambda: at[0]\n"
LOGGER = "lightning.pytorch.trainer.connectors.logger_connector.logger_connector"
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
connector = _LoggerConnector()
trainer = Record(global_step=0, max_steps=-1, max_epochs=3, current_epoch=2, num_training_batches=40, optimizers=[1],
                 accumulate_grad_batches=2)
for number in range(8):
    step(); trainer.global_step = 41 + number
    call._call_callback_hooks(trainer, 'on_train_batch_end', None)
    if number == 3:
        connector._first_loop_iter = False
        connector.log_metrics({'train_loss': torch.tensor(5.5), 'train_acc': 0.5, 'epoch': 2})
        connector._first_loop_iter = None
connector.log_metrics({'val_loss_step': 7.5}, step=3)
connector.log_metrics({'val_loss': 6.5})
call._call_callback_hooks(trainer, 'on_validation_end', None)
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
rate, count = Record(value=torch.tensor(1e-5)), Record(value=torch.tensor(39))
callbacks.params = {'epochs': 3, 'steps': 20}
callbacks._model = Record(optimizer=Record(iterations=count, learning_rate=rate))
callbacks.on_epoch_begin(2)
for number in range(8):
    ((net(x) - 1) ** 2).mean().backward()
    count.value += 1
    callbacks.on_train_batch_end(number, {'loss': 5.5})
callbacks.on_epoch_end(2, {'loss': 5.5, 'val_loss': 6.5})
count.value += 1  # the next epoch, before anybody looks
""",
)


def test_hugging_face_is_asked_in_a_program_that_imports_it_before_torch(tmp_path: Path) -> None:
    module, source, program = HUGGING_FACE
    _written(tmp_path, module, source)
    printed, beat = ran(f"import {module}\n" + SCRIPT + program, tmp_path)
    told: dict[str, Any] = {"step": 48, "steps": 60, "epoch": 3, "epochs": 3, "loss": 5.5, "loss_seen": "trainer"}
    assert {name: beat[name] for name in told} == told
    assert (beat["lr"], beat["metrics"], beat["phase"]) == (1e-5, {"eval_loss": 6.5}, "done")
    assert ("step_from" in beat, printed) == (False, "")
    assert beat["checkpoint"]["path"] == str(tmp_path / "out" / "checkpoint-48")
    assert (beat["epoch_step"], beat["epoch_steps"]) == (8, 20)
    points = [(one["step"], {*one} - {"time", "attempt", "epoch", "step"}) for one in _points(tmp_path)]
    assert points[-2:] == [(48, {"loss", "lr"}), (48, {"eval_loss"})]
    assert [step for step, names in points if "eval_loss" in names] == [48]
    events = [json.loads(line) for line in RunDir(tmp_path).events.read_text().splitlines()]
    saved = [(one["path"], one["step"]) for one in events if one["event"] == "checkpoint"]
    assert saved == [(str(tmp_path / "out" / "checkpoint-48"), 48)]


def test_the_end_of_an_epoch_is_not_yet_the_next_one() -> None:
    from types import SimpleNamespace as Record

    watch = Watch(torch, {})
    ((_, _, look, _),) = hooks_of("transformers.trainer_callback", watch)
    state = Record(global_step=0, max_steps=60, epoch=0.0, num_train_epochs=3, log_history=[])
    told = []
    for event, epoch in (
        *(("on_train_begin", 0.0), ("on_epoch_begin", 0.0), ("on_substep_end", 0.0), ("on_step_end", 0.05)),
        *(("on_step_end", 1.0), ("on_evaluate", 1.0), ("on_epoch_begin", 1.0), ("on_step_begin", 1.0)),
        *(("on_step_end", 1.05), ("on_train_begin", 1.5), ("on_step_end", 3.0)),
    ):
        state.epoch = epoch
        look(None, event, None, state)
        assert watch.trainer is not None
        told.append(watch.trainer()["epoch"])
    assert told == [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3]


def test_what_accelerate_saves_is_a_checkpoint_as_a_whole(tmp_path: Path) -> None:
    source = """
import torch
class Accelerator:
    def save_state(self, folder, x):
        for name in ("model.pt", "random_states_0.pkl"):
            torch.save(x, f"{folder}/{name}")
        return folder
"""
    _written(tmp_path, "accelerate.accelerator", source)
    (tmp_path / "epoch_0").mkdir()
    program = "import accelerate.accelerator\nfor _ in range(3): step()\n"
    program += "accelerate.accelerator.Accelerator().save_state('epoch_0', x)\n"
    _, beat = ran(SCRIPT + program, tmp_path)
    assert (beat["checkpoint"]["path"], beat["checkpoint"]["step"]) == (str(tmp_path / "epoch_0"), 3)


def test_what_fabric_saves_is_a_checkpoint_though_torch_writes_it_into_a_buffer(tmp_path: Path) -> None:
    source = """
import io, torch
class Fabric:
    def save(self, path, state, filter=None):
        buffer = io.BytesIO(); torch.save(state, buffer); open(path, "wb").write(buffer.getvalue())
"""
    _written(tmp_path, "lightning.fabric.fabric", source)
    program = "from lightning.fabric.fabric import Fabric\nfor _ in range(3): step()\n"
    program += "Fabric().save('lit_model.pth', {'model': net.state_dict(), 'optimizer': optimizer.state_dict()})\n"
    _, beat = ran(SCRIPT + program, tmp_path)
    assert (beat["checkpoint"]["path"], beat["checkpoint"]["step"]) == (str(tmp_path / "lit_model.pth"), 3)


def test_the_points_of_a_second_training_begin_anew(tmp_path: Path) -> None:
    module, source, _ = HUGGING_FACE
    _written(tmp_path, module, source)
    script = (
        f"import {module}\n"
        + CLOCK
        + SCRIPT
        + (
            "from types import SimpleNamespace as Record\n"
            "handler = transformers.trainer_callback.CallbackHandler()\n"
            "for fold in range(2):\n"
            "    state = Record(global_step=0, max_steps=4, epoch=0.0, num_train_epochs=1, log_history=[])\n"
            "    handler.call_event('on_train_begin', None, state, None)\n"
            "    for number in range(4):\n"
            "        step(); at[0] += 2; state.global_step += 1\n"
            "        state.log_history += [{'loss': 5.0, 'step': state.global_step}]\n"
            "        handler.call_event('on_step_end', None, state, None)\n"
        )
    )
    last = ran(script, tmp_path)[1]
    assert (last["step"], last["steps"]) == (4, 4)
    points = [one["step"] for one in _points(tmp_path) if one.get("loss") == 5.0]
    assert points == [1, 2, 3, 4] * 2


def test_a_loss_is_seen_before_trainer_logs_one(tmp_path: Path) -> None:
    """Its first word comes after 500 steps, as it is set from the start."""
    module, source, _ = HUGGING_FACE
    _written(tmp_path, module, source)
    program = """
from types import SimpleNamespace as Record
state = Record(global_step=0, max_steps=9, epoch=0.0, num_train_epochs=1 << 63, log_history=[])
handler, losses = transformers.trainer_callback.CallbackHandler(), []
handler.call_event('on_train_begin', None, state, None)
for number in range(4):
    losses.append(step()); at[0] += 2; state.global_step += 1; state.epoch += 1 / 9
    handler.call_event('on_step_end', None, state, None)
print(losses)
"""
    printed, beat = ran(f"import {module}\n" + CLOCK + SCRIPT + program, tmp_path)
    losses = json.loads(printed)
    assert (beat["loss"], beat["step"], beat["epoch_steps"]) == (pytest.approx(losses[-1]), 4, 9)
    assert "epochs" not in beat
    assert _losses(tmp_path) == {step: pytest.approx(losses[step - 1]) for step in (1, 2, 3, 4)}


@pytest.mark.parametrize("framework", [LIGHTNING, KERAS], ids=["lightning", "keras"])
def test_a_framework_tells_its_own_numbers(
    tmp_path: Path, framework: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, source, program = framework
    _written(tmp_path, module, source)
    _written(tmp_path, LOGGER, "class _LoggerConnector:\n    def log_metrics(self, metrics, step=None): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("lightning", "keras")]:
        monkeypatch.delitem(sys.modules, name)
    watch = Watch(torch, {})
    for name in (LOGGER, module):
        found = importlib.import_module(name)
        for path, function, before, after in hooks_of(name, watch):
            owner = getattr(found, path, None) if path else found
            if hasattr(owner, function):
                setattr(owner, function, watched(getattr(owner, function), watch, before, after))
    net, x = torch.nn.Linear(8, 1), torch.randn(4, 8)
    optimizer = torch.optim.SGD(net.parameters())
    names = {"torch": torch, "net": net, "x": x, "optimizer": optimizer, "step": lambda: None}
    exec(f"import {module}\n{program}", names)
    assert watch.trainer is not None
    told = watch.trainer()
    assert told.get("lr", 1e-5) == pytest.approx(1e-5)
    expected = {"step": 48, "steps": 60, "epoch": 3, "epochs": 3, "epoch_step": 8, "epoch_steps": 20}
    assert {name: told[name] for name in expected} == expected
    assert told["metrics"]["val_loss"] == 6.5
    if framework is LIGHTNING:
        assert told["logged_loss"] == 5.5
        assert told["points"] == [(44, {"train_acc": 0.5}), (48, {"val_loss": 6.5})]
    else:
        assert told["loss"] == 5.5
        assert told["points"] == [(47, {"loss": 5.5, "val_loss": 6.5})]
    assert watch.trainer()["points"] == []


def test_what_lightning_logs_now_and_then_is_told_at_its_steps_and_the_loss_is_seen(tmp_path: Path) -> None:
    module, source, _ = LIGHTNING
    _written(tmp_path, module, source)
    _written(tmp_path, LOGGER, "class _LoggerConnector:\n    def log_metrics(self, metrics, step=None): pass\n")
    saves = f"from {LOGGER} import _LoggerConnector\n"  # whose calls are told of once
    saves += "class Trainer:\n    def save_checkpoint(self, filepath): open(filepath, 'w').close()\n"
    _written(tmp_path, "lightning.pytorch.trainer.trainer", saves)
    program = f"""
from lightning.pytorch.trainer import call
from lightning.pytorch.trainer.trainer import Trainer
from {LOGGER} import _LoggerConnector
trainer = Trainer()
vars(trainer).update(global_step=0, max_steps=-1, max_epochs=1, current_epoch=0, num_training_batches=6, optimizers=[1],
                     accumulate_grad_batches=1)
losses = []
for number in range(6):
    call._call_callback_hooks(trainer, 'on_train_batch_start')
    losses.append(step()); at[0] += 2; trainer.global_step += 1
    if number == 1:
        _LoggerConnector().log_metrics(dict(train_loss=losses[-1], epoch=0))
        _LoggerConnector().log_metrics(dict(val_loss=6.5))
        trainer.save_checkpoint('a.ckpt'); trainer.save_checkpoint('last.ckpt')
print(losses)
"""
    printed, beat = ran(CLOCK + SCRIPT + program, tmp_path)
    losses, points = json.loads(printed), _points(tmp_path)
    assert (beat["loss"], beat["loss_seen"]) == (pytest.approx(losses[-1]), "trainer")
    assert _losses(tmp_path) == {step: pytest.approx(losses[step - 1]) for step in (1, 2, 3, 4, 5, 6)}
    assert [one["step"] for one in points if "val_loss" in one] == [2]
    events = [json.loads(line) for line in RunDir(tmp_path).events.read_text().splitlines()]
    saved = [(Path(one["path"]).name, one["step"]) for one in events if one["event"] == "checkpoint"]
    assert saved == [("a.ckpt", 2), ("last.ckpt", 2)]


def test_lightning_that_stops_early_ends_in_the_epoch_that_it_trained_last(tmp_path: Path) -> None:
    module, source, _ = LIGHTNING
    _written(tmp_path, module, source)
    program = """
from types import SimpleNamespace as Record
from lightning.pytorch.trainer import call
begun = Record(ready=0)
trainer = Record(global_step=0, max_steps=-1, max_epochs=5, current_epoch=0, num_training_batches=3, optimizers=[1],
                 accumulate_grad_batches=1, fit_loop=Record(epoch_progress=Record(current=begun)))
for epoch in range(2):
    begun.ready += 1
    for _ in range(3):
        step(); trainer.global_step += 1
        call._call_callback_hooks(trainer, 'on_train_batch_end')
    trainer.current_epoch += 1
"""
    _, beat = ran(SCRIPT + program, tmp_path)
    told = {"step": 6, "steps": 15, "epoch": 2, "epochs": 5, "epoch_step": 3, "epoch_steps": 3}
    assert {name: beat[name] for name in told} == told


MANUAL = """
from types import SimpleNamespace as Record
from lightning.pytorch.trainer import call
done = Record(completed=BEHIND)
trainer = Record(global_step=BEHIND * 2, max_steps=-1, max_epochs=5, current_epoch=BEHIND // 12, optimizers=[1, 2],
                 num_training_batches=12, accumulate_grad_batches=1,
                 lightning_module=Record(automatic_optimization=False),
                 fit_loop=Record(epoch_loop=Record(batch_progress=Record(total=done))))
def train(batches, every=(1, 1)):
    for _ in range(batches):
        call._call_callback_hooks(trainer, 'on_train_batch_start')
        for one in every:
            if done.completed % one == 0:
                step(); trainer.global_step += 1
        done.completed += 1
        trainer.current_epoch = (done.completed - 1) // 12
"""


@pytest.mark.parametrize(
    ("behind", "trained", "steps", "of_epoch"),
    [
        (0, "train(6)", None, None),  # nobody knows yet
        (0, "train(11)", 120, 24),  # both step with each batch
        (0, "train(11, (4,))", None, None),
        (0, "train(14, (4,))", 15, 3),  # as in the epoch before
        (0, "train(14, (1, 5))", 75, 15),
        (30, "train(3)", 120, 24),  # resumed within an epoch
    ],
)
def test_the_batches_so_far_tell_how_often_a_module_of_lightning_steps_its_optimizers_itself(
    tmp_path: Path, behind: int, trained: str, steps: int | None, of_epoch: int | None
) -> None:
    module, source, _ = LIGHTNING
    _written(tmp_path, module, source)
    _, beat = ran(SCRIPT + MANUAL.replace("BEHIND", str(behind)) + trained, tmp_path)
    assert (beat.get("steps"), beat.get("epoch_steps"), beat["epochs"]) == (steps, of_epoch, 5)


def test_the_first_of_several_losses_is_not_the_loss_of_a_resumed_training_of_lightning(tmp_path: Path) -> None:
    module, source, _ = LIGHTNING
    _written(tmp_path, module, source)
    program = """
both = [torch.optim.Adam(net.parameters()) for _ in range(2)]
for one in both:
    known = {number: {"step": torch.tensor(600.0), "exp_avg": torch.zeros_like(weight),
                      "exp_avg_sq": torch.zeros_like(weight)} for number, weight in enumerate(net.parameters())}
    one.load_state_dict({**one.state_dict(), "state": known})
def step():
    generated = (net(x) - 1).pow(2).mean()
    generated.backward(); both[0].step(); trainer.global_step += 1
    judged = net(x).pow(2).mean()
    judged.backward(); both[1].step(); trainer.global_step += 1
"""
    manual = MANUAL.replace("BEHIND", "600").replace("step(); trainer.global_step += 1", "step()")
    _, beat = ran(SCRIPT + manual + program + "train(6, (1,))", tmp_path)
    assert "loss" not in beat
    assert not [one for one in _points(tmp_path) if "loss" in one]


def test_fastai_is_asked_since_its_optimizers_are_not_those_of_torch(tmp_path: Path) -> None:
    source = "class Learner:\n    def __call__(self, event): pass\n    def save(self, file): return file\n"
    _written(tmp_path, "fastai.learner", source)
    program = """
from types import SimpleNamespace as Record
learner = fastai.learner.Learner()
recorder = Record(metric_names=['epoch', 'train_loss', 'valid_loss', 'time'], values=[])
opt, dls = Record(hypers=[{'lr': 0.5}]), Record(train=range(5))
vars(learner).update(n_epoch=2, dls=dls, opt=opt, recorder=recorder)
learner('before_fit')
for learner.epoch in range(2):
    for _ in range(5):
        ((net(x) - 1) ** 2).mean().backward(); learner('after_step')
    learner('before_validate')
    recorder.values.append([0.5, 0.25])
    learner.save('model.pth')
"""
    _, beat = ran("import fastai.learner\n" + SCRIPT + program, tmp_path)
    told = {"step": 10, "steps": 10, "epoch": 2, "epochs": 2, "epoch_step": 5, "epoch_steps": 5, "lr": 0.5}
    assert {name: beat[name] for name in told} == told
    assert [one["step"] for one in _points(tmp_path) if "valid_loss" in one] == [5, 10]
    events = [json.loads(line) for line in RunDir(tmp_path).events.read_text().splitlines()]
    assert [one["step"] for one in events if one["event"] == "checkpoint"] == [5, 10]
    assert not any("saw no step" in one["text"] for one in events)


def test_the_steps_of_a_program_that_acts_in_an_environment_are_told_as_updates(tmp_path: Path) -> None:
    _written(tmp_path, "gymnasium.core", "class Env:\n    def reset(self, *, seed=None): return seed\n")
    program = "class Walk(gymnasium.core.Env): pass\nprint(Walk().reset(seed=3))\nstep(); step()\n"
    printed, beat = ran("import gymnasium.core\n" + SCRIPT + program, tmp_path)
    assert (printed.split(), beat["step"], beat["step_from"]) == (["3"], 2, "updates")


@pytest.mark.parametrize("name", ["global_step", "total_numsteps"])
def test_a_script_that_counts_the_steps_of_its_environments_itself_has_those_up_to_the_last(
    tmp_path: Path, name: str
) -> None:
    """Public programs of reinforcement learning are one script; what they did behind the last print is told, too."""
    _written(tmp_path, "gymnasium.core", "class Env:\n    def reset(self): pass\n")
    program = (
        f"{name} = 0\nwalk = gymnasium.core.Env()\n"
        f"for episode in range(3):\n    walk.reset(); step(); {name} += 100\n{name} += 7\n"
    )
    _, beat = ran("import gymnasium.core\n" + SCRIPT + program, tmp_path)
    assert (beat["step"], beat.get("step_from")) == (307, None)
    assert [point["step"] for point in _points(tmp_path)][-1] == 307


def test_a_training_of_fastai_that_begins_with_a_later_epoch_goes_on_counting(tmp_path: Path) -> None:
    _written(tmp_path, "fastai.learner", "class Learner:\n    def __call__(self, event): pass\n")
    program = """
from types import SimpleNamespace as Record
learner = fastai.learner.Learner()
recorder = Record(metric_names=['epoch', 'train_loss', 'valid_loss', 'time'], values=[[]])  # one was passed over
opt, dls = Record(hypers=[{'lr': 0.5}]), Record(train=range(5))
vars(learner).update(n_epoch=3, dls=dls, opt=opt, recorder=recorder, epoch=0)
learner('before_fit'); learner('before_epoch')
for learner.epoch in (1, 2):
    learner('before_epoch'); learner('before_train')
    for _ in range(5):
        ((net(x) - 1) ** 2).mean().backward(); learner('after_step')
    recorder.values.append([0.5, 0.25])
"""
    _, beat = ran("import fastai.learner\n" + SCRIPT + program, tmp_path)
    told = {"step": 15, "steps": 15, "epoch": 3, "epochs": 3, "epoch_step": 5, "epoch_steps": 5}
    assert {name: beat[name] for name in told} == told
    assert [one["step"] for one in _points(tmp_path) if "valid_loss" in one] == [10, 15]


def test_a_fine_tune_of_fastai_is_one_training_of_two_parts(tmp_path: Path) -> None:
    source = "class Learner:\n    def __call__(self, event): pass\n"
    _written(tmp_path, "fastai.learner", source)
    schedule = "def fine_tune(self, epochs, base_lr=2e-3, freeze_epochs=1): self.fit(freeze_epochs); self.fit(epochs)\n"
    schedule = f"from fastai.learner import Learner\n{schedule}Learner.fine_tune = fine_tune\n"
    _written(tmp_path, "fastai.callback.schedule", schedule)
    program = """
from types import SimpleNamespace as Record
seen, learner = [], fastai.callback.schedule.Learner()
recorder = Record(metric_names=['epoch', 'train_loss', 'valid_loss', 'time'], values=[])
learner.opt, learner.dls, learner.recorder = Record(hypers=[{'lr': 0.5}]), Record(train=range(5)), recorder
def fit(epochs):
    learner.n_epoch = epochs
    learner('before_fit'); recorder.values = []
    for learner.epoch in range(epochs):
        for _ in range(5):
            ((net(x) - 1) ** 2).mean().backward(); learner('after_step')
        recorder.values.append([0.5, 0.25])
learner.fit = fit
learner.fine_tune(2)
"""
    _, beat = ran("import fastai.callback.schedule\n" + SCRIPT + program, tmp_path)
    told = {"step": 15, "steps": 15, "epoch": 3, "epochs": 3, "epoch_step": 5, "epoch_steps": 5}
    assert {name: beat[name] for name in told} == told
    assert [one["step"] for one in _points(tmp_path) if "valid_loss" in one] == [5, 10, 15]


def test_stable_baselines_counts_what_its_environments_do_and_knows_how_long_it_learns(tmp_path: Path) -> None:
    algorithm = """
class BaseAlgorithm:
    num_timesteps = 0
    def _setup_learn(self, total): self._total_timesteps, self._num_timesteps_at_start = total, 0
    def _update_info_buffer(self, infos): pass
    def save(self, path): pass
"""
    _written(tmp_path, "stable_baselines3.common.base_class", algorithm)
    logger = "class Logger:\n    def dump(self, step=0): self.name_to_value.clear()\n"
    _written(tmp_path, "stable_baselines3.common.logger", logger)
    program = """
import time
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger
model, model_logger = BaseAlgorithm(), Logger()
model._logger, model.device, model.start_time = model_logger, x.device, time.time_ns() - 1000 * 10**9
model._setup_learn(500)
for rollout in range(2):
    for _ in range(64):
        model.num_timesteps += 4
        model._update_info_buffer([])
    step(); at[0] += 2; step()  # their losses are not the one that is logged
    model_logger.name_to_value = {'rollout/ep_rew_mean': 7.5 + rollout, 'time/fps': 92, 'train/loss': 5.5,
                                  'a/b': 'text', 'train/learning_rate': 1e-3}
    model_logger.dump(model.num_timesteps)
    for _ in range(10): step()
    Logger.dump(type('Other', (), {'name_to_value': {'train/loss': 9.0}})())
    model.save('models/ppo')
"""
    _, beat = ran(CLOCK + SCRIPT + program, tmp_path)
    told = {"step": 512, "steps": 512, "loss": 5.5, "metrics": {"rollout/ep_rew_mean": 8.5}}
    assert {name: beat[name] for name in told} == told
    assert 0 < beat["steps_per_second"] <= 0.512
    logged = [one for one in _points(tmp_path) if "rollout/ep_rew_mean" in one]
    assert [*_losses(tmp_path)] == [256, 512]
    kept = [(one["step"], one["rollout/ep_rew_mean"], one["loss"], one["lr"]) for one in logged]
    assert kept == [(256, 7.5, 5.5, 1e-3), (512, 8.5, 5.5, 1e-3)]
    events = [json.loads(line) for line in RunDir(tmp_path).events.read_text().splitlines()]
    assert [one["text"] for one in events if one["event"] == "first_step"] == [
        "the agent saw the beginning of the training"
    ]
    saved = [(one["path"], one["step"]) for one in events if one["event"] == "checkpoint"]
    assert saved == [(str(tmp_path / "models" / "ppo.zip"), step) for step in (256, 512)]


WRITER = """
class SummaryWriter:
    def add_scalar(self, tag, scalar_value, global_step=None): pass
"""
WRITES = """
from tensorboardX.writer import SummaryWriter
writer = SummaryWriter()
writer.add_scalar('before', 1.0, 0)
for number in range(1, 4):
    step()
    writer.add_scalar('losses/value', torch.tensor(number / 2), 100 * number)
    writer.add_scalar('loss', 9.0, 100 * number); writer.add_scalar('self', 9.0)
"""


def test_what_is_written_for_tensorboard_are_points_at_the_steps_of_the_run(tmp_path: Path) -> None:
    _written(tmp_path, "tensorboardX.writer", WRITER)
    _, beat = ran(SCRIPT + WRITES, tmp_path)
    assert (beat["step"], beat.get("steps"), beat["loss"] < 9.0) == (3, None, True)
    points = _points(tmp_path)
    assert [(one["step"], one["losses/value"]) for one in points if "losses/value" in one] == [
        (1, 0.5),
        (2, 1),
        (3, 1.5),
    ]
    assert [one["before"] for one in points if "before" in one] == [1.0]
    assert not any(one.get("loss") == 9.0 or "self" in one for one in points)
    assert [one["train/loss"] for one in points if "train/loss" in one] == [9.0] * 3, "each, beside the agent's samples"


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (("run/train", "run/val"), {"train/loss", "iou", "val/loss", "val/iou", "test_acc"}),
        (("run", "other/test/"), {"train/loss", "iou", "test_acc"}),  # two runs, of which one is called test
        (("run/a", "run/b"), {"train/loss", "iou", "test_acc"}),
    ],
)
def test_two_writers_of_which_one_is_of_an_evaluation_write_different_metrics(
    tmp_path: Path, folders: tuple[str, str], names: set[str]
) -> None:
    writer = "class SummaryWriter:\n    def __init__(self, folder): self.logdir = folder\n"
    _written(tmp_path, "tensorboardX.writer", writer + WRITER.split("\n", 2)[2])
    writes = f"""
from tensorboardX.writer import SummaryWriter
step()
train, other = map(SummaryWriter, {folders})
train.add_scalar('loss', 0.5, 1); train.add_scalar('iou', 0.5, 1)
other.add_scalar('loss', 0.75, 1); other.add_scalar('iou', 0.75, 1); other.add_scalar('test_acc', 0.25, 1)
"""
    ran(SCRIPT + writes, tmp_path)
    found = {name: value for one in _points(tmp_path) for name, value in one.items()}
    assert {name for name in found if "iou" in name or "/" in name or "_acc" in name} == names
    assert found["iou"] == (0.5 if "val/iou" in names else 0.75)


def test_what_waits_for_a_beat_has_the_time_at_which_it_was_written(tmp_path: Path) -> None:
    _written(tmp_path, "tensorboardX.writer", WRITER)
    writes = """
import time
from tensorboardX.writer import SummaryWriter
for number in range(4):
    step()
    SummaryWriter().add_scalar('value', 0.5, number)
    time.sleep(0.05)
"""
    ran(SCRIPT + writes, tmp_path)
    times = [one["time"] for one in _points(tmp_path) if "value" in one]
    assert len(times) == 4
    assert all(after - before > 0.02 for before, after in itertools.pairwise(times))


@pytest.mark.parametrize("argument", ["--total-timesteps=400", "--total_timesteps 400", "algo.total_timesteps=400"])
def test_a_program_that_asks_for_timesteps_counts_those_that_it_writes(tmp_path: Path, argument: str) -> None:
    _written(tmp_path, "tensorboardX.writer", WRITER)
    asked = f"import sys; sys.argv += {argument.split()}\n"
    _, beat = ran(SCRIPT + asked + WRITES, tmp_path)
    assert (beat["step"], beat["steps"]) == (300, 400)
    points = _points(tmp_path)
    assert [one["step"] for one in points if "losses/value" in one] == [100, 200, 300]
    assert {one["step"] for one in points} <= {0, 1, 100, 200, 300}  # the first beat comes before the first line


@pytest.mark.parametrize(
    ("acts", "argument", "step", "steps"),
    [
        (True, "--frames 400", 300, 400),
        (True, "--num-env-steps=250", 300, 300),  # the last rollout goes beyond what was asked for
        (True, "--num_frames 150", 300, None),
        (True, "--frames 4", 3, None),  # of an observation
        (False, "--num-frames 400", 3, None),  # of a clip
    ],
)
def test_frames_are_steps_of_a_program_that_acts_in_an_environment(
    tmp_path: Path, acts: bool, argument: str, step: int, steps: int | None
) -> None:
    _written(tmp_path, "tensorboardX.writer", WRITER)
    _written(tmp_path, "gymnasium.core", "class Env:\n    def reset(self): pass\n")
    asked = f"import sys, gymnasium.core; sys.argv += {argument.split()}\n"
    saves = "torch.save({'weights': net.state_dict(), 'optimizer': optimizer.state_dict()}, 'status.pt')\n"
    _, beat = ran(asked + SCRIPT + ("gymnasium.core.Env().reset()\n" if acts else "") + WRITES + saves, tmp_path)
    assert (beat["step"], beat.get("steps"), beat["checkpoint"]["step"]) == (step, steps, step)


def _points(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in RunDir(run).metrics.read_text().splitlines()]


def _losses(run: Path) -> dict[int, float]:
    """Each loss by its step, at which there is one."""
    told = [(one["step"], one["loss"]) for one in _points(run) if "loss" in one]
    assert len(told) == len(dict(told)), told
    return dict(told)


def _written(folder: Path, module: str, source: str) -> None:
    *packages, name = module.split(".")
    for package in packages:
        folder /= package
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    (folder / f"{name}.py").write_text(source)


def test_what_was_told_of_a_step_is_not_told_again_at_the_end_of_its_epoch() -> None:
    from types import SimpleNamespace as Record

    watch = Watch(torch, {})
    look = hooks_of("ultralytics.engine.trainer", watch)[0][2]
    trainer = Record(start_epoch=0, epoch=0, epochs=2, train_loader=range(4), loss=torch.tensor(3.0), device="cpu")
    for event in ("on_train_start", "on_train_epoch_start", "on_train_batch_end"):
        look(trainer, event)
    assert watch.trainer is not None
    assert [watch.trainer()["points"] for _ in range(2)] == [[(1, {"loss": 3.0})], []]

    watch = Watch(torch, {})
    begins, ends, ends_epoch, _ = (look for *_, look, _ in hooks_of("keras.src.callbacks.callback_list", watch))
    number = Record(value=torch.tensor(2))
    model = Record(optimizer=Record(iterations=number, learning_rate=number))
    callbacks = Record(params={"epochs": 1, "steps": 2}, _model=model)
    begins(callbacks, 0)
    ends(callbacks, 1, {"loss": 3.0})
    assert watch.trainer is not None
    assert watch.trainer()["points"] == [(2, {"loss": 3.0, "lr": 2.0})]
    ends_epoch(callbacks, 0, {"loss": 3.0, "val_loss": 2.0})
    assert watch.trainer()["points"] == [(2, {"val_loss": 2.0})]


def test_ultralytics_counts_batches_and_knows_its_totals_and_checkpoints(tmp_path: Path) -> None:
    source = """
class BaseTrainer:
    start_epoch, epochs, metrics, fitness, best_fitness, device = 1, 3, None, None, 0.5, "cpu"
    def run_callbacks(self, event): pass
    def label_loss_items(self, items): return {f'train/{name}': value for name, value in items.items()}
"""
    _written(tmp_path, "ultralytics.engine.trainer", source)
    program = """
from pathlib import Path
losses, trainer = [], ultralytics.engine.trainer.BaseTrainer()
trainer.train_loader, trainer.best, trainer.last = range(4), Path('best.pt'), Path('last.pt')
trainer.run_callbacks('on_train_start')
for trainer.epoch in (1, 2):
    trainer.run_callbacks('on_train_epoch_start')
    for batch in range(4):
        trainer.loss = ((net(x) - batch) ** 2).mean(); trainer.loss.backward()
        if batch == 3: optimizer.step()  # four batches are a step
        losses.append(trainer.loss.item()); at[0] += 2
        trainer.run_callbacks('on_train_batch_end')
    trainer.tloss = {'box_loss': torch.tensor(0.25)}
    trainer.run_callbacks('on_train_epoch_end')
    trainer.metrics, trainer.fitness = {'metrics/mAP50-95(B)': 0.75}, 0.5 if trainer.epoch == 2 else 0.25
    trainer.last.touch(); trainer.best.touch()
    trainer.run_callbacks('on_model_save')
    trainer.run_callbacks('on_fit_epoch_end')
trainer.epoch += 1  # as it does while it measures the best weights once more
trainer.run_callbacks('on_fit_epoch_end')
print(losses)
"""
    printed, beat = ran("import ultralytics.engine.trainer\n" + CLOCK + SCRIPT + program, tmp_path)
    losses = json.loads(printed)
    told = {"step": 12, "steps": 12, "epoch": 3, "epochs": 3, "epoch_step": 4, "epoch_steps": 4}
    assert {name: beat[name] for name in told} == told
    assert (beat["loss"], beat["loss_seen"]) == (pytest.approx(losses[-1]), "trainer")
    seen = _losses(tmp_path)
    assert seen == {step: pytest.approx(losses[step - 5]) for step in range(5, 13)}, (
        "also between the optimizer's steps"
    )
    assert beat["metrics"] == {"train/box_loss": 0.25, "metrics/mAP50-95(B)": 0.75, "fitness": 0.5}
    points = _points(tmp_path)
    assert [one["step"] for one in points if "fitness" in one] == [8, 12]
    events = [json.loads(line) for line in RunDir(tmp_path).events.read_text().splitlines()]
    saved = [(Path(one["path"]).name, one["step"]) for one in events if one["event"] == "checkpoint"]
    assert saved == [("last.pt", 8), ("best.pt", 12), ("last.pt", 12)]
