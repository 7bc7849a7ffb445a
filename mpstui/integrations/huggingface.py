"""Transformers: ``Trainer(..., callbacks=[MpstuiCallback()])``, or ``report_to="mpstui"`` once this is imported.

Tried with transformers 5.23. TRL, PEFT and what else builds on Trainer take it too.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any

from transformers import TrainerCallback
from transformers.integrations import integration_utils

from ..reporting import report
from .requests import clear_cache_if_asked, harmless

EVALUATION_SECONDS, SAVING_SECONDS = 3600.0, 600.0
_NO_METRICS = frozenset(("epoch", "step", "total_flos", "num_input_tokens_seen", "memory"))
_OF_THE_WHOLE = ("_runtime", "_per_second")


@harmless
class MpstuiCallback(TrainerCallback):
    """Reports a training of Trainer, and saves, evaluates, clears the cache or stops when somebody asks the run to."""

    def __init__(self) -> None:
        self._batch, self._began, self._began_step = 0, 0.0, 0

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> None:
        of_model: dict[str, Any] = getattr(getattr(model, "config", None), "to_dict", dict)()
        report.config({**args.to_sanitized_dict(), **({"model": of_model} if of_model else {})})
        self._batch = (state.train_batch_size or 0) * args.gradient_accumulation_steps * args.world_size
        self._began, self._began_step = time.monotonic(), state.global_step
        report(step=state.global_step, **_totals(state), device=getattr(args, "device", None))
        report.takes("save", "clear_cache", "stop", *(("evaluate",) if args.eval_strategy != "no" else ()))
        report.phase("training")

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        report(step=state.global_step, **_totals(state), **self._speed(state))
        clear_cache_if_asked()
        control.should_save |= report.requested("save")
        if args.eval_strategy != "no":
            control.should_evaluate |= report.requested("evaluate")
        if report.requested("stop"):
            control.should_save = control.should_training_stop = True
        self._announce(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._announce(control)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if report.requested("stop"):
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
        known = {name: value for name, value in (logs or {}).items() if name not in _NO_METRICS}
        known = {name: value for name, value in known.items() if not name.endswith(_OF_THE_WHOLE)}
        if isinstance(known.get("grad_norm"), str):
            known.pop("grad_norm")
        report(known, step=state.global_step)

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        best = state.best_metric
        if best is not None:
            report(best_metric=best)
        self._began, self._began_step = time.monotonic(), state.global_step
        report.phase("training")
        if control.should_save:
            report.phase("saving", expect_seconds=SAVING_SECONDS)

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        report.checkpoint(path, step=state.global_step, best=state.best_global_step == state.global_step)
        self._began, self._began_step = time.monotonic(), state.global_step
        report.phase("training")

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        report.phase("saving", expect_seconds=SAVING_SECONDS)

    def _announce(self, control: Any) -> None:
        """Say what it will be silent for; the flow of Trainer's own, which is asked first, has decided it."""
        if control.should_evaluate:
            report.phase("evaluating", expect_seconds=EVALUATION_SECONDS)
        elif control.should_save:
            report.phase("saving", expect_seconds=SAVING_SECONDS)

    def _speed(self, state: Any) -> dict[str, float]:
        seconds, steps = time.monotonic() - self._began, state.global_step - self._began_step
        return {"samples_per_second": self._batch * steps / seconds} if self._batch and seconds > 1 and steps else {}


def _totals(state: Any) -> dict[str, int]:
    """The epoch being trained, from 1, and the totals."""
    told = {"steps": state.max_steps, "epochs": state.num_train_epochs}
    known = {name: value for name, value in told.items() if isinstance(value, int) and 0 < value < 1 << 40}
    if state.epoch is not None:
        epoch = math.floor(state.epoch) + 1
        known["epoch"] = min(epoch, known.get("epochs", epoch))
    return known


integration_utils.INTEGRATION_TO_CALLBACK.setdefault("mpstui", MpstuiCallback)
