"""Energy counts what was measured, says how much that was, and invents nothing."""

from __future__ import annotations

import pytest

from mpstui.core.telemetry.energy import PowerPoint, energy, energy_by_epoch
from mpstui.core.telemetry.history import HistoryPoint
from mpstui.core.telemetry.recording import power_points


def steady(watts: float, seconds: int, step: int = 2) -> list[PowerPoint]:
    return [PowerPoint(float(at), watts) for at in range(0, seconds + 1, step)]


def test_steady_power() -> None:
    found = energy(steady(100.0, 3600), 0.0, 3600.0, price_per_kilowatt_hour=0.30)
    assert found.watt_hours == pytest.approx(100.0)
    assert found.measured_fraction == 1.0
    assert found.cost == pytest.approx(0.03)
    assert found.mean_watts == pytest.approx(100.0)


def test_rising_power_is_cut_at_the_span() -> None:
    found = energy([PowerPoint(1000.0, 0.0), PowerPoint(1020.0, 200.0)], 1005.0, 1010.0)
    assert found.watt_hours == pytest.approx(75.0 * 5 / 3600)
    assert found.measured_fraction == 1.0


def test_a_gap_is_not_filled_in() -> None:
    points = steady(100.0, 1800) + [PowerPoint(3000.0 + point.time, 100.0) for point in steady(100.0, 600)]
    found = energy(points, 0.0, 3600.0)
    assert found.watt_hours == pytest.approx(100.0 * 2400 / 3600)
    assert found.measured_fraction == pytest.approx(2400 / 3600)
    assert found.mean_watts == pytest.approx(100.0)


def test_unknown_power_is_no_energy() -> None:
    found = energy([PowerPoint(0.0, None), PowerPoint(2.0, 50.0), PowerPoint(4.0, None)], 0.0, 4.0, 0.3)
    assert (found.watt_hours, found.cost, found.measured_fraction, found.mean_watts) == (None, None, 0.0, None)
    assert energy([], 5.0, 5.0).watt_hours is None


def test_epochs_add_up_to_the_run() -> None:
    points = [PowerPoint(float(at), 50.0 + at % 7) for at in range(0, 601, 3)]
    epochs = energy_by_epoch(points, [0.0, 200.0, 400.0], end=600.0)
    whole = energy(points, 0.0, 600.0)
    assert len(epochs) == 3
    assert sum(epoch.watt_hours or 0 for epoch in epochs) == pytest.approx(whole.watt_hours)


def test_two_monitors_that_recorded_the_same_run_count_it_once() -> None:
    points = sorted(steady(100.0, 3600) + steady(100.0, 3600), key=lambda point: point.time)
    assert energy(points, 0.0, 3600.0).watt_hours == pytest.approx(100.0)


def test_power_is_the_machines_or_else_the_sum_of_all_cards() -> None:
    cards = {"gpu0.power_watts": 100.0, "gpu1.power_watts": 50.0}
    partly = {"gpu0.power_watts": 100.0, "gpu1.busy_percent": 50.0}
    name, points = power_points([HistoryPoint(0.0, cards), HistoryPoint(1.0, partly), HistoryPoint(2.0, {})])
    assert name == "gpu"
    assert [point.watts for point in points] == [150.0, None, None]
    name, points = power_points([HistoryPoint(0.0, cards), HistoryPoint(1.0, {**cards, "power_watts": 300.0})])
    assert name == "machine"
    assert [point.watts for point in points] == [None, 300.0]
