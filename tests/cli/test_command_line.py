"""The command line as a whole: what a first word means, and that every wrong use is one sentence and a hint."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mpstui.cli import ps
from mpstui.cli.main import command_parser, commands, main
from mpstui.cli.parsing import INSTEAD
from mpstui.core.model.home import Home
from tests.cli.programs import as_json, mpstui, ok
from tests.core.runs.build import NOW, RunBuilder, make_home

PROFILE = 'name = "Steps"\ncommand = ["{python}", "steps.py"]\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = make_home(tmp_path)
    monkeypatch.setenv("MPSTUI_HOME", str(made.state))
    return made


def complaint(*words: str) -> tuple[str, str]:
    """The sentence and the hint of a command that must be used wrongly."""
    done = mpstui(*words)
    assert done.returncode == 2, done
    assert done.stdout == ""
    sentence, hint = done.stderr.splitlines()
    return sentence, hint


def test_names_of_a_sweep_stay_apart_in_the_list(home: Home) -> None:
    for seed in (1, 2):
        RunBuilder(home, f"CIFAR-10 six optimizers optimizer=adamw seed={seed}")
    told = ok("ps")
    assert [f"seed={seed}" in told for seed in (1, 2)] == [True, True]
    assert "CIFAR-10 six " in told


def test_a_run_needs_no_command(home: Home) -> None:
    RunBuilder(home, "transformer")
    done = mpstui("transformer", "--no-mouse")
    assert (done.returncode, "needs a terminal" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("lauch", "quickstart"), "did you mean `mpstui launch`?"),
        (("tarnsformer",), "did you mean transformer?"),
        (("zzz",), "`mpstui --help` and `mpstui ps --all`"),
        (("--run", "tarnsformer"), "did you mean transformer?"),
    ],
)
def test_a_word_that_means_nothing_gets_what_is_near(home: Home, words: tuple[str, ...], near: str) -> None:
    RunBuilder(home, "transformer")
    sentence, hint = complaint(*words)
    assert repr(words[-1] if words[0] == "--run" else words[0]) in sentence
    assert near in hint


def test_a_file_in_place_of_a_command_is_told_what_opens_it(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.touch()
    assert f"`mpstui run -- python {script}`" in complaint(str(script))[1]


def test_a_toml_file_in_place_of_a_command_is_a_profile_only_where_it_has_a_command(tmp_path: Path) -> None:
    profile, project = tmp_path / "steps.toml", tmp_path / "pyproject.toml"
    profile.write_text(PROFILE)
    project.write_text("[project]\nname = 'x'\n")
    assert f"`mpstui launch {profile}`" in complaint(str(profile))[1]
    assert f"`mpstui watch {project}`" in complaint(str(project))[1]
    assert f"`mpstui launch {profile}`" in complaint("run", str(profile))[1]
    assert "is a profile" not in complaint("run", str(project))[0]


def test_a_profile_in_place_of_a_run_is_told_how_to_start_it_and_a_run_in_place_of_a_profile_how_to_go_on(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "my-net.toml").write_text(PROFILE)
    monkeypatch.chdir(tmp_path)
    for words in (("show", "my_net"), ("logs", "my-net"), ("results", "my_net"), ("my_net",)):
        assert "'my-net' is a profile: " in (hint := complaint(*words)[1])
        assert "`mpstui launch my-net`" in hint
    run = RunBuilder(home, "transformer").run.run
    assert f"'transformer' is a run: `mpstui restart {run}`" in complaint("launch", "transformer")[1]
    assert f"`mpstui profiles save {run} NAME`" in complaint("profiles", "transformer")[1]
    assert "is a profile" not in complaint("show", "./my_net")[1]


def test_an_ambiguous_run_lists_the_candidates(home: Home) -> None:
    runs = [RunBuilder(home, f"run {i}", NOW + i).run.run for i in range(2)]
    assert all(run in complaint(runs[0][:6])[1] for run in runs)


def test_a_loss_that_is_not_finite_is_called_as_on_the_screen(home: Home) -> None:
    run = RunBuilder(home, "diverged").status("ended").launch().beat(step=3, loss=float("nan")).exit(code=0).run.run
    assert " NaN/inf " in ok("ps", "--all")
    assert "NaN/inf" in next(line for line in ok("show", run).splitlines() if line.startswith("loss"))
    assert as_json("ps", "--all")[0]["loss"] is None


def test_no_runs_yet_says_what_starts_one(home: Home) -> None:
    assert "mpstui launch quickstart" in ok("ps")
    assert as_json("ps") == []


def test_a_narrow_terminal_gets_fewer_columns_and_a_pipe_all(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunBuilder(home, "a name of some length", NOW).launch().beat(step=1_234_567).run.run
    assert main(["ps"]) == 0
    whole = capsys.readouterr().out
    assert "1,234,567" in whole
    assert whole.split()[:8] == ["RUN", "NAME", "STATE", "DEVICE", "EPOCH", "STEP", "LOSS", "STARTED"]
    monkeypatch.setattr(ps, "terminal_columns", lambda: 72)
    assert main(["ps"]) == 0
    narrow = capsys.readouterr().out.splitlines()
    assert max(map(len, narrow)) <= 72
    assert narrow[1].startswith(run)
    assert "NAME" not in narrow[0]


def test_a_profile_as_shell_and_json(tmp_path: Path) -> None:
    file = tmp_path / "steps.toml"
    file.write_text(PROFILE)
    script = ok("profiles", str(file), "--shell")
    assert json.loads(ok("profiles", str(file), "--shell", "--json"))["shell"] == script
    assert "shell" not in json.loads(ok("profiles", str(file), "--json"))
    for words in ((), ("check", str(file))):
        assert "--shell needs one profile" in complaint("profiles", *words, "--shell")[0]


def test_a_locale_without_unicode_gets_look_alikes_and_whole_json(home: Home) -> None:
    RunBuilder(home, "naïve · ✓")
    plain = {"PYTHONIOENCODING": "ascii"}
    assert "na?ve - v" in ok("ps", env=plain)
    assert json.loads(ok("ps", "--json", env=plain))[0]["name"] == "naïve · ✓"
    assert "neither" in mpstui("gibt-es-nicht-·", env=plain).stderr


WRONG: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("frobnicate", ("neither a command nor a run",)),
    ("launch", ("PROFILE",)),
    ("launch nowhere", ("no profile 'nowhere'", "quickstart")),
    ("launch quickstrat", ("no profile 'quickstrat'", "`quickstart`")),
    ("launch quickstart --device gpu", ("no device 'gpu'", "one of auto, mps, cuda, cpu")),
    ("launch quickstart --set epochs", ("--set 'epochs'", "KEY=VALUE")),
    ("launch quickstart --set epoch=3", ("no argument 'epoch'", "'epochs'")),
    ("launch quickstart --set epochs=many", ("'epochs' is a number (8 so far), not 'many'",)),
    ("launch quickstart --set epochs=", ("'epochs' is a number (8 so far), and may not be empty",)),
    ("launch quickstart --sweep lr", ("--sweep 'lr'", "`--sweep epochs=3`")),
    ("launch quickstart --recipe sfe", ("no recipe 'sfe'", "'safe'")),
    ("launch quickstart --env 1X=2", ("--env '1X=2'", "NAME=VALUE")),
    ("launch quickstart --after gone", ("no run 'gone'",)),
    ("launch quickstart --bogus", ("--bogus",)),
    ("run", ("no command to run",)),
    ("run -- no-such-program", ("no program 'no-such-program'", "full path")),
    ("show", ("RUN",)),
    ("show gone", ("no run 'gone'",)),
    ("logs gone", ("no run 'gone'",)),
    ("wait --timeout soon gone", ("--timeout", "'soon'")),
    ("wait --timeout -1 gone", ("--timeout", "-1")),
    ("wait --timeout nan gone", ("--timeout", "nan")),
    ("stop", ("RUN",)),
    ("kill gone", ("no run 'gone'",)),
    ("restart gone --device tpu", ("no device 'tpu'", "cuda")),
    ("restart gone --set x", ("--set 'x'",)),
    ("clear-cache gone", ("no run 'gone'",)),
    ("parse", ("FILE",)),
    ("parse gone.log", ("gone.log", "folder")),
    ("diagnose gone.log", ("neither a file nor a run 'gone.log'",)),
    ("profiles check", ("needs one file", "mine.toml")),
    ("profiles check gone.toml", ("gone.toml", "`mpstui profiles`")),
    ("profiles save gone", ("a run and a name",)),
    ("queue pause gone", ("no queue group 'gone'",)),
    ("watch gone.log", ("gone.log", "heartbeat")),
    ("doctor extra", ("extra",)),
    ("ps extra", ("extra",)),
    ("ps extra", ("--filter extra",)),
    ("ps --state failed", ("no option --state", "`--filter failed`")),
    ("ps --filter state=faild", ("no such state", "did you mean failed?")),
    ("--color pink", ("'pink'", "truecolor")),
    ("--colour 16", ("no option --colour", "`--color 16`")),
    ("--theme drak", ("'drak'", "`--theme dark`")),
    ("compare", ("`mpstui results`", "`mpstui report RUN RUN`", "`C` on the screen")),
    ("list", ("`mpstui ps`",)),
    ("cancle", ("`mpstui stop RUN`",)),
    ("export one two", ("export needs --to", "csv, parquet")),
    ("export one --to csvv", ("no --to 'csvv'", "`--to csv`")),
    ("alerts tset", ("no 'tset'", "`test`")),
    ("completion fsh", ("no 'fsh'", "`fish`")),
    ("completion", ("completion needs bash|zsh|fish", "--help")),
    ("move one --to", ("--to needs a value",)),
    ("note", ("note needs RUN", "`mpstui ps`")),
    ("launch quickstart --devise cpu", ("no option --devise", "`--device cpu`")),
    ("launch quickstart --epochs 3", ("no option --epochs", "`--set epochs=3`")),
    ("launch quickstart --epochs=3", ("no option --epochs", "`--set epochs=3`")),
    ("launch --device", ("--device needs a value",)),
    ("logs one --attempt last", ("--attempt takes a whole number, not 'last'",)),
    ("run --epochs 3 -- python x.py", ("no option --epochs", "-- COMMAND")),
)


@pytest.mark.parametrize(("line", "parts"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_use_is_one_sentence_that_says_what_and_where(
    home: Home, line: str, parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    told = capsys.readouterr()
    assert told.out == ""
    sentence, *hint = told.err.splitlines()
    assert sentence.startswith("mpstui")
    assert len(hint) <= 1
    assert all(part in told.err for part in parts), told.err
    assert not re.search("unrecognized arguments|invalid choice|invalid \\w+ value|are required|expected one", told.err)


def test_what_to_write_in_place_of_other_words_is_a_command_with_options_that_it_has() -> None:
    for meant in INSTEAD.values():
        for line in re.findall("`mpstui ([^`]+)`", meant):
            words = line.replace(" COMMAND", " true").split()
            if words[0] in commands():
                command_parser(words[0], commands()[words[0]]).parse_args(words[1:])
            else:
                assert words[0] in ("RUN", "--help", "--version")


@pytest.mark.parametrize("command", commands())
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: mpstui {command}")
    description = text.split("\n\n")[1]
    assert description[0].isupper()
    assert "None" not in text


@pytest.mark.parametrize(("words", "takes"), [(["demo"], False), (["completion"], False), (["ps"], True), ([], True)])
def test_the_help_names_host_where_it_works(words: list[str], takes: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    assert ("--host HOST" in capsys.readouterr().out) is takes


def test_a_command_after_two_dashes_is_in_the_usage_of_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert capsys.readouterr().out.startswith("usage: mpstui run [options] -- COMMAND ...")


def test_an_interrupt_that_comes_while_an_object_is_freed_is_not_lost() -> None:
    script = """
        import os, signal, sys, time
        from mpstui.cli import main

        class Freed:
            def __del__(self):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)  # until it comes: what it raises here nobody can catch

        def command(arguments):
            Freed()
            time.sleep(300)
            return 0

        main._dispatch = command
        sys.exit(main.main(["ps"]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], stderr=subprocess.PIPE, timeout=200)
    assert (done.returncode, done.stderr) == (130, b"")
