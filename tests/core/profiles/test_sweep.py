"""The [sweep] table: read as meant, and its mistakes named with line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.launching.editing import profile_toml
from mpstui.core.model.checks import ProfileError
from mpstui.core.profiles.model import Profile
from mpstui.core.profiles.parse import parse_profile
from mpstui.core.profiles.sweep import SweepValue

HEAD = 'command = ["a"]\n[args]\noptimizer = "sgd"\nseed = 1\nepochs = 3\nquick = true\nmodel.lr = 0.1\n'
"""Seven lines; a table that follows begins in line 8."""


def read(sweep: str) -> Profile:
    return parse_profile(HEAD + sweep, path=Path("p.toml"), default_cwd=Path("/"))


def test_lists_dotted_keys_and_values_with_company() -> None:
    profile = read(
        "[sweep]\nseed = [1, 2]\nquick = [true, false]\nmodel.lr = [0.1, 1e-2]\n"
        "[sweep.optimizer]\nsgd = {}\nmuon = { epochs = 9, weight-decay = 0.1 }\n"
    )
    assert list(profile.sweep) == ["seed", "quick", "model.lr", "optimizer"]
    assert [one.value for one in profile.sweep["model.lr"]] == [0.1, 0.01]
    assert [one.text for one in profile.sweep["quick"]] == ["true", "false"]
    assert profile.sweep["optimizer"] == (
        SweepValue("sgd"),
        SweepValue("muon", {"epochs": 9, "weight-decay": 0.1}),
    )


def test_a_profile_without_a_sweep_has_none() -> None:
    assert read("").sweep == {}
    assert read("[sweep]\n").sweep == {}


def test_a_profile_written_anew_keeps_its_sweep() -> None:
    profile = read("[sweep]\nseed = [1, 2]\n[sweep.optimizer]\nsgd = {}\nmuon = { epochs = 9 }\n")
    again = parse_profile(profile_toml(profile), path=None, default_cwd=Path("/"))
    assert again.sweep == profile.sweep


@pytest.mark.parametrize(
    ("sweep", "line", "parts"),
    [
        ("[sweep]\nseed = 3\n", 9, ["`seed` in [sweep] must be a list of values"]),
        ("[sweep]\nseed = []\n", 9, ["at least one value"]),
        ("[sweep]\n[sweep.optimizer]\n", 9, ["`optimizer`", "at least one value"]),
        ("[sweep]\nseed = [[1]]\n", 9, ["`seed`", "a list"]),
        ('[sweep]\nseed = [1, "x"]\n', 9, ["`seed`", "a number", '"x"']),
        ("[sweep]\nquick = [1]\n", 9, ["`quick`", "true or false"]),
        ("[sweep]\nseed = [1, 2, 1]\n", 9, ["`seed`", "1 twice"]),
        ('[sweep]\noptimiser = ["sgd"]\n', 9, ["`optimiser`", "did you mean `optimizer`?"]),
        ("[sweep.optimizer]\nsgd = {}\nmuon = 3\n", 10, ["`muon`", "{} for none"]),
        ("[sweep.optimizer]\nmuon = { epochs = [1] }\n", 9, ["`epochs`", "'muon'"]),
        ('[sweep.optimizer]\nmuon = { epochs = "many" }\n', 9, ["`epochs`", "a number"]),
        ("[sweep.optimizer]\nmuon = { epoch = 3 }\n", 9, ["`epoch`", "`epochs`?"]),
        ("[sweep]\nseed = [1]\n[sweep.optimizer]\nmuon = { seed = 3 }\n", 11, ["`seed`", "swept itself"]),
        ("[sweep]\nwarm = { a = {lr = 1} }\nb = { c = {lr = 2} }\n", 10, ["`lr`", "`warm` too"]),
        (f"[sweep]\nseed = {list(range(201))}\n", 8, ["201 runs", "200 is the most"]),
    ],
)
def test_one_mistake(sweep: str, line: int, parts: list[str]) -> None:
    with pytest.raises(ProfileError) as caught:
        read(sweep)
    (problem,) = caught.value.problems
    assert problem.line == line
    assert all(part in problem.sentence for part in parts), problem.sentence


def test_a_sweep_is_a_table() -> None:
    with pytest.raises(ProfileError, match="must be a table"):
        parse_profile('command = ["a"]\nsweep = 3\n', path=None, default_cwd=Path("/"))
