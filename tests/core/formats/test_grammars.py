# ruff: noqa: E501 (the lines of logs are long)
"""Each grammar on lines of its own kind, and on the lines next to them that must not count."""

from __future__ import annotations

import pytest

from mpstui.core.formats.grammars import Example, all_grammars, grammar_classes
from mpstui.core.formats.points import ParsedLog
from mpstui.core.formats.reader import LogReader


def parse(text: str) -> ParsedLog:
    reader = LogReader()
    reader.feed(text.encode())
    reader.close()
    return reader.summary()


EXAMPLES = [(grammar.name, example) for grammar in grammar_classes() for example in grammar.examples]
FRAMEWORKS = [  # whose lines name their numbers: the general reader is enough
    Example("iter 0: loss 10.9, time 31.2ms, mfu -100.00%\niter 10: loss 9.5, time 29.1ms, mfu 20.1%\nstep 10: train loss 9.6, val loss 9.7\n", 9.5, losses=2, step=10),
    Example("step 00001/00020 (5.00%) | loss: 10.39 | lrm: 1.00 | dt: 30.1ms | tok/sec: 15,326 | epoch: 1\nStep 00020 | Validation bpb: 3.32\n", 10.39, epoch=1, step=1, steps=20),
    Example("[titan] 2025-01-01 10:00:00,100 - root - INFO - step:  7  loss:  8.1234  grad_norm:  1.2  memory:  8.44GiB(13.20%)  tps: 6,697  tflops: 61.6  mfu: 20.69%\n", 8.1234, step=7),
    Example("Starting training..., iters: 128\nIter 1: Val loss 6.388, Val took 1.4s\nIter 10: Train loss 2.101, Learning Rate 1.000e-05, It/sec 2.9\n", 2.101, step=10, steps=128),
    Example(" iteration       40/     200 | consumed samples: 640 | learning rate: 6.0E-06 | global batch size: 16 | lm loss: 8.50E+00 | loss scale: 65536.0 | number of nan iterations:   0 |\n", 8.5, step=40, steps=200),
    Example("[02/17 01:58:22 d2.utils.events]:  eta: 15:26:30  iter: 19  total_loss: 34.75  loss_ce: 2.663  time: 0.6  lr: 5e-06  max_mem: 7000M\n", 34.75, step=19),
    Example("06/12 10:00:00 - mmengine - INFO - Epoch(train)  [1][ 10/196]  lr: 3.3e-04  eta: 0:10:00  loss: 6.18\n06/12 10:00:01 - mmengine - INFO - Epoch(val) [1][20/20]  acc: 50.0  loss: 9.9\n", 6.18, epoch=1, step=10, steps=196),
    Example("2021-01-01 10:00:00,000 - mmdet - INFO - Epoch [2][50/930]\tlr: 2.0e-02, eta: 1:00:00, loss_cls: 0.5, loss: 1.1\n2021-01-01 10:00:09,000 - mmdet - INFO - Epoch(val) [2][764]\tbbox_mAP: 0.3\n", 1.1, epoch=2, step=50, steps=930),
    Example("Epoch: [1]  [ 20/100]  eta: 0:00:25  lr: 0.001  loss: 8.2773 (8.5)  max mem: 2547\nTest:  [ 0/50]  eta: 0:00:10  loss: 7.0 (7.0)\n", 8.2773, epoch=1, step=20, steps=100),
    Example("Epoch: [0][ 200/5005]\tTime 0.3 ( 0.4)\tLoss 6.9037e+00 (7.0434e+00)\tAcc@1 0.0 (0.1)\nTest: [ 0/196]\tLoss 5.0 (5.0)\n", 6.9037, epoch=0, step=200, steps=5005),
    Example("Train: 3 [  32/33 (100%)]  Loss: 1.336 (4.00)  Time: 0.9s, 8.57/s (0.2s, 36.6/s)  LR: 5.000e-04\nTest: [   0/29]  Time: 0.5 (0.5)  Loss:  0.69 (0.69)\n", 1.336, epoch=3, step=32, steps=33),
    Example("Train Epoch: 1 [12800/60000 (21%)]\tLoss: 0.290000\nTest set: Average loss: 0.1, Accuracy: 9700/10000 (97%)\n", 0.29, epoch=1, step=12800, steps=60000),
    Example("INFO 2025-03-03 10:00:00 ts/train.py:232 step:1K smpl:32K ep:101 epch:2.53 loss:1.226 grdn:1.2 lr:1.0e-05\n", 1.226, epoch=2.53, step=1000),
    Example("2024-01-02 10:00:00 | INFO     | yolox.core.trainer:271 - epoch: 1/300, iter: 10/47, gpu mem: 100Mb, total_loss: 10.7, iou_loss: 4.1, lr: 7.0e-06, size: 640, ETA: 1:00:00\n", 10.7, epoch=1, epochs=300, step=10, steps=47),
    Example("[12-19 10:00:00][demucs.solver][INFO] - Train | Epoch 1 | 100/400 | 2.3 it/sec | Loss 0.42\n[12-19 10:00:00][demucs.solver][INFO] - Valid | Epoch 1 | 10/40 | 2.3 it/sec | Loss 0.9\n", 0.42, epoch=1, step=100, steps=400),
    Example("steps: 10 loss: 2.7001 iter time (s): 1.234 samples/sec: 12.9\n", 2.7001, step=10),
    Example("step  10/614 - loss: 0.1200 - acc: 0.9 - 95ms/step\nEval begin...\nstep  10/100 - loss: 9.0 - acc: 0.5 - 30ms/step\n", 0.12, step=10, steps=614),
    Example("| epoch 001:    100 / 1000 loss=9.2, nll_loss=8.1, ppl=300, wps=1000, num_updates=100, lr=0.0005\n", 9.2, epoch=1, step=100),
    Example("2025-01-01 10:00:00.000\thost:0\tolmo.train:990\tINFO\t[step=10/10000,epoch=0]\n    train/CrossEntropyLoss=9.064\n    train/Perplexity=8,641\n", 9.064, epoch=0, step=10, steps=10000),
]  # fmt: skip


def as_example(text: str, without: str = "") -> Example:
    """What is read of ``text``, by all grammars but one."""
    reader = LogReader(lambda: [grammar for grammar in all_grammars() if grammar.name != without])
    reader.feed(text.encode())
    reader.close()
    found = reader.summary()
    loss = found.train_loss
    last, losses = (loss.last, loss.count) if loss else (None, 0)
    counters = (found.epoch, found.epochs, found.step, found.steps)
    return Example(text, last, losses, *counters, found.learning_rate, found.format or "")


@pytest.mark.parametrize(("grammar", "example"), EXAMPLES, ids=[f"{i}-{e[0]}" for i, e in enumerate(EXAMPLES)])
def test_a_grammar_reads_its_examples_as_no_other_would(grammar: str, example: Example) -> None:
    assert as_example(example.lines) == example._replace(format=example.format or grammar)
    assert as_example(example.lines, without=grammar)._replace(format=example.format) != example


@pytest.mark.parametrize("example", FRAMEWORKS)
def test_lines_that_name_their_numbers_need_no_grammar(example: Example) -> None:
    found = as_example(example.lines)
    assert found._replace(learning_rate=None) == example._replace(format="key-value")


def test_every_grammar_has_examples() -> None:
    assert [grammar.name for grammar in grammar_classes() if not grammar.examples] == []


def test_a_dictionary_over_several_lines_is_one_reading() -> None:
    text = "INFO: Step 9 took 0.3s\nINFO: {'Loss/part_loss': 0.5,\n 'Loss/total_loss': 0.75,\n 'learning_rate': 0.04}\n"
    point = LogReader().feed(text.encode())[-1]
    assert (point.step, point.loss, point.learning_rate, len(point.metrics)) == (9, 0.75, 0.04, 3)


@pytest.mark.parametrize(
    "line",
    [
        "Saving checkpoint at epoch 3, loss 0.41",
        "Best val_loss so far: 0.31",
        "New best loss: 0.25 (epoch 12)",
        "val_loss improved from 0.53 to 0.51, saving model to best.h5",
        "Resumed from epoch 7 (loss=0.3)",
        "eval_loss: 0.5",
        "Test Loss: 0.44 | Test Acc: 81%",
        "validation loss = 1.2",
        "  - loss_weight: 0.5",
        "loss_scale=65536",
        "criterion: CrossEntropyLoss(label_smoothing=0.1)",
        "args: {'lr': 0.1, 'loss': 'mse', 'epochs': 3}",
        "lossless compression ratio 3.5",
        "usage: train.py [--epochs EPOCHS] [--lr LR] [--loss LOSS]",
        "  --loss-weight 0.5   weight of the loss (default: 1.0)",
        "Lost 3 packets",
        "验证损失: 0.5",
        "検証損失: 0.5",
        "wandb:  train/loss 0.5",
        "Evaluating: 100%|██████████| 9/9 [00:01<00:00, 5.0it/s, loss=0.5]",
        "Downloading model: 100%|██████████| 440M/440M [00:10<00:00, 42.1MB/s]",
        "Epoch 3 Train, mae:84.73, mse:100.34, Cost: 715.7 sec",
        "Epoch[32] Time cost=106.624",
        "the loss of 3 engineers was a blow",
        "[Diff-Val(Normal)] Epoch 001 (fixed): loss = 0.0071",
        "Namespace(batch_size=64, epochs=14, lr=1.0, loss=0.5)",
        '127.0.0.1 - - [21/Nov/2026 10:00:01] "GET /api/loss?epoch=3&loss=0.5 HTTP/1.1" 200 612',
        "global_step = 2490, average loss = 0.41956",
        "FutureWarning: loss 0.5 will be removed in version 2.0, please see the documentation of the loss for what to use",
    ],
)
def test_no_training_loss_in(line: str) -> None:
    text = f"{line}\n" * 5
    assert parse(text).train_loss is None


def test_an_evaluation_banner_covers_plain_losses_until_training_goes_on() -> None:
    text = "step 10/100 loss: 0.9\nEvaluating ...\nstep 1/5 loss: 5.5\nstep 2/5 loss: 5.4\nstep 20/100 loss: 0.8\n"
    loss = parse(text).train_loss
    assert loss is not None
    assert (loss.first, loss.last, loss.count) == (0.9, 0.8, 2)


@pytest.mark.parametrize("setting", ["eval:\n  interval: 5", "evaluation_strategy: steps", "val_split=0.1", "test"])
def test_a_setting_is_no_banner(setting: str) -> None:
    loss = parse(f"{setting}\nstep 1 loss: 0.5\nstep 2 loss: 0.4\n").train_loss
    assert loss is not None
    assert loss.count == 2


def test_sections_below_a_banner_belong_to_it() -> None:
    text = "".join(f"Epoch {i}\nTraining:\n  Loss: 0.{i}\nValidation:\n  Loss: 0.9{i}\n" for i in range(1, 5))
    loss = parse(text).train_loss
    assert loss is not None
    assert (loss.first, loss.last, loss.count) == (0.1, 0.4, 4)


def test_an_undescribed_bar_of_another_length_is_another_series() -> None:
    pair = "100%|██████████| 391/391 [00:09<00:00, 42.1it/s, loss=0.{0}]\n100%|██████████| 79/79 [00:01<00:00, 50.0it/s, loss=0.9{0}]\n"
    loss = parse("".join(pair.format(i) for i in (7, 6, 5))).train_loss
    assert loss is not None
    assert (loss.first, loss.last, loss.count) == (0.7, 0.5, 3)


def test_settings_plan_and_never_count() -> None:
    found = parse("num_epochs: 35\nlearning_rate: 0.001\nEpoch 1, Train Loss: 1.5\n")
    assert (found.epoch, found.epochs, found.learning_rate) == (1, 35, 0.001)


def test_a_scheduler_that_speaks_sets_the_rate() -> None:
    found = parse("Epoch 1 loss: 1.5\nAdjusting learning rate of group 0 to 1.0000e-04.\nEpoch 2 loss: 1.4\n")
    assert found.learning_rate == pytest.approx(1e-4)


def test_a_second_launch_in_the_file_starts_a_run() -> None:
    first = "".join(f"epoch {i} loss 0.{9 - i}\n" for i in range(1, 6))
    found = parse(first + "epoch 1 loss 0.7\n")
    assert found.runs == 2
    assert found.train_loss is not None
    assert found.train_loss.count == 1


def test_an_unterminated_number_is_not_a_reading() -> None:
    reader = LogReader()
    reader.feed(b"step 1 loss 0.4531\nstep 2 loss 0.4")
    assert not reader.close()
    whole = LogReader()
    whole.feed(b"step 1 loss 0.4531\nstep 2 loss 0.4412")
    assert len(whole.close()) == 1


def test_evaluation_values_are_kept_apart() -> None:
    reader = LogReader()
    (point,) = reader.feed(b"Epoch 3/9 | train loss: 0.5 acc: 0.8 | val loss: 0.7 acc: 0.6 | lr: 1e-3\n")
    assert point.loss == 0.5
    assert point.metrics["train loss"] == 0.5
    assert point.eval_metrics["val loss"] == 0.7
    assert point.learning_rate == 1e-3


@pytest.mark.parametrize(
    "names",
    [
        ("D_loss", "G_loss"),
        ("Mean value loss", "Mean surrogate loss"),
        ("Value function loss", "Surrogate loss"),
        ("avg_loss_src", "avg_loss_tgt"),
    ],
)
def test_parts_on_lines_of_their_own_leave_no_main_loss(names: tuple[str, str]) -> None:
    text = "".join(f"Learning iteration {i}/90\n{names[0]}: 0.5{i}\n{names[1]}: 0.7{i}\n" for i in range(1, 8))
    found = parse(text)
    assert found.train_loss is None
    assert (found.step, found.steps) == (7, 90)


def test_a_total_on_a_line_of_its_own_is_the_main_loss() -> None:
    text = "".join(f"Epoch {i}/9\n  box_loss: 0.9{i}\n  Total loss: 0.5{i}\n" for i in range(1, 8))
    loss = parse(text).train_loss
    assert loss is not None
    assert (loss.first, loss.last, loss.count) == (0.51, 0.57, 7)


def test_batches_of_an_announced_epoch_begin_again() -> None:
    epoch = "Training at epoch {e} (total 9) with lr 0.1\n" + "".join(
        f"batch count: {b}/308, loss: 0.{b + 1}\n" for b in range(4)
    )
    text = "".join(epoch.format(e=e) + f"Epoch: {e}/9 --- lr: 0.1, avg_loss: 0.9\n" for e in range(1, 4))
    found = parse(text)
    assert found.runs == 1
    assert found.train_loss is not None
    assert found.train_loss.count == 12


def test_an_epoch_on_a_line_above_that_returns_to_its_start_starts_a_run() -> None:
    first = "".join(f"Epoch [{e}/9]\nIter: {e * 100} | Train Loss: 0.{e}\n" for e in range(1, 8))
    found = parse(first + "Epoch [1/9]\nIter: 0 | Train Loss: 0.9\n")
    assert found.runs == 2
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.count, found.epoch) == (0.9, 1, 1)


def test_evaluations_through_older_epochs_do_not_move_the_epoch_back() -> None:
    text = "".join(f"epoch: {e}, loss: 0.{e}\n" for e in range(1, 8))
    found = parse(text + "".join(f"load model epoch {e}\nepoch: {e}, AUC: 0.9, ACC: 0.8\n" for e in range(3, 6)))
    assert (found.epoch, found.runs) == (7, 1)


def test_an_evaluation_tells_the_epoch_where_training_says_nothing() -> None:
    found = parse("".join(f"Epoch {e}/9 | Val loss: 0.5 | Val acc: 0.4\n" for e in range(1, 5)))
    assert (found.epoch, found.epochs, found.train_loss) == (4, 9, None)


def test_a_result_is_no_banner_of_an_evaluation() -> None:
    loss = parse(
        "Minimum validation bpb: 3.32\n" + "".join(f"step {i} ({i}%) | loss: 0.{i}\n" for i in range(1, 5))
    ).train_loss
    assert loss is not None
    assert loss.count == 4


def test_batches_below_the_banner_of_a_test_are_no_training() -> None:
    text = "Evaluating on test set\n" + "".join(f"Batch {b}/50: loss 0.5{b} acc 0.9\n" for b in range(1, 9))
    assert parse(text).train_loss is None


def test_records_may_hold_a_position_and_its_total_in_one_string() -> None:
    line = 'json_stats: {{"_type": "train_epoch", "epoch": "{e}/200", "loss": 1.{e}, "lr": 0.1}}\n'
    found = parse("".join(line.format(e=e) for e in range(1, 5)))
    assert (found.epoch, found.epochs) == (4, 200)


def test_a_bar_that_counts_epochs_is_no_step() -> None:
    found = parse("Training:  50%|█████     | 5/10 [00:01<00:01,  4.0Epoch/s, loss=0.5]\n")
    assert (found.epoch, found.epochs, found.step) == (5, 10, None)


def test_a_multiplier_is_no_learning_rate() -> None:
    assert parse("param.lr_mul = 75.\n" * 3).learning_rate is None
