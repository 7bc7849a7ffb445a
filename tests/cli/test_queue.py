"""`mpstui queue` on real queued runs."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from mpstui.wire import locks
from mpstui.wire.rundir import RunDir
from tests.cli.programs import as_json, mpstui, ok, run_folder, told, wait_for_state
from tests.waiting import wait_until

WAITS = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)"


def start(name: str, *words: str, until: Path | None = None) -> str:
    program = ["-c", WAITS, str(until)] if until else ["-c", "print('up')"]
    return ok("run", "--name", name, *words, "--", sys.executable, *program).strip()


def group(name: str = "mps") -> Any:
    return told("queue", name)


def waiting(name: str = "mps") -> list[str]:
    return [item["name"] for item in group(name)["waiting"]]


def test_a_group_is_shown_reordered_paused_and_widened(tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = start("one", "--queue", "mps", until=go)
    wait_for_state(first, "running")
    second, third = start("two", "--queue", "mps"), start("three", "--queue", "mps")
    wait_until(lambda: waiting() == ["two", "three"], what="both to wait")
    assert [item["run"] for item in group()["running"]] == [first]
    assert "1st of 2 in mps" in ok("queue", "move", third, "first")
    assert waiting() == ["three", "two"]
    assert as_json("queue", "move", third, "down") == {"run": third, "group": "mps", "place": 2, "count": 2}
    assert "1 running go on" in ok("queue", "pause", "mps")
    assert group()["paused"] is True
    assert "group paused" in ok("queue")
    assert as_json("queue", "slots", "mps", "2") == {"group": "mps", "slots": 2}
    assert ok("queue", "resume", "mps").startswith("mps: goes on")
    for run in (second, third):
        ok("wait", run, "--timeout", "30")
    go.touch()
    ok("wait", first, "--timeout", "30")


def test_a_queued_run_whose_supervisor_was_killed_is_revived_by_a_look(tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = start("one", until=go)
    second = start("two", "--after", first)
    wait_for_state(second, "queued")
    folder = RunDir(run_folder(second))
    os.kill(json.loads(folder.status.read_text())["supervisor"][0], signal.SIGKILL)
    wait_until(lambda: not locks.is_held(folder.supervisor_lock), what="the supervisor's end")
    done = mpstui("queue", "--json")
    assert "has a new one" in done.stderr
    (loose,) = json.loads(done.stdout)
    assert (loose["group"], loose["waiting"][0]["after"], loose["waiting"][0]["supervised"]) == (None, ["one"], True)
    go.touch()
    ok("wait", second, "--timeout", "30")


def test_a_failed_dependency_is_named(tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = start("one", until=go)
    second = start("two", "--after", first)
    wait_for_state(second, "queued")
    ok("kill", first)
    wait_for_state(second, "dependency_failed")
    assert told("show", second)["reason"].startswith(f"run {first} did not finish")
    assert told("queue") == []


def test_wrong_use_exits_with_2() -> None:
    for words, part in (
        (["nobody"], "no queue group 'nobody'"),
        (["pause"], "wrong number of words"),
        (["slots", "mps", "many"], "not a number"),
        (["slots", "mps", "0"], "1 to"),
        (["move", "nobody", "up"], "no run 'nobody'"),
        (["a", "b"], "does not know 'a'"),
    ):
        done = mpstui("queue", *words)
        assert (done.returncode, part in done.stderr) == (2, True), (words, done.stderr)
    assert ok("queue").startswith("no queue groups")
