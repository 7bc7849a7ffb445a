"""Where a name alone does not tell what a number is, its place and its company do."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import LossSummary, ParsedLog
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


FALLING, RISING = (1.92, 1.61, 1.41, 1.32, 1.21, 1.11), (0.31, 0.42, 0.41, 0.55, 0.61, 0.66)


@pytest.mark.parametrize(
    "form",
    ["step {n}: train {v} | val 1.93", "Epoch {n} | train={v} | val_r=0.5{n}", "Epoch {n:03d}, Train: {v}, Val: {v}"],
)
def test_what_is_called_after_its_data_alone_is_a_loss_where_it_falls(form: str) -> None:
    losses, accuracies = (
        read("".join(form.format(n=n, v=v) + "\n" for n, v in enumerate(values))) for values in (FALLING, RISING)
    )
    assert losses.train_loss is not None
    assert (losses.train_loss.first, losses.train_loss.last, losses.train_loss.count) == (1.92, 1.11, 6)
    assert accuracies.train_loss is None
    assert any(name.lower() == "train" for name in accuracies.metrics)


@pytest.mark.parametrize("form", ["Epoch {n} Acc: train {v} | val 0.5", "Epoch {n} train: {v} val: 0.5 loss: 0.7"])
def test_it_is_none_where_the_line_says_what_was_measured_or_has_a_loss(form: str) -> None:
    found = read("".join(form.format(n=n, v=v) + "\n" for n, v in enumerate(FALLING)))
    assert found.train_loss is None or found.train_loss.first == 0.7


def test_all_of_its_curve_is_drawn() -> None:
    reader = LogReader()
    log = "".join(f"step {n}: train {v} | val 1.93\n" for n, v in enumerate(FALLING))
    points = reader.feed(log.encode())
    assert [(p.step, p.loss) for p in points if p.loss is not None] == list(enumerate(FALLING))


def test_folds_that_are_counted_between_the_trainings_are_no_step() -> None:
    fold = "".join(f"      Epoch  {e}/80  loss=0.00{80 - e}\n" for e in (20, 40, 60, 80))
    found = read("".join(f"{fold}  [ {n}/23] sub-0{n}  err=0.00{n}8\n" for n in range(1, 5)))
    assert (found.epoch, found.epochs, found.step, found.steps) == (80, 80, None, None)


def test_a_step_below_the_epochs_is_one_however_seldom_it_is_told() -> None:
    log = "".join(f"Epoch {e}/80 loss=0.{99 - e}\n" + f"step {e * 10}/800\n" * (e % 2) for e in range(1, 8))
    assert (read(log).step, read(log).steps) == (70, 800)


@pytest.mark.parametrize("heading", ["--> STEP: {n}", "***** Iteration #{n} *****", "Progress at step {n}:"])
def test_a_loss_below_a_line_with_its_step_alone_is_believed_at_once(heading: str) -> None:
    log = "".join(f"{heading.format(n=n)}\n  | > loss: 2.{n}5\n  | > grad_norm: 1.{n}5\n" for n in (1, 2))
    found = read(log)
    assert (found.step, found.train_loss) == (2, LossSummary(2.15, 2.25, 2))
    assert read(log.replace(heading.partition("{")[0], "Attempt ")).train_loss is None


def test_a_compact_date_in_front_is_no_step() -> None:
    log = "20200204-20:09:01 Train Epoch: {n}/70\n20200204-20:19:09     total_loss: 22.4{n} time: 10m 8s\n"
    log += "20200204-20:29:09     ave: 87.3{n}00\n"
    found = read(lines(log))
    assert (found.epoch, found.epochs, found.step) == (4, 70, None)


def test_a_point_may_end_a_total() -> None:
    found = read(lines("epoch {n}\n[{n}/30] iter: 200/278. lr:0.000030 . Loss: 0.0{n}5, Acc:0.961"))
    assert (found.epoch, found.epochs, found.step, found.steps) == (4, 30, 200, 278)


def test_a_cost_in_seconds_is_a_time() -> None:
    log = lines(
        "Epoch {n} Train, reg:0.3{n}37, mae:84.{n}3, Cost: 71{n}.7 sec\nEpoch {n} Val, MAE: 14.{n}8 Cost 239.{n} sec"
    )
    assert not [name for name in read(log).metrics if "cost" in name.lower()]


def test_what_came_of_settings_stands_behind_them() -> None:
    log = "Config: {{'filter': 'wide', 'activation': 'relu', 'num_epochs': 30, 'optimizer': 'sgd', 'lr': 0.001}}, "
    found = read(lines(log + "Epoch {n}/30, Train Loss: 1.{n}060, Test Acc: 57.6{n}%"))
    assert (found.epoch, found.epochs, found.metrics) == (4, 30, ("Train Loss", "Test Acc"))
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.count) == (1.106, 4)


@pytest.mark.parametrize(
    ("form", "epoch", "step"), [("train loss of iteraction {n}:0.7{n}384", None, 4), ("eopch={n} loss=5.{n}", 4, None)]
)
def test_a_mistyped_counter_counts(form: str, epoch: int | None, step: int | None) -> None:
    found = read(lines(form))
    assert (found.epoch, found.step) == (epoch, step)
    assert found.train_loss is not None
    assert found.train_loss.count == 4


def test_a_count_and_its_total_may_have_brackets_of_their_own() -> None:
    found = read(lines("Epoch [{n}]/[199] \t Training Phase Loss: 0.06988004{n} \t Accuracy: 0.586{n}"))
    assert (found.epoch, found.epochs) == (4, 199)


def test_a_measure_may_have_a_number() -> None:
    log = lines("  focal  flat   macroF1=0.50{n}9+-0.0116  recall{n}=0.3{n}96  prec5=0.4{n}1", 2)
    assert {"macroF1", "recall1", "recall2", "prec5"} == set(read(log).metrics)


def test_columns_begin_where_the_cells_below_them_do() -> None:
    header = "Epoch  Train Loss   Train Recall Val Loss     Val Recall  \n" + "-" * 60 + "\n"
    found = read(header + lines("{n}      1.{n}197       0.5694       0.8611       0.8333"))
    assert (found.epoch, found.metrics) == (4, ("Train Loss", "Train Recall", "Val Loss", "Val Recall"))
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last) == (1.1197, 1.4197)


@pytest.mark.parametrize("line", ["[###-------] {n}4/1180 frames (  5.4%)", "args: epochs=30, imgsz=640, batch={n}"])
def test_other_things_that_are_counted_or_told_are_no_step(line: str) -> None:
    assert read(lines(line)).step is None


def test_what_one_run_told_of_its_epochs_says_nothing_of_the_next() -> None:
    steps = "".join(f"Step {n}00: loss=0.0{n}05, diffusion=0.0{n}95\n" for n in (1, 2, 3))
    run = "Loading configuration from default.yaml\n" + steps + "Epoch 0/50: train_loss=0.0404, val_loss=0.0058\n"
    found = read(run * 2 + "Step 413: loss=0.0046, diffusion=0.0037\n")
    assert (found.runs, found.epoch, found.epochs) == (2, 0, 50)
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.count) == (0.0105, 4)


@pytest.mark.parametrize("name", ["dev EM", "Exact match", "exact_match", "eval_exact"])
def test_exact_matches_are_a_measure_also_where_they_rise_in_whole_numbers(name: str) -> None:
    reader = LogReader()
    points = reader.feed(lines(f"epoch {{n}} loss 0.{{n}}5\n{name}: {{n}}.0 F1: 1{{n}}.26").encode())
    told = [{**point.metrics, **point.eval_metrics}.get(name) for point in [*points, *reader.close()]]
    assert [value for value in told if value is not None] == [1.0, 2.0, 3.0, 4.0]


def test_the_value_before_is_no_metric_beside_the_value_itself() -> None:
    bar = "Training epochs:  {n}0%|#  | {n}/9 [00:00<00:09,  1.04epoch/s, loss=0.{n}6, prev_loss=0.{n}5]"
    assert set(read(lines(bar, 9)).metrics) == {"loss"}
    assert set(read(lines("epoch {n} loss 0.{n}5 previous acc 0.{n}4")).metrics) == {"loss", "previous acc"}


@pytest.mark.parametrize(
    "name", ["bits/dim", "Bits/dim", "bits per dim", "bits_per_dim", "nats/dim", "bits/char", "bits_per_byte"]
)
def test_bits_for_each_part_of_the_data_are_a_measure(name: str) -> None:
    found = read(lines(f"epoch {{n}} val {name}: 3.{{n}}52") + f"Test {name}: 3.25\n")
    assert set(found.metrics) == {f"val {name}", f"Test {name}"}


@pytest.mark.parametrize("name", ["bits", "num_bits", "bits/weight", "bits per second", "dim", "per dim"])
def test_other_bits_are_none(name: str) -> None:
    assert not read(f"Test {name}: 3.25\n").metrics


@pytest.mark.parametrize("sign", [": ~", "=~", ": ≈", " ≈ ", "~", ": ≈ ", " = ~ "])
def test_a_value_may_be_told_as_an_approximate_one(sign: str) -> None:
    found = read(lines(f"epoch {{n}}: loss{sign}0.{{n}}8, acc{sign}0.5{{n}}"))
    assert found.train_loss is not None
    assert (found.train_loss.last, found.train_loss.count) == (0.48, 4)
    assert set(found.metrics) == {"loss", "acc"}


def test_an_approximate_count_is_no_total() -> None:
    assert read("Total steps: ~5000\n" + lines("step {n} loss 0.{n}8")).steps is None
