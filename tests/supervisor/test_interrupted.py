"""What was under way when a supervisor died, and what came after it had given up."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable

from mpstui.core.runs.waiting import is_abandoned, is_waiting
from mpstui.supervisor import starting
from mpstui.supervisor.loop import Supervisor
from mpstui.supervisor.machine import Clock, Machine, this_machine
from mpstui.wire import storage
from mpstui.wire.liveness import ProcessIdentity
from mpstui.wire.records import CauseRule, LaunchRecord, QueueRule, RestartRule, StopRule

from .kit import Run, wait_for

MakeRun = Callable[..., Run]
SLEEPER = "import time; print('up', flush=True)\nwhile True: time.sleep(0.05)"
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nwhile True: time.sleep(1)"
SAVES = (
    "import signal, sys, time\n"
    "signal.signal(15, lambda *_: sys.exit(print('saved', flush=True)))\n"
    "print('up', flush=True)\nwhile True: time.sleep(0.05)"
)
BOOM = [CauseRule("boom", ["boom"])]
GROUP = QueueRule("mps")


def _died_before_the_second_start(run: Run) -> None:
    """As if the supervisor had been killed between "attempt 2 is starting" and its process."""
    run.start()
    run.wait_exit()
    run.wait_unsupervised()
    run.checkpoint("step10.pt")
    run.dir.attempt(2).path.mkdir()
    storage.write_json(run.dir.status, run.status._replace(phase="starting", attempt=2, trainer=None))


def _second_launch(run: Run) -> LaunchRecord:
    run.wait_exit(2)
    found = storage.read(LaunchRecord, run.dir.attempt(2).launch)
    assert found is not None
    return found


def test_a_restart_that_was_about_to_start_begins_where_and_from_what_was_asked(make_run: MakeRun) -> None:
    run = make_run("raise SystemExit(3)")
    _died_before_the_second_start(run)
    request = run.ask("restart", device="cpu")
    run.start()
    launch = _second_launch(run)
    assert (launch.device, launch.checkpoint) == ("cpu", str(run.dir.checkpoints / "step10.pt"))
    assert run.wait_ack(request).ok
    run.wait_unsupervised()
    assert run.dir.attempt_numbers() == [1, 2]


def test_a_restart_by_rule_that_was_about_to_start_begins_as_the_rule_says(make_run: MakeRun) -> None:
    run = make_run("raise SystemExit(3)", restart=RestartRule(on=["mps_oom"], device="cpu"))
    _died_before_the_second_start(run)
    run.start()
    launch = _second_launch(run)
    assert (launch.device, launch.checkpoint) == ("cpu", str(run.dir.checkpoints / "step10.pt"))


def test_a_forced_stop_stays_forced_under_the_next_supervisor(make_run: MakeRun) -> None:
    run = make_run(STUBBORN, stop=StopRule(grace_seconds=600.0))
    run.start()
    run.wait_output("up")
    run.wait_phase("running")
    run.kill_supervisor()
    request = run.ask("stop", force=True)
    stopping = run.status._replace(phase="stopping", request=request.id, action="stop", asker=request.by)
    storage.write_json(run.dir.status, stopping)
    run.start()
    assert run.wait_exit().action == "stop"
    assert run.wait_ack(request).ok


def test_a_stop_that_died_before_it_continued_a_paused_training_is_carried_out(make_run: MakeRun) -> None:
    run = make_run(SAVES, stop=StopRule(grace_seconds=60.0))
    run.start()
    run.wait_output("up")
    assert run.wait_ack(run.ask("pause")).ok
    run.kill_supervisor()
    request = run.ask("stop")
    stopping = run.status._replace(phase="stopping", paused=False, request=request.id, action="stop", asker=request.by)
    storage.write_json(run.dir.status, stopping)
    run.start()
    run.wait_exit()
    assert "saved" in run.output()


def _lost_its_supervisor_while_it_backed_off(make_run: MakeRun) -> Run:
    """A run of a queue that crashed: with the supervisor that was to restart it, its slot is gone as well."""
    code = "import os, time; print('up', flush=True)\nwhile not os.path.exists('crash'): time.sleep(0.02)\n"
    ends = "raise SystemExit(3 if os.environ['MPSTUI_ATTEMPT'] == '1' else 0)"
    rule = RestartRule(["three"], delays_seconds=[2.0])
    run = make_run(code + ends, queue=GROUP, restart=rule, causes=[CauseRule("three", codes=[3])])
    run.start()
    run.wait_output("up")
    run.beat(step=5, phase="train")
    (run.home / "crash").touch()
    run.wait_phase("backing_off")
    run.kill_supervisor()
    return run


def test_a_restart_by_rule_that_waits_for_its_turn_survives_its_supervisor(make_run: MakeRun) -> None:
    run = _lost_its_supervisor_while_it_backed_off(make_run)
    other = make_run(f"import os\n{SLEEPER.replace('True', 'not os.path.exists(chr(103))')}", queue=GROUP)
    other.start()
    other.wait_output("up")
    for _ in range(2):
        run.start()
        wait_for(lambda: (run.status.phase, run.status.waiting_for) == ("queued", "slot"), "its turn to be waited for")
        run.kill_supervisor()
        assert is_abandoned(run.dir)
        assert is_waiting(run.dir, run.status)
    run.start()
    (run.home / "g").touch()
    assert run.wait_exit(2).code == 0
    assert run.status.next_start is None


def test_a_restart_that_was_due_long_ago_and_is_as_due_for_the_next_one(make_run: MakeRun) -> None:
    run = _lost_its_supervisor_while_it_backed_off(make_run)
    storage.write_json(run.dir.status, run.status._replace(next_start=1.0))
    supervisor = Supervisor(run.dir, run.spec, run.status, this_machine())
    starting.arrive(supervisor.state)
    assert run.status.phase == "backing_off"
    assert run.status.next_start is not None


def test_a_shutdown_of_the_machine_calls_no_waiting_run_off(make_run: MakeRun) -> None:
    first = make_run(SLEEPER)
    first.start()
    first.wait_output("up")
    waiting = make_run("print('its turn')", queue=QueueRule(after=[{"run": first.dir.run, "when": "any"}]))
    waiting.start()
    status = waiting.wait_phase("queued")
    assert status.supervisor is not None
    os.kill(status.supervisor[0], signal.SIGTERM)
    waiting.wait_unsupervised()
    assert waiting.status.phase == "queued"
    assert waiting.exit() is None
    first.wait_ack(first.ask("kill"))
    waiting.start()
    assert waiting.wait_exit().code == 0


def test_a_shutdown_of_the_machine_forgets_no_restart_that_is_due(make_run: MakeRun) -> None:
    rule = RestartRule(on=["boom"], delays_seconds=[600.0])
    code = "import os, time\nwhile not os.path.exists('crash'): time.sleep(0.02)\nprint('boom'); raise SystemExit(3)"
    run = make_run(code, restart=rule, causes=BOOM)
    run.start()
    run.wait_phase("running")
    run.beat(step=5, phase="train")
    (run.home / "crash").touch()
    status = run.wait_phase("backing_off")
    assert status.supervisor is not None
    os.kill(status.supervisor[0], signal.SIGTERM)
    run.wait_unsupervised()
    assert run.status.phase == "backing_off"
    assert run.status.next_start == status.next_start


class _Deaf:
    """Processes in an uninterruptible call: no signal has an effect."""

    def send(self, target: ProcessIdentity, number: int) -> bool:
        return True

    def send_group(self, group: int, proof: Iterable[ProcessIdentity], number: int) -> bool:
        return True


def test_what_dies_of_our_signal_after_we_gave_up_was_still_killed_by_whoever_asked(make_run: MakeRun) -> None:
    run = make_run(SLEEPER)
    now = [time.monotonic()]
    real = this_machine()
    machine = Machine(Clock(monotonic=lambda: now[0]), real.table, _Deaf(), real.boot_id)
    supervisor = Supervisor(run.dir, run.spec, None, machine)

    def look() -> bool:
        now[0] += 3.0
        supervisor.tick()
        return True

    starting.arrive(supervisor.state)
    look()
    run.wait_output("up")
    request = run.ask("kill")
    wait_for(lambda: look() and run.status.phase == "stop_failed", "the stop sequence to give up")
    assert not run.wait_ack(request).ok
    assert run.status.trainer is not None
    os.kill(run.status.trainer[0], signal.SIGKILL)
    wait_for(lambda: look() and run.exit() is not None, "the exit record")
    record = run.exit()
    assert record is not None
    assert (record.signal, record.action, record.requested_by) == (signal.SIGKILL, "kill", request.by)
    assert "sender" not in record.evidence
    wait_for(lambda: look() and run.status.phase == "ended", "the end of it all")
