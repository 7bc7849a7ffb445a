"""`mpstui bench` as a command: tables and JSON, a report that survives Ctrl-C, two profiles side by side."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil  # type: ignore[import-untyped]
import pytest

from mpstui.cli.bench import LiveLine
from tests import standin
from tests.core.bench.test_measure import TRAINER
from tests.ending import end_runs
from tests.waiting import wait_until
from tests.warm import CAN_FORK, warm

RACER = """
import sys, time
delay = float(sys.argv[1])
if delay > 0.01:
    print("Warning: The operator 'aten::nonzero' is not currently supported on the MPS backend and will fall back to"
          " run on the CPU. This may have performance implications.", file=sys.stderr)
for step in range(1, 100000):
    time.sleep(delay)
    if step % 10 == 0:
        print(f"step {step}/100000 loss {2.0 / step:.6f}", flush=True)
"""

Bench = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A machine whose trainer is a small file, and where torch is known to be missing any accelerator."""
    (tmp_path / "trainer.py").write_text(TRAINER)
    (tmp_path / "torch.py").write_text("raise ImportError")
    return {**os.environ, "PYTHONPATH": str(tmp_path), "SEEN": str(tmp_path / "seen"), "COLUMNS": "60"}


@pytest.fixture
def bench(environ: dict[str, str], tmp_path: Path) -> Iterator[Bench]:
    def call(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        if CAN_FORK:
            return warm("mpstui").run("bench", *words, env={**environ, **more}, cwd=tmp_path, timeout=300)
        command = [sys.executable, "-m", "mpstui", "bench", *words]
        return subprocess.run(
            command, env={**environ, **more}, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )

    yield call
    end_runs(Path(environ["MPSTUI_HOME"]))  # where the command was killed, having taken too long


def test_a_table_for_sixty_columns_and_a_report_beside_it(bench: Bench, tmp_path: Path) -> None:
    done = bench("cifar", "--seconds", "1", "--out", str(tmp_path / "report"))
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines()[:-2])) <= 60
    assert "cpu + bf16" in done.stdout
    assert "sees no" in done.stdout
    assert "RuntimeError: no more processes" in done.stdout
    assert "[0/7] cpu: at most" in done.stderr
    document = json.loads((tmp_path / "report" / "report.json").read_text())
    assert document["complete"] is True
    ElementTree.parse(tmp_path / "report" / "report.svg")


def test_the_same_as_json(bench: Bench) -> None:
    done = bench("cifar", "--seconds", "1", "--json", "--no-loaders", "--set", "width=4")
    found = json.loads(done.stdout)
    assert found["device"] == "cpu"
    assert found["arguments"] == ["--width", "4"]
    rows = {row["rung"]: row for row in found["rungs"]}
    assert rows["cpu + bf16"]["speedup"] == pytest.approx(2.0)
    assert rows["cpu"]["step_seconds"]["median"] == pytest.approx(0.1)
    assert rows["cpu + bf16 + compile"]["error"]
    assert found["loaders"] == []
    assert Path(found["report"]["svg"]).is_file()


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_the_live_line_replaces_itself_within_the_width_and_leaves_nothing() -> None:
    stream = Screen()
    line = LiveLine(stream, width=20)
    line.show("one: starting, and much more than fits")
    line.show("one: done")
    line.clear()
    shown = stream.getvalue()
    assert shown == "\rone: starting, and \x1b[K\rone: done\x1b[K\r\x1b[K"
    assert "\n" not in shown


def test_progress_without_a_terminal_is_one_line_for_each_stage() -> None:
    stream = io.StringIO()
    line = LiveLine(stream)
    for seconds in range(3):
        line.show(f"one: {seconds} s", "one")
    line.show("two: 0 s", "two")
    line.clear()
    assert stream.getvalue() == "one\ntwo\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_what_was_measured(number: int, environ: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "report"
    words = ["bench", "cifar", "--seconds", "1e9", "--budget", "1e6", "--out", str(out)]
    pid_file = tmp_path / "pid"
    # The refused config is in the report at once; the first one that runs never has enough.
    child = subprocess.Popen(
        [sys.executable, "-m", "mpstui", *words],
        env={**environ, "STAY": str(pid_file)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert wait_until(lambda: pid_file.exists() and bool(pid_file.read_text()))
    child.send_signal(number)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "not complete" in stdout
    assert "interrupted" in stderr
    document: dict[str, Any] = json.loads((out / "report.json").read_text())
    assert document["complete"] is False
    assert document["rungs"][0]["error"]
    assert wait_until(lambda: not psutil.pid_exists(int(pid_file.read_text())))


def test_a_device_that_computes_wrong_is_found_and_the_layer_named(bench: Bench) -> None:
    path = os.pathsep.join((str(standin.FOLDER), str(standin.FOLDER.parents[1])))
    words = ("cifar", "--compare-devices", "--device", "mps", "--steps", "2", "--set", "model=tiny", "--set", "width=4")
    done = bench(*words, PYTHONPATH=path, MPSTUI_STANDIN="wrong@3")
    assert done.returncode == 1, done.stderr
    assert " ".join(done.stdout.split()).startswith(
        "wrong: in step 1, torch.nn.functional.conv2d in stages.0.conv2 (Conv2d) is the first operation whose result"
    )
    assert max(map(len, done.stdout.splitlines()[:-2])) <= 60


def test_a_task_that_there_is_not_is_refused_before_anything_is_shown(bench: Bench) -> None:
    for mode in ((), ("--compare-devices", "--device", "cpu")):
        done = bench("cifr", *mode, PYTHONPATH="")  # the shipped trainer
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines() == ["mpstui: there is no task 'cifr'", "hint: did you mean cifar?"]
    assert "tasks: cifar, " in bench("nope", PYTHONPATH="").stderr


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "needs a TASK"),
        (["cifr"], "there is no task"),
        (["cifar", "--seconds", "0"], "--seconds 0 is not above 0"),
        (["cifar", "--steps", "9"], "--steps goes with"),
        (["cifar", "--device", "msp"], "there is no device 'msp'"),
        (["cifar", "--compare-devices"], "nothing to compare the CPU with"),
        (["cifar", "--profiles", "a", "b"], "no TASK"),
        (["--profiles", "nowhere", "b"], "there is no profile 'nowhere'"),
    ],
)
def test_wrong_use_is_one_sentence(words: list[str], part: str, bench: Bench) -> None:
    done = bench(*words)
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_two_programs_never_written_for_mpstui_side_by_side(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "racer.py").write_text(RACER)
    for name, delay in (("original", "0.06"), ("optimised", "0.005")):
        text = f'name = "{name}"\ncommand = ["{{python}}", "racer.py", "{delay}"]\n'
        (tmp_path / f"{name}.toml").write_text(text)
    done = bench("--profiles", "./original.toml", "./optimised.toml", "--seconds", "1.5", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    first, second = found["profiles"]
    assert first["step_seconds"]["median"] > 0.055  # steps are timed by when they were read
    assert found["speedup"] > 1.5
    assert (first["mps_fallbacks"], second["mps_fallbacks"]) == (1, 0)
    assert first["mps_fallback_operators"] == ["aten::nonzero"]
    assert first["process_bytes"] > 1_000_000
    assert (first["state"], first["note"]) == ("stopped", None)
    assert found["loss_at_common_step"][0] == pytest.approx(found["loss_at_common_step"][1])
    ElementTree.parse(found["report"]["svg"])


def test_an_interrupted_race_stops_its_run_and_tells_what_was_seen(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "racer.py").write_text(RACER)
    (tmp_path / "long.toml").write_text('name = "long"\ncommand = ["{python}", "racer.py", "0.005"]\n')
    out, home = tmp_path / "report", Path(environ["MPSTUI_HOME"])
    words = ["bench", "--profiles", "./long.toml", "./long.toml", "--seconds", "1000", "--out", str(out)]
    child = subprocess.Popen([sys.executable, "-m", "mpstui", *words], env=environ, cwd=tmp_path)
    assert wait_until(lambda: any("step 100/" in log.read_text() for log in home.glob("runs/*/attempts/1/output.log")))
    child.send_signal(signal.SIGINT)
    assert child.wait(90) == 130
    document = json.loads((out / "report.json").read_text())
    assert document["complete"] is False
    assert [one["state"] for one in document["profiles"]] == ["stopped"]
    assert document["profiles"][0]["note"] == "interrupted"
    assert document["profiles"][0]["step"] >= 100


def test_a_program_that_fails_is_told_and_the_other_one_measured(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "racer.py").write_text(RACER)
    (tmp_path / "bad.toml").write_text('name = "bad"\ncommand = ["{python}", "-c", "raise SystemExit(3)"]\n')
    (tmp_path / "good.toml").write_text('name = "good"\ncommand = ["{python}", "racer.py", "0.005"]\n')
    done = bench("--profiles", "./bad.toml", "./good.toml", "--seconds", "1")
    assert done.returncode == 1
    assert "bad: failed: exit code 3" in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-2])) <= 60


def test_counts_of_devices_that_are_not_there_are_told_as_a_row(bench: Bench, tmp_path: Path) -> None:
    done = bench("cifar", "--gpus", "1,1000", "--seconds", "1", "--out", str(tmp_path / "report"))
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines()[:-2])) <= 60
    assert "1 process         100.0        80.0      80.0       1.000" in done.stdout
    assert "1000 processes not measured" in done.stdout
    assert "this machine has" in done.stdout
    assert "sees no" in done.stdout
    document = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [row["efficiency"] for row in document["scaling"]] == [1.0, None]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cifar", "--gpus", "1,two"], "is no list of counts"),
        (["cifar", "--gpus", "0"], "is no list of counts"),
        (["cifar", "--shard"], "--shard goes with --gpus"),
        (["cifar", "--gpus", "2", "--compare-devices"], "--gpus goes with neither"),
    ],
)
def test_counts_that_are_none_are_wrong_use(bench: Bench, words: list[str], told: str) -> None:
    done = bench(*words)
    assert done.returncode == 2
    assert told in done.stderr
