"""What the numbers of a line are: whose value, of what, and which of them are no values at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpstui.core.formats.files import read_log
from mpstui.core.formats.points import MetricPoint
from mpstui.core.formats.reader import LogReader

_DECIMALS = re.compile(r"(?<=[.])(\d*)(\d)")


def read(text: str) -> MetricPoint:
    """The point of a text, which is printed for the second time, with other decimals: settings stay as they are."""
    before = _DECIMALS.sub(lambda match: f"{match[1]}{(int(match[2]) + 1) % 10}", text)
    reader = LogReader()
    return [*reader.feed(f"{before}\n{text}\n".encode()), *reader.close()][-1]


@pytest.mark.parametrize(
    ("line", "train", "evaluated"),
    [
        ("  Train: Loss=1.75, Acc=35.00%", {"Loss": 1.75, "Acc": 35.0}, {}),
        ("  Test:  Loss=1.65, Acc=38.00%", {}, {"Test Loss": 1.65, "Test Acc": 38.0}),
        ("Val   loss: 0.71 acc: 0.52", {}, {"Val loss": 0.71, "Val acc": 0.52}),
        ("[Val] Epoch 3 loss: 0.71 mIoU: 0.52", {}, {"Val loss": 0.71, "Val mIoU": 0.52}),
        ("Epoch 3 (validation): loss=0.71 acc=0.52", {}, {"validation loss": 0.71, "validation acc": 0.52}),
        ("Test: [6/8]\tTime  0.15 ( 0.22)\tLoss 5.5e-02 (3.1e+00)", {}, {"Test Loss": 3.1}),
        (
            "Test: [   4/4]  Time: 0.1 (0.2)  Loss:   0.5 ( 0.75)  Acc@1: 100.000 ( 50.000)",
            {},
            {"Test Loss": 0.75, "Test Acc@1": 50.0},
        ),
        ("Epoch: [0][6/8]\tLoss 5.5e-02 (3.1e+00)", {"Loss": 0.055}, {}),
        ("[ Valid | 003/100 ] loss = 1.5, acc = 0.4", {}, {"Valid loss": 1.5, "Valid acc": 0.4}),
        ("Eval  batches[  100]      | loss  5.55", {}, {"Eval loss": 5.55}),
        ("  [eval] step   48000 | val_loss 4.075", {}, {"val_loss": 4.075}),
        ("Accuracy of the network on the 10000 test images: 54.5 %", {}, {"test Accuracy": 54.5}),
        ("| End of training | test loss  5.4 | test ppl   221.4", {}, {"test loss": 5.4, "test ppl": 221.4}),
        ("epoch 3 Batch: 0.862, 21.7084/s, 21.7084/s/gpu LR: 0.05 Loss: 1.25", {"LR": 0.05, "Loss": 1.25}, {}),
        (
            "validation loss at iteration 70 on validation set | lm loss value: 6.5E+00 | lm loss PPL: 6.75E+02 |",
            {},
            {"validation lm loss value": 6.5, "validation lm loss PPL": 675.0},
        ),
        (
            "epoch:20, time: 12.5(s), valid (NDCG@10: 0.41, HR@10: 0.62), test (NDCG@10: 0.38, HR@10: 0.59)",
            {},
            {"valid NDCG@10": 0.41, "valid HR@10": 0.62, "test NDCG@10": 0.38, "test HR@10": 0.59},
        ),
        ("epoch 3 loss: 0.5 IoU: 42.6  0.0 11.5  3.2  7.1", {"loss": 0.5}, {}),
        ("epoch 3, phase train, step 10, loss_train, 0.838", {"loss_train": 0.838}, {}),
        ("epoch 3, step 10, using l1_loss, 0.5", {}, {}),
        ("epoch 3 acc: 0.5, cost: 0.25 min, ETA: 3.5 min", {"acc": 0.5}, {}),
        ("acc_seen,acc_unseen 0.187 0.516", {"acc_seen": 0.187, "acc_unseen": 0.516}, {}),
        ("step 3 loss 0.5 score within 1.25×optimal: 90.7%", {"loss": 0.5, "score within optimal": 90.7}, {}),
        ("epoch 3 loss: 0.75 min: 0.25", {"loss": 0.75}, {}),
        ("iter 10 1e3*loss: 5.5", {"loss": 5.5}, {}),
        ("Audio Event Detection Segment-level F1: 41.5", {"Audio Event Detection Segment-level F1": 41.5}, {}),
        ("step 20, mean reward over the last 100 games: 1.5", {"mean reward": 1.5}, {}),
        ("epoch 3 top 1 acc: 0.61, top 5 acc: 0.92", {"top_1_acc": 0.61, "top_5_acc": 0.92}, {}),
        ("**Epoch: 001/020 | Test. Acc.: 97.430% | Loss: 0.08", {}, {"Test Acc.": 97.43, "Test Loss": 0.08}),
        ("    Test net output #0: loss = 2.65 (* 1 = 2.65 loss)", {}, {"Test loss": 2.65}),
        (
            "INFO:tensorflow:[ 10000] | gnorm  1.19 lr  0.001 | loss  5.55",
            {"gnorm": 1.19, "lr": 0.001, "loss": 5.55},
            {},
        ),
        ("Epoch 1 | Train Loss 0.5 | Val Loss 0.6 | Time 3s", {"Train Loss": 0.5}, {"Val Loss": 0.6}),
        (
            "Epoch 2 Train Loss 0.5 Acc 0.6 | Test Loss 0.7 Acc 0.4 | grad_norm 1.2",
            None,
            {"Test Loss": 0.7, "Test Acc": 0.4},
        ),
        ("第3轮 训练损失: 0.5 验证损失: 0.7", {"训练损失": 0.5}, {"验证损失": 0.7}),
        ("│      test_loss_epoch      │    0.0445    │", {}, {"test_loss_epoch": 0.0445}),
        ("    test_loss_epoch         0.0445", {}, {"test_loss_epoch": 0.0445}),
        ("Epoch 4, val loss is 0.25, val mse is 0.0625.", {}, {"val loss": 0.25, "val mse": 0.0625}),
        ("Epoch 4, Step 25, mean loss so far is 0.25", {"mean loss so far": 0.25}, {}),
        ("05/31 02:36:30 PM valid_acc 38.5", {}, {"valid_acc": 38.5}),
        ("05/31 02:36:30 PM train_acc 38.5", {"train_acc": 38.5}, {}),
        ("epoch: 3, batch: 200, mean dev loss: 0.25, best: True", {}, {"mean dev loss": 0.25}),
        ("DEV  : loss 1.5 - f-score 0.25 - acc 0.5", {}, {"DEV loss": 1.5, "DEV f-score": 0.25, "DEV acc": 0.5}),
        (
            "Epoch 8: v_kl 3.5  kl 2.5  v_loss 1.5  loss 0.5  v_fid 4.5",
            {"kl": 2.5, "loss": 0.5},
            {"v_kl": 3.5, "v_loss": 1.5, "v_fid": 4.5},
        ),
        ("Epoch 8: loss 0.5  v_pot 4.5", {"loss": 0.5, "v_pot": 4.5}, {}),
        (
            "3 Train(L=0.5 | A=0.25) Valid(L=0.75 | A=0.5)",
            {"L": 0.5, "A": 0.25},
            {"Valid L": 0.75, "Valid A": 0.5},
        ),
        ("step 3 loss 0.5 [5HT:0.25 DA:0.75]", {"loss": 0.5, "5HT": 0.25, "DA": 0.75}, {}),
        ("F1 (weighted): 0.25", {"F1 (weighted)": 0.25}, {}),
        ("CV acc (5-fold): 0.25", {}, {"CV acc": 0.25}),
        ("Best validation accuracy: 16.5%", {}, {"Best validation accuracy": 16.5}),
        ("Done: the best validation accuracy of it is 0.75 in epoch 9.", {}, {"best validation accuracy of it": 0.75}),
        ("Episode 3/30, Steps: 6, Score: 44", {"Score": 44.0}, {}),
        ("Ep 3 | L_train 0.5 | L_val 0.75 | acc_val 0.25", None, {"L_val": 0.75, "acc_val": 0.25}),
        ("Epoch 3: train_loss 0.5 (best 0.25), val_loss 0.75 (best 0.5)", {"train_loss": 0.5}, {"val_loss": 0.75}),
        ("Step 3 | Loss (policy): 0.5 | Return: 0.75", {"Loss (policy)": 0.5, "Return": 0.75}, {}),
        ("Test acc on best model = 0.75", {}, {"Test acc on best model": 0.75}),
        ("After 300 iterations, training cost = 0.5, test acc = 81%", None, {"test acc": 81.0}),
        (
            '{"epoch": 3, "train": {"loss": 0.5, "acc": 0.25}, "val": {"loss": 0.75}}',
            {"train/loss": 0.5, "train/acc": 0.25},
            {"val/loss": 0.75},
        ),
        (
            " Average Recall     (AR) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = 0.25",
            {},
            {"ARs@100": 0.25},
        ),
        (
            " Average Precision  (AP) @[ IoU=0.75      | area=   all | maxDets=100 ] = 0.25",
            {},
            {"AP75@100": 0.25},
        ),
        (
            "Epoch is [1/20], mini-batch is [3/200], time consumption is 1.5, batch_loss is 0.5",
            {"batch_loss": 0.5},
            {},
        ),
        ("val: {'loss': 0.75, 'acc': 0.25}", {}, {"val loss": 0.75, "acc": 0.25}),
        (
            "Epoch 3 {'total acc': np.float64(26.5), '00-01': np.float64(26.5), 'new acc': jnp.float32(22.5)}",
            {"total acc": 26.5, "new acc": 22.5},
            {},
        ),
        (
            "Task 2, Epoch 3/8 => Loss 0.5, Train_accy 93.75, Test_accy 25.0",
            {"Loss": 0.5, "Train_accy": 93.75},
            {"Test_accy": 25.0},
        ),
        ("valid: dice_loss - 0.4979, iou_score - 0.3206", {}, {"valid dice_loss": 0.4979, "valid iou_score": 0.3206}),
        (
            "Accuracy for 3 task(s): \t [Class-IL]: 36.3 % \t [Task-IL]: 50.95 %",
            {"Accuracy Class-IL": 36.3, "Accuracy Task-IL": 50.95},
            {},
        ),
        ("Epoch 3 loss: 0.5 curves: [np.float64(71.5), np.float64(26.5), np.float64(2.5)]", {"loss": 0.5}, {}),
        ("[Eval FINAL]: {'loss': 0.75}", {}, {"val loss": 0.75}),
        ("Epoch 3 acc: 79.5 (best 80.5 at 2) loss: 0.5", {"acc": 79.5, "loss": 0.5}, {}),
        ("\t # psnr: 26.5\tBest: 27.0 @ 1600 iter", {"psnr": 26.5}, {}),
        ("New Best Dice: 0.75", {"Best Dice": 0.75}, {}),
        ("Score at step 300 is 1.5", {"Score": 1.5}, {}),
        ("[Train 10/200] {'grads_finite': 1.0, 'train_loss': 0.5}", {"grads_finite": 1.0, "train_loss": 0.5}, {}),
        ("RMSE 30.5, MAPE 0.25", {"RMSE": 30.5, "MAPE": 0.25}, {}),
        ("step 3 current learning rate: 0.25", {"learning rate": 0.25}, {}),
        ('{"_type": "val_epoch", "epoch": "5/400", "top1_err": 41.5}', {}, {"top1_err": 41.5}),
        ("Rank-5  : 86.5%", {}, {"Rank-5": 86.5}),
        ("  Val cosine: 0.25 ± 0.05", {}, {"Val cosine": 0.25}),
        ("Episode 7\tLast reward: 18.00\tAverage reward: 10.50", {"Last reward": 18.0, "Average reward": 10.5}, {}),
        ("Final test loss 3.5e-02 +/- 1.8e-03", {}, {"Final test loss": 0.035}),
        ("Test accuracy: 84.5% (± 1.2%)", {}, {"Test accuracy": 84.5}),
        ("Evaluation over 10 episodes: -1237.5", {}, {"Evaluation reward": -1237.5}),
        ("Epoch loaded: 3 - test loss: 0.75, test error: 2.5e-01", {}, {"test loss": 0.75, "test error": 0.25}),
        (
            "At iteration 98/100/101, Mean rms=2.5%, delta=6.25%, char train=31.5%, skip ratio=0%,  New best char "
            "error = 31.5 wrote checkpoint.",
            {"Mean rms": 2.5, "delta": 6.25, "char train": 31.5, "best char error": 31.5},
            {},
        ),
        ("Train Loss @ epoch 0003 iteration 00000120 = 0.5", {"Train Loss": 0.5}, {}),
        ("[01/20] train_loss=0.5 | val_loss=0.75 | TF=0.25", {"train_loss": 0.5, "TF": 0.25}, {"val_loss": 0.75}),
        ("Episode: 3, Number of Steps: 640, Cumulative reward: 54.25", {"Cumulative reward": 54.25}, {}),
        ("Mean cumulative reward over 100 episodes:90.25", {"Mean cumulative reward": 90.25}, {}),
        ("=> average accuracy over all 3 contexts: 0.8125", {"average accuracy": 0.8125}, {}),
        ("Mean accuracy across 5 folds = 0.8125", {"Mean accuracy": 0.8125}, {}),
        ("Test accuracy after 3 epochs is: 0.75", {}, {"Test accuracy": 0.75}),
        ("[(0,0,17)]: Epoch 3, loss 0.5, accuracy 0.25", {"loss": 0.5, "accuracy": 0.25}, {}),
        (
            "Step    500: train WeightedCategoryCrossEntropy |  0.5",
            {"train WeightedCategoryCrossEntropy": 0.5},
            {},
        ),
        ("Step    500: eval      WeightedCategoryAccuracy |  0.25", {}, {"eval WeightedCategoryAccuracy": 0.25}),
        ("Epoch 3 @ 10:27 PM : 0.25 C.E. Loss, 94.5% Accuracy", {"Loss": 0.25, "Accuracy": 94.5}, {}),
    ],
)
def test_the_word_in_front_says_whose_values_follow(
    line: str, train: dict[str, float] | None, evaluated: dict[str, float]
) -> None:
    point = read(line)
    assert dict(point.eval_metrics) == evaluated
    assert train is None or dict(point.metrics) == train
    losses = (
        value
        for name, value in point.metrics.items()
        if "oss" in name or "损失" in name or name in ("L", "L_train", "training cost")
    )
    assert point.loss == next(losses, None)


@pytest.mark.parametrize(
    ("line", "loss", "metrics"),
    [
        ("step: 7 loss * 1000: 31.5 corner loss * 1000: 12.5", 31.5, {"loss * 1000": 31.5, "corner loss * 1000": 12.5}),
        ("step: 7 loss × 1000 = 31.5", 31.5, {"loss × 1000": 31.5}),
        ("step: 7 loss (1e-3): 31.5", 31.5, {"loss": 31.5}),
        ("step: 7 loss: 0.5 top 5: 91.2 class 3: 0.25", 0.5, {"loss": 0.5, "top 5": 91.2, "class 3": 0.25}),
        ("step: 7 loss=0.5, 16_h1=0.75, 128_h1=0.25", 0.5, {"loss": 0.5, "16_h1": 0.75, "128_h1": 0.25}),
        ("step: 7 loss: 0.5 D(x): 0.55 D(G(z)): 0.57 / 0.34", 0.5, {"loss": 0.5, "D(x)": 0.55, "D(G(z))": 0.57}),
    ],
)
def test_a_number_within_a_name_is_no_value(line: str, loss: float, metrics: dict[str, float]) -> None:
    point = read(line)
    assert (point.loss, dict(point.metrics), point.step) == (loss, metrics, 7)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (
            "Test set: Average loss: 0.05, Accuracy: 9000/10000 (90%)",
            {"Test Average loss": 0.05, "Test Accuracy": 90.0},
        ),
        ("Test: Accuracy: 9000/10000 (90%)", {"Test Accuracy": 90.0}),
        ("Test: Accuracy: 9000/10000", {"Test Accuracy": 90.0}),
        ("Test: acc: 9000/10000=0.9000; loss: 0.5", {"Test acc": 0.9, "Test loss": 0.5}),
        ("Test: acc = 9000/10000 = 90.0 %, loss = 0.5", {"Test acc": 90.0, "Test loss": 0.5}),
        ("Test: accuracy=90.0% (9000 / 10000), loss=0.5", {"Test accuracy": 90.0, "Test loss": 0.5}),
        ("Test: loss: 0.5, attempt: 3/10, memory: 3/8", {"Test loss": 0.5}),
    ],
)
def test_a_count_out_of_a_count_is_no_value(line: str, values: dict[str, float]) -> None:
    assert dict(read(line).eval_metrics) == values


@pytest.mark.parametrize("values", ["[0.18 0.28 0.44]", "[0.18, 0.28, 0.44]", "[0.18 0.28 0.44 0.5 0.6]"])
def test_a_list_of_values_is_none_of_them(values: str) -> None:
    """Of the steps of adaptation, of classes: the first would stand for all."""
    point = read(f"step: 50 \ttraining acc: {values}")
    assert (point.step, dict(point.metrics)) == (50, {})
    assert dict(read(f"step: 50 loss: 0.5 acc: [0.25] dice: {values}").metrics) == {"loss": 0.5, "acc": 0.25}


def test_a_loss_may_be_glued_to_its_decimals() -> None:
    point = read("EPOCH[3/11] loss0.690-|Sample:5.21|")
    assert (point.epoch, point.loss) == (3, 0.69)
    assert dict(read("step: 7 loss: 0.5 loss1: 0.2").metrics) == {"loss": 0.5, "loss1": 0.2}


def test_the_count_behind_a_share_is_no_step() -> None:
    point = read(" [=>...]  Step: 8s918ms | Loss: 2.307 | Acc: 23.2% (119/512) 4/7")
    assert (point.step, point.counters.epoch_steps, point.metrics["Acc"]) == (4, 7, 23.2)


def test_a_label_in_front_of_the_epoch_and_a_unit_behind_a_space() -> None:
    point = read("sgd epoch 5 1.04 s 47792 img/s loss 0.9012 acc 80.46")
    assert (point.epoch, point.loss, point.throughput) == (5, 0.9012, 47792.0)
    assert dict(point.metrics) == {"loss": 0.9012, "acc": 80.46}


@pytest.mark.parametrize(
    "line",
    [
        "aten/src/ATen/native/cuda/Indexing.cu:1290: select: block: [250,0,0] Assertion `index < size` failed.",
        "train.py: Assertion `loss: 5` failed.",
        "lib/torch/optim/optimizer.py: 546",
        "│   └── precision: 16",
        "Epoch 3, global step 32: 'val/accuracy' was not in top 1",
        "Cache stats: {'hits': 0, 'misses': 0, 'saves': 0}",
    ],
)
def test_what_names_a_file_or_a_failure_has_no_values(line: str) -> None:
    points = LogReader().feed(f"{line}\n".encode())
    assert not any(point.metrics or point.eval_metrics for point in points)


def names(text: str) -> tuple[str, ...]:
    """What is shown of a log, read in small pieces and at once."""
    reader, at_once = LogReader(), LogReader()
    reader.feed(text.encode())
    at_once.take(text.encode())
    assert at_once.summary() == reader.summary()
    return reader.summary().metrics


SETTINGS = """
Namespace(batch_size=64, lr=0.5, momentum=0.9, seed=42, loss_weight=2.0)
Batch size: 256
Total samples: 771115
learning_rate = 1e-3 # with small networks
Model parameters: 11,181,642
found vocab_size = 61 (inside meta.pkl)
  (1): BatchNorm2d(128, eps=1e-05, momentum=0.1, affine=True)
lib/torch/optim/optimizer.py:546: FutureWarning: `x=3` is deprecated
0 corrupt: 100% ---- 24/24 1.4Kit/s (ping: 0.1 ms, read: 21.5 MB/s)
"""


def test_a_table_of_parts_and_their_total() -> None:
    reader = LogReader()
    reader.feed(b"Epoch   Batch    box   conf   total   time\n")
    reader.feed(b"".join(b" 0/29   %d/165   0.227   2.06   -1%d.5   59.6\n" % (n, n) for n in range(3)))
    reader.feed(b"Image  Total   P   R   mAP\n 32   303   0.5   0.5   0.5\n")
    reader.feed(b"Epoch   Batch    box   conf   total   time\n 1/29   0/165   0.227   2.06   -20.5   59.6\n")
    found = reader.summary()
    assert (found.epoch, found.step, found.steps, found.runs) == (1, 0, 165, 1)
    assert found.train_loss is not None
    assert (found.train_loss.first, found.train_loss.last, found.train_loss.count) == (-10.5, -20.5, 4)
    assert {"box", "conf", "total"} <= set(found.metrics)


def test_a_header_of_measures_stands_over_its_values() -> None:
    points = LogReader().feed(b"copypaste: AP,AP50,AP75\ncopypaste: 41.0,60.5,44.5\n")
    told = {name: value for point in points for name, value in {**point.metrics, **point.eval_metrics}.items()}
    assert told == {"AP": 41.0, "AP50": 60.5, "AP75": 44.5}


def test_a_score_that_stands_still_at_first_has_all_its_points() -> None:
    line = "epoch {0} loss 0.{0}\nDev: acc: 0.8{0}, p: {1}, f: {1}\n"
    scores = ("-1.0000", "-1.0000", "0", "0.4483", "0.5012")
    points = LogReader().feed("".join(line.format(epoch, f) for epoch, f in enumerate(scores, 1)).encode())
    told = [(point.counters.epoch, point.eval_metrics["Dev f"]) for point in points if "Dev f" in point.eval_metrics]
    assert sorted(told) == [(1, -1.0), (2, -1.0), (3, 0.0), (4, 0.4483), (5, 0.5012)]


def test_a_mean_beside_the_mean_of_a_measure_is_a_metric_though_it_never_changes() -> None:
    rows = "".join(f"iteration {n} | ep_len_mean 200 | ep_rew_mean -1.{n} | horizon 200\n" for n in range(1, 9))
    assert set(names(rows)) == {"ep_len_mean", "ep_rew_mean"}


def test_what_stays_at_0_is_a_metric_where_its_name_says_so() -> None:
    """A sparse reward, and what is measured on the data of the training: a setting of 0 is not told at each step."""
    rows = "".join(f"{step},{1 / step},0.0,0.0,0.0,0.0\n" for step in range(1, 2000))
    found = names(f"step,train/loss,rollout/ep_rew_mean,train/clip_fraction,dropout,fold\n{rows}")
    assert set(found) == {"train/loss", "rollout/ep_rew_mean", "train/clip_fraction"}


def test_a_value_beside_the_loss_is_a_metric_when_it_has_come_again_changed() -> None:
    line = "step {0} loss 0.{0} wd 0.05 patience 3 seen {0}00 v_pot 1.{0} won {1}\n"
    reader = LogReader()
    points = reader.feed("".join(line.format(step, 9 + step % 4) for step in range(1, 9)).encode())
    assert reader.summary().metrics == ("loss", "v_pot", "won")
    told = [value for point in points for name, value in point.metrics.items() if name == "v_pot"]
    assert told == [1.0 + step / 10 for step in range(1, 9)]  # the first, that was kept back, too


def test_a_setting_is_said_once_and_is_no_metric() -> None:
    epochs = "".join(f"epoch {e} step {e}0 loss 0.{9 - e}5 acc 0.{e}5\n" for e in range(1, 5))
    end = "Total time: 38.2s\nModel size: 5.4\nsaved in: 3\nTotal Training Time: {}.42 min\n"
    assert names(SETTINGS + epochs + end) == ("loss", "acc")
    assert names(SETTINGS + epochs + end.format(9) + SETTINGS + epochs + end.format(8) + SETTINGS + epochs) == (
        "loss",
        "acc",
    )


@pytest.mark.parametrize(
    "line",
    [
        "loss_shape_coeff = {}.0",
        "'entropy_coeff': 0.00{}, 'kl_loss_coef': 0.5{}, 'clip_lb': {}",
        "{{'use_kl_loss': 'True', 'loss_mode': 'vanilla', 'clip_cov_lb': {}.5, 'kl_cov_ratio': 0.{}}}",
        "Epoch {} @ 10:27 PM : done",
        "{{'step': {}000, 'event_type': 'save', 'wait_start_time': 17.{}, 'blocking_duration_secs': 4.{}}}",
        "Progress on: {}.53kit/200kit rate:1.{}s/it remaining:83:54:02 elapsed:46:47 postfix:-",
    ],
)
def test_what_a_training_was_told_and_how_long_it_saves_are_no_metrics(line: str) -> None:
    text = line.format(4, 4, 4) + "\n"
    epochs = [f"epoch {e} loss 0.{9 - e}5\n" for e in range(1, 5)]
    assert names(text + "".join(epochs) + line.format(5, 5, 5) + "\n" + epochs[0]) == ("loss",)


def test_how_long_an_evaluation_took_is_no_metric_of_the_training() -> None:
    speed = "'{0}_runtime': '1.7{1}', '{0}_samples_per_second': '92.{1}', '{0}_steps_per_second': '11.{1}'"
    lines = [
        line
        for at in (1, 2, 3)
        for line in (
            f"{{'loss': '0.{9 - at}', 'learning_rate': '1e-05', 'epoch': '{at}'}}",
            f"{{'eval_loss': '0.{8 - at}', 'eval_accuracy': '0.{at}', {speed.format('eval', at)}, 'epoch': '{at}'}}",
        )
    ]
    lines.append(f"{{{speed.format('train', 9)}, 'train_loss': '0.75', 'epoch': '3'}}")
    assert set(names("\n".join(lines) + "\n")) == {"loss", "learning_rate", "eval_loss", "eval_accuracy"}


CONFIGURATION = """model: resnet
optimizer: {
  name: 'adam'
  weight_decay: 0.0{0}
}
use_flow: True
data: ./data/train
MODEL:
  COSINE_MARGIN: 0.{0}
  hidden: 1{0}
  k_mse: {0}.0
  loss_part_w: 0.{0}
- one
acc_goal = 0.{0}
fid_after: {0}
device: mps
"""


def test_a_configuration_printed_an_option_to_a_line_has_no_metrics() -> None:
    text = ""
    for launch in range(1, 6):
        text += CONFIGURATION.replace("{0}", str(launch))
        text += "".join(f"epoch {e} loss 0.{9 - e}5\nval acc: 0.{e}\nscore: {launch}.{e}\n" for e in range(1, 30))
    assert names(text) == ("loss", "val acc", "score")
    reader = LogReader()
    reader.take(text.encode())
    assert reader.summary().metrics == ("loss", "val acc", "score")


def test_a_record_printed_a_value_to_a_line_has_metrics() -> None:
    record = "Epoch {0}\nloss: 0.{1}\nacc: 0.{0}\nIoU: 0.{0}1\ndice: 0.{0}2\nrecall: 0.{0}3\nF1: 0.{0}4\nauc: 0.{0}5\n"
    text = "".join(record.format(e, 9 - e) + f"PSNR: 2{e}.5\nsaved: best.pt\n" for e in range(1, 9))
    assert names(text) == ("loss", "acc", "IoU", "dice", "recall", "F1", "auc", "PSNR")


def test_a_label_in_front_of_an_epoch_is_no_step() -> None:
    lines = [f"[000{ticker}][Epoch 0{e}/50] Loss:{e}.5 PV:14" for ticker in (660, 720) for e in (1, 2, 3)]
    reader = LogReader()
    reader.feed("\n".join([*lines, ""]).encode())
    assert (reader.summary().step, reader.summary().epoch, reader.summary().epochs) == (None, 3, 50)
    assert LogReader().feed(b"[000100] loss 0.5\n")[0].step == 100


@pytest.mark.parametrize(
    "line",
    [
        "Creating device (/gpu:0) -> (device: 1, name: P100)",
        "Model saved, best at epoch 3, loss 0.5",
        "stopped: wallclock_cap train_time:600038ms step:3/20",
        "Timer: 1.5",
        "Fold 3: took 5",
        "Iteration 1 | Generating 100 games...",
        "Iteración 1 completada en 31.5s",
        "step 3: tokens 1.2M",
        "LOSS_ALPHA: 0.25",
        "SCORE_THRESH: 0.3",
        '  "n_heads": 6,',
        "Validating: 131it [00:03, 43.30it/s]",
    ],
)
def test_devices_clocks_and_folds_are_no_metrics(line: str) -> None:
    points = LogReader().feed(f"step 1 loss 0.5\n{line}\nstep 2 loss 0.4\n{line.replace('1', '2')}\n".encode())
    assert {name for point in points for name in (*point.metrics, *point.eval_metrics)} == {"loss"}


def test_a_measure_that_stands_alone_is_not_that_of_training() -> None:
    lines = "Accuracy: 0.9\nEpoch 1 | Train Acc 24.5 | Train Loss 0.5 | Valid Loss 0.4\n"
    points = LogReader().feed(lines.encode())
    assert [dict(point.metrics) for point in points] == [{"Accuracy": 0.9}, {"Train Acc": 24.5, "Train Loss": 0.5}]


def test_the_place_in_brackets_above_the_values_of_a_block() -> None:
    reader = LogReader()
    reader.feed(
        b"".join(b"Display progress at (epoch %d, total_steps %d0)\nloss: 0.%d\n" % (e, e, e) for e in (2, 4, 6))
    )
    found = reader.summary()
    assert (found.epoch, found.step, found.steps) == (6, 60, None)


def test_a_last_training_under_another_name_is_a_run_of_its_own() -> None:
    reader = LogReader()
    reader.feed(b"".join(b"[Fold 1 Ep %03d] tr_loss=0.%d val_f1=0.5\n" % (e, e) for e in range(1, 9)))
    reader.feed(b"".join(b"[Ep %03d/005] loss=0.%d\n" % (e, e) for e in range(1, 4)))
    found = reader.summary()
    assert (found.epoch, found.epochs, found.runs) == (3, 5, 2)


def test_a_measure_among_many_settings_is_a_setting() -> None:
    names = ("lr0", "momentum", "box", "cls", "obj", "iou_t", "anchor_t", "hsv_h", "hsv_s", "scale")
    settings = ", ".join(f"{name}=0.5" for name in names)
    reader = LogReader()
    reader.feed(f"hyperparameters: {settings}\nepoch 1 loss 0.5\n".encode())
    assert reader.summary().metrics == ("loss",)
    measures = " ".join(f"AP{size}: 0.5" for size in range(50, 95, 5))
    reader.feed(f"Val mAP: 0.4 {measures}\n".encode())
    assert "Val mAP" in reader.summary().metrics


@pytest.mark.parametrize(
    ("line", "metrics"),
    [
        ("Loss: 0.5 after 196 batches", ["Loss"]),
        ("loss 0.5 over 20 batches", ["loss"]),
        ("Loss: 0.5 within 31 minutes", ["Loss"]),
        ("Softmax loss: 3 vectors concatenated", []),
        ("Losses: 2 functions, reduction mean", []),
        ("loss: 3 steps: 40", ["loss"]),
    ],
)
def test_what_a_sentence_counts_is_no_metric(line: str, metrics: list[str]) -> None:
    reader = LogReader()
    points = reader.feed(f"{line}\n".encode() * 2)
    assert sorted({name for point in points for name in point.metrics}) == metrics


def test_a_name_in_capitals_with_a_value_of_its_own_is_no_label() -> None:
    reader = LogReader()
    line = "Epoch: {0}, global_step=5120{0}\nSPS: 1095, pg_loss=0.016{0}, v_loss=0.001{0}\n"
    reader.feed((line.format(3) + line.format(4)).encode())
    assert reader.summary().metrics == ("pg_loss", "v_loss")


def test_a_share_of_something_is_no_measure() -> None:
    reader = LogReader()
    reader.feed(b"step 20 loss 0.5\n* The shipping cost is 15% of the price, which is $18.\n")
    assert reader.summary().metrics == ("loss",)


def test_how_far_a_value_is_from_another_is_no_metric() -> None:
    reader = LogReader()
    epoch = "ep={}: loss=1.5{} acc=95.6% fpr=0.1{}\n  Fine-tuned: 86.{}% (Δ=+2.{}%)\n"
    reader.feed("".join(epoch.format(*[number] * 5) for number in range(4)).encode())
    assert reader.summary().metrics == ("loss", "acc", "fpr", "Fine-tuned")


def test_the_rate_among_settings_is_not_the_rate_in_use() -> None:
    points = LogReader().feed(b"learning_rate = 0.5\nlr: 0.5\nstep 1 loss 0.9\nstep 2 loss 0.8\nlr: 0.25\n")
    assert [point.learning_rate for point in points if point.learning_rate is not None] == [0.25]


def test_what_comes_again_changed_is_a_metric_from_its_first_value_on() -> None:
    reader = LogReader()
    points = reader.feed(b"".join(b"epoch %d loss 0.%d\nsharpness: %d.5\n" % (e, 9 - e, e) for e in (1, 2, 3)))
    assert reader.summary().metrics == ("loss", "sharpness")
    assert [(p.epoch, p.metrics["sharpness"]) for p in points if "sharpness" in p.metrics] == [
        (1, 1.5),
        (2, 2.5),
        (3, 3.5),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "step {i} Loss: 0.{i}\nEpoch {i} train_loss: 0.{i} val_loss: 0.{i}\nValidation Loss: 0.{i}\n",
            ("Loss", "val_loss"),
        ),
        ("step {i} loss 0.{i} acc 0.{i}\nTrain: Average loss: 0.{i}, Accuracy: {i}0%\n", ("loss", "acc")),
        (
            "step {i} loss 0.{i}\nTest set: Average loss: 0.{i}\nval_loss: 0.{i}\n",
            ("loss", "Test Average loss", "val_loss"),
        ),
        ("step {i} loss 0.{i} avg_loss 0.{i}5\n", ("loss", "avg_loss")),
        (
            "step {i} Pair_loss: 0.{i}1 Loss: 0.{i}\nEnd epoch {i} | Avg Pair_loss: 0.{i}5  Avg Loss: 0.{i}\n",
            ("Pair_loss", "Loss", "Avg Pair_loss"),
        ),
        ("step {i} loss 0.{i}\nmean IoU: {i}.5\nIoU: {i}.5\n", ("loss", "mean IoU", "IoU")),
        (
            "step {i} loss 0.{i} mAP@0.5: 0.{i}1 f1_score: 0.{i}2\nstep {i} mAP50: 0.{i}1\nstep {i} mAP_50: 0.{i}1 "
            "F1: 0.{i}2\n",
            ("loss", "mAP@0.5", "f1_score"),
        ),
        (
            "step {i} loss 0.{i} loss_G 0.{i}1 reward: 0.{i}4 gnorm: 0.{i}3\nstep {i} G loss: 0.{i}1 grad_norm: 0.{i}3"
            "\nstep {i} mean reward: 0.{i}4\nstep {i} Avg Reward: 0.{i}4\n",
            ("loss", "loss_G", "reward", "gnorm", "mean reward"),
        ),
        (
            "Epoch {i} Val Loss: 0.{i}\nloss/dev: 0.{i}\nFinal train loss: 0.{i}\nfinal Train Loss: 0.{i}\n",
            ("Val Loss", "Final train loss"),
        ),
        ("step {i} loss 0.{i}\nTrain Loss: 0.{i} Vali Loss: 0.{i}\n", ("loss", "Vali Loss")),
        ("step {i} avg_loss 0.{i}5\nstep {i} loss 0.{i} avg_loss 0.{i}5\n", ("avg_loss", "loss")),
    ],
)
def test_one_quantity_under_several_spellings_is_one_metric(text: str, shown: tuple[str, ...]) -> None:
    assert names("".join(text.format(i=i) for i in range(1, 9))) == shown


def test_the_whole_of_an_evaluation_may_be_one_value_behind_a_star() -> None:
    reader = LogReader()
    reader.feed(b"Epoch: [0][10/99]\tLoss 5.5 (6.5)\tEPE 4.5 (5.5)\nEpoch: [0][20/99]\tLoss 5.5 (6.5)\tEPE 4.6 (5.5)\n")
    reader.feed(b"Test: [9/99]\t Time 0.2\t EPE 2.5\n")
    *_, point = reader.feed(b"2026-01-02 10:00:00,123 [a.py:304] INFO  * EPE 4.25\n")
    assert (dict(point.metrics), dict(point.eval_metrics)) == ({}, {"Test EPE": 4.25})
    assert LogReader().feed(b"* we have 4 of them\n* 3 more\n") == []


def test_a_summary_without_a_word_belongs_to_the_evaluation_above_it() -> None:
    reader = LogReader()
    reader.feed(b"Epoch: [0][ 1/30]\tLoss 6.7e+00 (6.7e+00)\tAcc@1  10.00 (  9.00)\n")
    points = reader.feed(
        b"Test: [1/8]\tLoss 2.0e-01 (2.0e-01)\tAcc@1 100.00 (100.00)\tAcc@5 1.0\n *   Acc@1 75.000 Acc@5 100.000\n"
        b"Test: [1/8]\tLoss 2.0e-01 (2.0e-01)\tAcc@1 100.00 (100.00)\tAcc@5 1.0\n * Acc@1 75.0 Acc@5 9.0\nacc@1: 50.5\n"
    )
    assert [point.eval_metrics.get("Test Acc@1") for point in points] == [75.0, 75.0, 50.5]
    assert not any(point.metrics for point in points)


def test_a_summary_may_spell_the_measure_of_the_batches_in_another_way() -> None:
    reader = LogReader()
    reader.feed(b"Epoch: [0]  [ 5/36]  loss: 2.5 (2.6)  time: 1.5\nEpoch: [0]  [35/36]  loss: 2.25 (2.5)  time: 1.5\n")
    points = reader.feed(
        b"2026/01/02 10:00:00\tINFO\tkit.misc.log\tValidation:  [0/4]  acc1: 75.0000 (75.0000)  acc5: 90.0 (90.0)\n"
        b"2026/01/02 10:00:01\tINFO\t__main__\t * Acc@1 72.5000\tAcc@5 88.5000\n"
        b"2026/01/02 10:00:01\tINFO\t__main__\tBest top-1 accuracy: 12.5000 -> 72.5000\n"
    )
    assert [dict(point.eval_metrics) for point in points] == [
        {"Validation acc1": 72.5, "Validation acc5": 88.5},
    ]


def test_a_summary_behind_a_star_may_tell_the_loss_too() -> None:
    reader = LogReader()
    points = reader.feed(
        b"Epoch: [0][0/15]\tLoss 3.75 (3.75)\tTop-5 Accuracy 37.5 (37.5)\n"
        b"Validation: [0/5]\tLoss 3.5 (3.5)\tTop-5 Accuracy 37.0 (37.0)\n"
        b"\n * LOSS - 3.25, TOP-5 ACCURACY - 38.5, BLEU-4 - 0.125\n"
        b"Epoch: [1][0/15]\tLoss 3.0 (3.0)\tTop-5 Accuracy 39.5 (39.5)\n"
    )
    assert [point.loss for point in points] == [3.75, None, 3.0]
    summary = {"Validation Loss": 3.25, "Validation Top_5_Accuracy": 38.5, "BLEU-4": 0.125}
    assert [dict(point.eval_metrics) for point in points if point.eval_metrics] == [summary]


def keras(epochs: int, batches: int, *, tail: str) -> str:
    """A log of Keras without a terminal: each frame a line; the last repeats the loss and adds the evaluation."""
    lines = []
    for e in range(1, epochs + 1):
        losses = [f"{e + 1 / (1 + n):.4f}" for n in range(1, batches + 1)]
        lines.append(f"Epoch {e}/{epochs}")
        lines += [
            f"{n:4d}/{batches} ━━━━━━━━━━━━ 3:39 17ms/step - acc: 0.{n:04d} - loss: {v}"
            for n, v in enumerate(losses, 1)
        ]
        lines.append(
            f"{batches}/{batches} ━━━━━━━━━━━━ 9s 11ms/step - acc: 0.5 - loss: {losses[-1]} - val_loss: {e}.25{tail}"
        )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("tail", ["", " - val_acc: 0.5", " - learning_rate: 0.001"])
@pytest.mark.parametrize("batches", [3, 400])
def test_the_evaluation_at_the_end_of_an_epoch_of_keras_is_read_in_logs_of_any_length(batches: int, tail: str) -> None:
    text = keras(4, batches, tail=tail)
    reader, at_once = LogReader(), LogReader()
    for points in (reader.feed(text.encode()), [point.newest for point in at_once.take(text.encode())]):
        found = [(p.epoch, p.eval_metrics["val_loss"]) for p in points if p.eval_metrics]
        assert found == [(1, 1.25), (2, 2.25), (3, 3.25), (4, 4.25)]
    assert reader.summary() == at_once.summary()


def test_a_fit_of_one_epoch_which_keras_prints_without_a_heading_is_none_of_its_evaluations() -> None:
    """Told by the values of its validation; whether the rows before them train or evaluate nobody knows."""
    fit = "Iteration {e}\n" + keras(1, 3, tail="").partition("\n")[2].replace("val_loss: 1", "val_loss: {e}")
    reader = LogReader()
    points = reader.feed("".join(fit.format(e=e) for e in range(1, 4)).encode())
    assert [point.loss for point in points if point.loss is not None] == [1.25, *[1.5, 1.3333, 1.25] * 2]
    assert [value for point in points for value in point.eval_metrics.values()] == [1.25, 2.25, 3.25]
    bar = "{n}/4 ━━━━━━━━━━━━ 1s 8ms/step - acc: 0.5 - loss: {n}.5\n"
    evaluated = reader.feed((bar.format(n=2) + bar.format(n=4)).encode())
    assert [dict(point.eval_metrics) for point in evaluated] == [{"val acc": 0.5, "val_loss": 4.5}]


def test_a_bar_that_is_drawn_again_with_another_evaluation_tells_it_once() -> None:
    bar = "Epoch 4/4  ━━━━━━━━━━━━━━━ 56/56 0:00:02 • 0:00:00 18.47it/s train_loss: 0.085 val_loss: {}"
    points = LogReader().feed("\n".join(bar.format(v) for v in ("0.147", "0.147", "0.134", "0.134", "")).encode())
    assert [point.eval_metrics["val_loss"] for point in points if point.eval_metrics] == [0.147, 0.134]


@pytest.mark.parametrize(
    ("header", "bar", "shown"),
    [
        ("Instances      Box(P          R      mAP50  mAP50-95)", "━━━━ 1/1 11.6it/s 0.1s", "mAP50"),
        ("Instances      Box(P          R      mAP50  mAP50-95)", "|███| 1/1 [00:01<00:00,  1.6it/s]", "mAP50"),
        ("   Labels          P          R     mAP@.5 mAP@.5:.95", "|███| 1/1 [00:01<00:00,  1.6it/s]", "mAP@.5"),
    ],
)
def test_the_table_of_a_detector_is_an_evaluation(header: str, bar: str, shown: str) -> None:
    epoch = (
        "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        "      {0}/9      1.76G      2.034      3.517      1.422          5        512: "
        "100%|███| 26/26 [00:07<00:00,  2.08it/s]\n"
        f"                 Class     Images  {header}: 100%{bar}\n"
        "                   all          8          8        0.5        0.4       0.{0}       0.1\n"
        "                person          8          8        0.9        0.9       0.9       0.9\n"
    )
    reader = LogReader()
    points = reader.feed("".join(epoch.format(e) for e in (1, 2)).encode())
    assert [dict(point.eval_metrics)[shown] for point in points if point.eval_metrics] == [0.1, 0.2]
    assert (reader.summary().epoch, reader.summary().epochs) == (2, 9)
    assert len(reader.summary().metrics) == 7


def test_a_whole_number_longer_than_any_counter_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"step": ' + "9" * 400 + ', "loss": 0.5}\n{"step": 2, "loss": 0.4}\n{"step": 3, "loss": 1e999}\n')
    assert read_log(path).step == 3


@pytest.mark.parametrize(
    ("line", "place", "train", "evaluated"),
    [
        ("Valid MRR at step 250: 0.75", (None, 250), {}, {"Valid MRR": 0.75}),
        ("Validation accuracy after epoch 3: 91.5%", (3, None), {}, {"Validation accuracy": 91.5}),
        ("Test accuracy after 3 epochs: 0.75", (3, None), {}, {"Test accuracy": 0.75}),
        ("Dev F1 (macro) in epoch 3, step 40: 0.75", (3, 40), {}, {"Dev F1 (macro)": 0.75}),
        ("Minibatch loss at step 100: 2.5", (None, 100), {"Minibatch loss": 2.5}, {}),
        ("Cost after iteration 300 0.65", (None, 300), {"Cost": 0.65}, {}),
        ("Accuracy on epoch 3 is 0.75", (3, None), {"Accuracy": 0.75}, {}),
        ("using time 1.5, training loss at epoch 3: 38.75", (3, None), {"training loss": 38.75}, {}),
        ("[3] time 0.12 lr 0.001 3d_train 951.5 3d_valid 1174.5", (3, None), {"3d_train": 951.5}, {"3d_valid": 1174.5}),
    ],
)
def test_a_place_between_a_name_and_its_value_or_in_brackets_is_where_training_stands(
    line: str, place: tuple[int | None, int | None], train: dict[str, float], evaluated: dict[str, float]
) -> None:
    point = read(line)
    measured = {name: value for name, value in point.metrics.items() if name != "lr"}
    assert ((point.epoch, point.step), measured, dict(point.eval_metrics)) == (place, train, evaluated)


def test_what_was_measured_at_several_steps_is_one_curve() -> None:
    names = ("Training average positive_sample_loss", "Training average negative_sample_loss", "Valid MR")
    lines = "".join(f"{name} at step {n}: {n % 7}.{n}\n" for n in (50, 100, 150) for name in names)
    reader = LogReader()
    reader.feed(lines.encode())
    found = reader.summary()
    assert (found.metrics, found.step, found.train_loss) == (names, 150, None)


@pytest.mark.parametrize(
    "line",
    ["Best accuracy at epoch 2: 0.75", "New best loss at epoch 2: 0.75", "Loading weights of epoch 12: 300 tensors"],
)
def test_a_place_of_something_else_is_not_where_training_stands(line: str) -> None:
    reader = LogReader()
    reader.feed(f"Epoch 3 loss: 0.5\n{line}\n".encode())
    assert reader.summary().epoch == 3


def test_a_row_with_several_values_in_a_cell_is_read_without_them() -> None:
    points = LogReader().feed(
        b"+-------+---------------+---------+--------------+\n| Epoch | training time |   Loss  |    recall    |\n"
        b"+-------+---------------+---------+--------------+\n|   9   |     4.1189    | 36.5625 | [0.1   0.25] |\n"
    )
    assert [(point.epoch, point.loss, dict(point.metrics)) for point in points] == [(9, 36.5625, {"Loss": 36.5625})]


def test_measures_told_apart_in_brackets_keep_what_tells_them_apart() -> None:
    line = "Protocol #1 Error (MPJPE): 871.25 mm\nProtocol #2 Error (P-MPJPE): 617.5 mm\n"
    reader = LogReader()
    reader.feed(line.encode())
    assert reader.summary().metrics == ("Error (MPJPE)", "Error (P-MPJPE)")


@pytest.mark.parametrize("name", ["Test HITS@10", "Test MR", "val logp(x)", "Test top 5", "valid PCK"])
def test_a_measure_that_is_told_once_is_shown(name: str) -> None:
    reader = LogReader()
    reader.feed(f"Epoch 3 loss: 0.5\n{name}: 0.25\n".encode())
    assert name in reader.summary().metrics


def test_a_map_of_features_is_no_measure() -> None:
    reader = LogReader()
    reader.feed(b"feature_map: 256\ntest top_k: 5\nval hits: 12\n")
    assert reader.summary().metrics == ()


@pytest.mark.parametrize(
    "line", ["Loss is nan, stopping training", "WARNING: loss is inf!", "Loss: nan, skipping batch"]
)
def test_a_sentence_about_a_broken_loss_is_no_reading(line: str) -> None:
    points = LogReader().feed(f"step 10 loss 1.5\n{line}\nstep 20 loss nan\nloss: nan\n".encode())
    assert [(point.step, str(point.loss)) for point in points] == [(10, "1.5"), (20, "nan"), (20, "nan")]


@pytest.mark.parametrize(
    ("line", "loss"),
    [
        ("(epoch = {n}, train_loss = 0.{n}125f0, test_loss = 1.5f-2)", 0.3125),
        ("Epoch: {n}   Train: (loss = 2.{n}5f-5, acc = 62.5)   Test: (loss = 0.5f0, acc = 60.25)", 2.35e-05),
    ],
)
def test_numbers_of_single_precision_are_read_as_julia_prints_them(line: str, loss: float) -> None:
    reader = LogReader()
    reader.feed("".join(line.format(n=n) + "\n" for n in range(1, 4)).encode())
    found = reader.summary().train_loss
    assert found is not None
    assert (found.last, found.count) == (loss, 3)


def test_statistics_of_data_are_no_metrics() -> None:
    reader = LogReader()
    reader.feed(b"column     mean    std     min\nage        38.5    13.25   17.0\nincome     1.25    0.5     0.25\n")
    assert not reader.summary().metrics
    reader.feed(b"epoch 1 loss 0.5\nloss of the day: 3\n")
    assert reader.summary().metrics == ("loss",)


def test_names_and_then_their_values_belong_together_in_order() -> None:
    reader = LogReader()
    reader.feed(b"".join(b"step %d\nkl,rec_loss,reg_loss 0.%d1 0.%d2 0.%d3\n" % (n, n, n, n) for n in range(1, 5)))
    (point,) = reader.feed(b"kl,rec_loss,reg_loss 0.91 0.92 0.93\n")
    assert dict(point.metrics) == {"kl": 0.91, "rec_loss": 0.92, "reg_loss": 0.93}


@pytest.mark.parametrize("line", ["loss,acc,f1 0.5 0.25", "saved to a,b,c 1.5 2.5 3.5 seconds", "red,green,blue 1 2 3"])
def test_names_with_fewer_values_or_words_beside_them_have_none(line: str) -> None:
    reader = LogReader()
    reader.feed(b"".join(f"step {n}\n{line}\n".encode() for n in range(1, 6)))
    assert not {"acc", "f1", "a", "red"} & set(reader.summary().metrics)


def test_a_total_that_the_training_has_left_behind_is_none() -> None:
    reader = LogReader()
    reader.feed(b"".join(b"epoch %d/3 loss 0.5\n" % n for n in range(1, 4)))
    assert reader.summary().epochs == 3
    reader.feed(b"epoch 4 loss 0.4\nepoch 5 loss 0.3\n")
    assert (reader.summary().epoch, reader.summary().epochs) == (5, None)


def test_the_likelihood_of_an_epoch_is_read_in_its_unit_and_that_of_the_best_is_no_point() -> None:
    reader = LogReader()
    points = []
    for n in range(1, 6):
        told = f"Validation: Average Log Likelihood in nats: -3.{9 - n}25\n"
        best = f"Best validation at epoch {max(1, n - 2)}: Average Log Likelihood in nats: -3.{9 - max(1, n - 2)}25\n"
        points += reader.feed(f"Epoch {n}: train loss 0.{9 - n}5\n{told}{best}".encode())
    found = [(point.epoch, value) for point in points for value in point.eval_metrics.values()]
    assert found == [(n, float(f"-3.{9 - n}25")) for n in range(1, 6)]


@pytest.mark.parametrize(
    ("heading", "epoch"),
    [("----->Training 3rd epoch<-----", 3), ("Starting the 2nd epoch", 2), ("Training 3rd-party epoch models", None)],
)
def test_an_epoch_may_be_headed_by_its_ordinal(heading: str, epoch: int | None) -> None:
    reader = LogReader()
    reader.feed(f"{heading}\nIter: 100, train loss: 0.5, val loss: 0.6\n".encode())
    assert reader.summary().epoch == epoch


def test_a_step_within_the_name_of_an_evaluation_is_none_of_its_name() -> None:
    reader = LogReader()
    for at in range(5):
        reader.feed(f"Train loss {at} 0.{at}25000 Grad Norm 1.{at}25000 0.09s/it\n".encode())
        reader.feed(f"Validation loss {at}:  0.{at}75000  \n".encode() if at % 2 == 0 else b"")
    assert set(reader.summary().metrics) == {"Train loss", "Grad Norm", "Validation loss"}


def test_how_much_is_computed_is_of_the_machine() -> None:
    reader = LogReader()
    for n in (1, 2):
        told = f"flops: 1.{n}5e+04 mfu: 4{n}.5%, seconds for 20 batch: 1.{n}5"
        reader.feed(f"step: {n} loss: 0.{n}5 grad: 1.{n}5 {told}\n".encode())
    assert reader.summary().metrics == ("loss", "grad")


def test_the_line_of_the_program_that_logs_is_no_metric() -> None:
    reader, line = (
        LogReader(),
        "[2026-11-30 13:24:20,489 INFO train.py line {} 15731] Epoch: [{}/6][{}/60] Loss 1.{}{}\n",
    )
    points = [
        point
        for epoch in range(1, 5)
        for step in (5, 10, 15)
        for point in reader.feed(line.format(8 + step, epoch, step, epoch, step).encode())
    ]
    assert {name for point in points for name in point.metrics} == {"Loss"}
