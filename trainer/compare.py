"""``python -m trainer compare TASK``: some steps traced on one device and compared with the same steps on another.

Only the numbers reveal a device that silently computes wrong results (see docs/mps.md). The reference, usually the CPU,
records its state, the result of every operation in one step, its gradients, the loss of each step and the weights after
the last. The other device starts from that very state, takes the same batches, and reports where it deviates.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mpstui.wire import storage

from .control import Control
from .errors import UsageError
from .job import Job
from .optimizers import set_learning_rate
from .options import positive, positive_number
from .progress import Progress
from .run import assembled, resume
from .trace import OUTSIDE, Entry, OperationTrace, Sample, differences, matched

DEFAULT_STEPS = 20
DEFAULT_TOLERANCE = 1e-3
_MOST_NAMED = 8
_GRADIENT_ALLOWANCE = 10.0
"""Gradients are sums over samples and positions, often near zero: rounding shows there first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The comparison's options, in addition to those of a training."""
    group = parser.add_argument_group("comparison")
    group.add_argument("--steps", type=positive, default=DEFAULT_STEPS, metavar="N", help="steps to take")
    group.add_argument(
        "--trace-step", type=positive, default=1, metavar="K", help="the step whose operations are recorded (1)"
    )
    group.add_argument("--trace", type=Path, metavar="FILE", help="write the reference here")
    group.add_argument("--against", type=Path, metavar="FILE", help="start from this reference and compare with it")
    group.add_argument("--result", type=Path, metavar="FILE", help="write the differences here as JSON")
    group.add_argument("--tolerance", type=positive_number, default=DEFAULT_TOLERANCE, metavar="X")


def compare(name: str, args: argparse.Namespace, environ: Mapping[str, str], control: Control) -> None:
    """Write a reference (``--trace``), or the differences from one (``--against``, ``--result``).

    Everything is float32 in full precision, eager, without dropout: only the device can make a difference.

    Raises:
        UsageError: neither file is named, or something requested is not available.
    """
    if args.trace_step > args.steps:
        raise UsageError(f"--trace-step {args.trace_step} is beyond --steps {args.steps}")
    if not (args.trace or (args.against and args.result)):
        raise UsageError("compare needs --trace FILE, or --against FILE and --result FILE")
    args.precision, args.compile, args.matmul_precision = "fp32", "off", "highest"
    torch.backends.cudnn.allow_tf32 = False
    with assembled(name, args, environ, control) as (job, loaded):
        if loaded:
            resume(job, loaded)
        muted = _mute_dropout(job.model)
        if args.trace:
            _write_reference(job, args)
        else:
            _write_differences(job, args, muted)


def _write_reference(job: Job, args: argparse.Namespace) -> None:
    early = _Walk(job).go(args.trace_step - 1)
    state = {**job.state_dict(), "progress": job.progress.state_dict()}
    # Saved now: the steps that follow change it.
    torch.save({"state": state, "losses": early.losses}, args.trace.with_suffix(".state"))
    walk = _Walk(job, record=True).go(args.steps - args.trace_step + 1)
    found = {
        "device": job.device.type,
        "losses": [*early.losses, *walk.losses],
        "entries": [
            (entry.layer, entry.operation, entry.turn, entry.result.plain(), entry.least) for entry in walk.entries
        ],
        "gradients": _plain(walk.gradients),
        "parameters": _plain(_parameters(job.model)),
    }
    torch.save(found, args.trace)


def _write_differences(job: Job, args: argparse.Namespace, muted: int) -> None:
    reference = torch.load(args.against, weights_only=True)
    begin = torch.load(args.against.with_suffix(".state"), weights_only=True)
    job.load_state_dict(begin["state"])
    for field, value in vars(Progress.from_state(begin["state"]["progress"])).items():
        setattr(job.progress, field, value)
    first = job.progress.step + 1
    theirs = reference["losses"][first - 1 :]
    walk = _Walk(job, record=True).go(len(theirs))
    entries = [
        Entry(layer, name, turn, Sample(**plain), least) for layer, name, turn, plain, least in reference["entries"]
    ]
    operations = [(entry, entry.apart(other)) for entry, other in matched(walk.entries, entries)]
    gradients = differences(walk.gradients, _samples(reference["gradients"]))
    parted = [(entry, apart) for entry, apart in operations if not apart <= args.tolerance]
    result = {
        "device": {"type": job.device.type, "name": job.device.name},
        "reference": reference["device"],
        "tolerance": args.tolerance,
        "traced_step": first,
        "dropout_off": muted,
        "losses": [_loss(first + at, *pair) for at, pair in enumerate(zip(walk.losses, theirs, strict=True))],
        "operations": {
            "compared": len(operations),
            "unmatched": _in_the_model(walk.entries) - _in_the_model([entry for entry, _ in operations]),
            "parted": len(parted),
            "first": [_operation(entry, apart) for entry, apart in parted[:_MOST_NAMED]],
            "largest": _number(max((apart for _, apart in operations), default=0.0)),
        },
        "gradients": _named(gradients),
        "gradient_nearest_the_loss": _nearest_the_loss(job.model, gradients, args.tolerance),
        "parameters": _named(differences(_parameters(job.model), _samples(reference["parameters"]))),
    }
    storage.write_json(args.result, json.loads(json.dumps(result)))


class _Walk:
    """Steps of a training without its reports, in the order in which the loop would take them."""

    def __init__(self, job: Job, *, record: bool = False) -> None:
        self._job = job
        self._record = record
        self.losses: list[float] = []
        self.entries: list[Entry] = []
        self.gradients: dict[str, Sample] = {}

    def go(self, steps: int) -> _Walk:
        """Take this many steps from the current progress; record the first if requested."""
        job = self._job
        job.model.train()
        while steps > 0:
            for batch, total in job.feed.epoch(job.progress.epoch, job.progress.epoch_step):
                self._step(batch, total)
                steps -= 1
                if not steps:
                    return self
            job.progress.next_epoch()
        return self

    def _step(self, batch: Any, total: int) -> None:
        job = self._job
        set_learning_rate(job.optimizer, job.schedule.factor(job.progress.step))
        number = job.progress.step + 1
        if self._record and not self.losses:
            with OperationTrace(job.model).recording() as trace:
                job.stepper.step(batch, total, number)
            self.entries = trace.entries
            self.gradients = {
                name: Sample.of(weight.grad) for name, weight in job.model.named_parameters() if weight.grad is not None
            }
        else:
            job.stepper.step(batch, total, number)
        job.progress.step, job.progress.epoch_step = number, job.progress.epoch_step + 1
        self.losses.append(job.stepper.read().means["loss"])


def _mute_dropout(model: nn.Module) -> int:
    """Switch every dropout off: two devices draw different random numbers. Returns how many there were."""
    muted = 0
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.p:
            module.p, muted = 0.0, muted + 1
        elif isinstance(module, nn.MultiheadAttention) and module.dropout:
            module.dropout, muted = 0.0, muted + 1
    return muted


def _parameters(model: nn.Module) -> dict[str, Sample]:
    return {name: Sample.of(value) for name, value in model.named_parameters()}


def _in_the_model(entries: Sequence[Entry]) -> int:
    return sum(entry.layer != OUTSIDE for entry in entries)


def _nearest_the_loss(model: nn.Module, gradients: list[tuple[str, float]], tolerance: float) -> str | None:
    """The last parameter whose gradient differs: backward starts at the loss, so the difference began there."""
    parted = {name for name, apart in gradients if not apart <= tolerance * _GRADIENT_ALLOWANCE}
    return next((name for name in reversed([name for name, _ in model.named_parameters()]) if name in parted), None)


def _plain(samples: Mapping[str, Sample]) -> dict[str, Any]:
    return {name: sample.plain() for name, sample in samples.items()}


def _samples(plain: Mapping[str, Any]) -> dict[str, Sample]:
    return {name: Sample(**fields) for name, fields in plain.items()}


def _loss(step: int, mine: float, theirs: float) -> dict[str, Any]:
    same = mine == theirs or (mine != mine and theirs != theirs)
    apart = 0.0 if same else abs(mine - theirs) / max(abs(theirs), 1e-6)
    return {"step": step, "loss": _number(mine), "reference": _number(theirs), "apart": _number(apart)}


def _operation(entry: Entry, apart: float) -> dict[str, Any]:
    return {"layer": entry.layer, "operation": entry.operation, "turn": entry.turn, "apart": _number(apart)}


def _named(found: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"name": name, "apart": _number(apart)} for name, apart in found[:_MOST_NAMED]]


def _number(value: float) -> float | None:
    """None stands for NaN and infinity, as everywhere in our files."""
    return value if value - value == 0 else None
