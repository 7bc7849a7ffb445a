"""A line that breaks at any moment: snapshots are right when it is back, what was asked acts once or not at all."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from mpstui.core.hosts import link as near
from mpstui.core.hosts import reopening, serve
from mpstui.core.hosts.calls import Call, CallBook
from mpstui.core.hosts.desk import Desk, signature_of
from mpstui.core.hosts.far import FarHost
from mpstui.core.hosts.link import Link
from mpstui.core.hosts.ssh import connect
from mpstui.core.hosts.view import KINDS, RunRef, View
from mpstui.core.model.errors import OperationError
from mpstui.core.model.home import Home
from mpstui.core.model.snapshot import State
from mpstui.core.runs.monitor import Monitor
from mpstui.core.settings import HostsSettings
from mpstui.wire import labels
from tests.core.runs.build import RunBuilder, make_home
from tests.waiting import wait_until

from .lines import FarServices, Wire

SEEDS = int(os.environ.get("MPSTUI_TEST_CUTS", "6"))


@dataclass
class Bench:
    """A far home, and a link to it whose lines a test breaks."""

    home: Home
    services: FarServices
    wires: list[Wire] = field(default_factory=list)
    how: dict[str, float | None] = field(default_factory=dict)
    fault: Callable[[Wire], None] = lambda wire: None

    def connect(self) -> Wire:
        wire = Wire(self.services, **self.how)
        self.fault(wire)
        self.wires.append(wire)
        return wire

    @contextmanager
    def linked(self, view: View = View()) -> Iterator[Link]:  # noqa: B008 - frozen
        link = Link("gpu1", self.connect)
        link.look(view)
        link.start()
        try:
            yield link
        finally:
            link.stop()
            for wire in self.wires:
                wire.close()
                wire.thread.join(10)
                assert not wire.thread.is_alive(), "a far end outlived its line"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(reopening, "FIRST_BACKOFF", 0.01)
    monkeypatch.setattr(reopening, "MOST_BACKOFF", 0.05)
    for name, seconds in {
        "PING_SECONDS": 0.05,
        "LATE_SECONDS": 0.3,
        "CUT_SECONDS": 0.4,
        "ACT_PATIENCE": 1.5,
    }.items():
        monkeypatch.setattr(near, name, seconds)
    monkeypatch.setattr(serve, "_TICK_SECONDS", 0.02)
    monkeypatch.setattr(serve, "_QUIET_SECONDS", 0.02)
    monkeypatch.setattr(serve, "LIST_BYTES", 1e6)
    home = make_home(tmp_path)
    return Bench(home, FarServices(home))


def states(link: Link) -> dict[str, State]:
    listing = link.values.get("list")
    return {run: one.state for run, one in listing.runs.items()} if listing is not None else {}


def running(home: Home, name: str = "resnet", created: float = 1.7e9) -> RunBuilder:
    return RunBuilder(home, name, created).status("running").launch().hold()


def test_what_happens_there_is_known_here(bench: Bench) -> None:
    run = running(bench.home)
    with bench.linked() as link:
        wait_until(lambda: states(link) == {run.run.run: State.RUNNING} and link.sentence == "")
        run.release().exit(code=3, cause="exit").status("ended")
        wait_until(lambda: states(link)[run.run.run] is State.FAILED)
        second = running(bench.home, "vit", 1.7e9 + 5)
        wait_until(lambda: states(link) == {second.run.run: State.RUNNING, run.run.run: State.FAILED})
        assert [*states(link)] == [second.run.run, run.run.run], "the newer run comes first"


def test_a_run_that_is_looked_at_is_told_in_full(bench: Bench) -> None:
    run = running(bench.home).beat(step=40, loss=0.5).output("hello\n")
    run.points(*({"attempt": 1, "step": step, "loss": 1 / (step + 1), "acc": step} for step in range(300)))
    name = run.run.run
    log = str(run.run.attempt(1).output)
    with bench.linked(View(focus=name, selected=(name,), logs=(log,))) as link:

        def full() -> Any:
            found = link.values.get(f"run:{name}")
            return found if found is not None and len(found.series) == 2 and not found.loading else None

        found = wait_until(full)
        assert found.series["loss"].count == 300
        assert len(found.series["loss"].x) <= 240
        assert found.available["stop"].ok
        assert found.numbers.beat is not None
        end: Any = wait_until(lambda: link.values.get(f"log:{log}"))
        assert (end.size, end.pieces) == (6, (b"hello\n",))
        link.look(View())
        wait_until(lambda: f"run:{name}" not in bench.wires[0].session._teller._channels)


def test_a_dead_line_keeps_what_is_known_and_says_since_when(bench: Bench) -> None:
    run = running(bench.home)
    with bench.linked() as link:
        wait_until(lambda: states(link))
        bench.fault = Wire.freeze
        bench.wires[0].freeze()
        wait_until(lambda: not link.live and "not heard for" in link.sentence)
        assert states(link) == {run.run.run: State.RUNNING}
        with pytest.raises(OperationError, match="nothing was sent"):
            link.ask(Desk.act, run=RunRef(run.run.run, 1), action="stop", options={})
        wait_until(lambda: len(bench.wires) > 1, what="another line")
        bench.fault = lambda wire: None
        run.release().exit(code=0).status("ended")
        back = wait_until(lambda: link.live)
        assert back
        wait_until(lambda: states(link)[run.run.run] is State.FINISHED)


def test_a_far_side_that_answers_and_reads_nothing_is_not_taken_for_what_is_there_now(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk hangs, on the line at hand and on the next one: what it told before is shown with its age."""
    run, disk, stands, refresh = running(bench.home), Event(), Event(), Monitor.refresh
    disk.set()

    def hanging(self: Monitor, *of: Any, **more: Any) -> Any:
        if not disk.is_set():
            stands.set()
        assert disk.wait(60)
        return refresh(self, *of, **more)

    monkeypatch.setattr(Monitor, "refresh", hanging)
    with bench.linked() as link:
        host = FarHost("gpu1", link)
        wait_until(lambda: [(one.state, one.heard) for one in host.snapshots(())] == [(State.RUNNING, None)])
        disk.clear()
        wait_until(stands.is_set, what="a reading that hangs, after the last one that did not")
        run.release().exit(code=0).status("ended")
        wait_until(lambda: not link.current and "its runs were last read" in link.sentence)
        assert host.snapshots(())[0].heard is not None
        bench.wires[0].close()
        wait_until(lambda: len(bench.wires) > 1 and link.live, what="another line")
        assert not link.current
        wait_until(lambda: "its runs were last read" in link.sentence, what="the age of what is known")
        assert [(one.state, one.heard is None) for one in host.snapshots(())] == [(State.RUNNING, False)]
        disk.set()
        wait_until(lambda: link.sentence == "" and states(link) == {run.run.run: State.FINISHED})


def test_a_home_that_was_renamed_is_no_home_without_runs(bench: Bench) -> None:
    """Nor one whose share is gone: what was known of its runs is shown with its age until it is back."""
    run = running(bench.home)
    with bench.linked() as link:
        wait_until(lambda: states(link) == {run.run.run: State.RUNNING} and link.current)
        elsewhere = bench.home.state.rename(bench.home.state.with_name("renamed"))
        wait_until(lambda: "its runs were last read" in link.sentence)
        assert states(link) == {run.run.run: State.RUNNING}
        elsewhere.rename(bench.home.state)
        wait_until(lambda: link.current and link.sentence == "")
        run.release().exit(code=0).status("ended")
        wait_until(lambda: states(link) == {run.run.run: State.FINISHED})


def test_a_clock_that_is_set_while_a_line_lives_moves_no_run(bench: Bench) -> None:
    run, ahead = running(bench.home, created=1.7e9), [0.0]
    bench.services.clock = lambda: time.time() + ahead[0]
    with bench.linked() as link:
        wait_until(lambda: link.current and len(bench.wires) == 1)
        ahead[0] = 3600.0
        wait_until(lambda: link.current and link.ahead == pytest.approx(3600.0, abs=60.0), what="the clock there")
        assert states(link) == {run.run.run: State.RUNNING}


def test_a_far_side_whose_program_was_cleaned_away_is_begun_anew_and_asked_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, launcher, failures = running(bench.home), bench.services.launcher, [1]

    def cleaned() -> Any:
        if failures:
            failures.pop()
            raise ModuleNotFoundError("No module named 'mpstui.core.any'", name="mpstui.core.any")
        return launcher()

    monkeypatch.setattr(bench.services, "launcher", cleaned)
    with bench.linked() as link:
        wait_until(lambda: link.live)
        assert link.ask(Desk.profiles)
        assert len(bench.wires) == 2
        wait_until(lambda: states(link) == {run.run.run: State.RUNNING})


def more_notices(link: Link, than: int) -> bool:
    return len(link.notices) > than


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_to_the_line_a_key_acts_once_or_not_at_all_and_says_which(bench: Bench, seed: int) -> None:
    """Lines are cut or freeze anywhere, in either direction, while things are asked."""
    chance, run = random.Random(seed), running(bench.home)

    def fault(wire: Wire) -> None:
        kind = chance.random()
        if kind < 0.4:
            wire.up.cut_after = chance.randrange(0, 600)
        elif kind < 0.7:
            wire.down.cut_after = chance.randrange(0, 1500)
        elif kind < 0.75:
            wire.freeze()

    done = {"act": 0, "move": 0}
    with bench.linked() as link:
        wait_until(lambda: link.live)
        bench.fault = fault
        fault(bench.wires[-1])
        for number in range(6):
            what = chance.choice(["act", "move"])
            wait_until(lambda: link.live)
            noted = len(link.notices)
            try:
                if what == "act":
                    link.ask(Desk.act, run=RunRef(run.run.run, 1), action="stop", options={})
                else:
                    link.ask(Desk.move_in_queue, run=RunRef(run.run.run, 1), direction=f"{number}")
                done[what] += 1
            except OperationError as error:
                if "nothing was sent" not in error.sentence:
                    wait_until(partial(more_notices, link, noted), what=f"what came of it: {error}")
                    done[what] += "was done before" in link.notices[-1]
        bench.fault = lambda wire: None
        for wire in bench.wires:
            wire.close()
        run.release().exit(code=3).status("ended")
        wait_until(lambda: link.live and states(link).get(run.run.run) is State.FAILED)
        requests = [path for path in run.run.requests.glob("*.json") if not path.name.endswith(".ack.json")]
        assert (len(requests), len(bench.services.moved)) == (done["act"], done["move"])


def test_clocks_that_differ_are_corrected(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    RunBuilder(home, created=1.7e9).launch().exit(code=0, ended=1.7e9 + 100).status("ended")
    bench = Bench(home, FarServices(home, clock=lambda: time.time() + 3600))
    with bench.linked() as link:
        wait_until(lambda: states(link))
        assert link.ahead == pytest.approx(3600, abs=5)
        one = next(iter(link.values["list"].runs.values()))
        assert one.ended == pytest.approx(1.7e9 + 100 - 3600, abs=5)


def test_a_real_process_serves_and_ends_with_its_line(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    run = running(home)
    link = Link("here", lambda: connect(f"local:{home.state}", HostsSettings()))
    link.start()
    try:
        wait_until(lambda: states(link) == {run.run.run: State.RUNNING})
        assert link.greeting is not None
        link.ask(Desk.label, runs=(RunRef(run.run.run),), what="note", before="", text="from afar")
        assert labels.read(run.run).note == "from afar"
        with pytest.raises(OperationError, match="here: there is no run nothing there"):
            link.ask(Desk.explain, run=RunRef("nothing"))
        pid = link.greeting.pid
    finally:
        link.stop()
    wait_until(lambda: not Path(f"/proc/{pid}").exists() if Path("/proc").exists() else True)


def test_a_call_is_done_once_called_off_never_and_gone_on_with_where_it_died(tmp_path: Path) -> None:
    book, did = CallBook(tmp_path / "calls"), list[bool]()

    def work(call: Call) -> dict[str, object]:
        did.append(call.again)
        return {"ok": len(did)}

    def dies(call: Call) -> dict[str, object]:
        raise KeyboardInterrupt

    assert [book.once("first-call", work) for _ in range(3)] == [{"ok": 1}] * 3
    assert book.call_off("first-call") == {"ok": 1}
    assert book.call_off("second-call") is None
    with pytest.raises(OperationError, match="withdrawn"):
        book.once("second-call", work)
    with pytest.raises(KeyboardInterrupt):
        book.once("third-call", dies)
    assert book.call_off("third-call") == {}
    assert book.once("third-call", work) == {"ok": 2}
    assert did == [False, True]
    with pytest.raises(OperationError, match="without an id"):
        book.once("../x", work)


def test_every_question_and_everything_told_can_travel() -> None:
    from mpstui.core.hosts.codec import form_of

    seen: set[int] = set()

    def walk(form: object) -> None:
        if id(form) in seen:
            return
        seen.add(id(form))
        for part in vars(form).values() if hasattr(form, "__dict__") else ():
            for one in part if isinstance(part, (list, tuple)) else [part]:
                walk(one) if hasattr(one, "encode") and hasattr(one, "accepts") else None
        for one in getattr(form, "_fields", {}).values():
            walk(one)

    names = [name for name in vars(Desk) if not name.startswith("_")]
    assert len(names) > 20
    for name in names:
        signature = signature_of(name)
        for _, form in signature.arguments:
            walk(form)
        walk(signature.answer)
    for kind in KINDS.values():
        walk(form_of(kind))
    with pytest.raises(OperationError, match="nothing there answers to _run"):
        signature_of("_run")
