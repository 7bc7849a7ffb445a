"""Several processes: started together, held against one alone, refused where there are not so many devices."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mpstui.core.bench.measure import BenchConfig, BenchPlan, Measurement, run_bench
from mpstui.core.bench.report import Surroundings
from mpstui.core.bench.scaling import ScalingReport, scaling_configs
from mpstui.core.bench.training import Spread
from tests.core.bench.test_measure import TRAINER

TORCHRUN = """
import os, runpy, sys
at = sys.argv.index("-m")
assert "--local-addr=localhost" in sys.argv[:at], sys.argv
with open(os.environ["SEEN"], "a") as seen:
    print('"' + sys.argv[at - 1] + '"', file=seen)
module, sys.argv = sys.argv[at + 1], sys.argv[at + 1:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def _plan(configs: tuple[BenchConfig, ...], *words: str) -> BenchPlan:
    return BenchPlan(task="cifar", configs=configs, budget_seconds=60.0, measure_seconds=1.0, arguments=words)


def _report(plan: BenchPlan, device: str, *speeds: float | None) -> ScalingReport:
    found = {}
    for config, speed in zip(plan.configs, speeds, strict=True):
        spread = Spread.of([1 / speed]) if speed else None
        found[config] = Measurement(config=config, step_seconds=spread, samples_per_step=1.0, error=config.refusal)
    around = Surroundings(system="Linux", architecture="x86_64", cores=4, load_average=0.0)
    return ScalingReport(
        plan=plan, device=device, machine=around, started=0.0, measurements=found, complete=True, why_cpu="no GPU"
    )


def test_processes_are_started_together_with_one_batch_each(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    (tmp_path / "torch" / "distributed").mkdir(parents=True)
    (tmp_path / "torch" / "distributed" / "run.py").write_text(TORCHRUN)
    for package in ("torch", "torch/distributed"):
        (tmp_path / package / "__init__.py").touch()
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "SEEN": str(tmp_path / "seen")}
    configs = scaling_configs("cpu", [2], available=None, cores=4, shard=True)
    plan = _plan(configs, "--batch-size", "32")
    found = {one.config: one for one in run_bench(plan, python=sys.executable, environ=environ)}
    assert [(one.config.name, one.error) for one in found.values()] == [("1 process", None), ("2 processes", None)]
    first, run, second = (json.loads(line) for line in (tmp_path / "seen").read_text().splitlines())
    assert run == "--nproc-per-node=2"
    assert "--shard" in second
    assert [word for word in second if word != "--shard"] == first
    assert not {"--precision", "--longest-step"} & set(first)
    assert first[first.index("--compile") :][:4] == ["--compile", "off", "--batch-size", "32"]  # what is asked for wins
    assert [config.threads for config in configs] == [2, 2]


def test_efficiency_is_the_share_of_one_devices_speed_that_each_keeps() -> None:
    configs = scaling_configs("cuda", [4, 2], available=2, cores=16)
    assert [config.name for config in configs] == ["1 GPU", "2 GPUs", "4 GPUs"]
    report = _report(_plan(configs), "cuda", 100.0, 190.0, None)
    assert [report.efficiency(one) for one in report.rows] == pytest.approx([1.0, 0.95, None])
    rows = report.as_json()["scaling"]
    assert [row["error"] for row in rows] == [None, None, "this machine has 2 GPUs"]
    assert report.notes == []
    drawn = ElementTree.fromstring(report.svg())
    assert "efficiency 1.00 on 1, 0.95 on 2" in "".join(drawn.itertext())


def test_on_the_cpu_it_says_that_these_are_processes_on_shared_cores() -> None:
    report = _report(_plan(scaling_configs("cpu", [1, 2], available=2, cores=2)), "cpu", 10.0, 12.0)
    (note,) = report.notes
    assert note.startswith("no GPU: these are processes on the cores of one machine, each on 1 thread;")


def test_a_mac_has_one_device() -> None:
    one, two = scaling_configs("mps", [2], available=None, cores=8)
    assert one.refusal is None
    assert "one MPS device" in (two.refusal or "")


def test_without_the_first_nothing_is_held_against_it() -> None:
    report = _report(_plan(scaling_configs("cuda", [1, 2], available=2, cores=4)), "cuda", None, 190.0)
    assert [report.efficiency(one) for one in report.rows] == [None, None]
    ElementTree.fromstring(report.svg())
