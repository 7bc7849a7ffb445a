"""Reads the training loops of Hugging Face, Lightning and Keras; sees what accelerate saves.

Tried with transformers 5.23, lightning 2.6 and keras 3.15 on torch 2.13. They are never imported here.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from ..wire.heartbeat import CheckpointNote
from ..wire.lightning_steps import LightningSteps
from ..wire.lightning_steps import positive as _positive
from .detection import Ultralytics
from .gathering import StableBaselines
from .learner import Fastai

if TYPE_CHECKING:
    from .watch import Watch

_LOSSES = ("train_loss", "loss", "train/loss", "training_loss", "train_loss_step", "loss_step", "train_loss_epoch")
_NO_METRICS = ("loss", "learning_rate", "epoch", "step", "total_flos", "train_loss", "num_input_tokens_seen")
_NO_ENDINGS = ("_runtime", "_per_second", "_preparation_time")
_MOST_POINTS = 1000
"""Most points that wait for the next beat."""

Point = tuple[int, dict[str, Optional[float]]]
"""A step, and what was measured at it."""

_watching: dict[tuple[int, str], Any] = {}


def hooks_of(module: str, watch: Watch) -> tuple[tuple[str, str, Any, Any], ...]:
    """Return what to wrap in a module that was just imported: owner, name, and the hooks before and after the call."""
    package = module.partition(".")[0]
    if package == "transformers":
        return (("CallbackHandler", "call_event", _HuggingFace(watch).before_event, None),)
    if package == "accelerate":
        return (("Accelerator", "save_state", *_folder_looks(watch)),)
    if package == "keras":
        keras = _shared(_Keras, watch)
        if module.endswith(".model"):
            return (("Model", "save", None, keras.after_save),)
        return (
            ("CallbackList", "on_epoch_begin", keras.before_epoch, None),
            ("CallbackList", "on_train_batch_end", keras.before_end, None),
            ("CallbackList", "on_epoch_end", keras.before_epoch_end, None),
            ("CallbackList", "on_test_begin", watch.evaluates, None),
        )
    if package == "fastai":
        fastai = _shared(Fastai, watch)
        if module.endswith(".schedule"):
            return (("Learner", "fine_tune", fastai.before_fine_tune, None),)
        return (("Learner", "__call__", fastai.before_event, None), ("Learner", "save", None, fastai.after_save))
    if package in ("gymnasium", "gym"):
        return tuple((owner, "reset", watch.scalars.before_reset, None) for owner in ("Env", "Wrapper"))
    if package == "stable_baselines3":
        algorithm = _shared(StableBaselines, watch)
        if module.endswith(".logger"):
            return (("Logger", "dump", algorithm.before_dump, None),)
        return (
            ("BaseAlgorithm", "_setup_learn", None, algorithm.after_setup),
            ("BaseAlgorithm", "_update_info_buffer", algorithm.before_feedback, None),
            ("BaseAlgorithm", "save", None, algorithm.after_save),
        )
    if package == "ultralytics":
        return (("BaseTrainer", "run_callbacks", _shared(Ultralytics, watch).before_event, None),)
    if package == "safetensors":
        return (("", "serialize_file", *_file_looks(watch)),)
    if module in ("torch.utils.tensorboard.writer", "tensorboardX.writer"):
        return (("SummaryWriter", "add_scalar", None, watch.scalars.after_scalar),)
    if package == "torch":
        return (("CompilationCallbackHandler", "run_start_callbacks", watch.before_compilation, None),)
    if module.endswith(".fabric"):
        return (("Fabric", "save", None, _place_look(watch)),)
    lightning = _shared(_Lightning, watch)
    if module.endswith(".call"):
        return (("", "_call_callback_hooks", lightning.before_hook, None),)
    if module.endswith(".trainer"):
        return (("Trainer", "save_checkpoint", None, lightning.after_save),)
    return (("_LoggerConnector", "log_metrics", lightning.before_log, None),)


def _shared(kind: Any, watch: Watch) -> Any:
    """Return the one reader that all modules of a framework share."""
    return _watching.setdefault((id(watch), kind.__name__), kind(watch))


def _file_looks(watch: Watch) -> tuple[Any, Any]:
    """Return hooks before and after a call that saves tensors in a file."""

    def before(tensors: Any, filename: Any = None, *args: Any, **kwargs: Any) -> None:
        watch.before_save(tensors, filename)

    def after(result: Any, tensors: Any, filename: Any = None, *args: Any, **kwargs: Any) -> None:
        watch.after_save(result, tensors, filename)

    return before, after


def _place_look(watch: Watch) -> Any:
    """Return a hook after a call that saves to the path given as its first argument, in whatever format."""

    def after(result: Any, saver: Any, path: Any, *args: Any, **kwargs: Any) -> None:
        if "://" not in str(path):
            watch.saved(CheckpointNote(os.path.abspath(path), None, time.time()))  # noqa: PTH100

    return after


def _folder_looks(watch: Watch) -> tuple[Any, Any]:
    """Return hooks before and after a call that saves several files and returns their folder."""

    def before(*args: Any, **kwargs: Any) -> None:
        watch.saves_folder = True

    def after(folder: Any, *args: Any, **kwargs: Any) -> None:
        watch.saves_folder = False
        watch.saved(CheckpointNote(os.path.abspath(folder), None, time.time()))  # noqa: PTH100

    return before, after


class _HuggingFace:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._state: Any = None
        self._known = 0
        """How many records of its log were already read, or came with a checkpoint."""
        self._fresh: list[Point] = []
        self._begun = False
        """Whether its epoch has just begun: no step of it is done."""

    def before_event(self, handler: Any, event: str, args: Any, state: Any, *others: Any, **kwargs: Any) -> None:
        if state is not self._state:  # another training begins
            self._look()
            self._state, self._known, self._watch.trainer = state, len(state.log_history), self.read
        self._begun = event in ("on_train_begin", "on_epoch_begin") or (self._begun and event != "on_step_end")
        if event == "on_save":
            path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")  # noqa: PTH118
            self._watch.saved(CheckpointNote(os.path.abspath(path), state.global_step, time.time()))  # noqa: PTH100

    def read(self) -> dict[str, Any]:
        state = self._state
        self._look()
        fresh, self._fresh = self._fresh, []
        logged: dict[str, Any] = {}
        for record in state.log_history[-20:]:
            logged.update(record)
        trained: dict[str, Any] = next((one for one in reversed(state.log_history) if "loss" in one), {})
        epochs = _positive(state.num_train_epochs)
        epoch = None if state.epoch is None else math.floor(state.epoch) + 1 if self._begun else math.ceil(state.epoch)
        of_epoch = math.ceil(state.global_step / state.epoch - 1e-6) if state.epoch else None
        told = ("loss", _number(trained.get("loss"))), ("lr", _number(trained.get("learning_rate")))
        return {
            "step": state.global_step,
            "counts_behind": True,
            "steps": _positive(state.max_steps),
            "epoch": epoch if epochs is None or epoch is None else min(epoch, epochs),
            "epochs": epochs,
            **_within(state.global_step, epoch, of_epoch),
            **{name: value for name, value in told if value is not None},
            "metrics": _numbers(logged, _NO_METRICS),
            "points": fresh,
        }

    def _look(self) -> None:
        log = self._state.log_history if self._state is not None else ()
        fresh, self._known = log[self._known :], len(log)
        for record in fresh:
            loss, lr = _number(record.get("loss")), _number(record.get("learning_rate"))
            known = {name: value for name, value in (("loss", loss), ("lr", lr)) if value is not None}
            values = {**_numbers(record, _NO_METRICS), **known}
            if values and isinstance(record.get("step"), int):
                self._fresh.append((record["step"], values))


class _Lightning:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._trainer: Any = None
        self._logged: dict[str, Any] = {}
        self._loss: Any = None
        """The loss that the module logged for a step, under whatever name."""
        self._steps = LightningSteps()
        self._waiting: deque[tuple[int, dict[str, Any]]] = deque(maxlen=_MOST_POINTS)

    def before_hook(self, trainer: Any, hook: str = "", *args: Any, **kwargs: Any) -> None:
        self._trainer, self._watch.trainer = trainer, self.read
        if hook == "on_train_batch_start":
            self._steps.before_batch(trainer)

    def before_log(self, connector: Any, metrics: Mapping[str, Any], step: Any = None, *args: Any) -> None:
        if self._trainer is None or step is not None:  # an evaluation, which counts its own steps
            return
        tensors = {name: getattr(value, "detach", lambda value=value: value)() for name, value in metrics.items()}
        if getattr(connector, "_first_loop_iter", None) is not None:  # a training step, whose loss is seen in backward
            of_step = {name: tensors.pop(name) for name in _LOSSES if name in tensors}
            self._loss = next(iter(of_step.values()), self._loss)
        self._logged.update(tensors)
        self._waiting.append((self._trainer.global_step, tensors))

    def after_save(self, result: Any, trainer: Any, filepath: Any, *args: Any, **kwargs: Any) -> None:
        if "://" not in str(filepath):
            path = os.path.abspath(filepath)  # noqa: PTH100
            self._watch.saved(CheckpointNote(path, trainer.global_step, time.time()))

    def read(self) -> dict[str, Any]:
        trainer = self._trainer
        epochs, (steps, epoch_steps) = _positive(trainer.max_epochs), self._steps.totals(trainer)
        numbers = _numbers(self._logged, ("epoch", "step"))
        progress = getattr(getattr(trainer, "fit_loop", None), "epoch_progress", None)
        # `current_epoch` counts finished epochs: it is one too low during the training, and right at its end.
        begun = progress.current.ready if progress is not None else trainer.current_epoch + 1
        epoch = min(max(1, begun), epochs or math.inf)
        waiting, self._waiting = self._waiting, deque(maxlen=_MOST_POINTS)
        return {
            "step": trainer.global_step,
            "counts_behind": True,
            "steps": steps,
            "epoch": epoch,
            "epochs": epochs,
            **_within(trainer.global_step, epoch, epoch_steps),
            "logged_loss": next((numbers[name] for name in _LOSSES if name in numbers), _number(self._loss)),
            "metrics": numbers,
            "points": [(step, found) for step, one in waiting if (found := _numbers(one, ("epoch", "step")))],
        }


class _Keras:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._callbacks: Any = None
        self._epoch = 0
        self._logs: dict[str, Any] = {}
        self._fresh: dict[str, Any] = {}
        """What the current epoch has logged since the last beat."""
        self._told: tuple[int, Mapping[str, Any]] = 0, {}
        """The step and the values that were reported last: the end of an epoch logs them again."""
        self._waiting: deque[tuple[int, dict[str, Any]]] = deque(maxlen=_MOST_POINTS)

    def before_epoch(self, callbacks: Any, epoch: int, *args: Any, **kwargs: Any) -> None:
        self._callbacks, self._epoch, self._watch.trainer = callbacks, epoch + 1, self.read

    def before_end(self, callbacks: Any, count: int, logs: Any = None) -> None:
        self._logs.update(logs or {})
        self._fresh.update(logs or {})

    def before_epoch_end(self, callbacks: Any, epoch: int, logs: Any = None) -> None:
        self._logs.update(logs or {})
        step = int(callbacks._model.optimizer.iterations.value)
        known = self._told[1] if self._told[0] == step else ()
        self._waiting.append((step, {name: value for name, value in (logs or {}).items() if name not in known}))
        self._fresh = {}

    def after_save(self, result: Any, model: Any, filepath: Any, *args: Any, **kwargs: Any) -> None:
        path = os.path.abspath(os.fspath(filepath))  # noqa: PTH100
        self._watch.saved(CheckpointNote(path, int(model.optimizer.iterations.value), time.time()))

    def read(self) -> dict[str, Any]:
        optimizer, params = self._callbacks._model.optimizer, self._callbacks.params
        epochs, epoch_steps = _positive(params.get("epochs")), _positive(params.get("steps"))
        step, lr = int(optimizer.iterations.value), _number(optimizer.learning_rate.value)
        waiting, self._waiting = self._waiting, deque(maxlen=_MOST_POINTS)
        fresh, self._fresh = _numbers(self._fresh, ()), {}
        newest = [(step, {**fresh, "lr": lr})] if fresh else []
        self._told = (step, fresh) if fresh else self._told
        return {
            "step": step,
            "steps": epochs * epoch_steps if epochs and epoch_steps else None,
            "epoch": self._epoch,
            "epochs": epochs,
            **_within(step, self._epoch, epoch_steps),
            "loss": _number(self._logs.get("loss")),
            "lr": lr,
            "metrics": _numbers(self._logs, ("loss",)),
            "points": [*((at, _numbers(logs, ())) for at, logs in waiting), *newest],
        }


def _within(step: int, epoch: float | None, epoch_steps: int | None) -> dict[str, int | None]:
    """Return the steps done in this epoch, and those it has; both None if unknown, or if the two do not fit."""
    done = step - (int(epoch) - 1) * epoch_steps if epoch and epoch_steps else -1
    known = epoch_steps is not None and 0 <= done <= epoch_steps
    return {"epoch_step": done if known else None, "epoch_steps": epoch_steps if known else None}


def _number(value: Any) -> float | None:
    """Return a number as it is or from a tensor that holds one (this waits for the device); None for anything else."""
    try:
        return None if value is None or isinstance(value, (str, bool)) else float(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _numbers(values: Mapping[str, Any], without: tuple[str, ...]) -> dict[str, float | None]:
    found = ((name, _number(value)) for name, value in values.items() if name not in without)
    found = ((name, value) for name, value in found if not str(name).endswith(_NO_ENDINGS))
    return {str(name): value for name, value in found if value is not None}
