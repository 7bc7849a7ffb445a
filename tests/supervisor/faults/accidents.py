"""Everything else that goes wrong: clients at once, recycled pids, torn files, stray processes."""

from __future__ import annotations

import os
import signal
import time

from mpstui.core.model.snapshot import State
from mpstui.wire import storage
from mpstui.wire.liveness import ProcessIdentity
from mpstui.wire.records import CauseRule, StopRule

from ..kit import alive, identity
from . import trainers
from .stage import Scenes, Stage, recycled


def kill_and_restart_together(stage: Stage) -> None:
    """Two clients press kill and restart in the same moment: it is killed, and the other one is told so."""
    stage.start_running()
    restart = stage.run.ask("restart", by="ada@here:1")
    kill = stage.run.ask("kill", by="bob@here:2")
    stage.expect_that(stage.run.wait_ack(kill).ok, "the kill was refused")
    answer = stage.run.wait_ack(restart)
    stage.expect_exit(action="kill", requested_by="bob@here:2")
    stage.expect(State.KILLED)
    stage.expect_that(not answer.ok and stage.run.status.attempt == 1, f"it was restarted: {answer.text}")


def restarts_together(stage: Stage) -> None:
    """Two clients press restart: one new attempt."""
    stage.start_running()
    answers = [stage.run.wait_ack(item) for item in [stage.run.ask("restart") for _ in range(2)]]
    stage.expect_that(sum(answer.ok for answer in answers) == 1, f"answers: {[answer.text for answer in answers]}")
    stage.expect_exit(action="restart")
    stage.expect_that(stage.run.status.attempt == 2, f"attempt {stage.run.status.attempt}")
    stage.expect(State.RUNNING)


def recycled_pid(stage: Stage) -> None:
    """The recorded pids belong to somebody else by now: nobody is adopted, paused or killed."""
    stage.start_running()
    stage.kill("both")
    stranger = list(recycled(stage.bystander))
    record = {**storage.to_json(stage.run.status), "trainer": stranger, "tree": [stranger], "phase": "stopping"}
    storage.write_json(stage.run.dir.status, record)
    for action in ("pause", "stop", "kill"):
        stage.run.ask(action)
    stage.start()
    stage.run.wait_unsupervised()
    stage.expect(State.STOPPED, State.LOST, State.KILLED)


def recycled_pid_in_the_tree(stage: Stage) -> None:
    """A member of the recorded tree is somebody else by now, while the trainer lives."""
    stage.start_running()
    stage.run.kill_supervisor()
    record = {**storage.to_json(stage.run.status), "tree": [list(recycled(stage.bystander))]}
    storage.write_json(stage.run.dir.status, record)
    stage.start()
    stage.run.wait_ack(stage.run.ask("pause"))
    stage.run.wait_ack(stage.run.ask("kill"))
    stage.expect_exit(action="kill")
    stage.expect(State.KILLED)


def recycled_pid_of_the_trainer(stage: Stage) -> None:
    """The trainer's number is somebody else's by now, its workers live, and a kill was being carried out."""
    stage.start_running()
    stage.kill("both")
    record = {**storage.to_json(stage.run.status), "trainer": list(recycled(stage.bystander)), "phase": "stopping"}
    storage.write_json(stage.run.dir.status, {**record, "request": "0-kill", "action": "kill", "asker": "ada@here:1"})
    stage.start()
    stage.expect_exit(unknown=True)
    stage.run.wait_unsupervised()


def stranger_in_the_record(stage: Stage) -> None:
    """The record is forged, or of a copy: a stranger's very number and start time are in it, and no mark is on it."""
    stage.start_running()
    stage.run.kill_supervisor()
    stranger = list(identity(stage.bystander.pid))
    record = {**storage.to_json(stage.run.status), "tree": [stranger]}
    storage.write_json(stage.run.dir.status, record)
    stage.start()
    stage.run.wait_ack(stage.run.ask("pause"))
    stage.run.wait_ack(stage.run.ask("kill"))
    stage.expect_exit(action="kill")
    storage.write_json(stage.run.dir.status, {**record, "trainer": stranger, "phase": "ended"})
    stage.start()
    stage.expect(State.KILLED)


def hydra(stage: Stage) -> None:
    """Processes that are born faster than they are looked up, for a while after the trainer too: all are killed."""
    stage.start_running()
    stage.run.wait_ack(stage.run.ask("kill"))
    stage.expect_exit(action="kill")
    stage.expect(State.KILLED)


def workers(stage: Stage) -> None:
    """Eight workers that ignore SIGTERM; the main process leaves at once."""
    stage.start_running()
    stage.run.wait_ack(stage.run.ask("stop"))
    stage.expect_exit(action="stop", signal=15)
    stage.expect(State.STOPPED)


def workers_outlive(stage: Stage) -> None:
    """The main process is killed from outside: the workers are named as survivors, and a kill finds them."""
    stage.start_running()
    stage.kill("trainer")
    record = stage.expect_exit(signal=9)
    stage.expect_that(record is None or len(record.survivors) == 8, f"survivors: {record and record.survivors}")
    stage.expect(State.KILLED)


def ranks(stage: Stage) -> None:
    """Ranks in sessions of their own ignore SIGTERM: killing the group alone would leave them."""
    stage.start_running()
    stage.run.wait_ack(stage.run.ask("kill"))
    stage.expect_exit(action="kill", signal=9)
    stage.expect(State.KILLED)


def ranks_orphaned(stage: Stage) -> None:
    """The launcher of the ranks is killed from outside, then a new supervisor is asked to kill the rest."""
    stage.start_running()
    stage.kill("both")
    stage.run.wait_unsupervised()


def grandchild(stage: Stage) -> None:
    """A daemon that closed everything and left the session is found all the same (Linux)."""
    stage.start_running()
    stage.run.wait_ack(stage.run.ask("kill"))
    stage.expect_exit(action="kill")
    stage.expect(State.KILLED)


def ignores_term(stage: Stage) -> None:
    """A trainer that ignores SIGTERM is killed when its grace is over."""
    stage.start_running()
    stage.run.wait_ack(stage.run.ask("stop"))
    stage.expect_exit(action="stop", signal=9)
    stage.expect_that(stage.lines("terms") == 1, f"asked {stage.lines('terms')} times")
    stage.expect(State.STOPPED)


def stopped_then_killed(stage: Stage) -> None:
    """Frozen from outside by SIGSTOP, then killed by request."""
    stage.start_running()
    trainer = stage.run.status.trainer
    assert trainer is not None
    os.kill(trainer[0], signal.SIGSTOP)
    stage.run.wait_ack(stage.run.ask("kill"))
    stage.expect_exit(action="kill", signal=9)
    stage.expect(State.KILLED)


def paused_then_stopped(stage: Stage) -> None:
    """Paused by us, then asked to stop: it is continued first and may answer."""
    stage.start_running()
    stage.run.wait_ack(stage.run.ask("pause"))
    stage.run.wait_ack(stage.run.ask("stop"))
    stage.expect_exit(action="stop", code=0)
    stage.expect(State.STOPPED)


def terminated_from_outside(stage: Stage) -> None:
    """SIGTERM to the trainer from somebody else is not taken for ours."""
    stage.start_running()
    trainer = stage.run.status.trainer
    assert trainer is not None
    os.kill(trainer[0], signal.SIGTERM)
    record = stage.expect_exit(signal=15, requested_by=None, action=None)
    stage.expect_that(record is None or "sender" in record.evidence, "the sender is not named")
    stage.expect(State.KILLED)


def clock_set_back(stage: Stage) -> None:
    """The wall clock jumps back an hour in the middle of the run and of its stop."""
    stage.start("--clock-back", "3600")
    stage.run.wait_output("up")
    time.sleep(2.2)
    begun = time.monotonic()
    stage.run.wait_ack(stage.run.ask("stop"))
    stage.expect_that(time.monotonic() - begun < 8.0, "the stop took as long as the clock was wrong")
    stage.expect_exit(action="stop", signal=9)
    stage.expect(State.STOPPED)


def half_written_status(stage: Stage) -> None:
    """status.json is half a file: the trainer is adopted through its lock, the half is kept."""
    stage.start_running()
    stage.run.kill_supervisor()
    whole = stage.run.dir.status.read_bytes()
    stage.run.dir.status.write_bytes(whole[: len(whole) // 2])
    stage.expect(State.UNSUPERVISED, State.UNREADABLE)
    stage.start()
    stage.run.wait_phase("running")
    kept = [path for path in stage.run.dir.path.iterdir() if "unreadable" in path.name]
    stage.expect_that(len(kept) == 1 and kept[0].stat().st_size == len(whole) // 2, "the half was not kept")
    stage.run.wait_ack(stage.run.ask("stop"))
    stage.expect_exit(action="stop", unknown=True)
    stage.expect(State.STOPPED)


def half_written_requests(stage: Stage) -> None:
    """A request that is half a file is passed over; the next one is carried out."""
    stage.start_running()
    (stage.run.dir.requests / "0000000000000-torn.json").write_text('{"id": "0000000000000-torn", "act')
    (stage.run.dir.requests / "0000000000001-list.json").write_text("[]")
    stage.run.wait_ack(stage.run.ask("kill"))
    stage.expect_exit(action="kill")
    stage.expect(State.KILLED)


def half_written_spec(stage: Stage) -> None:
    """spec.json cannot be read: nothing is started, nothing is overwritten."""
    whole = stage.run.dir.spec.read_bytes()
    stage.run.dir.spec.write_bytes(whole[:100])
    code = stage.start()
    stage.expect_that(code == 1, f"the supervisor started with {code}")
    stage.expect(State.UNREADABLE)
    stage.expect_that(stage.run.dir.spec.read_bytes() == whole[:100], "the half was overwritten")
    stage.run.dir.spec.write_bytes(whole)
    stage.start_running()


def chaos(stage: Stage) -> None:
    """Supervisors are killed and started and requests made at random moments: no attempt ever starts twice."""
    stage.start()
    for _ in range(12):
        time.sleep(stage.chance.random() * 0.25)
        move = stage.chance.choice(["murder", "murder", "start", "start", "pause", "continue", "restart", "stop"])
        if move == "murder":
            _murder(stage)
        elif move == "start":
            stage.start()
        else:
            stage.run.ask(move, attempt=0)
    stage.start()
    started, attempts = stage.lines("starts"), len(stage.run.dir.attempt_numbers())
    stage.expect_that(started <= attempts, f"{started} starts in {attempts} attempts")


def _murder(stage: Stage) -> None:
    supervisor = stage.run.status.supervisor if stage.run.dir.status.exists() else None
    if supervisor is not None and alive(ProcessIdentity(*supervisor)):
        os.kill(supervisor[0], signal.SIGKILL)


def noise(stage: Stage) -> None:
    """Output that is no text, one line of 100 MB, escape sequences without an end: the cause is found all the same."""
    stage.start()
    stage.expect_exit(code=7, cause="mps_oom", seconds=40.0)
    stage.expect(State.FAILED)
    stage.run.dir.attempt(1).output.unlink()


OOM = [CauseRule("mps_oom", patterns=["MPS backend out of memory"])]
SHORT = StopRule(grace_seconds=1.0)
SCENES: Scenes = {
    kill_and_restart_together: {"trainer": trainers.STUBBORN},
    restarts_together: {"trainer": trainers.SLOW_TO_STOP},
    recycled_pid: {"trainer": trainers.WAITS},
    recycled_pid_in_the_tree: {"trainer": trainers.WAITS},
    recycled_pid_of_the_trainer: {"trainer": trainers.WORKERS},
    stranger_in_the_record: {"trainer": trainers.WAITS},
    hydra: {"trainer": trainers.HYDRA},
    workers: {"trainer": trainers.WORKERS},
    workers_outlive: {"trainer": trainers.WORKERS},
    ranks: {"trainer": trainers.RANKS},
    ranks_orphaned: {"trainer": trainers.RANKS},
    grandchild: {"trainer": trainers.GRANDCHILD},
    ignores_term: {"trainer": trainers.STUBBORN, "stop": SHORT},
    stopped_then_killed: {"trainer": trainers.STUBBORN},
    paused_then_stopped: {"trainer": trainers.SLOW_TO_STOP},
    terminated_from_outside: {"trainer": trainers.WAITS},
    clock_set_back: {"trainer": trainers.STUBBORN, "stop": SHORT},
    half_written_status: {"trainer": trainers.WAITS},
    half_written_requests: {"trainer": trainers.WAITS},
    half_written_spec: {"trainer": trainers.WAITS},
    chaos: {"trainer": trainers.SLOW_TO_STOP},
    noise: {"trainer": trainers.NOISE, "causes": OOM},
}
