"""From a parsed command line to a finished training."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from . import assemble, checkpoint, device, garbage, options, tasks
from .checkpoint import CheckpointFolder, Loaded
from .control import Control
from .distributed import Group, Ranks
from .errors import TrainingError, UsageError
from .job import Job
from .loop import Loop
from .measuring import CachedBatches, fit_batch_size
from .options import Options
from .startup import SETUP_SECONDS, Startup
from .tasks import Task

_COMPILING_SECONDS = 900.0
_RESUME_REMEDY = "use the options it was trained with, or leave --resume out"


def run(
    name: str,
    args: argparse.Namespace,
    environ: Mapping[str, str],
    control: Control,
    startup: Startup | None = None,
) -> None:
    """Train a task with the given options; ``startup`` has been running since the process began.

    Raises:
        UsageError: something asked for is not available.
        TrainingError: the training could not go on.
    """
    startup = startup or Startup(environ)
    with assembled(name, args, environ, control, startup) as (job, loaded):
        _introduce(job)
        if loaded:
            resume(job, loaded)
        compiling = job.network.compiled
        what, patience = ("compiling, first step", _COMPILING_SECONDS) if compiling else ("first step", SETUP_SECONDS)
        startup.begin(what, patience=patience)
        try:
            Loop(job, startup).run()
        except RuntimeError as error:
            operation = str(error).partition(" does not have a deterministic implementation")
            if not job.options.deterministic or not operation[1]:
                raise
            raise TrainingError(
                f"--deterministic: {operation[0]} has no such algorithm on {job.device.type}"
            ) from error


@contextmanager
def assembled(
    name: str,
    args: argparse.Namespace,
    environ: Mapping[str, str],
    control: Control,
    startup: Startup | None = None,
) -> Iterator[tuple[Job, Loaded | None]]:
    """Yield a training, seeded and on its device, and the checkpoint to resume from, if any, not applied yet.

    Raises:
        UsageError: something asked for is not available.
    """
    asked = options.from_namespace(args)
    startup = startup or Startup(environ)
    startup.begin("reading the data")
    folder = CheckpointFolder(_out(asked, name, environ), asked.keep, environ.get("MPSTUI_RUN_ID"))
    ranks = Ranks.from_environment(environ)
    chosen, passed_over = device.choose(asked.device, local_rank=ranks.local_rank)
    loaded = _resumed(name, asked, folder)
    # The seed decides data and order: a resumed run must have its original seed before it reads anything.
    args.seed = assemble.first_known(asked.seed, _saved_seed(loaded), options.DEFAULT_SEED)
    task: Task = tasks.find(name)(args)
    if count := getattr(args, "reuse_batches", 0):
        task = cast("Task", CachedBatches(task, count, chosen))
    _check_signature(task, loaded)
    startup.begin("building the model")
    group = Group(ranks, chosen)
    wish = assemble.Request(
        name=name, task=task, options=asked, seed=args.seed, device=chosen, group=group, folder=folder,
        reporter=startup.reporter, control=control, loaded=loaded,
    )  # fmt: skip
    if longest_seconds := getattr(args, "longest_step", 0.0):
        garbage.look_from_here()  # the steps it tries out leave garbage
        wish = fit_batch_size(wish, longest_seconds)
    try:
        job = assemble.assemble(wish)
        garbage.look_from_here()
        if passed_over:
            job.reports.notify("note", passed_over)
        try:
            yield job, loaded
        finally:
            job.stepper.close()
    finally:
        group.close()


def _resumed(name: str, asked: Options, folder: CheckpointFolder) -> Loaded | None:
    if asked.resume is None:
        return None

    def misfit(state: Mapping[str, Any]) -> str | None:
        if reason := checkpoint.incomplete(state):
            return reason
        return None if state["task"] == name else f"it is of the task {state['task']}, not {name}"

    loaded = checkpoint.find(asked.resume, folder.path, misfit, lambda text: print(text, flush=True))
    if loaded is None:
        print(f"no checkpoint in {folder.path} yet: starting from the beginning", flush=True)
    return loaded


def _saved_seed(loaded: Loaded | None) -> int | None:
    return int(loaded.state["order"]["seed"]) if loaded else None


def _check_signature(task: Task, loaded: Loaded | None) -> None:
    if loaded is None:
        return
    saved, mine = dict(loaded.state["signature"]), dict(task.signature)
    if saved != mine:
        difference = f"{_in_words(saved)}, asked for: {_in_words(mine)}"
        raise UsageError(f"{loaded.path} is a checkpoint of another model ({difference}); {_RESUME_REMEDY}")


def resume(job: Job, loaded: Loaded) -> None:
    """Continue from a checkpoint.

    Raises:
        UsageError: its weights or its optimizer's state do not fit.
    """
    try:
        job.load_state_dict(loaded.state)
    except (ValueError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UsageError(f"{loaded.path} does not fit this model ({reason}); {_RESUME_REMEDY}") from error
    job.folder.goes_on_from(loaded.state)
    saved = loaded.state["order"]
    if (saved["size"], saved["step_size"], saved["seed"]) != _identity(job):
        _restart_epoch(job, saved)
    step, written_on = job.progress.step, loaded.state["device"]
    job.reports.notify("note", f"resumed from {loaded.path} (step {step}, written on {written_on})")
    if job.progress.epoch > job.options.epochs:
        job.reports.say(
            f"nothing left to do: that run had all its {job.options.epochs} epochs, give more with --epochs"
        )


def _identity(job: Job) -> tuple[int, int, int]:
    order = job.feed.order
    return order.size, order.step_size, order.seed


def _restart_epoch(job: Job, saved: Mapping[str, Any]) -> None:
    """Start the epoch over: other data, step size or seed change the order of samples, so the old position is void."""
    size, step_size, seed = _identity(job)
    job.progress.epoch_step, job.progress.samples, job.progress.sums = 0, 0, {}
    job.reports.notify(
        "note",
        f"epoch {job.progress.epoch} starts again: the checkpoint has {saved['size']:,} samples in steps of"
        f" {saved['step_size']} with seed {saved['seed']}, this run {size:,} in steps of {step_size} with seed {seed}",
    )


def _introduce(job: Job) -> None:
    """Print the first lines: device, data, model, optimizer, plan."""
    for line in _introduction(job):
        job.reports.say(line)
    facts = {"device": job.device.reading(job.precision.name), "data": job.task.data}
    job.reports.phase("setup", job.progress, expect_next_in=SETUP_SECONDS, **facts)


def _introduction(job: Job) -> list[str]:
    order, asked = job.feed.order, job.options
    parameters = sum(weight.numel() for weight in job.model.parameters())
    compiled = " · compiled" if job.network.compiled else ""
    sharded = f" · sharded over {job.group.ranks.world_size} processes" if job.layout.divided else ""
    lr = job.optimizer.param_groups[0]["peak_lr"]
    batch = f"{order.step_size} samples a step (micro-batch {job.stepper.micro_batch})"
    return [
        f"device: {job.device.type} ({job.device.name}) · precision {job.precision.name}{compiled}{sharded}",
        f"data: {job.task.data}",
        f"model: {_in_words(job.task.signature)} · {parameters:,} parameters",
        f"optimizer: {asked.optimizer} · lr {lr:g} · {batch}",
        f"plan: {asked.epochs} epochs of {order.steps_per_epoch} steps · seed {job.seed}",
    ]


def _out(asked: Options, name: str, environ: Mapping[str, str]) -> Path:
    if asked.out:
        return asked.out
    folder = environ.get("MPSTUI_RUN_DIR")
    return Path(folder) / "checkpoints" if folder else Path("checkpoints") / name


def _in_words(signature: Mapping[str, Any]) -> str:
    return " · ".join(f"{name} {value}" for name, value in signature.items()).removeprefix("model ")
