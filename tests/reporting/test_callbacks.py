"""What all callbacks share, without a framework: a surprise in one ends no training."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from mpstui.integrations import phases, requests
from mpstui.integrations.phases import leave_saves, tell_of_saves
from mpstui.integrations.requests import BrokenOff, evaluate_if_asked, harmless
from mpstui.reporting import Report
from mpstui.wire import rundir
from mpstui.wire.rundir import RunDir
from tests.waiting import wait_until


@harmless
class Callback:
    def on_step(self, step: int) -> str:
        return f"step {1 / step}"

    def _on_step(self) -> bool:
        return bool(self.on_step(0)) and False


@harmless
class GoesOnForTrue(Callback):
    goes_on = True

    def _on_step(self) -> bool:
        raise ValueError("unknown")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    report = Report({"MPSTUI_RUN_DIR": str(tmp_path)})
    for module in (phases, requests):
        monkeypatch.setattr(module, "report", report)
    return RunDir(tmp_path)


def test_a_surprise_turns_a_callback_off_and_says_so_once(run: RunDir) -> None:
    callback: Any = Callback()
    assert callback.on_step(2) == "step 0.5"
    # Transformers takes whatever comes back for its own state.
    assert [callback.on_step(0), callback.on_step(2)] == [None, None]
    [event] = [json.loads(line) for line in run.events.read_text().splitlines()]
    assert event["text"] == "the callback is off, the training goes on (ZeroDivisionError: division by zero)"


def test_a_framework_that_stops_for_anything_but_true_goes_on(run: RunDir) -> None:
    callback: Any = GoesOnForTrue()
    assert [callback._on_step(), callback._on_step()] == [True, True]


def test_what_a_framework_raises_to_end_a_training_is_its_own(run: RunDir) -> None:
    class CancelFitError(Exception):
        pass

    @harmless
    class Stops:
        def on_step(self) -> None:
            raise CancelFitError

    with pytest.raises(CancelFitError):
        Stops().on_step()


def test_a_framework_is_what_a_callback_is_made_of(run: RunDir) -> None:
    """The name of the file may be another one: transformers' stands in huggingface.py."""
    base = type("TrainerCallback", (), {"__module__": "transformers.callback"})
    its_own = type("Refused", (Exception,), {"__module__": "transformers.trainer"})

    @harmless
    class Stops(base):  # type: ignore[misc, valid-type]
        def on_step(self) -> None:
            raise its_own

    with pytest.raises(its_own):
        Stops().on_step()


class Model:
    def save(self, path: str, *, overwrite: bool = True) -> str:
        return f"{path} {overwrite}"


def test_who_saves_a_model_tells_of_it_once_and_only_while_it_trains(run: RunDir) -> None:
    model, told = Model(), []
    for _ in range(2):  # a second training with the same model
        tell_of_saves(model, "save", lambda *args, **kwargs: told.append((args, kwargs)))
    assert model.save("out.pt", overwrite=False) == "out.pt False"
    assert told == [(("out.pt False", "out.pt"), {"overwrite": False})]
    leave_saves(model, "save")
    assert vars(model) == {}
    assert model.save("out.pt") == "out.pt True"
    assert len(told) == 1


def drawn() -> tuple[float, float, float]:
    return random.random(), numpy.random.rand(), torch.rand(1).item()


def breaks_off() -> Mapping[str, Any]:
    raise BrokenOff


@pytest.mark.parametrize(
    ("evaluates", "told", "said"),
    [
        (lambda: {"val_loss": torch.tensor(0.5), "name": "x", "drawn": drawn()[0]}, True, []),
        (lambda: {"val_loss": drawn()[2] / 0}, False, ["(ZeroDivisionError: float division by zero)"]),
        (breaks_off, False, []),
    ],
)
def test_an_evaluation_out_of_turn_disturbs_nothing(
    evaluates: Callable[[], Mapping[str, Any]], told: bool, said: list[str], run: RunDir
) -> None:
    random.seed(1)
    numpy.random.seed(1)
    torch.manual_seed(1)
    assert not evaluate_if_asked(evaluates, 7)
    rundir.submit(run, rundir.new_request("evaluate", 1, time.time()))
    wait_until(lambda: evaluate_if_asked(evaluates, 7), what="the evaluation")
    assert drawn() == pytest.approx((0.13436424411240122, 0.417022004702574, 0.7576315999031067))
    points = [json.loads(line) for line in run.metrics.read_text().splitlines()] if told else []
    assert [(one["step"], one.get("val_loss")) for one in points] == [(7, 0.5)] * told, points
    events = [json.loads(line)["text"] for line in run.events.read_text().splitlines()] if said else []
    assert events == [f"it could not evaluate, the training goes on {why}" for why in said]
