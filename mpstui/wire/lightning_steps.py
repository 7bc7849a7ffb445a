"""How many steps a Lightning training makes, and how many in an epoch: one rule for the agent and the callback.

Lightning knows the total only where it steps the optimizer itself. A module that does so itself may step as often as it
likes: then it is learnt from the batches that are done.
"""

from __future__ import annotations

import math
from typing import Any

_TELLING_BATCHES = 10
"""After this many it shows how often each batch steps, unless the steps come less regularly."""


class LightningSteps:
    """The steps of one training, by its ``Trainer``."""

    def __init__(self) -> None:
        self._per_batch = 0.0
        """Steps that a batch makes of a module that steps its optimizers itself; 0: not known yet."""

    def before_batch(self, trainer: Any) -> None:
        """Look after a few batches, then once an epoch: a total that changes with each batch would be unsteady."""
        if _is_automatic(trainer):
            return
        done, batches = trainer.fit_loop.epoch_loop.batch_progress.total.completed, trainer.num_training_batches
        late = not self._per_batch and done > batches  # resumed within an epoch
        if done and (done == _TELLING_BATCHES or late or done % batches == 0):
            made = trainer.global_step / done
            self._per_batch = made if done >= batches or float(made).is_integer() else 0.0

    def totals(self, trainer: Any) -> tuple[int | None, int | None]:
        """Steps of the training, and of an epoch; None: unknown, or without a limit."""
        batches, epochs = positive(trainer.num_training_batches) or 0, positive(trainer.max_epochs) or 0
        if _is_automatic(trainer):
            of_epoch: float = math.ceil(batches / trainer.accumulate_grad_batches)
        else:
            of_epoch = batches * self._per_batch
        limits = (positive(trainer.max_steps), round(epochs * of_epoch))
        return min((one for one in limits if one), default=None), round(of_epoch) or None


def positive(value: Any) -> int | None:
    """A whole number above 0: unlimited or unknown values appear as -1, infinity, the largest integer or None."""
    return int(value) if isinstance(value, (int, float)) and 0 < value < 1 << 40 else None


def _is_automatic(trainer: Any) -> bool:
    """Whether Lightning steps the optimizer; a module may do so itself, with as many and as often as it likes."""
    module = getattr(trainer, "lightning_module", None)
    return len(trainer.optimizers) < 2 and bool(getattr(module, "automatic_optimization", True))
