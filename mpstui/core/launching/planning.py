"""The plan of a launch: the exact command and environment, what is doubtful about them, and whether they can work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...wire.records import AFTER_CHECKPOINT, GpuRule, LaunchTemplate, QueueRule, Variant
from ...wire.storage import is_secret
from ..machine import DEVICES, Machine, require_device, trainer_module
from ..model.errors import UsageError
from ..profiles.model import ARGUMENT_DOUBTS, RECIPES, ArgumentValue
from .choice import LaunchChoice, launch_arguments, split_device
from .command import EnvLine, RunEnvironment, argument_words, run_environment, shell_script, wrapped
from .devices import DeviceVariants, asked_device, compile_variants, gpu_rule, queue_rule
from .preflight import preflight_warnings
from .requirements import require_modules, require_program, require_text

_NO_RUN_BEFORE = f"{AFTER_CHECKPOINT} stays empty: `--after RUN` names the run, living or ended, whose checkpoint it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """Everything a launch will do, to be read before it is done."""

    choice: LaunchChoice
    device: str
    """auto, mps, cuda or cpu."""
    template: LaunchTemplate
    """What the supervisor gets: a command and environment for every device. Holds no secret."""
    argv: tuple[str, ...]
    """The command for ``device``; ``{run_dir}``, ``{attempt}`` and ``{checkpoint}`` are filled in by the supervisor."""
    env: tuple[EnvLine, ...]
    warnings: tuple[str, ...]
    recipe: str
    secret_names: tuple[str, ...] = ()
    missing_devices: Mapping[str, str] = field(default_factory=dict)
    """Device -> why the program cannot be told to use it."""
    queue: QueueRule = field(default_factory=QueueRule)
    """What must be true before the run starts."""
    gpus: GpuRule | None = None
    """The GPUs it may be given when it starts; None: none are chosen for it."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values for the supervisor's environment alone: never written, printed or logged."""

    @property
    def name(self) -> str:
        """What the run will be called."""
        return self.choice.name or self.choice.profile.name

    def shell(self) -> str:
        """The same launch as a shell script, for people who want to see or keep it."""
        return shell_script(self.name, self.argv, self.env, Path(self.template.cwd))


def plan(choice: LaunchChoice, *, environ: Mapping[str, str], machine: Machine, check: bool = True) -> LaunchPlan:
    """Work out a launch without doing anything.

    Args:
        choice: profile and differences.
        environ: the caller's environment.
        machine: what the run would find.
        check: False skips what must exist here (device, program, modules): to show or print what would be done.

    Raises:
        UsageError: a device, recipe, argument, program or folder that does not exist or cannot be used.
        OperationError: the interpreter lacks what a shipped trainer needs.
    """
    choice = split_device(choice)
    environ = {name: value for name, value in environ.items() if name not in choice.drop_env}
    profile = choice.profile
    recipe = _recipe(choice)
    arguments, notes = _arguments(choice, recipe)
    environment = run_environment(
        profile, recipe, choice.env, environ=environ, machine=machine, without=choice.drop_env
    )
    command = _command(choice, arguments, machine)
    variants = compile_variants(profile, command, machine.usable_devices())
    device = _device(choice, command, variants)
    whole = {**environ, **environment.recorded}
    if check:
        _require(choice, command, device, {**whole, **environment.secrets}, machine)
    template = _template(choice, device, variants, environment)
    queue = queue_rule(choice, device, whole, machine)
    warnings = notes + _warnings(choice, arguments, variants, environment)
    warnings += preflight_warnings(profile, arguments, device, whole, machine)
    return LaunchPlan(
        choice=choice,
        device=device,
        template=template,
        argv=tuple(template.variants[device].argv),
        env=_device_lines(environment, variants, device),
        warnings=tuple(warnings),
        recipe=recipe,
        queue=queue,
        gpus=gpu_rule(choice, queue, device, template.variants[device].argv, whole, machine),
        secret_names=environment.secret_names,
        missing_devices=variants.missing,
        secrets=environment.secrets,
    )


def _recipe(choice: LaunchChoice) -> str:
    _known("recipe", choice.recipe, tuple(RECIPES))
    return choice.recipe or choice.profile.recipe


def _device(choice: LaunchChoice, command: list[str], variants: DeviceVariants) -> str:
    _known("device", choice.device, DEVICES)
    device = asked_device(choice.profile, command, choice.device)
    if device not in variants.found:
        raise UsageError(variants.missing[device], _how_to_tell(device, choice), field="device")
    return device


def _how_to_tell(device: str, choice: LaunchChoice) -> str:
    if choice.profile.path is None:
        return f"type the program's own option for it behind its name, such as `--device {device}`"
    return f'add to the profile, in the words of the program: [device_args] {device} = ["--device", "{device}"]'


def _require(
    choice: LaunchChoice, command: list[str], device: str, environ: Mapping[str, str], machine: Machine
) -> None:
    """What must be there, cheapest first."""
    require_text([*command, *choice.env.values(), choice.name or ""])
    require_program(choice.profile, command, environ)
    require_device(device, command[0], environ, machine)
    require_modules(command, environ, machine)


def _arguments(choice: LaunchChoice, recipe: str) -> tuple[dict[str, ArgumentValue], list[str]]:
    """The profile's arguments, the choice's and the recipe's, and what is to be said about them."""
    arguments, notes = launch_arguments(choice)
    arguments, doubts = _with_recipe_arguments(choice, recipe, arguments)
    return arguments, notes + doubts


def _known(what: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        from ..model.checks import nearest

        likely = None if value == "gpu" else nearest(value, known)  # one is "mps" or "cuda", and nearest is "cpu"
        hint = f"did you mean {likely!r}?" if likely else f"one of {', '.join(known)}"
        raise UsageError(f"there is no {what} {value!r}", hint, field=what, near=likely)


def _with_recipe_arguments(
    choice: LaunchChoice, recipe: str, arguments: dict[str, ArgumentValue]
) -> tuple[dict[str, ArgumentValue], list[str]]:
    """A recipe's arguments, where the profile names the argument of that role and this launch does not set it."""
    notes = []
    for role, value in RECIPES[recipe].arguments.items():
        key = choice.profile.roles.get(role)
        if key and key not in choice.sets and key not in choice.drop_args:
            # Programs switch a thing on by a bare flag or by a word; the profile's own value tells which.
            arguments = {**arguments, key: "on" if value is True and isinstance(arguments.get(key), str) else value}
            notes.append(f"recipe {recipe} sets {key}: {ARGUMENT_DOUBTS[role]}")
    return arguments, notes


def _command(choice: LaunchChoice, arguments: Mapping[str, ArgumentValue], machine: Machine) -> list[str]:
    """The command without its device: placeholders filled in, arguments appended, launcher put before it."""
    profile = choice.profile
    python = profile.python or machine.python
    words = [*profile.command, *argument_words(arguments, profile.arg_style)]
    trainer = trainer_module()
    words = [word.replace("{python}", python).replace("{trainer}", trainer) for word in words]
    if "/" in words[0] and not words[0].startswith("/"):
        words[0] = str(profile.cwd / words[0])
    return wrapped(words, profile.processes, python) if profile.launcher == "torchrun" else words


def _template(
    choice: LaunchChoice, device: str, variants: DeviceVariants, environment: RunEnvironment
) -> LaunchTemplate:
    profile = choice.profile
    return LaunchTemplate(
        device=device,
        variants={
            name: Variant(
                argv=list(variant.argv),
                env={**environment.recorded, **variant.env},
                unset=sorted(choice.drop_env),
            )
            for name, variant in variants.found.items()
        },
        cwd=str(profile.cwd),
        resume_args=list(profile.resume_args) if profile.resume_args is not None else None,
        checkpoints=profile.checkpoints,
    )


def _device_lines(environment: RunEnvironment, variants: DeviceVariants, device: str) -> tuple[EnvLine, ...]:
    extra = variants.found[device].env.items()
    return environment.lines + tuple(
        EnvLine(name, value, "has the agent hide the other devices") for name, value in extra
    )


def _warnings(
    choice: LaunchChoice,
    arguments: Mapping[str, ArgumentValue],
    variants: DeviceVariants,
    environment: RunEnvironment,
) -> list[str]:
    profile = choice.profile
    found = [f"{line.name}={line.value}: {line.doubtful}" for line in environment.lines if line.doubtful]
    if any(AFTER_CHECKPOINT in str(value) for value in arguments.values()) and not choice.queue.after:
        found.append(_NO_RUN_BEFORE)
    for key in arguments:
        if is_secret(key.replace("-", "_").replace(".", "_")):
            found.append(f"the argument `{key}` is written into the run's record: put secrets in [env]")
    rule = profile.restart
    if rule.on and profile.resume_args is None:
        found.append("[restart] without [resume]: each restart begins from scratch")
    if rule.on and rule.device in variants.missing:
        found.append(f"[restart] device = {rule.device}: {variants.missing[rule.device]}")
    return found
