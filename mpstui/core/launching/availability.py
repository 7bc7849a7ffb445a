"""Which actions can work for a run now, and the one honest sentence for each that cannot."""

from __future__ import annotations

from collections.abc import Mapping

from ...wire.rundir import RunDir
from ..actions import ACTIONS, BY_ID, RunFacts, allowed
from ..model.snapshot import Availability, RunSnapshot, State
from ..runs.waiting import restart_is_wished
from .record import RecordedRun, read_run


def availability(snapshot: RunSnapshot, action: str) -> Availability:
    """Whether ``action`` (an id of :data:`mpstui.core.actions.ACTIONS`) can work for this run.

    The sentence of one that can work is a caution, such as a restart that can only begin from scratch.
    """
    return allowed(snapshot, _facts(snapshot), BY_ID[action])


def available(snapshot: RunSnapshot) -> Mapping[str, Availability]:
    """What every action may do to this run now, by its id."""
    facts = _facts(snapshot)
    return {action.id: allowed(snapshot, facts, action) for action in ACTIONS}


def _facts(snapshot: RunSnapshot) -> RunFacts | None:
    """What its folder says; None where its record cannot be read, and for a run that is only watched."""
    run = RunDir(snapshot.dir)
    recorded = read_run(run) if snapshot.state is not State.WATCHED else None
    if recorded is None:
        return None
    return RunFacts(
        restart_requested=restart_is_wished(run),
        no_cpu=recorded.device_refusal("cpu"),
        not_resumable=_not_resumable(recorded),
        unheard=_unheard(run, snapshot.attempt, has_profile=recorded.has_profile),
    )


def _unheard(run: RunDir, attempt: int, *, has_profile: bool) -> str:
    """Why nothing can be asked of the trainer itself; empty when it reports, and so reads requests."""
    if run.attempt(attempt).heartbeat().exists():
        return ""
    if any(run.attempt(number).heartbeat().exists() for number in range(1, attempt)):
        return "only the trainer itself can do that, and it is still starting: try again in a moment"
    agent = "else add agent = true to its profile" if has_profile else "else the agent cannot be put into its program"
    return (
        "only the trainer itself can do that, and this one has not reported yet: try again if it is just "
        f"starting, {agent}"
    )


def _not_resumable(recorded: RecordedRun) -> str:
    if recorded.template.resume_args is not None:
        return ""
    if not recorded.has_profile:
        return "it begins from scratch: a command does not say how to continue, a profile can ([resume])"
    return "it begins from scratch: its profile does not say how to continue ([resume])"
