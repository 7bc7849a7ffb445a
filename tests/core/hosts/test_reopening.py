"""A line is opened again as soon as its machine is there again, and a machine is not worn out by that."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpstui.core.hosts import link as near
from mpstui.core.hosts import reopening
from mpstui.core.hosts.line import HostError
from mpstui.core.hosts.link import Link
from mpstui.core.hosts.reopening import Reopening
from mpstui.core.hosts.ssh import Knocking, connect
from mpstui.core.hosts.view import View
from mpstui.core.settings import HostsSettings
from tests.core.runs.build import make_home
from tests.ssh_lab import SshLab
from tests.waiting import wait_until

from .lines import FarServices, Wire


@pytest.fixture
def wires() -> Iterator[list[Wire]]:
    made: list[Wire] = []
    yield made
    for wire in made:
        wire.close()
        wire.thread.join(10)


class Machine:
    """One that may be away; what reaches it is counted."""

    def __init__(self, folder: Path, wires: list[Wire]) -> None:
        self.services, self.wires = FarServices(make_home(folder)), wires
        self.is_away = False
        self.refused = self.knocks = 0

    def connect(self) -> Wire:
        if self.is_away:
            self.refused += 1
            raise HostError("gpu1", "unreachable", "it cannot be reached: No route to host")
        self.wires.append(Wire(self.services))
        return self.wires[-1]

    def knock(self, seconds: float) -> bool | None:
        self.knocks += 1
        return not self.is_away


class Sleeper:
    """A line to a machine, from one whose clock goes on while it sleeps."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.slept_seconds = machine, 0.0
        machine.services.clock = lambda: time.time() + self.slept_seconds
        self.link = Link("gpu1", machine.connect, clock=machine.services.clock)


@pytest.fixture
def sleeper(tmp_path: Path, wires: list[Wire], monkeypatch: pytest.MonkeyPatch) -> Iterator[Sleeper]:
    monkeypatch.setattr(near, "PING_SECONDS", 0.05)
    made = Sleeper(Machine(tmp_path, wires))
    made.link.start()
    try:
        wait_until(lambda: made.link.current)
        yield made
    finally:
        made.link.stop()


def test_a_machine_that_is_away_is_knocked_at_and_no_ssh_is_started_until_it_is_back(
    tmp_path: Path, wires: list[Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reopening, "KNOCK_EVERY", 0.02)
    monkeypatch.setattr(reopening, "FIRST_BACKOFF", 0.01)
    machine = Machine(tmp_path, wires)
    link = Link("gpu1", machine.connect, knock=machine.knock)
    link.start()
    try:
        wait_until(lambda: link.live)
        machine.is_away = True
        wires[0].close()
        wait_until(lambda: machine.knocks > 50)
        link.look(View(focus="any"))  # nor where somebody presses keys meanwhile
        wait_until(lambda: machine.knocks > 100)
        assert machine.refused == 1
        assert "No route to host" in link.sentence
        machine.is_away = False
        wait_until(lambda: link.live, what="the next line")
    finally:
        link.stop()


def paused(line: Reopening, spoken: float, kind: str = "") -> float:
    """Seconds that would be waited after a line like this; the waiting itself is left out."""
    line.ended(spoken, kind)
    seconds = line.backoff
    line.stop()
    line.pause()
    return seconds


def test_pauses_grow_where_lines_fail_and_not_where_they_held() -> None:
    line = Reopening()
    assert [paused(line, 0.0) for _ in range(7)] == [0.5, 1, 2, 4, 8, 15, 15]
    assert [paused(line, 1.0), paused(line, 3.0), paused(line, 100.0)] == [15, 0.5, 0.5]
    assert [paused(line, 0.0, "login"), paused(line, 0.0, "login"), paused(line, 9.0)] == [60, 60, 0.5]


def test_somebody_who_waits_is_not_kept_waiting_but_where_that_would_be_knocking_too_often() -> None:
    line = Reopening()
    line.backoff = 3600.0
    line.hurry()
    line.pause()  # ends
    refused = Reopening()
    refused.ended(0.0, "login")
    refused.hurry()
    refused.pause(0.05)
    assert not refused._hurried.is_set()


def test_a_machine_that_slept_does_not_take_what_it_heard_before_for_what_is_now(sleeper: Sleeper) -> None:
    machine, link = sleeper.machine, sleeper.link
    machine.wires[0].freeze()
    machine.is_away = True
    sleeper.slept_seconds = 600.0  # and the clock that counts on stood still meanwhile
    wait_until(lambda: not link.live and "not heard for 10m" in link.sentence, what="the age of what is shown")
    machine.is_away = False
    wait_until(lambda: link.live and len(machine.wires) == 2, what="another line")
    assert "not heard" not in link.sentence


def test_a_line_that_still_speaks_after_a_sleep_goes_on(sleeper: Sleeper) -> None:
    link, seen = sleeper.link, sleeper.link._session
    sleeper.slept_seconds = 600.0
    wait_until(lambda: (link.heard_at or 0.0) > time.time() + 590.0 and link.current)
    assert link._session is seen


def test_what_is_knocked_at_is_what_ssh_would_call(ssh_lab: SshLab, tmp_path: Path) -> None:
    ssh_lab.host("knocked")
    assert Knocking("knocked", HostsSettings(), ssh_lab.environ)(5.0) is True
    ssh_lab.host("beyond", options="  ProxyJump knocked\n")
    assert Knocking("beyond", HostsSettings(), ssh_lab.environ)(5.0) is None
    assert Knocking("local", HostsSettings(), ssh_lab.environ)(5.0) is None
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        config = tmp_path / "config"
        config.write_text(f"Host off\n  HostName 127.0.0.1\n  Port {taken.getsockname()[1]}\n")
        environ = {**ssh_lab.environ, "MPSTUI_SSH": f"ssh -F {config}"}
        assert Knocking("off", HostsSettings(), environ)(5.0) is False
        with pytest.raises(HostError) as caught:
            connect("off", HostsSettings(), environ=environ)
    assert caught.value.kind in reopening.AWAY
