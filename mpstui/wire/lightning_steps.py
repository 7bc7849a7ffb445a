"""How many optimizer steps a Lightning training takes in all and per epoch: one rule for agent and callback.

Lightning knows the total only with automatic optimization. A module with manual optimization may step as often as it
likes: then the rate is learnt from the batches done so far.
"""

from __future__ import annotations

import math
from typing import Any

_TELLING_BATCHES = 10
"""After this many, the steps per batch are known, unless they are irregular."""


class LightningSteps:
    """Counts the steps of one training from its ``Trainer``."""

    def __init__(self) -> None:
        self._per_batch = 0.0
        """Steps per batch with manual optimization; 0: not known yet."""

    def before_batch(self, trainer: Any) -> None:
        """Measure after a few batches, then once an epoch: a total that changed with every batch would be unsteady."""
        if _is_automatic(trainer):
            return
        done, batches = trainer.fit_loop.epoch_loop.batch_progress.total.completed, trainer.num_training_batches
        late = not self._per_batch and done > batches  # resumed in the middle of an epoch
        if done and (done == _TELLING_BATCHES or late or done % batches == 0):
            made = trainer.global_step / done
            self._per_batch = made if done >= batches or float(made).is_integer() else 0.0

    def totals(self, trainer: Any) -> tuple[int | None, int | None]:
        """Return the steps of the whole training and of one epoch; None if unknown or unlimited."""
        batches, epochs = positive(trainer.num_training_batches) or 0, positive(trainer.max_epochs) or 0
        if _is_automatic(trainer):
            of_epoch: float = math.ceil(batches / trainer.accumulate_grad_batches)
        else:
            of_epoch = batches * self._per_batch
        limits = (positive(trainer.max_steps), round(epochs * of_epoch))
        return min((one for one in limits if one), default=None), round(of_epoch) or None


def positive(value: Any) -> int | None:
    """Return a positive number as int, else None: unlimited and unknown appear as -1, infinity, a huge int or None."""
    return int(value) if isinstance(value, (int, float)) and 0 < value < 1 << 40 else None


def _is_automatic(trainer: Any) -> bool:
    """True if Lightning steps the optimizer itself, and there is only one."""
    module = getattr(trainer, "lightning_module", None)
    return len(trainer.optimizers) < 2 and bool(getattr(module, "automatic_optimization", True))
