"""The interface of a scheduler, and the known schedulers. To add one, write a module and one line here."""

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
"""The name of a long option, without its two dashes."""
JobOptions = Mapping[str, str]
"""Options for a scheduler, by its own option names; an empty text is a bare flag."""


class Engine(Protocol):
    """One scheduler. Commands are argument vectors: no user text ever passes through a shell."""

    name: str
    """Its name in commands and profiles."""
    title: str
    """Its name for display."""
    program: str
    """The command that must be installed to use it."""
    index: str
    """The variable with a job's index in its array, from 0."""
    arrays: bool
    """True if several runs can be submitted as one array."""

    usual: Mapping[str, str]
    """The options that a form offers, each with an example value."""
    refused: str
    """A hint for the user if it refuses a job."""

    def check(self, options: JobOptions) -> str:
        """Return a sentence that says what is wrong with the options; empty if nothing is."""

    def nodes(self, options: JobOptions) -> int:
        """Return the number of nodes that the options ask for."""

    def asks_for_gpus(self, options: JobOptions) -> bool:
        """True if the options ask for GPUs."""

    def rule(self, options: JobOptions) -> EngineRule:
        """Return what the supervisor in the job must know."""

    def on_every_node(self, argv: Sequence[str], options: JobOptions) -> list[str]:
        """Return the command that, run on the first node, starts ``argv`` once on each node of the job."""

    def files(self, folder: Path, command: Sequence[str]) -> Mapping[str, str]:
        """Return the submission's files by name: a script in ``folder`` that starts ``command``, free of user text."""

    def submission(self, folder: Path, name: str, command: Sequence[str], options: JobOptions, count: int) -> list[str]:
        """Return the command that submits ``command`` and prints the job's id.

        Args:
            folder: the folder of the (first) run, for the scheduler's files.
            count: number of runs; more than one make an array.
        """

    def submitted(self, output: str, folders: Sequence[Path]) -> list[str]:
        """Return the job ids from the output of a submission, one for each run; none if they cannot be read."""

    def listing(self) -> list[str]:
        """Return the command that lists all jobs of this user."""

    def listed(self, output: str) -> list[JobView]:
        """Return the jobs in the output of :meth:`listing`.

        Raises:
            ValueError: it is no list of jobs.
        """

    def history(self, ids: Sequence[str]) -> list[str]:
        """Return the command that reports jobs that are no longer listed; empty if there is none."""

    def remembered(self, output: str) -> list[JobView]:
        """Return the jobs in the output of :meth:`history`."""

    def change(self, action: str, job: str) -> list[str]:
        """Return the command for ``cancel``, ``kill``, ``hold``, ``release`` or ``top``; empty if there is none."""

    def offers(self) -> list[str]:
        """Return the command that lists what can be requested; empty if there is none."""

    def offered(self, output: str) -> Mapping[str, str]:
        """Return, by option, a few words from the output of :meth:`offers`."""

    def output_of(self, job: str) -> list[str]:
        """Return the command that says where a job, even another user's, writes its output; empty if there is none."""

    def output_path(self, output: str) -> str:
        """Return the path in the output of :meth:`output_of`'s command; empty if there is none."""


LOCAL, CLUSTER = "local", "cluster"
"""Values of ``--on``: on this machine, whatever the profile says; and through the profile's or default scheduler."""
_PLACES = {"slurm": "slurm:Slurm", "sky": "skypilot:SkyPilot"}
ENGINES = tuple(_PLACES)


def engine_of(jobs: Mapping[str, JobOptions], on: str | None, more: JobOptions) -> tuple[Engine, JobOptions] | None:
    """Return the scheduler that starts a launch, and its options; None: it starts on this machine.

    Args:
        jobs: scheduler -> options, from the profile.
        on: ``local``, ``cluster`` (the profile's scheduler or the default) or a scheduler's name; None: as the profile
            says.
        more: further options, which take precedence.

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
    """Return the engine of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in _PLACES:
        raise UsageError(f"there is no scheduler {name!r}", f"one of {', '.join(ENGINES)}", field="on")
    module, _, made = _PLACES[name].partition(":")
    return cast(Engine, getattr(import_module(f"{__package__}.{module}"), made)())


def ask(engine: Engine, command: Sequence[str], environ: Mapping[str, str] | None = None) -> str:
    """Run a scheduler's command and return its output.

    Args:
        environ: the environment of the job if the command submits one; None: it submits nothing.

    Raises:
        OperationError: it is not installed, does not answer, or refuses; the sentence quotes it.
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
