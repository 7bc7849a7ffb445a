"""Aim's folders: what a run tracked and was told, read while its databases grow, are sorted and merged."""

from __future__ import annotations

import contextlib
import math
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.formats.points import PointColumns
from mpstui.core.formats.stores import find_runs, require_path
from mpstui.core.formats.stores._rocksdb_files import DAMAGE, snappy
from mpstui.core.model.errors import UsageError
from mpstui.core.model.snapshot import Health, State
from mpstui.core.present import badge
from mpstui.wire.liveness import system_process_table
from tests.core.runs.build import FakeClock, make_home, make_monitor
from tests.rocksdb_files import Folder, key, tree, value
from tests.rocksdb_files import snappy as packed

START = 1_700_000_000.0
TRAIN, NOWHERE = 17, -4
RUN = "c0ffee"


class Aim:
    """A store with one run that tracks."""

    def __init__(self, path: Path) -> None:
        self.path = path / ".aim"
        self.told = Folder(self.path / "meta" / "chunks" / RUN)
        self.tracked = Folder(self.path / "seqs" / "chunks" / RUN)
        self.tell("contexts", {str(TRAIN): {}})
        self.told.put([(key("meta", "chunks", RUN, "contexts", TRAIN, "subset"), value("train"))])
        self.told.put([(key("meta", "chunks", RUN, "contexts", NOWHERE), value({}))])
        with closing(sqlite3.connect(self.path / "run_metadata.sqlite")) as writer, writer:
            writer.execute("CREATE TABLE run (id, hash, name, description, created_at, experiment_id)")
            writer.execute("CREATE TABLE experiment (id, name)")
            writer.execute("CREATE TABLE tag (id, name)")
            writer.execute("CREATE TABLE run_tag (run_id, tag_id)")
            began = "2023-11-14 22:13:20.000000"
            writer.execute("INSERT INTO run VALUES (1, ?, 'first', 'of many', ?, 2)", [RUN, began])
            writer.execute("INSERT INTO experiment VALUES (2, 'digits')")

    def tell(self, name: str, told: Any) -> None:
        place = ("meta", "chunks", RUN, name)
        self.told.put(tree(place, told), ranges=[(key(*place), key(*place) + b"\xff")])

    def track(self, steps: Sequence[int], name: str = "loss", context: int = TRAIN) -> None:
        """Each part of a value is a write of its own, under a number that says nothing of its step."""
        place = ("seqs", "v2", "chunks", RUN, context, name)
        for step in steps:
            number = hash((step, 1)) % (1 << 62) * (-1) ** step
            parts = {"val": 1 / (step + 1), "epoch": step // 10, "time": START + step, "step": step}
            for part, told in parts.items():
                self.tracked.put([(key(*place, part, number), value(told)), (b"BLOBS\xfe" + key(*place, part), None)])


@pytest.fixture(name="aim")
def _aim(tmp_path: Path) -> Aim:
    return Aim(tmp_path)


def test_a_run_and_what_is_told_of_it(aim: Aim, tmp_path: Path) -> None:
    own = {"arguments": ["train.py", "--lr", "0.1"], "env_variables": {"API": "secret"}, "executable": "python"}
    aim.tell("attrs", {"old": 1, "hparams": {"lr": 0.5}})
    aim.tell("attrs", {"hparams": {"lr": 0.1, "layers": [1, 2], "deep": True, "none": None}, "__system_params": own})
    aim.track(range(100))
    aim.tracked.flush()
    aim.told.flush()
    aim.track(range(0, 100, 10), "acc", NOWHERE)
    aim.track([5, 6], "__system__cpu", NOWHERE)
    aim.tracked.put([(key("seqs", "v2", "chunks", RUN, TRAIN, "text", "val", 1, "data"), value("words"))])
    aim.tell("end_time", START + 200)
    monitor = make_monitor(make_home(tmp_path / "home"), FakeClock())
    (run,) = monitor.watch_all(tmp_path)
    assert run == f"{aim.path}#{RUN}"
    shown = monitor.snapshot(run)
    assert (shown.name, shown.store, shown.state, shown.started) == ("first", "Aim", State.WATCHED, START)
    assert shown.settings == {
        "hparams.lr": "0.1",
        "hparams.layers": "[1, 2]",
        "hparams.deep": "true",
        "hparams.none": "none",
    }
    assert shown.argv == ("train.py", "--lr", "0.1")
    assert "does not record how it ended" in shown.reason
    assert list(shown.series) == ["acc", "loss", "system/cpu"]
    loss = shown.series["loss"]
    assert (list(loss.values), list(loss.x)) == ([1 / (step + 1) for step in range(100)], list(range(100)))
    assert (loss.times[3], shown.numbers.step, shown.numbers.epoch) == (START + 3, 99, 9)
    assert list(shown.series["system/cpu"].x) == [5, 6]


def test_a_value_is_told_once_however_its_files_change(aim: Aim) -> None:
    (run,) = find_runs(aim.path)
    reader = run.open()
    assert reader is not None
    found: dict[str, list[float]] = {}

    def look() -> None:
        for point in reader.take(1 << 20):
            assert isinstance(point, PointColumns)
            columns = {**point.values, **({"loss": point.losses} if len(point.losses) else {})}
            for name in columns:
                found.setdefault(name, []).extend(point.steps or [])

    def track(steps: range) -> None:
        aim.track(steps)
        aim.track(steps, "acc", NOWHERE)

    track(range(10))
    look()
    aim.tracked.flush()  # what was read in the log is a table now
    track(range(10, 20))
    look()
    aim.tracked.flush()
    track(range(20, 25))
    aim.tracked.flush()  # never seen as a log
    track(range(25, 30))
    look()
    aim.tracked.merge()  # of what is known
    track(range(30, 35))
    look()
    aim.tracked.flush()
    track(range(35, 40))
    look()
    assert found == {"loss": [*range(40)], "acc": [*range(40)]}
    aim.tracked.flush()
    track(range(40, 45))
    aim.tracked.flush()
    aim.tracked.merge()  # of what is known, and more
    found.clear()
    look()
    assert not found
    look()
    assert found == {"loss": [*range(45)], "acc": [*range(45)]}
    track(range(45, 50))
    look()
    look()
    assert found == {"loss": [*range(50)], "acc": [*range(50)]}


def test_a_table_without_sequence_numbers_is_known_once_it_was_read(aim: Aim) -> None:
    """Merged to the lowest level values have the number 0, as if nothing had been read."""
    aim.track(range(10))
    aim.tracked.flush()
    aim.tracked.merge()
    (run,) = find_runs(aim.path)
    reader = run.open()
    assert reader is not None

    def look() -> list[float]:
        points = [point for point in reader.take(1 << 20) if isinstance(point, PointColumns)]
        return [step for point in points for step in point.steps or ()]

    assert look() == [*range(10)]
    aim.track(range(10, 20))
    aim.tracked.flush()
    aim.tracked.merge()
    before = reader.position
    assert look() == []
    assert reader.position < before  # it begins anew
    assert look() == [*range(20)]
    aim.track(range(20, 30))
    assert look() == [*range(20, 30)]


def test_long_tables_are_read_in_pieces(aim: Aim) -> None:
    for start in range(0, 500, 100):
        aim.track(range(start, start + 100))
        aim.track(range(start, start + 100), "acc")
        aim.tracked.flush()
    aim.tracked.merge()
    (run,) = find_runs(aim.path)
    reader = run.open()
    assert reader is not None
    steps, looks, before = list[float](), 0, -1
    while reader.position != before:
        before, looks = reader.position, looks + 1
        steps += [
            step
            for point in reader.take(2000)
            if isinstance(point, PointColumns) and len(point.losses)
            for step in point.steps or ()
        ]
    assert looks > 10
    assert steps == [*range(500)]
    assert reader.position == sum(file.stat().st_size for file in run.files() if file.exists())


def test_metrics_of_older_versions_have_their_steps_as_numbers(aim: Aim) -> None:
    for step in (3, 1, 2):
        place = ("seqs", "chunks", RUN, TRAIN, "loss")
        parts = {"val": step * 0.5, "epoch": None, "time": START}
        aim.tracked.put([(key(*place, part, step), value(told)) for part, told in parts.items()])
    (run,) = find_runs(aim.path)
    reader = run.open()
    assert reader is not None
    assert [(point.counters.step, point.loss) for point in reader.poll()] == [(1, 0.5), (2, 1.0), (3, 1.5)]


def test_numbers_that_are_not_finite_and_what_is_no_number(aim: Aim) -> None:
    for step, told in enumerate([math.nan, math.inf, "words", True, None]):
        place = ("seqs", "chunks", RUN, NOWHERE, "odd")
        aim.tracked.put([(key(*place, "val", step), value(told)), (key(*place, "time", step), value(START))])
    (run,) = find_runs(aim.path)
    reader = run.open()
    assert reader is not None
    assert (
        repr([(point.counters.step, point.metrics["odd"]) for point in reader.poll()])
        == "[(0, nan), (1, inf), (3, 1.0)]"
    )


@pytest.mark.parametrize(
    "spoil", [lambda data, at: data[:at], lambda data, at: data[:at] + b"\xff\0\xf3" + data[at + 3 :]]
)
def test_damaged_files_cost_what_is_damaged(aim: Aim, tmp_path: Path, spoil: Callable[[bytes, int], bytes]) -> None:
    aim.track(range(30))
    aim.tracked.flush()
    aim.track(range(30, 40))
    whole = aim.path.with_name("whole")
    shutil.copytree(aim.path, whole)
    names = [
        one.relative_to(whole) for folder in ("seqs", "meta") for one in (whole / folder).rglob("*") if one.is_file()
    ]
    assert len(names) > 5
    for name in names:
        data = (whole / name).read_bytes()
        for at in range(0, len(data), max(1, len(data) // 40)):
            (aim.path / name).write_bytes(spoil(data, at))
            (run,) = find_runs(aim.path)
            reader = run.open()
            assert reader is not None
            points = [*reader.poll(), *reader.poll()]
            assert {point.loss for point in points} <= {1 / (step + 1) for step in range(40)} or len(points) < 45
            with contextlib.suppress(OSError):
                run.told(reader)
        (aim.path / name).write_bytes(data)


def test_what_is_compressed_and_what_lies(tmp_path: Path) -> None:
    for plain in (b"", b"a", b"ab" * 90, b"a" * 1000 + b"b", bytes(range(256)) * 20):
        assert snappy(packed(plain)) == plain
    assert (
        snappy(bytes([12, 0b1000, 97, 98, 99, 0b10101, 3])) == b"abcabcabcabc"
    )  # five and four of what is just written
    for lie in (b"\xff\xff\xff\xff\x7f", bytes([3, 0, 97, 2, 9, 0]), bytes([3, 0, 97]), bytes([200])):
        with pytest.raises(DAMAGE):
            snappy(lie)


def test_a_run_is_named_behind_its_store(aim: Aim) -> None:
    require_path(Path(f"{aim.path}#{RUN}"))
    assert [run.name for run in find_runs(Path(f"{aim.path}#{RUN}"))] == ["first"]
    with pytest.raises(UsageError, match="has no run 17"):
        require_path(Path(f"{aim.path}#17"))


def test_a_list_has_the_newest_values_before_all_is_read(aim: Aim) -> None:
    aim.told.put(
        tree(("meta", "chunks", RUN, "traces", TRAIN, "loss"), {"last": 0.25, "last_step": 7, "dtype": "float"})
    )
    (run,) = find_runs(aim.path)
    reader = run.open()
    assert reader is not None
    glance = getattr(reader, "glance")()  # noqa: B009
    assert [(point.newest.counters.step, point.newest.loss) for point in glance] == [(7, 0.25)]


def test_a_closed_run_does_not_go_on_because_another_one_tracks(aim: Aim, tmp_path: Path) -> None:
    """All runs of a store have one database, which holds their names; each has its values for itself."""
    clock = FakeClock(START)
    aim.track(range(10))
    monitor = make_monitor(make_home(tmp_path / "home"), clock, system_process_table())
    (run,) = monitor.watch_all(tmp_path)
    clock.advance(10)
    with (aim.path / "run_metadata.sqlite").open("ab"):
        assert monitor.snapshot(run).health is Health.TRAINING, "its newest value was tracked a second ago"
        aim.tell("end_time", START + 9.5)
        for _ in range(3):
            clock.advance(10)
            (aim.path / "run_metadata.sqlite").touch()
            shown = monitor.snapshot(run)
        assert (badge(shown).word, shown.ended) == ("ended", START + 9.5)
        aim.track([50])
        clock.advance(12)
        resumed = monitor.snapshot(run)
    assert (badge(resumed).word, resumed.ended) == ("training", None), "Aim keeps the old end until the next one"
    assert "has recorded no end" in resumed.reason
