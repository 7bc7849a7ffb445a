"""Acting from the command line: each command waits for the answer, prints it, and exits with what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mpstui.cli.main import main
from mpstui.wire import liveness
from mpstui.wire.rundir import RunDir
from tests.cli.programs import STEPS, as_json, mpstui, ok, run_folder, state_of, told, wait_for_state
from tests.terminal import Terminal
from tests.waiting import wait_until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text(STEPS)
    return tmp_path


def start(folder: Path, *words: str, name: str = "steps", env: dict[str, str] | None = None) -> str:
    """A run that prints a step each 50 ms and has printed its first one."""
    command = ("run", "--name", name, "--no-agent", "--", sys.executable, "steps.py", *words)
    run = ok(*command, cwd=folder, env=env).strip()
    output = run_folder(run) / "attempts/1/output.log"
    wait_until(lambda: output.exists() and b"step 0" in output.read_bytes(), what="the first step")
    return run


def test_pause_continue_stop(folder: Path) -> None:
    run = start(folder)
    ok("pause", run)
    assert told("show", run)["health"] == "paused"
    assert mpstui("pause", run).returncode == 1
    ok("continue", run)
    ok("stop", run)
    shown = told("show", run)
    assert (shown["state"], shown["exit"]["signal"]) == ("stopped", signal.SIGTERM)
    again = mpstui("stop", run)
    assert again.returncode == 1
    assert "it is not running (stopped)" in again.stderr
    assert mpstui("wait", run).returncode == 1


def test_a_run_that_somebody_else_stopped_can_be_continued(folder: Path) -> None:
    run = start(folder)
    status = json.loads((run_folder(run) / "status.json").read_text())
    os.kill(status["trainer"][0], signal.SIGSTOP)
    wait_until(lambda: told("show", run)["health"] == "paused", what="the signal to arrive")
    assert "mpstui did not send" in told("show", run)["health_note"]
    assert "it is already paused" in mpstui("pause", run).stderr
    ok("continue", run)
    wait_until(lambda: told("show", run)["health"] != "paused", what="the training to go on")
    ok("kill", run)


def test_kill_and_restart(folder: Path) -> None:
    run = start(folder, "--device", "cpu")
    ok("kill", run)
    assert state_of(run) == "killed"
    ok("restart", run)
    wait_for_state(run, "running")
    assert told("show", run)["attempt"] == 2
    ok("kill", run)


def test_of_several_runs_of_a_name_what_ends_a_run_takes_one_that_lives_and_says_which(folder: Path) -> None:
    living = start(folder)
    newest = start(folder)
    ok("kill", newest)
    stopped = mpstui("stop", "steps")
    assert stopped.returncode == 0, stopped
    assert f"'steps' means 2 runs: this is {living}, the newest that has not ended" in stopped.stderr
    assert state_of(living) == "stopped"
    shown = mpstui("show", "steps", "--json")
    assert json.loads(shown.stdout)["run"] == newest
    assert f"this is {newest}, the newest" in shown.stderr
    assert mpstui("show", newest).stderr == ""


def test_a_restart_says_how_the_run_had_ended(folder: Path) -> None:
    (folder / "done.py").write_text("print('step 1/1 loss 0.5')")
    resume = ("--resume=--resume {checkpoint}", "--checkpoints", "*.pt")
    run = ok("run", "--name", "done", *resume, "--", sys.executable, "done.py", cwd=folder).strip()
    ok("wait", run)
    again = mpstui("restart", run, "--json")
    assert f"{run} has ended: finished (exit code 0); there may be nothing left to do" in again.stderr
    assert json.loads(again.stdout)["ok"]
    ok("wait", run)
    assert "nothing" not in mpstui("restart", run, "--env", "X=1").stderr
    anew = ok("run", "--name", "anew", "--", sys.executable, "done.py", cwd=folder).strip()
    ok("wait", anew)
    begins = "it will start from step 0: this command has no way to resume (`mpstui run --resume`)"
    told_of = f"mpstui: {anew} has ended: finished (exit code 0); {begins}, and may write over what it left\n"
    assert mpstui("restart", anew).stderr == told_of
    ok("wait", run)
    ok("wait", anew)


def test_a_restart_of_a_failed_run_says_first_that_it_repeats_everything(folder: Path) -> None:
    """Its program could continue, but only if it is told so; with that argument there is nothing to say."""
    (folder / "fails.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--resume')\nparser.parse_args()\n"
        "print('step 7/9 loss 0.5')\nraise SystemExit(3)\n"
    )
    run = ok("run", "--name", "fails", "--", sys.executable, "fails.py", cwd=folder).strip()
    mpstui("wait", run)
    told = mpstui("restart", run).stderr
    assert f"{run} has ended: failed (exit code 3); it will start from step 0: its --resume is only used" in told
    mpstui("wait", run)
    told = mpstui("restart", run, "--set", "resume=last.pt").stderr
    assert "from step 0" not in told
    mpstui("wait", run)


def test_on_a_terminal_a_restart_asks_what_the_screen_asks(folder: Path) -> None:
    (folder / "done.py").write_text("print('step 1/1 loss 0.5')")
    run = ok("run", "--name", "done", "--", sys.executable, "done.py", cwd=folder).strip()
    ok("wait", run)
    command = [sys.executable, "-m", "mpstui", "restart", run]
    with Terminal(command, cwd=folder) as terminal:
        terminal.wait_text("It has finished", "It will start from step 0", "Restart done? [y/N]")
        terminal.press("n\r")
        terminal.wait_text("nothing was restarted", "--yes")
        assert terminal.wait_exit() == 2
    assert told("show", run)["attempts"] == 1
    with Terminal([*command, "--yes"], cwd=folder) as terminal:
        assert terminal.wait_exit() == 0
    with Terminal([*command, "--from", "scratch"], cwd=folder) as terminal:
        terminal.wait_text("as --from scratch says", "[y/N]")
        terminal.press("y\r")
        assert terminal.wait_exit() == 0
    wait_until(lambda: told("show", run)["attempts"] == 3, what="attempt 3")
    ok("wait", run)


@pytest.mark.parametrize("name", ["last.pt", "checkpoint-500"])
def test_a_restart_begins_with_the_checkpoint_that_is_named_a_file_or_a_folder(folder: Path, name: str) -> None:
    (folder / "p.toml").write_text(
        'command = ["{python}", "steps.py"]\n[resume]\nargs = ["--from", "{checkpoint}"]\ncheckpoints = "*.pt"\n'
    )
    run = as_json("launch", "./p.toml", cwd=folder)["run"]
    ok("kill", run)
    place = folder / name
    place.touch() if place.suffix else place.mkdir()
    ok("restart", run, "--from", name)
    wait_until(lambda: told("show", run)["attempt"] == 2, what="attempt 2")
    assert told("show", run)["argv"][-2:] == ["--from", str(place)]
    ok("kill", run)


def test_restart_of_a_running_run_with_other_arguments(folder: Path) -> None:
    (folder / "p.toml").write_text('command = ["{python}", "steps.py"]\n[args]\nlr = 1\nkeep = "a"\n')
    run = as_json("launch", "./p.toml", cwd=folder)["run"]
    wait_for_state(run, "running")
    ok("restart", run, "--set", "lr=2")
    wait_until(lambda: told("show", run)["attempt"] == 2, what="attempt 2")
    ok("restart", run, "--set", "keep=b")
    wait_until(lambda: told("show", run)["attempt"] == 3, what="attempt 3")
    assert told("show", run)["argv"][-4:] == ["--lr", "2", "--keep", "b"]
    ok("kill", run)


def test_a_restart_from_another_shell_says_which_secret_it_lacks(folder: Path) -> None:
    run = start(folder, "1", env={"MY_API_KEY": "x" * 9, "OMP_NUM_THREADS": "3"})
    ok("wait", run, "--timeout", "90")
    ok("restart", run)
    wait_until(lambda: told("show", run)["attempt"] == 2, what="attempt 2")
    assert any("MY_API_KEY" in event["text"] for event in told("show", run)["events"])
    launched = json.loads((run_folder(run) / "attempts/2/launch.json").read_text())
    assert launched["env"]["OMP_NUM_THREADS"] == "3"
    ok("wait", run, "--timeout", "90")


def test_refusals_name_the_reason(folder: Path) -> None:
    run = start(folder)
    assert "has not reported yet" in mpstui("clear-cache", run).stderr
    answer = mpstui("clear-cache", run, "--json")
    assert (answer.returncode, json.loads(answer.stdout)["ok"]) == (1, False)
    assert "cannot be told to use cpu" in mpstui("restart", run, "--device", "cpu").stderr
    assert "there is no checkpoint" in mpstui("restart", run, "--from", "gone.pt").stderr
    assert mpstui("restart", run, "--device", "gpu").returncode == 2
    assert state_of(run) == "running"
    ok("kill", run)


LISTENS = f"""
import os, sys, time
sys.path.append({str(Path(__file__).parents[2])!r})
from mpstui.agent.reporter import listen_for_stacks, place_of
def hang():
    while True:
        time.sleep(0.05)
listen_for_stacks(*place_of(os.environ))
print("step 0", flush=True)
hang()
"""


def test_the_stacks_of_a_run_are_in_its_log(folder: Path) -> None:
    (folder / "steps.py").write_text(LISTENS)
    run = start(folder)
    answer = as_json("stacks", run)
    assert (answer["ok"], answer["by"]) == (True, "supervisor")
    assert "in hang" in ok("logs", run)
    ok("kill", run)
    assert "it is not running (killed)" in mpstui("stacks", run).stderr


def test_a_checkpoint_can_be_asked_for_where_the_trainer_hears_it(folder: Path) -> None:
    run = start(folder)
    refused = mpstui("save", run, "--json")
    assert (refused.returncode, json.loads(refused.stdout)["ok"]) == (1, False)
    assert "has not reported yet" in json.loads(refused.stdout)["text"]
    ok("kill", run)


def test_an_action_revives_a_supervisor_that_was_killed(folder: Path) -> None:
    run = start(folder)
    status = json.loads((run_folder(run) / "status.json").read_text())
    os.kill(status["supervisor"][0], signal.SIGKILL)
    lock = RunDir(run_folder(run)).supervisor_lock
    wait_until(lambda: not liveness.is_held(lock), what="the supervisor to be gone")
    assert state_of(run) == "unsupervised"
    ok("stop", run, "--timeout", "90")
    assert state_of(run) == "stopped"


def test_two_clients_at_once_stop_one_run(folder: Path) -> None:
    run = start(folder)
    words = [sys.executable, "-m", "mpstui", "stop", run, "--json"]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    codes = {client.wait(60) for client in both}
    for client in both:
        client.communicate()
    assert 0 in codes
    assert state_of(run) == "stopped"


def test_wait_gives_up_in_time(folder: Path) -> None:
    run = start(folder)
    done = mpstui("wait", run, "--timeout", "0.2")
    assert (done.returncode, "has not ended within" in done.stderr) == (1, True)
    ok("kill", run)


def test_logs_follow_to_the_end_and_through_a_truncation(folder: Path) -> None:
    (folder / "cut.py").write_text(
        "import os, time\nprint('before ' * 2000, flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.02)\nprint('the last words', end='', flush=True)\n"
    )
    run = ok("run", "--no-agent", "--", sys.executable, "cut.py", cwd=folder).strip()
    words = [sys.executable, "-m", "mpstui", "logs", "-f", run]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline().startswith("before")
        os.truncate(run_folder(run) / "attempts/1/output.log", 0)
        (folder / "go").touch()
        rest, complaints = follower.communicate(timeout=90)
    assert rest == "the last words"
    assert follower.returncode == 0
    assert "Traceback" not in complaints


def test_logs_of_one_attempt_and_its_last_lines(folder: Path) -> None:
    run = start(folder, "3")
    ok("wait", run, "--timeout", "90")
    assert ok("logs", run, "-n", "2").count("\n") == 2
    assert ok("logs", run, "-n", "99").startswith("arguments")
    assert mpstui("logs", run, "--attempt", "7").returncode == 2


OOM = "raise RuntimeError('MPS backend out of memory (MPS allocated: 8.00 GB, max allowed: 9.07 GB)')"


@pytest.mark.parametrize(
    ("code", "exit_code", "told_of"),
    [
        (OOM, 2, ("Which argument sets batch size is not known", "Halve the batch size", "--set NAME=VALUE")),
        ("import no_such_module_of_mine", 1, ("no change of the launch helps", "Install the module")),
        ("raise KeyError('mine')", 1, ("is not known", "mpstui diagnose", "--set NAME=VALUE")),
        ("print('step 1/1 loss 0.5')", 2, ("has not failed", "mpstui restart", "--set NAME=VALUE")),
    ],
)
def test_where_no_remedy_can_be_applied_the_answer_says_what_to_do(
    folder: Path, code: str, exit_code: int, told_of: tuple[str, ...]
) -> None:
    (folder / "ends.py").write_text(code)
    run = ok("run", "--name", "ends", "--no-agent", "--", sys.executable, "ends.py", cwd=folder).strip()
    mpstui("wait", run)
    answer = mpstui("restart", run, "--fix")
    assert (answer.returncode, [text for text in told_of if text not in answer.stderr]) == (exit_code, [])
    assert told("show", run)["attempts"] == 1


def test_names_cannot_steer_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = start(folder, "1", name="evil\x1b[2J\x1b]0;title\x07\nsecond line")
    ok("wait", run, "--timeout", "90")
    for words in (["ps"], ["show", run], ["stop", run], ["wait", run], ["profiles", "check", "no\x1b[2Jname"]):
        main(words)
        shown = "".join(capsys.readouterr())
        assert shown
        assert "\x1b" not in shown
        assert "\x07" not in shown


def test_ps_never_tells_a_settled_run_from_a_stale_cache(folder: Path) -> None:
    run = start(folder, "2")
    ok("wait", run, "--timeout", "90")
    assert as_json("ps")[0]["state"] == told("ps")[0]["state"] == "finished"
    cache = Path(os.environ["MPSTUI_HOME"]) / "cache" / "ps.cache"
    wait_until(lambda: told("ps") and cache.exists(), what="the cached row: the supervisor may still be leaving")
    ok("restart", run)
    wait_until(lambda: told("ps")[0]["attempt"] == 2, what="attempt 2 in ps")
    ok("wait", run, "--timeout", "90")
    row = told("ps")[0]
    assert (row["state"], row["attempts"]) == ("finished", 2)
    for damaged in (b"{torn", cache.read_bytes().replace(b'"finished"', b'"failed"'), b"00000000\n[]"):
        cache.write_bytes(damaged)
        assert told("ps")[0] == row
