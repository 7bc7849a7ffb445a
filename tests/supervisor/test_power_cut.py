"""Durability: after a power cut at any moment nothing promised is lost, and no record reads as what was not."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpstui.supervisor import starting
from mpstui.supervisor.loop import Supervisor
from mpstui.supervisor.machine import this_machine
from mpstui.wire import queues, storage
from mpstui.wire.records import QueueRule

from .after_power_cut import faults_in
from .kit import Run, wait_for
from .power_cut import Disk, Recorder

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc what a descriptor is")


def story(home: Path) -> None:
    """A queued run starts, is restarted with another command, and is stopped: every record there is, once."""
    run = Run(home, argv=["/bin/sh", "-c", "echo up; sleep 60 & wait"], queue=QueueRule(group="mps"))
    queues.edit(queues.files_of(run.dir, "mps"), lambda queue: queue._replace(slots=2, decided=True))
    supervisor = Supervisor(run.dir, run.spec, None, this_machine())
    starting.arrive(supervisor.state)

    def until(condition: Callable[[], object]) -> None:
        def looked() -> object:
            supervisor.tick()
            return condition()

        wait_for(looked)

    try:
        until(lambda: "up" in run.output())
        template = storage.to_json(run.spec.launch._replace(checkpoints=None))
        restart = run.ask("restart", launch=template)
        until(lambda: run.dir.ack(restart.id).exists() and "up" in run.output(2))
        stop = run.ask("stop", attempt=2)
        until(lambda: run.dir.ack(stop.id).exists())
    finally:
        run.clean_up()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the disk saw of the story."""
    folder = tmp_path_factory.mktemp("power")
    home = folder / "home"
    home.mkdir()
    with Recorder(home, folder / "trace").recording():
        story(home)
    return folder / "trace"


def test_nothing_promised_is_lost_and_nothing_reads_as_what_was_not(trace: Path) -> None:
    assert list(itertools.islice(faults_in(Disk(trace), looks=5), 5)) == []


def test_every_sync_that_is_left_out_is_noticed(trace: Path) -> None:
    """Each line of the product that syncs something, forgotten one at a time: the very same trace without its syncs."""
    sites = Disk(trace).sites
    assert len(sites) > 10
    for site in sites:
        assert any(faults_in(Disk(trace, without=site), samples=0, looks=50)), site


def _write_in_place(path: Path, data: bytes, *, durable: bool = False, sync: bool = True) -> None:
    storage._write_whole(path, data, drive_cache=durable, sync=sync)
    storage.sync_folder(path.parent)


def _create_in_place(path: Path, value: object, *, durable: bool = False) -> bool:
    if path.exists():
        return False
    _write_in_place(path, storage.dump_bytes(value), durable=durable)
    return True


@pytest.mark.parametrize(("writer", "broken"), [("write_bytes", _write_in_place), ("create_json", _create_in_place)])
def test_a_record_that_is_written_in_place_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str, broken: Callable[..., object]
) -> None:
    monkeypatch.setattr(storage, writer, broken)
    home = tmp_path / "home"
    home.mkdir()
    with Recorder(home, tmp_path / "trace").recording():
        story(home)
    assert any(faults_in(Disk(tmp_path / "trace"), samples=0, looks=50))
