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
