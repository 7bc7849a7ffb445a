"""Which actions can work for a run now, and the one honest sentence for each that cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...wire.rundir import RunDir
from ..model.snapshot import Availability, RunSnapshot, State
from ..runs.waiting import restart_is_wished
from .record import RecordedRun, read_run

_HAS_PROCESSES = frozenset({State.STARTING, State.RUNNING, State.STOPPING, State.UNSUPERVISED, State.STOP_FAILED})
_WAITS = frozenset({State.QUEUED, State.BACKING_OFF})
Rule = Callable[[RunSnapshot, RecordedRun], str]


def availability(snapshot: RunSnapshot, action: str) -> Availability:
    """Whether ``action`` can work for this run.

    The sentence of one that can work is a caution, such as a restart that can only begin from scratch.

    Args:
        action: stop, kill, pause, continue, restart, restart_cpu, clear_cache, edit_restart, queue_move, queue_pause
            or remove.
    """
    if snapshot.state is State.WATCHED:
        return Availability(False, "mpstui did not start this run and only watches it")
    recorded = read_run(RunDir(snapshot.dir))
    if recorded is None or snapshot.state is State.UNREADABLE:
        return Availability(False, "the run's record cannot be read (damaged, or written by a newer mpstui)")
    why = _RULES[action](snapshot, recorded)
    return Availability(not why, why or _caution(action, recorded))


def _stop(snapshot: RunSnapshot, recorded: RecordedRun) -> str:
    if snapshot.state in _HAS_PROCESSES | _WAITS or restart_is_wished(RunDir(snapshot.dir)):
        return ""
    return _not_running(snapshot)


def _pause(snapshot: RunSnapshot, recorded: RecordedRun) -> str:
    if snapshot.state not in _HAS_PROCESSES:
        return _not_running(snapshot)
    return "it is paused already" if snapshot.is_frozen else ""


def _continue(snapshot: RunSnapshot, recorded: RecordedRun) -> str:
    if snapshot.state not in _HAS_PROCESSES:
        return _not_running(snapshot)
    return "" if snapshot.is_frozen else "it is not paused"


def _restart(snapshot: RunSnapshot, recorded: RecordedRun) -> str:
    return "it waits to be started already" if snapshot.state is State.QUEUED else ""


def _restart_cpu(snapshot: RunSnapshot, recorded: RecordedRun) -> str:
    return _restart(snapshot, recorded) or recorded.device_refusal("cpu")


def _clear_cache(snapshot: RunSnapshot, recorded: RecordedRun) -> str:
    if snapshot.state not in _HAS_PROCESSES:
        return _not_running(snapshot)
    if snapshot.is_frozen:
        return "it is paused, and only the running trainer itself can clear its cache"
    return _reporting_refusal(RunDir(snapshot.dir), snapshot.attempt, has_profile=recorded.has_profile)


def _reporting_refusal(run: RunDir, attempt: int, *, has_profile: bool) -> str:
    """Why nothing can be asked of the trainer itself; empty when it reports, and so reads requests."""
    if run.attempt(attempt).heartbeat().exists():
        return ""
    if any(run.attempt(number).heartbeat().exists() for number in range(1, attempt)):
        return "only the trainer itself can clear its cache, and it is still starting: try again in a moment"
    agent = "else add agent = true to its profile" if has_profile else "else it is none that the agent can be put into"
    return (
        "only the trainer itself can clear its cache, and this one has not reported yet: try again if it is just "
        f"starting, {agent}"
    )


def _remove(snapshot: RunSnapshot, recorded: RecordedRun) -> str:
    if snapshot.state.active or restart_is_wished(RunDir(snapshot.dir)):
        return f"it has not ended ({str(snapshot.state).replace('_', ' ')}): stop it first"
    return "some of its processes still live: kill ends them" if snapshot.survivors else ""


def _queued(snapshot: RunSnapshot, recorded: RecordedRun) -> str:
    if snapshot.state is not State.QUEUED:
        return "it does not wait in a queue; `mpstui queue` shows them all"
    in_group = snapshot.queue is not None and snapshot.queue.group is not None
    return "" if in_group else "it waits for other runs, in no queue"


def _caution(action: str, recorded: RecordedRun) -> str:
    """What a person should know of an action that can work."""
    if action.startswith("restart") and recorded.template.resume_args is None:
        if not recorded.has_profile:
            return "it begins from scratch: a command does not say how to continue, a profile can ([resume])"
        return "it begins from scratch: its profile does not say how to continue ([resume])"
    return ""


def _not_running(snapshot: RunSnapshot) -> str:
    return "it has not been started yet" if snapshot.state in _WAITS else f"it is not running ({snapshot.state})"


_RULES: Mapping[str, Rule] = {
    "stop": _stop,
    "kill": _stop,
    "pause": _pause,
    "continue": _continue,
    "restart": _restart,
    "restart_cpu": _restart_cpu,
    "edit_restart": _restart,
    "clear_cache": _clear_cache,
    "queue_move": _queued,
    "queue_pause": _queued,
    "remove": _remove,
}
