"""`mpstui remove`: asked, told, and nothing removed where one of those named must stay."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from mpstui.cli.main import main
from mpstui.cli.remove import age_seconds
from mpstui.core.model.errors import UsageError
from mpstui.core.model.home import resolve_home
from mpstui.wire.records import QueueRule
from tests.cli.programs import as_json, mpstui, ok, run_folder
from tests.core.runs.build import RunBuilder
from tests.terminal import Terminal
from tests.waiting import wait_until


def ended(name: str, days_ago: float = 0.0) -> str:
    """A run that ended so long ago."""
    home = resolve_home(os.environ)
    created = time.time() - days_ago * 86_400 - 100
    made = RunBuilder(home, name, created).status("ended").launch().exit(code=0).output("step 1\n" * 3000)
    return made.run.run


def test_a_real_run_is_removed_and_its_bytes_are_told(tmp_path: Path) -> None:
    run = ok("run", "--name", "short", "--", sys.executable, "-c", "print(1)", cwd=tmp_path).strip()
    ok("wait", run, "--timeout", "60")
    wait_until(lambda: mpstui("remove", run, "--dry-run").returncode == 0, what="its supervisor to leave")
    told = as_json("remove", run, "--yes")
    [row] = told["runs"]
    assert (row["run"], row["removed"], row["freed"]) == (run, True, told["freed"])
    assert told["freed"] > 0
    assert not run_folder(run).exists()
    assert as_json("ps", "--all") == []
    again = mpstui("remove", run, "--yes")
    assert (again.returncode, f"there is no run '{run}'" in again.stderr) == (2, True)


def test_those_that_ended_long_ago(capsys: pytest.CaptureFixture[str]) -> None:
    old, new = ended("old", 40), ended("new", 3)
    assert main(["remove", "--older-than", "30d", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert old in shown
    assert "40d" in shown
    assert new not in shown
    assert main(["remove", "old", "new", "--older-than", "30d", "--yes"]) == 0
    assert capsys.readouterr().out.startswith(f"{old} is removed\nremoved 1 run, freed ")
    assert [folder.name for folder in (resolve_home(os.environ).runs).iterdir()] == [new]
    assert main(["remove", "--older-than", "30d", "--yes"]) == 0
    assert capsys.readouterr().out == "nothing to remove: no run that can be removed ended longer than 30d ago\n"


def test_one_that_must_stay_keeps_all_that_were_named(capsys: pytest.CaptureFixture[str]) -> None:
    done = ended("done")
    running = RunBuilder(resolve_home(os.environ), "busy").status("running").launch().hold()
    assert main(["remove", "done", "busy", "--yes"]) == 1
    error = capsys.readouterr().err
    assert "cannot be removed: it has not ended (running)" in error
    assert f"mpstui stop {running.run.run}" in error
    assert run_folder(done).exists()
    assert main(["remove", "--older-than", "0m", "--yes", "--json"]) == 0
    assert [row["run"] for row in json.loads(capsys.readouterr().out)["runs"]] == [done]
    assert running.run.path.exists()
    running.release()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["remove"], "remove needs RUN"),
        (["remove", "--older-than", "a month", "--yes"], "is no age"),
        (["remove", "nobody", "--yes"], "there is no run 'nobody'"),
        (
            ["remove", "done"],
            "this deletes 1 run, and it cannot ask you first where input or output is no terminal\n"
            "hint: `mpstui remove done --yes` does not ask",
        ),
        (["remove", "done", "--json"], "it cannot ask you first with --json\nhint: `mpstui remove done --json --yes`"),
    ],
)
def test_wrong_use_removes_nothing(words: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = ended("done")
    assert main(words) == 2
    streams = capsys.readouterr()
    assert part in streams.err
    assert run_folder(done).exists()


def test_kept_checkpoints_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_folder(ended("done"))
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "best.pt").write_bytes(b"w")
    assert main(["remove", "done", "--yes", "--keep-checkpoints"]) == 0
    kept = resolve_home(os.environ).state / "checkpoints" / folder.name
    assert f"checkpoints of {folder.name} are in {kept}" in capsys.readouterr().out
    assert (kept / "checkpoints" / "best.pt").read_bytes() == b"w"


@pytest.mark.parametrize("answer", ["n", "y"])
def test_a_person_is_asked(answer: str) -> None:
    folder = run_folder(ended("done"))
    with Terminal([sys.executable, "-m", "mpstui", "remove", "done"]) as terminal:
        terminal.wait_text("delete 1 run? [y/N]")
        terminal.press(answer, "\r")
        terminal.wait_text("removed 1 run" if answer == "y" else "nothing was removed")
    assert folder.exists() == (answer == "n")


def test_one_that_came_to_be_needed_while_a_person_thought_stays() -> None:
    done = ended("done")
    with Terminal([sys.executable, "-m", "mpstui", "remove", "done"]) as terminal:
        terminal.wait_text("delete 1 run? [y/N]")
        rule = QueueRule(after=[{"run": done, "when": "ok"}])
        waiting = RunBuilder(resolve_home(os.environ), "waiting", queue=rule).status("queued", 0).hold(run=False)
        terminal.press("y", "\r")
        terminal.wait_text("waits for it")
    assert run_folder(done).exists()
    waiting.release()


@pytest.mark.parametrize(("text", "seconds"), [("45m", 2700), ("12h", 43_200), ("30d", 2_592_000), ("2W", 1_209_600)])
def test_ages(text: str, seconds: int) -> None:
    assert age_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1y", "1d 2h"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(UsageError):
        age_seconds(text)
