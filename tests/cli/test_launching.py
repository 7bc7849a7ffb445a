"""Launching from the command line: what is started is what was asked, and mistakes start nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpstui.cli.main import main
from tests.cli.programs import STEPS, as_json, mpstui, ok, run_folder, told

TORCH_WITHOUT_DEVICES = """
from types import SimpleNamespace
cuda = SimpleNamespace(is_available=lambda: False)
backends = SimpleNamespace(mps=cuda)
"""
PROFILE = 'name = "Steps"\ncommand = ["{python}", "steps.py", "3"]\n[args]\nepochs = 2\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "steps.toml").write_text(PROFILE)
    return tmp_path


def runs_started() -> list[str]:
    runs = Path(os.environ["MPSTUI_HOME"]) / "runs"
    return sorted(entry.name for entry in runs.iterdir()) if runs.exists() else []


def test_launch_wait_logs(folder: Path) -> None:
    run = as_json("launch", "./steps.toml", "--set", "epochs=7", cwd=folder)["run"]
    assert ok("wait", run, "--timeout", "90").startswith(f"{run}: finished")
    assert ok("logs", run).splitlines()[0] == "arguments: ['3', '--epochs', '7']"
    row = as_json("ps")[0]
    assert (row["run"], row["name"], row["profile"], row["state"]) == (run, "Steps", "steps", "finished")
    assert row["exit"] == {
        "code": 0,
        "signal": None,
        "cause": None,
        "requested_by": None,
        "action": None,
    }
    assert row["epochs"] == 7  # what its arguments ask for


def test_a_profile_of_a_cloned_folder_is_shown_before_it_first_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "profiles").mkdir()
    (folder / "profiles" / "steps.toml").write_text('cwd = ".."\n' + PROFILE + r'note = "x\u001b]52;c;x\u0007y"')
    monkeypatch.chdir(folder)
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: "\n")
    assert main(["launch", "steps"]) == 2
    asked = capsys.readouterr().err
    assert "steps of ./profiles is launched for the first time" in asked
    assert "steps.py 3" in asked
    assert "  arguments: epochs=2, note=" in asked
    assert "\x1b" not in asked
    assert runs_started() == []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)  # a script is told, and not asked
    assert main(["launch", "steps"]) == 0
    (told,) = [line for line in capsys.readouterr().err.splitlines() if "launched for the first time" in line]
    assert re.search(r"It runs, in \S+: \S+ steps\.py 3; arguments: epochs=2, note=", told), told
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert main(["launch", "steps"]) == 0
    assert "first time" not in capsys.readouterr().err
    assert len(runs_started()) == 2


def test_what_a_launch_would_do_is_printed_and_nothing_is_started(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / ".env").write_text("TOKEN=1\n")
    monkeypatch.chdir(folder)
    words = ["launch", "./steps.toml", "--sweep", "epochs=1,2", "--dry-run"]
    assert main(words) == 0
    told = capsys.readouterr()
    assert told.out.count("steps.py 3 --epochs") == 2
    assert "first time" not in told.err
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [found["host"], found["code"], len(found["runs"])] == ["local", None, 2]
    assert found["runs"][1]["waits_for"] == ["a slot in queue cpu"]
    there = f"local:{folder}-far"
    assert main([*words, "--on", there]) == 0
    printed = capsys.readouterr().out
    assert f"{there} gets 2 files of {folder}" in printed
    assert "stays here: .env (a secret by its name)" in printed
    assert f"cd {folder}-far/code/" in printed
    assert main([*words, "--on", there, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["code"]["stays"] == [{"name": ".env", "why": "secret", "line": None}]
    assert not Path(f"{folder}-far", "runs").exists()
    assert main(["launch", "./steps.toml", "--on", "gpu1", "--on", "gpu2"]) == 2
    assert runs_started() == []


def test_a_profile_that_was_launched_elsewhere_is_known(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    for times in (1, 0):
        assert main(["launch", "./steps.toml", "--on", f"local:{folder}-far"]) == 0
        assert capsys.readouterr().err.count("first time") == times


def test_one_profile_that_nobody_can_read_hides_no_other(folder: Path) -> None:
    (folder / "profiles").mkdir()
    for name, text in (("deep", "x=" + "[" * 99_999), ("dots", ".".join("a" * 99_999)), ("digits", "x=" + "1" * 9999)):
        (folder / "profiles" / f"{name}.toml").write_text(text)
    os.mkfifo(folder / "profiles" / "pipe.toml")
    listed = {row["name"]: row for row in as_json("profiles", cwd=folder)}
    assert {name for name, row in listed.items() if row["error"]} == {"deep", "dots", "digits", "pipe"}
    assert "quickstart" in listed
    assert mpstui("launch", "misspelt", cwd=folder).returncode == 2


def test_any_command_keeps_its_words(folder: Path) -> None:
    words = ["a b", "$HOME", "`id`", "it's", "--device", "--", '"', "*", "--json"]
    script = "import json, sys; print(json.dumps(sys.argv[1:]))"
    run = ok("run", "--name", "quoting", "--", sys.executable, "-c", script, *words, cwd=folder).strip()
    ok("wait", run, "--timeout", "90")
    assert json.loads(ok("logs", run)) == words


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (
            ["launch", "./bad.toml"],
            ["bad.toml:1:", "`comand`", "did you mean `command`?", "bad.toml:3:", "`grace_seconds`?"],
        ),
        (["launch", "stps"], ["there is no profile 'stps'"]),
        (["launch", "./steps.toml", "--set", "epochs"], ["KEY=VALUE"]),
        (["launch", "./steps.toml", "--set", "epoch=1"], ["did you mean 'epochs'"]),
        (["launch", "./steps.toml", "--set", "epochs=x"], ["is a number"]),
        (["launch", "./steps.toml", "--device", "msp"], ["there is no device 'msp'", "did you mean 'mps'"]),
        (["launch", "./steps.toml", "--recipe", "sfe"], ["did you mean 'safe'"]),
        (["launch", "./gone.toml"], ["gone.toml"]),
        (["launch", "./nothing.toml"], ["nothing.toml:1: ", "no-such-program"]),
        (
            ["run", "--device", "mps", "--", sys.executable, "steps.py", "--device", "mps"],
            ["no mps device", "--device cpu"],
        ),
        (["run", "--", "no-such-program"], ["no-such-program"]),
        (["run", "quickstart"], ["'quickstart' is a profile, not a program", "`mpstui launch quickstart`\n"]),
        (["run", "--", "quickstart", "--epochs", "2"], ["`mpstui launch quickstart` (`--set KEY=VALUE` changes"]),
        (["run", "./steps.toml"], ["is a profile", "`mpstui launch ./steps.toml`"]),
        (["quickstart"], ["neither a command nor a run", "`mpstui launch quickstart`"]),
        (["run"], ["no command"]),
        (["launch", "./steps.toml", "--after", "nobody"], ["there is no run 'nobody'"]),
        (["launch", "./steps.toml", "--env", "A-B=1"], ["NAME=VALUE"]),
        (["launch"], ["launch needs PROFILE", "`mpstui profiles`"]),
        (["launch", "--queue"], ["launch needs PROFILE"]),
        (
            ["launch", "--queue", "./steps.toml"],
            ["--queue took './steps.toml' for the queue's name", "`mpstui launch ./steps.toml --queue`"],
        ),
        (
            ["run", "--queue", "sh", "steps.sh"],
            ["--queue took 'sh', a program,", "`mpstui run --queue -- sh steps.sh`"],
        ),
        (["run", "--queue", "sh"], ["`mpstui run --queue -- sh`"]),
        (["run", "--queue", "night"], ["no command"]),
        (["run", "--queue", "sh", "-u", "steps.sh"], ["write `mpstui run [options] -- COMMAND ...`"]),
        (["run", "--cwd", "gone", "--", "true"], ["there is no folder"]),
        (["run", "--resume='", "--", "true"], ["cannot be split into words"]),
        (["launch", "./pid.toml"], ["pid.toml:2: `pid_file`", "there is no folder"]),
        (["lanch"], ["did you mean `mpstui launch`?"]),
    ],
    ids=lambda value: " ".join(value[:2])[:40] if value and isinstance(value, list) else None,
)
def test_wrong_use_exits_with_2_and_starts_nothing(
    folder: Path,
    words: list[str],
    parts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "bad.toml").write_text('comand = ["x"]\n[stop]\ngrace = 3\n')
    (folder / "nothing.toml").write_text('command = ["no-such-program"]\n')
    (folder / "pid.toml").write_text('command = ["true"]\npid_file = "gone/x.pid"\n')
    (folder / "torch.py").write_text(TORCH_WITHOUT_DEVICES)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.chdir(folder)
    assert main(words) == 2
    complaint = capsys.readouterr().err
    for part in parts:
        assert part in complaint
    assert runs_started() == []


def test_a_mistake_is_a_sentence_and_no_traceback(folder: Path) -> None:
    done = mpstui("launch", "./gone.toml", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("mpstui: ")
    assert "Traceback" not in done.stderr


def test_a_command_can_say_where_it_runs_and_how_it_goes_on(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "steps.py").write_text(
        "import os, sys\nprint(os.getcwd(), sys.argv[1:])\nopen(f'c{len(sys.argv)}.pt', 'w').write('x' * 64)\n"
    )
    options = ["--cwd", "sub", "--resume=--resume {checkpoint}", "--checkpoints", "*.pt"]
    run = ok("run", *options, "--", sys.executable, "steps.py", "--lr=1", "--n", "2", cwd=folder).strip()
    ok("wait", run, "--timeout", "90")
    ok("restart", run, "--set", "lr=3", cwd=Path("/"))
    ok("wait", run, "--timeout", "90")
    checkpoint = folder / "sub" / "c4.pt"
    assert ok("logs", run) == f"{folder / 'sub'} {['--lr=3', '--n', '2', '--resume', str(checkpoint)]}\n"
    assert [one["path"] for one in told("show", run)["checkpoints"]][-1] == str(checkpoint)


def test_an_ambiguous_run_lists_the_candidates(folder: Path) -> None:
    ids = [ok("run", "--name", name, "--", "true", cwd=folder).strip() for name in ("one", "two")]
    done = mpstui("show", ids[0][:4])
    assert done.returncode == 2
    assert all(run in done.stderr for run in ids)


def test_a_secret_among_the_arguments_reaches_the_program_and_is_shown_nowhere(folder: Path) -> None:
    words = [
        "steps.py",
        "3",
        "--api-key",
        "s3cret-1",
        "--hf-token=s3cret-2",
        "https://ada:s3cret-3@host/x?sig=s3cret-4",
    ]
    started = mpstui("run", "--", sys.executable, *words, cwd=folder)
    assert "the secret of `--api-key` stays in the run's record" in started.stderr
    run = started.stdout.strip()
    ok("wait", run, "--timeout", "90")
    assert all(f"s3cret-{number}" in ok("logs", run) for number in range(1, 5))
    shown = started.stderr + ok("show", run) + ok("show", run, "--json") + ok("ps", "--json") + ok("diagnose", run)
    assert "s3cret" not in shown


def test_secrets_never_touch_the_disk(folder: Path) -> None:
    (folder / "steps.py").write_text("import os; print(len(os.environ['HF_TOKEN'] + os.environ['MY_API_KEY']))\n")
    (folder / "steps.toml").write_text(
        'command = ["{python}", "steps.py"]  # hf_profile_secret\n[env]\nHF_TOKEN = "hf_profile_secret"\n'
        'DATABASE = "postgres://me:urlpassw0rd@host/db"\n'
    )
    run = as_json("launch", "./steps.toml", cwd=folder, env={"MY_API_KEY": "caller_secret_1"})["run"]
    ok("wait", run, "--timeout", "90")
    assert ok("logs", run).strip() == str(len("hf_profile_secret") + len("caller_secret_1"))
    everything = b"".join(path.read_bytes() for path in run_folder(run).rglob("*") if path.is_file())
    for secret in (b"hf_profile_secret", b"caller_secret_1", b"urlpassw0rd"):
        assert secret not in everything
    assert {"HF_TOKEN", "MY_API_KEY", "DATABASE"} <= set(
        json.loads((run_folder(run) / "spec.json").read_text())["secret_env"]
    )


def test_a_foreign_script_in_another_virtual_environment(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (folder / "foreign.py").write_text(
        "import importlib.util, sys\n"
        "assert importlib.util.find_spec('mpstui') is None and importlib.util.find_spec('trainer') is None\n"
        "print('prefix', sys.prefix)\nprint('Epoch 1/2 loss: 0.5')\nprint('Epoch 2/2 loss: 0.25')\n"
    )
    (folder / "foreign.toml").write_text(
        'command = ["{python}", "foreign.py"]\npython = "venv/bin/python"\nagent = true\n[args]\nlr = 0.1\n'
    )
    run = as_json("launch", "./foreign.toml", cwd=folder)["run"]
    ok("wait", run, "--timeout", "90")
    assert f"prefix {folder / 'venv'}" in ok("logs", run)
    shown = told("show", run)
    assert (shown["epoch"], shown["epochs"], shown["loss"]) == (2, 2, 0.25)


def test_a_sweep_is_every_combination_one_after_the_other(folder: Path) -> None:
    found = as_json("launch", "./steps.toml", "--sweep", "epochs=1,2", "--sweep", "seed=5,6", cwd=folder)
    assert len(found["runs"]) == 4
    specs = [json.loads((run_folder(run) / "spec.json").read_text()) for run in found["runs"]]
    assert [spec["launch"]["variants"]["auto"]["argv"][-4:] for spec in specs] == [
        ["--epochs", epochs, "--seed", seed] for epochs in "12" for seed in "56"
    ]
    assert {spec["queue"]["group"] for spec in specs} < {"mps", "cuda", "cpu"}
    for run in found["runs"]:
        ok("wait", run, "--timeout", "90")


def test_a_sweep_asks_on_a_terminal_with_its_runs_and_how_long_they_take(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: "\n")
    assert main(["launch", "./steps.toml", "--sweep", "epochs=1,2", "--sweep", "seed=5,6"]) == 2
    asked = capsys.readouterr().err
    assert "Steps epochs=1 seed=6" in asked
    assert "How long they take is unknown" in asked
    assert "start 4 runs, one at a time on each accelerator? [y/N]" in asked
    assert runs_started() == []
    monkeypatch.setattr(sys.stdin, "readline", lambda: pytest.fail("asked"))
    assert main(["launch", "./steps.toml", "--sweep", "seed=5,6", "--yes", "--json"]) == 0
    assert len(runs_started()) == 2
    for run in runs_started():
        ok("wait", run, "--timeout", "90")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_person_is_told_how_a_new_run_is_opened_and_a_script_its_id_alone(
    terminal: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: terminal)
    assert main(["run", "--", "true"]) == 0
    (run,) = runs_started()
    said = capsys.readouterr()
    assert said.out == f"{run}\n"
    assert (f"`mpstui {run}` opens it" in said.err) is terminal
    ok("wait", run, "--timeout", "90")


def test_a_profile_that_sweeps_queues_its_product(folder: Path) -> None:
    (folder / "swept.toml").write_text(f"{PROFILE}seed = 1\n[sweep]\nseed = [1, 2]\n[sweep.epochs]\n3 = {{}}\n")
    runs = as_json("launch", "./swept.toml", cwd=folder)["runs"]
    specs = [json.loads((run_folder(run) / "spec.json").read_text()) for run in runs]
    told_words = [spec["launch"]["variants"]["auto"]["argv"][-4:] for spec in specs]
    assert told_words == [["--epochs", "3", "--seed", seed] for seed in "12"]
    assert {spec["queue"]["group"] for spec in specs} < {"mps", "cuda", "cpu"}
    one = as_json("launch", "./swept.toml", "--set", "seed=9", cwd=folder)["run"]
    script = ok("profiles", "./swept.toml", "--shell", cwd=folder)
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True)
    started = [line for line in done.stdout.splitlines() if line.startswith("arguments")]
    assert [line.split("'--seed', ")[1] for line in started] == ["'1']", "'2']"]
    for run in (*runs, one):
        ok("wait", run, "--timeout", "90")


def test_after_waits_for_the_other_run(folder: Path) -> None:
    first = ok("run", "--name", "first", "--", sys.executable, "steps.py", "10", cwd=folder).strip()
    second = ok("run", "--name", "second", "--after", "first:any", "--", "true", cwd=folder).strip()
    ok("wait", second, "--timeout", "90")
    assert told("show", first)["ended"] <= told("show", second)["started"]


def test_profiles_are_listed_shown_checked_and_saved(folder: Path) -> None:
    assert any(entry["name"] == "quickstart" for entry in as_json("profiles", cwd=folder))
    script = ok("profiles", "./steps.toml", "--shell", cwd=folder)
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("arguments: ['3', '--epochs', '2']")
    assert "nothing is wrong" in ok("profiles", "check", "./steps.toml", cwd=folder)
    run = as_json("launch", "./steps.toml", "--set", "epochs=9", cwd=folder)["run"]
    path = Path(as_json("profiles", "save", run, "mine")["path"])
    again = mpstui("profiles", "save", run, "mine")
    assert (again.returncode, "already" in again.stderr) == (2, True)
    assert "epochs = 9" in path.read_text()
    other = as_json("launch", "mine", cwd=folder.parent)["run"]
    ok("wait", other, "--timeout", "90")
    assert ok("logs", other).startswith("arguments: ['3', '--epochs', '9']")


def test_check_lists_every_mistake(folder: Path) -> None:
    (folder / "bad.toml").write_text('command = ["{python}", "stps.py"]\ncwd = "nowhere"\n')
    done = mpstui("profiles", "check", "./bad.toml", "--json", cwd=folder)
    assert done.returncode == 2
    assert [(one["line"], one["key"]) for one in json.loads(done.stdout)["problems"]] == [(2, "cwd")]
