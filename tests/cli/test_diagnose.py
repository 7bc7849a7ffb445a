"""`mpstui diagnose`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mpstui.cli import explain
from mpstui.cli.main import main
from mpstui.core.launching.choice import LaunchChoice
from mpstui.core.profiles.model import profile_of_command
from tests.cli.programs import STEPS, mpstui, ok, told
from tests.core.launching.test_cure import crashed
from tests.waiting import wait_until

OOM = "RuntimeError: MPS backend out of memory (MPS allocated: 5.50 GB)"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text(f"step 1 loss 0.5\n{OOM}\n")
    return path


def test_json_has_the_promised_form(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(log), "--json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert set(finding) == {
        "id",
        "title",
        "confidence",
        "evidence",
        "numbers",
        "cause",
        "remedy",
        "restart_on_cpu_helps",
    }
    assert set(finding["remedy"]) == {"text", "env", "args", "device"}
    assert finding["id"] == "mps_oom"
    assert finding["evidence"] == [{"line": 2, "text": OOM, "where": None}]
    assert finding["remedy"]["args"][0] == {"role": "batch_size", "operation": "scale", "value": 0.5}
    assert finding["restart_on_cpu_helps"] is True
    assert 0 < finding["confidence"] <= 1


def test_signal_and_exit_code_are_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = tmp_path / "quiet.log"
    quiet.write_text("step 1 loss 0.5\n")
    for option in (["--signal", "9"], ["--exit-code", "137"], ["--exit-code", "-9"]):
        assert main(["diagnose", str(quiet), *option, "--json"]) == 0
        assert [found["id"] for found in json.loads(capsys.readouterr().out)["findings"]] == ["killed", "killed_os"]


def test_no_crash_is_an_empty_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = tmp_path / "quiet.log"
    quiet.write_text("all is well\n")
    assert main(["diagnose", str(quiet), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"findings": []}
    assert main(["diagnose", str(quiet)]) == 0
    assert capsys.readouterr().out == "No known cause was found. The output ends with: all is well\n"


def test_an_end_in_good_order_is_no_riddle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = tmp_path / "quiet.log"
    quiet.write_text("all is well\n")
    assert main(["diagnose", str(quiet), "--exit-code", "0"]) == 0
    assert capsys.readouterr().out == "It ended with exit code 0: there is no crash to explain.\n"


def test_the_card_says_what_was_seen_and_what_helps(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(log)]) == 0
    card = capsys.readouterr().out
    assert card.startswith("1. MPS ran out of memory  [mps_oom, confidence ")
    assert "line 2: RuntimeError" in card
    assert "apply:   batch size × 0.5, gradient accumulation × 2" in card
    assert max(len(line) for line in card.splitlines()) <= 100


def test_a_log_does_not_tell_which_variables_to_unset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "slurm-7.out"
    path.write_text("step 3 loss 0.5\nslurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch cgroup.\n")
    assert main(["diagnose", str(path)]) == 0
    card = capsys.readouterr().out
    assert "apply:   batch size × 0.5, gradient accumulation × 2\n" in card


def test_no_promise_is_made_that_the_cpu_computes_no_nan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.log"
    path.write_text("Using device: cuda\nepoch 3 loss: nan\nValueError: loss is nan, stopping training\n")
    assert main(["diagnose", str(path)]) == 0
    card = capsys.readouterr().out
    assert "[nan_loss," in card
    assert "on CPU:" not in card


def test_the_line_that_raised_is_not_shown_beside_what_it_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.log"
    code = f'    raise RuntimeError("{OOM.partition(": ")[2]}")'
    for lines, shown in (([code, OOM], "log line 3"), ([code], "log line 2")):
        path.write_text("\n".join(['  File "train.py", line 3, in <module>', *lines, ""]))
        assert main(["diagnose", str(path)]) == 0
        seen = [line for line in capsys.readouterr().out.split("\n") if "seen:" in line]
        assert [line.partition("seen:")[2].strip()[:10] for line in seen] == [shown]


def test_what_a_cause_drags_along_takes_a_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "libc++abi: terminating due to uncaught exception of type std::runtime_error: [METAL] Command buffer execution "
        "failed: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)\n"
        "UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown\n"
    )
    assert main(["diagnose", str(path)]) == 0
    first, rest = capsys.readouterr().out.split("\n\n")
    assert first.startswith("1. The GPU had too little memory for a command buffer")
    assert rest.splitlines()[0] == "Less probable, or a part of the same:"
    told = " ".join(rest.split())
    assert [name for name in ("metal_cmdbuf,", "segfault,", "leaked_semaphore_only,") if name not in told] == []
    assert told.endswith("log line 2")
    assert "remedy" not in rest


def test_the_card_fits_a_narrow_terminal(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain, "terminal_columns", lambda: 60)
    assert main(["diagnose", str(log)]) == 0
    assert 50 < max(len(line) for line in capsys.readouterr().out.splitlines()) <= 60


def test_the_card_shows_the_risk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "load.log"
    path.write_text("_pickle.UnpicklingError: Weights only load failed.\n")
    assert main(["diagnose", str(path)]) == 0
    assert "risk:" in capsys.readouterr().out


def test_the_card_says_that_the_effective_batch_would_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path / "home"))
    command = profile_of_command((sys.executable, "train.py", "--batch_size", "8"), cwd=tmp_path)
    run = crashed(LaunchChoice(command), tmp_path, text=OOM)
    assert main(["diagnose", str(run.path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "fix: Changed by the remedy: batch_size 8 -> 4." in shown
    assert "risk: The effective batch changes from 8 to 4" in shown


def test_a_run_directory_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attempt = tmp_path / "20260101-000000-toy" / "attempts" / "1"
    attempt.mkdir(parents=True)
    (attempt / "output.log").write_text("step 1\n")
    (attempt / "exit.json").write_text(json.dumps({"attempt": 1, "ended": 2.0, "signal": 11}))
    assert main(["diagnose", str(attempt.parent.parent), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["id"] == "segfault"


def test_a_run_is_found_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path))
    run = tmp_path / "runs" / "20260101-000000-toy"
    attempt = run / "attempts" / "1"
    attempt.mkdir(parents=True)
    (attempt / "output.log").write_text(OOM + "\n")
    (run / "spec.json").write_text(json.dumps({"name": "toy"}))
    assert main(["diagnose", "toy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["id"] == "mps_oom"


def test_a_run_that_has_not_ended_is_said_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(STEPS)
    run = ok("run", "--no-agent", "--", sys.executable, "steps.py", cwd=tmp_path).strip()
    try:
        wait_until(lambda: told("show", run)["state"] == "running")
        assert ok("diagnose", run).startswith("It has not ended: it is running")
    finally:
        ok("kill", run)
    assert "asked for a kill: there is no crash to explain" in ok("diagnose", run)


def test_a_target_that_does_not_exist_is_wrong_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path))
    missing = tmp_path / "none.log"
    assert main(["diagnose", str(missing)]) == 2
    assert f"there is neither a file nor a run {str(missing)!r}" in capsys.readouterr().err
    assert main(["diagnose", "nobody"]) == 2


def test_an_unreadable_file_is_a_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    loop = tmp_path / "loop.log"
    loop.symlink_to(loop)
    assert main(["diagnose", str(loop)]) in (1, 2)
    assert capsys.readouterr().err.startswith("mpstui: ")


def test_listing_runs_loads_no_rule(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom mpstui.cli.main import main\nmain(['ps'])\n"
        "import mpstui.core.diagnosis\n"
        "print([name for name in sys.modules if name.startswith('mpstui.core.diagnosis.rules.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={"MPSTUI_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        check=True,
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_an_unknown_end_shows_the_last_exception(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1 loss 0.5\nTraceback (most recent call last):\n  File 'a.py', line 3\nKeyError: 'lr'\n")
    assert main(["diagnose", str(log)]) == 0
    assert capsys.readouterr().out == "No known cause was found. The last exception, on log line 4: KeyError: 'lr'\n"
    log.write_text("UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects\n" + log.read_text())
    assert main(["diagnose", str(log)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("No known cause was found. The last exception, on log line 5: KeyError: 'lr'\n")
    assert "[leaked_semaphore_only" in shown, "a symptom is listed, and does not hide the exception"


def test_an_exception_that_was_survived_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text("KeyError: 'lr'\n" + "".join(f"step {step} loss 0.5\n" for step in range(9)))
    assert main(["diagnose", str(log)]) == 0
    assert "KeyError" not in capsys.readouterr().out


def test_a_line_repeated_by_ranks_is_evidence_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"{OOM}\n[rank0]: {OOM}\n[rank1]: {OOM}\n")
    assert main(["diagnose", str(log), "--json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["evidence"] == [{"line": 1, "text": OOM, "where": None}]


@pytest.mark.parametrize(("name", "kind"), [("train.py", "a program"), ("best.pth", "a checkpoint")])
def test_a_program_or_a_checkpoint_is_no_log_whatever_words_stand_in_it(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / name).write_text("raise RuntimeError('MPS backend out of memory (MPS allocated: 8.00 GB)')\n")
    answer = mpstui("diagnose", name, cwd=tmp_path)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert f"{name} is {kind}, not what one printed" in answer.stderr
    (tmp_path / f"{name}.log").write_text("RuntimeError: MPS backend out of memory (MPS allocated: 8.00 GB)\n")
    assert "MPS ran out of memory" in mpstui("diagnose", f"{name}.log", cwd=tmp_path).stdout
