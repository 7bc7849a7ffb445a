"""The face of a state: a glyph and a word, so that nobody needs to tell colours apart, and a tone for those who can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..runs.snapshot import Health, RunSnapshot, State


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
WIDEST_WORD = 10
_HEALTH_SHOWS_IN = frozenset({State.RUNNING, State.UNSUPERVISED, State.WATCHED})
_FAILED = frozenset({State.FAILED, State.LOST, State.STOP_FAILED, State.DEPENDENCY_FAILED, State.UNREADABLE})
_SUFFERING = frozenset({Health.STALLED, Health.HUNG})


def face(snapshot: RunSnapshot) -> Face:
    """The one word for a run: what a running one is doing, else where it is."""
    if snapshot.state is State.RUNNING and snapshot.paused:
        return HEALTH_FACES[Health.PAUSED]
    if snapshot.state in _HEALTH_SHOWS_IN and snapshot.health is not None:
        return HEALTH_FACES[snapshot.health]
    return STATE_FACES[snapshot.state]


def needs_attention(snapshot: RunSnapshot) -> bool:
    """Whether a person should look: it failed, or it lives and does not move. An end that was asked for is no alarm."""
    if snapshot.state is State.KILLED:
        return snapshot.exit is None or snapshot.exit.requested_by is None
    if snapshot.state in _FAILED:
        return True
    return snapshot.state in _HEALTH_SHOWS_IN and snapshot.health in _SUFFERING


def attention(snapshots: Iterable[RunSnapshot]) -> list[tuple[int, Face]]:
    """How many runs need a person, by word, the worst first: ``[(2, failed), (1, stalled)]``."""
    counted = Counter(face(snapshot) for snapshot in snapshots if needs_attention(snapshot))
    return sorted(((count, shown) for shown, count in counted.items()), key=lambda item: (item[1].tone, item[1].word))
