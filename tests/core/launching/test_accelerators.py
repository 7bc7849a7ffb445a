"""The queue that follows the accelerator, and real runs on a machine with as many GPUs as the test says."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mpstui.core.launching.choice import LaunchChoice, combinations
from mpstui.core.launching.devices import accelerator, workers
from mpstui.core.launching.launch import launch
from mpstui.core.launching.planning import plan
from mpstui.core.machine import Machine
from mpstui.core.model.home import Home
from mpstui.core.profiles.model import Profile
from mpstui.core.runs.queueing import Group, find_group, set_slots
from mpstui.wire import liveness, storage
from mpstui.wire.records import GpuRule, LaunchRecord, QueueRule
from mpstui.wire.rundir import RunDir
from tests.waiting import wait_until

from .conftest import linux, mac

ProfileOf = Callable[[str], Profile]
TRAINS = 'name = "t"\ncommand = ["{python}", "train.py"]\ndevice_args.cpu = ["--cpu"]\n'
DISTRIBUTED = f'{TRAINS}launcher = "torchrun"\nprocesses = 2\n'
STAYS = "import os, time\nprint(os.environ['CUDA_VISIBLE_DEVICES'])\nwhile not os.path.exists('go'): time.sleep(0.02)"


def with_gpus(count: int) -> Machine:
    return dataclasses.replace(linux(nvidia=True), gpus=lambda: [f"GPU-{number}" for number in range(count)])


def asked(profile: Profile, group: str | None = "auto", **chosen: object) -> LaunchChoice:
    return LaunchChoice(profile, queue=QueueRule(group), **chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("machine", "device", "environ", "group"),
    [
        (mac(), "auto", {}, "mps"),
        (mac(), "cpu", {}, "cpu"),
        (linux(), "auto", {}, "cpu"),
        (linux(nvidia=True), "auto", {}, "cuda"),
        (linux(nvidia=True), "auto", {"CUDA_VISIBLE_DEVICES": ""}, "cpu"),
        (linux(nvidia=True), "auto", {"CUDA_VISIBLE_DEVICES": "-1"}, "cpu"),
        (linux(nvidia=True), "auto", {"CUDA_VISIBLE_DEVICES": "GPU-5"}, "cuda"),
        (linux(nvidia=True), "cpu", {}, "cpu"),
    ],
)
def test_the_group_is_called_as_what_the_run_will_use(
    machine: Machine, device: str, environ: dict[str, str], group: str, profile_of: ProfileOf
) -> None:
    assert accelerator(device, environ, machine) == group
    made = plan(asked(profile_of(TRAINS), device=device), environ=environ, machine=machine, check=False)
    assert made.queue.group == group
    assert (made.gpus is not None) == ("GPU-5" in environ.values())  # how many there are is not known here


def test_a_run_may_have_any_gpu_that_the_caller_sees(profile_of: ProfileOf) -> None:
    profile, four = profile_of(TRAINS), with_gpus(4)
    bus_order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    for environ, rule in (
        ({}, GpuRule(["0", "1", "2", "3"], env=bus_order)),
        (bus_order, GpuRule(["0", "1", "2", "3"])),
        ({"CUDA_VISIBLE_DEVICES": "3,1"}, GpuRule(["3", "1"])),
        ({"CUDA_VISIBLE_DEVICES": "GPU-3,GPU-1"}, GpuRule(["3", "1"], env=bus_order)),
        ({"CUDA_VISIBLE_DEVICES": "0,0"}, None),
    ):
        assert plan(asked(profile), environ=environ, machine=four, check=False).gpus == rule


def test_only_the_accelerators_queue_hands_out_gpus(profile_of: ProfileOf) -> None:
    profile, four = profile_of(TRAINS), with_gpus(4)
    for choice in (asked(profile, None), asked(profile, "nightly"), asked(profile, device="cpu")):
        assert plan(choice, environ={}, machine=four, check=False).gpus is None
    named = plan(asked(profile, "cuda"), environ={}, machine=four, check=False)
    assert named.gpus is not None


def test_devices_that_the_launch_or_the_profile_names_are_kept_whole(profile_of: ProfileOf) -> None:
    four = with_gpus(4)
    choice = asked(profile_of(TRAINS), env={"CUDA_VISIBLE_DEVICES": "2,3"})
    made = plan(choice, environ={"CUDA_VISIBLE_DEVICES": "0"}, machine=four, check=False)
    assert made.gpus == GpuRule(["2", "3"], 2, fixed=True)
    named = profile_of(f'{TRAINS}[env]\nCUDA_VISIBLE_DEVICES = "1"\n')
    assert plan(asked(named), environ={}, machine=four, check=False).gpus == GpuRule(["1"], fixed=True)
    dropped = asked(named, drop_env=("CUDA_VISIBLE_DEVICES",))
    found = plan(dropped, environ={}, machine=four, check=False).gpus
    assert found is not None
    assert (found.fixed, found.takes) == (False, 1)


@pytest.mark.parametrize(
    ("command", "count"),
    [
        ("python train.py", 1),
        ("torchrun --nproc-per-node 3 train.py", 3),
        ("torchrun --nproc_per_node=2 train.py", 2),
        ("torchrun --nproc-per-node=gpu train.py", None),
        ("accelerate launch --num_processes 4 train.py", 4),
        ("deepspeed --num_gpus=0 train.py", 1),
        ("torchrun train.py --nproc-per-node", None),
    ],
)
def test_a_launcher_takes_a_gpu_for_each_of_its_processes(command: str, count: int | None) -> None:
    assert workers(command.split()) == count


def test_a_distributed_profile_takes_as_many_as_there_are_at_most(profile_of: ProfileOf) -> None:
    profile = profile_of(DISTRIBUTED)
    for count, takes in ((4, 2), (1, 1)):
        made = plan(asked(profile), environ={}, machine=with_gpus(count), check=False).gpus
        assert made is not None
        assert made.takes == takes


@pytest.fixture
def go(tmp_path: Path) -> Iterator[Path]:
    """The file that lets the trainers end; there at the end of a failed test too."""
    yield tmp_path / "go"
    (tmp_path / "go").touch()


def placed(home: Home, count: int) -> Group | None:
    """The group once so many run and the devices of each are on record: a run that just starts has none yet."""
    group = find_group(home, "cuda")
    known = [member.gpus for member in group.running if member.gpus is not None]
    return group if len(known) == len(group.running) == count else None


def devices_of(group: Group) -> list[tuple[str, ...]]:
    return sorted(member.gpus or () for member in group.running)


def test_a_sweep_fills_the_gpus_and_the_queue_shows_who_has_which(
    profile_of: ProfileOf, tmp_path: Path, go: Path
) -> None:
    profile = profile_of(f"{TRAINS}[sweep]\nseed = [1, 2, 3]\n")
    (tmp_path / "train.py").write_text(STAYS)
    home, machine, environ = Home(tmp_path / "home", tmp_path / "home"), with_gpus(2), dict(os.environ)
    environ.pop("CUDA_VISIBLE_DEVICES", None)
    plans = [plan(one, environ=environ, machine=machine) for one in combinations(LaunchChoice(profile))]
    runs = [RunDir(home.runs / launch(made, home, environ, time.time())) for made in plans]
    wait_until(lambda: sum(run.attempt(1).output.exists() for run in runs) == 2)
    group = wait_until(lambda: placed(home, 2))
    assert group is not None
    assert (group.slots, group.devices, group.by_hand) == (2, ("0", "1"), False)
    assert devices_of(group) == [("0",), ("1",)]
    assert [member.gpus for member in group.waiting] == [()]
    set_slots(home, "cuda", 3)
    shared = wait_until(lambda: placed(home, 3))
    assert shared is not None
    assert (shared.slots, shared.by_hand) == (3, True)
    assert devices_of(shared) in ([("0",), ("0",), ("1",)], [("0",), ("1",), ("1",)])
    assert set_slots(home, "cuda", None).by_hand is False
    go.touch()
    wait_until(lambda: all(run.attempt(1).exit.exists() for run in runs))
    for run in runs:
        record = storage.read(LaunchRecord, run.attempt(1).launch)
        assert record is not None
        assert run.attempt(1).output.read_text().split() == record.gpus
    wait_until(lambda: not any(liveness.is_held(run.supervisor_lock) for run in runs))
