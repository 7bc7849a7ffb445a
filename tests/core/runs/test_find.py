"""Which run a person means."""

from __future__ import annotations

import pytest

from mpstui.core.model.errors import UsageError
from mpstui.core.model.home import Home
from mpstui.core.runs import find
from mpstui.core.runs.find import find_run, find_runs, run_name
from mpstui.wire.rundir import run_dirs
from tests.core.runs.build import NOW, RunBuilder


def test_an_id_a_unique_beginning_or_a_name(home: Home) -> None:
    old = RunBuilder(home, "CIFAR · ResNet", NOW)
    new = RunBuilder(home, "CIFAR · ResNet", NOW + 60)
    other = RunBuilder(home, "Quick start", NOW + 86_400)
    assert find_run(home, old.run.run) == old.run
    assert find_run(home, other.run.run[:9]) == other.run
    assert find_run(home, "CIFAR · ResNet") == new.run
    assert find_run(home, "cifar · resnet") == new.run
    assert find_run(home, "cifar-resnet") == new.run
    assert find_run(home, "quick") == other.run
    assert find_run(home, "cifar") == new.run


def test_a_profile_means_its_newest_run_where_no_name_says_otherwise(home: Home) -> None:
    RunBuilder(home, "Tiny network", NOW, profile="quickstart")
    newest = RunBuilder(home, "Tiny network", NOW + 60, profile="quickstart")
    named = RunBuilder(home, "cifar10", NOW + 90)
    RunBuilder(home, "Other", NOW + 120, profile="cifar10")
    assert find_run(home, "quickstart") == newest.run
    assert find_run(home, "cifar10") == named.run


def test_an_ambiguous_beginning_lists_the_candidates(home: Home) -> None:
    runs = [RunBuilder(home, f"run {i}", NOW + i) for i in range(12)]
    with pytest.raises(UsageError) as raised:
        find_run(home, runs[0].run.run[:6])
    assert "12 runs" in raised.value.sentence
    assert runs[11].run.run in raised.value.hint
    assert "4 more" in raised.value.hint


def test_several_names_that_begin_so_are_ambiguous_too(home: Home) -> None:
    RunBuilder(home, "cifar ten", NOW)
    RunBuilder(home, "cifar hundred", NOW + 1)
    with pytest.raises(UsageError, match="2 names"):
        find_run(home, "cifar")


@pytest.mark.parametrize("name", ["nothing", "", "../etc", "*"])
def test_no_such_run_says_what_there_is(home: Home, name: str) -> None:
    with pytest.raises(UsageError, match="no run"):
        find_run(home, name)
    RunBuilder(home, "nothin")
    with pytest.raises(UsageError) as raised:
        find_run(home, name or "x")
    assert raised.value.hint


def test_a_typing_error_gets_the_nearest_name(home: Home) -> None:
    RunBuilder(home, "transformer")
    with pytest.raises(UsageError) as raised:
        find_run(home, "tarnsformer")
    assert "transformer" in raised.value.hint


def test_only_directories_are_runs_and_a_damaged_one_has_no_name(home: Home) -> None:
    run = RunBuilder(home, "one")
    (home.runs / "file").write_text("x")
    (home.runs / ".hidden").mkdir()
    assert run_dirs(home.runs) == [run.run]
    run.run.spec.write_text("{")
    assert run_name(run.run) is None
    assert run_dirs(home.runs / "nowhere") == []


def test_a_whole_id_is_not_looked_for_in_the_list(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunBuilder(home, "one").run
    monkeypatch.setattr(find, "run_dirs", lambda runs: pytest.fail("the list was read"))
    assert find.find_run(home, run.run) == run


def test_a_run_of_another_machine_is_told_how_it_is_named(home: Home) -> None:
    with pytest.raises(UsageError) as error:
        find_run(home, "gpu1:20260101-000000-far")
    assert "20260101-000000-far --host gpu1" in str(error.value.hint)


def test_any_part_of_an_id_that_is_the_only_one_like_it_means_the_run(home: Home) -> None:
    RunBuilder(home, "resnet lr=0.1", NOW)
    wanted = RunBuilder(home, "resnet lr=0.2", NOW + 1).run
    for part in (wanted.run[9:], wanted.run[9:15], "lr-0-2"):
        assert find_run(home, part) == wanted
    assert find_run(home, "RESNET LR=0.2") == wanted
    assert find_run(home, "res…lr=0.2") == wanted


def test_a_part_of_several_ids_lists_them(home: Home) -> None:
    runs = [RunBuilder(home, f"run {i} of lion", NOW + i).run.run for i in range(2)]
    with pytest.raises(UsageError, match="'of-lion' is a part of 2 runs") as raised:
        find_run(home, "of-lion")
    assert all(run in raised.value.hint for run in runs)


@pytest.mark.parametrize("word", ["v2", "net", "snet", "-net"])
def test_neither_a_letter_or_two_nor_a_part_of_a_word_is_a_part_of_an_id(home: Home, word: str) -> None:
    RunBuilder(home, "small resnet v2")
    with pytest.raises(find.NoSuchRun):
        find_run(home, word)


def test_all_runs_of_a_name_or_a_profile_the_newest_first(home: Home) -> None:
    runs = [RunBuilder(home, "Tiny network", NOW + i, profile="quickstart").run for i in range(3)]
    assert find_runs(home, "tiny network") == find_runs(home, "tiny") == find_runs(home, "quickstart") == runs[::-1]
    assert find_runs(home, runs[0].run) == [runs[0]]
