"""The part of YAML that holds settings; whatever else stands in a file has no effect."""

from __future__ import annotations

import random
import time

import pytest

from mpstui.core.formats.stores._yaml import parse


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lr: 0.1\nname: 'it''s'\nquoted: \"a\\tb: c\"\nnone: null\nempty:\n# a comment\nlast: x # no\n",
         {"lr": "0.1", "name": "it's", "quoted": "a\tb: c", "none": None, "empty": None, "last": "x"}),
        ("model:\n  depth: 12\n  act:\n    name: gelu\nseed: 1\n",
         {"model": {"depth": "12", "act": {"name": "gelu"}}, "seed": "1"}),
        ("- lr=0.1\n- +data.name=x\n", ["lr=0.1", "+data.name=x"]),
        ("a:\n- 1\n- 2\nb:\n  - x: 1\n    y: 2\n  - 3\n", {"a": ["1", "2"], "b": [{"x": "1", "y": "2"}, "3"]}),
        ("flow: [1, 2]\nurl: http://a:80/b\ntime: 10:20\n",
         {"flow": "[1, 2]", "url": "http://a:80/b", "time": "10:20"}),
        ("text: |\n  two\n  lines\nafter: 1\n", {"text": "two\nlines", "after": "1"}),
        ("x: !!python/object/apply:os.system ['true']\ny: !!python/tuple\n- 1\nz: &a 5\nw: *a\n",
         {"x": "['true']", "y": ["1"], "z": "5", "w": "*a"}),
        ("", {}),
    ],
)  # fmt: skip
def test_settings(text: str, found: object) -> None:
    assert parse(text) == found


def test_nothing_keeps_or_breaks_it() -> None:
    numbers, begun = random.Random(3), time.process_time()
    for _ in range(2000):
        parse("".join(numbers.choice("ab:- \n'\"|!&{}[]#%") for _ in range(numbers.randrange(60))))
    for text in (
        "a: " * 20_000,
        "- " * 20_000,
        "\n".join(" " * depth + "a:" for depth in range(2000)),
        "'" * 50_000,
        "a" * 50_000,
    ):
        parse(text)
    assert time.process_time() - begun < 2.0
