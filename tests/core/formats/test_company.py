"""Where a name alone does not tell what a number is, its place and its company do."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import ParsedLog
from mpstui.core.formats.reader import LogReader


def read(log: str) -> ParsedLog:
    reader = LogReader()
    reader.feed(log.encode())
    return reader.summary()


def lines(form: str, count: int = 4) -> str:
    return "".join(form.format(n=n) + "\n" for n in range(1, count + 1))


@pytest.mark.parametrize(
    "form",
    [
        "Finished training it {n}0/500 of epoch 2, 12.31 ms/it, loss 0.0{n}1293, accuracy 88.135 %",
        "iter {n}0/500 of epoch 2, loss 0.{n}8",
        "Wrapping up minibatch {n}0/500 of epoch 2: loss 0.{n}8",
    ],
)
def test_a_count_out_of_so_many_of_an_epoch_is_its_step_whatever_stands_in_front(form: str) -> None:
    found = read(lines(form))
    assert (found.epoch, found.step, found.steps) == (2, 40, 500)
    assert found.train_loss is not None
    assert found.train_loss.count == 4


@pytest.mark.parametrize("words", ["warmup step", "accumulation step", "best iter", "val step"])
def test_other_steps_beside_a_loss_are_no_place(words: str) -> None:
    assert read(lines(f"{words} {{n}}/8 of many, loss 0.{{n}}8 acc 0.5{{n}}")).step is None


@pytest.mark.parametrize("bar", ["", "100%|██████████| 46/46 [00:05<00:00,  9.08it/s]\n"])
def test_epochs_that_only_evaluations_tell_begin_anew_with_another_run(bar: str) -> None:
    run = lines(f"{bar}EPOCH {{n}} ... Validation Accuracy = 0.{{n}}41", 7)
    found = read(run + lines(f"{bar}EPOCH {{n}} ... Validation Accuracy = 0.{{n}}5", 2))
    assert (found.epoch, found.runs) == (2, 2)


def test_checkpoints_that_are_evaluated_once_more_after_training_are_no_other_run() -> None:
    found = read(lines("epoch {n} loss 0.{n}5", 7) + lines("epoch {n} val acc 0.{n}5", 3))
    assert (found.epoch, found.runs) == (7, 1)


@pytest.mark.parametrize("line", ["epoch {n} loss=0.{n}5 FID=7{n}.1 IS=2.{n}4", "epoch {n} loss: 0.{n}5 IS: 2.{n}4"])
def test_a_word_of_sentences_is_a_name_where_a_sign_joins_it(line: str) -> None:
    assert "IS" in read(lines(line)).metrics


def test_a_unit_may_be_glued_to_its_number() -> None:
    log = "<epoch: {n}, lr:1.000e-04> loss: 9.{n}74e-02\n<epoch: {n}, Average PSNR : 2{n}.33dB\n"
    assert "Average PSNR" in read(lines(log)).metrics


def test_parameters_of_the_model_are_no_metrics() -> None:
    name = "module.heads.relation.fc6.weight: 0.{n}0{n}77, (torch.Size([4096, 25088]))\nmodule.fc6.bias: 0.{n}1"
    name += "\nmodule.rnn.weight_hh_l0_reverse: 0.{n}3"
    assert set(read(lines("iter: {n} loss: 0.{n}5\n" + name)).metrics) == {"loss"}


def test_a_score_may_stand_in_a_sentence_of_its_own() -> None:
    assert "Inception score" in read(lines("epoch {n} loss 0.{n}\nInception score of 4.{n}5")).metrics


def test_at_how_many_a_measure_looks_is_part_of_any_name() -> None:
    log = lines("iter: {n}00 loss: 0.{n}5\nGraph eval:  mR @ 20: 0.0{n}00;  mR @ 50: 0.05{n}7;\nDONE@0{n}:31:12\n")
    assert set(read(log).metrics) == {"loss", "eval mR@20", "eval mR@50"}
