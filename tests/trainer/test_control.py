"""One request to stop is one request, however many signals carry it."""

from __future__ import annotations

import os
import signal

import pytest

from trainer.control import Control


class _Ended(Exception):
    """The process would have ended here."""


@pytest.fixture(autouse=True)
def _no_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(code: int) -> None:
        raise _Ended(code)

    monkeypatch.setattr(os, "_exit", end)


@pytest.mark.parametrize(("environ", "seconds"), [({}, 1.0), ({"TORCHELASTIC_RUN_ID": "x"}, 10.0)])
def test_signals_that_come_together_are_one_request_and_a_later_one_insists(
    environ: dict[str, str], seconds: float
) -> None:
    now = [100.0]
    control = Control(environ, monotonic=lambda: now[0])
    control.on_signal(signal.SIGTERM, None)
    now[0] += seconds
    control.on_signal(signal.SIGINT, None)
    assert control.stop_requested
    assert control.signal_name == "SIGTERM"
    now[0] += 0.1
    with pytest.raises(_Ended, match="130"):
        control.on_signal(signal.SIGINT, None)
