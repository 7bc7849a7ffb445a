"""A run that a scheduler starts: what its supervisor must know about the scheduler, and the record of the job."""

# No `from __future__ import annotations` here: see records.py.
import os
import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional

IN_JOB = "--in-job"
"""Option of the supervisor: it is the first process of a scheduler's job, and stays until the run has ended."""
WARNING = signal.SIGUSR1
"""Sent to a job's first process some time before its time limit."""
RENDEZVOUS = "{rendezvous}"
"""In a command: ``host:port`` of the first node, where the processes of all nodes meet."""
REQUEUE = "requeue"
"""The action of an attempt that ended so that its job can be continued later."""
CANCEL = "cancel"
"""The action of an attempt whose job somebody cancelled through the scheduler."""
WAITS_FOR_JOB = "job"
"""``Status.waiting_for`` of a run that goes on when its scheduler starts its job again."""


class EngineRule(NamedTuple):
    """What a supervisor in a job must know about the scheduler. Written by core, which alone knows the schedulers.

    In every command ``{job}`` stands for the job's id.
    """

    name: str
    title: str = ""
    """What people call the scheduler."""
    ids: Sequence[str] = []
    """The job's id, from variables of its environment such as ``{SLURM_JOB_ID}``; the first complete one counts."""
    restarts: str = ""
    """The variable that counts how often the job was restarted."""
    look: Sequence[str] = []
    """Prints what the scheduler is about to do with the job; matched with its whitespace reduced to single spaces."""
    given_notice: str = ""
    """Matches the output of ``look`` for a job that must make room: it is requeued as soon as it has saved."""
    untouched: str = ""
    """Matches the output of ``look`` for a job that the scheduler leaves alone: then a person sent the signal."""
    dropped: str = ""
    """Matches the output of ``look`` for a job that is being ended for good, to make room or, with a group ``limit``,
    because of its time limit. ``{restarts}`` stands for how often it was restarted."""
    cancelled: str = ""
    """Matches the output of ``look`` for a job that somebody cancelled; ``{restarts}`` as above."""
    requeue: Sequence[str] = []
    """Puts the job back into the queue; empty: impossible."""
    again: Sequence[str] = []
    """Options that make the command which submitted the job submit another one, to begin when this one has ended; one
    that contains ``{task}`` is only for a job of an array. Empty: it must not be done."""
    of_one_job: str = ""
    """Matches names of variables that describe one job, and must not reach the next one."""
    signal: Sequence[str] = []
    """Sends ``{signal}`` (TERM, KILL) to the training on all nodes of the job; empty: it runs on this node alone."""
    options: Mapping[str, str] = {}
    """What was asked of the scheduler, under the scheduler's own names; an empty text is a bare flag."""
    nodes: int = 1


class JobRecord(NamedTuple):
    """``job.json``: the job last submitted for a run."""

    engine: str
    submitted: float
    id: Optional[str] = None
    """None: it is being submitted, or whoever submitted it died doing so; then the job itself writes it down."""
    argv: Sequence[str] = []
    """The command that submitted it."""
    earlier: Sequence[str] = []
    """Ids of the jobs before it."""


def id_of_job(rule: EngineRule, environ: Mapping[str, str]) -> str:
    """The id of the job that this environment belongs to; empty outside of a job."""
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
    """The command that submits a job once more, to begin when it has ended; of an array, this task alone."""
    task = job.partition("_")[2]
    more = [word.replace("{task}", task) for word in filled(rule.again, job) if task or "{task}" not in word]
    options = next((place for place, word in enumerate(argv) if place and not word.startswith("--")), len(argv))
    return [*argv[:options], *more, *argv[options:]]


def plain_environment() -> dict[str, str]:
    """The environment for a scheduler's own commands: messages and times in one format, whatever the user has set."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SBATCH_", "SACCT_"))}
    return {**own, "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}
