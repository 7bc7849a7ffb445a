"""What happened to a run, as a person would tell it: one line per action, however many records it left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..model.snapshot import RunEvent
from ..present import whole

_ECHO_SECONDS = 5.0
_WORDS: Mapping[str, tuple[str, str]] = {
    "stop": ("stopped it", "asked it to stop"),
    "kill": ("killed it", "asked to kill it"),
    "pause": ("paused it", "asked to pause it"),
    "continue": ("resumed it", "asked to resume it"),
    "restart": ("restarted it", "asked to restart it"),
    "clear_cache": ("cleared its cache", "asked it to clear its cache"),
    "save": ("had it save a checkpoint", "asked it to save"),
    "evaluate": ("had it evaluate", "asked it to evaluate"),
    "dump_stacks": ("printed its stacks", "asked for its stacks"),
}
"""For each action: the words when done, and when only requested (the outcome is unknown, or it was refused)."""
_ENDS = frozenset({"stop", "kill", "restart"})
_PREFIXES = {"crash": "crashed: "}
_SPEAKS_FOR_ITSELF = frozenset({"request", "ack", "restart", "launched", "exit", "note", "phase", "checkpoint"})


def story(events: Iterable[RunEvent], me: str = "", *, was_cancelled: bool = False) -> list[RunEvent]:
    """Return the events as sentences, in order; a request, its answer and the end that it led to become one event.

    Of the texts logged under one name, only the newest is kept: many of them would crowd out everything else.

    Args:
        me: who is "you", in the form of :func:`mpstui.wire.rundir.asker`; only the part before the colon counts.
        was_cancelled: the job was cancelled through the scheduler, which its supervisor mistook for a crash.
    """
    events = _without_echoes(events)
    ends = [place for place, one in enumerate(events) if one.event in ("exit", "crash")]
    if was_cancelled and ends and (last := events[ends[-1]]).event == "crash":
        text = f"{last.text}, after its job was cancelled through the scheduler"
        events[ends[-1]] = last._replace(event="exit", text=text)
    answers = {str(one.details.get("request")): one for one in events if one.event == "ack"}
    newest = {str(one.details.get("name")): one for one in events if one.event == "text"}
    several = Counter(str(one.details.get("name")) for one in events if one.event == "text")
    told: list[RunEvent] = []
    known: set[str] = set()
    ending: RunEvent | None = None
    """The last request to end an attempt, while the following events may still be its effect."""
    for one in events:
        request, name = str(one.details.get("request")), str(one.details.get("name"))
        if one.event == "text" and one is not newest[name]:
            continue
        if one.event == "request" and one.details.get("by") and str(one.details.get("action")) in _WORDS:
            known.add(request)
            answer = answers.get(request)
            told.append(one._replace(text=_asked(one, answer, me)))
            if str(one.details["action"]) in _ENDS and answer is not None and answer.details.get("ok"):
                ending = one
        elif one.event == "ack" and request in known:
            ending = None if ending is not None and ending.details["request"] == request else ending
        elif ending is not None and (more := _led_to(one, ending)) is not None:
            told[-1] = told[-1]._replace(text=told[-1].text + more)
        else:
            told.append(one._replace(text=_sentence(one, of_several=one.event == "text" and several[name] > 1)))
    return told


def _asked(request: RunEvent, answer: RunEvent | None, me: str) -> str:
    by = str(request.details["by"])
    who = "you" if me and by.partition(":")[0] == me.partition(":")[0] else by.partition(":")[0]
    done, asked = _WORDS[str(request.details["action"])]
    if answer is None:
        return f"{who} {asked}"
    return f"{who} {done}" if answer.details.get("ok") else f"{who} {asked}: {answer.text}"


def _led_to(one: RunEvent, ending: RunEvent) -> str | None:
    """Return the effect of a request to end an attempt, to append to its sentence; None if it gets its own line."""
    if one.event == "exit" and one.attempt == ending.attempt:
        return ""
    if one.event == "restart" and ending.details["action"] == "restart":
        return f" · {one.text}"
    step = one.details.get("step")
    if one.event == "checkpoint" and one.attempt == ending.attempt and isinstance(step, (int, float)):
        return f" · saved step {whole(step)}"
    return None


def _sentence(one: RunEvent, *, of_several: bool) -> str:
    path, step = one.details.get("path"), one.details.get("step")
    if one.event == "checkpoint" and isinstance(path, str) and isinstance(step, (int, float)):
        return f"saved {Path(path).name} at step {whole(step)}"
    kind = one.event.replace("_", " ")
    if one.event == "text" and isinstance(name := one.details.get("name"), str):
        kind = f"{name} at step {whole(step)}" if isinstance(step, (int, float)) else name
        kind += ", the newest" * of_several
    if not one.text or one.event in _SPEAKS_FOR_ITSELF:
        return one.text or kind
    return _PREFIXES.get(one.event, "" if one.event == "first_step" else f"{kind}: ") + one.text


def _without_echoes(events: Iterable[RunEvent]) -> list[RunEvent]:
    """Drop duplicates: the answer to a request often repeats an event that was just recorded."""
    kept: list[RunEvent] = []
    for one in events:
        alike = (before for before in kept[-2:] if "ack" in (one.event, before.event) and one.text == before.text != "")
        if not any(abs(one.time - before.time) <= _ECHO_SECONDS for before in alike):
            kept.append(one)
    return kept
