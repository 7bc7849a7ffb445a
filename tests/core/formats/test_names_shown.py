"""The measure of metric names (`tests/bench/metric_names.py`) over the recordings: what gets a chart is a metric."""

from __future__ import annotations

import json

from tests.bench import metric_names

from .recorded import FOLDER

METRICS: dict[str, list[str]] = json.loads((FOLDER / "metrics.json").read_text())
"""What a person would call a metric in each recording, apart from the learning rate."""
TIMES_AND_RATES = [
    *("iter time", "samples/sec", "backward_time", "forward_time", "iter_time", "optim_step_time", "train_time"),
    *("tok/sec", "eval_runtime", "train_runtime", "train_samples_per_second", "steps_per_sec", "data_s", "It/sec"),
    *("Tokens/sec", "data_time", "time", "data", "tps", "time/fps", "dur", "optim0_lr0", "base_lr", "学习率"),
    *("time/lr", "train/learning_rate"),
]
"""Neither right nor wrong: some follow them, others do not."""


def _score(name: str) -> metric_names.Score:
    entry = {"file": name, "expected": {}, "metrics": METRICS[name], "tolerated": TIMES_AND_RATES}
    return metric_names.score(entry, metric_names.read((FOLDER / name).read_bytes()))


def test_what_is_shown_of_the_recordings_is_a_metric() -> None:
    total, wrong = metric_names.Score(), []
    for name in METRICS:
        one = _score(name)
        total.add(one)
        wrong += [f"{name}: {said}" for said in one.wrong]
    assert total.names > 150
    assert 100 * total.names_right >= metric_names.NAMES_GOAL * total.names, wrong
    assert total.missed == 0, wrong


def test_what_has_no_metrics_shows_none() -> None:
    none = [name for name, metrics in METRICS.items() if not metrics]
    assert none
    assert not [name for name in none if metric_names.read((FOLDER / name).read_bytes()).names]
