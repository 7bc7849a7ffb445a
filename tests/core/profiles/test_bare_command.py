"""`mpstui run -- COMMAND`: what follows the script as options can be changed, and is typed again as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.launching.command import argument_words
from mpstui.core.profiles.model import ArgumentValue, profile_of_command

TYPED = [
    ("python train.py --batch-size 256 --lr 3e-4 --amp", {"batch-size": "256", "lr": "3e-4", "amp": True}),
    ("python train.py data --epochs 3", {"epochs": "3"}),
    ("python train.py config/small.py --device=cpu --max_iters=600", {"max_iters": "600"}),
    ("python train.py --lr=3e-4 --amp --tag=a=b --note=", {"lr": "3e-4", "amp": True, "tag": "a=b", "note": ""}),
    ("python train.py --model.width 8", {"model.width": "8"}),
    ("yolo train epochs=3", {}),
    ("python train.py model=wide optim.lr=0.05 +note=x", {"model": "wide", "optim.lr": "0.05", "+note": "x"}),
    ("python train.py device=cpu epochs=3", {"epochs": "3"}),
    ("python train.py betas=[0.9,0.99] epochs=3", {}),
    ("python train.py ~model epochs=3", {}),
    ("python train.py data epochs=3", {}),
    ("python train.py epochs=3 epochs=4", {}),
    ("torchrun --nproc-per-node 2 train.py --betas 0.9 0.99", {"betas": ("0.9", "0.99")}),
    ("python -m pkg.train --offset -1.5", {"offset": "-1.5"}),
    ("python train.py --lr=3e-4 --epochs 3", {}),
    ("python train.py -b 3", {}),
    ("python train.py --tag a --tag b", {}),
    ("python train.py --out {run_dir}/x", {}),
    ("python -c pass --epochs 3", {}),
    ("./train --epochs 3", {}),
    ("python train.py", {}),
]


@pytest.mark.parametrize(("typed", "args"), TYPED, ids=[typed for typed, _ in TYPED])
def test_options_become_arguments_and_the_command_stays_the_same(typed: str, args: dict[str, ArgumentValue]) -> None:
    words = tuple(typed.split())
    profile = profile_of_command(words, cwd=Path("/"))
    assert profile.args == args
    assert (*profile.command, *argument_words(profile.args, profile.arg_style)) == words


def test_equals_signs_are_a_style_of_arguments() -> None:
    profile = profile_of_command(("python", "train.py", "--max_iters=600"), cwd=Path("/"))
    assert profile.arg_style == "equals"
    words = argument_words({"lr": 0.1, "betas": (1, 2), "amp": True, "off": False, "compile": "False"}, "equals")
    assert words == ["--lr=0.1", "--betas=1,2", "--amp", "--compile=False"]


def test_a_device_stays_in_the_command() -> None:
    profile = profile_of_command(("python", "train.py", "--device", "mps", "--epochs", "3"), cwd=Path("/"))
    assert profile.command == ("python", "train.py", "--device", "mps")
    assert profile.args == {"epochs": "3"}


def test_usual_names_tell_what_a_remedy_can_change() -> None:
    profile = profile_of_command(("python", "train.py", "--per_device_train_batch_size", "8"), cwd=Path("/"))
    assert profile.roles == {"batch_size": "per_device_train_batch_size"}
