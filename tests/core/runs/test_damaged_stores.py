"""Whatever lies where a store keeps its runs: a list of them and the look at each come to an end, and claim nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpstui.core.model.errors import OperationError, UsageError
from mpstui.core.model.snapshot import State
from tests.core.runs.build import FakeClock, make_home, make_monitor

SQLITE = b"SQLite format 3\0" + bytes(84)
STORES = {
    "wandb": ("offline-run-20260101_000000-abcdefgh/run-abcdefgh.wandb", b":W&B\xe1\xbe\x00"),
    "mlflow": ("mlflow.db", SQLITE),
    "trackio": ("trackio/project.db", SQLITE),
    "tensorboard": ("events.out.tfevents.1700000000.host.1.0", b"\x18\0\0\0\0\0\0\0\0\0\0\0"),
}
SPARSE_BYTES = 10 << 30


def put(path: Path, head: bytes, kind: str) -> None:
    path.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "elsewhere":
        path.symlink_to("/etc/passwd")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes({"torn": head[:5], "empty": b"", "garbage": head + bytes(range(256)) * 400}.get(kind, head))
    if kind == "sparse":
        os.truncate(path, SPARSE_BYTES)


@pytest.mark.parametrize(
    "kind", ["torn", "empty", "garbage", "pipe", "endless", "elsewhere", "loop", "folder", "sparse"]
)
@pytest.mark.parametrize("store", STORES)
def test_a_damaged_store_costs_itself(tmp_path: Path, store: str, kind: str) -> None:
    name, head = STORES[store]
    folder = tmp_path / "runs"
    put(folder / name, head, kind)
    monitor = make_monitor(make_home(tmp_path / "home"), FakeClock())
    for place in (folder, folder / name):
        try:
            monitor.watch_all(place)
        except (UsageError, OperationError):
            continue
        for _ in range(3):
            shown = monitor.refresh()
        assert {one.state for one in shown} <= {State.WATCHED}
        assert not any(one.numbers.step or one.series for one in shown)
