"""Losses by component, in a dictionary or a list: what one is and what a total says."""

from __future__ import annotations

import math

import pytest

from mpstui.core.formats.points import ParsedLog
from mpstui.core.formats.reader import LogReader


def read(form: str, count: int = 4) -> ParsedLog:
    reader = LogReader()
    reader.feed("".join(form.format(n=n) + "\n" for n in range(1, count + 1)).encode())
    reader.close()
    return reader.summary()


@pytest.mark.parametrize(
    "form",
    [
        "Losses {{'ner': 1{n}.25}}",
        "Losses: {{'ner': 1{n}.25}}",
        "('Losses', {{u'ner': 1{n}.25}})",
        "Iteration {n} Losses {{'ner': 1{n}.25}}",
        "step={n} losses={{'textcat': 1{n}.25}}",
    ],
)
def test_the_only_one_of_the_losses_is_the_loss(form: str) -> None:
    found = read(form)
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last, found.train_loss.count) == (11.25, 14.25, 4)


def test_of_several_components_none_is_the_loss() -> None:
    found = read("Losses {{'tagger': 1{n}.25, 'ner': {n}.5}}")
    assert found.train_loss is None
    assert set(read("epoch {n} Losses {{'tagger': 1{n}.25, 'ner': {n}.5}}").metrics) == {"tagger loss", "ner loss"}


@pytest.mark.parametrize(
    "form", ["loss_weights: {{'a': 0.{n}}}", "Losses: {{'a': {n}, 'b': 2}}", "losses: {{'a': 'l{n}'}}"]
)
def test_weights_and_counts_are_no_losses(form: str) -> None:
    assert read(form).train_loss is None


def test_a_total_among_parts_without_signs_is_the_loss() -> None:
    found = read("[Epoch 0/30, Batch {n}/700] [Losses: x 0.25, w 4.8{n}, conf 4.36, total 1{n}.5, recall: 0.00000]")
    assert found.train_loss is not None
    assert (found.epoch, found.step, found.train_loss.last, found.train_loss.count) == (0, 4, 14.5, 4)


def test_what_is_no_number_may_be_printed_with_a_decimal() -> None:
    bar = "Epoch 0:  30%|###       | {n}/428 [00:27<01:00, 46.05it/s, v_num=0, train_loss=nan.0, val_loss=inf.0]"
    found = read(bar)
    assert found.train_loss is not None
    assert math.isnan(found.train_loss.last)
    assert (found.epoch, found.step, found.steps) == (0, 4, 428)


@pytest.mark.parametrize(("total", "place"), [(200000, (None, 4)), (200, (4, None))])
def test_so_many_epochs_nobody_trains(total: int, place: tuple[int | None, int | None]) -> None:
    found = read(f"[{{n}}/{total}] Train loss: 0.{{n}}25, Valid loss: 0.{{n}}5")
    assert (found.epoch, found.step) == place


def test_a_bar_that_goes_on_with_the_epochs_counts_no_steps() -> None:
    outer = " {n}0%|##   | {n}/10 [05:11<04:21, 52.38s/it]"
    form = (
        f"{outer}Epoch : {{n}}\nEpoch {{n}}: 100%|#####| 96/96 [00:49<00:00,  1.94it/s]\n{outer}Training loss: 0.{{n}}5"
    )
    found = read(form, 9)
    assert (found.epoch, found.epochs) == (9, 10)
    assert (found.step, found.steps) == (96, 96)


@pytest.mark.parametrize("name", ["Horizon loss parameters", "sc_rec range"])
def test_parameters_and_ranges_are_no_metrics(name: str) -> None:
    assert name not in read(f"epoch {{n}} loss 0.{{n}}\n{name}: 0.{{n}}5").metrics


def test_the_result_of_something_is_called_after_its_measure() -> None:
    assert "test acc" in read("epoch {n} loss 0.{n}\nThe result of Net with Adam is test acc: 7{n}.25%").metrics
