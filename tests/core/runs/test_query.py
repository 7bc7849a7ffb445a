"""What a person types to find runs: words, conditions, days, and what must not be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpstui.core.model.snapshot import Health, Numbers, RunSnapshot, State
from mpstui.core.runs.query import findable, parse_query

NOW = 1_800_000_000.0
HOUR, DAY = 3600.0, 86_400.0


def run(name: str = "ResNet 18", argv: str = "python t.py --lr 0.01 --optim adam", **fields: Any) -> RunSnapshot:
    given: dict[str, Any] = {
        "profile": "cifar10",
        "started": NOW - 2 * HOUR,
        "ended": NOW - HOUR,
        "tags": ("baseline",),
        **fields,
    }
    return RunSnapshot(
        run="20261121-104512-resnet",
        name=name,
        dir=Path("/r"),
        note="for the paper",
        state=given.pop("state", State.FAILED),
        seen=NOW,
        argv=tuple(argv.split()),
        numbers=given.pop("numbers", Numbers(lr=1e-9, epoch=3, loss=0.4, metrics={"val_loss": 0.19, "acc": None})),
        **given,
    )


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", True),
        ("resnet", True),
        ("RESNET 18", True),
        ('"resnet 18"', True),
        ('"18 resnet"', False),
        ("20261121", True),
        ("failed", True),
        ("finished", False),
        ("finished|failed", True),
        ("cifar10", True),
        ("-failed", False),
        ("-test", True),
        ("-lr>=0.1", True),
        ("lr>=0.01", True),  # of the arguments: its schedule has come to nothing
        ("lr >= 0.01 resnet", True),
        ("lr>0.01", False),
        ("lr=1e-2", True),
        ("lr!=0.01", False),
        ("--lr=0.01", True),
        ("--lr>=0.1", False),
        ("val_loss<0.2", True),
        ("val<0.2", True),
        ("val_loss<0.19", False),
        ("acc>0", False),
        ("nothing_known>0", False),
        ("-nothing_known>0", True),
        ("optim=ADAM", True),
        ("optim=ada", False),
        ("optim>3", False),
        ("profile=cifar10", True),
        ("state=failed", True),
        ("age<3h", True),
        ("age<1h", False),
        ("took>=60m", True),
        ("took>1d", False),
        ("baseline", True),
        ("paper", True),
        ("nan", False),
    ],
)
def test_what_is_typed_finds(typed: str, found: bool) -> None:
    query = parse_query(typed)
    assert query.matches(findable(run())) is found
    assert not query.mistake


@pytest.mark.parametrize(("started", "day"), [(NOW, "today"), (NOW - DAY, "yesterday"), (NOW - 3 * DAY, "")])
def test_days_are_those_of_the_calendar(started: float, day: str) -> None:
    one = findable(run(started=started, ended=None))
    assert [word for word in ("today", "yesterday") if parse_query(word).matches(one)] == ([day] if day else [])


def test_what_ended_today_is_of_today_and_a_time_that_no_calendar_has_is_of_no_day() -> None:
    assert parse_query("today").matches(findable(run(started=NOW - 9 * DAY, ended=NOW)))
    assert not parse_query("today").matches(findable(run(started=NOW * 1e9, ended=None)))


def test_the_name_of_a_sweeps_run_says_what_differs() -> None:
    one = findable(run(name="CIFAR optimizer=radam seed=3", argv="python t.py"))
    assert parse_query("optimizer=radam").matches(one)
    assert not parse_query("optimizer=lion").matches(one)


def test_an_argument_is_found_by_its_last_part_where_that_is_one_alone() -> None:
    assert parse_query("lr>1").matches(findable(run(argv="python t.py optim.lr=3", numbers=Numbers())))
    assert not parse_query("lr>1").matches(findable(run(argv="python t.py a.lr=3 b.lr=4", numbers=Numbers())))


def test_a_loss_that_is_no_number_is_found_by_that() -> None:
    odd = findable(run(numbers=Numbers(loss_is_finite=False)))
    assert parse_query("nan").matches(odd)
    assert parse_query("loss=nan").matches(odd)
    assert not parse_query("loss<9").matches(odd)


def test_a_state_is_found_by_either_of_its_words() -> None:
    training = findable(run(state=State.RUNNING, health=Health.TRAINING))
    for typed in ("state=running", "state=training", "-state!=running", "state!=failed"):
        assert parse_query(typed).matches(training), typed


def test_only_what_lives_is_live() -> None:
    assert parse_query("live").matches(findable(run(state=State.RUNNING)))
    assert not parse_query("live").matches(findable(run()))


@pytest.mark.parametrize("typed", ["lr>=", "lr>=x", "age<3y", "took>long", "-lr<", "state=faild"])
def test_a_condition_that_is_still_typed_hides_nothing_and_says_what_is_missing(typed: str) -> None:
    query = parse_query(typed)
    assert query.matches(findable(run()))
    assert query.mistake


@pytest.mark.parametrize("typed", ["-", "--", '"', '-"', "=", ">=", "||", "a=b=c", "-=", "\x00", "é|ß", ">" * 300])
def test_nothing_that_is_typed_is_an_error(typed: str) -> None:
    assert parse_query(typed).matches(findable(run())) in (True, False)
