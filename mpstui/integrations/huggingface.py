"""Transformers: ``Trainer(..., callbacks=[MpstuiCallback()])``, or ``report_to="mpstui"`` once this is imported.

Tried with transformers 5.23 and 4.48. It also works with TRL, PEFT and whatever else builds on Trainer.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any

from transformers import TrainerCallback
from transformers.integrations import integration_utils

from ..reporting import report
from .phases import EVALUATION_SECONDS, SAVING_SECONDS
from .requests import clear_cache_if_asked, harmless

_NO_METRICS = frozenset(("epoch", "step", "total_flos", "num_input_tokens_seen", "memory"))
_OF_THE_WHOLE = ("_runtime", "_per_second", "_preparation_time")


@harmless
class MpstuiCallback(TrainerCallback):
    """Reports a Trainer's training, and saves, evaluates, clears the cache or stops on request."""

    def __init__(self) -> None:
        self._batch, self._began, self._began_step = 0, 0.0, 0
        self._is_begun = False
        """The epoch has begun, and none of its steps is done yet."""
        self._trains = self._evaluates = False
        self._best: float | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> None:
        of_model: dict[str, Any] = getattr(getattr(model, "config", None), "to_dict", dict)()
        report.config({**args.to_sanitized_dict(), **({"model": of_model} if of_model else {})})
        self._batch = (state.train_batch_size or 0) * args.gradient_accumulation_steps * args.world_size
        self._began, self._began_step = time.monotonic(), state.global_step
        self._is_begun = self._trains = True
        report(step=state.global_step, **self._place(state), device=getattr(args, "device", None))
        report.takes("save", "clear_cache", "stop")
        if _evaluates(args):
            report.takes("evaluate")
        else:
            report.refuses("evaluate", 'it never evaluates: its TrainingArguments have eval_strategy="no"')
        report.phase("training")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._is_begun = True

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._is_begun = False
        report(step=state.global_step, **self._place(state), **self._speed(state))
        clear_cache_if_asked()
        control.should_save |= report.requested("save")
        if _evaluates(args):
            control.should_evaluate |= report.requested("evaluate")
        if report.requested("stop"):
            control.should_save = control.should_training_stop = True
        self._announce(control)

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._tell_best(state)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._announce(control)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if not self._evaluates:
            self._evaluates = True
            report.phase("evaluating", expect_seconds=EVALUATION_SECONDS)
        if report.requested("stop"):
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
        known = {name: value for name, value in (logs or {}).items() if name not in _NO_METRICS}
        known = {name: value for name, value in known.items() if not name.endswith(_OF_THE_WHOLE)}
        if isinstance(known.get("grad_norm"), str):
            known.pop("grad_norm")
        report(known, step=state.global_step)

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._go_on(state, saves=control.should_save)

    def on_predict(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._go_on(state)

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        best = os.path.basename(state.best_model_checkpoint or "") == os.path.basename(path)
        report.checkpoint(path, step=state.global_step, best=best)
        self._tell_best(state)
        self._go_on(state)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._trains = False
        self._tell_best(state)
        report.phase("saving", expect_seconds=SAVING_SECONDS)

    def _go_on(self, state: Any, *, saves: bool = False) -> None:
        """Continue after an evaluation or a checkpoint."""
        self._evaluates = False
        self._began, self._began_step = time.monotonic(), state.global_step
        if saves or not self._trains:
            report.phase("saving", expect_seconds=SAVING_SECONDS)
        else:
            report.phase("training")

    def _tell_best(self, state: Any) -> None:
        """Report the best metric, which Trainer knows only some time after the evaluation."""
        if state.best_metric is not None and state.best_metric != self._best:
            self._best = state.best_metric
            report(best_metric=self._best)

    def _announce(self, control: Any) -> None:
        """Report the silent phase that comes next, which Trainer's own flow callback, called before us, has decided."""
        if control.should_evaluate:
            report.phase("evaluating", expect_seconds=EVALUATION_SECONDS)
        elif control.should_save:
            report.phase("saving", expect_seconds=SAVING_SECONDS)

    def _speed(self, state: Any) -> dict[str, float]:
        seconds, steps = time.monotonic() - self._began, state.global_step - self._began_step
        return {"samples_per_second": self._batch * steps / seconds} if self._batch and seconds > 1 and steps else {}

    def _place(self, state: Any) -> dict[str, int]:
        """Return the epoch being trained, from 1, the step within it, and the totals."""
        told = {"steps": state.max_steps, "epochs": state.num_train_epochs}
        known = {name: value for name, value in told.items() if isinstance(value, int) and 0 < value < 1 << 40}
        if state.epoch is not None:
            epoch = math.floor(state.epoch) + 1 if self._is_begun else max(1, math.ceil(state.epoch))
            known["epoch"] = min(epoch, known.get("epochs", epoch))
            if state.epoch > 0 and state.global_step:
                of_epoch = math.ceil(state.global_step / state.epoch - 1e-6)
                done = state.global_step - (known["epoch"] - 1) * of_epoch
                known.update({"epoch_step": done, "epoch_steps": of_epoch} if 0 <= done <= of_epoch else {})
        return known


def _evaluates(args: Any) -> bool:
    strategy = getattr(args, "eval_strategy", None) or getattr(args, "evaluation_strategy", "no")  # before 4.41
    return bool(strategy != "no")


integration_utils.INTEGRATION_TO_CALLBACK.setdefault("mpstui", MpstuiCallback)
