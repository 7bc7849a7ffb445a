"""Options of a command are found and changed in whatever style they were written; totals are read from them."""

from __future__ import annotations

import pytest

from mpstui.core.profiles.written import replace_option, totals_of


@pytest.mark.parametrize(
    ("command", "key", "text", "changed"),
    [
        ("python train.py --max_iters=1200 --lr 1", "max_iters", "100", "python train.py --max_iters=100 --lr 1"),
        ("python train.py --max_iters=1200 --lr 1", "lr", "2", "python train.py --max_iters=1200 --lr 2"),
        ("python train.py --batch-size 8", "batch_size", "4", "python train.py --batch-size 4"),
        ("python train.py -b 8 --b 9", "b", "4", "python train.py -b 8 --b 4"),
        ("yolo train epochs=3 imgsz=64", "epochs", "1", "yolo train epochs=1 imgsz=64"),
        ("python train.py +trainer.max_epochs=3", "trainer.max_epochs", "1", "python train.py +trainer.max_epochs=1"),
        ("python train.py --amp --lr 1", "amp", False, "python train.py --lr 1"),
        ("python train.py --amp=1 --lr 1", "amp", True, "python train.py --amp --lr 1"),
        ("python train.py --amp --lr 1", "amp", "bf16", "python train.py --amp bf16 --lr 1"),
        ("python train.py --offset -1.5 data", "offset", "2", "python train.py --offset 2 data"),
        ("python -X dev -m pkg.train --lr=1", "lr", "2", "python -X dev -m pkg.train --lr=2"),
        ("torchrun --nproc_per_node 2 train.py --n 2", "n", "3", "torchrun --nproc_per_node 2 train.py --n 3"),
        ("python train.py --lr 1", "max_iters", "100", None),
    ],
)
def test_an_option_is_changed_where_it_stands(command: str, key: str, text: str | bool, changed: str | None) -> None:
    words = command.split()
    assert replace_option(words, key, text) == (changed is not None)
    assert " ".join(words) == (changed or command)


@pytest.mark.parametrize(
    ("command", "totals"),
    [
        ("python main.py --epochs 3", (3, None)),
        ("python train.py config/x.py --max_iters=600", (None, 600)),
        ("python run_clm.py --num_train_epochs=3.0 --max_steps -1", (3, None)),
        ("python train.py trainer.max_epochs=5 trainer.max_steps=1e5", (5, 100_000)),
        ("accelerate launch train.py --max_train_steps 40", (None, 40)),
        ("yolo detect train epochs=7", (7, None)),
        ("python train.py --epochs all --max_steps", (None, None)),
        ("python train.py --epochs 2.5", (None, None)),
        ("python -c pass --epochs 3", (3, None)),
        ("./epochs 3", (None, None)),
        ("python -m pkg.train -b 3 --n-epochs 8", (8, None)),
    ],
)
def test_totals_are_what_the_arguments_ask_for(command: str, totals: tuple[int | None, int | None]) -> None:
    assert totals_of(command.split(), {}) == totals


def test_roles_say_which_argument_a_total_is() -> None:
    words = ["python", "train.py", "--niter", "5", "--epochs", "9", "--updates=70"]
    assert totals_of(words, {"epochs": "niter", "steps": "updates"}) == (5, 70)
