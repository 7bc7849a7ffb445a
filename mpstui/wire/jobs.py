"""Runs started by a scheduler: what the supervisor must know about the scheduler, and the record of the job."""

# No `from __future__ import annotations` here: see records.py.
import os
import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional

IN_JOB = "--in-job"
"""Supervisor option: it is the first process of a scheduler's job, and stays until the run has ended."""
WARNING = signal.SIGUSR1
"""Sent to a job's first process some time before its time limit."""
RENDEZVOUS = "{rendezvous}"
"""Placeholder in a command: ``host:port`` of the first node, where the processes of all nodes meet."""
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
    """Templates for the job's id, such as ``{SLURM_JOB_ID}``; the first whose variables are all set is used."""
    restarts: str = ""
    """The environment variable that counts the job's restarts."""
    look: Sequence[str] = []
    """Command that prints what the scheduler is about to do with the job; its whitespace is collapsed to match it."""
    given_notice: str = ""
    """Matches the output of ``look`` for a job that must make room: it is requeued once it has saved."""
    untouched: str = ""
    """Matches the output of ``look`` for a job that the scheduler leaves alone: then a person sent the signal."""
    dropped: str = ""
    """Matches the output of ``look`` for a job that is being ended for good, to make room or, with a group ``limit``,
    because of its time limit. ``{restarts}`` stands for the number of restarts."""
    cancelled: str = ""
    """Matches the output of ``look`` for a job that somebody cancelled; ``{restarts}`` as above."""
    requeue: Sequence[str] = []
    """Command that puts the job back into the queue; empty: impossible."""
    again: Sequence[str] = []
    """Options to add to the command that submitted the job, to submit another that begins when this one has ended.
    An option with ``{task}`` is for array jobs only. Empty: it must not be done."""
    of_one_job: str = ""
    """Matches the names of variables that describe this job and must not reach the next one."""
    signal: Sequence[str] = []
    """Command that sends ``{signal}`` (TERM, KILL) to the training on all nodes; empty: it runs on this node only."""
    options: Mapping[str, str] = {}
    """The options given to the scheduler, under its own names; an empty value is a bare flag."""
    nodes: int = 1


class JobRecord(NamedTuple):
    """``job.json``: the job last submitted for a run."""

    engine: str
    submitted: float
    id: Optional[str] = None
    """None while it is being submitted. If the submitter died doing so, the job itself fills it in."""
    argv: Sequence[str] = []
    """The command that submitted it."""
    earlier: Sequence[str] = []
    """Ids of the jobs before it."""


def id_of_job(rule: EngineRule, environ: Mapping[str, str]) -> str:
    """Return the id of the job that this environment belongs to; empty outside a job."""
    for text in rule.ids:
        names = [part.partition("}")[0] for part in text.split("{")[1:]]
        if all(environ.get(name) for name in names):
            for name in names:
                text = text.replace("{" + name + "}", environ[name])
            return text
    return ""


def filled(command: Sequence[str], job: str) -> list[str]:
    """Return a scheduler's command with the job's id filled in."""
    return [word.replace("{job}", job) for word in command]


def submitted_again(rule: EngineRule, argv: Sequence[str], job: str) -> list[str]:
    """Return the command that submits a successor to begin when this job has ended; for an array, this task only."""
    task = job.partition("_")[2]
    more = [word.replace("{task}", task) for word in filled(rule.again, job) if task or "{task}" not in word]
    options = next((place for place, word in enumerate(argv) if place and not word.startswith("--")), len(argv))
    return [*argv[:options], *more, *argv[options:]]


def plain_environment() -> dict[str, str]:
    """Return the environment for a scheduler's own commands: output in one format, whatever the user has set."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SBATCH_", "SACCT_"))}
    return {**own, "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}
