"""What happened to a run is told in sentences, one for each action."""

from __future__ import annotations

from typing import Any

from mpstui.core.model.snapshot import RunEvent
from mpstui.core.runs.story import story

ME = "me@here:1"


def event(kind: str, text: str, attempt: int = 1, **details: Any) -> RunEvent:
    return RunEvent(100.0, attempt, kind, text, details)


def asked(action: str, by: str = "me@here:77") -> RunEvent:
    return event("request", f"{action} by {by}", request=f"r-{action}", action=action, by=by)


def answered(action: str, text: str = "done", *, ok: bool = True) -> RunEvent:
    return event("ack", text, request=f"r-{action}", action=action, ok=ok)


def texts(*events: RunEvent) -> list[str]:
    return [one.text for one in story(events, ME)]


def test_an_action_is_one_line_with_what_it_led_to() -> None:
    ended = event("exit", "ended by SIGTERM, after me@here:77 asked for a stop")
    saved = event("checkpoint", "saved last.pt", path="/run/last.pt", step=1690)
    assert texts(asked("stop"), saved, ended, answered("stop")) == ["you stopped it · saved step 1,690"]
    assert texts(asked("pause"), answered("pause")) == ["you paused it"]
    assert texts(asked("kill", "eve@there:9"), ended, answered("kill")) == ["eve@there killed it"]
    begun = event("restart", "attempt 2 started, from last.pt", 2)
    restarted = texts(asked("restart"), ended, begun, answered("restart"), event("exit", "exit code 0", 2))
    assert restarted == ["you restarted it · attempt 2 started, from last.pt", "exit code 0"]


def test_what_is_still_asked_for_or_was_refused_is_told_as_that() -> None:
    assert texts(asked("stop")) == ["you asked it to stop"]
    refused = texts(asked("dump_stacks"), answered("dump_stacks", "py-spy is not on PATH", ok=False))
    assert refused == ["you asked for its stacks: py-spy is not on PATH"]
    assert texts(asked("stop"), answered("stop", "no", ok=False), event("exit", "exit code 0"))[1:] == ["exit code 0"]


def test_events_have_words_instead_of_names() -> None:
    assert texts(event("crash", "exit code 1"), event("first_step", "the first step"), event("note", "by the way")) == [
        "crashed: exit code 1",
        "the first step",
        "by the way",
    ]
    assert texts(event("checkpoint", "saved a/b.pt", path="a/b.pt", step=1000)) == ["saved b.pt at step 1,000"]
    assert texts(event("odd_thing", "happened"), event("odd_thing", "")) == ["odd thing: happened", "odd thing"]


def test_an_end_by_a_job_that_was_cancelled_is_no_crash() -> None:
    """Its supervisor may have had no word of the scheduler when it wrote that down."""
    events = [event("crash", "exit code 1"), event("crash", "ended by SIGTERM", 2), event("note", "by the way", 2)]
    told = story(events, ME, was_cancelled=True)
    assert [one.text for one in told] == [
        "crashed: exit code 1",
        "ended by SIGTERM, after its job was cancelled through the scheduler",
        "by the way",
    ]
    assert told[1].event == "exit"


def test_of_texts_of_one_name_the_newest_is_told() -> None:
    said = [event("text", f"words {step}", name="sample", step=step) for step in (10, 20, 30)]
    odd = event("text", "odd", name=["no", "name"])
    assert texts(event("note", "begun"), *said, event("text", "once", name="other"), odd) == [
        "begun",
        "sample at step 30, the newest: words 30",
        "other: once",
        "text: odd",
    ]


def test_what_an_older_supervisor_wrote_is_kept_as_it_is() -> None:
    told = texts(event("request", "stop by me@here:7", request="r"), event("ack", "ended", request="r", ok=True))
    assert told == ["stop by me@here:7", "ended"]


def test_an_answer_that_says_what_was_recorded_is_no_event_of_its_own() -> None:
    started, answer = RunEvent(100.0, 2, "restart", "attempt 2 started"), RunEvent(100.2, 1, "ack", "attempt 2 started")
    assert story([started, answer]) == [started]
    assert story([answer, started]) == [answer]
    crashes = [RunEvent(100.0 + at, at, "note", "exit code 1") for at in range(3)]
    late = RunEvent(200.0, 1, "ack", "exit code 1")
    assert story([*crashes, late]) == [*crashes, late]
