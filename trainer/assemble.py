"""Assembles the parts of a training in the one order that works."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from mpstui.agent.reporter import Reporter

from . import optimizers, pretrained, rng, sharding
from .checkpoint import CheckpointFolder, Loaded
from .control import Control
from .device import Device
from .distributed import Group, Ranks
from .ema import WeightAverage
from .feed import Feed
from .job import Job
from .network import Network, Precision, resolve_precision, wants_compiling
from .options import Options
from .order import SampleOrder
from .progress import Progress
from .reports import Reports
from .schedule import Schedule
from .sharding import Layout
from .step import Stepper
from .tasks import Task, Tuned


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a training is assembled from."""

    name: str
    task: Task
    options: Options
    seed: int
    device: Device
    group: Group
    folder: CheckpointFolder
    reporter: Reporter
    control: Control
    loaded: Loaded | None = None
    """The checkpoint to resume from; it decides the sizes that the command line leaves open."""


def assemble(wish: Request) -> Job:
    """Build every part of a training, seeded and on its device; a checkpoint's weights are not loaded yet."""
    asked, device, task = wish.options, wish.device, wish.task
    micro_batch, step_size = _sizes(asked, task.DEFAULTS.sizes(device.type), wish.group.ranks, wish.loaded)
    ranks = wish.group.ranks.world_size
    wish.reporter.beat(batch_size=micro_batch, accumulate=max(1, step_size // (micro_batch * ranks)))
    drop_last = task.DEFAULTS.drop_last if asked.drop_last is None else asked.drop_last
    order = SampleOrder(task.train_size, step_size, wish.seed, drop_last)
    steps = order.steps_per_epoch
    reports = Reports(
        wish.reporter, epochs=asked.epochs, steps_per_epoch=steps, leads=wish.group.ranks.leads, ranks=ranks
    )
    _prepare_torch(wish)
    model = device.place(_begun(task.build_model(), wish, reports))
    task.to_device(device)
    precision = _precision(wish, reports)
    layout = _layout(wish, model, precision, reports)
    optimizer = _optimizer(wish, layout.held(task.parameter_groups(model)), step_size)
    network = _network(wish, layout, model, precision, asked.epochs * steps, reports)
    return Job(
        name=wish.name,
        task=task,
        options=asked,
        seed=wish.seed,
        device=device,
        model=model,
        layout=layout,
        network=network,
        optimizer=optimizer,
        stepper=_stepper(wish, network, layout, optimizer, precision, micro_batch, order.whole_step, reports),
        feed=Feed(task, order, wish.group.ranks, asked.workers),
        schedule=Schedule.of(
            asked.schedule, epochs=asked.epochs, steps_per_epoch=steps, warmup_epochs=asked.warmup_epochs
        ),
        average=WeightAverage(layout, asked.ema) if asked.ema else None,
        folder=wish.folder,
        progress=Progress.from_state(wish.loaded.state["progress"]) if wish.loaded else Progress(),
        reports=reports,
        control=wish.control,
        group=wish.group,
    )


def first_known(*values: int | None) -> int:
    """The first value that is not None."""
    return next(value for value in values if value is not None)


def _prepare_torch(wish: Request) -> None:
    torch.set_float32_matmul_precision(wish.options.matmul_precision)
    if wish.options.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS is first used
    if wish.options.deterministic != torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(wish.options.deterministic)  # imports torch.compile even to say no
    if wish.options.memory_fraction:
        wish.device.limit_to(wish.options.memory_fraction)
    wish.reporter.memory = wish.device.memory
    rng.seed_everything(wish.seed)


def _begun(model: nn.Module, wish: Request, reports: Reports) -> nn.Module:
    """The new model with the weights of ``--init-from``, unless the training is resumed."""
    path = wish.options.init_from
    if path is not None and wish.loaded is None:
        first, *lists = pretrained.fill(model, path, wish.task.translated).lines(path)
        reports.notify("note", first)
        for line in lists:
            reports.say(line)
    return model


def _layout(wish: Request, model: nn.Module, precision: Precision, reports: Reports) -> Layout:
    if wish.options.shard and wish.group.ranks.world_size == 1:
        reports.notify("note", "--shard divides over several processes (torchrun), this is one: training unsharded")
    return sharding.layout_for(model, wish.group, divided=wish.options.shard, reduced=precision.dtype)


def _optimizer(wish: Request, groups: list[dict[str, Any]], step_size: int) -> Optimizer:
    asked, defaults = wish.options, wish.task.DEFAULTS
    tuned = defaults.tuned.get(asked.optimizer, Tuned())
    # A task's learning rate is for its default optimizer: Muon would hardly move at AdamW's rate.
    own = defaults.lr if asked.optimizer == defaults.optimizer else None
    usual = optimizers.default_lr(asked.optimizer, step_size, tuned.lr) if own is None else own
    return optimizers.build(
        asked.optimizer,
        groups,
        lr=usual if asked.lr is None else asked.lr,
        weight_decay=tuned.weight_decay if asked.weight_decay is None else asked.weight_decay,
        momentum=asked.momentum,
        fused=wish.device.fuses(asked.optimizer),
        recorded=wish.device.replays_kernels,  # in eager runs too, so that the numbers are the same
    )


def _precision(wish: Request, reports: Reports) -> Precision:
    found = resolve_precision(wish.options.precision, wish.device)
    if found.note:
        reports.notify("note", found.note, unmet="precision")
    return found


def _network(
    wish: Request, layout: Layout, model: nn.Module, precision: Precision, total_steps: int, reports: Reports
) -> Network:
    asked = wish.options.compile
    compiled, refusal = wants_compiling(asked, wish.device, total_steps, model)
    if compiled and layout.divided:
        compiled, refusal = False, "a sharded training is not compiled: training eagerly" if asked == "on" else None
    if refusal:
        reports.notify("note", refusal, unmet="compile")
    # Only CUDA casts a list of tensors in one kernel; the weights of a divided model are not whole here.
    casts = wish.device.type == "cuda" and not layout.divided
    return Network(model, compiled=compiled, one_shape=_replays(wish), products=precision.dtype if casts else None)


def _replays(wish: Request) -> bool:
    """Whether whole steps are recorded, including the communication between ranks."""
    return wish.options.replay == "auto" and wish.device.replays_kernels


def _stepper(
    wish: Request,
    network: Network,
    layout: Layout,
    optimizer: Optimizer,
    precision: Precision,
    micro_batch: int,
    whole_step: int,
    reports: Reports,
) -> Stepper:
    return Stepper(
        wish.task,
        network,
        layout,
        optimizer,
        wish.device,
        precision,
        micro_batch=micro_batch,
        whole_step=whole_step,
        clip=wish.options.clip,
        ranks=wish.group.ranks,
        notify=reports.notify,
        replayed=_replays(wish) and precision.dtype is not torch.float16,  # its loss scaler decides on the CPU
    )


def _sizes(asked: Options, usual: tuple[int, int], ranks: Ranks, loaded: Loaded | None) -> tuple[int, int]:
    """Samples of a micro-batch, and of an optimizer step over all ranks.

    The samples of a step come from the checkpoint unless given: on another device or another number of processes the
    effective batch stays the same.
    """
    saved = loaded.state["order"] if loaded else None
    if saved and asked.batch_size is None and asked.accumulate is None:
        return int(saved["batch_size"]), int(saved["step_size"])
    micro = first_known(asked.batch_size, saved and saved["batch_size"], usual[0])
    accumulate = asked.accumulate or (
        usual[1] if not saved else max(1, saved["step_size"] // (micro * ranks.world_size))
    )
    return micro, micro * accumulate * ranks.world_size
