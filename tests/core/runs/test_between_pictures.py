"""An ended run's numbers and curves, where they are read between two pictures of it, and not in time for the first."""

from __future__ import annotations

import pytest

from mpstui.core.follow import SLICE_BYTES
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.present import total_progress
from tests.core.runs.build import NOW, BusyClock, FakeClock, RunBuilder, make_monitor


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine: the time for the run in focus is over before it has begun."""
    monkeypatch.setattr("mpstui.core.runs.monitor.FOCUS_SECONDS", 0.0)


def only(snapshots: tuple[RunSnapshot, ...]) -> RunSnapshot:
    assert len(snapshots) == 1
    return snapshots[0]


def failed_twice(home: Home) -> RunBuilder:
    run = RunBuilder(home).status("ended", 2)
    for attempt in (1, 2):
        run.launch(attempt).output(f"step {attempt + 5} loss {attempt / 8:.4f}\n", attempt).exit(attempt, code=1)
    return run


@pytest.mark.usefixtures("no_time")
@pytest.mark.parametrize("listed_first", [True, False])
def test_what_was_read_of_an_ended_run_between_two_pictures_is_in_the_next(home: Home, listed_first: bool) -> None:
    run = failed_twice(home).run.run
    monitor = make_monitor(home, FakeClock())
    if listed_first:
        monitor.refresh()
    monitor.refresh(run)
    while monitor.read_on(run, 0.01):
        pass
    shown = only(monitor.refresh(run))
    assert (shown.numbers.step, shown.numbers.loss, shown.loading) == (7, 0.25, False)
    assert shown.series["loss"].count == 2
    assert only(monitor.refresh(run)) is shown


@pytest.mark.usefixtures("no_time")
def test_a_picture_whose_history_is_not_in_it_says_so_until_it_is(home: Home) -> None:
    run = failed_twice(home).run.run
    monitor = make_monitor(home, FakeClock())
    listed = only(monitor.refresh())
    assert listed.brief
    opened = only(monitor.refresh(run))
    assert (opened.brief, opened.loading, dict(opened.series)) == (False, True, {})
    while monitor.read_on(run, 0.01):
        pass
    whole = only(monitor.refresh(run))
    assert (whole.brief, whole.loading, whole.series["loss"].count) == (False, False, 2)


@pytest.mark.usefixtures("no_time")
def test_what_was_read_of_a_run_that_is_left_again_is_in_the_list(home: Home) -> None:
    run = failed_twice(home).run.run
    monitor = make_monitor(home, FakeClock())
    monitor.refresh(run)
    while monitor.read_on(run, 0.01):
        pass
    assert only(monitor.refresh_whole()).numbers.loss == 0.25


def test_an_attempt_that_has_printed_nothing_hides_no_curve_of_those_before_it(home: Home) -> None:
    run = failed_twice(home).status("ended", 3).launch(3).output("", 3).exit(3, code=1)
    shown = make_monitor(home, FakeClock()).snapshot(run.run.run)
    assert shown.series["loss"].count == 2


@pytest.mark.usefixtures("no_time")
def test_numbers_do_not_go_back_while_a_log_is_read_again(home: Home) -> None:
    run = failed_twice(home)
    run.output("".join(f"step {step} loss {9 / step:.4f} and so on\n" for step in range(8, 12_000)), 2)
    assert 2 * SLICE_BYTES > run.run.attempt(2).output.stat().st_size > SLICE_BYTES
    monitor = make_monitor(home, FakeClock())
    newest = only(monitor.refresh_whole()).numbers.step
    seen = {only(monitor.refresh(run.run.run)).numbers.step}
    while monitor.read_on(run.run.run, 0.000_001):
        seen.add(only(monitor.refresh(run.run.run)).numbers.step)
    assert seen == {newest} == {11_999}


@pytest.mark.usefixtures("no_time")
def test_numbers_that_the_list_shows_stay_while_the_curves_of_all_attempts_are_read(home: Home) -> None:
    run = failed_twice(home).run.run
    monitor = make_monitor(home, FakeClock())
    assert only(monitor.refresh_whole()).numbers.loss == 0.25
    shown = only(monitor.refresh(run))
    assert (shown.numbers.step, shown.numbers.loss) == (7, 0.25)


def test_a_long_log_does_not_keep_the_numbers_of_others_waiting(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newest values and sparklines of all come first, whatever is read after them."""
    monkeypatch.setattr("mpstui.core.runs.monitor.REFRESH_SECONDS", 0.02)
    runs = [RunBuilder(home, f"run {i}", NOW + i).status("ended").launch().exit(code=1) for i in range(12)]
    for place, run in enumerate(runs):
        count = 60_000 if place == 10 else 9
        run.output("".join(f"step {i} loss {9 / (1 + i % 777):.4f} and so on\n" for i in range(count)))
    monitor = make_monitor(home, BusyClock())
    unread = {shown.name for shown in monitor.refresh() if shown.unread}
    for _ in range(12):
        if not unread:
            break
        shown = monitor.refresh()
        unread = {one.name for one in shown if one.unread}
    assert not unread
    assert all(one.numbers.step is not None for one in shown)
    assert {one.name for one in shown if "loss" not in one.series} <= {"run 10"}
    assert any(one.name == "run 10" and one.series["loss"].count < 60_000 for one in shown if one.series), "later"


def test_a_run_that_was_not_read_yet_says_so(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpstui.core.runs.monitor.REFRESH_SECONDS", 0.0)
    failed_twice(home)
    monitor = make_monitor(home, FakeClock())
    unread = only(monitor.refresh())
    assert (unread.unread, unread.numbers.loss) == (True, None)
    monkeypatch.undo()
    assert not only(monitor.refresh_whole()).unread


@pytest.mark.parametrize(
    ("printed", "code", "progress"),
    [
        ("".join(f"Epoch {e}/2 batch {b}/100 loss 0.5\n" for e in (1, 2) for b in (1, 50, 96)), 0, 1.0),
        ("".join(f"Epoch {e}/2 batch {b}/100 loss 0.5\n" for e in (1, 2) for b in (1, 50, 96)), 1, 0.98),
        ("".join(f"step {i}/400 loss 0.5\n" for i in range(0, 391, 10)), 0, 1.0),
        ("".join(f"step {i}/400 loss 0.5\n" for i in range(0, 201, 10)), 0, 0.5),
        ("step 7 loss 0.5\n", 0, None),
    ],
)
def test_a_run_that_finished_within_its_last_epoch_is_at_its_end(
    home: Home, printed: str, code: int, progress: float | None
) -> None:
    run = RunBuilder(home).status("ended").launch().output(printed).exit(code=code)
    assert total_progress(make_monitor(home, FakeClock()).snapshot(run.run.run).numbers) == progress
