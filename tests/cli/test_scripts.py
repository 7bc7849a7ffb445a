"""What scripts and cron use: `mpstui wait` for several runs, and `mpstui ps --watch`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpstui.cli.main import main
from mpstui.core.model.home import Home
from tests.core.runs.build import NOW, RunBuilder
from tests.terminal import Terminal

MPSTUI = [sys.executable, "-m", "mpstui"]


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("MPSTUI_HOME", str(tmp_path))
    return Home(state=tmp_path, config=tmp_path)


def ended(home: Home, name: str, code: int, after: float = 100) -> str:
    return RunBuilder(home, name).status("ended").launch().exit(code=code, ended=NOW + after).run.run


def test_wait_tells_which_of_several_ended(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    late, early = ended(home, "late", 1, 300), ended(home, "early", 0, 200)
    live = RunBuilder(home, "live").status("running").launch().hold()
    assert main(["wait", "--any", "live", "late", "early"]) == 0
    assert capsys.readouterr().out == f"{early}: finished (exit code 0)\n", "the first one to end decides"
    assert main(["wait", "late", "early", "late", "--json"]) == 1
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["run"], one["state"], one["exit"]["code"]) for one in told] == [
        (early, "finished", 0),
        (late, "failed", 1),
    ]
    assert main(["wait", "live", "early", "--timeout", "0"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith(early), "what has ended is told, also where the time is up"
    assert f"{live.run.run} has not ended within 0 s: it is running" in err
    assert main(["wait", "live", "nobody"]) == 2
    live.release()


def test_the_list_is_drawn_over_itself_until_ctrl_c(home: Home) -> None:
    live = RunBuilder(home, "live").status("running").launch().hold()
    with Terminal([*MPSTUI, "ps", "--watch", "--every", "0.1"]) as terminal:
        terminal.wait_text("live", "warming")
        live.exit(code=0).status("ended").release()
        terminal.wait_text("finished")
        assert terminal.text.count("live") == 2, "id and name, once each"
        assert "warming" not in terminal.text
        terminal.resize(60, 10)
        terminal.wait_text("finished")
        terminal.press("\x03")
        assert terminal.wait_exit() == 130
        assert "Traceback" not in terminal.text


def test_a_pipe_gets_a_line_a_change_and_ends_when_nobody_reads(home: Home) -> None:
    live = RunBuilder(home, "live").status("running").launch().hold()
    bare = {"MPSTUI_HOME": os.environ["MPSTUI_HOME"]}  # as cron starts it
    command = [*MPSTUI, "ps", "--watch", "--json", "--every", "0.1"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=bare) as watched:
        assert watched.stdout is not None
        assert [row["state"] for row in json.loads(watched.stdout.readline())] == ["running"]
        live.exit(code=0).status("ended").release()
        states = ([row["state"] for row in json.loads(line)] for line in watched.stdout)
        assert next(one for one in states if one != ["running"]) == ["finished"]
        watched.stdout.close()  # nothing changes any more: no word is written that would fail
        assert watched.wait(60) == 0


def test_a_long_wait_ends_when_nobody_reads(home: Home) -> None:
    with subprocess.Popen([*MPSTUI, "ps", "--watch", "--every", "600"], stdout=subprocess.PIPE) as watched:
        assert watched.stdout is not None
        assert watched.stdout.readline().startswith(b"no runs yet")
        watched.stdout.close()
        try:
            assert watched.wait(60) == 0
        finally:
            watched.kill()


def test_closed_streams_are_no_error(home: Home) -> None:
    ended(home, "one", 0)
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&-', "sh", *MPSTUI, "wait", "one"], stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")
