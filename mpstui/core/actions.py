"""The table of actions: everything a user can do to a run, one entry each.

Keys, footer, help page, questions, toasts, requests and commands are derived from it, and so is what a run allows now:
to add an action, add an entry here. A new kind of request also needs a function in ``supervisor/loop.py``, or an answer
by the trainer. Nothing in this module reads files; :mod:`mpstui.core.launching.record` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from .model.snapshot import Availability, Health, RunSnapshot, State
from .present import completed
from .stakes import ASKS_FROM_SECONDS, HAS_PROCESSES, at_stake, cost_of_restart, has_checkpoint, lasted_seconds, unsaved

_WAITS = frozenset({State.QUEUED, State.BACKING_OFF})


class RunFacts(NamedTuple):
    """What a run's folder says beyond its snapshot. An empty reason means that nothing is in the way."""

    restart_requested: bool = False
    no_cpu: str = ""
    """Why the next attempt cannot run on CPU."""
    not_resumable: str = ""
    """Why the next attempt can only begin from scratch."""
    unheard: Mapping[str, str] = {}
    """Requests that the trainer itself does not receive, each with the reason."""


class Question(NamedTuple):
    """The question asked before an action: its consequences in sentences, and what ``y`` does."""

    title: str
    lines: tuple[str, ...]
    yes: str
    keep: str = ""
    """What ``k`` does, if there is a gentler way."""


Refusal = Callable[[RunSnapshot, RunFacts], str]
Ask = Callable[[RunSnapshot, str], Question | None]
Cost = Callable[[RunSnapshot, str], str]


class Action(NamedTuple):
    """One thing that can be done to a run."""

    id: str
    name: str
    """Its name within a sentence."""
    refusal: Refusal
    """Why it is not possible now, in one sentence; empty if it is."""
    caution: Callable[[RunFacts], str] = lambda facts: ""
    """What the user should know first, although it is possible."""
    question: Ask = lambda run, caution: None
    """What the screen asks first, given the caution; None: nothing."""
    cost: Cost = lambda run, caution: ""
    """What it costs as far as is known, in a sentence, given the caution; empty: nothing."""
    request: str = ""
    """The request it sends to the supervisor or the trainer; empty: its caller does something else."""
    options: Mapping[str, Any] = {}
    """Options of the request; for a restart, those of its planner."""

    key: str = ""
    """Textual's name for its key on the screen."""
    shown_key: str = ""
    """The key as shown to the user, if different."""
    label: str = ""
    """Its name in the footer, if shorter."""
    help: str = ""
    """One line for the help page."""
    footer: int = 0
    """Rank in the footer: the highest are dropped first if there is no room; 0: not shown there."""
    rare: bool = False
    """True if the footer shows it only when it is possible."""
    scope: Literal["run", "queue", "list"] = "run"
    """Where the key works: wherever a run is in view, for queued runs, or in the list only."""
    screen_action: str = ""
    """The screen's method for it, if the key does more than ask and send the request."""
    when_frozen: str = ""
    """The action that the same key stands for if the run's processes are frozen."""

    command: str = ""
    """Its name on the command line; empty: offered by a separate module there, or not at all."""
    command_help: str = ""
    """Its line of help there, if different from ``help``."""
    flags: Mapping[str, str] = {}
    """Options of the request that the command line can switch on, each with a line of help."""
    timeout: float | None = None
    """Seconds the command line waits for the answer."""


# -- refusals


def _not_running(snapshot: RunSnapshot, facts: RunFacts) -> str:
    if snapshot.state in HAS_PROCESSES:
        return ""
    return "it has not been started yet" if snapshot.state in _WAITS else f"it is not running ({snapshot.state})"


def _cannot_wait(snapshot: RunSnapshot, facts: RunFacts) -> str:
    # A scheduler can hold a job that has not started.
    return "" if snapshot.job is not None and snapshot.job.phase.waits else _not_running(snapshot, facts)


def _cannot_end(snapshot: RunSnapshot, facts: RunFacts) -> str:
    # Nothing saw the end of a lost run: a search may still find processes of it.
    ends = snapshot.state in (*_WAITS, State.LOST) or facts.restart_requested or bool(snapshot.survivors)
    return "" if ends else _not_running(snapshot, facts)


def _cannot_restart(snapshot: RunSnapshot, facts: RunFacts) -> str:
    return "it is already waiting to start" if snapshot.state is State.QUEUED else ""


def _on_cpu_already(snapshot: RunSnapshot) -> str:
    return "it runs on the CPU already: r restarts it" if snapshot.numbers.device.type == "cpu" else ""


def _cannot_hear(action: str, snapshot: RunSnapshot, facts: RunFacts) -> str:
    frozen = "it is paused, and only the running program can do that" if snapshot.is_frozen else ""
    return _not_running(snapshot, facts) or frozen or facts.unheard.get(action, "")


def _cannot_evaluate(snapshot: RunSnapshot, facts: RunFacts) -> str:
    beat = snapshot.numbers.beat
    knows = beat is None or "evaluate" in beat.answers  # without a heartbeat, ask: it will answer no
    why = "" if knows else 'it does not evaluate on request: report.requested("evaluate") in its loop would'
    why = "it is evaluating now" if snapshot.health is Health.EVALUATING else why
    return _cannot_hear("evaluate", snapshot, facts) or why


def _cannot_remove(snapshot: RunSnapshot, facts: RunFacts) -> str:
    if snapshot.state.active or facts.restart_requested:
        return f"it is still {str(snapshot.state).replace('_', ' ')}: stop it first (s)"
    return "some of its processes are still alive: kill them first (K)" if snapshot.survivors else ""


def _not_queued(snapshot: RunSnapshot, facts: RunFacts) -> str:
    if snapshot.state is not State.QUEUED:
        return "it is not in a queue; `mpstui queue` lists them all"
    if snapshot.job is not None:
        title = snapshot.job.title
        return f"{title} has its queue: p holds the job, `mpstui queue move RUN first` asks {title} to put it first"
    return "" if snapshot.queue is not None and snapshot.queue.group else "it waits for other runs, not in a queue"


# -- questions: whether one is asked depends on the work that would be lost, not on the action


def _ask_to_kill(snapshot: RunSnapshot, caution: str) -> Question | None:
    lost = at_stake(snapshot, at_once=True)
    if lost is None:
        return None
    ends = f"Process {snapshot.pid or '?'} and all it started end at once. Nothing is saved."
    doubtful = not snapshot.brief and not has_checkpoint(snapshot)
    instead = f"s (stop) {'gives a program that can save the time to do so' if doubtful else 'lets it save first'}."
    return Question(f"Kill {snapshot.name}?", (ends, f"{lost.subject} lost.", instead), "kill it")


def _ask_to_stop(snapshot: RunSnapshot, caution: str) -> Question | None:
    if at_stake(snapshot) is None:
        return None
    lines = (_cost_of_stop(snapshot, caution), "Whether this program saves when it is asked to end is not known.")
    return Question(f"Stop {snapshot.name}?", lines, "stop it")


def _ask_to_restart(snapshot: RunSnapshot, caution: str, where: str = "") -> Question | None:
    resumes, has_finished = not caution and has_checkpoint(snapshot), snapshot.state is State.FINISHED
    lasted = lasted_seconds(snapshot)
    costs_little = at_stake(snapshot) is None if resumes else lasted is None or lasted <= ASKS_FROM_SECONDS
    if costs_little and not has_finished:
        return None
    stopped = ("The attempt that runs now is stopped first.",) if snapshot.state.active else ()
    done = (f"{completed(snapshot)} R (`--set`) changes arguments first, such as the epochs.",) if has_finished else ()
    told = snapshot.numbers.checkpoint
    elsewhere = told is not None and f"{told.path} is not where the checkpoints of this run are looked for"
    begins = caution or f"it will start from step 0: {elsewhere or 'there is no checkpoint'}"
    told_by_cost = resumes or (not caution and not all(one.finite for one in snapshot.checkpoints))
    scratch = () if told_by_cost else (f"{begins[:1].upper()}{begins[1:]}.",)
    goes_on = "It continues from its newest checkpoint: there may be nothing left to do."
    again = cost_of_restart(snapshot, "" if told_by_cost else "from scratch")
    cost = goes_on if has_finished and resumes else again
    lines = (*stopped, *done, *scratch, cost)
    return Question(f"Restart {snapshot.name}{where}?", tuple(filter(None, lines)), "restart it")


def _cost_of_stop(snapshot: RunSnapshot, caution: str) -> str:
    unless = "" if (work := unsaved(snapshot)).none else " unless it saves first"
    return f"{work.subject} lost{unless}." if snapshot.state in HAS_PROCESSES else ""


def pasted(action: Action, snapshot: RunSnapshot) -> Question:
    """Return the question for a key that arrived with other letters in one chunk: a paste, or a stalled line."""
    why = f"Its key ({action.shown_key or action.key}) arrived together with other letters, as in a paste."
    return Question(f"{action.name[:1].upper()}{action.name[1:]}: {snapshot.name}?", (why,), action.name)


# -- the table

ACTIONS: tuple[Action, ...] = (
    Action(
        id="restart_cpu",
        name="restart on CPU",
        refusal=lambda run, facts: _cannot_restart(run, facts) or facts.no_cpu or _on_cpu_already(run),
        caution=lambda facts: facts.not_resumable,
        question=lambda run, caution: _ask_to_restart(run, caution, " on CPU"),
        cost=lambda run, caution: f"{cost_of_restart(run, caution)} How fast it is on CPU is unknown.".strip(),
        request="restart",
        options={"device": "cpu"},
        key="c",
        label="on CPU",
        help="restart on CPU from newest checkpoint",
        footer=19,
    ),
    Action(
        id="stop",
        name="stop",
        refusal=_cannot_end,
        question=_ask_to_stop,
        cost=_cost_of_stop,
        request="stop",
        options={"force": False},
        key="s",
        help="stop it; it saves first if it can",
        footer=6,
        command="stop",
        command_help="ask a run to save and end; after its grace period, end it",
        flags={"force": "kill at once, without the grace period"},
    ),
    Action(
        id="kill",
        name="kill",
        refusal=_cannot_end,
        question=_ask_to_kill,
        cost=lambda run, caution: f"{unsaved(run).subject} lost." if run.state in HAS_PROCESSES else "",
        request="kill",
        key="K",
        help="end it at once; nothing is saved",
        footer=10,
        command="kill",
        command_help="end a run and all it started at once; nothing is saved",
    ),
    Action(
        id="pause",
        name="pause",
        refusal=lambda run, facts: _cannot_wait(run, facts) or ("it is already paused" if run.is_frozen else ""),
        request="pause",
        key="p",
        help="pause it (memory is kept), or resume",
        footer=8,
        when_frozen="continue",
        command="pause",
        command_help="pause a run; it keeps its memory",
    ),
    Action(
        id="continue",
        name="continue",
        refusal=lambda run, facts: _cannot_wait(run, facts) or ("" if run.is_frozen else "it is not paused"),
        request="continue",
        command="continue",
        command_help="resume a paused run",
    ),
    Action(
        id="restart",
        name="restart",
        refusal=_cannot_restart,
        caution=lambda facts: facts.not_resumable,
        question=_ask_to_restart,
        cost=cost_of_restart,
        request="restart",
        key="r",
        help="start again from newest checkpoint",
        footer=7,
    ),
    Action(
        id="edit_restart",
        name="edit and restart",
        refusal=_cannot_restart,
        cost=cost_of_restart,
        request="restart",
        key="R",
        label="edit",
        help="edit command, arguments, then restart",
        footer=9,
        screen_action="edit",
    ),
    Action(
        id="fix",
        name="fix",
        refusal=_cannot_restart,
        cost=cost_of_restart,
        request="restart",
        key="f",
        help="fill in the remedy, or what was tried",
        footer=5,
        screen_action="fix",
    ),
    Action(
        id="clear_cache",
        name="clear cache",
        refusal=lambda run, facts: _cannot_hear("clear_cache", run, facts),
        request="clear_cache",
        key="x",
        help="free the device memory in its cache",
        footer=21,
        command="clear-cache",
        timeout=60.0,
    ),
    Action(
        id="save",
        name="save",
        refusal=lambda run, facts: _cannot_hear("save", run, facts),
        request="save",
        key="S",
        help="save a checkpoint now",
        footer=22,
        command="save",
        timeout=600.0,
    ),
    Action(
        id="evaluate",
        name="evaluate",
        refusal=_cannot_evaluate,
        request="evaluate",
        key="A",
        help="evaluate now, if the code knows how",
        footer=20,
        rare=True,
        command="evaluate",
        timeout=600.0,
    ),
    Action(
        id="dump_stacks",
        name="dump stacks",
        refusal=lambda run, facts: _not_running(run, facts) or ("it is paused" if run.is_frozen else ""),
        request="dump_stacks",
        key="T",
        label="stacks",
        help="write every thread's stack to its log",
        footer=23,
        command="stacks",
        timeout=60.0,
    ),
    Action(
        id="queue_move",
        name="order",
        refusal=_not_queued,
        key="less_than_sign",
        shown_key="< >",
        help="start one place earlier or later",
        footer=17,
        scope="queue",
        screen_action="queue('up')",
    ),
    Action(
        id="queue_pause",
        name="pause queue",
        refusal=_not_queued,
        key="P",
        help="pause its queue, or resume it",
        footer=18,
        scope="queue",
        screen_action="pause_queue",
    ),
    Action(
        id="remove",
        name="remove",
        refusal=_cannot_remove,
        key="D,delete",
        shown_key="D",
        help="delete an ended run (asks first)",
        footer=19,
        screen_action="remove",
    ),
)

BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}


def allowed(snapshot: RunSnapshot, facts: RunFacts | None, action: Action) -> Availability:
    """Return whether an action is possible for a run now; ``facts`` is None if its record cannot be read."""
    if not snapshot.is_ours:
        return Availability(False, "mpstui did not start this run and only watches it")
    if snapshot.is_elsewhere:
        return Availability(False, "it was opened by its path and is only watched: it is no run of this home")
    if snapshot.moved_to is not None and snapshot.state not in HAS_PROCESSES:
        return Availability(False, f"it was moved to {snapshot.moved_to} and continues there")
    if snapshot.moving is not None and snapshot.state is State.MOVING:
        return Availability(False, f"it is being moved {snapshot.moving.sentence}")
    if facts is None and action.refusal is _cannot_end and snapshot.state in HAS_PROCESSES:
        return Availability(True, "its record cannot be read; what still runs of it can be ended")
    if facts is None or snapshot.state is State.UNREADABLE:
        return Availability(False, "the run's record cannot be read (damaged, or written by a newer mpstui)")
    why = action.refusal(snapshot, facts)
    return Availability(not why, why or action.caution(facts))
