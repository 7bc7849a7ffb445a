"""The sampler: pace, failure, preference, trees, and its promise to leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import ModuleType

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.core.telemetry import sampler as sampler_module
from mpstui.core.telemetry.model import GpuSample, HostFacts, ProcessFacts
from mpstui.core.telemetry.sampler import Sampler, default_sampler, sources_of
from mpstui.core.telemetry.source import Facts, Host, NotYet, Source, SourceError, SourceRequest
from tests.core.telemetry.stand_ins import FakeClock, ScriptedSource, children, silent, wait_for


def cpu(percent: float | None) -> Facts:
    return Facts(host=HostFacts(cpu_percent=percent))


def test_a_source_is_not_read_oftener_than_its_period() -> None:
    clock = FakeClock()
    source = ScriptedSource(lambda request: cpu(1.0))
    sampler = Sampler([source], clock)
    for _ in range(4):
        assert sampler.sample().system.cpu_percent == 1.0
        clock.advance(0.6)
    assert source.calls == 1, "all four came within 1.8 s and the period is 2 s"
    assert sampler.sample().system.time == clock.time()
    assert source.calls == 2


def test_a_failing_source_is_unknown_with_its_reason_and_recovers() -> None:
    clock = FakeClock()
    healthy = threading.Event()

    def read(request: SourceRequest) -> Facts:
        if not healthy.is_set():
            raise SourceError("the sensor is asleep")
        return cpu(7.0)

    sampler = Sampler([ScriptedSource(read)], clock)
    first = sampler.sample().system
    assert first.cpu_percent is None
    assert first.why_unknown("cpu_percent") == "scripted: the sensor is asleep"
    assert silent(sampler) == {"scripted": "the sensor is asleep"}
    healthy.set()
    clock.advance(60)
    assert sampler.sample().system.cpu_percent == 7.0
    assert silent(sampler) == {}


def test_failures_are_retried_ever_more_seldom() -> None:
    clock = FakeClock()

    def read(request: SourceRequest) -> Facts:
        raise KeyError("anything at all")

    source = ScriptedSource(read)
    sampler = Sampler([source], clock)
    for _ in range(300):
        sampler.sample()
        clock.advance(1)
    assert 5 <= source.calls <= 10, "after 4, 8, 16, 32, then every 60 seconds"
    assert "KeyError" in silent(sampler)["scripted"]


def test_what_is_not_yet_there_is_asked_for_at_the_normal_pace() -> None:
    clock = FakeClock()

    def read(request: SourceRequest) -> Facts:
        raise NotYet("first line on its way")

    source = ScriptedSource(read)
    sampler = Sampler([source], clock)
    for _ in range(10):
        sampler.sample()
        clock.advance(2)
    assert source.calls == 10


def test_a_hanging_source_costs_its_timeout_once_and_does_not_pile_up() -> None:
    clock = FakeClock()
    release = threading.Event()

    def hang(request: SourceRequest) -> Facts:
        release.wait(60)
        return cpu(50.0)

    hanging = ScriptedSource(hang, name="hanging", timeout_seconds=0.05)
    other = ScriptedSource(lambda request: Facts(host=HostFacts(chip="Apple M3")), name="other")
    sampler = Sampler([hanging, other], clock)
    for _ in range(3):
        system = sampler.sample().system
        assert system.chip == "Apple M3"
        assert system.cpu_percent is None
        clock.advance(100)
    assert hanging.calls == 1
    assert "no answer for 0.05 s" in silent(sampler)["hanging"]
    release.set()
    wait_for(lambda: sampler.sample() is not None and "too late" in silent(sampler).get("hanging", ""))
    clock.advance(100)
    assert sampler.sample().system.cpu_percent == 50.0


def test_a_system_out_of_threads_is_a_reason_and_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    sampler = Sampler([ScriptedSource(lambda request: cpu(1.0))], FakeClock())
    assert sampler.sample().system.cpu_percent is None
    assert "can't start new thread" in silent(sampler)["scripted"]


def test_the_first_source_that_knows_a_field_wins_and_is_named() -> None:
    first_gpu = GpuSample(vendor="apple", busy_percent=40.0)
    first = ScriptedSource(lambda request: Facts(gpus=(first_gpu,)), name="ioreg")
    second_gpu = GpuSample(vendor="apple", busy_percent=99.0, power_watts=12.0)
    second = ScriptedSource(lambda request: Facts(host=HostFacts(cpu_percent=5.0), gpus=(second_gpu,)), name="macmon")
    system = Sampler([first, second], FakeClock()).sample().system
    assert (system.gpus[0].busy_percent, system.gpus[0].power_watts) == (40.0, 12.0)
    assert system.provenance == {
        "gpu0.busy_percent": "ioreg",
        "gpu0.power_watts": "macmon",
        "cpu_percent": "macmon",
    }


def test_the_card_of_one_vendor_is_not_told_as_that_of_another() -> None:
    nvidia = GpuSample(index=0, vendor="nvidia", uuid="GPU-1", name="NVIDIA RTX", busy_percent=5.0)
    amd = GpuSample(index=0, vendor="amd", busy_percent=99.0)
    reasons = {"gpu0.power_watts": "hwmon has no power1_average"}
    sampler = Sampler(
        [
            ScriptedSource(lambda request: Facts(gpus=(nvidia,)), name="NVML"),
            ScriptedSource(lambda request: Facts(gpus=(amd,), reasons=reasons), name="amdgpu"),
        ],
        FakeClock(),
    )
    system = sampler.sample().system
    assert [(gpu.index, gpu.name, gpu.busy_percent) for gpu in system.gpus] == [(0, "NVIDIA RTX", 5.0), (1, None, 99.0)]
    assert system.provenance["gpu0.busy_percent"] == "NVML"
    assert system.provenance["gpu1.busy_percent"] == "amdgpu"
    assert system.why_unknown("gpu1.power_watts") == "hwmon has no power1_average"
    assert "gpu0.power_watts" not in system.reasons


def test_a_card_is_recognised_by_its_uuid_and_else_by_its_index() -> None:
    first = GpuSample(index=0, vendor="nvidia", uuid="A", busy_percent=1.0)
    second = GpuSample(index=1, vendor="nvidia", uuid="B", busy_percent=2.0)
    watts = tuple(GpuSample(index=index, vendor="nvidia", power_watts=watts) for index, watts in ((0, 10.0), (1, 20.0)))
    swapped = tuple(
        GpuSample(index=index, vendor="nvidia", uuid=uuid, clock_mhz=mhz)
        for index, uuid, mhz in ((0, "B", 200.0), (1, "A", 100.0))
    )

    def listing(name: str, gpus: tuple[GpuSample, ...]) -> Source:
        return ScriptedSource(lambda request: Facts(gpus=gpus), name=name)

    sampler = Sampler([listing("a", (first, second)), listing("b", watts), listing("c", swapped)], FakeClock())
    found = [(gpu.busy_percent, gpu.power_watts, gpu.clock_mhz) for gpu in sampler.sample().system.gpus]
    assert found == [(1.0, 10.0, 100.0), (2.0, 20.0, 200.0)]


def test_a_card_keeps_its_number_while_another_is_silent() -> None:
    clock = FakeClock()
    lost = threading.Event()

    def nvml(request: SourceRequest) -> Facts:
        if lost.is_set():
            raise SourceError("the driver does not answer")
        return Facts(gpus=(GpuSample(vendor="nvidia"),))

    amd = ScriptedSource(lambda request: Facts(gpus=(GpuSample(busy_percent=99.0),)), name="amdgpu")
    sampler = Sampler([ScriptedSource(nvml, name="NVML"), amd], clock)
    assert [gpu.index for gpu in sampler.sample().system.gpus] == [0, 1]
    lost.set()
    clock.advance(10)
    assert [gpu.index for gpu in sampler.sample().system.gpus] == [1]


@pytest.mark.parametrize("busy", [100.6, 2000, -1, float("nan"), float("inf"), 2**60, "12", True])
def test_a_share_beyond_sense_is_refused(busy: object) -> None:
    facts = Facts(gpus=(GpuSample(busy_percent=busy),))  # type: ignore[arg-type]
    system = Sampler([ScriptedSource(lambda request: facts)], FakeClock()).sample().system
    assert system.gpus[0].busy_percent is None
    assert "refused" in system.why_unknown("gpu0.busy_percent")


def test_a_source_that_answers_with_rubbish_is_named_and_harms_nobody() -> None:
    rubbish = ScriptedSource(lambda request: Facts(gpus=(None,)), name="rubbish")  # type: ignore[arg-type]
    sampler = Sampler([rubbish, ScriptedSource(lambda request: cpu(3.0))], FakeClock())
    assert sampler.sample().system.cpu_percent == 3.0
    assert silent(sampler)["rubbish"]


def test_the_last_rounding_error_is_no_reason_to_refuse() -> None:
    system = Sampler([ScriptedSource(lambda request: cpu(100.00001))], FakeClock()).sample().system
    assert system.cpu_percent == 100


def test_more_used_than_there_is_is_refused_also_across_sources() -> None:
    total = ScriptedSource(lambda request: Facts(host=HostFacts(memory_total_bytes=100)), name="total")
    used = ScriptedSource(lambda request: Facts(host=HostFacts(memory_used_bytes=101)), name="used")
    system = Sampler([total, used], FakeClock()).sample().system
    assert system.memory_used_bytes is None
    assert system.memory_available_bytes is None
    assert "more than the total" in system.why_unknown("memory_used_bytes")
    assert "memory_used_bytes" not in system.provenance


def test_what_is_available_follows_from_total_and_used() -> None:
    facts = Facts(host=HostFacts(memory_total_bytes=100, memory_used_bytes=60))
    system = Sampler([ScriptedSource(lambda request: facts)], FakeClock()).sample().system
    assert system.memory_available_bytes == 40
    assert system.provenance["memory_available_bytes"] == "total minus used"


def test_usable_memory_is_the_control_groups_where_that_is_less() -> None:
    facts = Facts(host=HostFacts(memory_total_bytes=100, cgroup_limit_bytes=30))
    assert Sampler([ScriptedSource(lambda request: facts)], FakeClock()).sample().system.usable_memory_bytes == 30


def table_of(*states: dict[int, ProcessFacts]) -> ScriptedSource:
    """A process table that shows ``states`` one after the other."""
    waiting = iter(states)
    gives = ("process_count", "rss_bytes", "cpu_percent")
    return ScriptedSource(lambda request: Facts(processes=next(waiting)), "table", gives, per_process=True)


def process(parent: int, identity: int = 1, cpu_seconds: float = 0.0, rss: int = 10) -> ProcessFacts:
    return ProcessFacts(parent=parent, identity=identity, rss_bytes=rss, cpu_seconds=cpu_seconds)


def test_a_tree_is_summed_over_generations() -> None:
    clock = FakeClock()
    before = {5: process(1), 6: process(5), 9: process(1, rss=1000)}
    after = {5: process(1, cpu_seconds=1.0), 6: process(5, cpu_seconds=2.0), 7: process(6, cpu_seconds=1.0)}
    sampler = Sampler([], clock, table_of(before, after))
    first = sampler.sample({"run": (5,)}).trees["run"]
    assert (first.process_count, first.rss_bytes) == (2, 20)
    assert first.cpu_percent is None
    assert "two readings" in first.why_unknown("cpu_percent")
    clock.advance(2)
    second = sampler.sample({"run": (5,)}).trees["run"]
    assert (second.process_count, second.rss_bytes, second.cpu_percent) == (3, 30, 200.0)


def test_a_process_id_that_was_given_away_is_not_the_run_any_more() -> None:
    clock = FakeClock()
    sampler = Sampler([], clock, table_of({5: process(1, identity=1)}, *[{5: process(1, identity=99)}] * 2))
    assert sampler.sample({"run": (5,)}).trees["run"].process_count == 1
    clock.advance(2)
    sampler.sample({"run": (5,)})
    clock.advance(2)
    assert sampler.sample({"run": (5,)}).trees["run"].process_count == 0


def test_a_worker_whose_id_is_used_again_counts_from_its_own_start() -> None:
    clock = FakeClock()
    before = {5: process(1), 6: process(5, identity=1, cpu_seconds=500.0)}
    after = {5: process(1), 6: process(5, identity=2, cpu_seconds=1.0)}
    sampler = Sampler([], clock, table_of(before, after))
    sampler.sample({"run": (5,)})
    clock.advance(2)
    assert sampler.sample({"run": (5,)}).trees["run"].cpu_percent == 50.0


def test_a_new_tree_is_read_at_once_and_gets_no_share_from_its_past() -> None:
    clock = FakeClock()
    table = table_of({5: process(1)}, {5: process(1), 8: process(1, cpu_seconds=5000.0)})
    sampler = Sampler([], clock, table)
    sampler.sample({"old": (5,)})
    clock.advance(0.1)
    tree = sampler.sample({"new": (8,)}).trees["new"]
    assert tree.process_count == 1
    assert tree.cpu_percent is None


def test_a_failing_per_process_source_is_not_asked_at_every_sample() -> None:
    def read(request: SourceRequest) -> Facts:
        raise SourceError("denied")

    clock = FakeClock()
    source = ScriptedSource(read, "denied", ("footprint_bytes",), per_process=True)
    sampler = Sampler([source], clock, table_of(*[{5: process(1)}] * 10))
    for _ in range(10):
        sampler.sample({"run": (5,)})
        clock.advance(0.1)
    assert source.calls == 1


def footprints(known: dict[int, int | None]) -> ScriptedSource:
    facts = {pid: ProcessFacts(footprint_bytes=size) for pid, size in known.items()}
    return ScriptedSource(lambda request: Facts(processes=facts), "footprint", ("footprint_bytes",), per_process=True)


@pytest.mark.parametrize(
    ("known", "total"), [({5: 100, 6: 20}, 120), ({5: 100}, 100), ({5: 100, 6: None}, None), ({}, None)]
)
def test_a_partial_sum_is_no_sum(known: dict[int, int | None], total: int | None) -> None:
    """A process that ended meanwhile is absent; one that was refused is there with None."""
    sampler = Sampler([footprints(known)], FakeClock(), table_of({5: process(1), 6: process(5)}))
    tree = sampler.sample({"run": (5,)}).trees["run"]
    assert tree.footprint_bytes == total
    assert (total is None) == ("footprint_bytes" in tree.reasons)


def test_gpu_share_of_a_tree_and_a_counter_that_was_reset() -> None:
    clock = FakeClock()
    counters = iter([10.0, 11.0, 3.0])

    def read(request: SourceRequest) -> Facts:
        return Facts(processes={5: ProcessFacts(gpu_seconds=next(counters))})

    gpu = ScriptedSource(read, "clients", ("gpu_percent",), per_process=True)
    sampler = Sampler([gpu], clock, table_of(*[{5: process(1)}] * 3))
    shares = []
    for _ in range(3):
        shares.append(sampler.sample({"run": (5,)}).trees["run"].gpu_percent)
        clock.advance(2)
    assert shares == [None, 50.0, None]


def test_per_process_sources_rest_while_nothing_is_watched() -> None:
    source = footprints({})
    Sampler([source], FakeClock(), table_of({})).sample()
    assert source.calls == 0


def test_close_reaches_every_source_even_behind_a_broken_one() -> None:
    class Broken(ScriptedSource):
        def close(self) -> None:
            raise RuntimeError("cannot close")

    other = ScriptedSource(lambda request: cpu(1.0))
    Sampler([Broken(lambda request: cpu(1.0)), other]).close()
    assert other.closed


@pytest.fixture
def busy_child() -> Iterator[subprocess.Popen[bytes]]:
    """A child that keeps one core busy, with a child of its own that sleeps."""
    code = "import subprocess, sys; c = subprocess.Popen(['sleep', '60']); print(flush=True)\nwhile True: pass"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    sleeper = psutil.Process(child.pid).children()[0]
    child.kill()
    sleeper.kill()
    child.communicate()


def test_this_machine_for_real(busy_child: subprocess.Popen[bytes]) -> None:
    sampler = default_sampler()
    try:
        snapshot = sampler.sample({"run": (busy_child.pid,)})
    finally:
        sampler.close()
    assert snapshot.system.memory_total_bytes == psutil.virtual_memory().total
    assert snapshot.trees["run"].process_count == 2
    assert (snapshot.trees["run"].rss_bytes or 0) > 2**20


def test_no_child_is_left_and_no_name_appears_twice() -> None:
    before = children()
    sampler = default_sampler()
    sampler.sample({"self": (os.getpid(),)})
    sampler.close()
    assert children() <= before
    names = [report.name for report in sampler.reports()]
    assert len(names) == len(set(names))


def test_apple_sources_fail_softly_on_a_machine_without_them() -> None:
    sampler = default_sampler(Host(platform="darwin", which=lambda name: None), FakeClock())
    snapshot = sampler.sample({"self": (os.getpid(),)})
    if sys.platform != "darwin":
        assert snapshot.system.memory_used_bytes is None
        assert "cannot be started" in snapshot.system.why_unknown("memory_used_bytes")
        assert "cannot be started" in snapshot.system.why_unknown("gpu0.busy_percent")
        assert snapshot.trees["self"].footprint_bytes is None
    unverified = {report.name for report in sampler.reports() if not report.verified}
    assert {"ioreg AGXDeviceUserClient", "notifyutil", "proc_pid_rusage"} <= unverified
    sampler.close()


def test_sources_of_other_packages_are_asked_last_and_cost_nothing_when_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(host: Host) -> list[Source]:
        raise RuntimeError("no such driver")

    good, bad = ModuleType("good"), ModuleType("bad")
    source = ScriptedSource(lambda request: cpu(1.0), name="amdgpu")
    vars(good)["sources"], vars(bad)["sources"] = (lambda host: [source]), broken
    monkeypatch.setattr(sampler_module, "plugin_modules", lambda group: (bad, good, ModuleType("empty")))
    found = sources_of(Host(platform="linux"))
    assert found[-1] is source
    assert len(found) > 1


@pytest.mark.macos
@pytest.mark.skipif(sys.platform != "darwin", reason="needs a real Mac")
def test_a_real_mac_answers_every_default_source() -> None:
    sampler = default_sampler()
    snapshot = sampler.sample({"self": (os.getpid(),)})
    sampler.close()
    assert silent(sampler) == {}
    assert snapshot.system.gpus[0].busy_percent is not None
    assert snapshot.trees["self"].footprint_bytes is not None


def test_a_mac_without_macmon_says_how_to_know_its_watts() -> None:
    host = Host(platform="darwin", which=lambda program: None)
    names = {source.name: source for source in sources_of(host)}
    sampler = Sampler([names["macmon"]])
    system = sampler.sample().system
    assert system.power_watts is None
    assert "brew install macmon" in system.why_unknown("power_watts")
    sampler.close()
