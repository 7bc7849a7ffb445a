"""A run in words: the badge of its state, what needs a person, how far it is, its events, whose its files are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..model.snapshot import Checkpoint, Health, Numbers, RunEvent, RunSnapshot, State
from .format import UNKNOWN, ratio, short_count, whole


class StatusBadge(NamedTuple):
    """One state as it is shown: a glyph and a word, so that nobody needs to tell colours apart, and a tone.

    ``tone`` is ``good``, ``busy``, ``warn``, ``bad`` or ``quiet``; ``meaning`` is what the help says of the word.
    """

    glyph: str
    word: str
    tone: str
    meaning: str


BADGES: dict[State | Health, StatusBadge] = {
    State.QUEUED: StatusBadge("◌", "queued", "quiet", "waiting for its turn, or for other runs"),
    State.BACKING_OFF: StatusBadge("↻", "retrying", "warn", "crashed; about to be started again, as its profile asks"),
    State.STARTING: StatusBadge("◔", "starting", "busy", "being started"),
    Health.WARMING: StatusBadge("◔", "warming", "busy", "running, no step yet"),
    Health.TRAINING: StatusBadge("●", "training", "good", "making steps"),
    Health.EVALUATING: StatusBadge("◆", "evaluating", "good", "reports that it is evaluating"),
    Health.SAVING: StatusBadge("▼", "saving", "busy", "reports that it is writing a checkpoint"),
    Health.STALLED: StatusBadge("▲", "stalled", "warn", "silent for longer than promised or usual; may just be slow"),
    Health.HUNG: StatusBadge("▲", "hung", "bad", "no report or no step for three times as long as promised"),
    Health.PAUSED: StatusBadge("‖", "paused", "warn", "its processes are frozen until resumed"),
    Health.SLEPT: StatusBadge("☾", "slept", "quiet", "the machine was asleep; no report since"),
    State.STOPPING: StatusBadge("◍", "stopping", "busy", "asked to save and exit"),
    State.FINISHED: StatusBadge("✓", "finished", "quiet", "exited on its own, with code 0"),
    State.STOPPED: StatusBadge("■", "stopped", "quiet", "ended on request, or before it was done"),
    State.FAILED: StatusBadge("✗", "failed", "bad", "ended with an error"),
    State.KILLED: StatusBadge("⊘", "killed", "bad", "ended by a signal"),
    State.LOST: StatusBadge("?", "lost", "bad", "ended unseen, how is unknown"),
    State.UNSUPERVISED: StatusBadge("◐", "orphaned", "warn", "still training, but its supervisor has died"),
    State.STOP_FAILED: StatusBadge("!", "won't stop", "bad", "some of its processes could not be ended"),
    State.DEPENDENCY_FAILED: StatusBadge("✗", "blocked", "bad", "a run it waited for did not end as required"),
    State.UNREADABLE: StatusBadge("!", "unreadable", "bad", "its records are damaged, or from a newer mpstui"),
    State.WATCHED: StatusBadge("◉", "external", "good", "not started by mpstui; nothing more is known"),
    State.RUNNING: StatusBadge("●", "running", "good", "its processes are alive; nothing more is known"),
}
"""Every state and health, in the order in which runs go through them."""
LOG_EXCEPTION = StatusBadge("✗", "exception", "bad", "external; its log ends with an exception")
GONE = StatusBadge("?", "gone", "warn", "external; its file was deleted, or moved away")
WIDEST_WORD = 10
_HEALTH_SHOWS_IN = frozenset({State.RUNNING, State.UNSUPERVISED, State.WATCHED})
_FAILED = frozenset({State.FAILED, State.LOST, State.STOP_FAILED, State.DEPENDENCY_FAILED, State.UNREADABLE})
_SUFFERING = frozenset({Health.STALLED, Health.HUNG})
_ECHO_SECONDS = 5.0
_LATE_SECONDS = 60.0
"""A file may be finished this long after its run has ended, by a process that outlived it or on a slow disk."""


def badge(snapshot: RunSnapshot) -> StatusBadge:
    """The one word for a run: what a running one is doing, else where it is."""
    if snapshot.state is State.RUNNING and snapshot.is_frozen:
        return BADGES[Health.PAUSED]
    if snapshot.gone:
        return GONE
    if snapshot.log_exception is not None:
        return LOG_EXCEPTION
    if snapshot.state in _HEALTH_SHOWS_IN and snapshot.health is not None:
        return BADGES[snapshot.health]
    return BADGES[snapshot.state]


def legend() -> Iterator[StatusBadge]:
    """Every badge there is, for the help."""
    for known, shown in BADGES.items():
        yield shown
        if known is State.WATCHED:
            yield from (LOG_EXCEPTION, GONE)


def needs_attention(snapshot: RunSnapshot) -> bool:
    """Whether a person should look: it failed, or it lives and does not move. An end that was asked for is no alarm."""
    if snapshot.state is State.KILLED:
        return snapshot.exit is None or snapshot.exit.requested_by is None
    if snapshot.state in _FAILED or snapshot.gone or snapshot.log_exception is not None:
        return True
    return snapshot.state in _HEALTH_SHOWS_IN and snapshot.health in _SUFFERING


def needs_explaining(snapshot: RunSnapshot) -> bool:
    """Whether a run has ended in a way that a person asks the reason of."""
    return not snapshot.state.active and needs_attention(snapshot)


def attention(snapshots: Iterable[RunSnapshot]) -> list[tuple[int, StatusBadge]]:
    """How many runs need a person, by word, the worst first: ``[(2, failed), (1, stalled)]``."""
    counted = Counter(badge(snapshot) for snapshot in snapshots if needs_attention(snapshot))
    return sorted(((count, shown) for shown, count in counted.items()), key=lambda item: (item[1].tone, item[1].word))


def epoch_text(numbers: Numbers) -> str:
    """``57/200``, ``57/?`` where the end is not known, n/a where no epochs are counted."""
    if numbers.epoch is None:
        return UNKNOWN
    return f"{short_count(numbers.epoch)}/{short_count(numbers.epochs) if numbers.epochs is not None else '?'}"


def step_text(numbers: Numbers) -> str:
    """``1,234``, and from ten thousand on ``22.3k``."""
    return whole(numbers.step) if numbers.step is None or numbers.step < 10_000 else short_count(numbers.step)


def epoch_progress(numbers: Numbers) -> float | None:
    """The share that is done of the epoch, None where that is not known."""
    return 1.0 if numbers.epoch_done else ratio(numbers.epoch_step, numbers.epoch_steps)


def total_progress(numbers: Numbers) -> float | None:
    """The share that is done of everything, None where the end is not known."""
    by_steps = ratio(numbers.step, numbers.steps)
    if by_steps is not None or numbers.epoch is None:
        return by_steps
    return ratio(numbers.epoch - numbers.first_epoch + (epoch_progress(numbers) or 0), numbers.epochs)


def without_echoes(events: Iterable[RunEvent]) -> list[RunEvent]:
    """The events, each once: a request's answer often says in the same words what has just been recorded."""
    kept: list[RunEvent] = []
    for one in events:
        alike = (before for before in kept[-2:] if "ack" in (one.event, before.event) and one.text == before.text != "")
        if not any(abs(one.time - before.time) <= _ECHO_SECONDS for before in alike):
            kept.append(one)
    return kept


def short_paths(text: str, folder: object) -> str:
    """``text`` with the files below ``folder`` named from there."""
    return text.replace(f"{folder}/", "")


def why_not_its_own(checkpoint: Checkpoint, snapshot: RunSnapshot) -> str:
    """Why a file that the run's pattern matches cannot be of this run; empty where it can be.

    Runs that share a folder find each other's checkpoints; of two that train at once nobody can tell whose one is,
    unless the file itself says so.
    """
    if checkpoint.owner is not None:
        return "" if checkpoint.owner == snapshot.run else f"of run {checkpoint.owner}"
    if snapshot.started is not None and checkpoint.time < snapshot.started:
        return "older than the run"
    if snapshot.ended is not None and checkpoint.time > snapshot.ended + _LATE_SECONDS:
        return "newer than the run"
    return ""
