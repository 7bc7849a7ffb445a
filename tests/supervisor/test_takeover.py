"""What an arriving supervisor does, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpstui.supervisor.takeover import Duty, Witnesses, decide

GONE = Witnesses(attempt=1, phase="running", ended=False, begun=True, alive=False)


@pytest.mark.parametrize(
    ("seen", "duty"),
    [
        (replace(GONE, phase=None, begun=False), Duty.BEGIN),
        (replace(GONE, phase="queued", begun=False), Duty.BEGIN),
        (replace(GONE, alive=True), Duty.ADOPT),
        (replace(GONE, begun=False, alive=True), Duty.ADOPT),
        (GONE, Duty.REST),
        (replace(GONE, phase="stopping", asked_to_end=True), Duty.CLOSE),
        (replace(GONE, ended=True), Duty.REST),
        (replace(GONE, ended=True, alive=True), Duty.REST),
        (replace(GONE, ended=True, phase="backing_off", restart_due=True), Duty.BACK_OFF),
        (replace(GONE, ended=True, phase="backing_off"), Duty.REST),
    ],
)
def test_the_duty_follows_from_the_witnesses(seen: Witnesses, duty: Duty) -> None:
    assert decide(seen) is duty
