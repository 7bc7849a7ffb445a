"""Columns, order and groups of the list, and how they are remembered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.model.errors import OperationError
from mpstui.core.model.queue_place import QueuePlace
from mpstui.core.model.snapshot import Numbers, RunSnapshot, State
from mpstui.core.runs.listing import (
    BUILT_IN,
    ListView,
    arranged,
    best_in,
    best_of,
    column,
    columns_of,
    groups_of,
    load_view,
    ordered,
    save_view,
)
from tests.core.runs.build import make_home

NOW = 1_800_000_000.0


def run(number: int, name: str = "one", **changes: object) -> RunSnapshot:
    made = RunSnapshot(f"20270115-08{number:02d}00-x", name, Path("/r"), State.FINISHED, NOW, profile="cifar")
    return replace(made, **changes)  # type: ignore[arg-type]


def sweep(**changes: object) -> list[RunSnapshot]:
    """Newest first."""
    points = [(lr, seed) for lr in ("0.1", "0.01") for seed in (1, 2)]
    made = [
        run(place, f"six lr={lr} seed={seed}", argv=("t.py", "--lr", lr, f"--seed={seed}"), **changes)
        for place, (lr, seed) in enumerate(points)
    ]
    return made[::-1]


def names(runs: object) -> list[str]:
    return [one.name for one in runs]  # type: ignore[attr-defined]


def test_any_column_sorts_and_what_is_unknown_comes_last_in_either_direction() -> None:
    runs = [run(place, f"r{loss}", numbers=Numbers(loss=loss)) for place, loss in enumerate((0.5, None, 0.1, 9.0))]
    assert names(ordered(runs, ListView(sort="loss"), NOW)) == ["r0.1", "r0.5", "r9.0", "rNone"]
    assert names(ordered(runs, ListView(sort="loss", reverse=True), NOW)) == ["r9.0", "r0.5", "r0.1", "rNone"]
    assert names(ordered(runs, ListView(sort="name"), NOW)) == ["r0.1", "r0.5", "r9.0", "rNone"]
    assert names(ordered(runs, ListView(reverse=True), NOW)) == names(runs[::-1])
    for one in BUILT_IN:
        assert len(ordered(runs, ListView(sort=one), NOW)) == 4


def test_arguments_and_metrics_are_columns_numbers_by_size_and_what_is_better_first() -> None:
    runs = [
        replace(
            one, extremes={"val_acc": (0.1, place / 9), "loss": (0.2, 3.0)}, numbers=Numbers(metrics={"val_acc": 1})
        )
        for place, one in enumerate(sweep())
    ]
    known = {one.id: one.title for one in columns_of(runs)}
    assert known["set:lr"] == "lr"
    assert {"last:val_acc", "best:val_acc", "best:loss"} <= set(known)
    assert ordered(runs, ListView(sort="set:lr"), NOW)[0].name.split()[1] == "lr=0.01"
    by_best = ordered(runs, ListView(sort="best:val_acc"), NOW)
    assert [one.extremes["val_acc"][1] for one in by_best] == [3 / 9, 2 / 9, 1 / 9, 0]
    assert column("best:val_acc").text(by_best[0], NOW) == "0.3333"  # type: ignore[union-attr]
    assert [column(name) for name in ("nonsense", "set:", "x:y")] == [None] * 3


def test_a_sweep_is_a_group_that_stands_where_its_first_run_does() -> None:
    other = run(30, "other")
    runs = [other, *sweep()]
    lines = arranged(runs, ListView(), NOW)
    told = [line.run.name if line.run else line.group.title if line.group else "" for line in lines]
    assert told == ["other", "six", *names(sweep())]
    group = groups_of(runs)[runs[1].run]
    assert len(arranged(runs, ListView(folds={group.id: True}), NOW)) == 2
    assert groups_of(runs[:3]) == {}, "two are no group"
    later = [run(40 + place, one.name) for place, one in enumerate(sweep()[::-1])][::-1]
    assert len({one.id for one in groups_of([*later, *runs]).values()}) == 2, "launched again later"
    assert groups_of(runs)[runs[1].run].id == groups_of([*later, *runs])[runs[1].run].id


def test_those_that_wait_in_a_queue_are_a_group() -> None:
    waiting = [run(n, f"w{n}", state=State.QUEUED, queue=QueuePlace("mps", n)) for n in (3, 2, 1)]
    [group] = {one.id: one for one in groups_of(waiting).values()}.values()
    assert (group.title, group.live, len(group.runs)) == ("queue mps", 0, 3)


def test_the_best_of_a_group_is_told_by_what_its_runs_are_judged_by() -> None:
    ends: tuple[dict[str, tuple[float, float]], ...] = (
        {"val_loss": (0.3, 1.0)},
        {"val_loss": (0.2, 4.0)},
        {"loss": (0.0, 1.0)},
        {},
    )
    runs = [replace(one, extremes=found) for one, found in zip(sweep(), ends, strict=True)]
    found = best_in(runs)
    assert found is not None
    assert (found[0], found[1:]) == (runs[1], ("val_loss", 0.2))
    higher = [replace(one, extremes={"val_acc": (0.0, place / 4)}) for place, one in enumerate(sweep())]
    assert best_in(higher) == (higher[3], "val_acc", 0.75)
    assert best_in(sweep()) is None
    assert best_of(replace(sweep()[0], extremes={"reward": (-3.0, 2.0)})) == ("reward", 2.0), "all that it measures"


def test_how_the_list_looks_is_remembered_and_a_damaged_file_is_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_home(tmp_path)
    assert load_view(home) == ListView()
    view = ListView(("loss", "set:lr"), "set:lr", True, {"sweep x": True})
    save_view(home, view)
    assert load_view(home) == view
    for text in ("", "[]", '{"columns": 3, "sort": ["x"], "reverse": 1, "folds": {"a": 2}}', '{"sort": "nonsense"}'):
        (home.state / "list.json").write_text(text)
        assert load_view(home) == ListView()

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    with pytest.raises(OperationError, match="No space"):
        save_view(home, view)


def test_a_thousand_runs_are_sorted_and_grouped_quickly() -> None:
    import time

    runs = [run(n % 60, f"r{n} lr={n % 7}", argv=("t.py", "--lr", str(n))) for n in range(1000)]
    arranged(runs, ListView(sort="set:lr"), NOW)
    began = time.process_time()
    arranged(runs, ListView(sort="set:lr"), NOW)
    assert time.process_time() - began < 0.1
