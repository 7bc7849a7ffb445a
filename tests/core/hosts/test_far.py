"""A screen over several machines: one list, and whatever is asked goes to the machine that the run is on."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mpstui.core.follow import Budget
from mpstui.core.hosts import link as near
from mpstui.core.hosts import reopening, serve
from mpstui.core.hosts.joined import MOST_PIXELS, JoinedServices, Way
from mpstui.core.hosts.logs import Stretches
from mpstui.core.logview.counting import Tally
from mpstui.core.logview.searching import matching
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import RunSnapshot, State
from mpstui.core.present import UNHEARD, badge
from mpstui.core.runs.logged import Wanted
from mpstui.core.runs.window import Window
from mpstui.wire import labels, rundir
from mpstui.wire.records import Ack
from tests.core.runs.build import RunBuilder, make_home
from tests.core.runs.test_logged import grey, put
from tests.waiting import wait_until

from .lines import FarServices, Wire


class Two:
    """Two other machines, and the services of a screen that shows both."""

    def __init__(self, folder: Path) -> None:
        self.homes = [make_home(folder / name) for name in ("a", "b")]
        self.wires: list[Wire] = []
        self.services = JoinedServices(
            Home(folder / "own", folder / "own"),
            {},
            folder,
            time.time,
            hosts={"gpu1": Way(self.way(0)), "gpu2": Way(self.way(1))},
        )
        self.monitor: Any = self.services.monitor()

    def way(self, number: int) -> Callable[[], Wire]:
        def connect() -> Wire:
            self.wires.append(Wire(FarServices(self.homes[number])))
            return self.wires[-1]

        return connect

    def run(self, key: str, focus: str | None = None) -> RunSnapshot | None:
        """The newest snapshot of a run."""
        return next((one for one in self.monitor.refresh(focus, (key,)) if one.run == key), None)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    monkeypatch.setattr(reopening, "FIRST_BACKOFF", 0.01)
    monkeypatch.setattr(reopening, "MOST_BACKOFF", 0.05)
    monkeypatch.setattr(near, "PING_SECONDS", 0.05)
    monkeypatch.setattr(near, "LATE_SECONDS", 1.5)  # no less: on a busy machine any line would be late
    monkeypatch.setattr(near, "CUT_SECONDS", 2.5)
    for name in ("_TICK_SECONDS", "_QUIET_SECONDS"):
        monkeypatch.setattr(serve, name, 0.02)
    for name in ("LIST_BYTES", "RUN_BYTES"):
        monkeypatch.setattr(serve, name, 1e6)
    made = Two(tmp_path)
    made.services.start()
    yield made
    made.services.close()
    for wire in made.wires:
        wire.close()


def live(home: Home, name: str, created: float) -> RunBuilder:
    return RunBuilder(home, name, created).status("running").launch().hold()


def test_runs_of_all_machines_are_one_list_and_each_key_acts_on_its_own(two: Two) -> None:
    older, newer = live(two.homes[0], "resnet", 1.7e9), live(two.homes[1], "vit", 1.7e9 + 60)
    wait_until(lambda: [(one.host, one.name) for one in two.monitor.refresh()] == [("gpu2", "vit"), ("gpu1", "resnet")])
    key = f"gpu1:{older.run.run}"
    wait_until(lambda: (one := two.run(key, key)) is not None and not one.brief)
    snapshot = two.run(key, key)
    assert snapshot is not None
    assert str(snapshot.dir) == f"gpu1:{older.run.path}"
    request = two.services.actions.send(snapshot, "stop")
    assert older.run.request(request.id).exists()
    assert not list(newer.run.requests.glob("*.json"))
    assert two.services.actions.answer(snapshot.dir, request.id) is None
    rundir.answer(older.run, Ack(request.id, True, "supervisor", 1.7e9, "stopped"))
    ack = wait_until(lambda: two.services.actions.answer(snapshot.dir, request.id))
    assert ack is not None
    assert ack.text == "stopped"
    two.services.label([snapshot], "tags", "", "far")
    assert labels.read(older.run).tags == ("far",)
    (looked,) = two.services.looked_into([snapshot])
    assert looked.run == key
    assert looked.available["kill"].ok


def test_machines_that_share_a_home_show_each_of_its_runs_once(two: Two) -> None:
    run, ended = live(two.homes[0], "resnet", 1.7e9), RunBuilder(two.homes[0], "vit", 1.7e9 + 60)
    ended.status("ended").launch().exit(code=0)
    two.homes[1] = two.homes[0]
    for wire in list(two.wires):
        wire.close()

    def told(number: int) -> set[str]:
        listing = two.services.hosts[number].link.values.get("list")
        return set(listing.runs) if listing is not None else set()

    wait_until(lambda: (two.monitor.refresh(), {run.run.run, ended.run.run} <= told(0) & told(1))[1])
    found = [one.run for one in two.monitor.refresh() if one.started is not None]
    assert sorted(one.partition(":")[2] for one in found) == sorted([run.run.run, ended.run.run])
    for host in ("gpu1", "gpu2"):  # the one that is looked at stays
        key = f"{host}:{run.run.run}"
        wait_until(lambda: key in [one.run for one in two.monitor.refresh(key)])  # noqa: B023


def test_a_dead_machine_is_unheard_and_never_stopped_the_other_goes_on(two: Two) -> None:
    run, other = live(two.homes[0], "resnet", 1.7e9), live(two.homes[1], "vit", 1.7e9 + 60)
    key = f"gpu1:{run.run.run}"
    wait_until(lambda: [one.state for one in two.monitor.refresh()] == [State.RUNNING] * 2)
    two.services.hosts[0].link._connect = lambda: (_ for _ in ()).throw(OperationError("gpu1: connection lost"))
    next(wire for wire in two.wires if wire.session._services.home == two.homes[0]).close()
    snapshot = wait_until(lambda: one if (one := two.run(key)) is not None and one.heard is not None else None)
    assert snapshot is not None
    assert (snapshot.state, badge(snapshot)) == (State.RUNNING, UNHEARD)
    assert snapshot.health_note.startswith("not heard for ")
    wait_until(lambda: two.services.troubles[0].startswith("gpu1: connection lost, not heard for "))
    with pytest.raises(OperationError, match="nothing was sent"):
        two.services.actions.send(snapshot, "stop")
    other.release().exit(code=1).status("ended")
    wait_until(lambda: (one := two.run(f"gpu2:{other.run.run}")) is not None and one.state is State.FAILED)


def test_an_image_over_there_comes_as_small_as_it_is_drawn(two: Two) -> None:
    run = live(two.homes[0], "resnet", 1.7e9)
    put(run.run, 1, 100, "samples", grey(2000, 1000))
    put(run.run, 2, 200, "samples")
    key = f"gpu1:{run.run.run}"
    snapshot = wait_until(lambda: one if (one := two.run(key, key)) is not None and one.images == 2 else None)
    assert snapshot is not None
    seen = two.services.image(snapshot, Wanted(step=150.0, box=(2000, 1000), ground=(1, 2, 3)))
    assert seen.item is not None
    assert (seen.shelves, seen.item.name, seen.size) == ((("samples", 2, False),), "samples", (2000, 1000))
    assert seen.pixels is not None
    assert 20_000 < seen.pixels.width * seen.pixels.height <= MOST_PIXELS
    run.release().exit(code=0).status("ended")
    shutil.rmtree(run.run.images)
    assert two.services.image(snapshot, Wanted()).item is None


def test_a_long_log_is_read_by_windows_and_searched_there(two: Two) -> None:
    run = live(two.homes[0], "resnet", 1.7e9)
    lines = [f"step {number} loss {1 / (number + 1):.6f}" for number in range(60_000)]
    lines[10_000] = "RuntimeError: needle"
    run.output("\n".join(lines) + "\n")
    wait_until(lambda: two.run(f"gpu1:{run.run.run}"))
    host = two.services.hosts[0]
    path = Path(f"gpu1:{run.run.attempt(1).output}")
    log = two.services.open_log(path)
    wait_until(lambda: log.refresh() and log.line_count == 60_000)
    assert [line.text for line in log.tail(3)] == lines[-3:]
    assert log.tail(1)[0].number == 60_000
    assert [(line.number, line.text) for line in log.at_line(30_001, 2)] == [
        (30_001, lines[30_000]),
        (30_002, lines[30_001]),
    ]
    assert log.window(0, 2)[1].text == lines[1]

    def searched() -> Any:
        return log.search("needle", 0, seconds=0.05)

    line = wait_until(searched)
    assert (line.number, line.text) == (10_001, lines[10_000])
    tally = Tally(matching("step 5999"))
    wait_until(lambda: log.count_on(tally, 0.01) and tally.complete)
    assert tally.count == sum("step 5999" in text for text in lines)
    before = two.services.stamp(path)
    run.output("one more\n")
    wait_until(lambda: two.services.stamp(path) != before and log.refresh())
    assert log.tail(1)[0].text == "one more"
    assert log.span == (1.7e9 + 1, None)
    assert host.link._session is not None
    assert host.link._session.frames.received < 100_000, "a log of 1.6 MB has travelled whole"


def test_a_log_in_utf_16_is_text_there_too(two: Two) -> None:
    run = live(two.homes[0], "resnet", 1.7e9)
    run.run.attempt(1).output.write_bytes("\n".join([*map(str, range(3000)), "last \u00e9", ""]).encode("utf-16"))
    wait_until(lambda: two.run(f"gpu1:{run.run.run}"))
    log = two.services.open_log(Path(f"gpu1:{run.run.attempt(1).output}"))
    wait_until(lambda: log.refresh() and log.line_count is not None)
    assert [line.text for line in log.tail(2)] == ["2999", "last \u00e9"]
    assert [(line.number, line.text) for line in log.window(0, 2)] == [(1, "0"), (2, "1")]
    assert [line.text for line in log.at_line(1500, 2)] == ["1499", "1500"]


def test_curves_telemetry_forms_and_cards_come_from_there(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunBuilder(two.homes[1], "resnet", 1.7e9).launch().output("Traceback\nValueError: x\n")
    run.points(*({"attempt": 1, "step": step, "loss": 1.0} for step in range(50)))
    run.exit(code=1, cause="exit").status("ended")
    key = f"gpu2:{run.run.run}"
    snapshot = wait_until(lambda: one if (one := two.run(key, key)) is not None and "loss" in one.series else None)
    assert snapshot is not None
    explained = two.services.explain(snapshot)
    assert explained.findings or explained.exception
    assert two.services.details(snapshot)
    reader = two.services.window_reader(snapshot, Window(key, ("loss",), 10, 20))
    reader.read(Budget(1.0))
    assert len(reader.curves["loss"].x) == 11
    assert len(two.services.table(snapshot).rows) == 50
    sampler, recorder = two.services.sampler(), two.services.recorder(snapshot)
    sample = wait_until(lambda: one if (one := sampler.sample({})).system.memory_total_bytes else None, timeout=60)
    assert sample is not None
    assert recorder.poll(snapshot, sample.system, None) is not None
    recorder.close()
    launcher = two.services.launcher()
    assert "quickstart" in [one.name for one in launcher.entries()]
    draft = launcher.draft("quickstart")
    assert draft.title.endswith("on gpu2")
    values = {one.key: one.value for one in draft.fields}
    link = two.services.hosts[1].link
    line, ask = link._session.line, link.ask  # type: ignore[union-attr]
    line.freeze()  # type: ignore[union-attr]

    def ask_aside(*words: Any, **named: Any) -> Any:
        assert threading.current_thread() is not threading.main_thread(), "whoever draws waits for no line"
        return ask(*words, **named)

    with monkeypatch.context() as patched:
        patched.setattr(link, "ask", ask_aside)
        assert draft.preview(values).is_asked_for
        assert launcher.entries()
    line.thaw()  # type: ignore[union-attr]
    wait_until(lambda: link.sentence == "", what="the line")
    found = draft.examine(values)
    assert ("trainer" in found.command, found.host) == (True, "gpu2")
    assert two.services.examine_removal(snapshot).name == "resnet"
    two.services.remove(snapshot, keep_checkpoints=False)
    wait_until(lambda: two.run(key) is None)


def test_parts_of_a_file_join_and_newer_bytes_count() -> None:
    parts = Stretches()
    parts.put(10, b"abc")
    parts.put(20, b"xyz")
    assert parts.get(10, 13) == b"abc"
    assert parts.get(12, 21) is None
    parts.put(12, b"CDEFGHIJX")
    assert parts.get(10, 23) == b"abCDEFGHIJXyz"
    assert parts.get(9, 12) is None
