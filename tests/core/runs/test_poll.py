"""The schedule of looks: often, seldom, after a hint at once."""

from __future__ import annotations

from mpstui.core.follow import Budget
from mpstui.core.runs.monitor import PollSchedule


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_key_has_its_own_pace() -> None:
    clock = Clock()
    schedule = PollSchedule(clock)
    looks = {"fast": 0, "slow": 0}
    for _ in range(100):
        clock.now += 0.1
        looks["fast"] += schedule.due("fast", 0.05)
        looks["slow"] += schedule.due("slow", 5.0)
    assert looks["fast"] == 100
    assert 2 <= looks["slow"] <= 3


def test_many_keys_do_not_come_due_together() -> None:
    clock = Clock()
    schedule = PollSchedule(clock)
    keys = [f"run {i}" for i in range(200)]
    assert all(schedule.due(key, 10.0) for key in keys)
    busiest = 0
    for _ in range(100):
        clock.now += 0.1
        busiest = max(busiest, sum(schedule.due(key, 10.0) for key in keys))
    assert busiest < 40


def test_a_hint_makes_it_due_and_what_is_gone_is_forgotten() -> None:
    clock = Clock()
    schedule = PollSchedule(clock)
    schedule.due("run", 10.0)
    assert not schedule.due("run", 10.0)
    schedule.hurry(["run", "unknown"])
    assert schedule.due("run", 10.0)
    schedule.forget("run")
    assert schedule.due("run", 10.0)


def test_a_budget_is_spent_by_its_clock() -> None:
    clock = Clock()
    budget = Budget(1.0, clock)
    assert not budget.spent
    clock.now += 1.0
    assert budget.spent
