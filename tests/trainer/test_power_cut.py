"""A checkpoint that was saved outlives a power cut, and one that was being saved costs none before it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from tests.supervisor.power_cut import Disk, Outage, Recorder
from trainer.checkpoint import CheckpointFolder

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc what a descriptor is")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[bytes, int]]:
    """What the disk saw of four checkpoints, of which one is kept, and the step of each by its bytes."""
    folder = tmp_path_factory.mktemp("power")
    recorder, steps = Recorder(folder, folder.with_name("trace")), {}
    with recorder.recording():
        saved = CheckpointFolder(folder / "checkpoints", keep=1)
        for step in (1, 2, 3, 4):
            path = saved.save({"weights": torch.full((8,), float(step))}, step, best=step in (1, 3))
            steps[path.read_bytes()] = step
            recorder.note("promise", "checkpoint", step, True)
    return folder.with_name("trace"), steps


def lost(outage: Outage, steps: dict[bytes, int]) -> bool:
    """Whether a file that looks like a checkpoint is none, or all that were promised are gone."""
    files = {name: data for name, data in outage.tree.items() if data is not None and "/." not in name}
    promised = max((promise.value for promise in outage.promises), default=0)
    whole = [steps[data] for data in files.values() if data in steps]
    return len(whole) < len(files) or max(whole, default=0) < promised


def test_a_saved_checkpoint_outlives_a_power_cut(trace: tuple[Path, dict[bytes, int]]) -> None:
    path, steps = trace
    assert not any(lost(outage, steps) for outage in Disk(path).outages())


def test_every_sync_that_is_left_out_is_noticed(trace: tuple[Path, dict[bytes, int]]) -> None:
    path, steps = trace
    for site in Disk(path).sites:
        assert any(lost(outage, steps) for outage in Disk(path, without=site).outages()), site
