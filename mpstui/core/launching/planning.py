"""The plan of a launch: its exact command and environment, and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...wire.jobs import EngineRule
from ...wire.records import (
    AFTER_CHECKPOINT,
    OF_THIS_MACHINE,
    GpuRule,
    LaunchTemplate,
    QueueRule,
    Variant,
)
from ...wire.secrets import HIDDEN, masked_words
from ..machine import DEVICES, Machine, require_device, trainer_module
from ..model.checks import nearest
from ..model.errors import UsageError
from ..profiles.model import ARGUMENT_DOUBTS, RECIPES, ArgumentValue
from ..profiles.written import totals_of
from .choice import LaunchChoice, launch_arguments, passed_on, split_device, written_words
from .command import EnvLine, RunEnvironment, argument_words, run_environment, shell_script, wrapped
from .devices import DeviceVariants, accelerator, asked_device, compile_variants, gpu_rule, queue_rule
from .jobs import JobPlan, job_plan
from .preflight import preflight_warnings, require_modules, require_program, require_text
from .values import doubtful_files, require_values

_HIDES = "has the agent hide the other devices"
_ONLY_ON_GPUS = "the recipe sets neither bf16 nor compile on the CPU: both are slower there"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """Everything that a launch will do, to be looked at before it does it."""

    choice: LaunchChoice
    device: str
    """auto, mps, cuda or cpu."""
    template: LaunchTemplate
    """What the supervisor gets: a command and environment for every device. Contains no secret."""
    argv: tuple[str, ...]
    """The command for ``device``; ``{run_dir}``, ``{attempt}`` and ``{checkpoint}`` are filled in by the supervisor."""
    env: tuple[EnvLine, ...]
    warnings: tuple[str, ...]
    recipe: str
    secret_names: tuple[str, ...] = ()
    queue: QueueRule = field(default_factory=QueueRule)
    """What must be true before the run starts."""
    gpus: GpuRule | None = None
    """The GPUs that it may be given when it starts; None: none are chosen for it."""
    engine: EngineRule | None = None
    """The scheduler that starts it; None: it starts here."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values only for the supervisor's environment: never written, printed or logged."""

    @property
    def name(self) -> str:
        return self.choice.name or self.choice.profile.name

    def shell(self) -> str:
        """Return the launch as a shell script, to look at or to keep."""
        return shell_script(self.name, self.argv, self.env, Path(self.template.cwd))


def plan(choice: LaunchChoice, *, environ: Mapping[str, str], machine: Machine, check: bool = True) -> LaunchPlan:
    """Work out a launch without doing anything.

    Args:
        environ: the caller's environment.
        check: whether device, program and modules must exist here; False if the plan is only shown or printed.

    Raises:
        UsageError: a device, recipe, argument, program or folder that does not exist or cannot be used.
        OperationError: the interpreter lacks what a shipped trainer needs.
    """
    choice = split_device(choice)
    profile = choice.profile if choice.agent is None else replace(choice.profile, agent=choice.agent)
    profile, choice, job = job_plan(profile, choice)
    hidden = {*choice.drop_env, *(OF_THIS_MACHINE if job is not None else ())}
    environ = {name: value for name, value in environ.items() if name not in hidden}
    recipe = choice.recipe or profile.recipe
    plain, strangers = launch_arguments(choice)
    faster, doubts = _with_recipe_arguments(plain, choice, recipe)
    without, extra = choice.drop_env, choice.env
    environment = run_environment(profile, recipe, extra, environ=environ, machine=machine, without=without)
    command, on_cpu = (_command(choice, words, machine, job) for words in (faster, plain))
    whole = {**environ, **environment.recorded}
    best = job.accelerator if job is not None else accelerator("auto", whole, machine)
    variants = compile_variants(profile, command, best, on_cpu, whole)
    device = _device(choice, command, variants)
    arguments = plain if (best if device == "auto" else device) == "cpu" else faster
    doubts = doubts if arguments is faster else [_ONLY_ON_GPUS] * bool(doubts)
    if check:
        # The nodes of a job have devices of their own.
        _require_there(choice, command, "auto" if job else device, {**whole, **environment.secrets}, machine)
    queue = queue_rule(choice, device, whole, machine)
    chosen = variants.found[device]
    known = require_values(chosen.argv, arguments, profile.cwd, whole)
    notes = [*passed_on(profile, strangers, known), *_warnings(choice, arguments, variants, environment, known)]
    notes += [*doubts, *preflight_warnings(profile, arguments, device, whole, machine)]
    return LaunchPlan(
        choice=choice,
        device=device,
        template=_template(choice, device, variants, environment),
        argv=chosen.argv,
        env=(*environment.lines, *(EnvLine(*item, _HIDES) for item in chosen.env.items())),
        warnings=tuple(notes),
        recipe=recipe,
        queue=queue,
        engine=job.rule if job is not None else None,
        gpus=gpu_rule(choice, queue, device, chosen.argv, whole, machine),
        secret_names=environment.secret_names,
        secrets=environment.secrets,
    )


def _require_there(
    choice: LaunchChoice, command: list[str], device: str, environ: Mapping[str, str], machine: Machine
) -> None:
    """Check what must exist, cheapest first."""
    require_text([*command, *choice.env.values(), choice.name or ""])
    require_program(choice.profile, command, environ)
    require_device(device, command[0], environ, machine)
    require_modules(command, environ, machine)


def _device(choice: LaunchChoice, command: list[str], variants: DeviceVariants) -> str:
    _known("device", choice.device, DEVICES)
    device = asked_device(choice.profile, command, choice.device)
    if device in variants.found:
        return device
    hint = f'add to the profile, in the words of the program: [device_args] {device} = ["--device", "{device}"]'
    if choice.profile.path is None:
        hint = f"put the program's own option for it after its name, such as `--device {device}`"
    raise UsageError(variants.missing[device], hint, field="device")


def _known(what: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        likely = None if value == "gpu" else nearest(value, known)  # "gpu" is mps or cuda, but nearest to "cpu"
        hint = f"did you mean {likely!r}?" if likely else f"one of {', '.join(known)}"
        raise UsageError(f"there is no {what} {value!r}", hint, field=what, near=likely)


def _with_recipe_arguments(
    plain: Mapping[str, ArgumentValue], choice: LaunchChoice, recipe: str
) -> tuple[dict[str, ArgumentValue], list[str]]:
    """Set a recipe's arguments if the profile names an argument for the role and this launch does not set it."""
    _known("recipe", choice.recipe, tuple(RECIPES))
    arguments, notes = dict(plain), []
    for role, value in RECIPES[recipe].arguments.items():
        key = choice.profile.roles.get(role)
        if key and key not in choice.sets and key not in choice.drop_args:
            # Programs turn things on by a bare flag or by a word; the profile's own value shows which.
            arguments[key] = "on" if value is True and isinstance(arguments.get(key), str) else value
            notes.append(f"recipe {recipe} sets {key}: {ARGUMENT_DOUBTS[role]}")
    return arguments, notes


def _command(
    choice: LaunchChoice, arguments: Mapping[str, ArgumentValue], machine: Machine, job: JobPlan | None
) -> list[str]:
    """Return the command without its device: placeholders filled in, arguments appended, launcher prepended."""
    profile = choice.profile
    python = profile.python or machine.python
    words, appended = written_words(choice, arguments)
    words += argument_words(appended, profile.arg_style)
    words = [word.replace("{python}", python).replace("{trainer}", trainer_module()) for word in words]
    if "/" in words[0] and not words[0].startswith("/"):
        words[0] = str(profile.cwd / words[0])
    words = wrapped(words, profile.processes, python) if profile.launcher == "torchrun" else words
    return job.over_nodes(words) if job is not None else words


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
        totals=totals_of(variants.found[device].argv, profile.roles),
    )


def _warnings(
    choice: LaunchChoice,
    arguments: Mapping[str, ArgumentValue],
    variants: DeviceVariants,
    environment: RunEnvironment,
    known: Sequence[str],
) -> list[str]:
    profile = choice.profile
    found = [f"{line.name}={line.value}: {line.doubtful}" for line in environment.lines if line.doubtful]
    if any(AFTER_CHECKPOINT in str(value) for value in arguments.values()) and not choice.queue.after:
        found.append(f"{AFTER_CHECKPOINT} stays empty: `--after RUN` names the run whose checkpoint it is")
    argv = next(iter(variants.found.values())).argv
    for place, (word, shown) in enumerate(zip(argv, masked_words(argv), strict=True)):
        if word != shown:
            name = argv[place - 1] if shown == HIDDEN and place else shown
            found.append(
                f"the secret of `{name}` stays in the run's record, which you alone can read; all see it in `ps`: "
                "put it in the environment"
            )
    found += doubtful_files(argv, arguments, profile.cwd, known)
    rule = profile.restart
    if rule.on and profile.resume_args is None:
        found.append("[restart] without [resume]: each restart begins from scratch")
    if rule.on and rule.device in variants.missing:
        found.append(f"[restart] device = {rule.device}: {variants.missing[rule.device]}")
    return found
