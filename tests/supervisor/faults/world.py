"""What happens around a run: terminals die, homes move, disks are slow, machines restart, many people ask at once."""

from __future__ import annotations

import functools
import os
import pty
import select
import shutil
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from mpstui.core.launching.actions import SupervisorRecovery
from mpstui.core.launching.supervisors import start_supervisor
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import State
from mpstui.wire import rundir, storage
from mpstui.wire.records import QueueRule, Request

from ..kit import SUPERVISOR, Run, act, alive, crowded, filled, identity, python, wait_for
from . import trainers
from .stage import Scenes, Stage

LATE_SECONDS = 2.0
SOON_SECONDS = 4.0
"""An answer comes within two seconds on a busy machine; a stop waits for its trainer besides."""


def told_soon(stage: Stage) -> None:
    """Answers and an end are told within two seconds, on a busy machine too (``--load``)."""
    stage.start_running()
    for action in ("pause", "continue") * 3:
        begun = time.monotonic()
        stage.run.wait_ack(stage.run.ask(action))
        stage.expect_soon(begun, LATE_SECONDS)
    begun = time.monotonic()
    stage.kill("trainer")
    stage.expect(State.KILLED)
    stage.expect_soon(begun, LATE_SECONDS)


def ends_at_once(stage: Stage) -> None:
    """The program ends with its first instruction: told two seconds later at the latest, with its exit code."""
    stage.start()
    stage.expect(State.FAILED)
    ended = float((stage.home / "ended").read_text())
    stage.expect_that(time.time() - ended < LATE_SECONDS, f"told {time.time() - ended:.1f} s after the end")
    stage.expect_exit(code=7)


def starts_together(stage: Stage) -> None:
    """Six supervisors are started at once: one of them starts the program, once."""
    with ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(lambda _: stage.start(), range(6)))
    stage.run.wait_output("up")
    stage.expect_that(set(codes) <= {0, 100} and 0 in codes, f"exit codes {codes}")
    stage.expect_that(stage.lines("starts") == 1, f"started {stage.lines('starts')} times")
    stage.expect(State.RUNNING)


def terminal_dies(stage: Stage) -> None:
    """The terminal of a run goes, and that of an open screen: the run stays, the screen ends."""
    run = _in_a_terminal(stage, [sys.executable, "-I", "-S", str(SUPERVISOR), str(stage.run.dir.path)])
    stage.run.wait_output("up")
    screen = _in_a_terminal(stage, [sys.executable, "-m", "mpstui"], until=b"\x1b[?1049h")
    for pid, terminal in (run, screen):
        os.close(terminal)
        wait_for(functools.partial(_is_gone, pid), "what the terminal was for to end", SOON_SECONDS)
    stage.expect(State.RUNNING)
    stage.expect_that(act(stage.run, "stop").ok, "the stop was refused")
    stage.expect_exit(action="stop", signal=15)


def _is_gone(child: int) -> bool:
    return os.waitpid(child, os.WNOHANG)[0] != 0


def _in_a_terminal(stage: Stage, words: list[str], until: bytes = b"") -> tuple[int, int]:
    """Start a program in a terminal of its own; its pid and the other end of the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(words[0], words, {**os.environ, "MPSTUI_HOME": str(stage.home), "TERM": "xterm-256color"})
    seen, deadline = b"", time.monotonic() + 30.0
    while until not in seen and time.monotonic() < deadline:
        seen += os.read(terminal, 1 << 16) if select.select([terminal], [], [], 0.1)[0] else b""
    return pid, terminal


def clock_jumps_ahead(stage: Stage) -> None:
    """The wall clock jumps an hour ahead during the stop: the trainer has its grace all the same."""
    stage.start("--clock-back", "-3600")
    stage.run.wait_output("up")
    time.sleep(1.8)
    stage.run.wait_ack(stage.run.ask("stop"))
    stage.expect_exit(action="stop", code=0)
    stage.expect(State.STOPPED)


def reboot(stage: Stage) -> None:
    """The machine restarts: the run is lost, its numbers are others', and a restart works in spite of an old one."""
    stage.start_running()
    stage.kill("both")
    stranger = identity(stage.bystander.pid)
    forged = stage.run.status._replace(boot_id="of another time", trainer=stranger, tree=[stranger])
    storage.write_json(stage.run.dir.status, forged)
    old = stage.run.ask("restart", source="scratch")
    stage.expect(State.LOST)
    asked = stage.run.ask("restart", source="scratch")
    stage.start()
    stage.expect_that(stage.run.wait_ack(asked).ok or stage.run.wait_ack(old).ok, "no restart after a reboot")
    stage.run.wait_output("up", attempt=2)
    stage.expect(State.RUNNING)


def frozen_supervisor(stage: Stage) -> None:
    """The supervisor is frozen, its trainer dies, and somebody asks for something: it goes on, and saw how it ended."""
    stage.start_running()
    supervisor = stage.run.status.supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGSTOP)
    stage.kill("trainer")
    time.sleep(stage.chance.random())
    stage.expect_that(act(stage.run, "stop").ok, "the stop was refused")
    stage.expect_exit(signal=9, action=None)
    stage.expect(State.KILLED)


def stopped_and_continued(stage: Stage) -> None:
    """Trainer and supervisor are stopped and continued again and again; then a stop works."""
    stage.start_running()
    status = stage.run.status
    assert status.supervisor is not None
    assert status.trainer is not None
    for _ in range(10):
        pid = stage.chance.choice([status.supervisor.pid, status.trainer.pid])
        os.kill(pid, signal.SIGSTOP)
        time.sleep(stage.chance.random() * 0.1)
        os.kill(pid, signal.SIGCONT)
    stage.expect_that(act(stage.run, "stop").ok, "the stop was refused")
    stage.expect_exit(action="stop", code=0)
    stage.expect(State.STOPPED)


def deleted_folder(stage: Stage) -> None:
    """The folder of a run that lives is deleted: the trainer is not touched, and the folder does not come back."""
    stage.start_running()
    trainer, supervisor = stage.run.status.trainer, stage.run.status.supervisor
    assert trainer is not None
    assert supervisor is not None
    shutil.rmtree(stage.run.dir.path)
    time.sleep(1.0)
    stage.expect_that(alive(trainer), "the trainer died with its folder")
    stage.finish_trainer()
    wait_for(lambda: not alive(supervisor), "the supervisor to leave")
    stage.expect_that(not stage.run.dir.path.exists(), "a folder of that name came back")


def moved_home(stage: Stage) -> None:
    """The home is moved under a run that lives: it is told as what it is at the new place, and a stop works there."""
    stage.start_running()
    trainer = stage.run.status.trainer
    assert trainer is not None
    stage.home.rename(stage.home.with_name("moved"))
    stage.move_to(stage.home.with_name("moved"))
    stage.expect(State.RUNNING, State.UNSUPERVISED)
    begun = time.monotonic()
    stage.expect_that(act(stage.run, "stop").ok, "the stop was refused")
    stage.expect_soon(begun, SOON_SECONDS)
    stage.expect_that(not alive(trainer), "told of as ended while it lived")
    stage.expect_exit(action="stop", signal=15)
    stage.expect(State.STOPPED)


def slow_disk(stage: Stage) -> None:
    """Each sync takes a quarter of a second: all is as it would be, later."""
    stage.start_running("--slow-disk", "0.25")
    stage.run.wait_ack(stage.run.ask("pause"))
    restart = stage.run.ask("restart", source="scratch")
    stage.expect_that(stage.run.wait_ack(restart).ok, "the restart was refused")
    stage.run.wait_output("up", attempt=2)
    stage.run.wait_ack(stage.run.ask("stop", attempt=2))
    stage.expect_exit(2, action="stop", code=0)
    stage.expect(State.STOPPED)


def restart_while_stopping(stage: Stage) -> None:
    """A restart comes while the run is being stopped, a stop while it is being restarted: it ends both times."""
    stage.start_running()
    stage.run.ask("stop")
    stage.asked()
    stage.expect_that(not stage.run.wait_ack(stage.run.ask("restart")).ok, "a restart overtook a stop")
    stage.expect(State.STOPPED)
    stage.run.wait_unsupervised()
    stage.run.ask("restart", source="scratch")
    stage.start()
    stage.run.wait_output("up", attempt=2)
    stage.run.ask("restart", attempt=2, source="scratch")
    stop = stage.run.ask("stop", attempt=2)
    stage.expect_that(stage.run.wait_ack(stop).ok, "the stop was refused")
    stage.expect(State.STOPPED)
    stage.expect_that(stage.lines("starts") == 2, f"started {stage.lines('starts')} times")


def many_people(stage: Stage) -> None:
    """Six people ask for everything at once, and one for a kill at last: each is answered, and the kill carried out."""
    stage.start_running()

    def person(number: int) -> list[Request]:
        wishes = ["stop", "pause", "continue", "restart", "kill", "dump_stacks", "nonsense"]
        return [stage.run.ask(stage.chance.choice(wishes), attempt=0, by=f"p{number}@here:1") for _ in range(4)]

    with ThreadPoolExecutor(6) as pool:
        asked = [request for some in pool.map(person, range(6)) for request in some]
    last = stage.run.ask("kill", attempt=0)
    stage.start()
    stage.expect_that(stage.run.wait_ack(last).ok, "the kill was refused")
    for request in asked:
        stage.run.wait_ack(request)
    stage.expect(State.KILLED, State.STOPPED)
    started, attempts = stage.lines("starts"), len(stage.run.dir.attempt_numbers())
    stage.expect_that(started <= attempts, f"{started} starts in {attempts} attempts")


def queue_of_orphans(stage: Stage) -> None:
    """Four runs wait in a queue of one slot, their supervisors are killed at random: each runs once, one at a time."""
    code = (
        "import os, time\nfile = os.open('times', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "os.write(file, b'+'); time.sleep(0.2); os.write(file, b'-')"
    )
    runs = [Run(stage.home, argv=python(code), name=f"q{number}", queue=QueueRule(group="mps")) for number in range(4)]
    environ = dict(os.environ)
    recovery = SupervisorRecovery(Home(stage.home, stage.home), lambda run: start_supervisor(run, environ))
    for run in runs:
        start_supervisor(run.dir, environ)
    deadline = time.monotonic() + 60.0
    while not all(run.exit() for run in runs) and time.monotonic() < deadline:
        victim = stage.chance.choice(runs)
        if victim.exit() is None and victim.status.phase == "queued" and stage.chance.random() < 0.3:
            victim.kill_supervisor()
        recovery.respawn_missing()
        time.sleep(0.1)
    stage.expect_that(all(run.exit() is not None for run in runs), "a queued run was forgotten")
    told = (stage.home / "times").read_text()
    stage.expect_that(told == "+-" * 4, f"two at once, or one twice: {told}")
    for run in runs:
        run.clean_up()


def flood_of_requests(stage: Stage) -> None:
    """Hundreds of requests and things that are none lie in the folder: a stop is found at once."""
    stage.start_running()
    folder = stage.run.dir.requests
    for moment in (*range(400), *range(9_000_000_000, 9_000_000_400)):
        request = rundir.new_request(stage.chance.choice(["pause", "continue", "save"]), 1, float(moment))
        storage.write_json(stage.run.dir.request(request.id), request, sync=False)
    os.mkfifo(folder / "0000000000000-000000-aaaaaaaa.json")
    (folder / "0000000000001-000000-aaaaaaaa-kill.json").mkdir()
    (folder / "0000000000002-000000-aaaaaaaa-stop.json").symlink_to("/dev/zero")
    (folder / "0000000000003-000000-aaaaaaaa.json").write_text("[" * 100_000)
    begun = time.monotonic()
    stage.expect_that(act(stage.run, "stop").ok, "the stop was refused")
    stage.expect_soon(begun, SOON_SECONDS)
    stage.expect_exit(action="stop")


def full_disk_unsupervised(stage: Stage) -> None:
    """The disk is full and no supervisor lives: a stop works, and is answered."""
    _stop_without_room(stage, full=True)


def no_inodes_unsupervised(stage: Stage) -> None:
    """The same on a disk that has room and no inode."""
    _stop_without_room(stage, full=False)


def _stop_without_room(stage: Stage, *, full: bool) -> None:
    stage.start_running()
    stage.run.kill_supervisor()
    with filled(stage.home) if full else crowded(stage.home):
        begun = time.monotonic()
        stage.expect_that(act(stage.run, "stop").ok, "the stop was refused")
        stage.expect_soon(begun, SOON_SECONDS)
        stage.expect_exit(action="stop", unknown=True)
        stage.expect(State.STOPPED)
    stage.run.wait_unsupervised()


def kill_of_a_flooder(stage: Stage) -> None:
    """The program itself fills the disk as fast as it can, and catches every error: a kill is a kill."""
    stage.start()
    wait_for(lambda: shutil.disk_usage(stage.home).free == 0, "the disk to be full")
    stage.expect_that(act(stage.run, "kill").ok, "the kill was refused")
    stage.expect_exit(action="kill", signal=signal.SIGKILL)
    os.truncate(stage.run.dir.attempt(1).output, 0)
    stage.run.wait_unsupervised(40.0)
    stage.expect(State.KILLED)


SCENES: Scenes = {
    told_soon: {"trainer": trainers.WAITS},
    ends_at_once: {"trainer": trainers.ENDS},
    starts_together: {"trainer": trainers.WAITS},
    terminal_dies: {"trainer": trainers.WAITS},
    clock_jumps_ahead: {"trainer": trainers.SLOW_TO_STOP},
    reboot: {"trainer": trainers.WAITS},
    frozen_supervisor: {"trainer": trainers.WAITS},
    stopped_and_continued: {"trainer": trainers.SLOW_TO_STOP},
    deleted_folder: {"trainer": trainers.WAITS},
    moved_home: {"trainer": trainers.WAITS},
    slow_disk: {"trainer": trainers.SLOW_TO_STOP},
    restart_while_stopping: {"trainer": trainers.SLOW_TO_STOP},
    many_people: {"trainer": trainers.SLOW_TO_STOP},
    queue_of_orphans: {"trainer": trainers.WAITS},
    flood_of_requests: {"trainer": trainers.WAITS},
}
SMALL_DISK_SCENES: Scenes = {
    full_disk_unsupervised: {"trainer": trainers.WAITS},
    no_inodes_unsupervised: {"trainer": trainers.WAITS},
    kill_of_a_flooder: {"trainer": trainers.FLOODS_FOR_EVER},
}
