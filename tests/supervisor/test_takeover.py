"""What an arriving supervisor does, as a table."""

from __future__ import annotations

import pytest

from mpstui.supervisor.witnesses import Duty, Witnesses, decide

GONE = Witnesses(attempt=1, phase="running", ended=False, begun=True, alive=False)


@pytest.mark.parametrize(
    ("seen", "duty"),
    [
        (GONE._replace(phase=None, begun=False), Duty.BEGIN),
        (GONE._replace(phase="queued", begun=False), Duty.BEGIN),
        (GONE._replace(alive=True), Duty.ADOPT),
        (GONE._replace(begun=False, alive=True), Duty.ADOPT),
        (GONE, Duty.REST),
        (GONE._replace(phase="stopping", asked_to_end=True), Duty.CLOSE),
        (GONE._replace(ended=True), Duty.REST),
        (GONE._replace(ended=True, alive=True), Duty.REST),
        (GONE._replace(ended=True, phase="backing_off", restart_due=True), Duty.BACK_OFF),
        (GONE._replace(ended=True, phase="queued", restart_due=True), Duty.BACK_OFF),
        (GONE._replace(ended=True, phase="backing_off"), Duty.REST),
        (GONE._replace(ended=True, phase="queued"), Duty.REST),
    ],
)
def test_the_duty_follows_from_the_witnesses(seen: Witnesses, duty: Duty) -> None:
    assert decide(seen) is duty
