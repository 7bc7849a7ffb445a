"""The newest numbers of a run, put together from what there is: its heartbeat, its metrics, its output. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ...wire.heartbeat import DeviceReading, Heartbeat, MemoryReading, integer, number
from ..model.snapshot import Numbers
from .points import reported_metrics
from .printed import printed_values

_OF_A_HEARTBEAT = tuple(spec.name for spec in fields(Numbers) if spec.name in Heartbeat._fields)


def combine(beat: Heartbeat | None, older: Heartbeat | None, points: Mapping[str, Any]) -> Numbers:
    """The newest of each number.

    Args:
        beat: the newest attempt's.
        older: the attempt's before it: where the run stood, until the new attempt says more.
        points: the newest values of the metrics file (or of the output), by key.
    """
    shown = beat or older
    if shown is None:
        return _from_points(points)
    newer = (number(points.get("time")) or 0.0) > shown.time + 1.0
    loss, finite = _loss(shown, points, newer)
    told = Numbers(**{name: getattr(shown, name) for name in _OF_A_HEARTBEAT})
    return replace(
        told,
        beat=beat,
        device=beat.device if beat else DeviceReading(),
        memory=beat.memory if beat else MemoryReading(),
        epoch=_newest(shown.epoch, number(points.get("epoch")), newer),
        step=integer(_newest(shown.step, integer(points.get("step")), newer)),
        loss=loss,
        loss_is_finite=finite,
        lr=_newest(shown.lr, number(points.get("lr")), newer),
        metrics={**reported_metrics(points), **shown.metrics},
    )


def with_printed(numbers: Numbers, printed: Mapping[str, Any]) -> Numbers:
    """The epochs and metrics that a program prints, for a run whose own records count steps alone.

    Its steps stay those of the records: a printed count may begin anew, or leave out accumulated ones.
    """
    epoch = number(printed.get("epoch"))
    if numbers.epoch is not None:
        return numbers
    numbers = replace(numbers, metrics=printed_values(numbers.metrics, reported_metrics(printed)))
    if epoch is None:
        return numbers
    return replace(
        numbers,
        epoch=epoch,
        epochs=number(printed.get("epochs")),
        epoch_step=integer(printed.get("epoch_step")),
        epoch_steps=integer(printed.get("epoch_steps")),
        **_epoch_counting(printed),
    )


def _from_points(points: Mapping[str, Any]) -> Numbers:
    return Numbers(
        epoch=number(points.get("epoch")),
        epochs=number(points.get("epochs")),
        step=integer(points.get("step")),
        steps=integer(points.get("steps")),
        epoch_step=integer(points.get("epoch_step")),
        epoch_steps=integer(points.get("epoch_steps")),
        **_epoch_counting(points),
        loss=number(points.get("loss")),
        loss_is_finite="loss" not in points or number(points["loss"]) is not None,
        lr=number(points.get("lr")),
        metrics=reported_metrics(points),
        samples_per_second=number(points.get("samples_per_second")),
    )


def _epoch_counting(points: Mapping[str, Any]) -> dict[str, Any]:
    """From which number epochs are counted, and whether the newest is over: 1 and no where nobody says."""
    first = integer(points.get("first_epoch"))
    return {"first_epoch": 1 if first is None else first, "epoch_done": points.get("epoch_done") is True}


def _loss(shown: Heartbeat, points: Mapping[str, Any], newer: bool) -> tuple[float | None, bool]:
    if "loss" in points and (newer or (shown.loss is None and "loss" not in shown.nonfinite)):
        loss = number(points["loss"])
        return loss, loss is not None
    return shown.loss, "loss" not in shown.nonfinite


def _newest(beat: float | None, point: float | None, newer: bool) -> float | None:
    """The heartbeat's number, unless a later point says otherwise."""
    if beat is None:
        return point
    return point if newer and point is not None else beat
