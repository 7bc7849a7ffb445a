"""A log whose steps begin anew in each epoch, as the screen shows it."""

from __future__ import annotations

from pathlib import Path

from mpstui.core.formats.files import read_log
from mpstui.core.present import epoch_text, total_progress
from mpstui.core.runs.query import findable, parse_query
from mpstui.core.runs.report import as_json
from tests.core.runs.build import FakeClock, RunBuilder, make_home, make_monitor


def test_the_curve_goes_through_all_epochs_and_the_plan_of_each_is_a_share_of_the_run(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    places = [(epoch, step) for epoch in (1, 2, 3) for step in range(1, 21)][:45]
    log.write_text("".join(f"Epoch {e}/5 step {s}/20 loss: {3 / (e * 20 + s):.4f}\n" for e, s in places))
    monitor = make_monitor(make_home(tmp_path / "home"), FakeClock())
    key = monitor.watch(log)
    shown = next(run for run in monitor.refresh(key) if run.run == key)
    assert (shown.numbers.epoch, shown.numbers.epochs, shown.numbers.step, shown.numbers.steps) == (3, 5, 45, 100)
    assert (shown.numbers.epoch_step, shown.numbers.epoch_steps) == (5, 20)
    assert list(shown.series["loss"].x) == list(range(1, 46))


def test_samples_are_an_axis_and_no_steps(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    places = [(epoch, n) for epoch in (1, 2) for n in range(0, 6000, 640)]
    log.write_text(
        "".join(f"Train Epoch: {e} [{n}/6000 ({n // 60}%)]\tLoss: {3 / (1 + e * 6000 + n):.6f}\n" for e, n in places)
    )
    monitor = make_monitor(make_home(tmp_path / "home"), FakeClock())
    key = monitor.watch(log)
    shown = next(run for run in monitor.refresh(key) if run.run == key)
    assert (shown.numbers.epoch, shown.numbers.step, shown.numbers.steps) == (2, None, None)
    assert (shown.numbers.epoch_step, shown.numbers.epoch_steps) == (5760, 6000)
    assert (shown.series["loss"].axis, list(shown.series["loss"].x)[-1]) == ("sample", 11760)
    assert read_log(log).of_samples


def test_the_last_epoch_counted_from_zero_is_shown_as_the_last_of_so_many(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"epoch {e}/4 train_loss 0.{9 - e} val_loss 0.{9 - e}\n" for e in range(4)))
    monitor = make_monitor(make_home(tmp_path / "home"), FakeClock())
    key = monitor.watch(log)
    shown = next(run for run in monitor.refresh(key) if run.run == key)
    assert shown.numbers.epoch == 3
    told = as_json(shown, full=False)
    assert (told["epoch"], told["epochs"]) == (4, 4), "as the screen says it"
    assert isinstance(told["epochs"], int)
    assert parse_query("epoch>=4").matches(findable(shown))
    assert epoch_text(shown.numbers) == "4/4"
    assert total_progress(shown.numbers) == 1.0


def test_a_continued_attempt_counts_its_epochs_from_zero_as_the_one_before_it(tmp_path: Path) -> None:
    """What it prints begins with epoch 2, which is the third: its loss must not stand in place of the second's."""
    home, places = make_home(tmp_path), [(epoch, step) for epoch in range(4) for step in range(20)]
    run = RunBuilder(home).status("ended", attempt=2).launch().launch(2).exit(1, code=1).exit(2, code=0)
    for attempt, part in ((1, places[:50]), (2, places[40:])):
        lines = (
            f"Train: {epoch} [{step:>4}/20 ({5 * step:>3}%)] Loss: {1 / (1 + 20 * epoch + step):.5f}\n"
            for epoch, step in part
        )
        run.output("".join(lines), attempt=attempt)
    loss = make_monitor(home, FakeClock()).snapshot(run.run.run).series["loss"]
    assert list(loss.x) == list(range(80))
    assert (loss.values[25], loss.last) == (0.03846, 0.0125)


def test_a_continued_attempt_counts_the_steps_of_its_first_epoch_as_the_one_before_it(tmp_path: Path) -> None:
    """Nothing in its own lines says that step 1 of epoch 4 is not the first one of the run."""
    home, places = make_home(tmp_path), [(epoch, step) for epoch in range(1, 6) for step in range(1, 21)]
    run = RunBuilder(home).status("ended", attempt=2).launch().launch(2).exit(1, code=1).exit(2, code=0)
    for attempt, part in ((1, places[:70]), (2, places[60:])):
        run.output("".join(f"Epoch {e} | Iter {s} | Loss {9 - e - s / 50}\n" for e, s in part), attempt)
    loss = make_monitor(home, FakeClock()).snapshot(run.run.run).series["loss"]
    assert list(loss.x) == list(range(1, 101))
    assert loss.values[0] == 9 - 1 - 1 / 50


def test_a_continued_attempt_of_a_program_whose_steps_go_on_is_read_as_before(tmp_path: Path) -> None:
    home, places = make_home(tmp_path), [(1 + step // 20, step + 1) for step in range(100)]
    run = RunBuilder(home).status("ended", attempt=2).launch().launch(2).exit(1, code=1).exit(2, code=0)
    for attempt, part in ((1, places[:70]), (2, places[60:])):
        run.output("".join(f"Epoch {e} | Iter {s} | Loss {9 - s / 50}\n" for e, s in part), attempt)
    loss = make_monitor(home, FakeClock()).snapshot(run.run.run).series["loss"]
    assert list(loss.x) == list(range(1, 101))
