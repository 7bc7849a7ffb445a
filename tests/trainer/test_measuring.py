"""A step is made as small as the time allows, and the run says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.running import command
from trainer import measuring

WORDS = ("--model", "tiny", "--width", "4", "--limit", "64", "--batch-size", "32", "--accumulate", "2")
RUN = ("--device", "cpu", "--stop-after", "1", "--report-every", "1", "--longest-step", "0.5")


def noted(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [line for line in lines if "samples_per_step" in line]


@pytest.mark.parametrize(("per_sample", "samples"), [(0.0, None), (0.5 / 16, 16), (0.5 / 40, 32), (9.0, 4)])
def test_the_size_follows_the_time_a_sample_takes(
    per_sample: float, samples: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPSTUI_RUN_DIR", str(tmp_path))
    monkeypatch.setattr(measuring, "_step_seconds", lambda job, count: count * per_sample)
    assert command("cifar", *WORDS, *RUN) == 0
    assert [note["samples_per_step"] for note in noted(tmp_path)] == ([samples] if samples else [])


def test_a_step_is_really_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPSTUI_RUN_DIR", str(tmp_path))
    assert command("cifar", *WORDS, *RUN[:-1], "1e-6") == 0
    assert noted(tmp_path)[0]["text"].startswith("steps of 4 samples instead of 64")
