"""What the processes of one training agree on."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import torch.distributed as dist

from trainer.device import Device
from trainer.distributed import Group, Ranks


def test_a_rank_waits_for_the_one_that_validates_longer_than_torchs_half_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(dist, "init_process_group", lambda backend: None)
    monkeypatch.setattr(dist, "new_group", lambda **settings: asked.append(settings))
    Group(Ranks(rank=1, world_size=2, local_rank=1), Device())
    assert [settings.get("timeout", datetime.timedelta()) >= datetime.timedelta(days=1) for settings in asked] == [True]
