"""The card offers no key that cannot work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpstui.core.diagnosis import Kind
from mpstui.core.runs.snapshot import State
from mpstui.ui.widgets.failure_card import Failure, card

from . import fakes


def test_restart_on_cpu_is_offered_only_where_it_can_work() -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    keys = ["".join(span.text for span in card(Failure(failed, (), able), 80, 8)[-1].spans) for able in (True, False)]
    assert ["restart on CPU" in shown for shown in keys] == [True, False]


@pytest.mark.parametrize(("kind", "offered"), [(Kind.CAUSE, True), (Kind.ENDING, True), (Kind.SYMPTOM, False)])
def test_the_remedy_of_a_mere_symptom_is_not_offered(kind: Kind, offered: bool) -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    keys = card(Failure(failed, (replace(fakes.FINDING, kind=kind),)), 80, 8)[-1]
    assert ("apply the remedy" in "".join(span.text for span in keys.spans)) is offered
