"""A profile as the rest of the program sees it: checked, complete, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...wire.records import RestartRule, StopRule
from ...wire.rundir import slug
from .recipes import DEFAULT_RECIPE
from .sweep import Sweep

Scalar = str | int | float | bool
ArgumentValue = Scalar | tuple[Scalar, ...]
DEFAULT_MAX_LOG_BYTES = 2 << 30
DEFAULT_MIN_FREE_BYTES = 1 << 30
ROLES = (
    *("batch_size", "accumulate", "workers", "precision", "fp16", "bf16", "compile"),
    *("persistent_workers", "prefetch_factor", "pin_memory", "devices", "processes", "strategy", "backend"),
)
"""What an argument can mean to mpstui, so that a remedy or a recipe can change it by name."""
DIAGNOSIS_ROLES = {"accumulate": "gradient_accumulation"}
"""Roles that the remedies of diagnosis call otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How one program is started, told its device, resumed, stopped and watched."""

    name: str
    """The title for people."""
    slug: str
    """What it is launched by: the file's name without ``.toml``."""
    command: tuple[str, ...]
    """Argument vector, placeholders unfilled; never passed through a shell."""
    cwd: Path
    """Absolute."""
    python: str | None = None
    """Interpreter for ``{python}``, ``~`` expanded; None: the one mpstui runs in."""
    device: str = "auto"
    recipe: str = DEFAULT_RECIPE
    launcher: str | None = None
    processes: int = 1
    agent: bool = False
    """Put the agent into the program's Python: heartbeat, cache clearing and CPU override without a change to it."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    args: Mapping[str, ArgumentValue] = field(default_factory=dict)
    sweep: Sweep = field(default_factory=dict)
    """Arguments that take several values when the profile is launched: one run for each combination."""
    arg_style: str = "options"
    """``options``: --key value; ``hydra``: key=value."""
    resume_args: tuple[str, ...] | None = None
    checkpoints: str | None = None
    device_args: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stop: StopRule = field(default_factory=StopRule)
    watch: Mapping[str, str] = field(default_factory=dict)
    restart: RestartRule = field(default_factory=RestartRule)
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role -> the argument's name in this program; see :data:`ROLES`."""
    pid_file: str | None = None
    max_log_bytes: int = DEFAULT_MAX_LOG_BYTES
    min_free_bytes: int = DEFAULT_MIN_FREE_BYTES
    """A launch is refused when the disk of the run directory has less free space than this."""
    description: str = ""
    path: Path | None = None
    """The file it was read from; None for a command started without one."""
    text: str = field(default="", repr=False)
    """The file's text, secret values included: never written anywhere as it is."""


def profile_of_command(command: tuple[str, ...], *, cwd: Path, name: str | None = None, agent: bool = False) -> Profile:
    """A profile for a bare command; it is named after its script or module."""
    title = name or _name_of(command)
    return Profile(name=title, slug=slug(title), command=command, cwd=cwd, agent=agent)


def _name_of(command: tuple[str, ...]) -> str:
    for position, word in enumerate(command[1:], start=1):
        if word == "-m" and position + 1 < len(command):
            return command[position + 1].rpartition(".")[2] or command[position + 1]
        if word.endswith((".py", ".sh")):
            return Path(word).stem
    return Path(command[0]).name
