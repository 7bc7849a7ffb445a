"""A run that a scheduler starts: what its supervisor must know of the scheduler, and the job on record."""

# No `from __future__ import annotations` here: see records.py.
import os
import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional

IN_JOB = "--in-job"
"""Of a supervisor's command: it is the first process of a scheduler's job, and stays until the run has ended."""
WARNING = signal.SIGUSR1
"""Sent to a job's first process some time before its time limit."""
RENDEZVOUS = "{rendezvous}"
"""In a command: ``host:port`` of the first node, where the processes of all nodes meet."""
REQUEUE = "requeue"
"""The action of an attempt that ended so that its job can go on later."""
CANCEL = "cancel"
"""The action of an attempt whose job somebody cancelled through the scheduler."""
WAITS_FOR_JOB = "job"
"""``Status.waiting_for`` of a run that goes on when its scheduler starts its job again."""


class EngineRule(NamedTuple):
    """What a supervisor in a job must know of the scheduler. Core, which alone knows each of them, writes it.

    In every command ``{job}`` stands for the job's id.
    """

    name: str
    title: str = ""
    """As people call it."""
    ids: Sequence[str] = []
    """The job's id with variables of its environment, ``{SLURM_JOB_ID}``; the first that is complete counts."""
    restarts: str = ""
    """The variable that counts how often the job was started again."""
    look: Sequence[str] = []
    """Prints what the scheduler means to do with the job; it is matched with one space between its words."""
    given_notice: str = ""
    """Matches what ``look`` prints of a job that is to make room: it is requeued as soon as it has saved."""
    untouched: str = ""
    """Matches what ``look`` prints of a job that the scheduler leaves alone: a signal was some person's."""
    dropped: str = ""
    """Matches what ``look`` prints of a job that is being ended for others or, with a group ``limit``, for its time,
    and that the scheduler will not start again. ``{restarts}`` stands for how often it was."""
    cancelled: str = ""
    """Matches what ``look`` prints of a job that somebody cancelled; ``{restarts}`` as above."""
    requeue: Sequence[str] = []
    """Puts the job back into the queue; empty: it cannot be done."""
    again: Sequence[str] = []
    """Options with which the command that submitted the job submits another one, to begin when it has ended; one with
    ``{task}`` is for a job of an array alone. Empty: it must not be done."""
    of_one_job: str = ""
    """Matches names of variables that tell of one job, and must not reach the next one."""
    signal: Sequence[str] = []
    """Sends ``{signal}`` (TERM, KILL) to the training on all nodes of the job; empty: it is on this one alone."""
    options: Mapping[str, str] = {}
    """What was asked of the scheduler, by the names that it gives them; an empty text is a bare flag."""
    nodes: int = 1


class JobRecord(NamedTuple):
    """``job.json``: the job that was submitted last for a run."""

    engine: str
    submitted: float
    id: Optional[str] = None
    """None: it is being submitted, or whoever did so has died over it; the job itself writes it down then."""
    argv: Sequence[str] = []
    """The command that submitted it."""
    earlier: Sequence[str] = []
    """Ids of the jobs before it."""


def id_of_job(rule: EngineRule, environ: Mapping[str, str]) -> str:
    """The id of the job that this environment is of; empty outside of one."""
    for text in rule.ids:
        names = [part.partition("}")[0] for part in text.split("{")[1:]]
        if all(environ.get(name) for name in names):
            for name in names:
                text = text.replace("{" + name + "}", environ[name])
            return text
    return ""


def filled(command: Sequence[str], job: str) -> list[str]:
    """A scheduler's command for one job."""
    return [word.replace("{job}", job) for word in command]


def submitted_again(rule: EngineRule, argv: Sequence[str], job: str) -> list[str]:
    """The command that submits a job once more, for when it has ended; of an array that task alone."""
    task = job.partition("_")[2]
    more = [word.replace("{task}", task) for word in filled(rule.again, job) if task or "{task}" not in word]
    options = next((place for place, word in enumerate(argv) if place and not word.startswith("--")), len(argv))
    return [*argv[:options], *more, *argv[options:]]


def plain_environment() -> dict[str, str]:
    """The environment for a scheduler's own commands: messages and times in one form, whatever the user set."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SBATCH_", "SACCT_"))}
    return {**own, "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}
