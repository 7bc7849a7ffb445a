"""The best earlier run behind a live one: which it is, and what can be said honestly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpstui.cli.show import ghost_of as json_of_show
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import Numbers, RunSnapshot, SeriesView, State
from mpstui.core.runs.ghost import Ghost, GhostFinder, comparable, race, standing
from mpstui.core.runs.monitor import Monitor
from mpstui.core.series.series import SeriesStore
from tests.core.runs.build import NOW, RunBuilder, make_home

DECAY = [2 * math.exp(-step / 100) for step in range(400)]


def view(name: str, values: Sequence[float], stride: int = 10) -> SeriesView:
    store = SeriesStore()
    store.add([{"step": place * stride, "attempt": 1, name: value} for place, value in enumerate(values)])
    return store.views()[name]


def run(name: str, state: State = State.FINISHED, started: float = 1.0, *argv: str, **fields: Any) -> RunSnapshot:
    known = {"profile": "p", "argv": ("python", "t.py", *argv), **fields}
    return RunSnapshot(run=name, name=name, dir=Path("/r") / name, state=state, seen=9e3, started=started, **known)


LIVE = run("live", State.RUNNING, 100.0)


def test_what_finished_earlier_on_the_same_data_is_comparable() -> None:
    numbers = Numbers(data="CIFAR-10")
    live = replace(LIVE, numbers=numbers, argv=("t.py", "--dataset", "cifar", "--lr", "1"))
    good = run("good", State.FINISHED, 1.0, "--dataset", "cifar", "--lr", "2", numbers=numbers)
    bad = (
        replace(good, run="other profile", profile="q"),
        replace(good, run="failed", state=State.FAILED),
        replace(good, run="later", started=200.0),
        replace(good, run="other data", numbers=Numbers(data="MNIST")),
        replace(good, run="other set", argv=("t.py", "--dataset", "svhn")),
        replace(good, run="other batch", argv=("t.py", "--dataset", "cifar", "--batch-size", "8")),
    )
    newer = replace(good, run="newer", started=50.0)
    assert [one.run for one in comparable(live, (good, *bad, newer))] == ["newer", "good"]
    assert not comparable(replace(live, state=State.FINISHED), (good,)), "a ghost is for what goes on"
    assert not comparable(replace(live, profile=None), (replace(good, profile=None),))


def test_other_batches_are_compared_by_epochs_where_both_tell_their_length() -> None:
    live = replace(LIVE, argv=("t.py", "--batch-size", "64"), numbers=Numbers(epoch_steps=100))
    other = run("other", State.FINISHED, 1.0, "--batch-size", "32", numbers=Numbers(epoch_steps=200))
    assert comparable(live, (other,)) == [other]
    live = replace(live, series={"loss": view("loss", DECAY[:100])})
    ghost = race(live, replace(other, series={"loss": view("loss", DECAY, stride=20)}))
    assert ghost.series["loss"].x[10] == 100.0, "step 200 of the other is step 100 of this"


def words(mine: SeriesView, best: SeriesView, planned: float | None = None) -> tuple[str, ...]:
    told = standing(mine, best, planned)
    return told.words() if told is not None else ()


def test_where_it_stands_and_where_it_would_end() -> None:
    best = view("loss", DECAY)
    told = standing(view("loss", [value * 1.12 for value in DECAY[:200]]), best, planned=3990)
    assert told is not None
    assert told.step == 1990
    assert 0.11 < told.behind < 0.13
    foretold, known = (float(word.strip(",")) for word in told.words()[1].split() if word[0].isdigit())
    assert 0.10 < foretold / known - 1 < 0.14
    assert words(view("loss", [v * 0.9 for v in DECAY[:200]]), best) == ("10 % ahead of best at this step",)
    assert words(view("loss", DECAY[:200]), best) == ("level with best at this step",)
    better = view("val_acc", [0.5 + step / 100 for step in range(40)])
    assert words(view("val_acc", [0.4, 0.459]), better) == ("val 10 % behind best at this step",)


def test_nothing_is_said_where_there_is_not_enough() -> None:
    best = view("loss", DECAY)
    assert words(view("loss", DECAY[:10]), best) == (), "too few steps"
    assert words(view("lr", DECAY[:200]), view("lr", DECAY)) == (), "nobody knows what is better"
    assert words(replace(view("loss", DECAY[:200]), complete=False), best) == (), "not read to its end"
    assert words(view("loss", [*DECAY, *[0.1] * 50]), best) == (), "beyond the end of the best"
    assert words(view("loss", [*DECAY[:100], math.nan]), best) == ()
    half = view("loss", [value * 1.1 for value in DECAY[:200]])
    assert len(words(half, best)) == 1, "nobody knows how long it will be"
    assert len(words(half, best, planned=9000)) == 1, "it will be longer than the best was"
    assert len(words(view("loss", [v * 1.1 for v in DECAY[:40]]), best, planned=3990)) == 1, "hardly begun"
    drifting = view("loss", [value * (0.6 + step / 200) for step, value in enumerate(DECAY[:200])])
    assert len(words(drifting, best, planned=3990)) == 1, "the distance changes: no pace can be told"


def test_validation_is_held_against_validation_alone() -> None:
    live = replace(LIVE, series={"loss": view("loss", DECAY[:200]), "val_loss": view("val_loss", DECAY[:20], 100)})
    ghost = race(live, replace(run("other"), series={"loss": view("loss", DECAY)}))
    assert set(ghost.series) == {"loss"}


def test_of_a_training_that_is_done_nothing_is_foretold() -> None:
    numbers = Numbers(steps=3990, eta_seconds=0.0)
    live = replace(LIVE, series={"loss": view("loss", [value * 1.1 for value in DECAY[:390]])}, numbers=numbers)
    other = replace(run("other"), series={"loss": view("loss", DECAY)})
    assert len(race(live, other).words["loss"]) == 3
    done = replace(live, numbers=replace(numbers, done=True))
    assert race(done, other).words["loss"] == ("10 % behind best at this step",)


def finished(home: Home, name: str, at: float, loss: float, *validation: float, profile: str = "digits") -> str:
    made = RunBuilder(home, name, at, profile=profile).status("ended").launch().exit(code=0)
    made.points(*({"step": step, "attempt": 1, "loss": loss, "time": NOW} for step in range(300)))
    made.points(*({"step": 300 + step, "attempt": 1, "val_loss": value} for step, value in enumerate(validation)))
    return made.run.run


def found(finder: GhostFinder, live: RunSnapshot, others: Sequence[RunSnapshot]) -> Ghost | None:
    for _ in range(100):
        ghost = finder.look(live, others, 0.01)
        if not finder.pending:
            return ghost
    raise AssertionError("never read")


def test_the_best_is_found_by_what_validation_measured(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    finished(home, "worse", NOW, 0.5, 0.6, 0.5)
    best = finished(home, "best", NOW + 10, 0.9, 0.4, 0.2)
    finished(home, "else", NOW + 20, 0.0, 0.1, profile="other")
    last = finished(home, "last", NOW + 30, 0.1, 0.6, 0.4)
    builder = RunBuilder(home, "live", NOW + 50, profile="digits").status("running").launch().hold()
    builder.points(*({"step": step, "attempt": 1, "loss": 0.5, "val_loss": 0.3} for step in range(30)))
    monitor = Monitor(home)
    live = monitor.snapshot(builder.run.run)
    others = monitor.refresh()
    finder = GhostFinder()
    ghost = found(finder, live, others)
    assert ghost is not None
    assert ghost.run == best
    assert ghost.series["val_loss"].minimum == 0.2
    behind = (0.5 - 0.9) / 0.9
    told = {"step": 29.0, "behind": behind, "at_this_pace": None, "best": None}
    assert ghost.as_json() == {"run": best, "name": ghost.name, "metrics": {"loss": told}}
    ghost = found(finder, replace(live, series={"loss": live.series["loss"]}), others)
    assert ghost is not None
    assert ghost.run == last, "without validation its own loss decides"
    assert (shown := json_of_show(home, live)) is not None
    assert shown["run"] == best
    assert json_of_show(home, replace(live, state=State.FINISHED)) is None
    builder.release()
