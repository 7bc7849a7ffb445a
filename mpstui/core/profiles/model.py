"""A profile as the rest of the program sees it (checked, complete, frozen), and the recipes it can name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from ...wire.records import RestartRule, StopRule
from ...wire.rundir import slug
from ..model.checks import Scalar
from .sweep import Sweep
from .written import USUAL_NAMES, folded, is_option, program_ends, written_options


@dataclass(frozen=True, slots=True)
class RecipeVariable:
    """One variable of a recipe. ``{cores}`` in a value stands for the machine's number of physical cores."""

    name: str
    value: str
    reason: str
    doubtful: str | None = None
    """Why a careful user might not set it; None if there is no reason."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named set of environment variables, and of arguments for programs whose profile has them in ``[roles]``."""

    name: str
    description: str
    variables: tuple[RecipeVariable, ...]
    arguments: Mapping[str, str | bool] = field(default_factory=dict)
    """Role -> value; applied if the profile names the argument for that role, on every device except the CPU."""


_UNBUFFERED = RecipeVariable(
    "PYTHONUNBUFFERED", "1", "each printed line reaches the log at once, also the last one before a crash"
)
_FAULTHANDLER = RecipeVariable(
    "PYTHONFAULTHANDLER", "1", "a native crash (abort, segmentation fault) leaves a Python stack in the log"
)
_FALLBACK = RecipeVariable(
    "PYTORCH_ENABLE_MPS_FALLBACK",
    "1",
    "an operation without a Metal kernel runs on the CPU instead of ending the run; read when torch is loaded, "
    "so it must be set before; it does not move the training to the CPU",
)

SAFE = Recipe(
    "safe",
    "readable crashes, the CPU for operations that Metal lacks, and torch's own memory limits",
    (
        _UNBUFFERED,
        _FAULTHANDLER,
        _FALLBACK,
        RecipeVariable(
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
            "1.7",
            "torch's own default, written out so that a 0.0 left in a shell cannot remove the limit that turns "
            "memory exhaustion into a Python error",
        ),
        RecipeVariable(
            "PYTORCH_MPS_LOW_WATERMARK_RATIO",
            "1.4",
            "always set together with the high one: torch refuses a low watermark above the high one",
        ),
    ),
)

CLASSIC = Recipe(
    "classic",
    "the well-known shell recipe for MPS, verbatim; doubtful lines are marked",
    (
        RecipeVariable(
            "KMP_DUPLICATE_LIB_OK",
            "TRUE",
            "lets a second copy of the OpenMP runtime load instead of aborting",
            "libomp itself calls this unsafe: it may crash or silently give wrong results; "
            "removing the duplicate library, or OMP_NUM_THREADS=1, is the real remedy",
        ),
        RecipeVariable(
            "OMP_NUM_THREADS",
            "4",
            "threads of one CPU operation",
            "4 is nobody's measurement of this machine, and slows the CPU's part on larger ones",
        ),
        RecipeVariable(
            "MKL_NUM_THREADS",
            "1",
            "threads of Intel's math library",
            "has no effect on Apple silicon, where torch uses Accelerate and not MKL",
        ),
        RecipeVariable(
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
            "0.0",
            "removes the limit on GPU memory",
            "without the limit macOS swaps and then kills the process (exit by SIGKILL, no message), "
            "where the limit would give a Python error that can be explained",
        ),
        RecipeVariable(
            "PYTORCH_ENABLE_MPS_FALLBACK", "1", "an operation without a Metal kernel runs on the CPU, with a warning"
        ),
        _UNBUFFERED,
    ),
)

FAST = Recipe(
    "fast",
    "all physical cores; on GPUs also bf16 and torch.compile, where the profile says how to set them ([roles])",
    (
        _UNBUFFERED,
        _FAULTHANDLER,
        _FALLBACK,
        RecipeVariable(
            "OMP_NUM_THREADS",
            "{cores}",
            "one thread a physical core (on Apple silicon a fast one) for the CPU's part: torch's own choice",
            "data loader workers compete for the same cores: measure with and without",
        ),
    ),
    {"precision": "bf16", "compile": True},
)

RECIPES: Mapping[str, Recipe] = MappingProxyType({recipe.name: recipe for recipe in (SAFE, CLASSIC, FAST)})
DEFAULT_RECIPE = SAFE.name
ARGUMENT_DOUBTS: Mapping[str, str] = MappingProxyType(
    {
        "precision": "bf16 on MPS needs torch 2.6 and macOS 14, and is not known to be faster on M1 and M2",
        "compile": "torch.compile on MPS is still a prototype: slower than eager for some models",
    }
)
"""Role -> why an argument of the fast recipe may disappoint."""

ArgumentValue = Scalar | tuple[Scalar, ...]
DEFAULT_MAX_LOG_BYTES = 2 << 30
DEFAULT_MIN_FREE_BYTES = 1 << 30
ROLES = (
    *("batch_size", "accumulate", "workers", "precision", "fp16", "bf16", "compile"),
    *("persistent_workers", "prefetch_factor", "pin_memory", "devices", "processes", "strategy", "backend"),
    *("epochs", "steps"),
)
"""The meanings of arguments known to mpstui, by which remedies and recipes refer to them."""
DIAGNOSIS_ROLES = {"accumulate": "gradient_accumulation"}
"""Roles that have other names in the remedies of diagnosis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How one program is started, given its device, resumed, stopped and watched."""

    name: str
    """The title shown to users."""
    slug: str
    """The name to launch it by: the file's name without ``.toml``."""
    command: tuple[str, ...]
    """Argument vector with unfilled placeholders; never passed through a shell."""
    cwd: Path
    """Working directory, absolute."""
    python: str | None = None
    """Interpreter for ``{python}``, with ``~`` expanded; None: the one that runs mpstui."""
    device: str = "auto"
    recipe: str = DEFAULT_RECIPE
    launcher: str | None = None
    processes: int = 1
    agent: bool = True
    """Load the agent into every Python process of the program: heartbeat, cache clearing, CPU override."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    args: Mapping[str, ArgumentValue] = field(default_factory=dict)
    defaults: Mapping[str, ArgumentValue] = field(default_factory=dict)
    """The program's own defaults for arguments that are not given; ``batch-size.cuda`` applies on CUDA."""
    sweep: Sweep = field(default_factory=dict)
    """Arguments that take several values when the profile is launched; one run per combination."""
    arg_style: str = "options"
    """``options``: --key value; ``equals``: --key=value; ``hydra``: key=value."""
    resume_args: tuple[str, ...] | None = None
    checkpoints: str | None = None
    device_args: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stop: StopRule = field(default_factory=StopRule)
    watch: Mapping[str, str] = field(default_factory=dict)
    restart: RestartRule = field(default_factory=RestartRule)
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role -> this program's name for the argument; see :data:`ROLES`."""
    jobs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Scheduler -> options, as the scheduler names them; the first scheduler listed starts the profile."""
    pid_file: str | None = None
    """File that holds the trainer's pid while it is running; relative to ``cwd``."""
    max_log_bytes: int = DEFAULT_MAX_LOG_BYTES
    min_free_bytes: int = DEFAULT_MIN_FREE_BYTES
    """A launch is refused if the disk of the run directory has less free space than this."""
    description: str = ""
    path: Path | None = None
    """The file it was read from; None for a command started without one."""
    text: str = field(default="", repr=False)
    """The file's text, including secret values: never write it anywhere unmasked."""


_SETTING = re.compile(r"(?P<key>\+{0,2}[A-Za-z_][\w./@-]*)=(?P<value>[^,\[\]{}()'\"=:; \t\\]*)")
"""``optim.lr=0.1``, ``model=wide``, ``+seed=3``, but nothing that Hydra would read differently once rewritten."""


def profile_of_command(
    command: tuple[str, ...],
    *,
    cwd: Path,
    name: str | None = None,
    agent: bool = True,
    resume_args: tuple[str, ...] | None = None,
    checkpoints: str | None = None,
) -> Profile:
    """Return a profile for a bare command, named after its script or module.

    Options at its end become arguments, which appear as fields of the form and can be changed by a remedy. Others stay
    in the command.
    """
    title = name or _name_of(command)
    fixed, args, style = _options_of(command)
    found = {folded(key): key for key in (*args, *(one.key for one in written_options(fixed)))}
    roles = {role: found[name] for role, names in USUAL_NAMES.items() for name in reversed(names) if name in found}
    return Profile(
        name=title,
        slug=slug(title),
        command=fixed,
        cwd=cwd,
        agent=agent,
        args=args,
        arg_style=style,
        roles=roles,
        resume_args=resume_args,
        checkpoints=checkpoints,
    )


def _options_of(command: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, ArgumentValue], str]:
    """Return the command without the options at its end, those options, and their style.

    If one of them could not be rewritten as it was typed (mixed styles, ``-k``, a repeated key, a placeholder), all
    stay in the command. A device always stays: launching finds it there and knows how to replace it.
    """
    start = program_ends(command)
    tail = command[start:] if start > 1 and "-c" not in command[:start] else ()
    if len(settings := [found for word in tail if (found := _SETTING.fullmatch(word))]) == len(tail) > 0:
        given = {found["key"]: found["value"] for found in settings if found["key"] != "device"}
        stay = tuple(found[0] for found in settings if found["key"] == "device")
        if len(given) + len(stay) == len(tail):
            return (*command[:start], *stay), dict[str, ArgumentValue](given), "hydra"
    heads = [start + place for place, word in enumerate(tail) if is_option(word)]
    words = [command[place].partition("=") for place in heads]
    keys, joined = [key for key, _, _ in words], any(equals for _, equals, _ in words)
    simple = all(re.fullmatch(r"--[A-Za-z][\w.-]*", key) for key in keys) and len({*keys}) == len(keys)
    alone = not heads or len(heads) == len(command) - heads[0]  # no value is a separate word
    if not heads or not simple or (joined and not alone) or any("{" in word for word in tail):
        return command, {}, "options"
    fixed, args = command[: heads[0]], dict[str, ArgumentValue]()
    for head, end, (key, equals, value) in zip(heads, [*heads[1:], len(command)], words, strict=True):
        values = (value,) if equals else command[head + 1 : end]
        if key == "--device":
            fixed += command[head:end]
        else:
            args[key[2:]] = True if not values else values[0] if len(values) == 1 else values
    return fixed, args, "equals" if joined else "options"


def _name_of(command: tuple[str, ...]) -> str:
    for position, word in enumerate(command[1:], start=1):
        if word == "-m" and position + 1 < len(command):
            return command[position + 1].rpartition(".")[2] or command[position + 1]
        if word.endswith((".py", ".sh")):
            return Path(word).stem
    return Path(command[0]).name
