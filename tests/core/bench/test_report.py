"""The report: speedups against the right yardstick, unknown stays unknown, and pictures that any reader can read."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mpstui.core.bench.measure import BenchConfig, BenchPlan, Measurement, bench_configs
from mpstui.core.bench.report import Bar, BenchReport, Curve, Surroundings, bar_chart, curve_chart, report_folder, save
from mpstui.core.bench.training import Spread
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home

SVG = "{http://www.w3.org/2000/svg}"


MACHINE = Surroundings(system="Darwin", architecture="arm64", cores=8, load_average=1.0)


def report(step_ms: dict[str, float | None], samples: float | None = 32.0, *, complete: bool = True) -> BenchReport:
    plan = BenchPlan(task="cifar", configs=bench_configs("mps"), budget_seconds=1, measure_seconds=1)

    def one(config: BenchConfig) -> Measurement:
        value = step_ms.get(config.name)
        if value is None:
            return Measurement(config=config, error="<no> & never")
        seconds = value / 1000
        spread = Spread(seconds, seconds * 0.9, seconds * 1.2, 5)
        return Measurement(config=config, step_seconds=spread, samples_per_step=samples, runs=1)

    found = {config: one(config) for config in plan.configs}
    return BenchReport(plan=plan, device="mps", machine=MACHINE, started=0.0, measurements=found, complete=complete)


TIMES: dict[str, float | None] = {"cpu": 400, "mps": 100, "made between steps": 100, "2 spawned workers": 80}


def test_devices_are_held_against_the_cpu_and_loaders_against_batches_made_between_steps() -> None:
    found = report(TIMES).as_json()
    speedups = {row["rung"]: row["speedup"] for row in found["rungs"] + found["loaders"]}
    assert speedups["mps"] == pytest.approx(4.0)
    assert speedups["2 spawned workers"] == pytest.approx(1.25)
    assert speedups["mps + bf16"] is None


def test_steps_of_unknown_size_are_not_compared_as_samples() -> None:
    found = report(TIMES, samples=None).as_json()["rungs"][1]
    assert found["samples_per_second"] is None
    assert found["speedup"] is None
    assert found["steps_per_second"] == pytest.approx(10.0)


def test_the_picture_holds_every_configuration_and_the_reason_of_what_is_missing() -> None:
    picture = report(TIMES, complete=False).svg()
    words = [element.text for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    assert {config.name for config in bench_configs("mps")} <= set(words)
    assert "<no> & never" in words
    assert "mpstui bench cifar (not complete)" in words
    assert "prefers-color-scheme:dark" in picture


def test_a_busy_machine_is_told_from_an_idle_one() -> None:
    assert not MACHINE.busy
    assert Surroundings(system="Linux", architecture="x86_64", cores=2, load_average=1.5).busy
    assert "Darwin arm64 · 8 cores · load 1.0 at the start" in report(TIMES).svg()


def test_bars_lie_within_the_paper() -> None:
    root = ElementTree.fromstring(bar_chart("t", "f", [("g", [Bar("a", 1.0, 0.5, 9.0), Bar("b", 9.0, 8.0, 10.0)])]))
    right = [
        float(bar.attrib["x"]) + float(bar.attrib["width"]) for bar in root.iter(f"{SVG}rect") if "x" in bar.attrib
    ]
    assert len(right) == 2
    assert max(right) < float(root.attrib["width"]) - 100


def test_a_curve_has_gaps_where_it_was_not_finite() -> None:
    curves = [Curve("one", [1, 2, 3, 4], [1.0, float("nan"), None, 4.0]), Curve("none", [], [])]
    paths = [
        path.attrib["d"] for path in ElementTree.fromstring(curve_chart("t", "f", curves, "x", "y")).iter(f"{SVG}path")
    ]
    assert paths[1].count("M") == 2
    assert paths[2] == ""


def test_it_is_saved_whole_and_told_where_it_cannot_be(tmp_path: Path) -> None:
    found = report(TIMES)
    folder = report_folder(Home(tmp_path, tmp_path), "cifar", 0.0)
    save(folder, found.as_json(), found.svg())
    assert folder == tmp_path / "bench" / "19700101-000000-cifar"
    assert json.loads((folder / "report.json").read_text())["complete"] is True
    assert (folder / "report.svg").read_text() == found.svg()
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationError, match="cannot be written"):
        save(tmp_path / "file", found.as_json(), "")
