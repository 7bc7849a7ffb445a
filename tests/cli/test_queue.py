"""`mpstui queue` on real queued runs."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from mpstui.cli import queue
from mpstui.core.runs.queueing import Group, Member
from mpstui.wire import liveness
from mpstui.wire.rundir import RunDir
from tests.cli.programs import as_json, mpstui, ok, run_folder, told, wait_for_state
from tests.waiting import wait_until

WAITS = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)"


def start(name: str, *words: str, until: Path | None = None) -> str:
    program = ["-c", WAITS, str(until)] if until else ["-c", "print('up')"]
    return ok("run", "--name", name, *words, "--", sys.executable, *program).strip()


def kill_supervisor(run: str) -> None:
    folder = RunDir(run_folder(run))
    os.kill(json.loads(folder.status.read_text())["supervisor"][0], signal.SIGKILL)
    wait_until(lambda: not liveness.is_held(folder.supervisor_lock), what="the supervisor's end")


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
    assert "1 running continues" in ok("queue", "pause", "mps")
    assert group()["paused"] is True
    assert "(paused)" in ok("queue")
    assert as_json("queue", "slots", "mps", "2") == {"group": "mps", "slots": 2}
    assert ok("queue", "resume", "mps").startswith("mps: resumed")
    for run in (second, third):
        ok("wait", run, "--timeout", "90")
    go.touch()
    ok("wait", first, "--timeout", "90")


def test_a_queued_run_whose_supervisor_was_killed_is_revived_by_a_look(tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = start("one", until=go)
    second = start("two", "--after", first)
    wait_for_state(second, "queued")
    kill_supervisor(second)
    done = mpstui("queue", "--json")
    assert "has a new one" in done.stderr
    (loose,) = json.loads(done.stdout)
    assert (loose["group"], loose["waiting"][0]["after"], loose["waiting"][0]["supervised"]) == (None, ["one"], True)
    go.touch()
    ok("wait", second, "--timeout", "90")


def test_every_command_that_looks_revives_what_waits(tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = start("one", until=go)
    second = start("two", "--after", first)
    wait_for_state(second, "queued")
    for words in (["ps"], ["show", first]):
        kill_supervisor(second)
        done = mpstui(*words)
        assert (done.returncode, "has a new one" in done.stderr) == (0, True), (words, done.stderr)
    kill_supervisor(second)
    go.touch()
    assert "finished" in ok("wait", second, "--timeout", "90")


def test_a_restart_that_waits_in_a_queue_is_revived_too(tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = start("one", "--queue", "mps")
    ok("wait", first, "--timeout", "90")
    second = start("two", "--queue", "mps", until=go)
    wait_for_state(second, "running")
    ok("restart", first, "--no-wait")
    wait_for_state(first, "queued")
    kill_supervisor(first)
    assert "has a new one" in mpstui("ps").stderr
    assert [item["run"] for item in group()["waiting"]] == [first]
    go.touch()
    wait_until(lambda: told("show", first)["attempt"] == 2, what="the second attempt")
    ok("wait", first, "--timeout", "90")


def test_a_restart_that_was_asked_for_a_moment_ago_is_waited_for_and_can_be_stopped(tmp_path: Path) -> None:
    run = start("one")
    ok("wait", run, "--timeout", "90")
    folder = RunDir(run_folder(run))
    wait_until(lambda: not liveness.is_held(folder.supervisor_lock), what="the supervisor's end")
    busy = liveness.acquire(folder.supervisor_lock)
    assert busy is not None
    ok("restart", run, "--no-wait")
    done = mpstui("wait", run, "--timeout", "1")
    assert (done.returncode, "has not ended" in done.stderr) == (1, True), done
    ok("stop", run, "--no-wait")
    liveness.release(busy)
    ok("kill", run)
    ok("wait", run, "--timeout", "90")
    assert told("show", run)["attempt"] == 1


def test_a_run_started_by_a_run_is_not_part_of_it(tmp_path: Path) -> None:
    launcher = tmp_path / "launcher.py"
    launcher.write_text(
        "import subprocess, sys, time\n"
        "words = [sys.executable, '-m', 'mpstui', 'run', '--name', 'inner', '--', sys.executable, '-c', sys.argv[1]]\n"
        "subprocess.run([*words, sys.argv[2]], check=True)\ntime.sleep(60)\n"
    )
    go = tmp_path / "go"
    outer = ok("run", "--name", "outer", "--", sys.executable, str(launcher), WAITS, str(go)).strip()
    wait_until(lambda: any(row["name"] == "inner" for row in told("ps")), what="the inner run")
    (inner,) = [row["run"] for row in told("ps") if row["name"] == "inner"]
    wait_for_state(inner, "running")
    ok("kill", outer)
    go.touch()
    assert "finished" in ok("wait", inner, "--timeout", "90")


def test_a_failed_dependency_is_named(tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = start("one", until=go)
    second = start("two", "--after", first)
    wait_for_state(second, "queued")
    ok("kill", first)
    wait_for_state(second, "dependency_failed")
    assert told("show", second)["reason"].startswith(f"never started: run {first} did not finish")
    state = next(line for line in ok("show", second).splitlines() if line.startswith("state"))
    assert state.startswith(f"state     dependency failed: never started: run {first} did not finish")
    assert f"dependency failed (never started: run {first} did not finish" in mpstui("wait", second).stdout
    assert told("queue") == []


def test_wrong_use_exits_with_2() -> None:
    for words, part in (
        (["nobody"], "no queue group 'nobody'"),
        (["pause"], "queue pause: GROUP is missing\nhint: such as `mpstui queue pause mps`;"),
        (
            ["resume", "mps", "now"],
            "resume: 'now' is too much; it takes only GROUP\nhint: such as `mpstui queue resume",
        ),
        (["slots"], "GROUP and N are missing\nhint: such as `mpstui queue slots mps 2`"),
        (["slots", "mps"], "N is missing"),
        (["move", "run"], "up, down, first or last is missing\nhint: such as `mpstui queue move RUN first`"),
        (["slots", "mps", "many"], "not a number"),
        (["slots", "mps", "0"], "1 to"),
        (["move", "nobody", "up"], "no run 'nobody'"),
        (["a", "b"], "does not know 'a'"),
    ):
        done = mpstui("queue", *words)
        assert (done.returncode, part in done.stderr) == (2, True), (words, done.stderr)
    assert ok("queue").startswith("no queue groups")


def test_a_queue_without_a_name_is_that_of_the_accelerator(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('command = ["{python}", "-c", "1"]\ndevice_args.cpu = ["--cpu"]\n')
    run = ok("launch", str(tmp_path / "p.toml"), "--device", "cpu", "--queue").strip()
    spec = json.loads((run_folder(run) / "spec.json").read_text())
    assert (spec["queue"]["group"], spec["choice"]["queue"]["group"]) == ("cpu", "auto")
    ok("wait", run, "--timeout", "90")
    # Its supervisor still has to leave.
    wait_until(lambda: ok("queue", "cpu") == "cpu: 1 run at a time\n  nothing waits\n", what="an empty group")
    assert as_json("queue", "slots", "cpu", "3") == {"group": "cpu", "slots": 3}
    assert ok("queue", "slots", "cpu", "auto") == "cpu: 1 run at a time\n"
    ok("queue", "pause", "cpu")
    paused = ok("queue").splitlines()[0]  # nobody waits whose row on the screen could resume it
    assert paused == "cpu: 1 run at a time, paused (`mpstui queue resume cpu` resumes it)"


@pytest.mark.parametrize(
    ("slots", "devices", "by_hand", "words"),
    [
        (4, "0123", False, "one run at a time on each of 4 GPUs"),
        (1, "0", False, "1 run at a time, on one GPU"),
        (2, "0123", True, "2 runs at a time"),
        (6, "0123", True, "6 runs at a time, which share 4 GPUs"),
        (2, "0", True, "2 runs at a time, which share 1 GPU"),
    ],
)
def test_a_group_says_how_many_run_on_what(
    slots: int, devices: str, by_hand: bool, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    running = (Member("20261121-1-a", "a", True, gpus=("2",)), Member("20261121-1-b", "b", True, gpus=("0", "1")))
    starting = Member("20261121-1-c", "c", True, gpus=None)
    found = Group("cuda", slots, False, (*running, starting), (), by_hand, tuple(devices))
    queue.print_group(found)
    assert capsys.readouterr().out.splitlines() == [
        f"cuda: {words}",
        "  runs     20261121-1-a  a  GPU 2",
        "  runs     20261121-1-b  b  GPUs 0, 1",
        "  runs     20261121-1-c  c  starts",
    ]
    assert [item["gpus"] for item in queue.group_json(found)["running"]] == [["2"], ["0", "1"], None]
