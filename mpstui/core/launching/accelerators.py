"""The queue that follows the accelerator: which group a run waits in, and which GPUs it may be given there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...wire.records import GPU_VARIABLE, GpuRule, QueueRule
from ...wire.rundir import slug
from ..machine import Machine, visible_gpus
from .choice import ACCELERATOR_QUEUE, LaunchChoice

_WORKERS = re.compile(r"--(?:nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus)(?:=(?P<count>\w+))?")
"""How torchrun, accelerate and deepspeed are told how many processes, with a device each, to start here."""


def accelerator(device: str, environ: Mapping[str, str], machine: Machine) -> str:
    """mps, cuda or cpu: what a run on ``device`` will use as far as a cheap look can tell."""
    if device != "auto":
        return device
    seen = visible_gpus(environ, ())
    hidden = seen is not None and not seen.names
    return next(found for found in machine.usable_devices() if found != "cuda" or not hidden)


def queue_rule(choice: LaunchChoice, device: str, environ: Mapping[str, str], machine: Machine) -> QueueRule:
    """The choice's queue, the group that follows the accelerator called by it."""
    if choice.queue.group != ACCELERATOR_QUEUE:
        return choice.queue
    return choice.queue.but(group=accelerator(device, environ, machine))


def gpu_rule(
    choice: LaunchChoice,
    rule: QueueRule,
    device: str,
    argv: Sequence[str],
    environ: Mapping[str, str],
    machine: Machine,
) -> GpuRule | None:
    """The GPUs a run in group ``cuda`` may be given; None elsewhere, and where the machine's are not known.

    Args:
        argv: the command; a launcher in it takes a GPU for each process it starts.
        environ: the run's whole environment.
    """
    if rule.group is None or slug(rule.group) != "cuda" or accelerator(device, environ, machine) != "cuda":
        return None
    seen = visible_gpus(environ, machine.gpus())
    if seen is None or not seen.names:
        return None
    names = list(seen.names)
    if GPU_VARIABLE not in choice.drop_env and (GPU_VARIABLE in choice.env or GPU_VARIABLE in choice.profile.env):
        return GpuRule(names, len(names), fixed=True)
    return GpuRule(names, min(workers(argv) or len(names), len(names)), env=_needed(seen.env, environ))


def workers(argv: Sequence[str]) -> int | None:
    """How many processes the command starts on this host; None: one for each GPU it finds (``gpu``, ``auto``)."""
    for position, word in enumerate(argv):
        found = _WORKERS.fullmatch(word)
        if found:
            count = found["count"] or next(iter(argv[position + 1 : position + 2]), "")
            return max(int(count), 1) if count.isdecimal() else None
    return 1


def _needed(env: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if environ.get(name) != value}
