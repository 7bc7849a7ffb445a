"""The JSON of a run: the contract's keys, null for unknown, and the same facts that the snapshot holds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Health, RunSnapshot, SeriesView, State
from mpstui.core.runs.report import as_json
from mpstui.reporting import Report
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_monitor
from tests.core.runs.test_logged import grey

ROW = [
    *("run", "name", "profile", "state", "health", "device", "epoch", "epochs", "step", "steps", "loss", "attempt"),
    *("attempts", "pid", "started", "ended", "updated", "exit", "job", "tags", "note", "moving", "moved_to"),
]
FULL = {"metrics", "memory", "heartbeat", "checkpoints", "events", "diagnosis", "dir"}

GREY = grey(4, 4)


def shown(home: Home, run: RunBuilder) -> RunSnapshot:
    return make_monitor(home, FakeClock()).snapshot(run.run.run)


def test_a_row_has_the_keys_of_the_contract_and_null_for_the_unknown(home: Home) -> None:
    row = as_json(shown(home, RunBuilder(home).status("ended").launch(device="auto").exit(code=0)), full=False)
    assert list(row) == ROW
    assert (row["state"], row["health"], row["device"], row["loss"], row["step"]) == (
        "finished",
        None,
        None,
        None,
        None,
    )
    assert row["exit"] == {"code": 0, "signal": None, "cause": None, "requested_by": None, "action": None}
    assert row["ended"] == NOW + 100


def test_a_running_run_has_no_end(home: Home) -> None:
    run = RunBuilder(home).status("running", trainer=[77, 5]).launch().hold().beat(step=1, loss=float("inf"))
    row = as_json(shown(home, run), full=False)
    assert (row["state"], row["health"], row["pid"], row["exit"], row["ended"]) == (
        "running",
        "training",
        77,
        None,
        None,
    )
    assert row["loss"] is None
    run.release()


def test_everything_is_strict_json(home: Home) -> None:
    run = RunBuilder(home).status("running").launch().hold().beat(step=2, loss=0.5, metrics={"val": float("nan")})
    run.points(*({"time": NOW, "attempt": 1, "step": i, "loss": 4.0 - i, "grad": None} for i in range(3)))
    run.event("checkpoint", "saved", path="x.pt", step=2)
    found = as_json(shown(home, run), full=True)
    assert set(found) >= FULL | set(ROW)
    text = json.dumps(found, allow_nan=False)
    again = json.loads(text)
    ends, best = {"count": 3, "first": 4.0, "last": 2.0, "min": 2.0, "max": 4.0}, {"best": 2.0, "best_at": 2.0}
    assert again["metrics"]["loss"] == {**ends, **best, "better": "lower"}
    assert again["metrics"]["grad"] == {"count": 3, **dict.fromkeys((*list(ends)[1:], *best, "better"))}
    assert again["heartbeat"]["schema"] == 1
    assert again["events"][0]["path"] == "x.pt"
    assert again["diagnosis"] == {"findings": []}
    run.release()


def test_images_and_texts_are_told_with_what_they_are_and_where(home: Home) -> None:
    run = RunBuilder(home).status("ended").launch().exit(code=0)
    assert (as_json(shown(home, run), full=True)["images"], as_json(shown(home, run), full=True)["texts"]) == ([], [])
    report = Report({"MPSTUI_RUN_DIR": str(run.run.path)})
    report(step=7)
    report.image("mask/left", GREY)
    report.text("once upon", name="sample")
    report.text("a note has no name")
    found = as_json(shown(home, run), full=True)
    [image], [text] = found["images"], found["texts"]
    assert (image["name"], image["step"], image["attempt"], image["bytes"]) == ("mask/left", 7, 1, len(GREY))
    assert Path(image["path"]).read_bytes() == GREY
    assert {**text, "time": 0} == {"name": "sample", "step": 7, "attempt": 1, "time": 0, "text": "once upon"}
    assert not {"images", "texts"} & as_json(shown(home, run), full=False).keys()


def test_a_crash_is_explained(home: Home) -> None:
    run = RunBuilder(home).status("ended").launch()
    run.output("RuntimeError: MPS backend out of memory (MPS allocated: 17.00 GB, other allocations: 1.00 GB, ")
    run.output("max allowed: 18.13 GB). Tried to allocate 500.00 MB on private pool.\n").exit(code=1)
    snapshot = shown(home, run)
    assert snapshot.state is State.FAILED
    assert as_json(snapshot, full=True)["diagnosis"]["findings"]


def test_a_slow_run_says_so_in_its_note() -> None:
    times = [0.0]
    for place in range(1, 300):
        times.append(times[-1] + (5.0 if place < 200 else 10.0))
    steps = [10.0 * place for place in range(300)]
    loss = SeriesView("loss", "step", steps, steps, steps, steps, steps, 300, times=times)
    slowed = RunSnapshot(
        run="a",
        name="net",
        dir=Path("/none"),
        state=State.RUNNING,
        health=Health.TRAINING,
        seen=times[-1],
        series={"loss": loss},
    )
    assert as_json(slowed, full=True)["health_note"] == "0.5x of its median speed for 16 min"
    assert as_json(replace(slowed, health=Health.EVALUATING), full=True)["health_note"] == ""
