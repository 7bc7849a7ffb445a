"""Ignite: ``attach(trainer, ...)`` before ``trainer.run(...)``. Tried with pytorch-ignite 0.5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ignite.engine import Events

from ..reporting import report
from .phases import EVALUATION_SECONDS, SAVING_SECONDS
from .requests import clear_cache_if_asked, harmless, number


def attach(trainer: Any, *, evaluator: Any = None, optimizer: Any = None, checkpoint: Any = None) -> None:
    """Report a training, and save, evaluate, clear the cache or stop on request.

    Args:
        trainer: its output is the loss, or a mapping with ``loss`` in it.
        evaluator: its metrics are reported as ``val_...``, or as ``train_...`` if it runs on the training data. Once it
            has run on other data, it also runs on request, on those.
        optimizer: provides the learning rate.
        checkpoint: a ``Checkpoint`` handler, which is called on request.
    """
    handlers = _Handlers(evaluator, optimizer, checkpoint)
    trainer.add_event_handler(Events.STARTED, handlers.started)
    trainer.add_event_handler(Events.EPOCH_STARTED, handlers.epoch_started)
    trainer.add_event_handler(Events.ITERATION_STARTED, handlers.step_begun)
    trainer.add_event_handler(Events.ITERATION_COMPLETED, handlers.step_done)
    for end in (Events.TERMINATE, Events.COMPLETED):
        trainer.add_event_handler(end, handlers.ended)
    if evaluator is not None:
        evaluator.add_event_handler(Events.STARTED, handlers.evaluates)
        evaluator.add_event_handler(Events.COMPLETED, handlers.evaluated)


@harmless
class _Handlers:
    def __init__(self, evaluator: Any, optimizer: Any, checkpoint: Any) -> None:
        self._evaluator, self._optimizer, self._checkpoint = evaluator, optimizer, checkpoint
        self._saved = ""
        self._epoch_began = 0
        self._trained_on: Any = None
        self._evaluated_on: Any = None

    def started(self, engine: Any) -> None:
        self._trained_on = engine.state.dataloader
        report.takes("clear_cache", "stop", *(("save",) if self._checkpoint is not None else ()))
        if self._evaluator is None:
            report.refuses("evaluate", "there is nothing to evaluate with: give it attach(trainer, evaluator=...)")
        elif self._evaluated_on is None:
            report.refuses("evaluate", "what its evaluator runs on is known once it has run: ask again then")
        report.phase("training")

    def epoch_started(self, engine: Any) -> None:
        state, of_epoch = engine.state, engine.state.epoch_length or -1
        planned = (state.epoch - 1) * of_epoch
        # A resumed training may begin within an epoch; if `terminate_epoch` cuts epochs short, their length is unknown.
        is_planned = planned <= state.iteration <= planned + of_epoch
        self._epoch_began = planned if is_planned else state.iteration
        by_epochs = state.max_epochs * of_epoch if state.max_epochs and is_planned else -1
        steps = getattr(state, "max_iters", None) or by_epochs
        within = {"epoch_steps": of_epoch if is_planned else -1, "epoch_step": state.iteration - self._epoch_began}
        report(epoch=state.epoch, epochs=state.max_epochs, steps=steps, **within)

    def step_begun(self, engine: Any) -> None:
        self._tell_of_checkpoint(engine.state.iteration - 1)

    def ended(self, engine: Any) -> None:
        self._tell_of_checkpoint(engine.state.iteration)

    def step_done(self, engine: Any) -> None:
        output, state = engine.state.output, engine.state
        told = output if isinstance(output, Mapping) else {"loss": output[0] if isinstance(output, tuple) else output}
        lr = self._optimizer.param_groups[0]["lr"] if self._optimizer is not None else None
        within = state.iteration - self._epoch_began
        report({**told, **state.metrics}, step=state.iteration, epoch_step=within, lr=lr)
        self._tell_of_checkpoint(state.iteration)
        clear_cache_if_asked()
        if self._evaluated_on is not None and report.requested("evaluate"):
            self._evaluator.run(self._evaluated_on)
        stops = report.requested("stop")
        if self._checkpoint is not None and (report.requested("save") or stops):
            with report.phase("saving", expect_seconds=SAVING_SECONDS):
                self._checkpoint(engine)
            self._tell_of_checkpoint(state.iteration)
        if stops:
            engine.terminate()

    def evaluates(self, engine: Any) -> None:
        report.phase("evaluating", expect_seconds=EVALUATION_SECONDS)

    def evaluated(self, engine: Any) -> None:
        data = "val" if engine.state.dataloader is not self._trained_on else "train"
        numbers = {f"{data}_{name}": number(value) for name, value in engine.state.metrics.items()}
        report({name: value for name, value in numbers.items() if value is not None})
        report.phase("training")
        if data == "val":
            self._evaluated_on = engine.state.dataloader
            report.takes("evaluate")

    def _tell_of_checkpoint(self, step: int) -> None:
        """Report the newest checkpoint if it is new."""
        last = getattr(self._checkpoint, "last_checkpoint", None)
        if last is not None and str(last) != self._saved:
            self._saved = str(last)
            folder = getattr(self._checkpoint.save_handler, "dirname", "")
            report.checkpoint(f"{folder}/{last}" if folder and "/" not in str(last) else last, step=step)
