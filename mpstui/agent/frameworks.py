"""Training loops of Hugging Face, Lightning and Keras, asked for what they know; what accelerate saves.

Tried with transformers 5.23, lightning 2.6 and keras 3.15 on torch 2.13. They are never imported here.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..wire.heartbeat import CheckpointNote

if TYPE_CHECKING:
    from .watch import Watch

_LOSSES = ("train_loss", "loss", "train/loss", "training_loss", "train_loss_step", "loss_step", "train_loss_epoch")
_NO_METRICS = ("loss", "learning_rate", "epoch", "step", "total_flos", "train_loss")
_NO_ENDINGS = ("_runtime", "_per_second")


_lightning: dict[int, _Lightning] = {}


def looks(module: str, watch: Watch) -> tuple[tuple[str, str, Any, Any], ...]:
    """What to wrap in a module that was just imported: owner, name, and what looks before and behind the call."""
    package = module.partition(".")[0]
    if package == "transformers":
        return (("CallbackHandler", "call_event", _HuggingFace(watch).before_event, None),)
    if package == "accelerate":
        return (("Accelerator", "save_state", *_folder_looks(watch)),)
    if package == "keras":
        keras = _Keras(watch)
        return (
            ("CallbackList", "on_epoch_begin", keras.before_epoch, None),
            ("CallbackList", "on_train_batch_end", keras.before_end, None),
            ("CallbackList", "on_epoch_end", keras.before_end, None),
        )
    if package == "safetensors":

        def before(tensors: Any, filename: Any = None, *args: Any, **kwargs: Any) -> None:
            watch.before_save(tensors, filename)

        def after(result: Any, tensors: Any, filename: Any = None, *args: Any, **kwargs: Any) -> None:
            watch.after_save(result, tensors, filename)

        return (("", "serialize_file", before, after),)
    if package == "torch":
        return (("CompilationCallbackHandler", "run_start_callbacks", watch.before_compilation, None),)
    lightning = _lightning.setdefault(id(watch), _Lightning(watch))  # its two modules share one
    if module.endswith(".call"):
        return (("", "_call_callback_hooks", lightning.before_hook, None),)
    return (("_LoggerConnector", "log_metrics", lightning.before_log, None),)


def _folder_looks(watch: Watch) -> tuple[Any, Any]:
    """What looks before and behind a call that saves several files and returns their folder."""

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
        self._begun = False
        """No step of its epoch is done yet."""

    def before_event(self, handler: Any, event: str, args: Any, state: Any, *others: Any, **kwargs: Any) -> None:
        self._state, self._watch.trainer = state, self.read
        self._begun = event in ("on_train_begin", "on_epoch_begin") or (self._begun and event == "on_step_begin")
        if event == "on_save":
            path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")  # noqa: PTH118
            self._watch.saved(CheckpointNote(os.path.abspath(path), state.global_step, time.time()))  # noqa: PTH100

    def read(self) -> dict[str, Any]:
        state = self._state
        logged: dict[str, Any] = {}
        for record in state.log_history[-20:]:
            logged.update(record)
        trained: dict[str, Any] = next((one for one in reversed(state.log_history) if "loss" in one), {})
        epochs = _positive(state.num_train_epochs)
        epoch = None if state.epoch is None else math.floor(state.epoch) + 1 if self._begun else math.ceil(state.epoch)
        return {
            "step": state.global_step,
            "steps": _positive(state.max_steps),
            "epoch": epoch if epochs is None or epoch is None else min(epoch, epochs),
            "epochs": epochs,
            "epoch_step": None,
            "epoch_steps": None,
            "loss": _number(trained.get("loss")),
            "loss_step": trained.get("step"),
            "lr": _number(trained.get("learning_rate")),
            "metrics": _numbers(logged, _NO_METRICS),
        }


class _Lightning:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._trainer: Any = None
        self._logged: dict[str, Any] = {}

    def before_hook(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
        self._trainer, self._watch.trainer = trainer, self.read

    def before_log(self, connector: Any, metrics: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        tensors = {name: getattr(value, "detach", lambda value=value: value)() for name, value in metrics.items()}
        self._logged.update(tensors)

    def read(self) -> dict[str, Any]:
        trainer = self._trainer
        batches, epochs = _positive(trainer.num_training_batches), _positive(trainer.max_epochs)
        epoch_steps = math.ceil(batches / trainer.accumulate_grad_batches) if batches else None
        alone = len(trainer.optimizers) < 2  # its steps are those of all optimizers
        steps = epochs * epoch_steps if alone and epochs and epoch_steps else None
        numbers = _numbers(self._logged, ("epoch", "step"))
        told = next(({"loss": numbers.pop(name)} for name in _LOSSES if name in numbers), {})
        saved = getattr(trainer.checkpoint_callback, "_last_checkpoint_saved", "")
        if saved:
            self._watch.saved(CheckpointNote(os.path.abspath(saved), None, None))  # noqa: PTH100
        epoch = trainer.current_epoch + 1
        return {
            "step": trainer.global_step,
            "steps": _positive(trainer.max_steps) or steps,
            "epoch": min(epoch, epochs) if epochs else epoch,
            "epochs": epochs,
            "epoch_step": None,
            "epoch_steps": epoch_steps if alone else None,
            **told,
            "metrics": numbers,
        }


class _Keras:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._callbacks: Any = None
        self._epoch = 0
        self._logs: dict[str, Any] = {}

    def before_epoch(self, callbacks: Any, epoch: int, *args: Any, **kwargs: Any) -> None:
        self._callbacks, self._epoch, self._watch.trainer = callbacks, epoch + 1, self.read

    def before_end(self, callbacks: Any, count: int, logs: Any = None) -> None:
        self._logs.update(logs or {})

    def read(self) -> dict[str, Any]:
        optimizer, params = self._callbacks._model.optimizer, self._callbacks.params
        epochs, epoch_steps = _positive(params.get("epochs")), _positive(params.get("steps"))
        return {
            "step": int(optimizer.iterations.value),
            "steps": epochs * epoch_steps if epochs and epoch_steps else None,
            "epoch": self._epoch,
            "epochs": epochs,
            "epoch_step": None,
            "epoch_steps": epoch_steps,
            "loss": _number(self._logs.get("loss")),
            "lr": _number(optimizer.learning_rate.value),
            "metrics": _numbers(self._logs, ("loss",)),
        }


def _positive(value: Any) -> int | None:
    """A whole number above 0: what is unlimited or unknown is -1, infinite or None."""
    return int(value) if isinstance(value, (int, float)) and 0 < value < math.inf else None


def _number(value: Any) -> float | None:
    """A number or a tensor with one in it (this waits for the device)."""
    try:
        return None if value is None or isinstance(value, (str, bool)) else float(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _numbers(values: Mapping[str, Any], without: tuple[str, ...]) -> dict[str, float | None]:
    found = ((name, _number(value)) for name, value in values.items() if name not in without)
    found = ((name, value) for name, value in found if not str(name).endswith(_NO_ENDINGS))
    return {str(name): value for name, value in found if value is not None}
