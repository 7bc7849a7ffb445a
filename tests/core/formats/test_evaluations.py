"""Lines of an evaluation without a sign between name and value; sentences about one are none."""

from __future__ import annotations

import pytest

from mpstui.core.formats.reader import LogReader

EVALUATIONS = [
    ("Validation: val_loss 1.5000 val_acc 60.00%", {"val_loss": 1.5, "val_acc": 60.0}),
    ("val_loss 1.5 val_acc 60.00", {"val_loss": 1.5, "val_acc": 60.0}),
    ("  val loss 1.5 | val acc 60%", {"val loss": 1.5, "val acc": 60.0}),
    ("  -> eval_loss 1.5", {"eval_loss": 1.5}),
    ("test accuracy 60.0", {"test accuracy": 60.0}),
    ("Test: loss 1.5 acc 60% (60/100)", {"Test loss": 1.5, "Test acc": 60.0}),
    ("Valid: loss 1.5 ppl 4.5 time 3.2s", {"Valid loss": 1.5, "Valid ppl": 4.5}),
    ("2026-01-02 10:00:00,123 - INFO - Test set: average loss 1.5", {"Test average loss": 1.5}),
    ("val_loss nan val_acc 10%", {"val_loss": None, "val_acc": 10.0}),
    ("验证损失 1.5 验证准确率 0.6", {"验证损失": 1.5, "验证准确率": 0.6}),
]
SENTENCES = [
    "the val loss 1.5 is better than 1.6, saving",
    "the val loss 1.5 is better than 1.6",
    "val_loss 1.5 improved from 1.6",
    "val loss 1.5 is low",
    "val_loss 1.5 -> 1.4",
    "val_loss 1.5 < 1.6",
    "val_loss 1.5, at most 3",
    "val_loss 1.5 (best 1.4)",
    "best val_loss 1.5",
    "we hope for a test accuracy 90 or better",
    "test accuracy 90 is required",
    "test accuracy 97/100",
    "after 3 tries val_loss 1.5",
    "val_loss_weight 0.5",
    "eval_batch_size 64 eval_samples 500",
    "test 5 passed",
]


@pytest.mark.parametrize(("line", "values"), EVALUATIONS)
def test_unambiguous_names_of_an_evaluation_need_no_sign(line: str, values: dict[str, float | None]) -> None:
    reader = LogReader()
    points = reader.feed("".join(f"Epoch {e}/5 step 20/20 loss: 1.0\n{line}\n" for e in (1, 2, 3)).encode())
    assert [point.loss for point in points] == [1.0, None] * 3
    read = {name: None if value != value else value for name, value in points[-1].eval_metrics.items()}
    assert (read, dict(points[-1].metrics), points[-1].epoch) == (values, {}, 3)


@pytest.mark.parametrize("line", SENTENCES)
def test_a_sentence_about_an_evaluation_is_none(line: str) -> None:
    reader = LogReader()
    points = reader.feed("".join(f"Epoch {e}/5 step 20/20 loss: 1.0\n{line}\n" for e in (1, 2, 3)).encode())
    assert [point.loss for point in points] == [1.0] * 3
    assert not any(point.eval_metrics for point in points)


def test_a_program_that_reports_on_the_validation_set_prints_no_loss_of_training() -> None:
    reader = LogReader()
    log = "Started training, reporting errors on validation set\nInitial: head: a, loss=9.5, RMSE=3.5 meV\n"
    points = reader.feed(
        (log + "".join(f"Epoch {e}: head: a, loss={8 - e}.5, RMSE=3.{e} meV\n" for e in range(3))).encode()
    )
    assert [point.loss for point in points] == [None] * len(points)
    assert [point.eval_metrics.get("val_loss") for point in points if point.epoch is not None] == [8.5, 7.5, 6.5]
    assert (reader.summary().train_loss, reader.summary().epoch) == (None, 2)


@pytest.mark.parametrize(
    "form",
    [
        ", val_loss: {val}:  40%|###  | {n}/30 [00:05<00:07,  2.29it/s]",
        ":  40%|###  | {n}/30 [00:05<00:07,  2.29it/s, val_loss={val}]",
    ],
)
def test_a_bar_of_training_may_show_the_last_evaluation(form: str) -> None:
    frames = "".join(f"\r {e}/6 loss: {40 - e}.{n}" + form.format(n=n, val=f"3{e}.5") for e in (1, 2) for n in (12, 15))
    reader = LogReader()
    reader.feed(f"{frames}\nval loss: 3.5:  40%|###  | 2/5 [00:05<00:07,  2.29it/s]\n".encode())
    found = reader.summary()
    assert found.train_loss is not None
    assert (found.train_loss.count, found.train_loss.last) == (4, 38.15)
    assert (found.epoch, found.epochs, found.step, found.steps) == (2, 6, 15, 30)


def test_training_goes_on_below_an_evaluation() -> None:
    points = LogReader().feed(b"step 1 loss 1.5\nval_loss 9.5\nstep 2 loss 1.25\nstep 3 loss 1.0\n")
    assert [point.loss for point in points] == [1.5, None, 1.25, 1.0]


def test_large_pieces_are_read_alike() -> None:
    text = "".join(f"step {s} loss {1 / (s + 1):.4f}\nval_loss {2 / (s + 1):.4f} val_acc 60.5%\n" for s in range(900))
    reader, whole = LogReader(), LogReader()
    reader.feed(text.encode())
    whole.take(text.encode())
    assert reader.summary() == whole.summary()
    assert reader.summary().metrics == ("loss", "val_loss", "val_acc")


def test_values_in_brackets_behind_others_break_no_summary() -> None:
    reader = LogReader()
    reader.feed(b"Prec@1     0.500 (0.250)\tPrec@5     4.167 (4.167)\nEpoch 1 loss: 0.5\n")
    assert reader.failure is None
    assert reader.summary().train_loss is not None


def _loop(epoch: int, *, cleared: bool = False) -> str:
    """One loop for both, as many programs have it: what it writes beside its bar does not say which it is."""
    form = "run_{}:{}:  {}%|| {}/40 [00:01<00:00,  9.5it/s]\r{{'epoch': {}, 'iter': {}, 'loss': {}.{}}}\n"
    train = "".join(form.format("train", epoch, n, n, epoch, n, 2, n) for n in (10, 20, 30))
    test = "".join(form.format("test", epoch, n, n, epoch, n, 9, n) for n in (() if cleared else (0, 10)))
    bar = f"run_test:{epoch}:  90%|| 36/40 [00:01<00:00,  9.5it/s]\r\n"
    return f"{train}{test}{bar}EP{epoch}_test, avg_loss= 1.{epoch}5\n"


def test_what_is_written_below_the_bar_of_an_evaluation_is_no_training() -> None:
    reader = LogReader()
    points = [*reader.feed("".join(map(_loop, range(3))).encode()), *reader.close()]
    assert {point.loss for point in points if point.loss is not None} == {2.1, 2.2, 2.3}
    tested = [point.eval_metrics["test avg_loss"] for point in points if "test avg_loss" in point.eval_metrics]
    assert tested == [1.05, 1.15, 1.25]
    assert [point.eval_metrics["val loss"] for point in points if "val loss" in point.eval_metrics] == [9.1] * 3
    assert {point.first_epoch for point in points if point.counters.epoch is not None} == {0}


def test_a_bar_that_was_cleared_before_it_was_full_holds_no_training_back() -> None:
    reader = LogReader()
    reader.feed(_loop(0, cleared=True).encode())
    points = reader.feed(b"{'epoch': 1, 'iter': 0, 'loss': 2.5}\n{'epoch': 1, 'iter': 10, 'loss': 2.25}\n")
    assert [point.loss for point in points] == [2.5, 2.25]


@pytest.mark.parametrize("line", ["---- mAP 0.0126 ----", "=== mAP 0.0126 ===", "  *** mAP 0.0126 ***  "])
def test_a_measure_between_two_rules_needs_no_sign(line: str) -> None:
    reader = LogReader()
    points = reader.feed("".join(f"Epoch {e}/5 step 20/20 loss: 1.0\n{line}\n" for e in (1, 2, 3)).encode())
    assert [point.metrics.get("mAP") or point.eval_metrics.get("mAP") for point in points] == [None, 0.0126] * 3


@pytest.mark.parametrize("line", ["---- version 0.0126 ----", "---- mAP 12 ----", "---- mAP 0.0126 of model a ----"])
def test_a_headline_between_two_rules_is_no_measure(line: str) -> None:
    reader = LogReader()
    points = reader.feed("".join(f"Epoch {e}/5 step 20/20 loss: 1.0\n{line}\n" for e in (1, 2, 3)).encode())
    assert [(dict(point.metrics), dict(point.eval_metrics)) for point in points] == [({"loss": 1.0}, {})] * 3


@pytest.mark.parametrize("end", ["Finished training", "Training complete in 1m 30s"])
@pytest.mark.parametrize("result", ["loss: 0.31, acc: 0.9", "Final: loss=0.31 acc=0.9", "loss: 0.31\nacc: 0.9"])
def test_values_without_a_place_behind_the_end_of_training_are_of_an_evaluation(end: str, result: str) -> None:
    reader = LogReader()
    points = reader.feed("".join(f"epoch: {e}, loss: {e}.5, acc: 0.{e}\n" for e in (1, 2, 3)).encode())
    points += reader.feed(f"{end}\n{result}\n".encode())
    assert [point.loss for point in points if point.loss is not None] == [1.5, 2.5, 3.5]
    evaluated = {name: value for point in points for name, value in point.eval_metrics.items()}
    assert evaluated == {"val loss": 0.31, "val acc": 0.9}


@pytest.mark.parametrize(
    "behind",
    [
        "loss: 3.5",  # training's last one, again
        "Total train loss: 0.31",
        "epoch: 1, loss: 0.31",  # of another training
        "Epoch 1\nloss: 0.31",
    ],
)
def test_what_training_itself_says_behind_its_end_is_no_evaluation(behind: str) -> None:
    reader = LogReader()
    points = reader.feed("".join(f"epoch: {e}, loss: {e}.5\n" for e in (1, 2, 3)).encode())
    points += reader.feed(f"Finished training\n{behind}\n".encode())
    assert not any(point.eval_metrics for point in points)


def test_losses_whose_lines_never_tell_a_place_go_on_behind_the_end_of_training() -> None:
    points = LogReader().feed(b"loss: 1.5\nloss: 1.25\nTraining complete\nloss: 1.75\nloss: 1.0\n")
    assert [point.loss for point in points] == [1.5, 1.25, 1.75, 1.0]


def test_a_heading_in_brackets_names_the_set_of_an_evaluation() -> None:
    log = "".join(f"Epoch {e}\n[TRAIN]\n  loss = {e}.5\n[DEV]\n  loss = {e}.75\n" for e in (1, 2, 3))
    points = LogReader().feed(log.encode())
    assert [point.loss for point in points if point.loss is not None] == [1.5, 2.5, 3.5]
    assert [*points[-1].eval_metrics.values()] == [3.75]


@pytest.mark.parametrize("heading", ["Val {e}", "Validation epoch {e}", "[test] {e}", "Evaluating epoch {e} ..."])
def test_an_evaluation_before_all_training_is_none_of_an_epoch(heading: str) -> None:
    def evaluated(epoch: int) -> list[str]:
        return [heading.format(e=epoch), f"Epoch {epoch} loss {4 - epoch}.25 acc@1 0.{epoch + 1}", "Elapsed 3.5"]

    lines = evaluated(0)
    for epoch in (1, 2, 3):
        lines += [f"Train {epoch} {62 * (epoch - 1)}"]
        lines += [f"Epoch {epoch} Step {s}/62 loss 2.{s} acc@1 0.{s}" for s in (10, 62)] + evaluated(epoch)
    points = LogReader().feed("\n".join([*lines, ""]).encode())
    trained = [point for point in points if point.loss is not None]
    assert [(point.loss, point.run_step) for point in trained[:3]] == [(2.1, 10), (2.62, 62), (2.1, 72)]
    assert [(point.epoch, point.eval_metrics["val loss"]) for point in points if point.eval_metrics] == [
        (epoch, 4.25 - epoch) for epoch in range(4)
    ]
    assert trained[-1].first_epoch == 1


def test_a_number_of_samples_heads_no_evaluation() -> None:
    points = LogReader().feed(b"train 2000\nval 500\nEpoch 0 loss 2.5 acc 0.1\nEpoch 1 loss 2.25 acc 0.2\n")
    assert [(point.epoch, point.loss, point.first_epoch) for point in points] == [(0, 2.5, 0), (1, 2.25, 0)]


def test_epochs_that_are_evaluated_from_0_are_counted_from_there() -> None:
    points = LogReader().feed(b"".join(b"Epoch %d | val_loss 0.5 | val_acc 0.%d\n" % (e, e) for e in range(3)))
    assert [point.first_epoch for point in points] == [0, 0, 0]


@pytest.mark.parametrize("value", ["0.9375", "1.0"])
def test_a_final_result_needs_no_sign(value: str) -> None:
    reader = LogReader()
    reader.feed(f"epoch 1 loss 0.5\nepoch 2 loss 0.4\nfinal accuracy {value}\nfinal words 0.5\n".encode())
    assert reader.summary().metrics == ("loss", "final accuracy")


def test_whatever_stands_between_commas_belongs_to_a_counted_evaluation() -> None:
    line = "{} Batch {:04d}/{}, Loss {:9.4f}, KL-Weight {:6.3f}\n"
    text = "".join(line.format("TRAIN", at, 93, 9 - at / 93, at / 9300) for at in (0, 40, 93))
    points = LogReader().feed((text + line.format("VALID", 12, 12, 5.9119, 0.004)).encode())
    assert points[-1].eval_metrics == {"VALID Loss": 5.9119}


def test_training_that_tells_no_loss_goes_on_below_an_evaluation() -> None:
    score = "Reward at iteration {} is 1.{}\n"
    before = score.format(100, 25) + score.format(200, 15)
    reader = LogReader()
    reader.feed((before + "Reporting evaluation results:\n Accuracy: 0.615\n" + score.format(300, 12)).encode())
    summary = reader.summary()
    assert summary.step == 300
    assert summary.metrics == ("Reward", "Accuracy")


def test_the_summary_of_an_evaluation_holds_values_of_any_name() -> None:
    epoch = "Train | Epoch {0} | 20/30 | Loss 0.25 | Reco 0.2{0}\nValid Summary | Epoch {0} | Loss=0.26 | Reco=0.3{0}\n"
    reader = LogReader()
    points = reader.feed((epoch.format(1) + epoch.format(2)).encode())
    told = [point.eval_metrics["Valid Reco"] for point in points if "Valid Reco" in point.eval_metrics]
    assert told == [0.31, 0.32]


@pytest.mark.parametrize("name", ["test LogLoss", "test logloss", "Test GAUC", "test log_loss"])
def test_a_measure_of_click_rates_is_read_without_a_sign(name: str) -> None:
    reader = LogReader()
    reader.feed(f"Epoch 1/2\n1s - loss: 0.7\nEpoch 2/2\n1s - loss: 0.6\n\n{name} 0.6223\n".encode())
    assert name in reader.summary().metrics


@pytest.mark.parametrize("heading", ["", "Training on 300 samples\n"])
def test_how_much_there_is_of_each_set_begins_no_evaluation(heading: str) -> None:
    """A second fold begins with the sizes of its sets; alone, ``Testing on 49 samples`` heads what that gives."""
    fold = "".join(f"batch {n}, loss: {1 / (n + 1):.4f}, part_loss: 0.{n + 1}5\n" for n in (19, 39, 59))
    log = f"Fold 0\n{fold}Epoch: 0, train_loss: 0.5\nFold 1\n{heading}Validating on 51 samples\nTesting on 49 samples\n"
    points = [*LogReader().feed((log + fold).encode())]
    evaluated = any(point.eval_metrics for point in points)
    assert evaluated is (not heading)
    assert sum(point.loss is not None for point in points) == (7 if heading else 4)


@pytest.mark.parametrize(
    "of",
    [
        "[Test seq (cond on sampled tp)]",
        "[Test on all of the points that were left out]",
        "(test, a mean over all runs)",
    ],
)
def test_words_in_brackets_say_what_the_values_in_a_row_are_of(of: str) -> None:
    (point,) = LogReader().feed(f"Epoch 0005 {of} | Loss 24.5 | Likelihood -25.5 | KL fp 4.3 | FP STD 1.4|\n".encode())
    assert (point.epoch, point.loss, dict(point.metrics)) == (5, None, {})
    assert {name.lower(): value for name, value in point.eval_metrics.items()} == {
        "test loss": 24.5,
        "test likelihood": -25.5,
        "test kl fp": 4.3,
    }


def test_what_no_word_claims_in_the_summary_of_a_test_is_no_point_of_the_validation() -> None:
    reader = LogReader()
    epochs = "".join(
        f"| epoch {e} | 20/40 batches | loss 1.5 |\n| end of epoch {e} | valid loss 2.5 | n100 0.{e}15 | r20 0.{e}25\n"
        for e in range(1, 6)
    )
    points = reader.feed(f"{epochs}| End of training | test loss 2.75 | n100 0.40 | r20 0.35 |\n".encode())
    found = {name: value for point in points for name, value in {**point.metrics, **point.eval_metrics}.items()}
    assert found == {"loss": 1.5, "valid loss": 2.5, "n100": 0.515, "r20": 0.525, "test loss": 2.75}


HEADS = (
    ("Training: {n} samples (32 per mini-batch)", "Validation: {m} samples (32 per mini-batch)"),
    ("Train: {n} images", "Val: {m} images"),
    ("Training on {n} samples", "Validating on {m} samples"),
    ("Training ({n} samples)", "Testing ({m} samples):"),
    ("-- Train - {n} batches", "-- Eval - {m} batches"),
    ("TRAIN: {n:,} examples, shuffled", "TEST: {m:,} examples, in order"),
    ("Train set: {n} training samples", "Dev set: {m} held out samples"),
)


@pytest.mark.parametrize("sizes", [True, False])
@pytest.mark.parametrize(("trains", "evaluates"), HEADS)
def test_a_heading_with_the_number_of_samples_says_what_the_summary_below_it_is_of(
    trains: str, evaluates: str, sizes: bool
) -> None:
    """In front of everything it is the size of a set."""
    heads = [one.format(n=7200, m=1800) for one in (trains, evaluates)]
    lines = heads if sizes else []
    for n in range(3):
        steps = [
            f"Training [{n}][{at:5d}/  225]   Loss 2.{9 - n}{at % 7}   Top1 1{n}.{at % 7}5" for at in (50, 100, 150)
        ]
        lines += [f">>>>>>>> Epoch   {n}", heads[0], *steps, f"==> Top1: 1{n}.5    Loss: 2.{9 - n}05", ""]
        lines += [heads[1], f"==> Top1: 2{n}.5    Loss: 3.{9 - n}05", ""]
    text = "\n".join([*lines, ""]).encode()
    reader, at_once = LogReader(), LogReader()
    points = reader.feed(text)
    at_once.take(text)
    assert at_once.summary() == reader.summary()
    evaluated = [point.eval_metrics for point in points if point.eval_metrics]
    assert [sorted(one.values()) for one in evaluated] == [[3.905, 20.5], [3.805, 21.5], [3.705, 22.5]]
    assert [point.loss for point in points if point.loss is not None and point.loss > 3] == []
    assert {name.lower() for name in reader.summary().metrics} <= {"loss", "top1", "val loss", "val top1"}


def test_the_average_of_an_evaluation_is_another_curve_than_what_its_batches_told() -> None:
    reader = LogReader()
    curves: dict[str, list[float]] = {}
    for n in range(1, 4):
        told = f"epoch:[{n}/3] train step:0 loss: 0.{n}5\nepoch:[{n}/3] val step:0 loss: 2.{n}5\n"
        for point in reader.feed(f"{told}END epoch:{n}   val loss_avg: 1.{n}5\n".encode()):
            for name, value in point.eval_metrics.items():
                curves.setdefault(name, []).append(value)
    assert curves == {"val loss": [2.15, 2.25, 2.35], "val loss_avg": [1.15, 1.25, 1.35]}


def test_what_conlleval_has_measured_is_an_evaluation() -> None:
    """Though it never says so: also behind lines that wait for others like them."""
    reader = LogReader()
    reader.feed(b"name = crf_loss/transition:0, shape = (10, 10)\n")
    reader.feed(b"processed 2330 tokens with 12 phrases; found: 9 phrases; correct: 8.\n")
    *_, point = reader.feed(b"accuracy:  69.18%; precision:  88.25%; recall:  66.50%; FB1:  75.75\n")
    assert point.eval_metrics == {"accuracy": 69.18, "precision": 88.25, "recall": 66.5, "FB1": 75.75}


def test_a_class_that_is_called_like_a_measure_keeps_its_own_measures() -> None:
    reader = LogReader()
    training = (
        "iteration:{n} step:8/652, NER loss: {n}.5\nprocessed 90 tokens with 9 phrases; found: 9 phrases; correct: 8.\n"
    )
    of_all = "accuracy: 97.81%; precision: 84.02%; recall: 86.14%; FB1: 85.0{n}\n"
    of_persons = "    PER: precision: 90.19%; recall: 89.75%; FB1: 89.9{n}  18\n"
    points = reader.feed("".join((training + of_all + of_persons).format(n=n) for n in (1, 2)).encode())
    told = [point.eval_metrics["FB1"] for point in points if "FB1" in point.eval_metrics]
    assert told == [85.01, 85.02]
    assert "PER FB1" in reader.summary().metrics


def test_errors_of_forecasts_without_signs_stay_beside_one_another() -> None:
    line = b"Dataset d7-m | Test loss 0.260173 | MAE 3.155284 | RMSE 3.929621 | WMAPE 0.07266091\n"
    reader = LogReader()
    reader.feed(b"Epoch: 003 | Lr: 0.001 |Train loss: 0.403224 | Val loss: 0.307530\n")
    *_, point = [*reader.feed(line), *reader.close()]
    assert dict(point.eval_metrics) == {
        **{"Test loss": 0.260173, "Test MAE": 3.155284},
        **{"Test RMSE": 3.929621, "Test WMAPE": 0.07266091},
    }
