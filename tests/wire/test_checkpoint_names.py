"""Names of checkpoints."""

from __future__ import annotations

import pytest

from mpstui.wire.checkpoints import earlier_best, earlier_number, is_best, is_earlier_best


@pytest.mark.parametrize("stem", ["best", "model_best", "best-epoch=3", "modelBest", "bestmodel", "checkpoint.best"])
def test_what_is_called_the_best(stem: str) -> None:
    assert is_best(stem)


@pytest.mark.parametrize("stem", ["last", "asbestos", "step-00000001", "best-earlier-1", earlier_best(12)])
def test_what_is_not(stem: str) -> None:
    assert not is_best(stem)


def test_the_best_of_an_earlier_training_is_told_by_its_name() -> None:
    assert is_earlier_best(earlier_best(3))
    assert not is_earlier_best("best")
    assert [earlier_number(stem) for stem in (earlier_best(12), "best-earlier-x", "step-3")] == [12, 0, 0]
