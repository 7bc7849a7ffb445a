"""A scheduler's job as it is shown: in the scheduler's own words, and translated to ours. None means unknown."""

from __future__ import annotations

from enum import StrEnum
from time import localtime, strftime
from typing import NamedTuple

from .moment import Moment


class JobPhase(StrEnum):
    """Where a job is, in one vocabulary for all schedulers."""

    PENDING = "pending"
    HELD = "held"
    STARTING = "starting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDING = "ending"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    PREEMPTED = "preempted"
    NODE_FAILED = "node_failed"
    OUT_OF_MEMORY = "out_of_memory"
    GONE = "gone"
    """The scheduler no longer knows it and has no record of how it ended."""
    UNKNOWN = "unknown"
    """The scheduler has not said anything about it yet."""

    @property
    def waits(self) -> bool:
        """True while it has no nodes yet."""
        return self in (JobPhase.PENDING, JobPhase.HELD)

    @property
    def has_nodes(self) -> bool:
        """True while it holds nodes, so that some of it may be running."""
        return self in (JobPhase.STARTING, JobPhase.RUNNING, JobPhase.SUSPENDED, JobPhase.ENDING)

    @property
    def is_over(self) -> bool:
        """True once it has ended as far as the scheduler is concerned."""
        return not (self.waits or self.has_nodes or self is JobPhase.UNKNOWN)


_WORDS = {
    JobPhase.PENDING: "is pending",
    JobPhase.HELD: "is held",
    JobPhase.STARTING: "is given its nodes",
    JobPhase.RUNNING: "runs",
    JobPhase.SUSPENDED: "is suspended by the scheduler",
    JobPhase.ENDING: "is ending",
    JobPhase.COMPLETED: "has completed",
    JobPhase.FAILED: "has failed",
    JobPhase.CANCELLED: "was cancelled through the scheduler",
    JobPhase.TIMED_OUT: "ran into its time limit",
    JobPhase.PREEMPTED: "was preempted and not requeued",
    JobPhase.NODE_FAILED: "was ended by the failure of a node",
    JobPhase.OUT_OF_MEMORY: "was ended for using too much memory",
    JobPhase.GONE: "is no longer known to the scheduler",
    JobPhase.UNKNOWN: "was submitted",
}
_SAYS_NOTHING = ("", "None", "none", "N/A", "(null)")


class JobView(NamedTuple):
    """One job, as its scheduler last described it."""

    engine: str
    title: str
    """The scheduler's name for display."""
    id: str
    phase: JobPhase = JobPhase.UNKNOWN
    state: str | None = None
    """In the scheduler's words: ``PENDING``."""
    reason: str | None = None
    """Why it is waiting or has ended, in the scheduler's words: ``Priority``."""
    nodes: str | None = None
    """As the scheduler writes them: ``n[1-2]``."""
    partition: str | None = None
    user: str | None = None
    name: str | None = None
    starts: Moment | None = None
    """When it started or is expected to start, Unix seconds."""
    ends: Moment | None = None
    """When it reaches its time limit, Unix seconds."""
    silent_since: Moment | None = None
    """When the scheduler stopped answering; None: this is its current answer."""
    why_silent: str = ""

    @property
    def array(self) -> str:
        """The id shared by all tasks of its job array; its own id if it belongs to none."""
        return self.id.partition("_")[0]

    def sentence(self) -> str:
        """Return ``Slurm job 17 is pending: Priority``, ``Slurm job 17 runs on n[1-2]``; see :meth:`silence`."""
        why = f": {self.reason}" if self.reason not in (None, *_SAYS_NOTHING) and not self.phase.has_nodes else ""
        where = f" on {self.nodes}" if self.nodes and self.phase.has_nodes else ""
        return f"{self.title} job {self.id} {_WORDS[self.phase]}{where}{why}"

    def silence(self) -> str:
        """Say since when the scheduler has not answered; empty if it does answer."""
        if self.silent_since is None:
            return ""
        since = strftime("%H:%M:%S", localtime(self.silent_since))
        return f"; {self.title} does not answer since {since}" + (f" ({self.why_silent})" if self.why_silent else "")

    def short(self) -> str:
        """Return a few words to show next to the state: ``Slurm 17 on n[1-2]``; a ``?`` marks an outdated answer."""
        doubt = "?" if self.silent_since is not None else ""
        said = self.reason if self.reason not in (None, *_SAYS_NOTHING) and self.phase.waits else None
        where = f"on {self.nodes}" if self.phase.has_nodes and self.nodes else said or self.phase.replace("_", " ")
        return f"{self.title} {self.id} {where}{doubt}"
