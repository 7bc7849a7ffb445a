"""What it takes for a printed value to be shown as a metric: a known name, or that it comes again, in what company."""

from __future__ import annotations

import pytest

from mpstui.core.formats.measures import best_of, is_of_machine, is_plain_measure, looks_measured
from tests.bench import metric_names

TRAINING = "".join(f"Epoch {n} loss: 1.{n}5\n" for n in range(1, 6))


def shown(text: str) -> set[str]:
    """The names that get a chart, but for the loss of the training that the text is put behind."""
    return set(metric_names.read((TRAINING + text).encode()).names) - {"loss"}


@pytest.mark.parametrize(
    "line",
    [
        "Test accuracy: 0.9",
        "Final test F1: 0.9",
        "mAP@50: 61.5",
        "Watermark recovery MSE: 1.1906",
        "Pseudo-label accuracy: 26.67%",
    ],
)
def test_a_result_that_is_printed_once_is_a_metric(line: str) -> None:
    assert shown(line + "\n") == {line.partition(":")[0]}


@pytest.mark.parametrize(
    "line",
    [
        "The shipping cost is 15",
        "detr_set_cost_bbox: 5.0",
        "bookmark cost: 3",
        "CosineAnnealing restarts with T_0: 10.5",
        "Pool kept: 41.25",
    ],
)
def test_a_name_that_only_resembles_one_needs_more_than_one_sighting(line: str) -> None:
    assert shown(line + "\n") == set()


def test_a_name_that_only_resembles_one_is_a_metric_once_it_comes_again_changed() -> None:
    assert shown("region cost: 5\n" + TRAINING.replace("Epoch ", "Epoch 1") + "region cost: 4\n") == {"region cost"}


def test_what_counts_beside_no_record_is_no_metric_however_often_it_comes() -> None:
    counts = "".join(f"Epoch {n} loss: 1.{n}\nGames kept: {n % 3}\nRatio kept: 0.{n}5\n" for n in range(6, 12))
    assert shown(counts) == {"Ratio kept"}


def test_among_settings_a_value_is_one_of_them() -> None:
    told = "".join(f"Try {n} > weight decay = 0.{n}5, warmup = {n}.5, balance = 0.{n}2\n" for n in range(1, 9))
    assert shown(told) == set()


@pytest.mark.parametrize(
    "beside",
    [
        "elapsed: {n}.25",
        "sampling {n}.25s",
        "pool {n}.25 GB",
        "Peak Mem (GB): {n}.25",
        "Global Tokens/s: 1{n}.5",
        "data_time 0.{n}25",
        "swap used {n}.25",
    ],
)
def test_times_speeds_and_memory_are_of_the_machine(beside: str) -> None:
    lines = "".join(f"Epoch {n} loss: 1.{n} | {beside.format(n=n)}\n" for n in (6, 7, 9, 8))
    assert shown(lines) == set()


def test_the_best_so_far_has_no_curve_beside_the_value_itself() -> None:
    lines = "".join(f"Epoch {n} loss: 1.{n} val_acc: 0.{n}\nNew best val_acc: 0.{n}\n" for n in (6, 7, 8))
    assert shown(lines + "Best validation accuracy: 0.8\n") == {"val_acc"}


def test_the_best_alone_is_a_result() -> None:
    assert shown("Best validation accuracy: 0.85\n") == {"Best validation accuracy"}


def test_two_values_in_brackets_are_a_range() -> None:
    lines = "".join(
        f"Epoch {n} loss: 1.{n} | Pred range: [-{n}.5, {n}.25] | grads: [0.{n}5 1.{n}]\n" for n in (6, 7, 9, 8)
    )
    assert shown(lines) == set()


def test_what_a_sentence_says_before_its_measure_is_no_part_of_the_name() -> None:
    assert shown("Epoch 8 - loss: 1.25, ended with BLEU-2: 65.76\n") == {"BLEU-2"}


def test_names_alone() -> None:
    assert not any(map(is_of_machine, ("mem avg. loss", "time_error", "timesteps_kl")))
    assert is_plain_measure("Val macro F1")
    assert not is_plain_measure("cost of one poster")
    assert best_of("Best val acc") == best_of("highest accuracy") == frozenset(("acc",))
    assert best_of("val acc") is None
    assert [looks_measured(value) for value in (0.913, 26.67, 5.0, 1e-4, 0.5)] == [True, True, False, False, False]
