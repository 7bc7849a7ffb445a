"""Room on the disk: when it is said, when a trainer is held and let go, and who may start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mpstui.supervisor.disk_space import POLL_SECONDS, DiskWatch, Sign
from mpstui.supervisor.machine import Clock
from mpstui.wire.records import CauseRule, QueueRule, RestartRule

from .faults.stage import WRAPPED
from .kit import Run, python, wait_for

MakeRun = Callable[..., Run]
MIB, GIB = 1 << 20, 1 << 30
SLEEPER = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.05)"


@pytest.mark.parametrize(
    ("amounts", "signs"),
    [
        ([10 * GIB, 5 * MIB, 4 * MIB, 100 * MIB, GIB], [Sign.RECOVERED, Sign.FULL, None, None, Sign.RECOVERED]),
        ([10 * GIB, 900 * MIB, 200 * MIB, 100 * MIB], [Sign.RECOVERED, Sign.LOW, None, None]),
        ([900 * MIB, 900 * MIB, 800 * MIB], [Sign.RECOVERED, Sign.LOW, None]),
        ([200 * MIB, 100 * MIB, 63 * MIB], [Sign.LOW, None, Sign.FULL]),
        ([2 * MIB, 1 * MIB, 2 * MIB], [Sign.LOW, None, None]),
        ([GIB, 5 * MIB, GIB, 5 * MIB], [Sign.RECOVERED, Sign.FULL, Sign.RECOVERED, Sign.FULL]),
    ],
    ids=["fills and empties", "gets low", "was low", "low from the start", "a small disk is never full", "fills twice"],
)
def test_what_a_look_says(amounts: list[int], signs: list[Sign | None]) -> None:
    now, left = [0.0], list(amounts)
    watch = DiskWatch(Path("/"), Clock(monotonic=lambda: now[0]), lambda folder: left.pop(0))
    found = []
    for _ in amounts:
        now[0] += POLL_SECONDS
        found.append(watch.poll())
        assert watch.poll() is None  # too soon to look again
    assert found == signs


def test_a_disk_that_does_not_say_is_not_full() -> None:
    assert DiskWatch(Path("/"), Clock(monotonic=lambda: 9.0), lambda folder: None).poll() is None


def test_a_person_who_lets_a_held_trainer_go_is_obeyed(make_run: MakeRun) -> None:
    run = make_run(SLEEPER)
    free = run.home / "free"
    free.write_text(str(GIB))
    run.start(WRAPPED, "--free", str(free))
    run.wait_output("up")
    run.look_twice()
    free.write_text(str(MIB))
    wait_for(lambda: run.status.held_for == "disk")
    assert "1 MiB left" in str(run.status.message)
    assert run.wait_ack(run.ask("continue")).ok
    run.look_twice()
    told = run.status
    assert (told.paused, told.held_for, told.message) == (False, None, None)
    assert run.wait_ack(run.ask("pause")).ok
    free.write_text(str(GIB))
    run.look_twice()
    assert run.status.paused  # a person paused it: room on the disk does not end that
    run.wait_ack(run.ask("kill"))


def test_a_queued_run_waits_for_room(make_run: MakeRun) -> None:
    run = make_run("print('up')", queue=QueueRule(group="mps"), min_free_bytes=GIB)
    free = run.home / "free"
    free.write_text(str(MIB))
    run.start(WRAPPED, "--free", str(free))
    wait_for(lambda: run.dir.status.exists() and run.status.waiting_for == "disk")
    assert run.status.phase == "queued"
    assert run.status.message == "waits for disk space: 1 MiB are free, min_free_disk is 1024 MiB"
    free.write_text(str(2 * GIB))
    assert run.wait_exit().code == 0


def test_a_restart_by_rule_waits_for_room_and_stays_due(make_run: MakeRun) -> None:
    code = "import os\nprint('boom')\nopen(os.environ['MPSTUI_RUN_DIR'] + '/checkpoints/a.pt', 'w').write('x')\nexit(3)"
    run = make_run(
        argv=python(code.replace("exit(3)", "raise SystemExit(3)")),
        causes=[CauseRule("boom", patterns=["boom"])],
        restart=RestartRule(on=["boom"], delays_seconds=[0.1]),
        min_free_bytes=GIB,
    )
    run.dir.checkpoints.mkdir()
    free = run.home / "free"
    free.write_text(str(MIB))
    run.start(WRAPPED, "--free", str(free))
    wait_for(lambda: run.dir.status.exists() and run.status.waiting_for == "disk")
    run.kill_supervisor()
    run.start(WRAPPED, "--free", str(free))
    wait_for(lambda: run.status.waiting_for == "disk" and run.status.phase == "backing_off")
    free.write_text(str(2 * GIB))
    assert run.wait_exit(2).code == 3
