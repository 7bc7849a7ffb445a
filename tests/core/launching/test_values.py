"""Values that cannot be right are refused before anything starts; what a program may make itself is only doubted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mpstui.core.launching.arguments import known_arguments
from mpstui.core.launching.values import doubtful_files, require_values
from mpstui.core.model.errors import UsageError
from mpstui.core.model.home import resolve_home

SCRIPT = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--dataset", choices=["cifar10", "cifar100"])
parser.add_argument("--epochs", type=int)
parser.add_argument("--lr", type=float)
parser.add_argument("--config")
parser.add_argument("--data")
print(parser.parse_args())
"""


@pytest.fixture(name="argv")
def _argv(tmp_path: Path) -> list[str]:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "there.yaml").write_text("x: 1\n")
    for name in ("configs/tiny.yaml", "data/en/train.csv"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return [sys.executable, "train.py"]


def environ(folder: Path) -> dict[str, str]:
    return {"MPSTUI_HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"dataset": "x8cifar10"}, "'x8cifar10' is none of the program's choices"),
        ({"epochs": "2.5"}, "epochs is a whole number, not '2.5'"),
        ({"lr": "1e-x"}, "lr is a number, not '1e-x'"),
        ({"config": "gone.yaml"}, "there is no file or folder gone.yaml"),
        ({"dataset": "CIFAR10", "epochs": 3, "lr": "1e-3", "config": "there.yaml"}, ""),
        ({"output_file": "new.csv", "save_config": "new.yaml", "checkpoint": "out/last.pt"}, ""),
        ({"pretrained": "facebook/opt-125m", "config": "base", "data": "https://x.example/a.csv"}, ""),
        ({"config": "tiny.yaml", "train_file": "en/train.csv"}, ""),  # the program looks in a folder of its own
        ({"config": "sub/tiny.yaml"}, "there is no file or folder sub/tiny.yaml"),
        ({"vocab": "vocab.txt", "tokenizer": "made/tokenizer.json", "train_file": "/gone/train.csv"}, ""),
        ({"data": "prepared.npz", "csv": "results.csv"}, ""),
        ({"config": "{run_dir}/a.yaml", "resume": "out/last.pt", "verbose": True}, ""),
    ],
)
def test_what_cannot_be_right_is_refused(
    tmp_path: Path, argv: list[str], arguments: dict[str, str], wrong: str
) -> None:
    around = environ(tmp_path)
    known_arguments(argv, cwd=tmp_path, environ=around, cache=resolve_home(around).arguments)
    if not wrong:
        require_values(argv, arguments, tmp_path, around)
        return
    with pytest.raises(UsageError) as found:
        require_values(argv, arguments, tmp_path, around)
    assert wrong in found.value.sentence
    assert found.value.field == f"args.{[*arguments][-1]}"


@pytest.mark.parametrize(
    ("arguments", "doubted"),
    [
        ({"vocab": "vocab.txt"}, ["vocab.txt"]),  # it may be made of the data, where there is none
        ({"train_file": "/gone/train.csv"}, ["/gone/train.csv"]),
        ({"config": "tiny.yaml", "train_file": "en/train.csv"}, []),  # the program looks in a folder of its own
        ({"root_path": "./there", "data_path": "ETTh1.csv"}, []),
        ({"root_path": "./there", "data_path": "/gone/ETTh1.csv"}, ["/gone/ETTh1.csv"]),
        ({"output_dir": "out", "train_data": "gone.csv"}, ["gone.csv"]),
        ({"output_file": "new.csv", "checkpoint": "out/last.pt", "data": "{run_dir}/a.csv"}, []),
        ({"pretrained": "facebook/opt-125m", "data": "https://x.example/a.csv", "train": True}, []),
    ],
)
def test_a_file_that_the_program_may_make_itself_is_only_doubted(
    tmp_path: Path, argv: list[str], arguments: dict[str, str], doubted: list[str]
) -> None:
    found = doubtful_files(argv, arguments, tmp_path, ())
    assert [line.partition("there is no file ")[2].partition(" in ")[0] for line in found] == doubted
    assert all(line.endswith("the program fails unless it makes it") for line in found)


def test_a_launch_names_the_file_it_doubts_and_starts(
    tmp_path: Path, argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mpstui.cli.main import main

    monkeypatch.chdir(tmp_path)
    assert main(["run", "--dry-run", "--", *argv, "--vocab", "vocab.txt"]) == 0
    assert f"vocab: there is no file vocab.txt in {tmp_path}" in "".join(capsys.readouterr())


def test_a_choice_that_nobody_knows_yet_is_asked_for_where_that_is_wanted(tmp_path: Path, argv: list[str]) -> None:
    around = environ(tmp_path)
    require_values(argv, {"dataset": "x8cifar10"}, tmp_path, around)
    with pytest.raises(UsageError, match="none of the program's choices"):
        require_values(argv, {"dataset": "x8cifar10"}, tmp_path, around, ask=True)


def test_a_folder_of_data_may_be_made_by_the_program_but_not_by_ours(tmp_path: Path) -> None:
    around = environ(tmp_path)
    require_values(["sh"], {"data-dir": "./data"}, tmp_path, around)
    with pytest.raises(UsageError, match="there is no file or folder"):
        require_values(["python", "-m", "trainer", "cifar"], {"data": "gone"}, tmp_path, around)


def test_a_sweep_of_a_misspelt_word_starts_nothing(
    tmp_path: Path, argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mpstui.cli.main import main

    for name, value in environ(tmp_path).items():
        monkeypatch.setenv(name, value)
    command = json.dumps(argv)
    profile = tmp_path / "mine.toml"
    profile.write_text(f'name = "mine"\ncommand = {command}\n[args]\ndataset = "x8cifar10"\n[sweep]\nlr = [0.1, 0.2]\n')
    assert main(["launch", str(profile)]) == 2
    assert "none of the program's choices" in capsys.readouterr().err
    assert not [*(tmp_path / "home").glob("runs/*")]
