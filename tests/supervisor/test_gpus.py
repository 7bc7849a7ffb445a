"""GPUs of their own for queued runs: the pure choice, and real runs that share a machine with so many devices."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from mpstui.supervisor import queue
from mpstui.wire import queues, storage
from mpstui.wire.queues import Queue
from mpstui.wire.records import CauseRule, GpuRule, LaunchRecord, LaunchTemplate, QueueRule, RestartRule, Spec, Variant

from .kit import Run, decide, python, wait_for

MakeRun = Callable[..., Run]
GROUP = QueueRule("cuda")
TWO = GpuRule(["0", "1"])
SAYS = "import os, time; os.write(1, ('gpu ' + os.environ.get('CUDA_VISIBLE_DEVICES', 'None') + chr(10)).encode())\n"
"""In one piece: an unbuffered print writes word by word."""
STAYS = SAYS + "while not os.path.exists('{}'): time.sleep(0.02)"


@pytest.fixture
def queued(make_run: MakeRun) -> Callable[..., Run]:
    """Makes a run of the group that stays until the file of its ``until`` is there, and starts it."""

    def make(until: str = "never", rule: GpuRule = TWO, **spec: object) -> Run:
        run = make_run(STAYS.format(until), queue=GROUP, gpus=rule, **spec)
        run.start()
        return run

    return make


def given(run: Run, attempt: int = 1) -> list[str]:
    """What the run was given, as its record has it and as its program saw it."""
    run.wait_output("gpu", attempt)
    record = storage.read(LaunchRecord, run.dir.attempt(attempt).launch)
    assert record is not None
    assert run.output(attempt).split() == ["gpu", ",".join(record.gpus)]
    return list(record.gpus)


def told(run: Run, event: str = "launched") -> tuple[str, list[str] | None]:
    """The newest event of that name, which follows the start it tells of."""
    found = wait_for(lambda: [item for item in run.events(event) if "gpus" in item], event)[-1]
    return found["text"], found["gpus"]


def waits(run: Run) -> bool:
    """Once it has looked: before that it is queued and does not know yet what for."""
    return wait_for(lambda: run.status.waiting_for == "slot", f"{run.dir.run} to wait for a slot: {run.log()}")


@pytest.mark.parametrize(
    ("used", "takes", "most", "before", "chosen", "after"),
    [
        ((0, 0, 0), 1, 1, (), ["0"], (1, 0, 0)),
        ((1, 0, 0), 1, 1, ("2",), ["2"], (1, 0, 1)),
        ((1, 1, 1), 1, 1, ("2",), [], (1, 1, 1)),
        ((1, 0, 1), 2, 1, (), ["1"], (1, 1, 1)),
        ((1, 0, 1), 1, 2, ("0",), ["1"], (1, 1, 1)),
        ((1, 1, 1), 2, 2, ("2", "1"), ["1", "2"], (1, 2, 2)),
    ],
)
def test_the_least_used_is_chosen_and_of_those_the_one_of_last_time(
    used: Sequence[int], takes: int, most: int, before: Sequence[str], chosen: list[str], after: Sequence[int]
) -> None:
    rule, loads = GpuRule(["0", "1", "2"], takes), dict(zip("012", used, strict=True))
    assert queue.choose(loads, rule, most, before) == chosen
    assert tuple(loads.values()) == after


def test_devices_are_shared_only_when_more_runs_are_wanted_than_there_are_devices_for() -> None:
    assert [queue.shares(TWO, slots) for slots in (None, 1, 2, 3, 5)] == [1, 1, 1, 2, 3]
    assert queue.shares(GpuRule(["0", "1"], takes=2), 2) == 2


def test_a_device_is_called_what_the_machine_calls_it() -> None:
    assert GpuRule(["0", "1", "2", "3"]).sentence(["2"]) == "GPU 2 of 4"
    assert GpuRule(["0", "1", "2", "3"]).sentence(["0", "1"]) == "GPUs 0, 1 of 4"
    assert GpuRule(["2", "3"]).sentence(["3"]) == "GPU 3 (of 2, 3)"
    assert GpuRule(["3"], fixed=True).sentence(["3"]) == "GPU 3"


def test_each_run_gets_a_device_of_its_own_and_the_next_one_waits_for_it(queued: Callable[..., Run]) -> None:
    first, second = queued("go"), queued()
    assert [given(first), given(second)] == [["0"], ["1"]]
    third = queued("go3")
    assert waits(third)
    assert third.status.message == "waits for a free GPU of queue group cuda"
    assert queues.read(queues.files_of(first.dir, "cuda")).devices == ["0", "1"]
    (first.home / "go").touch()
    assert given(third) == ["0"]
    assert told(first) == ("attempt 1 started on GPU 0 of 2", ["0"])


def test_a_trainer_keeps_its_device_without_its_supervisor(queued: Callable[..., Run]) -> None:
    only = GpuRule(["0"])
    first = queued("go", only)
    assert given(first) == ["0"]
    first.wait_phase("running")
    first.kill_supervisor()
    second = queued("go", only)
    assert waits(second)
    time.sleep(1.2)  # one more look
    assert second.status.phase == "queued"
    assert first.status.trainer is not None
    (first.home / "go").touch()
    assert given(second) == ["0"]


def test_a_restart_by_rule_keeps_the_device(make_run: MakeRun, queued: Callable[..., Run]) -> None:
    queued("go")
    fails = make_run(
        STAYS.format("fail") + "\nraise SystemExit(3)",
        queue=GROUP,
        gpus=TWO,
        causes=[CauseRule("three", codes=[3])],
        restart=RestartRule(["three"], delays_seconds=[0.1]),
    )
    fails.start()
    assert given(fails) == ["1"]
    (fails.home / "go").touch()  # the other device is free from here on
    fails.beat(step=5)
    (fails.home / "fail").touch()
    assert given(fails, 2) == ["1"]
    assert told(fails, "restart") == (
        "attempt 2 started on GPU 1 of 2, from step 0: there is no complete checkpoint yet",
        ["1"],
    )


def test_a_restart_takes_the_device_of_last_time_or_another_one(queued: Callable[..., Run]) -> None:
    first, second = queued("go"), queued("go")
    assert [given(first), given(second)] == [["0"], ["1"]]
    (first.home / "go").touch()
    for run in (first, second):
        run.wait_exit()
        run.wait_unsupervised()
    (first.home / "go").unlink()
    second.ask("restart", source="scratch")
    second.start()
    assert given(second, 2) == ["1"]
    third = queued("third")
    assert given(third) == ["0"]
    (second.home / "go").touch()
    second.wait_exit(2)
    first.ask("restart", source="scratch")
    first.start()
    assert given(first, 2) == ["1"]


def test_a_wide_run_is_not_overtaken(queued: Callable[..., Run]) -> None:
    first = queued("go")
    assert given(first) == ["0"]
    wide = queued("wide", GpuRule(["0", "1"], takes=2))
    assert waits(wide)
    behind = queued("behind")
    assert waits(behind)
    time.sleep(2.2)
    assert behind.status.phase == "queued"
    (first.home / "go").touch()
    assert given(wide) == ["0", "1"]
    assert told(wide)[0] == "attempt 1 started on GPUs 0, 1 of 2"
    assert behind.status.phase == "queued"


def test_who_waits_for_one_device_holds_up_nobody_on_another(queued: Callable[..., Run]) -> None:
    assert given(queued("a", GpuRule(["0"]))) == ["0"]
    assert waits(queued("b", GpuRule(["0"])))
    assert given(queued("c", GpuRule(["1"]))) == ["1"]


def test_a_device_that_the_run_names_itself_is_only_kept_from_others(make_run: MakeRun, queued: MakeRun) -> None:
    own = make_run(queue=GROUP, gpus=GpuRule(["GPU-a"], fixed=True))
    argv = python(STAYS.format("go"))
    own.respec(launch=LaunchTemplate("auto", {"auto": Variant(argv, {"CUDA_VISIBLE_DEVICES": "GPU-a"})}, str(own.home)))
    own.start()
    assert given(own) == ["GPU-a"]
    other = queued("other", GpuRule(["GPU-a", "GPU-b"], env={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}))
    assert given(other) == ["GPU-b"]
    record = storage.read(LaunchRecord, other.dir.attempt(1).launch)
    assert record is not None
    assert record.env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_slots_by_hand_share_the_devices_in_turn_or_leave_some_unused(queued: Callable[..., Run]) -> None:
    decide(queued("go"), "cuda", decided=True, slots=3)
    runs = [queued("go") for _ in range(3)]
    assert sorted(given(run)[0] for run in runs[:2]) == ["0", "1"]
    assert waits(runs[2])
    decide(runs[0], "cuda", decided=True, slots=1)
    (runs[0].home / "go").touch()
    for run in runs[:2]:
        run.wait_exit()
    assert given(runs[2]) == ["0"]


def test_an_attempt_on_the_cpu_is_given_none(queued: Callable[..., Run]) -> None:
    run = queued("go")
    assert given(run) == ["0"]
    run.ask("restart", source="scratch", device="cpu")
    run.wait_output("gpu", 2)
    record = storage.read(LaunchRecord, run.dir.attempt(2).launch)
    assert record is not None
    assert (record.device, record.gpus, run.output(2).split()) == ("cpu", [], ["gpu", "None"])


def test_a_restart_that_names_the_devices_itself_has_the_last_word(queued: Callable[..., Run]) -> None:
    run = queued("go")
    assert given(run) == ["0"]
    variant = Variant(python(STAYS.format("go")), {"CUDA_VISIBLE_DEVICES": "7"})
    run.ask(
        "restart", source="scratch", launch=storage.to_json(LaunchTemplate("auto", {"auto": variant}, str(run.home)))
    )
    run.wait_output("gpu", 2)
    record = storage.read(LaunchRecord, run.dir.attempt(2).launch)
    assert record is not None
    assert (record.gpus, run.output(2).split()) == ([], ["gpu", "7"])


def test_no_two_dispatchers_ever_give_the_same_device(make_run: MakeRun) -> None:
    code = (
        "import os, time; name = 'in-use-' + os.environ['CUDA_VISIBLE_DEVICES']\n"
        "os.close(os.open(name, os.O_CREAT | os.O_EXCL)); time.sleep(0.05); os.unlink(name)"
    )
    runs = [make_run(code, queue=GROUP, gpus=TWO) for _ in range(8)]
    for run in runs:
        run.start()
    assert [run.wait_exit().code for run in runs] == [0] * 8, [run.output() for run in runs]
    files = queues.files_of(runs[0].dir, "cuda")
    wait_for(lambda: queues.read(files).order == [], "the line to empty")


def test_files_without_the_new_fields_are_read_as_before(make_run: MakeRun) -> None:
    run = make_run("pass", queue=GROUP)
    files = queues.files_of(run.dir, "cuda")
    storage.make_private_folder(files.folder)
    storage.write_json(files.state, {"group": "cuda", "schema": 1, "slots": 3, "paused": False, "order": ["a"]})
    found = queues.read(files)
    assert (found.slots, found.by_hand, found.devices, found.order) == (3, True, [], ["a"])
    assert not Queue("cuda").by_hand
    old = {name: value for name, value in storage.to_json(run.spec).items() if name != "gpus"}
    assert storage.from_json(Spec, old).gpus is None
    assert storage.from_json(Spec, storage.to_json(run.spec._replace(gpus=TWO))).gpus == TWO
