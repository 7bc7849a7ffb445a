"""The learning rate nobody set follows the size of a step."""

from __future__ import annotations

import pytest

from trainer import optimizers


def test_sgd_grows_linearly_and_adaptive_optimizers_with_the_root() -> None:
    assert optimizers.default_lr("sgd", 512) == pytest.approx(4 * optimizers.default_lr("sgd", 128))
    assert optimizers.default_lr("adamw", 512) == pytest.approx(2 * optimizers.default_lr("adamw", 128))


@pytest.mark.parametrize("name", optimizers.RECIPES)
def test_small_steps_keep_the_reference(name: str) -> None:
    assert optimizers.default_lr(name, 8) == optimizers.RECIPES[name].lr
