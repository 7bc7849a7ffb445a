"""A run as a row of the list and as a header: what is counted, for how long, and which of several namesakes it is."""

from __future__ import annotations

from typing import Any

import pytest

from mpstui.core.model.queue_place import QueuePlace
from mpstui.core.model.snapshot import Health, Numbers, RunSnapshot, State
from mpstui.core.present import until
from mpstui.core.runs.listing import Group, ListView
from mpstui.ui.rows import width_of
from mpstui.ui.widgets.run_header import header, progress
from mpstui.ui.widgets.run_row import NameDisambiguator, group_row, heading, layout, run_row
from mpstui.ui.widgets.short_names import ShortNames
from mpstui.wire.heartbeat import Heartbeat
from tests.snapshots import changed

from . import fakes
from .driving import Driver, drive

STEPS_ALONE = fakes.running(epoch=None, epochs=None, step=1234, steps=None)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_program_without_epochs_shows_its_step_as_a_step(width: int) -> None:
    assert "step 1,234" in run_row(STEPS_ALONE, width).text
    assert "step 78.2k" in run_row(changed(STEPS_ALONE, step=78_200), width).text


@pytest.mark.parametrize("width", range(20, 90, 5))
def test_the_best_of_a_group_is_never_told_without_what_it_measures(width: int) -> None:
    """It stands below the losses of runs."""
    ends = {"val_loss": (0.1183, 2.0), "loss": (0.018, 2.0)}
    runs = (fakes.running(f"mine-{lr}", name=f"mine lr={lr}", extremes=ends) for lr in (0.1, 0.2, 0.4))
    row = group_row(Group("g", "mine", tuple(runs)), width, folded=True, selected=False, marked=False)
    assert ("0.1183" in row.text) == ("val_loss" in row.text) == (width >= 40)
    assert row.width <= width


def test_epochs_without_an_end_leave_the_row_to_steps_that_have_one() -> None:
    """A stream of data is one endless epoch."""
    of_stream = fakes.running(epoch=1, epochs=None, step=150, steps=200)
    assert "step 150" in run_row(of_stream, 120).text
    assert "1/?" in run_row(changed(of_stream, steps=None), 120).text


def test_its_progress_names_the_step_where_steps_are_counted_and_no_epoch() -> None:
    steps_alone = changed(STEPS_ALONE, epoch_step=None, epoch_steps=None)
    (steps,) = (line.text for line in progress(steps_alone, 80))
    assert steps.split()[:2] == ["steps", "1,234"]


@pytest.mark.parametrize(("width", "lines"), [(60, 2), (80, 1), (200, 1)])
def test_an_epoch_of_which_nobody_knows_how_far_it_is_shares_the_line_of_the_steps(width: int, lines: int) -> None:
    """An empty bar that says n/a takes a line from the chart, and tells nothing."""
    run = fakes.running(epoch=26, epochs=52, epoch_step=None, epoch_steps=None, step=9953, steps=20_000)
    told = [line.text for line in progress(run, width)]
    assert len(told) == lines
    assert "26/52" in told[0]
    assert "n/a" not in "".join(told)
    assert all(line.width <= width for line in progress(run, width))
    if lines == 1:
        assert told[0].split()[:4] == ["steps", "9953/20.0k", "·", "epoch"]
        assert "49.8 %" in told[0]
        assert "left 29m" in told[0]
    assert len(progress(run, width, height=2)) == 2


def test_a_run_that_counts_nothing_shows_nothing_but_unknown() -> None:
    text = run_row(fakes.bare(), 80).text
    assert "n/a" in text
    assert "step" not in text


@pytest.mark.parametrize("width", [44, 60, 80, 90, 100, 120, 200])
def test_rows_and_heading_are_equally_wide(width: int) -> None:
    runs = (*fakes.several(), STEPS_ALONE)
    rows = [
        run_row(one, width, names=names)
        for one in runs
        for names in (None, NameDisambiguator(runs), NameDisambiguator(runs * 2))
    ]
    assert {row.width for row in rows} == {heading(width, layout(width, ListView(), (), fakes.NOW), ListView()).width}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_namesakes_are_told_apart_by_their_start(width: int) -> None:
    twins = tuple(fakes.running(f"r{index}", name="dawn", started=fakes.NOW - 60 * index) for index in (1, 2))
    world = fakes.world((*twins, fakes.finished()))

    async def play(driver: Driver) -> None:
        await driver.sees("dawn")
        first, second = (line for line in driver.lines if "dawn " in line and "training" in line)
        assert "11:59" in first
        assert "11:58" in second
        assert not any("MNIST" in line and ":" in line for line in driver.lines)

    drive(world, play, size=(width, 24))


@pytest.mark.parametrize("width", [44, 60, 80, 100])
def test_namesakes_show_the_settings_in_which_they_differ(width: int) -> None:
    words = ("--lr", "0.1"), ("--lr", "0.01"), ("--lr", "0.01", "--ema")
    runs = [fakes.finished(f"r{place}", name="train", argv=("python", "t.py", *of)) for place, of in enumerate(words)]
    rows = [run_row(one, width, names=NameDisambiguator(runs)).text for one in runs]
    told_apart = ("0.1 ", "0.01 ", "ema" if width > 60 else "0.0")
    assert all(told in line for told, line in zip(told_apart, rows, strict=True)), rows
    assert len({len(row) for row in rows}) == 1
    again = [*runs, fakes.finished("r9", name="train", argv=runs[0].argv, started=fakes.NOW - 600)]
    if width >= 80:
        told = run_row(again[-1], width, names=NameDisambiguator(again)).text
        assert "0.1 11:50" in told or "lr=0.1 11:50" in told, "the same settings twice: when it was, too"


@pytest.mark.parametrize("width", [44, 60, 80, 100])
def test_names_that_begin_alike_show_where_they_differ(width: int) -> None:
    sweep = tuple(fakes.running(f"r{rate}", name=f"Quick start · tiny network lr={rate}") for rate in ("0.1", "0.01"))
    rows = [run_row(one, width, names=NameDisambiguator(sweep)).text for one in sweep]
    assert "lr=0.1 " in rows[0]
    assert "lr=0.01 " in rows[1]
    assert len({len(row) for row in rows}) == 1


@pytest.mark.parametrize("width", [44, 60, 80, 120])
def test_a_sweep_of_two_arguments_keeps_both_in_its_names(width: int) -> None:
    """Two words differ; what all runs of the list share gives way first, then the names of the arguments."""
    sweep = tuple(
        fakes.running(f"r{seed}{optimizer}", name=f"CIFAR-10 · six optimizers seed={seed} optimizer={optimizer}")
        for optimizer in ("sgd", "radam", "muon")
        for seed in (1, 2, 3)
    )
    names = NameDisambiguator((*sweep, fakes.finished()))
    rows = [run_row(one, width, names=names).text for one in sweep]
    assert len({row.split("training")[1][:14] if width < 60 else row for row in rows}) == len(sweep), rows
    assert "2 radam" in rows[4] or "seed=2 optimizer=radam" in rows[4], rows[4]


def test_two_equal_sweeps_keep_what_differs_and_when_they_began() -> None:
    names = [f"CIFAR-10 · six optimizers seed={seed} optimizer=muon" for seed in (1, 2)] * 2
    runs = [fakes.running(f"r{place}", name=name, started=fakes.NOW - 60 * place) for place, name in enumerate(names)]
    rows = [run_row(one, 80, names=NameDisambiguator(runs)).text for one in runs]
    assert len(set(rows)) == 4
    assert "…1 12:00" in rows[0]
    assert "…2 11:59" in rows[1]


@pytest.mark.parametrize("width", [44, 80])
def test_wide_characters_keep_to_the_column(width: int) -> None:
    alike = tuple(fakes.running(f"r{end}", name="日本語の長い名前" * 4 + end) for end in ("甲", "乙"))
    assert {run_row(one, width, names=NameDisambiguator(alike)).width for one in alike} == {
        heading(width, layout(width, ListView(), (), fakes.NOW), ListView()).width
    }


@pytest.mark.parametrize("chosen", [(), ("host", "loss"), ("loss", "host")])
def test_a_queued_run_of_another_machine_stands_below_its_heading(chosen: tuple[str, ...]) -> None:
    waiting = fakes.bare(host="gpu1", state=State.QUEUED, queue=QueuePlace("default", 2))
    view = ListView(columns=chosen)
    columns = layout(120, view, (waiting,), fakes.NOW)
    title, line = heading(120, columns, view).text, run_row(waiting, 120, columns=columns).text
    if chosen[:1] == ("loss",):
        assert "gpu1" not in line, "no value stands below another title"
    else:
        assert line.index("gpu1") == title.index("host")
    assert "2nd" in line


def test_a_queued_run_tells_its_place_in_its_header() -> None:
    waiting = fakes.bare(state=State.QUEUED, queue=QueuePlace("default", 2))
    assert header(waiting, 80, fakes.NOW)[0].text.rstrip().endswith("2nd in default  ◌ queued")


@pytest.mark.parametrize(("width", "told"), [(120, "5h ago · 10m"), (80, "5h ago · 10m"), (70, "5h ago"), (60, "")])
def test_a_run_that_has_ended_says_when_and_how_long_it_took(width: int, told: str) -> None:
    ended = fakes.finished(started=fakes.NOW - 5 * 3600 - 600, ended=fakes.NOW - 5 * 3600)
    assert run_row(ended, width, now=fakes.NOW).text.rstrip().endswith(told)


def test_one_that_has_ended_nobody_knows_when_shows_neither_speed_nor_time_left() -> None:
    lost = fakes.finished(state=State.LOST, ended=None, updated=None, done=False)
    assert run_row(lost, 120).text.split()[-2:] == ["–", "–"]


def facts(snapshot: RunSnapshot) -> str:
    return header(snapshot, 200, fakes.NOW)[1].text


def test_the_header_tells_the_age_of_the_attempt_and_of_all_attempts() -> None:
    assert "attempt 2  ·  up 43m 10s  ·  data CIFAR-10  ·  all attempts 1h 14m" in facts(fakes.running())


def test_the_header_of_a_first_attempt_tells_one_age() -> None:
    once = fakes.running(attempt=1, attempt_started=fakes.NOW - 4488)
    assert "up 1h 14m" in facts(once)
    assert "all attempts" not in facts(once)


def test_the_header_tells_which_training_of_several_it_is() -> None:
    third = Heartbeat(time=fakes.NOW, seq=1, training=3)
    assert "attempt 2  ·  training 3  ·" in facts(changed(fakes.running(), beat=third))


def test_an_ended_attempt_ran_as_long_as_it_ran() -> None:
    ended = fakes.running(state=State.FINISHED, ended=fakes.NOW - 2500, data=None)
    assert "ran 1m 30s  ·  all attempts 33m 08s" in facts(ended)


def test_the_header_ends_with_the_id_that_commands_take() -> None:
    assert facts(fakes.running()).rstrip().endswith(fakes.running().run)


@pytest.mark.parametrize(
    ("epoch", "first", "done", "shares"),
    [
        (3, 1, False, ("epoch  3/10", "20.0 %")),
        (3, 1, True, ("100 %", "30.0 %")),
        (0, 0, True, ("100 %", "10.0 %")),
        (10, 1, True, ("100 %", "100 %")),
    ],
)
def test_an_epoch_counts_where_it_is_known_to_be_over(
    epoch: int, first: int, done: bool, shares: tuple[str, str]
) -> None:
    counted: dict[str, Any] = {
        "epoch": epoch,
        "epochs": 10,
        "epoch_step": None,
        "epoch_steps": None,
        "step": None,
        "steps": None,
    }
    shown = fakes.running(**counted, first_epoch=first, epoch_done=done)
    lines = [line.text for line in progress(shown, 60)]
    assert all(share in line for share, line in zip(shares, lines, strict=True))


def test_what_was_not_read_yet_is_no_unknown() -> None:
    snapshot = changed(fakes.failed(), unread=True, numbers=Numbers(), series={})
    row = run_row(snapshot, 120).text
    assert row.count("…") >= 2
    assert "n/a" not in row


def test_a_run_that_ended_without_totals_has_no_empty_bars() -> None:
    ended = fakes.finished(epoch=None, epochs=None, step=396, steps=None, epoch_step=None, epoch_steps=None)
    assert [line.text.rstrip() for line in progress(ended, 60)] == [" steps  396"]
    told_nothing = changed(ended, step=None)
    assert [line.text.rstrip() for line in progress(told_nothing, 60)] == [" no step reported"]


def test_the_steps_of_optimizers_are_called_updates_where_those_of_an_environment_are_the_programs() -> None:
    beat = Heartbeat(time=1.0, seq=1, step=396, step_from="updates")
    counted: dict[str, Any] = {
        "epoch": None,
        "epochs": None,
        "step": 396,
        "steps": None,
        "epoch_step": None,
        "epoch_steps": None,
    }
    for by, told in (("agent", " update 396"), ("output.log", " steps  396")):
        ended = fakes.finished(**counted, beat=beat, told_by={"step": by})
        assert [line.text.rstrip() for line in progress(ended, 60)] == [told]


def test_the_best_of_a_run_of_a_store_is_unknown_and_not_on_its_way() -> None:
    run = changed(fakes.finished(), store="W&B", extremes={})
    ours = changed(run, store=None)
    columns = layout(120, ListView(columns=("best",)), (run, ours), fakes.NOW)
    assert "n/a" in run_row(run, 120, columns).text
    assert "…" in run_row(ours, 120, columns).text


def test_the_column_of_machines_is_as_wide_as_their_names() -> None:
    runs = tuple(changed(one, host=host) for one, host in zip(fakes.several(), ("gpu1", None, "mac"), strict=False))
    wide = {one.id: cells for one, cells in layout(60, ListView(), runs, fakes.NOW)}
    assert wide["host"] == len("local")
    longer = (changed(runs[0], host="a-machine-of-many-words"), *runs[1:])
    assert {one.id: cells for one, cells in layout(60, ListView(), longer, fakes.NOW)}["host"] == 10


@pytest.mark.parametrize("width", [44, 60, 66, 80, 120, 200])
def test_where_all_runs_have_ended_no_heading_promises_a_remaining_time(width: int) -> None:
    """What stood below "eta" was when a run had ended, and how long it took."""
    columns = layout(width, ListView(), (), fakes.NOW)
    title = heading(width, columns, ListView(), ended=True)
    assert title.width == heading(width, columns, ListView()).width
    assert "eta" not in title.text
    assert "step/s" not in title.text
    assert ("ended" in title.text) == (width >= 66)
    assert "eta" in heading(120, layout(120, ListView(), (), fakes.NOW), ListView(sort="left"), ended=True).text


@pytest.mark.parametrize("width", [12, 13, 15, 17, 18, 20])
def test_no_two_names_of_a_sweep_look_the_same(width: int) -> None:
    """Cut for their seeds, those of two learning rates were one."""
    names = [f"resnet lr={rate:g} seed={seed}" for rate in (0.1, 0.01, 0.001, 0.0001) for seed in range(10)]
    short = ShortNames(names)
    shown = [short.of(name, width) for name in names]
    assert len(set(shown)) == len(names)
    assert all(width_of(one) <= width for one in shown)


def test_a_run_whose_program_nobody_sees_is_not_up() -> None:
    """It may have died long ago, without a word in its store."""
    run = fakes.running(state=State.WATCHED, health=None, started=fakes.NOW - 9000, attempt_started=fakes.NOW - 9000)
    told = " ".join(line.text for line in header(changed(run, updated=fakes.NOW - 8940), 120, fakes.NOW))
    assert "wrote for 1m 00s" in told
    assert "up 2h 30m" in " ".join(line.text for line in header(changed(run, health=Health.TRAINING), 120, fakes.NOW))
    row = " ".join(run_row(changed(run, updated=fakes.NOW - 8940, silent=True), 120, now=fakes.NOW).text.split())
    assert row.endswith("2h ago · 1m 00s"), "where the speed and the rest of one that trains stand"


@pytest.mark.parametrize("state", [State.QUEUED, State.BACKING_OFF])
def test_an_attempt_that_has_ended_is_not_up_while_the_next_one_waits(state: State) -> None:
    begun = fakes.NOW - 9000
    run = fakes.running(state=state, health=None, started=begun, attempt_started=begun, updated=begun + 60)
    assert "ran 1m 00s" in " ".join(line.text for line in header(run, 120, fakes.NOW))
    assert run.lasted(until(run, fakes.NOW)) == 60
