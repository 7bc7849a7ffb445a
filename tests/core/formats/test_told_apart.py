"""What looks alike on a line and is not: two losses, options beside metrics, an evaluation above training, old bars."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import ParsedLog
from mpstui.core.formats.reader import LogReader


def read(log: str) -> ParsedLog:
    reader = LogReader()
    reader.feed(log.encode())
    return reader.summary()


def lines(form: str, count: int = 3) -> str:
    return "".join(form.format(n=n) + "\n" for n in range(1, count + 1))


@pytest.mark.parametrize(
    ("form", "losses"),
    [
        ("epoch {n} A: loss=0.{n}5, B: loss=0.{n}3", {"A loss", "B loss"}),
        ("Generator | loss: 0.{n}5 | Discriminator | loss: 0.{n}3", {"Generator loss", "Discriminator loss"}),
        ("epoch {n} G: loss 0.{n}5 acc 0.3 D: loss 0.{n}3 acc 0.{n}", {"G loss", "D loss", "D acc"}),
        ("step {n}0 Student Loss: 0.{n}5 | Teacher Loss: 0.{n}3", {"Student Loss", "Teacher Loss"}),
        ("step {n}0, Rec. Loss: 0.{n}5, Adv. Loss: 0.{n}3", {"Rec. Loss", "Adv. Loss"}),
        ("Epoch {n}: Gen. loss: 0.{n}5 | Disc. loss: 0.{n}3", {"Gen. loss", "Disc. loss"}),
    ],
)
def test_two_losses_of_one_line_are_two_curves(form: str, losses: set[str]) -> None:
    found = read(lines(form))
    assert found.train_loss is None
    assert losses <= set(found.metrics)


def test_each_of_two_losses_keeps_its_own_value() -> None:
    (point,) = LogReader().feed(b"epoch 1 A: loss=0.5, B: loss=0.25\n")
    assert dict(point.metrics) == {"A loss": 0.5, "B loss": 0.25}


@pytest.mark.parametrize(
    ("form", "metrics"),
    [
        ("accuracy train: 0.{n}4 test: 0.{n}2", {"accuracy train": 0.34, "accuracy test": 0.32}),
        ("Linear (Train/Val Acc): 0.{n}1/0.{n}2", {"Train Linear Acc": 0.31, "Val Linear Acc": 0.32}),
        ("MAE train: 1.{n} val: 2.{n} test: 3.{n}", {"MAE train": 1.3, "MAE val": 2.3, "MAE test": 3.3}),
        ("loss train: 0.{n}5, val: 0.{n}7, acc train: 0.{n}, val: 0.{n}1", {"loss val": 0.37, "acc val": 0.31}),
    ],
)
def test_a_measure_that_is_named_once_is_that_of_all_splits_behind_it(form: str, metrics: dict[str, float]) -> None:
    point = LogReader().feed(lines(f"epoch {{n}} {form}").encode())[-1]
    found = {**point.metrics, **point.eval_metrics}
    assert {name: found.get(name) for name in metrics} == metrics
    assert not {"test", "val"} & set(found)


def test_errors_of_forecasts_are_measures_of_the_split_that_is_named() -> None:
    form = (
        "| end of epoch {n} | time: 2.5s | train_loss 0.{n}5 | valid rse 0.{n}1 | valid rae 0.{n}2 | valid corr  0.{n}3"
    )
    assert {"valid rse", "valid rae", "valid corr"} <= set(read(lines(form, 1)).metrics)


def test_the_loss_of_the_task_is_the_loss_beside_what_is_distilled() -> None:
    found = read(lines("Iters: {n}0/90 || Lr: 0.01 || Task Loss: 0.{n}5 || KD Loss: 0.{n}3"))
    assert found.train_loss is not None
    assert (found.train_loss.last, found.train_loss.count) == (0.35, 3)
    assert "KD Loss" in found.metrics


def test_values_under_the_heading_of_an_evaluated_epoch_are_no_losses_of_training() -> None:
    epoch = "Training epoch: {n}\n\tmean_loss: 2.{n}5\nEval epoch: {n}\n\tmean_loss: 1.{n}5\n\tTop1: 4{n}.00%"
    reader = LogReader()
    points = reader.feed(lines(epoch).encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last, found.train_loss.count) == (2.15, 2.35, 3)
    assert points[-1].eval_metrics == {"Top1": 43.0}


def test_what_is_evaluated_before_training_is_no_loss_of_it() -> None:
    found = read("Evaluating before training\nloss: 2.5 acc: 0.1\n" + lines("Epoch {n} loss: 1.{n}5"))
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.count) == (1.15, 3)


def test_steps_behind_a_first_evaluation_are_of_training() -> None:
    found = read("Running initial validation...\nval_loss 2.5\n" + lines("step {n} loss 1.{n}5"))
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.count, found.step) == (1.15, 3, 3)


def test_the_values_of_both_splits_are_read_where_only_they_are_named() -> None:
    evaluated = "[train] iter {n}0: loss 4.{n}\n[eval] iter {n}0: train 4.{n}5 val 4.{n}75 lr 0.00{n}"
    found = read(lines(evaluated, 5))
    assert {"train", "val"} <= set(found.metrics)
    assert (found.learning_rate, found.step) == (0.005, 50)
    assert found.train_loss is not None
    assert found.train_loss.count == 5


def test_options_side_by_side_are_no_metrics_and_no_step() -> None:
    options = (
        "Basic Config\n  Task Name:          forecast            Is Training:        {n}\n"
        "Model Parameters\n  Model:              Net                 d model:            {n}28\n"
        "  n heads:            {n}                   d FF:               {n}00\n"
        "  Top k:              {n}                   Activation:         gelu\n"
        "  Num Workers:        1{n}                  Itr:                {n}"
    )
    found = read(lines(options, 4) + lines("Epoch: {n} | Train Loss: 0.{n}5"))
    assert found.metrics == ("Train Loss",)
    assert found.step is None


def test_an_iteration_among_options_is_no_step() -> None:
    options = (
        " Model use_crf: True\n Model use_char: True\n Training:\n Optimizer: SGD\n Iteration: 4\n BatchSize: 10\n"
    )
    points = LogReader().feed((options + "Epoch: 0/4\n Instance: 484; loss: 5902.35\n").encode())
    assert [point.step for point in points] == [None] * len(points)
    assert read(options + "built the model\nIteration: 5\nLoss: 0.5\n").step == 5


def test_batches_of_an_evaluation_are_no_options_before_its_results() -> None:
    tested = "".join(f"Test iter: [{n}/14]\n" for n in range(14)) + "Metric psnr: 28.{n}\nMetric ssim: 0.{n}"
    found = read(lines("Iter: {n}00/9000 lr: 2.0e-04 loss_pixel: 5.{n}\n" + tested))
    assert {"Metric psnr", "Metric ssim"} <= set(found.metrics)


def test_a_sentence_that_ends_with_a_setting_names_no_metric() -> None:
    overflow = "NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: {n}4.0"
    assert read(lines("step {n} loss 0.{n}5\n" + overflow, 5)).metrics == ("loss",)


def test_the_number_of_a_batch_between_rules_is_a_place() -> None:
    found = read("**** EPOCH 003 ****\n" + lines(" ---- batch: 0{n}0 ----\nmean loss/overall_loss: 1.{n}5"))
    assert (found.epoch, found.step) == (3, 30)


BAR = "100%|##########| 24/24 [00:{seconds}<00:00, 24.00it/s]"


def test_what_was_done_in_a_moment_before_training_is_no_step_of_it() -> None:
    first = "\r  0%|          | 0/24 [00:00<?, ?it/s]"
    assert read(f"{first}\r{BAR.format(seconds='00')}\nStarting\n").step is None
    found = read(f"{first}\r{BAR.format(seconds='48')}\n")
    assert (found.step, found.steps) == (24, 24)


def test_a_bar_of_an_earlier_epoch_is_behind_the_step_that_a_line_tells() -> None:
    bar = "Epoch 2: 100%|####| 35/35 [00:53<00:00,  6.56it/s, loss=0.5]\n"
    found = read(bar + "Epoch 9, global step 350: 'val/accuracy' was not in top 1\n")
    assert (found.epoch, found.step) == (9, 350)


def test_the_epochs_of_a_configuration_in_one_dictionary_are_planned() -> None:
    told = "{'phase': 'train', 'start_epoch': 0, 'num_epoch': 80, 'device': [0], 'step': [10, 20], 'optimizer': 'SGD'}"
    found = read(f"Parameters:\n{told}\n" + lines("Training epoch: {n}\n\tmean_loss: 2.{n}5"))
    assert (found.epoch, found.epochs) == (3, 80)


def test_epochs_deep_in_a_configuration_are_not_those_of_the_run() -> None:
    told = "config {'enabled': False, 'on': 'cpu', 'kind': 'x', 'data': {'enabled': False, 'num_epochs': 1000, 'n': 0}}"
    assert read(f"{told}\n" + lines("Epoch {n} loss: 2.{n}5")).epochs is None


def test_a_loss_that_is_seldom_printed_begins_a_run_where_the_epoch_is_back_at_its_start() -> None:
    launch = "Training epoch: 0\n\tIter 0 Done. | loss: 1.5\n" + lines("Training epoch: {n}\n\tmean_loss: 2.{n}5", 5)
    reader = LogReader()
    points = reader.feed(2 * launch.encode())
    assert reader.summary().runs == 2
    assert [point.run for point in points if "loss" in point.series and point.loss == 1.5] == [0, 1]


PROSE = (
    "1. **Calculate the cost of the distance:** The taxi charges 2 a km, so the cost of the distance is 12 * $2 = $24.",
    "   - Total cost = $5 (base fare) + $24 (distance charge) = $29",
    "   * Distance = 38 km/h × 2 h = 76 km",
    "**Final answer: {n}**",
    "2. **Calculate total cost:** The total cost is the cost of the book plus the shipping: $18 + $2.70 = $20.70.",
)


@pytest.mark.parametrize("prose", PROSE)
def test_what_a_model_has_written_is_no_loss_and_no_metric(prose: str) -> None:
    found = read(lines("reward is 0.{n}9\n" + prose.replace("24", "2{n}").replace("76", "7{n}"), 5))
    assert found.train_loss is None
    assert set(found.metrics) <= {"reward"}
    assert found.step is None


@pytest.mark.parametrize(
    ("form", "epoch", "step"),
    [
        ("Epoch[5] Batch [0-{n}0]\tSpeed: 25.7 samples/sec\tRPNAcc=0.9{n}", 5, 30),
        ("[2023-11-21:15:15:53:INFO:sockeye.training:__call__] E=9 B=24{n}50\ttok/sec=17331.92\tppl=92.{n}", 9, 24350),
        ("Train {n}, loss: 1.{n}5, train acc: 0.9{n}", 3, None),
    ],
)
def test_places_as_some_programs_abbreviate_them(form: str, epoch: int, step: int | None) -> None:
    found = read(lines(form))
    assert (found.epoch, found.step) == (epoch, step)


@pytest.mark.parametrize(
    "line",
    [
        "[Adam] epoch {n} Tot: 7.9{n}e+00 PDE: 2.{n}e-03/2.6e-04/3.9e-04 IF: 3.1e+00/{n}.7e-02/1.1e-01",
        "epoch {n} loss: 0.{n}5, 'cls_output': ({n}6, 8, 400), 'box_output': ({n}6, 4)",
        "cfg.max_len: 1{n}\nepoch {n} loss: 0.{n}5",
    ],
)
def test_parts_of_a_whole_and_shapes_and_what_was_told_are_no_metrics(line: str) -> None:
    found = read(lines(line))
    assert found.train_loss is not None
    assert set(found.metrics) <= {"Tot", "loss"}


def test_an_evaluation_goes_on_behind_the_best_so_far() -> None:
    line = "Epoch[{n}] - Iter: [0/13]\tLoss 3.{n}\nTest:\tTime 4.750\tLoss 1.{n}\tAcc@1 2{n}.24\tBest Acc@1 so far 27.2"
    assert {"Test Loss", "Test Acc@1"} <= set(read(lines(line)).metrics)


def test_the_number_of_a_checkpoint_is_no_remark_about_one() -> None:
    line = "E={n} B={n}50\tppl=92.{n}\nCheckpoint [{n}]\tValidation-ppl=16{n}.8\tValidation-chrf=10.{n}8"
    assert {"Validation-ppl", "Validation-chrf"} <= set(read(lines(line)).metrics)


def test_as_many_updates_beside_an_epoch_are_a_place() -> None:
    found = read(lines("loss=0.{n}\nCheckpoint [{n}]\tUpdates={n}000 Epoch={n}"))
    assert (found.epoch, found.step, found.steps) == (3, 3000, None)


def test_nobody_plans_no_epochs() -> None:
    assert read('"training_epochs": 0,\n' + lines("Epoch {n} loss: 2.{n}5")).epochs is None


def test_training_goes_on_behind_an_evaluation_where_two_losses_leave_none() -> None:
    evaluation = "=== MODEL VALIDATING ===\n+ Validation accuracy: 0.469\n"
    train = "Train step: {n}0/90, GEN Train loss: 4.{n}, ENC Train loss: 1.{n}, Train accuracy: 0.2{n}"
    found = read((lines(train, 1) + evaluation) * 2 + lines(train))
    assert (found.step, found.steps, found.train_loss) == (30, 90, None)
    assert {"GEN Train loss", "ENC Train loss", "Train accuracy", "Validation accuracy"} == set(found.metrics)


@pytest.mark.parametrize(
    ("form", "epoch", "step"),
    [
        ("2018-12-25 11:49:25,609 - log/log.txt - INFO - [epoch:{n}] [step:0] loss:66.{n}", 3, 0),
        ("[{n}: 7/12] train loss: 0.{n}17 accuracy: 0.7{n}", 3, 7),
        ("Iter: {n}00    training-loss, overall: 0.9{n}    \nIter: {n}00    training-metric, acc: 0.5{n}", None, 300),
        ("step {n}00 loss 0.{n}\nTotal Optimization Iterations: {n}12 iterations completed", None, 312),
    ],
)
def test_places_in_brackets_and_behind_groups(form: str, epoch: int | None, step: int) -> None:
    found = read(lines(form))
    assert (found.epoch, found.step) == (epoch, step)
    assert found.train_loss is not None
    assert found.train_loss.count == 3


def test_arguments_of_a_program_that_crashed_are_no_place() -> None:
    found = read("Namespace(epoch=60000, imgsz=28, k_qry=15, meta_lr=0.001, update_step=5)\nTraceback: no\n")
    assert (found.epoch, found.step) == (None, None)


def test_what_a_checkpoint_was_kept_for_is_an_evaluation() -> None:
    kept = (
        "Epoch {n}, global step {n}50: 'val_wer' reached 0.1{n}5 (best 0.1{n}5), saving model to '/a/b.ckpt' as top 3"
    )
    assert "val_wer" in read(lines(kept)).metrics


def test_how_often_something_is_recorded_among_lists_is_an_option() -> None:
    longer = "data_aug: {'flip_prob': 0.5, " + ", ".join(f"'limit_{n}': [{n}, {n}]" for n in range(30)) + "}"
    options = (
        f"name: timesformer\nmode: train\nsize: 224\n{longer}\nseed: 1\nloss_func: ce\nworkers: 8\nrec_iter: 100\n"
    )
    found = read(f"{options}spread: 0.5\n" + lines("Epoch {n} loss: 0.{n}, acc: 0.{n}\nHR: 0.6{n}, NDCG: 0.3{n}"))
    assert set(found.metrics) == {"loss", "acc", "HR", "NDCG"}


@pytest.mark.parametrize("change", ["change lr to 1.0e-03", "Setting learning rate to 0.001", "set lr to 0.001"])
def test_a_new_learning_rate_in_a_sentence(change: str) -> None:
    assert read(f"epoch 1 loss: 0.5\n{change}\nepoch 2 loss: 0.4\n").learning_rate == 0.001


@pytest.mark.parametrize(
    ("form", "epoch"),
    [
        ("---Epoch.{n} Train Log-Loss per event: 4.{n}5\n---Epoch.{n} Val Log-Loss per event: 2.{n}; MAPE: 0.{n}", 9),
        ("('Epoch: ', {n})\n('loss: ', 0.{n}5, 'MAPE', 0.{n})", 9),
        ("Epoch {n} finished with train loss 0.{n}5", 9),
    ],
)
def test_the_number_of_the_epoch_is_in_no_name(form: str, epoch: int) -> None:
    found = read(lines(form, 9))
    assert found.epoch == epoch
    assert found.train_loss is not None
    assert found.train_loss.count == 9
    assert len(found.metrics) <= 3


def test_a_number_in_a_name_that_counts_on_with_training_makes_no_metric_of_each() -> None:
    counted = "epoch {n} loss 0.{n}5\nsnapshot{n} mIoU: 0.5{n}\n"
    twice = "".join(counted.format(n=n) for n in range(1, 60)) * 3
    assert len([name for name in read(twice).metrics if "snapshot" in name]) <= 9


def test_classes_that_are_told_together_are_metrics_however_many_they_are() -> None:
    evaluation = "".join(f"class{n} IoU: 0.{n}{{n}}\n" for n in range(30))
    found = read(lines("epoch {n} loss 0.{n}5\n" + evaluation.rstrip("\n"), 3))
    assert {f"class{n} IoU" for n in range(30)} <= set(found.metrics)


def test_options_side_by_side_are_none_of_them_metrics_though_one_is_a_cost() -> None:
    options = "path: ./a.yaml | seed: 42 | cost_class: 2.0 | cost_bbox: 5.0 | amp: False | crop: None | sizes: [48, 51]"
    more = "size: 8 | hue: 0.2 | contrast: 0.4 | resume: None | epochs: 20 | workers: 6"
    found = read(f"{options} | {more}\n" + lines("[Epoch: 1] [{n}0/90] loss = 0.{n}5"))
    assert found.metrics == ("loss",)
    assert (found.epoch, found.step) == (1, 30)


def test_a_vague_device_leaves_the_one_that_was_named() -> None:
    reader = LogReader()
    reader.feed(b"Using device: cuda\nUsing single GPU for training\nepoch 1 loss 0.5\n")
    assert reader.standing.device == "cuda"


def test_so_many_in_total_are_no_metric() -> None:
    found = read(lines("Sequence {n}: 1{n}079 triplets (total: 2{n}056)\nepoch {n} loss 0.{n}5\nlearn_rate:0.00{n}"))
    assert set(found.metrics) == {"loss", "learn_rate"}
    assert found.learning_rate == 0.003


def test_how_many_hits_are_looked_at_and_of_what_is_part_of_the_name() -> None:
    told = "## MRR (raw_ent): 0.3{n}\n## Hits (raw_ent) @ 1: 0.2{n}\n## Hits (raw_ent) @ 10: 0.5{n}\n"
    told += "## MRR (raw_rel): 0.4{n}"
    found = set(read(lines("Epoch {n} loss 1.{n}5\n" + told)).metrics)
    assert {"MRR (raw_ent)", "Hits@1 (raw_ent)", "Hits@10 (raw_ent)", "MRR (raw_rel)"} <= found


def test_a_place_in_brackets_with_a_comma_and_a_total() -> None:
    found = read(lines("INFO:root:[2,  {n}50/ 2562] - train_losses - Parent Class: 4.{n} - Children class: 0.2{n}"))
    assert (found.epoch, found.step, found.steps) == (2, 350, 2562)


def test_chinese_totals_are_the_loss_and_counts_of_parameters_no_metric() -> None:
    line = "总参数: {n}3,284\nEpoch [{n}/9] 训练总结 | 学习率: 0.001 | 平均LR损失: 2.{n} | 平均总损失: 8.{n}5"
    found = read(lines(line))
    assert found.train_loss is not None
    assert (found.train_loss.last, found.learning_rate) == (8.35, 0.001)
    assert "总参数" not in found.metrics
    assert "平均LR损失" in found.metrics


@pytest.mark.parametrize(
    "setting", ["initial learning rate: 0.01\n", f"| {'Init_lr':>24} | {0.0001:>40}|\n{'-' * 70}\n"]
)
def test_the_initial_learning_rate_has_no_curve(setting: str) -> None:
    assert read(setting + lines("epoch {n} loss 1.{n}")).metrics == ("loss",)


def test_the_first_record_below_testing_is_no_loss_of_training_and_the_next_one_is() -> None:
    once = "Testing the model ...\nepoch: 0, loss: 2.75\nepoch: 0, loss: 1.25\n"
    later = "epoch: {n}, loss: 1.{n}5\nTesting the model ...\nepoch: {n}, loss: 2.{n}5\nNow training ..."
    found = read(once + lines(later))
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last, found.train_loss.count) == (1.25, 1.35, 4)


def test_only_evaluations_behind_the_opening_line_are_another_run() -> None:
    opening = "Starting with options {'path': '/data/x', " + "'layers': 3, " * 40 + "'name': 'net'}\n"
    first = opening + "Training Epoch: 1, loss: 0.25\n" + lines("Validating Epoch: {n}, accuracy: 0.9{n}")
    crashed = opening * 10
    found = read(first + crashed + opening + lines("Validating Epoch: {n}, accuracy: 0.8{n}", 2))
    assert found.train_loss is None
    assert (found.epoch, found.runs) == (2, 2)


def _steps(*steps: int, loss: str = "Train Loss: {n}.5 | ") -> str:
    told = (f"Iter: {n} | {loss.format(n=n)}Dev Loss: 2.{n} | Dev F1: 0.{n}\n" for n in steps)
    return "Epoch [1/50]\n" + "".join(told)


def test_a_launch_whose_lines_tell_no_training_loss_any_more_has_none() -> None:
    found = read(_steps(0, 100, 200) + _steps(0, 100) + _steps(0, 100, loss=""))
    assert (found.train_loss, found.epoch, found.epochs, found.runs) == (None, 1, 50, 3)
    again = read(_steps(0, 100) + _steps(0, loss="") + _steps(0, 100, 200))
    assert again.train_loss is not None
    assert again.train_loss.count == 3


@pytest.mark.parametrize(
    "evaluated",
    [
        _steps(200, loss=""),
        "Epoch [2/50]\n" + _steps(0, loss="").partition("\n")[2],
        "Iter: 0 | Test Loss: 1.5\nIter: 1 | Test Loss: 1.6\n",
        "resuming from checkpoint.pt\n" + _steps(0, loss=""),
    ],
    ids=["a later step", "a next epoch", "batches of its own", "a resume"],
)
def test_an_evaluation_behind_training_is_no_other_launch(evaluated: str) -> None:
    found = read(_steps(0, 100, 200) + evaluated)
    assert found.train_loss is not None
    assert (found.train_loss.count, found.runs) == (3, 1)


def test_numbered_headings_of_what_a_program_does_are_no_steps() -> None:
    found = read("[1/3] Reading the buffers ...\n[2/3] Drawing 5 samples ...\n" + lines("ep={n}: loss=0.{n}5"))
    assert (found.epoch, found.step, found.steps) == (3, None, None)
    assert read("[20/300] steps done\n").step == 20


@pytest.mark.parametrize("option", ["valid=dev", "phase=val", "split=test"])
def test_an_option_that_names_the_split_says_whose_values_follow(option: str) -> None:
    reader = LogReader()
    points = reader.feed(lines(f"ep=0{{n}} loss=2.{{n}}5 err=0.{{n}} {option} loss=1.{{n}}5 err=0.4{{n}}").encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last) == (2.15, 2.35)
    assert sorted(points[-1].eval_metrics.values()) == [0.43, 1.35]


def test_the_rate_in_a_printed_dictionary_is_the_planned_one() -> None:
    options = '{\n  "batch_size": 512,\n  "lr": 0.0001,\n  "lr_min": -1.0,\n  "epochs": 40\n}\n'
    found = read(options + lines("epoch: {n} loss: 0.{n}5"))
    assert (found.learning_rate, found.epochs) == (0.0001, 40)


@pytest.mark.parametrize("form", ["T_Loss 1.{n}5 | V_Loss 2.{n}5", "t_loss 1.{n}5 | v_loss 2.{n}5"])
def test_of_two_losses_told_apart_by_a_letter_that_of_training_is_the_loss(form: str) -> None:
    found = read(lines("Epoch: {n} | " + form))
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last, found.train_loss.count) == (1.15, 1.35, 3)


def test_a_final_loss_that_is_told_once_is_no_training() -> None:
    report = "{{'steps': {n}00, 'tokens_per_second': 14{n}.5, 'final_loss': 0.{n}}}"
    assert read("step=500 confidence=0.75\n" + lines(report, 1)).train_loss is None
    assert read(lines("step {n} part_a 0.{n} final_loss 0.{n}5", 4)).train_loss is not None


def test_the_iterations_of_a_test_are_none_of_training() -> None:
    split = '{{"cur_iter": "{n}00", "eta": "0:08:24", "split": "test_iter", "time_diff": 0.2}}'
    found = read("Testing model for 2365 iterations\n" + lines("json_stats: " + split))
    assert (found.step, found.steps) == (None, None)


def test_where_a_program_starts_is_a_setting() -> None:
    assert read("SOLVER:\n  START_EPOCH: 1\n  MAX_EPOCH: 200\n" + lines("loss: 0.{n}5")).epoch is None
    assert read("Start epoch 4 ====\n").epoch == 4


def test_steps_in_thousands_beside_the_batch_of_an_epoch_are_no_better_count() -> None:
    form = "\r| Epoch: {}/5 ({}/20) | Loss: 11.{}{} | 0.3 steps/s | Step: 0k | "
    reader = LogReader()
    points = reader.feed("".join(form.format(e, b, 9 - e, 9 - b) for e in (1, 2) for b in (1, 2, 3)).encode() + b"\n")
    assert [(point.epoch, point.counters.epoch_step, point.counters.step) for point in points][-1] == (2, 3, None)
    assert (reader.summary().step, reader.summary().steps) == (3, 20)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("step {n}, loss 0.{n}5, Mel-Spec. Error : 0.{n}3", "Mel-Spec. Error"),
        ("step {n} loss 0.{n}5 | Cls. Acc: 0.{n}3", "Cls. Acc"),
        ("Epoch {n} done. Accuracy: 0.{n}3, loss: 0.{n}5", "Accuracy"),
        ("Epoch {n} | loss: 0.{n}5 | Finished. Accuracy: 0.{n}3", "Accuracy"),
        ("Epoch {n} end. loss: 0.{n}5. Accuracy: 0.{n}3", "Accuracy"),
    ],
)
def test_a_word_cut_short_is_part_of_a_name_and_the_end_of_a_sentence_is_not(form: str, name: str) -> None:
    assert read(lines(form)).metrics[1 - form.count("done")] == name


def test_the_seconds_of_a_batch_are_no_metric() -> None:
    assert read(lines("step {n}, loss 0.{n}5, s/b : 0.{n}3, ms/b: 1{n}.5")).metrics == ("loss",)


def _each_epoch(log: str) -> dict[str, list[float]]:
    reader, told = LogReader(), dict[str, list[float]]()
    for point in reader.feed("".join(log.replace("#", str(epoch)) for epoch in (1, 2, 3)).encode()):
        for name, value in point.eval_metrics.items():
            told.setdefault(name, []).append(value)
    return told


def test_what_headings_of_validation_and_test_stand_over_are_two_curves() -> None:
    ranks = "Hits @10: 0.{}#\nMean rank: 2{}#.5\nMean reciprocal rank: 0.{}#\n"
    log = f"#\n1.5#25\n0.{9}#21\nValidation:\n{ranks.format(1, 1, 1)}Test:\n{ranks.format(2, 2, 2)}"
    told = _each_epoch(log)
    assert list(told) == [f"{whose}{name}" for whose in ("", "Test ") for name in _RANKS]
    assert (told["Hits@10"], told["Test Mean rank"]) == ([0.11, 0.12, 0.13], [221.5, 222.5, 223.5])


_RANKS = ("Hits@10", "Mean rank", "Mean reciprocal rank")


def test_headings_of_one_kind_and_names_that_say_it_need_no_word_more() -> None:
    told = _each_epoch("Epoch # loss: 1.#5\nTesting...\nAccuracy: 9#.5\n")
    assert told == {"Accuracy": [91.5, 92.5, 93.5]}
    told = _each_epoch("Epoch # loss: 1.#5\nValidation:\nVal accuracy: 9#.5\nTest:\nTest accuracy: 8#.5\n")
    assert told == {"Val accuracy": [91.5, 92.5, 93.5], "Test accuracy": [81.5, 82.5, 83.5]}


def test_the_rank_of_a_process_or_of_a_matrix_is_no_mean_rank() -> None:
    reader = LogReader()
    for epoch in (1, 2, 3):
        reader.feed(f"rank: {epoch}\nlora rank: {8 * epoch}\nEpoch {epoch} loss: 1.{epoch}5\n".encode())
    assert reader.summary().metrics == ("loss",)


def test_bars_of_two_networks_that_are_trained_at_once_have_no_common_loss() -> None:
    bars = "<{}> | training loss: {:.3f} |:  {n}0%|###   | {n}/10 [00:0{n}<00:01,  2.00it/s]"
    frames = [
        bars.format(name, loss + n / 10, n=n) for n in range(1, 9) for name, loss in (("MAIN", 0.125), ("VAE", 5.125))
    ]
    reader = LogReader()
    reader.feed(("\r".join(frames) + "\n").encode())
    found = reader.summary().train_loss
    assert found is not None
    assert (found.first, found.last, found.count) == (0.225, 0.925, 8)


def test_a_bar_whose_stage_changes_goes_on_with_its_loss() -> None:
    bars = "[{}] loss: {:.3f}:  {n}0%|###   | {n}/10 [00:0{n}<00:01,  2.00it/s]"
    frames = [
        bars.format(stage, 1.125 - n / 10, n=n) for stage, last in (("warmup", 9), ("tune", 4)) for n in range(1, last)
    ]
    reader = LogReader()
    reader.feed(("\r".join(frames) + "\n").encode())
    found = reader.summary().train_loss
    assert found is not None
    assert found.last == 0.825


def _loops(*loops: tuple[str, int, int, float]) -> str:
    """Lines of the epochs of loops, each with its word, its epochs, its steps of each and its first loss."""
    form = "{} Training: Epoch {:04d} Iter {:04d} / {:04d} | Time 0.1s | Iter Loss {:.4f}\n"
    most = max(epochs for _, epochs, _, _ in loops)
    return "".join(
        form.format(word, epoch, step, steps, loss - epoch / 10 - step / 1000)
        for epoch in range(1, most + 1)
        for word, epochs, steps, loss in loops
        for step in range(5, steps + 1, 5)
        if epoch <= epochs
    )


def test_two_loops_of_each_epoch_are_one_run_and_have_no_common_loss() -> None:
    reader = LogReader()
    reader.feed(_loops(("CF", 4, 25, 9.0), ("KG", 4, 35, 2.0)).encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.runs, found.epoch, found.train_loss.count, found.train_loss.first) == (1, 4, 28, 1.895)


def test_a_training_behind_another_one_is_the_newest_whatever_heads_its_lines() -> None:
    reader = LogReader()
    reader.feed((_loops(("Teacher", 5, 30, 9.0)) + _loops(("Student", 2, 30, 2.0))).encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.runs, found.epoch, found.train_loss.count, found.train_loss.last) == (2, 2, 12, 1.77)
