"""The command line and the environment of a launch, each variable with its reason, and both as a shell script."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...wire.rundir import AGENT_VARIABLE
from ...wire.secrets import HIDDEN, hides, is_secret
from ..machine import Machine, bundled_trainers, is_python
from ..model.checks import Scalar, as_text, is_number
from ..profiles.model import RECIPES, ArgumentValue, Profile

_HYDRA_NEEDS_QUOTES = set(",[]{}()'\"=:; \t\\")


def argument_words(arguments: Mapping[str, ArgumentValue], style: str) -> list[str]:
    """Return the arguments as words of a command, in one of three styles.

    ``options``: --key value (true: the bare flag; false: left out; a list: its values after the flag).
    ``equals``: --key=value, a list with commas. ``hydra``: key=value, +key=value, lists in brackets.
    """
    words: list[str] = []
    for key, value in arguments.items():
        flag = key if key.startswith("-") else f"--{key}"
        if style == "hydra":
            items = [_hydra_text(item) for item in (value if isinstance(value, tuple) else (value,))]
            words.append(f"{key}=[{','.join(items)}]" if isinstance(value, tuple) else f"{key}={items[0]}")
        elif style == "equals" and not isinstance(value, bool):
            words.append(f"{flag}={','.join(map(as_text, value if isinstance(value, tuple) else (value,)))}")
        elif isinstance(value, tuple):
            words += [flag, *(as_text(item) for item in value)] if value else []
        elif isinstance(value, bool):
            words += [flag] if value else []
        elif (text := as_text(value)).startswith("-") and not is_number(text):
            words.append(f"{flag}={text}")  # or argparse would take it for another option
        else:
            words += [flag, text]
    return words


def _hydra_text(value: Scalar) -> str:
    text = as_text(value)
    if not isinstance(value, str) or not _HYDRA_NEEDS_QUOTES & set(text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def wrapped(argv: list[str], processes: int, python: str) -> list[str]:
    """Return the command under ``torch.distributed.run``, with ``processes`` workers on this host and no restarts.

    Restarts are up to the supervisor, which knows checkpoints and causes. Options of the interpreter (``-u``) go to the
    launcher, which starts its workers without any.
    """
    interpreter, options, program = python, [], ["--no-python", *argv]
    if argv[0] == python or is_python(argv[0]):
        position = 1
        while position < len(argv) and argv[position].startswith("-") and argv[position] not in ("-m", "-c", "-"):
            position += 2 if argv[position] in ("-X", "-W") else 1
        if argv[position : position + 1] not in (["-c"], ["-"]):
            interpreter, options, program = argv[0], argv[1:position], argv[position:]
    launcher = [interpreter, *options, "-m", "torch.distributed.run", "--standalone", "--max-restarts", "0"]
    launcher += ["--nproc-per-node", str(processes), "--log-dir", "{run_dir}/attempts/{attempt}/torchrun"]
    return [*launcher, *program]


_SHAPING = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TZ|TMPDIR|VIRTUAL_ENV|CONDA_\w+|PYTHON\w*|PYTORCH_\w+|TORCH\w*|OMP_\w+|MKL_\w+|KMP_\w+"
    r"|OPENBLAS_\w+|VECLIB_\w+|CUDA\w*|CUBLAS_\w+|NVIDIA_\w+|NCCL_\w+|GLOO_\w+|MTL_\w+|DYLD_\w+|LD_LIBRARY_PATH|LD_PRELOAD"
    r"|HF_\w+|TRANSFORMERS_\w+|TOKENIZERS_\w+|ACCELERATE_\w+|DISABLE_MPS|WANDB_\w+|XDG_\w+_HOME|MPLBACKEND"
)
"""Variables that affect a training: they are recorded, so that a restart from another shell is the same."""
_BOOT = Path(__file__).resolve().parents[2] / "agent" / "boot"
_OWN_FOLDER = re.compile(rf"{re.escape(str(_BOOT))}|.*/bundles/[0-9a-f]{{64}}(?:/mpstui/agent/boot)?")
"""What a launch puts on PYTHONPATH, from this mpstui or an earlier bundle."""
_NOT_A_SECRET_OF_THE_RUN = re.compile(r"SSH_\w+|XDG_\w+|DBUS_\w+|GPG_\w+|WINDOWID|\w*_AUTH_SOCK|XAUTHORITY")


@dataclass(frozen=True, slots=True)
class EnvLine:
    """A variable that a launch adds to the caller's environment. The value of a secret is shown as dots."""

    name: str
    value: str
    reason: str
    doubtful: str | None = None

    @property
    def secret(self) -> bool:
        """Whether the real value is kept off screens and out of files."""
        return self.value == HIDDEN


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """What a run gets in addition to the supervisor's own environment."""

    lines: tuple[EnvLine, ...]
    recorded: dict[str, str]
    """For the run's record: these, and the caller's variables that affect the training, without secrets."""
    secrets: dict[str, str]
    """Values that are only ever passed on through the supervisor's environment."""
    secret_names: tuple[str, ...]
    """Every secret that the run is started with, including the caller's."""


def run_environment(
    profile: Profile,
    recipe: str,
    extra: Mapping[str, str],
    *,
    environ: Mapping[str, str],
    machine: Machine,
    without: Collection[str] = (),
) -> RunEnvironment:
    """Put recipe, profile and this launch over ``environ``, the last one wins; names in ``without`` are left out."""
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
    # Bytes that are not UTF-8 arrive as lone surrogates (PEP 383), which cannot be written into a record.
    shaping = {
        name: value
        for name, value in environ.items()
        if _SHAPING.fullmatch(name) and not hides(name, value) and not re.search("[\ud800-\udfff]", value)
    }
    own = {name for name in environ if is_secret(name) and not _NOT_A_SECRET_OF_THE_RUN.fullmatch(name)}
    return RunEnvironment(
        lines=tuple(lines.values()),
        recorded={**shaping, **{name: value for name, value in values.items() if name not in hidden}},
        secrets={name: values[name] for name in hidden},
        secret_names=tuple(sorted(hidden | own)),
    )


def environment_again(
    then: Mapping[str, str],
    profile: Profile,
    recipe: str,
    extra: Mapping[str, str],
    *,
    environ: Mapping[str, str],
    machine: Machine,
) -> dict[str, str]:
    """Return the caller's environment, with the variables that affected an earlier launch as they were then.

    Args:
        then: the environment in the record of that launch.
        profile, recipe, extra: those of that launch; what these set is left out, since they will set it again.
    """
    if "PATH" not in then:  # written by another program
        return dict(environ)
    layers = {name for name, *_ in _layers(profile, recipe, extra, {}, machine)} - {"PYTHONPATH"}
    own = {name: value for name, value in then.items() if _SHAPING.fullmatch(name) and name not in layers}
    rest = without_ours(own.pop("PYTHONPATH", ""))
    own |= {"PYTHONPATH": rest} if rest and "PYTHONPATH" not in {**profile.env, **extra} else {}
    others = {name: value for name, value in environ.items() if not _SHAPING.fullmatch(name) or hides(name, value)}
    return {**others, **own}


def without_ours(path: str) -> str:
    """Return a PYTHONPATH without the folders that a launch puts there."""
    return os.pathsep.join(part for part in path.split(os.pathsep) if not _OWN_FOLDER.fullmatch(part))


def _layers(
    profile: Profile, recipe: str, extra: Mapping[str, str], environ: Mapping[str, str], machine: Machine
) -> Iterator[tuple[str, str, str, str | None]]:
    for variable in RECIPES[recipe].variables:
        value = variable.value
        if "{cores}" in value:
            value = value.replace("{cores}", str(machine.physical_cores() or machine.cores))
        yield variable.name, value, variable.reason, variable.doubtful
    if profile.launcher == "torchrun" and "-P" in profile.command[1:3]:  # an option that the workers would not get
        reason = "torchrun's workers keep the current folder off their import path, as -P asks"
        yield "PYTHONSAFEPATH", "1", reason, None
    for name, value in profile.env.items():
        if value != HIDDEN:
            yield name, value, "set by the profile", None
    for name, value in extra.items():
        yield name, value, "set for this launch", None
    trainers = bundled_trainers() if any("{trainer}" in word for word in profile.command) else None
    if profile.agent or trainers:
        before = extra.get("PYTHONPATH", profile.env.get("PYTHONPATH", environ.get("PYTHONPATH", "")))
        parts = (str(_BOOT) if profile.agent else "", str(trainers or ""), before)
        reason = "puts the agent into the program: heartbeat, cache clearing, CPU override"
        reason = reason if profile.agent else "has the trainers that mpstui brought to this machine"
        yield "PYTHONPATH", os.pathsep.join(part for part in parts if part), reason, None
    if profile.agent:
        yield AGENT_VARIABLE, "1", "switches the agent on; without it the folder on PYTHONPATH does nothing", None


def _shown(name: str, value: str | None) -> str:
    return HIDDEN if value is not None and hides(name, value) else str(value)


_RUN_DIR = "{run_dir}"
_SHEBANG = "#!/bin/sh\n"


def shell_script(name: str, argv: Sequence[str], env: Sequence[EnvLine], cwd: Path) -> str:
    """Return a POSIX shell script: all words quoted, each variable exported below its reason, no values of secrets."""
    lines = [_SHEBANG.strip(), f"# {_one_line(name)}", "set -eu", f"cd {shlex.quote(str(cwd))}", ""]
    if any(_RUN_DIR in word for word in (*argv, *(line.value for line in env))):
        lines += ['run_dir="${MPSTUI_RUN_DIR:-$PWD/run}"; mkdir -p "$run_dir"']
    for line in env:
        lines.append(f"# {_one_line(line.reason)}")
        if line.doubtful:
            lines.append(f"# doubtful: {_one_line(line.doubtful)}")
        if line.secret:
            lines.append(f': "${{{line.name}:?is a secret: set it before you run this}}"')
        lines.append(f"export {line.name}" if line.secret else f"export {line.name}={_word(line.value)}")
    return "\n".join([*lines, "", f"exec {' '.join(_word(word) for word in argv)}", ""])


def joined_scripts(scripts: Sequence[str]) -> str:
    """Join scripts of :func:`shell_script` into one that runs them in turn, each in a subshell, up to a failure."""
    if len(scripts) == 1:
        return scripts[0]
    parts = [f"(\n{script.removeprefix(_SHEBANG)})\n" for script in scripts]
    return f"{_SHEBANG}# {len(scripts)} runs, one after the other\nset -eu\n\n" + "\n".join(parts)


def _word(word: str) -> str:
    """Quote a word; ``{run_dir}`` becomes a variable, and ``{attempt}`` is always 1 in a script."""
    parts = word.replace("{attempt}", "1").split(_RUN_DIR)
    return '"$run_dir"'.join(shlex.quote(part) if part or len(parts) == 1 else "" for part in parts)


def _one_line(text: str) -> str:
    """Return the text without line breaks, which would end a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
