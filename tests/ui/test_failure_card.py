"""The card offers no key that cannot work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpstui.core.diagnosis import EvidenceLine, Kind
from mpstui.core.runs.snapshot import ExitSummary, RunSnapshot, State
from mpstui.ui.widgets.failure_card import Failure, card

from . import fakes
from .driving import Driver, drive

EXIT = ExitSummary(code=1, signal=None, cause=None, requested_by=None)


def test_restart_on_cpu_is_offered_only_where_it_can_work() -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    keys = ["".join(span.text for span in card(Failure(failed, (), able), 80, 8)[-1].spans) for able in (True, False)]
    assert ["restart on CPU" in shown for shown in keys] == [True, False]


@pytest.mark.parametrize(("kind", "offered"), [(Kind.CAUSE, True), (Kind.ENDING, True), (Kind.SYMPTOM, False)])
def test_the_remedy_of_a_mere_symptom_is_not_offered(kind: Kind, offered: bool) -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    keys = card(Failure(failed, (replace(fakes.FINDING, kind=kind),)), 80, 8)[-1]
    assert ("apply the remedy" in "".join(span.text for span in keys.spans)) is offered


def test_an_unknown_end_shows_the_last_exception_on_the_card() -> None:
    failed = next(item for item in fakes.several() if item.state is State.FAILED)
    exception = EvidenceLine(4711, "KeyError: 'learning_rate'")
    rows = card(Failure(failed, (), True, exception), 80, 9)
    shown = "\n".join("".join(span.text for span in row.spans) for row in rows)
    assert "no known cause; the last exception of the log:" in shown
    assert "line 4711 KeyError: 'learning_rate'" in shown


def test_how_it_ended_is_said_once() -> None:
    failed = replace(fakes.failed(), reason="exit code 1", exit=EXIT)
    shown = ["".join(span.text for span in row.spans) for row in card(Failure(failed, ()), 80, 9)]
    assert sum("exit code 1" in line for line in shown) == 1


def test_the_screen_asks_for_it_only_where_nothing_was_found() -> None:
    asked: list[str] = []

    async def play(driver: Driver) -> None:
        await driver.sees("KeyError: 'learning_rate'")

    def last_exception(snapshot: RunSnapshot) -> EvidenceLine:
        asked.append(snapshot.run)
        return EvidenceLine(3, "KeyError: 'learning_rate'")

    world = fakes.world((fakes.failed(),))
    world.services = replace(world.services, diagnose=lambda snapshot: (), last_exception=last_exception)
    drive(world, play)
    drive(world, play, opening=fakes.failed().run)
    world.services = replace(world.services, diagnose=lambda snapshot: (fakes.FINDING,))
    drive(world, lambda driver: driver.sees(fakes.FINDING.title), opening=fakes.failed().run)
    assert asked == [fakes.failed().run] * 2
