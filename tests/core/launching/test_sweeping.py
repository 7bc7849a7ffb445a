"""Several launches out of one choice: the product, what overrides what, and what the runs are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.launching.choice import LaunchChoice, combinations, launch_arguments
from mpstui.core.launching.editing import save_profile
from mpstui.core.model.errors import UsageError
from mpstui.core.model.home import Home
from mpstui.core.profiles.model import Profile
from mpstui.core.profiles.parse import parse_profile
from mpstui.wire.records import QueueRule

TEXT = """\
name = "Six"
command = ["a"]
[args]
optimizer = "adam"
seed = 1
epochs = 3
lr = 0.1
[sweep]
seed = [1, 2]
[sweep.optimizer]
sgd = {}
muon = { epochs = 9, momentum = 0.95 }
"""


@pytest.fixture
def profile() -> Profile:
    return parse_profile(TEXT, path=Path("six.toml"), default_cwd=Path("/"))


def arguments(choice: LaunchChoice) -> tuple[str, ...]:
    made, _ = launch_arguments(choice)
    return tuple(str(made[key]) for key in ("seed", "optimizer", "epochs", "lr"))


def test_the_product_with_what_goes_with_each_value(profile: Profile) -> None:
    found = combinations(LaunchChoice(profile))
    assert [arguments(one) for one in found] == [
        ("1", "sgd", "3", "0.1"),
        ("1", "muon", "9", "0.1"),
        ("2", "sgd", "3", "0.1"),
        ("2", "muon", "9", "0.1"),
    ]
    assert [one.name for one in found][1] == "Six seed=1 optimizer=muon"
    assert {one.queue.group for one in found} == {"auto"}  # see accelerators.py
    assert launch_arguments(found[1])[0]["momentum"] == "0.95"
    assert launch_arguments(found[1])[1] == []  # what the profile itself sets needs no word


def test_set_settles_an_argument_and_beats_what_goes_with_a_value(profile: Profile) -> None:
    found = combinations(LaunchChoice(profile, sets={"optimizer": "muon", "epochs": "4"}))
    assert [arguments(one) for one in found] == [("1", "muon", "4", "0.1"), ("2", "muon", "4", "0.1")]
    assert [one.name for one in found] == ["Six seed=1", "Six seed=2"]


def test_a_sweep_of_the_launch_replaces_an_argument_and_adds_one(profile: Profile) -> None:
    choice = LaunchChoice(profile, sweep={"optimizer": ("muon", "lion"), "lr": ("1", "2")}, sets={"seed": "7"})
    assert [arguments(one) for one in combinations(choice)] == [
        ("7", "muon", "9", "1"),
        ("7", "muon", "9", "2"),
        ("7", "lion", "3", "1"),
        ("7", "lion", "3", "2"),
    ]


def test_one_run_needs_no_queue_and_keeps_its_name(profile: Profile) -> None:
    (one,) = combinations(LaunchChoice(profile, sets={"seed": "7", "optimizer": "sgd"}, name="mine"))
    assert (one.name, one.queue.group) == ("mine", None)


def test_the_queue_and_its_conditions_stay_the_choices_own(profile: Profile) -> None:
    asked = QueueRule("nightly", [{"run": "r", "when": "ok"}])
    assert {one.queue.group for one in combinations(LaunchChoice(profile, queue=asked))} == {"nightly"}
    unnamed = QueueRule(None, asked.after)
    assert combinations(LaunchChoice(profile, queue=unnamed))[0].queue.after == asked.after


def test_a_run_of_a_sweep_is_one_run_when_it_is_launched_again(profile: Profile) -> None:
    second = combinations(LaunchChoice(profile))[1]
    assert [arguments(one) for one in combinations(second)] == [arguments(second)]


def test_a_mistyped_argument_is_refused_and_so_is_a_sweep_without_end(profile: Profile) -> None:
    with pytest.raises(UsageError, match="did you mean 'optimizer'"):
        combinations(LaunchChoice(profile, sweep={"optimiser": ("sgd",)}))
    with pytest.raises(UsageError, match="the sweep asks for 400 runs"):
        combinations(LaunchChoice(profile, sweep={"lr": tuple(map(str, range(100)))}))


def test_saving_keeps_a_changed_sweep_and_drops_that_of_a_single_run(profile: Profile, tmp_path: Path) -> None:
    home = Home(state=tmp_path / "state", config=tmp_path / "config")
    changed = LaunchChoice(profile, sweep={"optimizer": ("muon",), "seed": ("5", "6")})
    saved = save_profile(changed, "fewer", home)
    again = parse_profile(saved.read_text(), path=saved, default_cwd=Path("/"))
    assert [arguments(one) for one in combinations(LaunchChoice(again))] == [
        arguments(one) for one in combinations(changed)
    ]
    single = save_profile(combinations(changed)[0], "single", home)
    alone = parse_profile(single.read_text(), path=single, default_cwd=Path("/"))
    assert alone.sweep == {}
    assert arguments(LaunchChoice(alone)) == ("5", "muon", "9", "0.1")
    assert alone.args["momentum"] == 0.95
