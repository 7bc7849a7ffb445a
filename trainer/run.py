"""From a parsed command line to a finished training."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mpstui.agent.reporter import Reporter

from . import checkpoint, device, optimizers, options, precision, rng, tasks
from .checkpoint import CheckpointFolder, Loaded
from .control import Control
from .distributed import Group, Ranks
from .ema import WeightAverage
from .errors import UsageError
from .feed import Feed
from .job import Job
from .loop import Loop
from .network import Network, wants_compiling
from .options import Options
from .order import SampleOrder
from .progress import Progress
from .reports import Reports
from .schedule import Schedule
from .step import Stepper
from .tasks import Task

_SETUP_SECONDS = 180.0


def run(name: str, args: argparse.Namespace, environ: Mapping[str, str], control: Control) -> None:
    """Train a task as asked.

    Raises:
        UsageError: something asked for cannot be had.
        TrainingError: the training could not go on.
    """
    reporter = Reporter.from_environment(environ)
    reporter.beat("setup", expect_next_in=_SETUP_SECONDS)
    ranks = Ranks.from_environment(environ)
    asked = options.from_namespace(args)
    where = CheckpointFolder(_out(asked, name, environ), asked.keep)
    loaded = _resumed(name, asked, where)
    args.seed = _first(asked.seed, loaded and loaded.state["order"]["seed"], options.DEFAULT_SEED)
    task = tasks.find(name)(args)
    _check_signature(task, loaded)
    chosen, passed_over = device.choose(asked.device, local_rank=ranks.local_rank)
    group = Group(ranks, chosen)
    try:
        job = assemble(name, task, asked, args.seed, chosen, group, where, reporter, control, loaded)
        if passed_over:
            job.reports.notify("note", passed_over)
        _introduce(job)
        if loaded:
            _resume(job, loaded)
        Loop(job).run()
    finally:
        group.close()


def assemble(
    name: str,
    task: Task,
    asked: Options,
    seed: int,
    chosen: device.Device,
    group: Group,
    folder: CheckpointFolder,
    reporter: Reporter,
    control: Control,
    loaded: Loaded | None = None,
) -> Job:
    """Build every part of a training; ``loaded`` decides the sizes that the command line leaves open."""
    ranks = group.ranks
    micro_batch, step_size = _sizes(asked, task, ranks, loaded)
    order = SampleOrder(task.train_size, step_size, seed)
    reports = Reports(reporter, epochs=asked.epochs, steps_per_epoch=order.steps_per_epoch, leads=ranks.leads)
    numeric = precision.resolve(asked.precision, chosen)
    torch.set_float32_matmul_precision(asked.matmul_precision)
    if asked.memory_fraction:
        chosen.limit_to(asked.memory_fraction)
    rng.seed_everything(seed)
    model = chosen.place(task.build_model())
    task.to_device(chosen)
    fused = chosen.fuses(asked.optimizer)
    optimizer = optimizers.build(
        asked.optimizer, task.parameter_groups(model), lr=asked.lr, weight_decay=asked.weight_decay, fused=fused
    )
    compiled, refusal = wants_compiling(asked.compile, chosen, asked.epochs * order.steps_per_epoch)
    network = Network(group.wrap(model), compiled=compiled)
    for note in filter(None, (numeric.note, refusal)):
        reports.notify("note", note)
    stepper = Stepper(
        task, network, optimizer, chosen, numeric,
        micro_batch=micro_batch, clip=asked.clip, ranks=ranks, notify=reports.notify,
    )  # fmt: skip
    reporter.memory = chosen.memory
    return Job(
        name=name, task=task, options=asked, seed=seed, device=chosen, precision=numeric, model=model,
        network=network, optimizer=optimizer, stepper=stepper, feed=Feed(task, order, ranks, asked.workers),
        schedule=Schedule.of(
            asked.schedule, epochs=asked.epochs, steps_per_epoch=order.steps_per_epoch, warmup_epochs=asked.warmup_epochs
        ),
        average=WeightAverage(model, asked.ema) if asked.ema else None, folder=folder,
        progress=Progress.from_state(loaded.state["progress"]) if loaded else Progress(),
        reports=reports, control=control, group=group,
    )  # fmt: skip


def _sizes(asked: Options, task: Task, ranks: Ranks, loaded: Loaded | None) -> tuple[int, int]:
    """Samples of a micro-batch, and of an optimizer step over all ranks.

    What a step holds comes from the checkpoint unless it is given: on another device or another number of processes the
    effective batch stays what it was.
    """
    saved = loaded.state["order"] if loaded else None
    if saved and asked.batch_size is None and asked.accumulate is None:
        return int(saved["batch_size"]), int(saved["step_size"])
    micro = _first(asked.batch_size, saved and saved["batch_size"], task.DEFAULTS.batch_size)
    accumulate = asked.accumulate or (1 if not saved else max(1, saved["step_size"] // (micro * ranks.world_size)))
    return micro, micro * accumulate * ranks.world_size


def _resumed(name: str, asked: Options, folder: CheckpointFolder) -> Loaded | None:
    if asked.resume is None:
        return None

    def misfit(state: Mapping[str, Any]) -> str | None:
        return None if state["task"] == name else f"it is of the task {state['task']}, not {name}"

    loaded = checkpoint.find(asked.resume, folder.path, misfit, lambda text: print(text, flush=True))
    if loaded is None:
        print(f"no checkpoint in {folder.path} yet: starting from the beginning", flush=True)
    return loaded


def _check_signature(task: Task, loaded: Loaded | None) -> None:
    if loaded is None:
        return
    saved, mine = dict(loaded.state["signature"]), dict(task.signature)
    if saved != mine:
        raise UsageError(
            f"{loaded.path} is a checkpoint of another model ({_in_words(saved)}, asked for: {_in_words(mine)});"
            " use the options it was trained with, or leave --resume out"
        )


def _resume(job: Job, loaded: Loaded) -> None:
    try:
        job.load_state_dict(loaded.state)
    except (ValueError, RuntimeError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UsageError(
            f"{loaded.path} does not fit this model ({reason}); use the options it was trained with, or leave --resume out"
        ) from error
    saved = loaded.state["order"]
    if (saved["size"], saved["step_size"]) != (job.feed.order.size, job.feed.order.step_size):
        _restart_epoch(job, saved)
    job.reports.notify(
        "note", f"resumed from {loaded.path} (step {job.progress.step}, written on {loaded.state['device']})"
    )


def _restart_epoch(job: Job, saved: Mapping[str, Any]) -> None:
    """Another data or step size makes another order: the place inside the epoch means nothing any more."""
    job.progress.epoch_step, job.progress.samples, job.progress.sums = 0, 0, {}
    job.reports.notify(
        "note",
        f"epoch {job.progress.epoch} starts again: the checkpoint has {saved['size']:,} samples in steps of"
        f" {saved['step_size']}, this run {job.feed.order.size:,} in steps of {job.feed.order.step_size}",
    )


def _introduce(job: Job) -> None:
    """The first lines: what runs on what, with what."""
    count = sum(weight.numel() for weight in job.model.parameters())
    order, asked = job.feed.order, job.options
    say = job.reports.say
    say(f"device: {job.device.type} ({job.device.name}) · precision {job.precision.name}"
        + (" · compiled" if job.network.compiled else ""))  # fmt: skip
    say(f"data: {job.task.data}")
    say(f"model: {_in_words(job.task.signature)} · {count:,} parameters")
    recipe = optimizers.RECIPES[asked.optimizer]
    say(f"optimizer: {asked.optimizer} · lr {asked.lr or recipe.lr:g} · {order.step_size} samples a step"
        f" (micro-batch {job.stepper.micro_batch}) · {asked.epochs} epochs of {order.steps_per_epoch} steps"
        f" · seed {job.seed}")  # fmt: skip
    facts = {"device": job.device.reading(job.precision.name), "data": job.task.data}
    job.reports.phase("setup", job.progress, expect_next_in=_SETUP_SECONDS, **facts)
    job.reports.reporter.beat(now=True)


def _out(asked: Options, name: str, environ: Mapping[str, str]) -> Path:
    if asked.out:
        return asked.out
    folder = environ.get("MPSTUI_RUN_DIR")
    return Path(folder) / "checkpoints" if folder else Path("checkpoints") / name


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def _in_words(signature: Mapping[str, Any]) -> str:
    return " · ".join(f"{name} {value}" for name, value in signature.items()).removeprefix("model ")
