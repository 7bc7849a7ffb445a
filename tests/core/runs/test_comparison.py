"""What runs differ in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpstui.core.model.snapshot import Numbers, RunSnapshot, State
from mpstui.core.runs.comparison import (
    Column,
    Difference,
    broken_since,
    columns,
    curve_of,
    differences,
    full_name,
    metrics_of,
    of_one_teller,
    told_apart,
    value_at,
)
from mpstui.core.runs.run_settings import settings_of, shaping
from mpstui.core.series.direction import Better
from mpstui.core.series.series import SeriesStore
from mpstui.wire import storage
from mpstui.wire.records import Branch, LaunchTemplate, Variant
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_home, make_monitor


def run(*argv: str, **fields: Any) -> RunSnapshot:
    known = {"run": "r", "name": "r", **fields}
    return RunSnapshot(dir=Path("/r"), state=State.RUNNING, seen=0.0, argv=("python", "t.py", *argv), **known)


def test_arguments_of_every_style_are_read() -> None:
    found = settings_of(run("--lr", "0.1", "--ema", "--steps=5", "model.depth=3", "+extra=1", "--shift", "-1", "data"))
    assert found == {
        "word 0": "python",
        "word 1": "t.py",
        "lr": "0.1",
        "ema": "yes",
        "steps": "5",
        "model.depth": "3",
        "extra": "1",
        "shift": "-1",
        "word 2": "data",
    }


def test_a_word_is_the_same_whatever_options_stand_before_it() -> None:
    assert differences([run("--steps=5", "data"), run("data")]) == [Difference("steps", ("5", None))]


def test_only_what_differs_is_told_and_what_is_missing_is_none() -> None:
    one = run("--lr", "0.1", "--ema", profile="a", env={"OMP_NUM_THREADS": "4", "MPSTUI_RUN_ID": "x"})
    other = run("--lr", "0.2", profile="a", env={"OMP_NUM_THREADS": "8", "MPSTUI_RUN_ID": "y"})
    assert differences([one, other]) == [
        Difference("lr", ("0.1", "0.2")),
        Difference("ema", ("yes", None)),
        Difference("OMP_NUM_THREADS", ("4", "8")),
    ]
    assert differences([one, one]) == []


def test_what_a_run_only_found_where_it_was_started_is_no_setting() -> None:
    found = {
        "HOME": "/home/a",
        "PATH": "/bin",
        "LC_ALL": "C",
        "CONDA_PREFIX": "/c",
        "PYTHONPATH": "/x/mpstui/agent/boot",
    }
    assert settings_of(run(env=found)) == {"word 0": "python", "word 1": "t.py"}
    assert shaping({"PYTHONPATH": "/x/mpstui/agent/boot:/mine", "HF_HOME": "/d"}) == {
        "PYTHONPATH": "/mine",
        "HF_HOME": "/d",
    }


def test_a_name_that_others_have_says_what_tells_the_run_apart() -> None:
    words = ((), ("--lr", "0.1", "a.yaml"), ("--lr", "0.2", "b.yaml"), ("--lr", "0.2", "b.yaml"))
    runs = [run(*of, run=f"r{place}", name="train") for place, of in enumerate(words)]
    alone = run(run="r9", name="other")
    assert told_apart([*runs, alone]) == {
        "r0": "",
        "r1": "lr=0.1 a.yaml",
        **dict.fromkeys(("r2", "r3"), "lr=0.2 b.yaml"),
    }
    assert [full_name(one, [*runs, alone]) for one in (alone, *runs[:3])] == [
        "other",
        "train (r0)",
        "train (lr=0.1 a.yaml)",
        "train (r2)",
    ]


def test_a_run_that_waits_differs_by_its_settings_alone(tmp_path: Path) -> None:
    """It has no launch record yet: its command is the one that it asked for, and nobody knows its device."""
    home = make_home(tmp_path)
    for lr, phase in (("0.1", "running"), ("0.2", "queued")):
        run = RunBuilder(home, "train", NOW + float(lr)).status(phase)
        words = ["python", "t.py", "--lr", lr, "--out"]
        run.respec(launch=LaunchTemplate("auto", {"auto": Variant([*words, "{run_dir}/models"], {"A": "1"})}, "/"))
        if phase == "running":
            path = run.launch(device="mps", env={"A": "1"}).run.attempt(1).launch
            argv = [*words, f"{run.run.path}/models"]
            storage.write_json(path, {**json.loads(path.read_text()), "argv": argv})
    waits, runs = make_monitor(home, FakeClock()).refresh()
    assert list(told_apart([waits, runs]).values()) == ["lr=0.2", "lr=0.1"]


def test_what_follows_from_where_a_run_is_tells_it_from_no_other() -> None:
    """A run that was moved has another interpreter, and goes on from a file in a folder of its own."""
    here = run("--lr", "0.1", run="a", name="train")
    resumed = ("/home/b/runs/b/checkpoints/9.pt", "--out=/home/b/runs/b")
    argv = ("/usr/bin/python3.12", "t.py", "--lr", "0.2", "--resume", *resumed)
    there = replace(run(run="b", name="train", host="gpu1"), dir=Path("gpu1:/home/b/runs/b"), argv=argv)
    assert told_apart([here, there]) == {"a": "lr=0.1", "b": "lr=0.2"}
    left = replace(here, run="c", argv=("python", "t.py", "--resume", "/q/3.pt"), branch=Branch("a", 3, "/q/3.pt"))
    assert told_apart([replace(here, argv=("python", "t.py")), left]) == {"a": "", "c": ""}


def test_a_run_that_was_restarted_from_its_checkpoint_has_no_setting_more(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    for second in range(2):
        run = RunBuilder(home, "train", NOW + second).status("done").launch(device="cpu", checkpoint="/q/9.pt")
        path = run.run.attempt(1).launch
        more = ["--resume", "/q/9.pt"] if second else []
        storage.write_json(path, {**json.loads(path.read_text()), "argv": ["python", "t.py", "--lr", "0.1", *more]})
    assert set(told_apart(make_monitor(home, FakeClock()).refresh()).values()) == {""}


def measured_run(name: str, **values: list[float]) -> RunSnapshot:
    """A run with curves of these values, at steps 0, 10, 20 ..."""
    store = SeriesStore()
    for metric, points in values.items():
        store.add([{"step": place * 10, "attempt": 1, metric: value} for place, value in enumerate(points)])
    return run(name=name, series=store.views())


def test_the_best_is_where_the_name_says_it_and_nowhere_for_a_name_that_does_not() -> None:
    one = measured_run("a", val_loss=[3.0, 1.0, 2.0], val_acc=[0.1, 0.9, 0.5], grad_norm=[1.0, 2.0, 3.0])
    for metric, best in (("val_loss", [1.0, 10.0]), ("val_acc", [0.9, 10.0]), ("grad_norm", [])):
        told = [column.values[0] for column in columns([one], metric) if column.name in ("best", "at step")]
        assert told == best


def test_the_best_is_one_reported_value_as_everywhere_and_not_one_of_the_average() -> None:
    one = measured_run("a", loss=[3.0, 2.0, 0.5, 2.0, 1.9, 1.8])
    told = {column.name: column.values for column in columns([one], "loss", [2.0], "20")}
    assert (told["best"], told["at step"]) == ((0.5,), (20.0,))
    assert "avg at 20" in told, "what is read from the averaged curve says so"


def test_a_word_without_a_name_is_an_argument_by_its_place() -> None:
    runs = [run(word) for word in ("a.yaml", "b.yaml")]
    assert [(one.name, one.values) for one in columns(runs, "loss") if one.kind == "setting"] == [
        ("argument 2", ("a.yaml", "b.yaml"))
    ]


def test_a_run_without_numbers_any_more_has_its_best_marked() -> None:
    nan = float("nan")
    dead, sound = measured_run("a", loss=[3.0, 0.1, nan, nan], val_loss=[0.2]), measured_run("b", loss=[3.0, 0.5])
    best, other = (column for column in columns([dead, sound], "loss") if column.kind == "best")
    assert (best.broken, best.text(0), best.text(1)) == ({0: "NaN/inf since step 20"}, "0.1000 ✗", "0.5000")
    assert other.broken == {0: "loss NaN/inf since step 20"}, "what validation measured was of weights that are lost"
    assert columns([measured_run("c", loss=[nan]), sound], "loss")[0].broken == {}, "it has no best"
    back = measured_run("d", loss=[3.0, nan, 0.5])
    assert broken_since(back, "loss") == "", "it has found back"
    assert broken_since(replace(back, numbers=Numbers(loss_is_finite=False)), "val_loss") == "loss NaN/inf"


def test_a_curve_is_read_where_it_is_and_nowhere_else() -> None:
    view = measured_run("a", val_loss=[3.0, 1.0, 2.0]).series["val_loss"]
    assert [value_at(view, x) for x in (-1.0, 0.0, 9.0, 10.0, 20.0, 20.1)] == [None, 3.0, 3.0, 1.0, 2.0, None]


def test_validation_is_compared_with_validation_however_it_is_spelled() -> None:
    one, other = (
        measured_run("a", loss=[1.0], **{"eval/loss": [2.0]}),
        measured_run("b", train_loss=[3.0], val_loss=[4.0]),
    )
    assert metrics_of([one, other]) == ["loss", "eval/loss"]
    assert [view.last for snapshot in (one, other) if (view := curve_of(snapshot, "eval/loss")) is not None] == [
        2.0,
        4.0,
    ]
    assert curve_of(measured_run("c", loss=[1.0]), "val_loss") is None


def test_the_table_has_results_before_settings_and_tells_what_is_missing() -> None:
    one, other = measured_run("a", val_loss=[3.0, 1.0]), measured_run("b", loss=[3.0])
    found = {column.name: column.values for column in columns([one, other], "val_loss", [1.5, None], "step 7")}
    assert found["at step 7"] == (1.5, None)
    assert found["best"] == (1.0, None)
    assert found["at step"] == (10.0, None)
    assert next(iter(found)) == "at step 7"


def test_columns_sort_numbers_as_numbers_and_put_what_is_missing_last() -> None:
    rates = Column("lr", ("1e-3", "0.1", None, "adam", "0.01"))
    assert rates.order() == [0, 4, 1, 3, 2]
    assert rates.order(reverse=True) == [3, 1, 4, 0, 2]
    best = Column("best", (0.2, None, 0.9, float("nan"), 0.9), "best", Better.HIGHER)
    assert best.order() == [2, 4, 0, 1, 3]
    assert best.best() == {2, 4}
    assert not Column("best", (0.2, None), "best", Better.HIGHER).best(), "there is nothing to compare it with"
    assert not Column("best", (0.2, 0.3), "best", Better.HIGHER, frozenset({1})).best(), "another may become better"


def test_the_best_of_a_run_that_is_not_read_yet_is_not_said_to_be_missing() -> None:
    whole, lacks = measured_run("a", val_acc=[0.1, 0.2], loss=[1.0]), measured_run("b", loss=[1.0])
    found = next(
        one for one in columns([whole, lacks, replace(lacks, run="c", brief=True)], "loss") if "acc" in one.name
    )
    assert [found.text(place) for place in range(3)] == ["0.2000", "–", "…"]


def test_a_column_compares_the_loss_of_one_witness_whatever_each_run_calls_so_at_the_time() -> None:
    """While it trains, a run shows what the agent sees; once it is done, the mean that the program has printed."""
    seen, printed = measured_run("a", loss=[3.0, 0.1]).series["loss"], measured_run("b", loss=[2.0, 0.5]).series["loss"]
    by_agent, by_program = replace(seen, told_by="agent"), replace(printed, told_by="output.log")
    training = run(series={"loss": by_agent, "loss (output.log)": by_program})
    done = run(series={"loss": by_program, "loss (agent)": by_agent})
    young = run(series={"loss": seen}, numbers=Numbers(told_by={"loss": "agent"}))
    found = of_one_teller([training, done, young])
    assert [{name: view.last for name, view in one.series.items()} for one in found] == [
        {"loss (agent)": 0.1, "loss": 0.5},
        {"loss": 0.5, "loss (agent)": 0.1},
        {"loss (agent)": 0.1},
    ]
    by_name = {column.name: column.values for column in columns(found, "loss")}
    assert (by_name["best"], by_name["best loss (agent)"]) == ((0.5, 0.5, None), (0.1, 0.1, 0.1))
    assert of_one_teller([young, young]) == [young, young], "no program tells one"


def test_times_of_several_attempts_say_so() -> None:
    names = [column.name for column in columns([run(attempts=1), run(attempts=1)], "loss")]
    assert "attempts" not in names
    found = {column.name: column.values for column in columns([run(attempts=2), run(attempts=1)], "loss")}
    assert found["attempts"] == (2.0, 1.0)
