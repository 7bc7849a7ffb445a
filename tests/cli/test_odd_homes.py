"""A home, a name or an age that nobody meant is one sentence."""

from __future__ import annotations

import io
import os
import sys
import time
from pathlib import Path

import pytest

from mpstui.cli.logs import print_new
from mpstui.cli.main import main
from mpstui.core.follow import FollowedFile
from mpstui.core.model.home import resolve_home
from mpstui.wire import rundir
from tests.core.runs.build import RunBuilder


@pytest.mark.parametrize("home", ["~nosuchuser/x", "/tmp/" + "a" * 300, "/tmp/" + "a/" * 3000])
@pytest.mark.parametrize("words", [("ps",), ("run", "--", "true"), ("wait", "x"), ("queue",)])
def test_an_impossible_home_is_one_sentence(
    home: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPSTUI_HOME", home)
    main(list(words))
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert len(told) < 9000


def test_an_age_of_four_hundred_digits_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["remove", "--older-than", "9" * 400 + "d", "--yes"]) == 2
    assert "is no age" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ['command = ["true", "a\\u0000b"]', 'command = ["true"]\n[device_args]\ncpu = ["\\u0000"]']
)
def test_a_word_that_no_program_can_be_given_is_found_by_the_check(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.toml").write_text(text)
    assert main(["profiles", "check", str(tmp_path / "p.toml")]) == 2
    assert "without NUL" in capsys.readouterr().err


def test_no_request_is_written_where_a_link_leads(tmp_path: Path) -> None:
    run = rundir.create_run_dir(tmp_path / "runs", "x", 1.0)
    (tmp_path / "other").mkdir()
    run.requests.rmdir()
    run.requests.symlink_to(tmp_path / "other")
    request = rundir.submit(run, rundir.new_request("stop", 1, 2.0))
    assert [item.id for item in rundir.unanswered(run)] == [request.id]
    assert list((tmp_path / "other").iterdir()) == []


def test_a_bar_is_printed_as_it_grows_and_a_line_without_end_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "utf-8"))
    path = tmp_path / "output.log"
    path.write_bytes(b"10%\r20%\r30%")
    file = FollowedFile(path)
    print_new(file, on_terminal=True)
    assert shown.getvalue() == b"10%\r20%\r"
    with path.open("ab") as more:
        more.write(b"x" * 30_000_000)
    began = time.process_time()
    print_new(file, on_terminal=True, whole=True)
    assert time.process_time() - began < 1.5, "0.25 here; 2.3 where what is not yet printed is looked through anew"
    assert len(shown.getvalue()) == 30_000_011


def test_numbers_of_four_hundred_digits_are_no_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    huge = "9" * 400
    path = tmp_path / "trainer_state.json"
    path.write_text(f'{{"log_history": [{{"step": {huge}, "loss": {huge}, "epoch": {huge}}}], "max_steps": {huge}}}')
    assert main(["diagnose", str(path)]) in (0, 1)
    capsys.readouterr()
    assert main(["parse", str(path)]) == 0
    assert huge[:50] not in capsys.readouterr().out


def test_a_pipe_is_neither_diagnosed_nor_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for words in ("diagnose", "parse", "watch"):
        assert main([words, str(tmp_path / "pipe")]) in (1, 2)
    assert capsys.readouterr().err.count("a pipe") >= 2


def test_a_checkpoint_pattern_of_two_hundred_parts_takes_nothing_away(capsys: pytest.CaptureFixture[str]) -> None:
    home = resolve_home(os.environ)
    home.runs.mkdir(parents=True)
    made = RunBuilder(home, "deep", created=time.time()).status("ended").launch().exit(code=0)
    template = made.spec.launch._replace(checkpoints="**/" * 2000 + "x", resume_args=["{checkpoint}"])
    made.respec(launch=template)
    for words in (["ps"], ["show", "deep"], ["restart", "deep", "--dry-run"], ["remove", "deep", "--dry-run"]):
        assert main(words) in (0, 1), words
    assert main(["remove", "deep", "--yes"]) == 0
    assert "removed 1 run" in capsys.readouterr().out
