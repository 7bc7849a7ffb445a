"""Weights cast all at once, as on CUDA, in the network of every task."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from tests.trainer.cases import cases, synthetic
from trainer.__main__ import _task_parser
from trainer.control import Control
from trainer.network import Network
from trainer.run import assembled
from trainer.tasks import find

TASKS = sorted({task for task, _ in cases().values()})


@pytest.mark.parametrize("task", TASKS)
def test_every_task_learns_from_them_what_it_learns_under_autocast_alone(task: str, tmp_path: Path) -> None:
    words = [*synthetic(task), "--precision", "bf16", "--device", "cpu", "--seed", "1", "--out", str(tmp_path)]
    args = _task_parser(find(task), task).parse_args(words)
    with assembled(task, args, dict(os.environ), Control()) as (job, _):
        batch, _ = next(iter(job.feed.epoch(1)))
        results = []
        for products in (None, torch.bfloat16):
            job.model.zero_grad(set_to_none=True)
            torch.manual_seed(1)  # for dropout
            with job.precision.autocast():
                loss = job.task.loss(Network(job.model, compiled=False, products=products), batch).value
            loss.backward()  # type: ignore[no-untyped-call]
            results.append((loss.detach(), {name: one.grad for name, one in job.model.named_parameters()}))
    (expected, gradients), (found, others) = results
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    for name, gradient in gradients.items():
        # Where a network is called twice in a step, autocast adds the two gradients in bfloat16.
        torch.testing.assert_close(others[name], gradient, rtol=2e-2, atol=1e-4)
