"""Every configuration is measured or says why not, within its time; one that fails does not end the rest."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.core.bench.measure import BenchConfig, BenchPlan, BenchProgress, Measurement, bench_configs, run_bench
from mpstui.core.model.errors import UsageError
from tests.waiting import wait_until

TRAINER = """
import json, os, sys, time
words = sys.argv[1:]
value = lambda flag, other="": words[words.index(flag) + 1] if flag in words else other
folder = os.environ["MPSTUI_RUN_DIR"]
with open(os.environ["SEEN"], "a") as seen:
    print(json.dumps(words), file=seen)
def put(name, **record):
    with open(f"{folder}/{name}", "a") as file:
        print(json.dumps(record), file=file)
if words[0] != "cifar":
    sys.exit(print("trainer: there is no task", file=sys.stderr) or 2)
if value("--workers") == "4":
    sys.exit("RuntimeError: no more processes")
if value("--compile") == "on":
    put("events.jsonl", event="note", text="compiling failed (no compiler): training without it", unmet="compile")
precision = "fp32" if os.environ.get("NO_BF16") else value("--precision")
if precision != value("--precision"):
    put("events.jsonl", event="note", text="bfloat16 needs a newer chip: training in fp32", unmet="precision")
if "--longest-step" in words:
    put("events.jsonl", event="note", text="steps of 8 samples instead of 32", samples_per_step=8)
beat = {"memory": {"rss": 1000, "driver": 3000}, "device": {"precision": precision}}
with open(f"{folder}/attempts/1/heartbeat.json", "w") as file:
    json.dump(beat, file)
speed = {"cpu": 10.0, "mps": 40.0}[value("--device")] * (2 if precision == "bf16" else 1)
size = float(value("--batch-size", "8" if "--longest-step" in words else "32"))
def row(step):
    slow_start = 100.0 if step else 0.0
    speeds = {"steps_per_second": speed, "samples_per_second": speed * size}
    return json.dumps({"time": slow_start + step / speed, "step": step, "loss": 1.0, **speeds})
# All rows in one piece: a trainer is ended once enough of them have been read.
with open(f"{folder}/metrics.jsonl", "a") as file:
    file.write("\\n".join([*(row(step) for step in range(0, 200, 5)), '{"torn']))
if os.environ.get("STAY"):
    with open(os.environ["STAY"], "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment whose `trainer` is a small file of ours."""
    (tmp_path / "trainer.py").write_text(TRAINER)
    return {**os.environ, "PYTHONPATH": str(tmp_path), "SEEN": str(tmp_path / "seen")}


def plan(*found: BenchConfig, **changed: object) -> BenchPlan:
    usual: dict[str, object] = {"task": "cifar", "budget_seconds": 60.0, "measure_seconds": 1.0}
    return BenchPlan(configs=found, **{**usual, **changed})  # type: ignore[arg-type]


def measured(chosen: BenchPlan, environ: dict[str, str]) -> dict[str, Measurement]:
    return {one.config.name: one for one in run_bench(chosen, python=sys.executable, environ=environ)}


def words_seen(environ: dict[str, str]) -> list[list[str]]:
    return [json.loads(line) for line in Path(environ["SEEN"]).read_text().splitlines()]


def test_every_configuration_is_measured_or_says_why_not(environ: dict[str, str]) -> None:
    found = measured(plan(*bench_configs("mps")), environ)
    assert [name for name, one in found.items() if one.step_seconds] == [
        "cpu",
        "mps",
        "made between steps",
        "mps + bf16",
        "ready in memory",
        "2 spawned workers",
    ]
    speeds = [found[name].steps_per_second for name in ("cpu", "mps", "mps + bf16")]
    assert speeds == pytest.approx([10.0, 40.0, 80.0])
    assert found["mps"].samples_per_second == pytest.approx(1280.0)
    assert found["mps"].memory_bytes == 3000
    assert found["4 spawned workers"].error == "RuntimeError: no more processes"
    assert found["mps + bf16 + compile"].error == "compiling failed (no compiler): training without it"
    assert found["made between steps"].step_seconds == found["mps"].step_seconds


def test_what_was_measured_twice_is_taken_together(environ: dict[str, str]) -> None:
    config = BenchConfig("cpu", "devices", "cpu")
    once, twice = (measured(plan(config, repeats=times), environ)["cpu"] for times in (1, 2))
    assert twice.runs == 2
    assert once.step_seconds
    assert twice.step_seconds
    assert twice.step_seconds.count == 2 * once.step_seconds.count


def test_a_configuration_that_trains_in_another_precision_is_not_measured(environ: dict[str, str]) -> None:
    config = BenchConfig("mps + bf16", "devices", "mps", "bf16")
    found = measured(plan(config), {**environ, "NO_BF16": "1"})["mps + bf16"]
    assert found.step_seconds is None
    assert found.error == "bfloat16 needs a newer chip: training in fp32"


def test_a_configuration_that_cannot_run_here_says_so_without_being_tried(environ: dict[str, str]) -> None:
    found = measured(plan(*bench_configs("cpu", {"cuda": "there is no GPU"}, loaders=False)), environ)
    assert found["cuda"].error == "there is no GPU"
    assert all("cuda" not in words for words in words_seen(environ))


def test_the_first_step_size_is_every_ones_on_the_cpu(environ: dict[str, str]) -> None:
    found = measured(plan(*bench_configs("cpu", loaders=False), longest_step_seconds=0.5), environ)
    first, second, *_ = words_seen(environ)
    assert first[first.index("--longest-step") + 1] == "0.5"
    assert second[second.index("--batch-size") + 1] == "8"
    assert "--longest-step" not in second
    assert {one.samples_per_step for one in found.values()} == {8.0}


def test_a_persons_own_sizes_are_kept(environ: dict[str, str]) -> None:
    chosen = plan(BenchConfig("cpu", "devices", "cpu"), longest_step_seconds=0.5, arguments=("--batch-size", "64"))
    assert measured(chosen, environ)["cpu"].samples_per_step == 64.0
    assert "--longest-step" not in words_seen(environ)[0]


def test_an_unknown_task_is_wrong_use(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="there is no task"):
        measured(plan(*bench_configs("cpu"), task="cifr"), environ)


def test_a_training_that_has_shown_enough_is_ended(environ: dict[str, str], tmp_path: Path) -> None:
    began = time.monotonic()
    chosen = plan(BenchConfig("cpu", "devices", "cpu"), budget_seconds=600.0)
    found = measured(chosen, {**environ, "STAY": str(tmp_path / "pid")})
    assert found["cpu"].step_seconds
    assert time.monotonic() - began < 300


def test_an_interrupt_ends_the_training_too(environ: dict[str, str], tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def interrupt(progress: BenchProgress) -> None:
        if pid_file.exists() and pid_file.read_text():
            raise KeyboardInterrupt

    chosen = plan(BenchConfig("cpu", "devices", "cpu"), measure_seconds=1e9)
    with pytest.raises(KeyboardInterrupt):
        list(run_bench(chosen, python=sys.executable, environ={**environ, "STAY": str(pid_file)}, watch=interrupt))
    assert wait_until(lambda: not psutil.pid_exists(int(pid_file.read_text())))


def test_what_the_budget_leaves_no_time_for_is_not_tried(environ: dict[str, str]) -> None:
    now = iter([*(float(at) for at in range(20)), *(1000.0 + at for at in range(1000))])
    found = run_bench(plan(*bench_configs("mps")), python=sys.executable, environ=environ, monotonic=lambda: next(now))
    errors = {one.config.name: one.error for one in found}
    assert errors["cpu"] is None
    assert (
        errors["mps + bf16 + compile"]
        == "the budget of 60 s was spent before it; --budget gives every configuration more"
    )
    assert len(words_seen(environ)) < len(errors)


def test_a_configuration_out_of_time_says_how_far_it_came(environ: dict[str, str], tmp_path: Path) -> None:
    now = iter(range(0, 10_000, 40))
    (tmp_path / "trainer.py").write_text("import time; time.sleep(600)")
    config = BenchConfig("cpu + compile", "devices", "cpu", compile="on")
    found = list(run_bench(plan(config), python=sys.executable, environ=environ, monotonic=lambda: float(next(now))))
    assert found[0].error == "it was still compiling when its 12 s were over; --budget gives every configuration more"
