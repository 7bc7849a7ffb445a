"""Rules that an accident has to meet at the right moment: of the queue, of restarts, of answers, and of the disk."""

from __future__ import annotations

import itertools
import os
import signal
import time

from mpstui.core.model.snapshot import State
from mpstui.wire import queues
from mpstui.wire.liveness import system_process_table
from mpstui.wire.records import CauseRule, QueueRule, RestartRule

from ..after_power_cut import faults_in
from ..kit import Run, alive, decide, python, wait_for
from ..power_cut import Disk
from . import trainers
from .stage import WRAPPED, Scenes, Stage

GROUP = QueueRule(group="mps")
WITHOUT_SUBREAPER = ("--without-subreaper",)


def another(stage: Stage, queue: QueueRule) -> Run:
    """A second run in the same home, supervised by the same product, broken in the same way."""
    run = Run(stage.home, argv=python("print('up', flush=True)"), name="other", queue=queue)
    run.among_many = stage.run.among_many
    broken = ("--sabotage", stage.sabotage) if stage.sabotage else ()
    run.start(WRAPPED, *broken)
    return run


def after_a_lost_run(stage: Stage) -> None:
    """A run is lost: what was to start when it is done does not, and says so."""
    stage.start_running()
    stage.kill("both")
    stage.expect(State.LOST)
    waiting = another(stage, queue=QueueRule(None, [{"run": stage.run.dir.run, "when": "ok"}]))
    record = waiting.wait_exit()
    stage.expect_that(record.cause == "dependency_failed", f"it started after a lost run: {record}")


def slot_of_a_dead_supervisor(stage: Stage) -> None:
    """The supervisor of a run in a queue dies: its trainer keeps the slot, and its place in the line is left."""
    stage.start_running()
    files = queues.files_of(stage.run.dir, "mps")
    stage.expect_that(queues.read(files).order == [], f"still in the line: {queues.read(files).order}")
    stage.kill("supervisor")
    waiting = another(stage, queue=GROUP)
    try:
        wait_for(lambda: waiting.status.waiting_for == "slot" or waiting.exit(), "the second to wait")
        time.sleep(2.2)  # two looks of its
        stage.expect_that(waiting.exit() is None, "two runs have the one slot")
        stage.start()
        stage.finish_trainer()
        waiting.wait_exit()
    finally:
        waiting.clean_up()


def slot_while_it_leaves(stage: Stage) -> None:
    """A restart comes in the moment its supervisor leaves: the same process takes the slot again."""
    stage.start("--at", "leaving")
    stage.run.wait_output("up")
    stage.finish_trainer()
    stage.reached("leaving")
    stage.run.ask("restart", source="scratch")
    stage.go()
    stage.expect_exit(2)


def child_that_slipped_away(stage: Stage) -> None:
    """The trainer ends just after it forked one more, which closed everything: it is named as a survivor."""
    stage.start(*WITHOUT_SUBREAPER)
    record = stage.expect_exit(code=7)
    stage.expect_that(record is None or len(record.survivors) == 1, f"survivors: {record and record.survivors}")


def daemon_without_a_trace(stage: Stage) -> None:
    """A daemon that nothing ties to the run but that its parent was of it: a kill ends it, and no zombie is left."""
    stage.start_running()
    told = stage.home / "daemon"
    daemon = int(wait_for(lambda: told.read_text() if told.exists() else None, "the daemon"))
    stage.run.wait_ack(stage.run.ask("kill"))
    found = system_process_table().find(daemon)
    stage.expect_that(found is None or not found.alive, "a daemon outlived the kill")
    if found is not None and found.alive:
        os.kill(daemon, signal.SIGKILL)


def power_cut(stage: Stage) -> None:
    """The machine loses its power at any moment of a run: nothing that was acknowledged is lost."""
    trace = stage.home.with_name("trace")
    stage.start("--record", str(trace))
    stage.run.wait_output("up")
    stage.run.wait_ack(stage.run.ask("restart", source="scratch"))
    stage.run.wait_output("up", attempt=2)
    stage.run.wait_ack(stage.run.ask("stop", attempt=2))
    stage.run.wait_unsupervised()
    faults = faults_in(Disk(trace), seed=stage.chance.randrange(1 << 30), samples=30)
    found = list(itertools.islice(faults, 3))
    stage.expect_that(not found, f"after a power cut: {found}")


def answers_follow_acts(stage: Stage) -> None:
    """Paused is said of a trainer that stands still, ended of one that is gone."""
    stage.start_running()
    trainer = stage.run.status.trainer
    assert trainer is not None
    stage.run.wait_ack(stage.run.ask("pause"))
    found = system_process_table().find(trainer.pid)
    stage.expect_that(found is not None and found.state == "T", f"told of as paused: {found}")
    stage.run.wait_ack(stage.run.ask("stop"))
    stage.expect_that(not alive(trainer), "told of as ended while it lived")
    stage.expect_that(stage.run.exit() is not None, "told of as ended before that was on record")


def shutdown_in_the_queue(stage: Stage) -> None:
    """SIGTERM to the supervisor of a run that waits: the run waits on."""
    decide(stage.run, "mps", paused=True)
    stage.start()
    supervisor = stage.run.wait_phase("queued").supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGTERM)
    stage.run.wait_unsupervised()
    stage.expect(State.QUEUED)
    decide(stage.run, "mps", paused=False)
    stage.start()
    stage.finish_trainer()
    stage.expect_exit(code=7)


def crashes_twice(stage: Stage) -> None:
    """A crash that its profile restarts after: not before its time, by a next supervisor neither; then never again."""
    stage.start()
    first = stage.expect_exit(cause="mps_oom")
    due = stage.run.wait_phase("backing_off").next_start or 0.0
    stage.kill("supervisor")
    stage.start()
    stage.expect_exit(2)
    second = stage.run.exit(2)
    begun = second.started if second and second.started else 0.0
    stage.expect_that(first is None or due - first.ended > DELAY / 2, "it was to start at once")
    stage.expect_that(begun >= due - 0.1, f"started {due - begun:.1f} s too early")
    stage.run.wait_unsupervised()
    stage.expect_that(stage.run.dir.attempt_numbers() == [1, 2], "it crashed at the same step and was started again")


DELAY = 3.0
OOM = {
    "causes": [CauseRule("mps_oom", patterns=["MPS backend out of memory"])],
    "restart": RestartRule(on=["mps_oom"], delays_seconds=[DELAY]),
}
SCENES: Scenes = {
    after_a_lost_run: {"trainer": trainers.WAITS},
    slot_of_a_dead_supervisor: {"trainer": trainers.WAITS, "queue": GROUP},
    slot_while_it_leaves: {"trainer": trainers.WAITS, "queue": GROUP},
    child_that_slipped_away: {"trainer": trainers.SLIPS},
    daemon_without_a_trace: {"trainer": trainers.DAEMON},
    power_cut: {"trainer": trainers.SLOW_TO_STOP},
    answers_follow_acts: {"trainer": trainers.SLOW_TO_STOP},
    shutdown_in_the_queue: {"trainer": trainers.WAITS, "queue": GROUP},
    crashes_twice: {"trainer": trainers.CRASHES, **OOM},
}
