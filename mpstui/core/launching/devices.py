"""How a program is made to use a device, and which queue and GPUs follow from that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...wire.records import GPU_VARIABLE, GpuRule, QueueRule
from ...wire.rundir import AGENT_DEVICE_VARIABLE, slug
from ..machine import Machine, may_start_python, visible_gpus
from ..profiles.model import Profile
from .choice import ACCELERATOR_QUEUE, LaunchChoice
from .record import no_variant

NAMED_DEVICES = ("mps", "cuda", "cpu")
_VALUE = r"(?P<value>mps|cuda(?::\d+)?|cpu|gpu|auto)"
_KEY = r"(?P<key>[-+]{0,2}(?:[\w-]+\.)*(?:[\w-]*[_-])?(?:device|accelerator))"
_ASSIGNMENT = re.compile(rf"{_KEY}={_VALUE}")
_FLAG = re.compile(rf"--?{_KEY}")
_WORD = re.compile(_VALUE)
_SWITCH = re.compile(r"--use_mps_device(?:=(?P<value>\w+))?")


@dataclass(frozen=True, slots=True)
class DeviceVariant:
    """The whole command for one device, and the variables that go with it."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeviceVariants:
    """The devices that a program can be started on, and why not on the others."""

    found: dict[str, DeviceVariant]
    missing: dict[str, str]
    """Device -> a sentence that says why the program cannot be started on it."""


def compile_variants(
    profile: Profile, argv: Sequence[str], best: str, on_cpu: Sequence[str], environ: Mapping[str, str]
) -> DeviceVariants:
    """Return a command for every device that this program can be made to use.

    Args:
        argv: the command without any device arguments of the profile.
        best: this machine's best device, which is used for ``auto`` if the program does not know that word.
        on_cpu: the command without what only pays off on an accelerator.
    """
    found: dict[str, DeviceVariant] = {}
    missing: dict[str, str] = {}
    hides = profile.agent and may_start_python(argv[0], profile.cwd, environ)
    for device in NAMED_DEVICES:
        if variant := _variant(profile, on_cpu if device == "cpu" else argv, device):
            found[device] = variant
        elif device == "cpu" and hides:
            found[device] = DeviceVariant(tuple(on_cpu), {AGENT_DEVICE_VARIABLE: "cpu"})
        else:
            missing[device] = no_variant(device, profile=profile.path is not None, agent=profile.agent)
    words = on_cpu if best == "cpu" else argv
    plain = DeviceVariant(tuple(words))
    if "auto" in profile.device_args:
        found["auto"] = DeviceVariant((*words, *profile.device_args["auto"]))
    elif named_device(argv) is None and profile.device == "auto":
        # The arguments for the device that the program would find; none if the profile does not know that one.
        found["auto"] = found[best] if best in profile.device_args else plain
    else:
        found["auto"] = found.get(best) or found.get("cpu") or plain
    return DeviceVariants(found, missing)


def asked_device(profile: Profile, argv: Sequence[str], chosen: str | None) -> str:
    """Return the device of a launch: the one chosen now, else the profile's, the one in its command, or ``auto``."""
    if chosen:
        return chosen
    return profile.device if profile.device != "auto" else named_device(argv) or "auto"


def named_device(argv: Sequence[str]) -> str | None:
    """Return the device that a command itself names: mps, cuda or cpu."""
    for position in range(len(argv)):
        value = _device_at(argv, position)
        if value:
            word = value.partition(":")[0]
            return word if word in NAMED_DEVICES else None
    return None


def rewritten(argv: Sequence[str], device: str) -> tuple[str, ...] | None:
    """Return the command with every argument that names a device changed to this one; None if no argument does."""
    words = list(argv)
    changed = False
    position = 0
    while position < len(words):
        if _device_at(words, position):
            changed = True
            position += _replace(words, position, device)
        position += 1
    return tuple(word for word in words if word) if changed else None


def _variant(profile: Profile, argv: Sequence[str], device: str) -> DeviceVariant | None:
    if device in profile.device_args:
        base = rewritten(argv, device) or tuple(argv)
        return DeviceVariant((*base, *profile.device_args[device]))
    if named_device(argv) == device:
        return DeviceVariant(tuple(argv))
    rewrite = rewritten(argv, device)
    if rewrite:
        return DeviceVariant(rewrite)
    return DeviceVariant(tuple(argv)) if profile.device == device else None


def _device_at(words: Sequence[str], position: int) -> str | None:
    """Return the device named by the word at ``position`` (and the next one, as in ``--device mps``)."""
    word = words[position]
    assignment = _ASSIGNMENT.fullmatch(word)
    if assignment:
        return assignment["value"]
    switch = _SWITCH.fullmatch(word)
    if switch:
        following = words[position + 1] if position + 1 < len(words) else ""
        return None if "false" in (following.lower(), (switch["value"] or "").lower()) else "mps"
    if _FLAG.fullmatch(word) and position + 1 < len(words) and _WORD.fullmatch(words[position + 1]):
        return words[position + 1]
    return None


def _replace(words: list[str], position: int, device: str) -> int:
    """Replace the device named at ``position``; return how many further words that took."""
    assignment = _ASSIGNMENT.fullmatch(words[position])
    if assignment:
        words[position] = f"{assignment['key']}={device}"
        return 0
    if _SWITCH.fullmatch(words[position]):
        # `--use_mps_device [true]` is transformers'. Its opposite is `--use_cpu`; CUDA needs no argument.
        has_value = position + 1 < len(words) and words[position + 1].lower() == "true"
        if device != "mps":
            words[position] = "--use_cpu" if device == "cpu" else ""
        if has_value and device == "cuda":
            words[position + 1] = ""
        return int(has_value)
    words[position + 1] = device
    return 1


_WORKERS = re.compile(r"--(?:nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus)(?:=(?P<count>\w+))?")
"""How torchrun, accelerate and deepspeed are told how many processes to start here, each with its own device."""


def accelerator(device: str, environ: Mapping[str, str], machine: Machine) -> str:
    """Return what a run on ``device`` will use, as far as a quick check can tell: mps, cuda or cpu."""
    if device != "auto":
        return device
    seen = visible_gpus(environ, ())
    hidden = seen is not None and not seen.names
    return next(found for found in machine.usable_devices() if found != "cuda" or not hidden)


def queue_rule(choice: LaunchChoice, device: str, environ: Mapping[str, str], machine: Machine) -> QueueRule:
    """Return the choice's queue; the group ``auto`` is replaced by the name of the accelerator."""
    if choice.queue.group != ACCELERATOR_QUEUE:
        return choice.queue
    return choice.queue._replace(group=accelerator(device, environ, machine))


def gpu_rule(
    choice: LaunchChoice,
    rule: QueueRule,
    device: str,
    argv: Sequence[str],
    environ: Mapping[str, str],
    machine: Machine,
) -> GpuRule | None:
    """Return the GPUs that a run in group ``cuda`` may be given; None in other groups, and if no GPUs are known.

    Args:
        argv: the command; a launcher in it takes a GPU for each process that it starts.
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
    needed = {name: value for name, value in seen.env.items() if environ.get(name) != value}
    return GpuRule(names, min(workers(argv) or len(names), len(names)), env=needed)


def workers(argv: Sequence[str]) -> int | None:
    """Return how many processes the command starts here; None: one for each GPU that it finds (``gpu``, ``auto``)."""
    for position, word in enumerate(argv):
        found = _WORKERS.fullmatch(word)
        if found:
            count = found["count"] or next(iter(argv[position + 1 : position + 2]), "")
            return max(int(count), 1) if count.isdecimal() else None
    return 1
