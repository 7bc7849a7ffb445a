"""`mpstui show` for people: each thing once, in columns, with the reason of a failure."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.programs import STEPS, mpstui, ok, told

OUT_OF_MEMORY = (
    "for step in range(3): print(f'step {step} loss {1 / (step + 1):.4f}', flush=True)\n"
    "raise RuntimeError('MPS backend out of memory (MPS allocated: 17.9 GB, other allocations: 1.0 GB, "
    "max allowed: 18.1 GB). Tried to allocate 2.00 GB on private pool.')\n"
)


def ended(folder: Path, script: str, *words: str) -> str:
    """A run of a script that has ended, in whatever way."""
    (folder / "program.py").write_text(script)
    run = ok("run", "--name", "program", "--no-agent", "--", sys.executable, "program.py", *words, cwd=folder).strip()
    mpstui("wait", run, "--timeout", "90")
    return run


def test_each_thing_is_told_once(tmp_path: Path) -> None:
    run = ended(tmp_path, STEPS, "3")
    ok("restart", run)
    ok("wait", run, "--timeout", "90")
    lines = ok("show", run).splitlines()
    assert lines[0] == f"program  ({run})"
    assert sum(line.startswith("loss ") for line in lines) == 1
    assert sum("attempt 2 started, from step 0" in line for line in lines) == 1
    records = next(line.split()[1] for line in lines if line.startswith("records "))
    assert sum(f"/{run}" in line for line in lines) == 2, "the records are named once, and the log in them"
    assert f"log       {records}/attempts/2/output.log" in lines
    assert f"folder    {tmp_path}" in lines
    document = told("show", run)
    assert (document["cwd"], document["log"]) == (str(tmp_path), f"{records}/attempts/2/output.log")
    assert next(line for line in lines if line.startswith("state")).count("exit code 0") == 1
    assert next(line for line in lines if line.startswith("attempt ")).startswith("attempt   2 of 2, started ")


def test_a_failure_comes_with_its_reason_and_what_helps(tmp_path: Path) -> None:
    run = ended(tmp_path, OUT_OF_MEMORY)
    lines = ok("show", run).splitlines()
    assert "why       MPS ran out of memory" in lines
    assert any(line.startswith("helps     ") for line in lines)
    assert f"more      mpstui diagnose {run}" in lines
    metric = next(place for place, line in enumerate(lines) if line.startswith("metric "))
    assert len({len(line) for line in lines[metric : metric + 2]}) == 1, "columns line up"


def test_columns_line_up_whatever_the_names(tmp_path: Path) -> None:
    script = "for step in (1, 2): print(f'step {step} loss 0.5 a_very_long_metric_name_indeed {0.25 / step}')\n"
    run = ended(tmp_path, script)
    lines = ok("show", run).splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("metric "))
    table = lines[start : lines.index("", start)]
    assert len(table) == 3
    assert len({len(line) for line in table}) == 1


def test_a_failure_without_a_known_cause_shows_its_last_exception(tmp_path: Path) -> None:
    run = ended(tmp_path, "{}['lr']\n")
    lines = ok("show", run).splitlines()
    assert any(line.startswith("why       No known cause was found. The last exception") for line in lines)
    assert f"more      mpstui diagnose {run}" in lines
    assert not any(line.startswith("more ") for line in ok("show", ended(tmp_path, "print(1)\n")).splitlines())


def test_an_end_that_was_asked_for_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import time\ntime.sleep(60)\n")
    run = ok("run", "--no-agent", "--", sys.executable, "program.py", cwd=tmp_path).strip()
    ok("kill", run)
    lines = ok("show", run).splitlines()
    state = next(line for line in lines if line.startswith("state"))
    assert state.startswith("state     killed: ended by SIGKILL")
    assert state.count("SIGKILL") == 1
    assert not any(line.startswith("why ") for line in lines), "who asked is the reason"


@pytest.mark.parametrize("total", ["", "/30"])
def test_a_program_that_prints_a_line_a_second_has_a_rate(tmp_path: Path, total: str) -> None:
    told = f"f'step {{i}}{total} loss {{9 / (i + 1):.4f}}'"
    script = f"import time\nfor i in range(30): print({told}, flush=True); time.sleep(0.9)\n"
    (tmp_path / "program.py").write_text(script)
    run = ok("run", "--name", "slow", "--no-agent", "--", sys.executable, "program.py", cwd=tmp_path).strip()
    shown = json.loads(ok("show", run, "--json"))
    while not shown["step"]:
        shown = json.loads(ok("show", run, "--json"))
    ok("kill", run)
    assert shown["steps_per_second"] is not None
    assert 0.5 < shown["steps_per_second"] < 2.0


def test_the_last_epoch_of_a_program_that_counts_from_zero_is_the_last_of_so_many(tmp_path: Path) -> None:
    run = ended(tmp_path, "for e in range(5): print(f'epoch {e}/5 train_loss {1 / (e + 1):.4f}', flush=True)\n")
    [row] = json.loads(ok("ps", "--all", "--json"))
    shown = json.loads(ok("show", run, "--json"))
    assert [(one["epoch"], one["epochs"]) for one in (row, shown)] == [(5, 5)] * 2
    assert " 5/5 " in next(line for line in ok("ps", "--all").splitlines() if "program" in line)
    assert "progress  epoch 5 of 5" in ok("show", run).splitlines()
