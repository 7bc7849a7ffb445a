"""The face of a state: a glyph and a word, so that nobody needs to tell colours apart, and a tone for those who can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..model.snapshot import Health, RunSnapshot, State


@dataclass(frozen=True, slots=True)
class Face:
    """How one state looks. ``tone`` is ``good``, ``busy``, ``warn``, ``bad`` or ``quiet``."""

    glyph: str
    word: str
    tone: str


STATE_FACES = {
    State.QUEUED: Face("◌", "queued", "quiet"),
    State.BACKING_OFF: Face("↻", "retrying", "warn"),
    State.STARTING: Face("◔", "starting", "busy"),
    State.RUNNING: Face("●", "running", "good"),
    State.STOPPING: Face("◍", "stopping", "busy"),
    State.FINISHED: Face("✓", "finished", "quiet"),
    State.STOPPED: Face("■", "stopped", "quiet"),
    State.FAILED: Face("✗", "failed", "bad"),
    State.KILLED: Face("⊘", "killed", "bad"),
    State.LOST: Face("?", "lost", "bad"),
    State.UNSUPERVISED: Face("◐", "unwatched", "warn"),
    State.STOP_FAILED: Face("!", "won't stop", "bad"),
    State.DEPENDENCY_FAILED: Face("✗", "blocked", "bad"),
    State.UNREADABLE: Face("!", "unreadable", "bad"),
    State.WATCHED: Face("◉", "watched", "good"),
}
HEALTH_FACES = {
    Health.WARMING: Face("◔", "warming", "busy"),
    Health.TRAINING: Face("●", "training", "good"),
    Health.EVALUATING: Face("◆", "evaluating", "good"),
    Health.SAVING: Face("▼", "saving", "busy"),
    Health.STALLED: Face("▲", "stalled", "warn"),
    Health.HUNG: Face("▲", "hung", "bad"),
    Health.PAUSED: Face("‖", "paused", "warn"),
    Health.SLEPT: Face("☾", "slept", "quiet"),
}
LOG_EXCEPTION = Face("✗", "exception", "bad")
GONE = Face("?", "gone", "warn")
MEANINGS: dict[State | Health, str] = {
    State.QUEUED: "waits for its turn, or for other runs",
    State.BACKING_OFF: "crashed; its profile has it started again soon",
    State.STARTING: "is being started",
    Health.WARMING: "runs, before its first step",
    Health.TRAINING: "makes steps",
    Health.EVALUATING: "says that it evaluates",
    Health.SAVING: "says that it writes a checkpoint",
    Health.STALLED: "later than it promised, or than is usual for it; may be only slow",
    Health.HUNG: "silent for three times as long as promised, or without a step as long: look at it",
    Health.PAUSED: "its processes stand still until they are continued",
    Health.SLEPT: "the machine slept; it has not reported since",
    State.STOPPING: "was asked to save and end",
    State.FINISHED: "ended by itself, with exit code 0",
    State.STOPPED: "ended because somebody asked, or before it was done",
    State.FAILED: "ended with an error",
    State.KILLED: "ended by a signal",
    State.LOST: "ended, and nobody saw how",
    State.UNSUPERVISED: "trains, but its supervisor has died",
    State.STOP_FAILED: "some of its processes cannot be ended",
    State.DEPENDENCY_FAILED: "a run it waited for did not end as it had to",
    State.UNREADABLE: "its records are damaged, or of a newer mpstui",
    State.WATCHED: "not started by mpstui; what it does cannot be told",
    State.RUNNING: "its processes live; nothing more is known",
}
"""What the word of a state or a health tells a person, in the order in which runs go through them."""
WATCHED_MEANINGS = {
    LOG_EXCEPTION: "only watched; its log ends with an exception, and no training follows",
    GONE: "only watched; its file was deleted, or moved away",
}
"""What more is told of something that is only watched."""
WIDEST_WORD = 10
_HEALTH_SHOWS_IN = frozenset({State.RUNNING, State.UNSUPERVISED, State.WATCHED})
_FAILED = frozenset({State.FAILED, State.LOST, State.STOP_FAILED, State.DEPENDENCY_FAILED, State.UNREADABLE})
_SUFFERING = frozenset({Health.STALLED, Health.HUNG})


def face(snapshot: RunSnapshot) -> Face:
    """The one word for a run: what a running one is doing, else where it is."""
    if snapshot.state is State.RUNNING and snapshot.is_frozen:
        return HEALTH_FACES[Health.PAUSED]
    if snapshot.gone:
        return GONE
    if snapshot.log_exception is not None:
        return LOG_EXCEPTION
    if snapshot.state in _HEALTH_SHOWS_IN and snapshot.health is not None:
        return HEALTH_FACES[snapshot.health]
    return STATE_FACES[snapshot.state]


def legend() -> Iterator[tuple[Face, str]]:
    """Every face with its meaning."""
    for known, meaning in MEANINGS.items():
        yield HEALTH_FACES[known] if isinstance(known, Health) else STATE_FACES[known], meaning
        if known is State.WATCHED:
            yield from WATCHED_MEANINGS.items()


def needs_attention(snapshot: RunSnapshot) -> bool:
    """Whether a person should look: it failed, or it lives and does not move. An end that was asked for is no alarm."""
    if snapshot.state is State.KILLED:
        return snapshot.exit is None or snapshot.exit.requested_by is None
    if snapshot.state in _FAILED or snapshot.gone or snapshot.log_exception is not None:
        return True
    return snapshot.state in _HEALTH_SHOWS_IN and snapshot.health in _SUFFERING


def attention(snapshots: Iterable[RunSnapshot]) -> list[tuple[int, Face]]:
    """How many runs need a person, by word, the worst first: ``[(2, failed), (1, stalled)]``."""
    counted = Counter(face(snapshot) for snapshot in snapshots if needs_attention(snapshot))
    return sorted(((count, shown) for shown, count in counted.items()), key=lambda item: (item[1].tone, item[1].word))
