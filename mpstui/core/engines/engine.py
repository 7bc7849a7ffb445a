"""What a scheduler has to be able to do, and the known schedulers. Another one is one file and one line here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from ...wire.jobs import EngineRule, plain_environment
from ..model.errors import OperationError, UsageError
from ..model.jobs import JobView

ASK_SECONDS = 30.0
LONG_OPTION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""The name of an option as it follows two dashes."""
JobOptions = Mapping[str, str]
"""What is asked of a scheduler, by the names of its own options; an empty text is a bare flag."""


class Engine(Protocol):
    """One scheduler. Commands are argument vectors: no text of a user's ever goes through a shell."""

    name: str
    """What it is called in commands and profiles."""
    title: str
    """What people call it."""
    program: str
    """The command that must be installed for any of it to work."""
    index: str
    """The variable that counts the jobs of an array, from 0."""
    arrays: bool
    """Whether several runs can be one submission."""

    usual: Mapping[str, str]
    """The options that a form offers, each with an example."""
    refused: str
    """What to do if it refuses a job."""

    def check(self, options: JobOptions) -> str:
        """What is wrong with the options, as a sentence; empty if nothing is."""

    def nodes(self, options: JobOptions) -> int:
        """How many nodes they ask for."""

    def asks_for_gpus(self, options: JobOptions) -> bool:
        """Whether its nodes have GPUs for it."""

    def rule(self, options: JobOptions) -> EngineRule:
        """What the supervisor in the job must know."""

    def on_every_node(self, argv: Sequence[str], options: JobOptions) -> list[str]:
        """The command that, on the first node, starts ``argv`` once on each node of the job."""

    def files(self, folder: Path, command: Sequence[str]) -> Mapping[str, str]:
        """The submission's files in ``folder``, by name: a script that starts ``command``, without any user text."""

    def submission(self, folder: Path, name: str, command: Sequence[str], options: JobOptions, count: int) -> list[str]:
        """The command that submits ``command``, and prints the job's id.

        Args:
            folder: that of the (first) run, for the scheduler's own files.
            count: more than one run makes an array.
        """

    def submitted(self, output: str, folders: Sequence[Path]) -> list[str]:
        """The ids printed by the submission of these runs, one for each; none if they cannot be read."""

    def listing(self) -> list[str]:
        """The command that lists all jobs of this user."""

    def listed(self, output: str) -> list[JobView]:
        """The jobs in what the listing printed.

        Raises:
            ValueError: it is no list of jobs.
        """

    def history(self, ids: Sequence[str]) -> list[str]:
        """The command that reports jobs the listing has forgotten; empty if there is none."""

    def remembered(self, output: str) -> list[JobView]:
        """The jobs in what :meth:`history` printed."""

    def change(self, action: str, job: str) -> list[str]:
        """The command for ``cancel``, ``kill``, ``hold``, ``release`` or ``top``; empty if it has none."""

    def offers(self) -> list[str]:
        """The command that says what can be asked for; empty if there is none."""

    def offered(self, output: str) -> Mapping[str, str]:
        """For each option, what that command printed about it, in a few words."""

    def output_of(self, job: str) -> list[str]:
        """The command that says where anybody's job writes."""

    def output_path(self, output: str) -> str:
        """The path in what that command printed; empty if there is none."""


LOCAL, CLUSTER = "local", "cluster"
"""Values of ``--on``: here, whatever the profile says; and by whatever scheduler there is."""
_PLACES = {"slurm": "slurm:Slurm", "sky": "skypilot:SkyPilot"}
ENGINES = tuple(_PLACES)


def engine_of(jobs: Mapping[str, JobOptions], on: str | None, more: JobOptions) -> tuple[Engine, JobOptions] | None:
    """The scheduler that starts a launch, with the options for it; None: it starts here.

    Args:
        jobs: of the profile: scheduler -> options.
        on: ``local``, ``cluster`` (whatever there is) or a scheduler's name; None: as the profile says.

    Raises:
        UsageError: there is no such scheduler, or an option is wrong.
    """
    named = next(iter(jobs), None)
    if on == LOCAL and more:
        raise UsageError("--job sets an option of a scheduler, and none starts this run", "leave out --on local")
    if on == LOCAL or (on is None and named is None and not more):
        return None
    engine = engine_named(named or ENGINES[0] if on in (None, CLUSTER) else on or "")
    options = {**jobs.get(engine.name, {}), **more}
    if wrong := engine.check(options):
        raise UsageError(f"{engine.title}: {wrong}", "see docs/slurm.md", field="job")
    return engine, options


def engine_named(name: str) -> Engine:
    """The engine of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in _PLACES:
        raise UsageError(f"there is no scheduler {name!r}", f"one of {', '.join(ENGINES)}", field="on")
    module, _, made = _PLACES[name].partition(":")
    return cast(Engine, getattr(import_module(f"{__package__}.{module}"), made)())


def ask(engine: Engine, command: Sequence[str], environ: Mapping[str, str] | None = None) -> str:
    """What a scheduler's command prints.

    Args:
        environ: the environment of a job that the command submits; None: it submits nothing.

    Raises:
        OperationError: it is not installed, does not answer, or refuses; its own words are in the sentence.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASK_SECONDS,
            env=plain_environment() if environ is None else dict(environ),
        )
    except FileNotFoundError:
        hint = f"run it where {engine.title} is installed, such as a login node of the cluster"
        raise OperationError(f"{engine.title}: there is no program {command[0]} here", hint) from None
    except subprocess.TimeoutExpired:
        raise OperationError(
            f"{engine.title} does not answer: {command[0]} took more than {ASK_SECONDS:g} s", "try again later"
        ) from None
    except OSError as error:
        raise OperationError(f"{engine.title}: {command[0]} could not be started: {error.strerror}") from error
    if done.returncode != 0:
        lines = (" ".join(line.split()) for line in done.stderr.decode("utf-8", "replace").splitlines())
        words = [line.removeprefix(f"{command[0]}: ").removeprefix("error: ").rstrip(".") for line in lines]
        said = "; ".join(dict.fromkeys(filter(None, words))) or f"exit code {done.returncode}"
        hint = f"`{' '.join(command[:2])} ...` was asked" if environ is None else engine.refused
        raise OperationError(f"{engine.title} refuses: {said}", hint)
    return done.stdout.decode("utf-8", "replace")
