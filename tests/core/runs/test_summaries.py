"""What was read of runs that have ended is there in the first refresh of the next process, as long as it holds."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from dataclasses import fields, replace

import pytest

from mpstui.core.follow import Budget
from mpstui.core.model.home import Home
from mpstui.core.model.moves import Moving
from mpstui.core.model.snapshot import RunSnapshot
from mpstui.core.runs import summaries
from mpstui.core.runs.labelling import rename, tag
from mpstui.core.runs.monitor import NO_TIME, REFRESH_SECONDS, Monitor
from mpstui.core.runs.reader import RunReader
from mpstui.core.runs.summaries import Summaries
from mpstui.wire.heartbeat import MemoryReading
from mpstui.wire.records import Branch
from tests.core.runs.build import NOW, FakeClock, RunBuilder, make_monitor


def printed(home: Home, name: str = "foreign", lines: int = 50) -> RunBuilder:
    made = RunBuilder(home, name).status("ended").launch(device="mps").exit(code=0)
    return made.output("".join(f"step {step} loss {5 / (step + 1):.4f}\n" for step in range(lines)))


def reported(home: Home, name: str = "own") -> RunBuilder:
    points = [
        {"time": NOW + step, "attempt": 1, "epoch": 1, "step": step, "loss": math.cos(step), "val_acc": step / 99}
        for step in range(99)
    ]
    made = RunBuilder(home, name).status("ended").launch().exit(code=1, cause="mps_oom").points(*points)
    memory = MemoryReading(1, 2, 3, 4)
    return made.beat(step=98, loss=0.5, epoch=1, metrics={"val_acc": 0.5, "val_x": None}, memory=memory).output("x\n")


def kept(home: Home) -> Summaries:
    return Summaries(home.state / "cache" / "runs.jsonl")


def monitor(home: Home) -> Monitor:
    return make_monitor(home, FakeClock(), kept=kept(home))


def read(made: Monitor) -> tuple[RunSnapshot, ...]:
    for _ in range(20):
        found = made.refresh()
    return found


def shown(one: RunSnapshot) -> str:
    """Everything of a snapshot, curves by their content."""
    found: dict[str, object] = {spec.name: getattr(one, spec.name) for spec in fields(one)}
    found["beat"] = one.numbers.beat
    curves = {n: {spec.name: getattr(view, spec.name) for spec in fields(view)} for n, view in one.series.items()}
    found["series"] = {
        n: {k: list(v) if hasattr(v, "__len__") and not isinstance(v, str) else v for k, v in curve.items()}
        for n, curve in curves.items()
    }
    return repr(found)


def test_the_first_refresh_has_all_that_was_read_before_and_looks_into_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed(home), reported(home)
    before = read(monitor(home))
    assert not any(one.unread for one in before)
    assert [dict(one.extremes) for one in before] == [
        {"loss": (min(map(math.cos, range(99))), 1.0), "val_acc": (0.0, 98 / 99)},
        {"loss": (0.1, 5.0)},
    ]
    monkeypatch.setattr("mpstui.core.runs.files.WitnessReader.poll", lambda self: pytest.fail("looked into"))
    after = monitor(home).refresh()
    assert list(map(shown, after)) == list(map(shown, before))
    assert {len(one.series["loss"].x) for one in after} == {50, 99}
    assert [one.exit.cause for one in after if one.exit is not None] == ["mps_oom", None]


def test_the_records_in_what_was_kept_are_records_again(home: Home) -> None:
    run = reported(home)
    [one] = read(monitor(home))
    whole = replace(one, branch=Branch("earlier", 300, "/runs/earlier/300.pt"), moving=Moving("gpu1", "send", NOW))
    kept(home).keep(run.run, one.name, {}, whole)
    found = kept(home).find(run.run, NOW)
    assert found is not None
    assert (found[0].branch, found[0].moving) == (whole.branch, whole.moving)


def test_what_was_kept_needs_nothing_that_reads_runs(home: Home) -> None:
    printed(home), reported(home)
    read(monitor(home))
    words = f"""
import sys
from pathlib import Path
from mpstui.core.model.home import Home
from mpstui.core.runs.monitor import Monitor
from mpstui.core.runs.summaries import Summaries
home = Home(Path({str(home.state)!r}), Path({str(home.config)!r}))
made = Monitor(home, kept=Summaries(home.state / "cache" / "runs.jsonl"))
losses = [round(one.numbers.loss, 3) for one in made.refresh()]
print(losses, "mpstui.core.runs.reader" in sys.modules, made.refresh(made.refresh()[0].run)[0].brief)
"""
    told = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True).stdout
    assert told == "[-0.819, 0.1] False False\n"


def test_what_has_changed_is_read_again(home: Home) -> None:
    log, own = printed(home), reported(home)
    read(monitor(home))
    log.output("step 50 loss 0.05\n")
    own.points({"time": NOW, "attempt": 1, "epoch": 2, "step": 99, "loss": 7.0, "val_acc": 1.0})
    first = monitor(home).refresh()
    assert {one.run for one in first} == {log.run.run, own.run.run}
    after = {one.name: one for one in read(monitor(home))}
    assert after["foreign"].numbers.loss == 0.05
    assert after["own"].extremes["loss"][1] == 7.0


def test_a_restart_is_seen_and_its_end_kept_anew(home: Home) -> None:
    run = printed(home)
    read(monitor(home))
    clock = FakeClock()
    again = make_monitor(home, clock, kept=kept(home))
    assert again.refresh()[0].attempt == 1
    run.hold().status("running", attempt=2).launch(2)
    clock.advance(2.0)
    assert again.refresh()[0].state == "starting" or again.refresh()[0].state.active
    run.output("step 9 loss 0.01\n", attempt=2).exit(2, code=0).status("ended", attempt=2).release()
    clock.advance(2.0)
    for _ in range(5):
        clock.advance(2.0)
        again.refresh()
    [found] = monitor(home).refresh()
    assert (found.attempt, found.numbers.loss) == (2, 0.01)


def test_tags_cost_no_second_reading(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    run = printed(home)
    read(monitor(home))
    rename(run.run, "better")
    monkeypatch.setattr("mpstui.core.runs.files.WitnessReader.poll", lambda self: pytest.fail("looked into"))
    clock = FakeClock()
    made = make_monitor(home, clock, kept=kept(home))
    assert made.refresh()[0].name == "better"
    tag(run.run, ["keep"])
    clock.advance(2.0)
    [found] = made.refresh()
    assert (found.tags, found.numbers.loss) == (("keep",), 0.1)
    rename(run.run, "")
    clock.advance(2.0)
    assert made.refresh()[0].name == "foreign"


@pytest.mark.parametrize("damage", ["cut", "bit", "foreign", "empty", "folder", "huge shape"])
def test_a_damaged_file_is_passed_over(home: Home, damage: str) -> None:
    printed(home), reported(home)
    before = read(monitor(home))
    path = home.state / "cache" / "runs.jsonl"
    data = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        middle = len(data) // 4
        bit = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        shape = data.replace(b"\t", b"x\t", 1)
        changed = {"cut": data[: middle * 3], "bit": bit, "foreign": b"\x00\xff{}\n" * 9, "empty": b""}
        path.write_bytes(changed.get(damage, shape))
    after = read(monitor(home))
    assert [(one.numbers.loss, one.state, one.extremes) for one in after] == [
        (one.numbers.loss, one.state, one.extremes) for one in before
    ]


def test_runs_that_are_gone_are_forgotten_in_time(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpstui.core.runs.summaries._MOST_DEAD_LINES", 1)
    runs = [printed(home, f"run {number}", lines=3) for number in range(4)]
    read(monitor(home))
    for made in runs[:3]:
        made.run.path.rename(home.state / made.run.run)
    monitor(home).refresh()
    lines = (home.state / "cache" / "runs.jsonl").read_bytes().split()
    assert sum(runs[3].run.run.encode() == word for word in lines) == 1
    assert runs[0].run.run.encode() not in lines
    assert monitor(home).refresh()[0].numbers.loss == pytest.approx(5 / 3, abs=1e-4)


def test_what_lives_is_never_kept(home: Home) -> None:
    printed(home).hold()
    read(monitor(home))
    assert not (home.state / "cache").exists()


def test_a_long_log_starves_no_short_one(home: Home) -> None:
    """With one log of many megabytes first in the list, the others are whole at once."""
    names = [printed(home, f"short {number}").run.run for number in range(12)]
    long = RunBuilder(home, "long", NOW + 9).status("ended").launch().exit(code=0)
    long.output("".join(f"step {step} loss {5 / (step + 1):.4f} of a line that is long\n" for step in range(60_000)))
    made = Monitor(home, clock=lambda: NOW, boot_id="boot-1")
    began = time.thread_time()
    while any(one.unread or not one.series for one in made.refresh() if one.run in names):
        assert time.thread_time() - began < 20
    while next(one for one in made.refresh() if one.name == "long").numbers.loss is None:
        assert time.thread_time() - began < 20


def test_nor_does_it_where_the_list_has_it_selected(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list looks closely at the selected run, the newest at first; its slices took all the time there was."""
    for number in range(12):
        printed(home, f"short {number}")
    long = RunBuilder(home, "long", NOW + 9).status("ended").launch().exit(code=0)
    long.output("".join(f"step {step} loss {5 / (step + 1):.4f} of a line that is long\n" for step in range(60_000)))
    clock, read_on = FakeClock(), RunReader._read_external

    def slowly(reader: RunReader, budget: Budget, **how: bool) -> None:
        if reader.run != long.run:
            return read_on(reader, budget, **how)
        clock.mono += 2 * REFRESH_SECONDS
        return read_on(reader, NO_TIME, anyway=True)  # a slice, which on a busy machine takes all the time there is

    monkeypatch.setattr(RunReader, "_read_external", slowly)
    made = make_monitor(home, clock)
    for _ in range(3):
        found = made.refresh(long.run.run, (long.run.run,))
    assert not [one.name for one in found if one.unread]
    assert not made.refresh(long.run.run, (long.run.run,))[0].brief


def test_the_disk_may_be_full(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    printed(home)

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "write", full)
    assert read(monitor(home))[0].numbers.loss == 0.1


def test_a_run_that_is_selected_shows_no_less_while_its_long_log_is_read(home: Home) -> None:
    lines = "".join(f"step {step} loss {5 / (step + 1):.4f} of a line that is long\n" for step in range(30_000))
    run = RunBuilder(home, "long").status("ended").launch().exit(code=0).output(lines).run
    made = Monitor(home, clock=lambda: NOW, boot_id="boot-1", kept=kept(home))
    while not made.refresh()[0].extremes:
        pass
    again = Monitor(home, clock=lambda: NOW, boot_id="boot-1", kept=kept(home))
    [listed] = again.refresh()
    [selected] = again.refresh(run.run)
    assert selected.loading
    assert selected.series["loss"] is listed.series["loss"]
    assert selected.extremes == listed.extremes
    assert listed.extremes["loss"][1] == 5.0
    while (selected := again.refresh(run.run)[0]).loading:
        again.read_on(run.run, 0.1)
    assert selected.series["loss"].count == 30_000


def test_a_run_that_was_selected_all_the_time_is_kept_too(home: Home) -> None:
    run = reported(home).run
    made = monitor(home)
    for _ in range(5):
        full = made.refresh(run.run)[0]
    assert not full.brief
    [after] = monitor(home).refresh()
    assert (after.brief, after.events, after.checkpoints) == (True, (), ())
    assert after.extremes == full.extremes
    assert set(after.series) == {"loss"}
    assert len(after.series["loss"].x) == 99


def test_what_other_readers_have_read_is_read_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that reads a log better shows so also of the runs that ended before it."""
    run = printed(home).run
    read(monitor(home))
    assert kept(home).find(run, NOW) is not None
    monkeypatch.setattr(summaries, "reader_version", lambda: "another")
    assert kept(home).find(run, NOW) is None
