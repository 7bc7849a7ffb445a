"""Energy counts what was measured, says how much that was, and invents nothing."""

from __future__ import annotations

import pytest

from mpstui.core.telemetry.energy import EnergyMeter, RunEnergy, run_energy
from mpstui.core.telemetry.history import HistoryPoint, coarsened, gpu_watts
from mpstui.core.telemetry.model import GpuSample, SystemSample


def history(
    seconds: int,
    watts: float | None = 100.0,
    *,
    epoch_seconds: float = 60.0,
    start: int = 0,
    meter: EnergyMeter | None = None,
    attempt: int = 1,
    first_epoch: int = 1,
) -> list[HistoryPoint]:
    """A point every 5 s, with an epoch that changes every ``epoch_seconds``."""
    meter = meter or EnergyMeter()
    points = []
    for at in range(start, start + seconds + 1, 5):
        meter.add(float(at), {"machine": watts, "gpu": None})
        epoch = first_epoch + (at - start) // epoch_seconds
        points.append(HistoryPoint(float(at), {"epoch": epoch, "attempt": attempt, **meter.counters}))
    return points


def found(points: list[HistoryPoint], started: float | None = 0.0) -> RunEnergy:
    energy = run_energy(points, started)
    assert energy is not None
    return energy


def test_steady_power() -> None:
    energy = found(history(3600))
    assert energy.whose == "machine"
    assert energy.watt_hours == pytest.approx(100.0)
    assert energy.measured_fraction == pytest.approx(1.0)


def test_rising_power_is_added_up_by_trapezoids() -> None:
    meter = EnergyMeter()
    for time, watts in ((1000.0, 0.0), (1020.0, 200.0), (1030.0, 200.0)):
        meter.add(time, {"gpu": watts})
    assert meter.counters == {"energy.gpu_joules": 4000.0, "energy.gpu_seconds": 30.0}


def test_a_gap_is_not_filled_in() -> None:
    meter = EnergyMeter()
    energy = found(history(1800, meter=meter) + history(600, start=3000, meter=meter))
    assert energy.watt_hours == pytest.approx(100.0 * 2400 / 3600)
    assert energy.measured_fraction == pytest.approx(2400 / 3600)


def test_a_run_that_was_looked_at_late_says_so() -> None:
    assert found(history(600, start=5400)).measured_fraction == pytest.approx(0.1)
    assert found(history(600), started=None).measured_fraction is None


def test_unknown_power_is_no_energy() -> None:
    meter = EnergyMeter()
    for time, watts in ((0.0, None), (2.0, 50.0), (4.0, None), (6.0, 50.0)):
        meter.add(time, {"machine": watts})
    assert meter.counters == {}
    assert run_energy([HistoryPoint(6.0, {"epoch": 1})], 0.0) is None
    assert run_energy([], 0.0) is None


def test_an_epoch_is_the_mean_of_those_measured_whole() -> None:
    energy = found(history(600, epoch_seconds=60.0))
    assert energy.epochs == 9, "the first may have begun before anybody looked"
    assert energy.epoch_watt_hours == pytest.approx(100.0 / 60)


def test_epochs_shorter_than_a_sample_are_counted() -> None:
    energy = found(history(600, epoch_seconds=2.0))
    assert energy.epoch_watt_hours == pytest.approx(100.0 * 2 / 3600, rel=0.02)


def test_an_epoch_with_a_hole_or_cut_by_a_restart_does_not_count() -> None:
    meter = EnergyMeter()
    holed = history(90, meter=meter) + history(20, start=200, meter=meter, first_epoch=3)
    assert found(holed).epoch_watt_hours is None
    meter = EnergyMeter()
    restarted = history(70, meter=meter) + history(70, start=75, meter=meter, attempt=2, first_epoch=1)
    assert found(restarted).epoch_watt_hours is None


def test_thinning_the_history_loses_no_energy() -> None:
    points = history(24 * 3600, epoch_seconds=1200.0)
    thin = points
    for _ in range(6):
        thin = coarsened(thin)
    assert len(thin) < len(points) / 20
    assert found(thin).watt_hours == pytest.approx(2400.0)
    assert found(thin).measured_fraction == pytest.approx(1.0)


def test_a_new_screen_counts_on() -> None:
    first = history(600)
    second = history(600, start=700, meter=EnergyMeter(first[-1]))
    assert found(first + second).watt_hours == pytest.approx(100.0 * 1200 / 3600)


def test_the_machines_energy_is_never_mixed_with_the_cards() -> None:
    meter = EnergyMeter()
    for at in range(0, 100, 5):
        meter.add(float(at), {"machine": 300.0 if at >= 50 else None, "gpu": 100.0})
    energy = found([HistoryPoint(95.0, meter.counters)])
    assert energy.whose == "machine"
    assert energy.watt_hours == pytest.approx(300.0 * 45 / 3600)
    assert energy.measured_fraction == pytest.approx(45 / 95)


def test_cards_are_added_up_only_where_all_of_them_tell() -> None:
    cards = (GpuSample(index=0, power_watts=100.0), GpuSample(index=1, power_watts=50.0))
    assert gpu_watts(SystemSample(time=0.0, gpus=cards)) == 150.0
    assert gpu_watts(SystemSample(time=0.0, gpus=(*cards, GpuSample(index=2)))) is None
    assert gpu_watts(SystemSample(time=0.0)) is None
