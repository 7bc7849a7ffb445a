"""The card offers no key that cannot work."""

from __future__ import annotations

from mpstui.core.runs.snapshot import State
from mpstui.ui.widgets.failure_card import Failure, card

from . import fakes


def test_restart_on_cpu_is_offered_only_where_it_can_work() -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    keys = ["".join(span.text for span in card(Failure(failed, (), able), 80, 8)[-1].spans) for able in (True, False)]
    assert ["restart on CPU" in shown for shown in keys] == [True, False]
