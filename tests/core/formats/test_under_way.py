"""What an evaluation prints of a part of its data is no result: that is in its summary, or in what it printed last."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import MetricPoint
from mpstui.core.formats.reader import LogReader

SUMMED_UP = [
    # The third batch is better than any result.
    (
        "Valid | Epoch {e} | 1/3 | 2.0 it/sec | Loss 0.5\nValid | Epoch {e} | 2/3 | 2.0 it/sec | Loss 0.1\n"
        "Valid | Epoch {e} | 3/3 | 2.0 it/sec | Loss 0.4{e}\nValid Summary | End of Epoch {e} | Valid Loss 0.4{e}\n",
        "Valid Loss",
    ),
    # The summary spells the loss otherwise; one line was printed before it.
    ("Eval Epoch: {e} [8 / 64]\tClip Loss: 0.1\nEval Epoch: {e} clip_val_loss: 0.4{e}\tepoch: {e}\n", "Eval Clip Loss"),
    (
        "Test: [ 0/30]\tTime 0.1 (0.1)\tLoss 0.1 (0.1)\n"
        "Test: [20/30]\tTime 0.1 (0.1)\tLoss 0.2 (0.2)\nTest loss: 0.4{e}\n",
        "Test Loss",
    ),
    # The epoch in brackets, the batch by its name; a value may be that of the training just before.
    (
        "Train: [ {e}/9] Step 008/008 Loss 0.597 Prec@(1,5) (12.5%, 50.0%)\n"
        "Valid: [ {e}/9] Step 000/005 Loss 0.1 Prec@(1,5) (0.0%, 50.0%)\n"
        "Valid: [ {e}/9] Step 004/005 Loss 0.597 Prec@(1,5) (5.0%, 37.5%)\n"
        "Valid: [ {e}/9] Step 005/005 Loss 0.4{e} Prec@(1,5) (8.3%, 45.8%)\nValid: [ {e}/9] Final Prec@1 8.3333%\n",
        "Valid Loss",
    ),
    # Named like the steps of training, behind a word of its own; what counts is the average.
    (
        "Valid\tIter: [1/3]\tTime 0.1 (0.1)\tLoss 0.1 (0.1)\nValid\tIter: [2/3]\tTime 0.1 (0.1)\tLoss 0.9 (0.5)\n"
        "Valid\tIter: [3/3]\tTime 0.1 (0.1)\tLoss 0.2 (0.4{e})\n",
        "Valid Loss",
    ),
    # The first batch is without a mistake: a value of 0 waits until it changes.
    (
        "Test: [   0/5]  Time: 0.623 (0.623)  Loss:   0.000 ( 0.000)  Acc@1: 100.000 (100.000)\n"
        "Test: [   5/5]  Time: 0.093 (0.200)  Loss:  52.188 (20.066)  Acc@1:   0.000 ( 0.4{e})\n",
        "Acc@1",
    ),
    # Of how many batches is not told; fewer than were trained.
    (
        "Cross validation...\nEpoch {e} | Iter 1 | Loss 0.5\nEpoch {e} | Iter 6 | Loss 0.1\n"
        "Epoch {e} | Iter 11 | Loss 0.6\nValid Summary | End of Epoch {e} | Valid Loss 0.4{e}\n",
        "Loss",
    ),
    # A line that names the epoch again ends nothing.
    (
        "Validation:  50%|█████     | 1/2 [00:01<00:01, 2.0it/s, val_loss=0.1]\r"
        "Validation: 100%|██████████| 2/2 [00:02<00:00, 2.0it/s, val_loss=0.4{e}]\n"
        "Epoch:{e}/3\nTotal Loss: 1.5 || Val Loss: 0.4{e}\n",
        "val_loss",
    ),
    # Nor does the bar of other work between the two.
    (
        "Val: 100%|██████████| 2/2 [00:02<00:00, 2.0it/s, val_loss=0.4{e}]\n"
        " 33%|███       | 2/6 [00:02<00:04,  1.0it/s]\r100%|██████████| 6/6 [00:06<00:00,  1.0it/s]\n"
        "Epoch {e} val_loss: 0.4{e}00\n",
        "val_loss",
    ),
]
UNSUMMED = [
    (
        "Test: [ 0/30]\tLoss 0.1 (0.1)\nTest: [10/30]\tLoss 0.2 (0.2)\n"
        "Test: [20/30]\tLoss 0.9 (0.4{e})\n * Acc@1 75.0\n",
        "Test Loss",
    ),
    (
        "valid:   0%|          | 0/4 [00:00<?, ?it/s, loss=0.1]\r"
        "valid:  50%|█████     | 2/4 [00:01<00:01, 2.0it/s, loss=0.1]\r"
        "valid: 100%|██████████| 4/4 [00:02<00:00, 2.0it/s, loss=0.1]\r"
        "valid: 100%|██████████| 4/4 [00:02<00:00, 2.0it/s, loss=0.4{e}]\n",
        "valid loss",
    ),
    ("Evaluating on the validation set...\nstep 1/3 loss: 0.1\nstep 2/3 loss: 0.2\nstep 3/3 loss: 0.4{e}\n", "loss"),
    ("Validating...\nstep 1 loss: 0.1\nstep 2 loss: 0.2\nstep 3 loss: 0.4{e}\n", "loss"),
    # One line, which may count anything.
    ("Val: [{e}/3] loss: 0.4{e}\n", "loss"),
]


def _points(reader: LogReader, evaluation: str) -> list[tuple[str, float, float | None]]:
    """Of three epochs, each trained for two steps and then evaluated."""
    trained = "Epoch {e}/3 step 10/20 loss: 2.0\nEpoch {e}/3 step 20/20 loss: 1.5\n"
    text = "".join((trained + evaluation).format(e=epoch) for epoch in (1, 2, 3))
    points = [*reader.feed(text.encode()), *reader.close()]
    return [(name, value, point.epoch) for point in points for name, value in point.eval_metrics.items()]


@pytest.mark.parametrize(("evaluation", "name"), [*SUMMED_UP, *UNSUMMED])
def test_an_evaluation_has_one_value_its_result(evaluation: str, name: str) -> None:
    found = [(value, epoch) for told, value, epoch in _points(LogReader(), evaluation) if told.endswith(name)]
    assert found == [(0.41, 1), (0.42, 2), (0.43, 3)]


def test_the_results_come_alike_in_whole_blocks_and_line_by_line() -> None:
    evaluation = "".join(text for text, _ in SUMMED_UP)
    lines = "".join(
        "".join(f"Epoch {e}/9 step {s}/300 loss: {2 - e / 10 - s / 3000:.4f}\n" for s in range(1, 301))
        + evaluation.format(e=e)
        for e in range(1, 10)
    ).encode()
    whole, each = LogReader(), LogReader()
    taken = [p for p in [*whole.take(lines), *whole.close()] if isinstance(p, MetricPoint) and p.eval_metrics]
    fed = [p for p in [*each.feed(lines), *each.close()] if p.eval_metrics]
    assert [(p.eval_metrics, p.epoch) for p in taken] == [(p.eval_metrics, p.epoch) for p in fed]


def test_an_evaluation_that_is_broken_off_has_no_result() -> None:
    evaluation = "".join(f"Test: [ {batch}/300]\tLoss 0.1 (0.1)\n" for batch in (10, 20, 30))
    assert _points(LogReader(), evaluation) == []


def test_evaluations_on_two_sets_are_told_apart() -> None:
    evaluation = "Valid: [1/2] loss: 0.1\nValid: [2/2] loss: 0.4{e}\nTest: [1/2] loss: 0.2\nTest: [2/2] loss: 0.5{e}\n"
    assert _points(LogReader(), evaluation) == [
        (f"{data} loss", float(f"0.{first}{epoch}"), epoch)
        for epoch in (1, 2, 3)
        for data, first in (("Valid", 4), ("Test", 5))
    ]


def test_where_training_stands_at_an_evaluation_is_no_part_of_one() -> None:
    points = LogReader().feed("".join(f"val step {s}/900 val_loss: 0.{s}\n" for s in (100, 200, 300)).encode())
    assert [dict(point.eval_metrics) for point in points] == [{"val_loss": 0.1}, {"val_loss": 0.2}, {"val_loss": 0.3}]


@pytest.mark.parametrize(
    "lines",
    [
        "[ Epoch {n} ]\n (Training)  ppl: 8.2{n}, accuracy: 40.{n} %\n (Validation) ppl: 9.2{n}, accuracy: 38.{n} %\n",
        "Epoch {n}\nTraining: accuracy 40.{n} ppl 8.2{n}\nValidation: accuracy 38.{n} ppl 9.2{n}\n",
        "Epoch {n}\nTraining:\n  accuracy: 40.{n}\nTesting:\n  accuracy: 38.{n}\n",
        "Epoch {n}\n--- Train ---\naccuracy 40.{n}\n--- Dev ---\naccuracy 38.{n}\n",
        "Epoch {n}\ntrain: accuracy=40.{n}, ppl=8.2{n}\nval: accuracy=38.{n}, ppl=9.2{n}\n",
    ],
)
def test_what_a_word_in_front_says_of_training_is_none_of_the_evaluation_before(lines: str) -> None:
    reader = LogReader()
    points = reader.feed("".join(lines.format(n=n) for n in (1, 2, 3)).encode())
    points += reader.close()
    trained = [point.metrics["accuracy"] for point in points if "accuracy" in point.metrics]
    evaluated = [value for point in points for name, value in point.eval_metrics.items() if "accuracy" in name]
    assert (trained, evaluated) == ([40.1, 40.2, 40.3], [38.1, 38.2, 38.3])


def test_how_long_an_evaluation_took_is_no_metric() -> None:
    reader = LogReader()
    reader.feed(b"".join(b"(Validation) ppl: 9.%d, elapse: 0.11%d min\n" % (n, n) for n in (1, 2, 3)))
    assert reader.summary().metrics == ("Validation ppl",)


@pytest.mark.parametrize("heads", ["Epoch: {n}\n", "Epoch {n}/4\n"])
def test_a_shorter_bar_of_the_same_epoch_that_shows_the_same_is_an_evaluation(heads: str) -> None:
    """Neither bar is described; both show a running mean of what the other one shows."""
    reader = LogReader()
    points = []
    for n in range(4):
        trained = "".join(_bar(32 * k, 256, f"bpd=2.{n}{k}, loss=1.{n}{k}") for k in range(1, 9)) + "\n"
        evaluated = "".join(_bar(32 * k, 96, f"bpd=1.{n}{k}, loss=0.{n}{k}") for k in range(1, 4)) + "\n"
        points += reader.feed((heads.format(n=n) + trained + evaluated + "Saving...\n").encode())
    points += reader.close()
    assert [(point.epoch, dict(point.eval_metrics)) for point in points if point.eval_metrics] == [
        (n, {"val bpd": float(f"1.{n}3"), "val loss": float(f"0.{n}3")}) for n in range(4)
    ]
    assert min(point.metrics["bpd"] for point in points if "bpd" in point.metrics) >= 2
    assert min(point.loss for point in points if point.loss is not None) >= 1


def test_a_shorter_bar_of_an_epoch_of_its_own_is_no_evaluation() -> None:
    """Another task is trained on fewer batches."""
    tasks = [(1, 256), (2, 256), (3, 96), (4, 96)]
    text = "".join(
        f"Epoch: {n}\n" + "".join(_bar(32 * k, size, f"loss=1.{n}{k}") for k in range(1, size // 32 + 1)) + "\n"
        for n, size in tasks
    )
    reader = LogReader()
    assert not any(point.eval_metrics for point in [*reader.feed(text.encode()), *reader.close()])


def _bar(done: int, total: int, shown: str) -> str:
    return f"{100 * done // total:3d}%|{'█' * done:4}| {done}/{total} [00:01<00:02, 2.0it/s, {shown}]\r"


def test_the_second_bar_of_an_epoch_is_its_evaluations_where_it_shows_values_of_one() -> None:
    """Both have the epoch for a description, and tell of a measure that training has too."""
    reader = LogReader()
    text = ""
    for epoch in (1, 2):
        title = f"Epoch {epoch}/2: "
        text += "".join(title + _bar(done, 4, f"f_score=0.{done}, loss=2.{epoch}{done}") for done in range(1, 5))
        text += "\nStart Validation\n" + title + "  0%|    | 0/2 [00:00<?, ?it/s<class 'dict'>]\r"
        text += (
            title + _bar(1, 2, "f_score=0.9, val_loss=0.1") + title + _bar(2, 2, f"f_score=0.7, val_loss=0.4{epoch}")
        )
        text += "\nFinish Validation\n"
    points = [*reader.feed(text.encode()), *reader.close()]
    evaluated = [(point.eval_metrics, point.counters.epoch) for point in points if point.eval_metrics]
    assert evaluated == [({"val f_score": 0.7, "val_loss": 0.41}, 1), ({"val f_score": 0.7, "val_loss": 0.42}, 2)]
    assert [point.metrics["f_score"] for point in points if point.metrics] == [0.1, 0.2, 0.3, 0.4] * 2


def test_the_bar_of_training_may_show_what_the_last_evaluation_measured() -> None:
    """Lightning's does, alone or beside the loss: it is as long in every epoch."""
    reader = LogReader()
    shown = ("v_num=0", "v_num=0, val_loss=0.41", "v_num=0, val_loss=0.42")
    text = "".join(f"Epoch {epoch}: " + _bar(done, 4, shown[epoch]) for epoch in range(3) for done in range(1, 5))
    reader.feed(text.encode())
    reader.close()
    summary = reader.summary()
    assert (summary.epoch, summary.step, summary.steps) == (2, 4, 4)


def test_a_summary_with_more_decimals_than_the_bar_above_it_is_no_second_result() -> None:
    frame = "{phase} ({e}) | Loss: 2.{e}79, Acc: {acc} |: {done:3}%|█████| {n}/2 [00:0{n}<00:00,  8.36it/s]"
    summary = "\n\n   ## Info for epoch {e} ## \n   val_loss       : 2.{e}7936\n   Acc            : 0.3{e}3\n"
    log = ""
    for e in (1, 2, 3):
        frames = [(phase, n) for phase in ("TRAIN", "EVAL") for n in (1, 2)]
        log += "\r".join(frame.format(phase=p, e=e, n=n, done=50 * n, acc=f"0.{n + 1}{e}") for p, n in frames)
        log += summary.format(e=e)
    points = LogReader().feed(log.encode())
    told = [value for point in points for name, value in point.eval_metrics.items() if "acc" in name.lower()]
    assert [round(value, 2) for value in told] == [0.31, 0.32, 0.33]


@pytest.mark.parametrize("name", ["kNN", "KNN", "k-NN monitor", "knn_eval", "Epoch 2 kNN"])
def test_the_bar_of_a_nearest_neighbour_monitor_is_one_of_an_evaluation(name: str) -> None:
    """Of self-supervised trainings, whose loss says little."""
    train = "\rEpoch {e}/3: 100%|###| 5/5 [00:02<00:00,  2.0it/s, loss=0.5{e}]\n"
    drawn = ((0, "90"), (1, "90"), (1, "40"), (2, "40"))
    rows = "".join(f"\r{name}: {50 * n}%|#  | {n}/2 [00:01<00:01,  2.0it/s, Accuracy={a}.{{e}}]" for n, a in drawn)
    reader = LogReader()
    text = "".join((train + rows + "\n").format(e=epoch) for epoch in (1, 2, 3))
    points = [*reader.feed(text.encode()), *reader.close()]
    assert [value for point in points for value in point.eval_metrics.values()] == [40.1, 40.2, 40.3]
    assert [point.metrics for point in points if "Accuracy" in point.metrics] == []
    assert (reader.summary().step, reader.summary().steps) == (5, 5)


def test_a_padded_count_of_batches_is_one() -> None:
    lines = "".join(f"Evaluating Epoch 1 {25.0 * n:5.1f}% | batch: {n:9d} of {4:9d} | loss: 0.9{n}\n" for n in range(4))
    points = LogReader().feed(f"epoch 1 loss 0.5\n{lines}Epoch 1 Validation Summary: loss: 0.75 |\n".encode())
    assert [dict(point.eval_metrics) for point in points if point.eval_metrics] == [{"val loss": 0.75}]


def test_one_summary_tells_the_results_of_the_validation_and_the_test_above_it() -> None:
    """Their batches have no total, and there are too few of them to print a second line."""
    evaluation = (
        ">> valid \tEpoch {e} \t Iteration 0 \t loss 0.7{e}\n>> test \tEpoch {e} \t Iteration 0 \t loss 0.8{e}\n"
        "Val loss: 0.4{e} \t test loss: 0.5{e} \t epoch {e}\n"
    )
    lines = "".join(
        f"Epoch {e} \t Iteration 0 \t loss 2.{e}\nEpoch {e} \t Iteration 20 \t loss 1.{e}\n" + evaluation.format(e=e)
        for e in (0, 1, 2)
    )
    reader = LogReader()
    points = [*reader.feed(lines.encode()), *reader.close()]
    told = [dict(point.eval_metrics) for point in points if point.eval_metrics]
    assert [sorted(one.values()) for one in told] == [[0.4, 0.5], [0.41, 0.51], [0.42, 0.52]]
    assert [point.loss for point in points if point.loss is not None] == [2.0, 1.0, 2.1, 1.1, 2.2, 1.2]


def test_the_step_of_the_training_is_no_batch_of_its_evaluation() -> None:
    lines = "".join(
        f"Epoch 0 Iteration {step} loss 1.{step}\nValid Epoch 0 Iteration {step} loss 0.{step}\n"
        for step in (10, 20, 30)
    )
    points = LogReader().feed(lines.encode())
    assert [value for point in points for value in point.eval_metrics.values()] == [0.1, 0.2, 0.3]


_EPOCH = (
    "Epoch: [{e}]  [ 0/20]  eta: 0:00:09  lr: 0.0001  loss: 2.9{e} (2.9{e})  loss_ce: 1.4{e} (1.4{e})\n"
    "Epoch: [{e}]  [19/20]  eta: 0:00:00  lr: 0.0001  loss: 2.7{e} (2.8{e})  loss_ce: 1.3{e} (1.3{e})\n"
    "Averaged stats: lr: 0.0001  loss: 2.7{e} (2.8{e})  loss_ce: 1.3{e} (1.3{e})\n"
)
_TEST = (
    "Test:  [0/5]  eta: 0:00:00  loss: 2.0{e} (2.0{e})  loss_ce: 1.0{e} (1.0{e})\n"
    "Test:  [4/5]  eta: 0:00:00  loss: 2.1{e} (2.0{e})  loss_ce: 1.1{e} (1.0{e})\n"
    "Test: Total time: 0:00:02 (0.1 s / it)\n"
)


def _values(text: str, name: str) -> list[float]:
    reader = LogReader()
    points = [*reader.feed(text.encode()), *reader.close()]
    told = [{**point.metrics, **point.eval_metrics} for point in points]
    return [values[name] for values in told if name in values]


def test_a_summary_below_the_last_batch_that_does_not_say_whose_it_is_is_the_evaluations() -> None:
    summary = "Averaged stats: loss: 2.1{e} (2.0{e})  loss_ce: 1.1{e} (1.0{e})\nAccumulating results...\n"
    log = "".join((_EPOCH + _TEST + summary).format(e=e) for e in range(3))
    assert _values(log, "loss") == [2.90, 2.70, 2.70, 2.91, 2.71, 2.71, 2.92, 2.72, 2.72]
    assert _values(log, "loss_ce") == [1.40, 1.30, 1.30, 1.41, 1.31, 1.31, 1.42, 1.32, 1.32]
    assert _values(log, "Test loss") == [2.00, 2.01, 2.02]


def test_a_record_of_other_names_below_an_evaluation_stays_one_of_training() -> None:
    record = "Averages: loss: 2.6{e}  loss_ce: 1.2{e}  grad_norm: 0.3{e}\n"
    log = "".join((_EPOCH + _TEST + record).format(e=e) for e in range(3))
    assert _values(log, "loss")[2:4] == [2.70, 2.60]
    assert _values(log, "Test loss") == [2.00, 2.01, 2.02]
