"""The steps of a Lightning training, by what its Trainer knows at a time."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from mpstui.wire.lightning_steps import LightningSteps


def trainer(**known: Any) -> SimpleNamespace:
    told = {"num_training_batches": 19, "max_epochs": 3, "max_steps": -1, "accumulate_grad_batches": 1, "steps": 0}
    told |= {"done": 0, "automatic": True, **known}
    progress = SimpleNamespace(total=SimpleNamespace(completed=told.pop("done")))
    module = SimpleNamespace(automatic_optimization=told.pop("automatic"))
    loop = SimpleNamespace(epoch_loop=SimpleNamespace(batch_progress=progress))
    return SimpleNamespace(
        optimizers=[object()], lightning_module=module, fit_loop=loop, global_step=told.pop("steps"), **told
    )


@pytest.mark.parametrize(
    ("known", "totals"),
    [
        ({}, (57, 19)),
        ({"accumulate_grad_batches": 4}, (15, 5)),
        ({"max_steps": 40}, (40, 19)),
        ({"max_epochs": -1, "max_steps": 40}, (40, 19)),
        ({"max_epochs": None}, (None, 19)),
        ({"num_training_batches": math.inf}, (None, None)),
        ({"automatic": False}, (None, None)),
    ],
)
def test_what_lightning_steps_is_known_at_once(known: dict[str, Any], totals: tuple[int | None, int | None]) -> None:
    assert LightningSteps().totals(trainer(**known)) == totals


def test_what_a_module_steps_is_known_after_ten_batches_or_an_epoch() -> None:
    twice, unsteady, resumed = LightningSteps(), LightningSteps(), LightningSteps()
    for done in range(1, 11):
        twice.before_batch(trainer(automatic=False, done=done, steps=2 * done))
        unsteady.before_batch(trainer(automatic=False, done=done, steps=(done + 1) // 3))
        assert (twice.totals(trainer(automatic=False))[0] is None) == (done < 10)
    assert twice.totals(trainer(automatic=False)) == (114, 38)
    assert unsteady.totals(trainer(automatic=False)) == (None, None)
    unsteady.before_batch(trainer(automatic=False, done=19, steps=6))
    assert unsteady.totals(trainer(automatic=False)) == (18, 6)
    resumed.before_batch(trainer(automatic=False, done=25, steps=50))
    assert resumed.totals(trainer(automatic=False)) == (114, 38)
