"""Evidence from a run directory: the newest attempt's exit record, output, heartbeat and launch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.diagnosis.engine import diagnose
from mpstui.core.diagnosis.evidence import evidence_from_run_dir
from mpstui.core.diagnosis.model import Evidence

OOM = "RuntimeError: MPS backend out of memory (MPS allocated: 5.50 GB)\n"


def write_attempt(run: Path, number: int, output: str = "", **records: dict[str, Any]) -> Path:
    folder = run / "attempts" / str(number)
    folder.mkdir(parents=True)
    (folder / "output.log").write_text(output)
    for name, record in records.items():
        (folder / f"{name}.json").write_text(json.dumps(record))
    return folder


def test_the_newest_attempt_is_explained(tmp_path: Path) -> None:
    for number in (1, 2, 9):
        write_attempt(tmp_path, number, OOM, exit={"attempt": number, "ended": 2.0, "code": 1})
    write_attempt(tmp_path, 10, "step 1\n", exit={"attempt": 10, "ended": 2.0, "signal": 9, "code": None})
    evidence = evidence_from_run_dir(tmp_path)
    assert evidence.signal == 9
    assert [finding.id for finding in diagnose(evidence)] == ["killed", "killed_os"]
    assert [finding.id for finding in diagnose(evidence_from_run_dir(tmp_path, attempt=2))] == ["mps_oom"]


def test_heartbeat_launch_and_memory_evidence_are_read(tmp_path: Path) -> None:
    write_attempt(
        tmp_path,
        1,
        exit={"attempt": 1, "ended": 2.0, "signal": 9, "evidence": {"memory": "killed by macOS for memory (vm)"}},
        heartbeat={
            "schema": 1,
            "time": 1.0,
            "seq": 4,
            "phase": "save",
            "step": 12,
            "device": {"type": "mps", "precision": "bf16"},
            "memory": {"driver": 95, "limit": 100},
        },
        launch={
            "attempt": 1,
            "time": 1.0,
            "argv": ["python"],
            "cwd": "/",
            "device": "mps",
            "env": {"PYTORCH_MPS_HIGH_WATERMARK_RATIO": "0.0"},
        },
    )
    evidence = evidence_from_run_dir(tmp_path)
    assert evidence.heartbeat is not None
    assert (evidence.heartbeat.phase, evidence.heartbeat.step, evidence.heartbeat.memory_ratio) == ("save", 12, 0.95)
    assert evidence.environment == {"PYTORCH_MPS_HIGH_WATERMARK_RATIO": "0.0"}
    finding = diagnose(evidence)[0]
    assert finding.id == "killed_os"
    assert finding.confidence > 0.9


def test_growing_memory_is_told_from_the_telemetry_of_the_attempt(tmp_path: Path) -> None:
    ended = {"attempt": 2, "ended": 400.0, "signal": 9, "code": None}
    write_attempt(tmp_path, 2, "step 1\n", exit=ended)

    def confidence() -> float:
        found = {finding.id: finding.confidence for finding in diagnose(evidence_from_run_dir(tmp_path))}
        return found["killed_os"]

    unknown = confidence()
    points = [{"time": 5.0 * tick, "attempt": 2, "memory.driver": 4e9 + 1e7 * tick} for tick in range(20)]
    (tmp_path / "telemetry.jsonl").write_text("".join(f"{json.dumps(point)}\n" for point in points))
    heartbeat = evidence_from_run_dir(tmp_path).heartbeat
    assert heartbeat is not None
    assert heartbeat.memory_slope_bytes_per_second == pytest.approx(2e6)
    assert confidence() > unknown
    told = [line.text for line in diagnose(evidence_from_run_dir(tmp_path))[0].evidence]
    assert "memory grew by 1.9 MiB a second" in told


def test_the_machine_just_before_a_kill_is_told_from_the_telemetry(tmp_path: Path) -> None:
    write_attempt(tmp_path, 1, "step 1\n", exit={"attempt": 1, "ended": 400.0, "signal": 9, "code": None})
    point = {"time": 390.0, "attempt": 1, "memory.system_used": 30, "memory.system_limit": 100}
    telemetry = tmp_path / "telemetry.jsonl"
    telemetry.write_text(f"{json.dumps(point)}\n")
    assert evidence_from_run_dir(tmp_path).machine_memory_ratio == 0.3
    telemetry.write_text(f"{json.dumps({**point, 'time': 200.0})}\n")
    assert evidence_from_run_dir(tmp_path).machine_memory_ratio is None


def test_what_the_log_of_macos_told_after_the_end_counts(tmp_path: Path) -> None:
    write_attempt(tmp_path, 1, "step 1\n", exit={"attempt": 1, "ended": 400.0, "signal": 9, "code": None})
    line = "memorystatus: killing process 4711 [python3.11]"
    told = {"time": 401.0, "attempt": 1, "event": "note", "text": "killed by macOS for memory", "memory_kill": line}
    elsewhere = json.dumps({"attempt": 1, "event": "note", "by": {"memory_kill": 1}})
    (tmp_path / "events.jsonl").write_text(f'{elsewhere}\n{json.dumps(told)}\n{{"memory_kill": "torn')
    assert evidence_from_run_dir(tmp_path).memory_events == (line,)
    assert diagnose(evidence_from_run_dir(tmp_path))[0].id == "killed_os"


def test_a_stop_that_was_asked_for_needs_no_explanation(tmp_path: Path) -> None:
    write_attempt(tmp_path, 1, exit={"attempt": 1, "ended": 2.0, "signal": 9, "requested_by": "me@mac:1"})
    assert diagnose(evidence_from_run_dir(tmp_path)) == ()


def test_torn_and_missing_files_are_unknown(tmp_path: Path) -> None:
    folder = write_attempt(tmp_path, 1, OOM)
    for name in ("exit", "heartbeat", "launch"):
        (folder / f"{name}.json").write_text('{"attempt": 1, "en')
    evidence = evidence_from_run_dir(tmp_path)
    assert (evidence.signal, evidence.exit_code) == (None, None)
    assert [finding.id for finding in diagnose(evidence)] == ["mps_oom"]
    (folder / "output.log").unlink()
    assert evidence_from_run_dir(tmp_path).lines == ()


def test_a_run_without_attempts_has_no_evidence(tmp_path: Path) -> None:
    assert evidence_from_run_dir(tmp_path) == Evidence()


@pytest.mark.parametrize(
    ("script", "there", "argv", "found"),
    [
        ("tools/train.py", "nets/model.py", ["python", "tools/train.py"], "."),
        ("tools/train.py", "nets.py", ["python", "train.py"], "."),  # started in its folder, as its README says
        ("tools/train.py", "tools/nets.py", ["python", "tools/train.py"], None),  # it is found: another thing is wrong
        ("train.py", "nets/notes.txt", ["python", "train.py"], None),
        ("tools/train.py", "nets.py", ["python", "-c", "import nets"], "."),
    ],
)
def test_a_module_of_the_project_that_python_does_not_see_is_offered_by_its_folder(
    tmp_path: Path, script: str, there: str, argv: list[str], found: str | None
) -> None:
    project = tmp_path / "project"
    for name in (script, there, ".git/HEAD"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x")
    (tmp_path / "nets.py").write_text("outside of the project")
    started_in_tools = argv[1] != script and (project / "tools").is_dir()
    cwd = project / "tools" if started_in_tools else project
    launch = {"attempt": 1, "time": 1.0, "argv": argv, "cwd": str(cwd), "device": "cpu", "env": {}}
    output = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'nets.deep'\n"
    write_attempt(tmp_path / "run", 1, output, exit={"attempt": 1, "ended": 2.0, "code": 1}, launch=launch)
    first = diagnose(evidence_from_run_dir(tmp_path / "run"))[0]
    env = {"PYTHONPATH": str(project / found)} if found else {}
    assert (first.id, first.remedy.env) == ("module_of_project" if found else "module_missing", env)
    if found:
        assert f"nets is in {project}" in [line.text for line in first.evidence]
