"""How far a training is from dying, on series whose answer is known."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpstui.core.telemetry.headroom import (
    MemoryPoint,
    headroom,
    is_growing,
    memory_point,
    slope,
    thinned,
)
from mpstui.core.telemetry.model import GpuSample, SystemSample, TreeSample

GIB = 2**30


def series(count: int = 40, driver_growth: float = 0.0, footprint_growth: float = 0.0) -> list[MemoryPoint]:
    """One point every 10 s on a 16 GiB machine."""
    return [
        MemoryPoint(
            time=10.0 * index,
            allocated=4 * GIB,
            driver=6 * GIB + int(10 * index * driver_growth),
            limit=12 * GIB,
            footprint=5 * GIB + int(10 * index * footprint_growth),
            system_used=7 * GIB,
            system_limit=16 * GIB,
            swap_used=0,
            pressure="normal",
        )
        for index in range(count)
    ]


def test_the_nearest_limit_is_named() -> None:
    points = series()
    found = headroom(points)
    assert found is not None
    assert (found.nearest, found.used_fraction) == ("device", 0.5)
    assert found.warnings == ()
    tight = headroom([*points, replace(points[-1], time=400.0, system_used=15 * GIB)])
    assert tight is not None
    assert tight.nearest == "system"
    assert tight.warnings == ("System memory is at 94% of its limit.",)


def test_time_to_the_limit_at_the_present_slope() -> None:
    found = headroom(series(driver_growth=GIB / 600))
    assert found is not None
    assert found.growth_bytes_per_second == pytest.approx(GIB / 600, rel=1e-3)
    left = 12 * GIB - (6 * GIB + 390 * GIB / 600)
    assert found.seconds_to_limit == pytest.approx(left / (GIB / 600), rel=1e-3)


def test_a_limit_that_is_further_but_comes_sooner_counts_for_the_time() -> None:
    found = headroom(series(footprint_growth=GIB / 400, count=20))
    assert found is not None
    assert (found.nearest, found.soonest) == ("device", "footprint")
    assert found.growth_bytes_per_second == pytest.approx(GIB / 400, rel=1e-3)
    assert found.seconds_to_limit == pytest.approx(7 * 400 - 190, rel=1e-3)


def test_steady_and_sawtooth_memory_are_not_growing() -> None:
    found = headroom(series())
    assert found is not None
    assert found.seconds_to_limit is None
    saw = [(10.0 * index, float(index % 10)) for index in range(60)]
    assert not is_growing(saw)


def test_a_drift_of_the_machine_is_no_countdown() -> None:
    drifting = [replace(point, system_used=7 * GIB + 200_000 * index) for index, point in enumerate(series(60))]
    found = headroom(drifting)
    assert found is not None
    assert (found.soonest, found.seconds_to_limit) == (None, None)


@pytest.mark.parametrize("gap", [0.0, 300.0])
@pytest.mark.parametrize(("before", "after"), [(20, 20), (12, 11), (9, 15), (15, 9), (28, 29), (40, 2)])
def test_what_jumped_in_a_gap_or_at_once_is_no_countdown(gap: float, before: int, after: int) -> None:
    """A neighbour came while nobody looked."""
    low = [replace(point, system_used=GIB + int(point.time)) for point in series(before)]
    end = low[-1].time + gap
    high = [replace(low[0], time=end + 10 * (i + 1), system_used=4 * GIB + i * 1000) for i in range(after)]
    found = headroom([*low, *high])
    assert found is not None
    assert found.seconds_to_limit is None
    assert found.warnings == ()


def test_what_grows_on_behind_a_jump_is_counted_down() -> None:
    growing = series(driver_growth=GIB / 600, count=60)
    jumped = [
        replace(point, driver=(point.driver or 0) - (2 * GIB if i < 20 else 0)) for i, point in enumerate(growing)
    ]
    found = headroom(jumped)
    assert found is not None
    assert found.growth_bytes_per_second == pytest.approx(GIB / 600, rel=1e-3)


def test_a_start_that_allocates_for_a_minute_is_no_countdown() -> None:
    for count, foretold in ((7, False), (12, False), (20, True)):
        found = headroom(series(driver_growth=GIB / 600, count=count))
        assert found is not None
        assert (found.seconds_to_limit is not None) is foretold, count


def test_a_limit_that_is_days_away_is_no_news() -> None:
    found = headroom(series(driver_growth=100.0))
    assert found is not None
    assert found.growth_bytes_per_second is not None
    assert found.seconds_to_limit is None


def test_unknown_is_none_and_not_safe() -> None:
    assert headroom([]) is None
    assert headroom([MemoryPoint(time=0.0, driver=5)]) is None
    partly = headroom([MemoryPoint(time=0.0, system_used=8, system_limit=10)])
    assert partly is not None
    assert (partly.nearest, partly.seconds_to_limit) == ("system", None)


def test_the_footprint_does_not_count_against_the_memory_of_a_separate_card() -> None:
    points = [replace(point, footprint=12 * GIB) for point in series()]
    unified, separate = headroom(points), headroom(points, unified=False)
    assert unified is not None
    assert separate is not None
    assert (unified.nearest, separate.nearest) == ("footprint", "device")


def test_beyond_the_recommended_maximum_there_is_no_headroom_left() -> None:
    found = headroom([replace(point, driver=13 * GIB) for point in series()])
    assert found is not None
    assert found.used_fraction > 1


def test_swap_growth_and_pressure_are_warned_of() -> None:
    points = series()
    swapping = [replace(point, swap_used=int(max(0.0, point.time - 340) * GIB / 20)) for point in points]
    found = headroom([*swapping[:-1], replace(swapping[-1], pressure="critical")])
    assert found is not None
    assert any("Swap grew by 2.5 GiB" in warning for warning in found.warnings)
    assert found.warnings[0].startswith("The system is critically")


@pytest.mark.parametrize(("grown", "warned"), [(GIB, True), (GIB - 1, False)])
def test_swap_is_warned_of_from_a_gibibyte_a_minute(grown: int, warned: bool) -> None:
    points = series()
    found = headroom([*points[:-1], replace(points[-1], swap_used=grown)])
    assert found is not None
    assert bool(found.warnings) == warned


def test_a_leak_that_the_allocator_cannot_see() -> None:
    def leaks(points: list[MemoryPoint]) -> bool:
        found = headroom(points)
        return found is not None and any("outside the allocator" in warning for warning in found.warnings)

    assert leaks(series(footprint_growth=1e6))
    assert not leaks(series(footprint_growth=1e6, driver_growth=1e6))
    assert not leaks([replace(point, driver=None) for point in series(footprint_growth=1e6)])


def test_slope_is_not_bent_by_outliers() -> None:
    points = [(float(index), 3.0 * index) for index in range(50)]
    points[10], points[40] = (10.0, 1e9), (40.0, -1e9)
    assert slope(points) == pytest.approx(3.0)
    assert slope(points[:5]) is None


def test_noise_is_rarely_called_growth() -> None:
    noise = random.Random(7)
    calls = sum(is_growing([(float(i), noise.gauss(0, 1)) for i in range(50)]) for _ in range(300))
    assert calls <= 9, "one in a hundred is expected"


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(-1e9, 1e9)), max_size=200))
def test_trends_never_raise_and_are_finite(points: list[tuple[float, float]]) -> None:
    ordered = sorted(points)
    found = slope(ordered)
    assert found is None or not math.isnan(found)
    is_growing(ordered)


def test_thinning_keeps_both_ends() -> None:
    points = [(float(index), 0.0) for index in range(1000)]
    kept = thinned(points, 60)
    assert (len(kept), kept[0], kept[-1]) == (60, points[0], points[-1])


def test_a_point_from_the_machine_the_tree_and_the_heartbeat() -> None:
    system = SystemSample(time=1.0, memory_total_bytes=100, memory_used_bytes=60, swap_used_bytes=2, pressure="warn")
    reported = {"allocated": 10, "driver": 20, "limit": 70, "footprint": 33, "rss": 5}
    found = memory_point(system, TreeSample(time=1.0, footprint_bytes=30), reported)
    assert (found.footprint, found.limit, found.driver, found.device_used) == (30, 70, 20, None)
    assert (found.system_used, found.system_limit, found.swap_used) == (60, 100, 2)
    assert memory_point(system, None, reported).footprint == 33
    assert memory_point(system).limit is None


def test_on_a_card_of_its_own_everybodys_memory_counts() -> None:
    card = GpuSample(memory_used_bytes=90, memory_total_bytes=100)
    found = memory_point(SystemSample(time=1.0), None, {"driver": 20, "allocated": 10, "limit": 70}, card)
    assert (found.device_used, found.limit) == (90, 100)
    judged = headroom([found], unified=False)
    assert judged is not None
    assert judged.used_fraction == 0.9


def test_inside_a_control_group_its_own_use_counts() -> None:
    system = SystemSample(
        time=1.0, memory_total_bytes=100, memory_used_bytes=60, cgroup_limit_bytes=10, cgroup_used_bytes=9
    )
    found = memory_point(system)
    assert (found.system_used, found.system_limit) == (9, 10)
