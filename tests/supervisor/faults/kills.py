"""kill -9 of the supervisor, the trainer or both, in every phase."""

from __future__ import annotations

import time

from mpstui.core.model.snapshot import State
from mpstui.wire.records import StopRule

from . import trainers
from .stage import Scenes, Stage


def before_spawn(stage: Stage) -> None:
    """The supervisor dies before there is a trainer: the next one starts it, once."""
    stage.start("--at", "before_spawn")
    stage.reached("before_spawn")
    stage.kill("supervisor")
    stage.expect(State.LOST, State.STARTING)
    stage.start()
    stage.finish_trainer()
    stage.expect_exit(code=7)
    stage.expect(State.FAILED)
    stage.expect_that(stage.lines("starts") == 1, f"started {stage.lines('starts')} times")


def in_the_child(stage: Stage) -> None:
    """The supervisor dies while the new process has not written its name down yet: no trainer goes unnamed."""
    stage.start("--at", "in_child")
    stage.reached("in_child")
    stage.kill("supervisor", wait=False)  # until its exec the new process is a copy of the supervisor, locks and all
    stage.go()
    stage.run.wait_unsupervised()
    stage.run.wait_output("up")
    stage.expect(State.UNSUPERVISED)
    stage.expect_that(stage.run.status.trainer is not None, "a trainer runs that no record names")
    _adopt_and_finish(stage)


def after_spawn(stage: Stage) -> None:
    """The supervisor dies after the trainer came up, before it wrote "running"."""
    stage.start("--at", "after_spawn")
    stage.reached("after_spawn")
    stage.run.wait_output("up")
    stage.kill("supervisor")
    stage.expect(State.UNSUPERVISED)
    _adopt_and_finish(stage)


def after_spawn_trainer(stage: Stage) -> None:
    """The trainer dies before its supervisor wrote "running"."""
    stage.start("--at", "after_spawn")
    stage.reached("after_spawn")
    stage.run.wait_output("up")
    stage.kill("trainer")
    stage.go()
    stage.expect_exit(signal=9, requested_by=None)
    stage.expect(State.KILLED)


def after_spawn_both(stage: Stage) -> None:
    """Both die there."""
    stage.start("--at", "after_spawn")
    stage.reached("after_spawn")
    stage.run.wait_output("up")
    stage.kill("both")
    stage.expect(State.LOST)


def running_supervisor(stage: Stage) -> None:
    """The supervisor of a running trainer dies."""
    stage.start_running()
    stage.kill("supervisor")
    stage.expect(State.UNSUPERVISED)
    _adopt_and_finish(stage)


def running_trainer(stage: Stage) -> None:
    """A running trainer dies: its signal is on record, and nobody of ours is blamed."""
    stage.start_running()
    begun = time.monotonic()
    stage.kill("trainer")
    stage.expect(State.KILLED)
    stage.expect_that(time.monotonic() - begun < SEEN_SECONDS, f"told after {time.monotonic() - begun:.1f} s")
    stage.expect_exit(signal=9, requested_by=None, action=None)


def running_both(stage: Stage) -> None:
    """Both die: lost, and never taken for a success, by a later supervisor neither."""
    stage.start_running()
    stage.kill("both")
    stage.expect(State.LOST)
    stage.start()
    stage.run.wait_unsupervised()
    stage.expect(State.LOST)


def stopping_supervisor(stage: Stage) -> None:
    """The supervisor dies in the middle of a stop: the next one goes on, and the trainer is asked once."""
    stage.start_running()
    stage.run.ask("stop")
    stage.asked()
    stage.kill("supervisor")
    stage.start()
    stage.expect_exit(action="stop", unknown=True)
    stage.expect(State.STOPPED)
    stage.expect_that(stage.lines("terms") == 1, f"asked {stage.lines('terms')} times")


def stopping_trainer(stage: Stage) -> None:
    """The trainer is killed from outside while it stops: it was asked to end, and its signal is on record."""
    stage.start_running()
    stage.run.ask("stop")
    stage.asked()
    stage.kill("trainer")
    stage.expect_exit(action="stop", signal=9)
    stage.expect(State.STOPPED)


def stopping_both(stage: Stage) -> None:
    """Both die in the middle of a stop: the next supervisor closes the record."""
    stage.start_running()
    stage.run.ask("stop")
    stage.asked()
    stage.kill("both")
    stage.expect(State.LOST)
    stage.start()
    stage.expect(State.STOPPED)


def saving(stage: Stage) -> None:
    """A stop during which a checkpoint grows takes longer than the grace, and the checkpoint is whole."""
    stage.start_running()
    stage.run.ask("stop")
    stage.expect_exit(action="stop", code=0)
    stage.expect_that(stage.lines("saved") == 1, "the checkpoint was torn")
    stage.expect(State.STOPPED)


def saving_supervisor(stage: Stage) -> None:
    """The supervisor dies while the trainer saves."""
    stage.start_running()
    stage.run.ask("stop")
    stage.asked()
    stage.kill("supervisor")
    stage.start()
    stage.expect_exit(action="stop", unknown=True)
    stage.expect_that(stage.lines("saved") == 1, "the checkpoint was torn")
    stage.expect_that(stage.lines("terms") == 1, f"asked {stage.lines('terms')} times")


def saving_trainer(stage: Stage) -> None:
    """The trainer dies while it saves."""
    stage.start_running()
    stage.run.ask("stop")
    stage.asked()
    stage.kill("trainer")
    stage.expect_exit(action="stop", signal=9)
    stage.expect(State.STOPPED)


def saving_both(stage: Stage) -> None:
    """Both die while the trainer saves: the record is closed, and what was half written is no checkpoint."""
    stage.start_running()
    stage.run.ask("stop")
    stage.asked()
    stage.kill("both")
    stage.expect(State.LOST)
    stage.start()
    stage.expect(State.STOPPED)
    restart = stage.run.ask("restart")
    stage.start()
    answer = stage.run.wait_ack(restart)
    stage.expect_that("there is no complete checkpoint yet" in answer.text, f"taken from a torn one: {answer.text}")


def exit_being_written(stage: Stage) -> None:
    """The supervisor dies while it writes the exit record: there is none, or a whole one."""
    stage.start("--at", "exit_write")
    stage.finish_trainer()
    stage.reached("exit_write")
    stage.kill("supervisor")
    stage.expect(State.LOST)
    stage.start()
    stage.run.wait_unsupervised()
    stage.expect(State.LOST)


def exit_written(stage: Stage) -> None:
    """The supervisor dies right after the exit record: it stands."""
    stage.start("--at", "exit_written")
    stage.finish_trainer()
    stage.reached("exit_written")
    stage.kill("supervisor")
    stage.expect_exit(code=7)
    stage.expect(State.FAILED)
    stage.start()
    stage.run.wait_unsupervised()
    stage.expect(State.FAILED)


def between_attempts(stage: Stage) -> None:
    """The supervisor dies in the middle of a restart, with nothing running: never "stopped", and started once."""
    stage.start_running("--at", "between_attempts")
    request = stage.run.ask("restart")
    stage.reached("between_attempts")
    stage.expect(State.STARTING)
    stage.kill("supervisor")
    stage.expect(State.STOPPED)
    stage.start()
    stage.expect_that(stage.run.wait_ack(request).ok, "the restart was lost")
    stage.run.wait_output("up", attempt=2)
    stage.expect(State.RUNNING)
    stage.expect_that(stage.lines("starts") == 2, f"started {stage.lines('starts')} times")


def _adopt_and_finish(stage: Stage) -> None:
    stage.start()
    stage.run.wait_phase("running")
    stage.expect(State.RUNNING)
    stage.finish_trainer()
    stage.expect_exit(unknown=True, code=None)
    stage.expect(State.LOST)
    stage.expect_that(stage.lines("starts") == 1, f"started {stage.lines('starts')} times")


SEEN_SECONDS = 1.5
"""A trainer's death is on the screen within two seconds, which looks four times a second itself."""
QUICK = StopRule(grace_seconds=1.0, saving_cap_seconds=20.0)
SCENES: Scenes = {
    before_spawn: {"trainer": trainers.WAITS},
    in_the_child: {"trainer": trainers.WAITS},
    after_spawn: {"trainer": trainers.WAITS},
    after_spawn_trainer: {"trainer": trainers.WAITS},
    after_spawn_both: {"trainer": trainers.WAITS},
    running_supervisor: {"trainer": trainers.WAITS_WELL},
    running_trainer: {"trainer": trainers.WAITS},
    running_both: {"trainer": trainers.WAITS},
    stopping_supervisor: {"trainer": trainers.SLOW_TO_STOP},
    stopping_trainer: {"trainer": trainers.SLOW_TO_STOP},
    stopping_both: {"trainer": trainers.SLOW_TO_STOP},
    saving_supervisor: {"trainer": trainers.SAVES, "stop": QUICK},
    saving_trainer: {"trainer": trainers.SAVES, "stop": QUICK},
    saving_both: {"trainer": trainers.SAVES, "stop": QUICK},
    exit_being_written: {"trainer": trainers.WAITS},
    exit_written: {"trainer": trainers.WAITS},
}
"""Who dies in which phase. These are drawn most often: in a thousand runs each of them more than fifty times."""
BESIDE: Scenes = {
    saving: {"trainer": trainers.SAVES, "stop": QUICK},
    between_attempts: {"trainer": trainers.WAITS},
}
