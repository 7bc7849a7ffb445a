"""Lines of several shapes in any order are read by these, and say what they say when they are read one by one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpstui.core.formats.reader import LogReader

from .alternating import LINES, told, written


@settings(max_examples=10)
@given(
    names=st.lists(st.sampled_from(sorted(LINES)), min_size=1, max_size=6, unique=True),
    seed=st.integers(0, 10**6),
    regular=st.booleans(),
    lengths=st.lists(st.integers(1, 40_000), min_size=1, max_size=9),
)
def test_any_shapes_in_any_order_cut_anywhere(names: list[str], seed: int, regular: bool, lengths: list[int]) -> None:
    data = written(names, seed, 900, regular=regular)
    assert told(data, [*lengths, len(data)], one_by_one=False) == told(data, [len(data)], one_by_one=True)


class Counted(LogReader):
    """Counts the lines that are examined."""

    examined = 0

    def _examine(self, text: str):  # type: ignore[no-untyped-def]
        self.examined += 1
        return super()._examine(text)


CYCLES = {
    "Caffe": ("iteration", "output", "output of two", "rate"),
    "one measure a line": ("batch", "measure at step", "norm", "rate alone", "time"),
    "epochs": ("epoch", "train and accuracy", "validation"),
    "a record and a remark": ("step of total", "memory", "rule", "part"),
}


@pytest.mark.parametrize("cycle", CYCLES)
def test_few_lines_are_read_one_by_one(cycle: str) -> None:
    reader, data = Counted(), _among(CYCLES[cycle])
    for start in range(0, len(data), 1 << 16):
        reader.take(data[start : start + (1 << 16)])
    reader.close()
    assert reader.examined < 700


def _among(names: tuple[str, ...], *between: str, rounds: int = 600) -> bytes:
    """Lines of these kinds in turn, and those ``between`` four times after some that are read by their shape."""
    source = random.Random(1)
    lines = []
    for i in range(rounds):
        lines += [LINES[name](i, source) for name in names]
        if i > rounds // 3 and i % (rounds // 6) == rounds // 12:
            lines += between
    return "\n".join([*lines, ""]).encode()


@pytest.mark.parametrize(
    "between",
    [
        ("{'loss': 0.5,", "{'loss': 0.25, 'epoch': 0.5}", "'lr': 0.1}"),
        ("Epoch 3/9", "10/10 [==============================] - 1s - loss: 0.5 - val_loss: 0.75"),
        ("output #0: loss = 0.5 (of 3)", "output #0: loss = 0.4 (of 3)", "output #0: loss = 0.3 (of 3)"),
        ("model: resnet", "optimizer: adam", "accuracy: 0.5", "a: 1", "b: 2", "c: 3", "d: 4", "e: 5", "accuracy: 0.7"),
        ("Traceback (most recent call last):", '  File "a.py", line 3', "ValueError: no"),
        ("12 * $2 = $24", "12 * $2 = $24", "accuracy: 0.5"),
        ("output #0: loss = 0.5 (of 3)", "\r 50%|#####     | 250/500 [00:01<00:10,  1.50it/s, loss=0.75]"),
        ("Validating...", "loss: 0.5 accuracy: 0.7"),
        ("[rank0]: step 9 loss 0.5", "[rank1]: step 9 loss 0.7"),
    ],
)
def test_what_goes_on_over_lines_is_not_torn(between: tuple[str, ...]) -> None:
    for names in (("step", "measure", "output"), ("epoch", "validation", "dictionary")):
        data = _among(names, *between, rounds=240)
        assert told(data, [9000] * 99, one_by_one=False) == told(data, [len(data)], one_by_one=True)


def test_a_bar_is_read_before_a_line_that_waits() -> None:
    data = _among(("bar", "step", "output of two", "bar"))
    assert told(data, [len(data)], one_by_one=False) == told(data, [len(data)], one_by_one=True)


def test_a_line_like_the_one_that_a_log_began_with_opens_another_launch() -> None:
    data = b"".join(b"data: 0.%03d s\nstep %d loss 0.5%d\n" % (i * 7 % 400, i % 400, i % 10) for i in range(1200))
    assert told(data, [len(data)], one_by_one=False) == told(data, [len(data)], one_by_one=True)


def test_the_half_of_a_last_line_is_compared_with_those_read_by_their_shape() -> None:
    data = b"".join(b"step %d loss 0.5%03d\naccuracy: 0.5%03d\n" % (i, i, i) for i in range(300)) + b"step 300 loss 0.5"
    for end in (b"", b"0", b"012"):
        assert told(data + end, [5000] * 9, one_by_one=False) == told(data + end, [len(data + end)], one_by_one=True)


@pytest.mark.parametrize("still", [30, 130, 600])
def test_a_value_that_stays_until_it_proves_to_be_a_metric_is_kept_alike(still: int) -> None:
    lines = (f"step {i} loss 0.5{i} depth {4 if i < still else f'4.{i}'}\n" for i in range(900))
    data = "".join(lines).encode()
    assert told(data, [3000] * 99, one_by_one=False) == told(data, [len(data)], one_by_one=True)
