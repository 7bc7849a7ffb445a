"""An exception names numbers in its last line; none of them is a reading."""

from __future__ import annotations

import pytest

from mpstui.core.formats.reader import LogReader

SENTENCES = [
    "RuntimeError: MPS backend out of memory (MPS allocated: 1.25 GiB, other allocations: 8.50 MiB, max allowed: 2.00)",
    "[rank1]: torch.cuda.OutOfMemoryError: CUDA out of memory. Process 7 has loss: 0.5 used",
    "UserWarning: loss: 0.75 was reported twice at step: 12",
    "my.package.TrainingError: step: 40 loss: nan",
    "KeyError: 3",
    "Error: loss: 0.5 is not finite, step: 40",
    "MPS backend out of memory (MPS allocated: 17.45 GB, other allocations: 1.5 GB, max allowed: 20.13 GB)",
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.2 GiB is free",
    "2026-01-02 10:00:00,123 - ERROR - Training failed at step 120: loss = nan, lr = 0.1",
    "2026-01-02 10:00:00 | ERROR | __main__:main:12 - RuntimeError: loss: 0.5 at step: 3",
    "/env/lib/torch/optim/lr_scheduler.py:131: UserWarning: step: 3 before optimizer.step(), lr=0.1, loss=0.5",
    "[W socket.cpp:401] warning: lr: 0.1 loss: 0.5",
    "WARNING:root:loss=0.5 is too high, lr=0.1",
    "2026-01-02 10:00:00 WARNING train.py:120: grad norm 12.5 exceeds 10.0, lr=0.1",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "[E ProcessGroupNCCL.cpp:474] [Rank 0] timeout: WorkNCCL(SeqNum=42, NumelIn=1) ran for 600123 milliseconds",
    "E0102 10:00:00.123000 140 torch/distributed/elastic/api.py:869] failed (exitcode: -9) local_rank: 0 (pid: 7)",
    "Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations.",
    "Abort trap: 6",
    "  exitcode  : -9 (pid: 2411)",
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1234.0",
    "trainer: argument --lr: -1 is not a number of at least 0; see python -m trainer cifar --help",
    "2026-01-02 10:00:00 train.py: error: argument -l/--lr: invalid float value: '0,1', lr=0.1",
    "argument --epochs: invalid int value: '3.5'",
    "trainer: argument task: invalid choice: 'loss: 3' (choose from step: 1)",
    "trainer: unrecognized arguments: --lr=0.1 --loss=3 loss: 3",
    "usage: train.py [-h] [--lr 0.1] [--loss 3] epochs: 3",
    "zsh: killed     python train.py --lr 0.1 --loss 0.5 --epochs=10",
]

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 120, in <module>
    train(epochs=10, lr=0.001, loss=0.5)
          ~~~~~~^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/me/train.py", line 80, in train
    raise ValueError(f"epoch: 3, loss: 0.5")
ValueError: epoch: 3, loss: 0.5
/env/lib/torch/optim.py:12: UserWarning: told twice
  warnings.warn("step: 5 loss: 0.5")
"""


@pytest.mark.parametrize("sentence", SENTENCES)
def test_an_exception_is_no_reading(sentence: str) -> None:
    reader = LogReader()
    points = [*reader.feed(f"{sentence}\n".encode() * 5), *reader.close()]
    assert points == []


def test_a_metric_called_error_still_is_one() -> None:
    reader = LogReader()
    lines = "".join(f"step: {step} loss: {1 / step:.4f} Error: {2 / step:.4f}\n" for step in range(1, 6))
    points = [*reader.feed(lines.encode()), *reader.close()]
    assert len(points) == 5


@pytest.mark.parametrize("prefix", ["", "[rank0]:", "2026-01-02T10:00:00.123456789Z stderr F ", "  + | "])
def test_the_source_in_a_traceback_is_no_reading(prefix: str) -> None:
    reader = LogReader()
    text = "".join(f"{prefix}{line}\n" for line in TRACEBACK.splitlines()[:7]) + "epoch: 4, loss: 0.25\n"
    points = reader.feed(text.encode())
    assert [(point.epoch, point.loss) for point in points] == [(4, 0.25)]


def test_the_source_below_a_warning_is_no_reading() -> None:
    reader = LogReader()
    points = reader.feed((TRACEBACK + "  step: 6 loss: 0.25\n").encode())
    assert [(point.step, point.loss) for point in points] == [(6, 0.25)]


def test_metrics_that_are_logged_as_warnings_are_metrics() -> None:
    """The default level of Python's logging shows warnings alone, so people log everything as one."""
    points = LogReader().feed(b"WARNING:root:epoch 3, loss 0.5, lr 0.1\nWARNING:root:loss: 0.25\n")
    assert [(point.epoch, point.loss) for point in points] == [(3, 0.5), (3, 0.25)]


def test_errors_of_a_model_are_metrics() -> None:
    points = LogReader().feed(b"TrainError: 0.5, TestError: 0.25, epoch: 3\nEPOCH 4 ERROR: 0.125\n")
    assert [dict(point.metrics) for point in points] == [{"TrainError": 0.5}, {"TrainError": 0.125}]
    assert points[0].eval_metrics == {"TestError": 0.25}


def test_usage_and_arguments_that_were_measured_are_metrics() -> None:
    lines = "usage: {0}2.5, epoch: 3, step: {0}, loss: 0.5\nepoch: 4, step: {0}, argument: {0}.5, loss: 0.25\n"
    points = LogReader().feed("".join(map(lines.format, (1, 2))).encode())
    assert [(point.epoch, point.loss) for point in (points[0], points[-1])] == [(3, 0.5), (4, 0.25)]
    assert set().union(*(point.metrics for point in points)) == {"usage", "argument", "loss"}


@pytest.mark.parametrize("bound", ["at least", "at most", "not a number of at least", "no more than", "up to"])
def test_a_bound_is_no_metric(bound: str) -> None:
    (point,) = LogReader().feed(f"epoch: 3, loss: 0.5, lr is {bound} 2\n".encode())
    assert set(point.metrics) == {"loss"}


@pytest.mark.parametrize(
    "behind",
    [
        "/env/torch/nn/parallel/_functions.py:68: UserWarning: gathered along dimension 0",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "wandb: Waiting for the run to finish",
    ],
)
def test_a_bar_that_another_stream_writes_behind_is_read(behind: str) -> None:
    reader = LogReader()
    reader.feed(b" 40%|####      | 4/10 [00:01<00:01, 4.00it/s, loss=0.75]\r")
    reader.feed(f" 50%|#####     | 5/10 [00:01<00:01, 5.00it/s, loss=0.5]{behind}\n".encode())
    found = reader.summary()
    assert (found.step, found.steps) == (5, 10)
    assert found.train_loss is not None
    assert found.train_loss.last == 0.5
