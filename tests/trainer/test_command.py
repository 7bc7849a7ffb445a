"""The command line: wrong use is one sentence and code 2."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.trainer.building import ROOT, TINY
from trainer.__main__ import main
from trainer.inspection import Inspection


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data", "elsewhere"], "trainer: --data elsewhere: no cifar10 there"),
        (["--device", "mps"], "trainer: --device mps: torch"),
        (["--optimizer", "sdg"], "trainer: argument --optimizer: invalid choice: 'sdg'"),
        (["--resume", "gone.pt"], "trainer: gone.pt does not exist"),
        (["--batch-size", "0"], "trainer: argument --batch-size: 0 is not at least 1"),
        (["--lr", "nan"], "trainer: argument --lr: nan is not a number"),
        (["--ema", "1"], "trainer: argument --ema: 1 is not below 1"),
        (["--keep", "0"], "trainer: --keep must be at least 1"),
    ],
)
def test_wrong_use_is_one_sentence_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["cifar", *TINY, "--out", str(tmp_path), *arguments]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(sentence)
    assert len(printed.splitlines()) == 1


def test_an_unknown_task_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cifra"]) == 2
    assert capsys.readouterr().err == "trainer: there is no task 'cifra'; did you mean cifar?\n"


def test_a_report_whose_reader_has_left_ends_quietly(tmp_path: Path) -> None:
    """``results FOLDER | head``: many lines into a pipe that nobody reads any more."""
    for number in range(40):
        run = tmp_path / f"run-{number:03d}"
        run.mkdir()
        (run / "metrics.jsonl").write_text('{"time": 1.0, "step": 1, "loss": 0.5}\n')
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-P", "-m", "trainer", "results", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_options_that_decide_order_and_algorithms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["cifar", *TINY, "--limit", "24", "--batch-size", "16", "--epochs", "1", "--out"]
    assert main([*words, str(tmp_path / "a")]) == 0
    assert "1 epochs of 2 steps" in capsys.readouterr().out
    try:
        assert main([*words, str(tmp_path / "b"), "--drop-last", "--deterministic"]) == 0
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(mode=False)
    assert "1 epochs of 1 steps" in capsys.readouterr().out


def test_help_names_the_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "cifar" in capsys.readouterr().out


def test_the_first_lines_say_device_data_parameters_and_precision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cifar", *TINY, "--limit", "16", "--epochs", "1", "--out", str(tmp_path)]) == 0
    first = capsys.readouterr().out.splitlines()[:3]
    assert first[0].startswith("device: cpu (")
    assert first[0].endswith("precision fp32")
    assert first[1].startswith("data: synthetic gratings, seed 0, first 16: 16 training")
    assert first[2] == "model: tiny · width 4 · classes 10 · 5,214 parameters"


def test_checking_data_tells_of_every_problem() -> None:
    told = Inspection("files", {}, tuple(f"file {number} is bad" for number in range(1, 101))).text().splitlines()
    assert told[1:] == [*(f"problem: file {number} is bad" for number in range(1, 101)), "100 problems found"]
    assert Inspection("files", {}, ("one",)).text().splitlines()[-1] == "1 problem found"


@pytest.mark.parametrize(
    "words",
    [
        ["cifar", *TINY, "--limit", "16", "--epochs", "1", "--out", "{}/a"],
        ["cifar", *TINY, "--limit", "16", "--epochs", "1", "--out", "{}/a", "--longest-step", "9"],
        ["evaluate", "{}"],
        ["results", "{}"],
    ],
    ids=lambda words: " ".join(words[::8]),
)
def test_a_process_that_started_without_a_look_for_garbage_looks_for_it_at_work(
    tmp_path: Path, words: list[str]
) -> None:
    gc.disable()
    try:
        main([word.format(tmp_path) for word in words])
        assert gc.isenabled()
    finally:
        gc.enable()
