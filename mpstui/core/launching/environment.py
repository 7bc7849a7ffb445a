"""The environment of a run: recipe, profile and choice on top of the caller's, each variable with its reason."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...wire.secrets import HIDDEN, hides, is_secret
from ..machine import Machine
from ..profiles.model import Profile
from ..profiles.recipes import RECIPES
from .torchrun import worker_variables

_SHAPING = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TZ|TMPDIR|VIRTUAL_ENV|CONDA_\w+|PYTHON\w*|PYTORCH_\w+|TORCH\w*|OMP_\w+|MKL_\w+|KMP_\w+"
    r"|OPENBLAS_\w+|VECLIB_\w+|CUDA\w*|CUBLAS_\w+|NVIDIA_\w+|NCCL_\w+|GLOO_\w+|MTL_\w+|DYLD_\w+|LD_LIBRARY_PATH|LD_PRELOAD"
    r"|HF_\w+|TRANSFORMERS_\w+|TOKENIZERS_\w+|ACCELERATE_\w+|DISABLE_MPS|WANDB_\w+|XDG_\w+_HOME|MPLBACKEND"
)
"""Variables that change what a training does: kept, so that a restart from another shell is the same run."""
AGENT_VARIABLE = "MPSTUI_AGENT"
_NOT_A_SECRET_OF_THE_RUN = re.compile(r"SSH_\w+|XDG_\w+|DBUS_\w+|GPG_\w+|WINDOWID|\w*_AUTH_SOCK|XAUTHORITY")


@dataclass(frozen=True, slots=True)
class EnvLine:
    """One variable a launch adds to the caller's environment. The value of a secret is dots."""

    name: str
    value: str
    reason: str
    doubtful: str | None = None

    @property
    def secret(self) -> bool:
        """Whether the real value is kept from screens and files."""
        return self.value == HIDDEN


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """What a run gets beyond the supervisor's own environment."""

    lines: tuple[EnvLine, ...]
    recorded: dict[str, str]
    """Goes into the run's record: the lines and the shaping variables of the caller, without secrets."""
    secrets: dict[str, str]
    """The values that only ever travel through the supervisor's environment."""
    secret_names: tuple[str, ...]
    """Every secret the run was started with, the caller's included."""


def run_environment(
    profile: Profile,
    recipe: str,
    extra: Mapping[str, str],
    *,
    environ: Mapping[str, str],
    machine: Machine,
    without: Collection[str] = (),
) -> RunEnvironment:
    """Environment < recipe < profile < this launch, the last word winning; the first three never set ``without``."""
    lines: dict[str, EnvLine] = {}
    values: dict[str, str] = {}
    for name, value, reason, doubtful in _layers(profile, recipe, extra, environ, machine):
        if name in without:
            continue
        before = values.get(name, environ.get(name))
        replaced = f" (replaces {_shown(name, before)})" if before not in (None, value) and name != "PYTHONPATH" else ""
        values[name] = value
        lines[name] = EnvLine(name, _shown(name, value), reason + replaced, doubtful)
    hidden = {name for name, value in values.items() if hides(name, value)}
    shaping = {name: value for name, value in environ.items() if _is_kept(name, value)}
    return RunEnvironment(
        lines=tuple(lines.values()),
        recorded={**shaping, **{name: value for name, value in values.items() if name not in hidden}},
        secrets={name: values[name] for name in hidden},
        secret_names=tuple(sorted(hidden | set(_secrets_of(environ)))),
    )


def agent_boot_folder() -> Path:
    """The folder that puts the agent into a program's Python when it is on PYTHONPATH."""
    return Path(__file__).resolve().parents[2] / "agent" / "boot"


def _layers(
    profile: Profile, recipe: str, extra: Mapping[str, str], environ: Mapping[str, str], machine: Machine
) -> Iterator[tuple[str, str, str, str | None]]:
    for variable in RECIPES[recipe].variables:
        value = variable.value.replace("{cores}", str(machine.cores))
        yield variable.name, value, variable.reason, variable.doubtful
    if profile.launcher == "torchrun":
        for name, value in worker_variables(profile.command).items():
            yield name, value, "torchrun's workers keep the current folder off their import path, as -P asks", None
    for name, value in profile.env.items():
        if value != HIDDEN:
            yield name, value, "set by the profile", None
    for name, value in extra.items():
        yield name, value, "set for this launch", None
    if profile.agent:
        before = extra.get("PYTHONPATH", profile.env.get("PYTHONPATH", environ.get("PYTHONPATH", "")))
        path = os.pathsep.join(part for part in (str(agent_boot_folder()), before) if part)
        yield "PYTHONPATH", path, "puts the agent into the program: heartbeat, cache clearing, CPU override", None
        yield AGENT_VARIABLE, "1", "switches the agent on; without it the folder on PYTHONPATH does nothing", None


def _is_kept(name: str, value: str) -> bool:
    """Shapes the run, is no secret, and is text that a record can hold."""
    return bool(_SHAPING.fullmatch(name)) and not hides(name, value) and _is_utf8(value)


def _is_utf8(value: str) -> bool:
    """Bytes that were no UTF-8 reach us as lone surrogates (PEP 383)."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: str, value: str | None) -> str:
    return HIDDEN if value is not None and hides(name, value) else str(value)


def _secrets_of(environ: Mapping[str, str]) -> Iterator[str]:
    return (name for name in environ if is_secret(name) and not _NOT_A_SECRET_OF_THE_RUN.fullmatch(name))
