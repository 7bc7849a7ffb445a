"""Trainings on a real Slurm: over two nodes, as an array, preempted, out of time, cancelled, without a controller."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import torch

from .conftest import Hosts, User
from .lab import Lab

PARTITIONS = ("low", "spot")
ENDED = ("finished", "stopped", "failed", "killed", "lost")


def has_trained(steps: int) -> Callable[[dict[str, Any]], object]:
    def condition(seen: dict[str, Any]) -> bool:
        assert not has_ended(seen), (seen["state"], seen["reason"], seen["attempt"], seen["host"], seen["job"])
        return (seen["step"] or 0) >= steps and seen["state"] == "running"

    return condition


def has_ended(seen: dict[str, object]) -> bool:
    return seen["state"] in ENDED


def same_end(user: User, one: str, other: str) -> None:
    """Two runs came to the same, bit for bit."""
    assert user.final_loss(one) == user.final_loss(other)
    mine, theirs = user.weights(one), user.weights(other)
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_a_training_over_two_nodes(user: User, lab: Lab) -> None:
    user.profile.write_text('launcher = "torchrun"\n' + user.profile.read_text())
    (run,) = user.launch("--on", "slurm", "--job", "nodes=2")
    seen = user.wait(run, has_ended)
    assert (seen["state"], seen["step"]) == ("finished", seen["steps"])
    assert len(seen["ranks"]) == 2
    (run,) = user.launch("--on", "slurm", "--job", "nodes=2", "--set", "epochs=500")
    user.wait(run, has_trained(2))
    user.run("stop", run)
    seen = user.see(run)
    assert (seen["state"], seen["survivors"]) == ("stopped", [])
    assert seen["checkpoints"]
    lab.wait(lambda: not lab.ask("squeue", "-h").strip(), "the job to leave")


def test_a_sweep_of_six_is_one_array(user: User, lab: Lab) -> None:
    runs = user.launch("--on", "slurm", "--sweep", "seed=1,2,3,4,5,6", "--set", "epochs=1")
    jobs = [user.see(run)["job"]["id"] for run in runs]
    assert {job.partition("_")[0] for job in jobs} == {jobs[0].partition("_")[0]}
    assert [user.wait(run, has_ended)["state"] for run in runs] == ["finished"] * 6


def test_a_preempted_training_goes_on_bit_for_bit(user: User, lab: Lab) -> None:
    (plain,) = user.launch("--on", "local", "--set", "epochs=8")
    # Slurm puts the one back into the queue, and cancels the other.
    both = [user.launch("--on", "slurm", "--job", f"partition={name}", "--set", "epochs=8")[0] for name in PARTITIONS]
    jobs = [user.wait(run, has_trained(5))["job"]["id"] for run in both]
    leave = user.folder / "leave"  # until both were seen to wait, however slow the looks are
    until = f"while [ ! -e {shlex.quote(str(leave))} ]; do sleep 1; done"
    lab.ask("sbatch", "--partition=p", "--nodes=2", "--output=/dev/null", "--wrap", until)
    try:
        for run in both:
            user.wait(run, lambda seen: seen["state"] == "queued" and seen["job"]["phase"] == "pending")
    finally:
        leave.touch()
    assert user.wait(plain, has_ended)["state"] == "finished"
    for run, job, partition in zip(both, jobs, PARTITIONS, strict=True):
        seen = user.wait(run, has_ended)
        assert (seen["state"], seen["attempt"], seen["job"]["id"] == job) == ("finished", 2, partition == "low")
        same_end(user, plain, run)


def test_a_time_limit_of_two_minutes_is_survived_bit_for_bit(user: User, lab: Lab) -> None:
    long = ("--set", "epochs=30", "--set", "limit=2048")
    (run,) = user.launch("--on", "slurm", "--job", "time=2", *long)
    seen = user.wait(run, lambda seen: seen["attempt"] > 1 or has_ended(seen), seconds=400)
    assert seen["attempt"] > 1, "the training was over before its time limit: make it longer"
    lab.ask("scontrol", "update", f"JobId={seen['job']['id']}", "TimeLimit=60")  # once is enough to wait for
    seen = user.wait(run, has_ended, seconds=900)
    assert seen["state"] == "finished"
    assert any("its time limit was near" in event["text"] for event in seen["events"])
    (plain,) = user.launch("--on", "local", *long)
    assert user.wait(plain, has_ended, seconds=900)["state"] == "finished"
    same_end(user, plain, run)


def test_a_cancellation_behind_our_back_is_told(user: User, lab: Lab) -> None:
    (run,) = user.launch("--on", "slurm", "--set", "epochs=500")
    user.wait(run, has_trained(2))
    lab.ask("scancel", user.see(run)["job"]["id"])
    seen = user.wait(run, has_ended)
    assert (seen["state"], seen["exit"] and seen["exit"]["requested_by"]) in (("killed", None), ("killed", "Slurm"))
    assert "was cancelled through the scheduler, not by mpstui" in seen["reason"]
    assert "crashed" not in user.run("show", run)
    assert seen["survivors"] == []


def test_a_controller_that_is_away_for_a_while(user: User, lab: Lab) -> None:
    (run,) = user.launch("--on", "slurm", "--set", "epochs=120")
    user.wait(run, has_trained(2))
    (waiting,) = user.launch("--on", "slurm", "--set", "epochs=1", "--job", "nodelist=n1", "--job", "begin=now+40")
    lab.stop_controller()
    try:
        seen = user.wait(run, lambda seen: seen["job"]["silent_since"] is not None)
        assert seen["state"] == "running"
        assert "Slurm does not answer since" in seen["reason"]
        step = seen["step"]
        seen = user.wait(run, lambda seen: (seen["step"] or 0) > step)
        assert user.see(waiting)["state"] == "queued"
    finally:
        lab.start_controller()
    seen = user.wait(run, lambda seen: seen["job"]["silent_since"] is None)
    assert seen["state"] == "running"
    user.run("stop", run)
    assert user.wait(run, has_ended)["state"] == "stopped"
    assert user.wait(waiting, has_ended)["state"] == "finished"


def test_a_run_that_moves_three_times_ends_as_one_that_never_moved(desk: Hosts, lab: Lab) -> None:
    plain, run = (desk.launch("--on", "local", "--set", "epochs=14")[0] for _ in range(2))
    seen = desk.wait(run, has_trained(4))
    here: tuple[str, ...] = ()
    for source, host, *on in (("", "gpu1"), ("gpu1:", "login", "--on", "slurm"), ("login:", "local", "--on", "local")):
        desk.run("move", source + run, "--to", host, *on, "--yes")
        here = () if host == "local" else ("--host", host)
        seen = desk.wait(run, has_trained(seen["step"] + 4), *here)
        assert (seen["job"] is not None) == (host == "login")
    seen = desk.wait(run, has_ended, *here)
    assert (seen["state"], seen["attempt"]) == ("finished", 4)
    assert desk.wait(plain, has_ended)["state"] == "finished"
    assert not lab.ask("squeue", "-h").strip()
    same_end(desk, plain, run)
