"""What stands beside the numbers: warnings, remarks of libraries, the banner of an evaluation."""

from __future__ import annotations

import pytest

from mpstui.core.formats.points import LossSummary, MetricPoint
from mpstui.core.formats.reader import LogReader


def read(*lines: str) -> list[MetricPoint]:
    return LogReader().feed("\n".join([*lines, ""]).encode())


def test_a_record_ends_where_a_warning_of_another_stream_begins() -> None:
    warned = "/home/ann/box/augment.py:31: UserWarning: ragged arrays of shape 12 are slow"
    points = read(
        f"iter 10 || Loss: 3.25 || {warned}",
        "  pick = draw(self.options, loss=9.5)",
        "iter 20 || Loss: 3.125 || took 0.2 s",
    )
    assert [(point.step, point.loss) for point in points] == [(10, 3.25), (20, 3.125)]
    assert not {name for point in points for name in point.metrics} & {"shape", "loss"}


@pytest.mark.parametrize(
    "line",
    [
        "2024-05-04 22:08:00.8: I tensorflow/core/shuffle.cc:42] Filling up (this takes a while): 17403 of -2",
        "W0504 external/local_xla/stream/rendezvous.cc:31] waited: 12.5",
    ],
)
def test_a_remark_of_a_library_holds_no_metric(line: str) -> None:
    reader = LogReader()
    for step, digit in enumerate("1428", 1):
        told = line.replace("17403", f"17{digit}03").replace("12.5", f"{digit}.5")
        reader.feed(f"step {step} loss 2\n{told}\n".encode())
    assert reader.summary().metrics == ("loss",)


def test_what_a_solver_of_caffe_prints_is_no_remark() -> None:
    points = read(*(f"I0312 16:52:2{n} 101 solver.cpp:228] Iteration {n}00, loss = 2.{n}" for n in (1, 2)))
    assert [point.loss for point in points] == [2.1, 2.2]


def test_a_banner_names_the_data_that_is_evaluated() -> None:
    points = read(
        "step 9 loss 0.5", "evaluate:dev", "accuracy: 91.25%; FB1: 80.5", "evaluate : test", "accuracy: 90.5%"
    )
    assert [point.eval_metrics for point in points[1:]] == [{"accuracy": 91.25, "FB1": 80.5}, {"Test accuracy": 90.5}]


def test_the_learning_rate_may_be_announced_in_many_words() -> None:
    reader = LogReader()
    for epoch, rate in ((1, 0.01), (2, 0.005)):
        reader.feed(f"Learning rate for this whole epoch: {rate}\nEpoch [{epoch}/9] Loss: 0.5\n".encode())
    assert reader.summary().learning_rate == 0.005


def test_the_best_value_of_a_sentence_has_no_name_of_two_clauses() -> None:
    reader = LogReader()
    reader.feed(b"epoch 1 loss 0.5\nTraining of the detector is done and the best AP is 0.25\n")
    assert not any("done" in name for name in reader.summary().metrics)


def test_a_bar_that_loads_is_not_the_training() -> None:
    reader = LogReader()
    reader.feed(b"\rPreloading the set:  50%|#####     | 30/60 [00:01<00:01, 30.0it/s]")
    reader.close()
    assert (reader.summary().step, reader.summary().steps) == (None, None)


def test_a_sentence_at_the_end_of_a_log_is_whole() -> None:
    reader = LogReader()
    reader.feed(b"Epoch 1, test mse is 0.25.\nEpoch 2, test mse is 0.125.")
    assert [point.eval_metrics for point in reader.close()] == [{"test mse": 0.125}]


def test_a_part_of_a_program_is_no_step_of_the_training() -> None:
    reader = LogReader()
    reader.feed(b"Step 6: Saving the model in ./out\nStep 7: Writing some text\n")
    assert reader.summary().step is None
    reader.feed(b"Step 8: loss 0.5\nStep 9: loss 0.25\n")
    assert reader.summary().step == 9


def test_an_epoch_among_options_is_planned() -> None:
    reader = LogReader()
    options = (
        "data: squad",
        "name: default",
        "model: small",
        "max_length: 512",
        "epoch: 15",
        "batch: 8",
        "fp16: False",
    )
    reader.feed("\n".join(["settings", *(f" * {option}" for option in options), ""]).encode())
    reader.feed(b"{'data': 'squad', 'name': 'default', 'model': 'small', 'batch': 8, 'epoch': 15, 'seed': 1}\n")
    assert reader.summary().epoch is None
    reader.feed(b"[epoch 0/15] average loss: 1.25\nglobal step 150: loss: 0.5\n")
    assert (reader.summary().epoch, reader.summary().epochs, reader.summary().runs) == (0, 15, 1)


def test_an_epoch_of_something_else_among_options_is_no_place() -> None:
    options = ("batch: 8", "gamma: 0.1", "optim: adam", "fixbase_epoch: 0", "lr: 0.1")
    points = LogReader().feed("\n".join([*options, "epoch: [1/4][3/12] loss: 0.5", ""]).encode())
    assert {point.epoch for point in points} <= {None, 1}
    assert (points[-1].first_epoch, points[-1].counters.epoch_step) == (1, 3)
    headed = LogReader().feed("\n".join([*options[:3], "data: a", "Epoch: 0", "step 3 loss: 0.5", ""]).encode())
    assert (headed[-1].epoch, headed[-1].first_epoch) == (0, 0)


def test_the_last_line_of_keras_needs_no_end() -> None:
    reader = LogReader()
    done = "9/9 [==============================] - 1s 1s/step - loss: 0.{n} - val_loss: 0.{n}1"
    reader.feed(("Epoch 1/2\n" + done.format(n=45) + "\nEpoch 2/2\n" + done.format(n=25)).encode())
    assert [(point.loss, dict(point.eval_metrics)) for point in reader.close()] == [(0.25, {"val_loss": 0.251})]


def test_what_is_printed_beside_an_episode_is_a_metric() -> None:
    reader = LogReader()
    for n in (1, 2, 3):
        reader.feed(f"Episode {n}0 | Avg Reward: 8.{n}5 | Epsilon: 0.9{9 - n} | Win Rate: 0.{n}5%\n".encode())
    assert set(reader.summary().metrics) == {"Avg Reward", "Epsilon", "Win Rate"}


def test_the_bar_around_a_loop_tells_how_many_steps_its_lines_count() -> None:
    reader = LogReader()
    for step in range(2, 6):
        bar = f"\rppo train:   1%|          | {step}/3000 [00:02<1:48:29,  2.17s/it]\n"
        reader.feed(f"{bar}[step={step}] return=-9.{step} loss=1.{step}\n".encode())
    assert (reader.summary().step, reader.summary().steps) == (5, 3000)


def test_a_rate_of_errors_may_be_called_like_a_word() -> None:
    reader = LogReader()
    for n in (1, 2, 3):
        reader.feed(f"Epoch 0{n} | Train Loss: 0.{n} | Val Loss: 0.{n} | Val PER: 0.0{n}\n".encode())
    assert "Val PER" in reader.summary().metrics


def test_lines_behind_the_number_of_a_process_are_read() -> None:
    reader = LogReader()
    for n in (0, 1, 2):
        step = f"0: TRAIN [1][{n}0/1938]\tTime 0.14 (0.08)\tTok/s 814 (900)\tLoss/tok 3.{n} (3.4)\tLR 2.0e-03\n"
        reader.feed(step.encode())
    reader.feed(b"0: Performance: Epoch: 1\tTraining: 804957 Tok/s\n")
    summary = reader.summary()
    assert (summary.epoch, summary.step, summary.steps, summary.metrics) == (1, 20, 1938, ("Loss/tok", "LR"))
    assert summary.train_loss == LossSummary(3.0, 3.2, 3)


def test_what_two_loggers_print_is_counted_once() -> None:
    reader = LogReader()
    for n in (1, 2, 3):
        reader.feed(
            f"[Training][Epoch {n}] train loss=3.{n}\nINFO:root:[Training][Epoch {n}] train loss=3.{n}\n".encode()
        )
    assert reader.summary().train_loss == LossSummary(3.1, 3.3, 3)


def test_the_steps_of_all_processes_are_the_steps() -> None:
    reader = LogReader()
    for n in (1, 2, 3):
        reader.feed(f"0: {{'global_steps': {n}0, 'average_loss': 5.{n}, 'learning_rate': 0.0004}}\n".encode())
    assert (reader.summary().step, reader.summary().train_loss) == (30, LossSummary(5.1, 5.3, 3))


def test_events_of_mlperf_name_the_part_of_an_epoch_that_is_done() -> None:
    event = ':::MLLOG {{"key": "{}", "value": {}, "metadata": {{"epoch_num": {}}}}}\n'
    told = (("base_lr", 0.5, 0), ("eval_accuracy", 0.75, 1.25), ("eval_accuracy", 0.8, 1.5), ("epoch_stop", "null", 2))
    reader = LogReader()
    points = list(reader.feed("".join(event.format(*one) for one in told).encode()))
    assert [(p.epoch, *p.eval_metrics.values()) for p in points if p.eval_metrics] == [(0.25, 0.75), (0.5, 0.8)]
    assert (reader.summary().metrics, reader.summary().train_loss) == (("eval_accuracy",), None)


def test_a_heading_may_name_its_epoch_in_front_with_a_colon() -> None:
    lines = ("> [Epoch: {0}] Training", "> [Epoch: {0}] Avg. loss: 2.{0} | Mean IoU: 0.1{0}")
    tested = ("> [Epoch: {0}] Validation", "> [Epoch: {0}] Avg. loss: 3.{0} | Mean IoU: 0.2{0}")
    points = read(*(line.format(n) for n in range(1, 5) for line in (*lines, *tested)))
    assert [point.loss for point in points if point.loss is not None] == [2.1, 2.2, 2.3, 2.4]
    assert [value for point in points for value in point.eval_metrics.values()] == [
        3.1,
        0.21,
        3.2,
        0.22,
        3.3,
        0.23,
        3.4,
        0.24,
    ]
