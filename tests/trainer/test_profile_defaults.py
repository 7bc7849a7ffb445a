"""What the shipped profiles say that a trainer takes by itself is what it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.profiles.parse import parse_profile

PROFILES = sorted((Path(__file__).resolve().parents[2] / "profiles").glob("*.toml"))


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("device", ["mps", "cuda", "cpu"])
def test_the_defaults_of_a_profile_are_its_trainers(path: Path, device: str) -> None:
    tasks = pytest.importorskip("trainer.tasks")
    profile = parse_profile(path.read_text(), path=path, default_cwd=path.parent)
    name = profile.command[profile.command.index("-m") + 2]
    usual = tasks.find(name).DEFAULTS
    if name == "gsdiff" and ("2" in profile.command or profile.args.get("stage") == 2):
        usual = replace(usual, batch_size=4, on_device={"cuda": (8, 1)})
    for role, value in zip(("batch_size", "accumulate"), usual.sizes(device), strict=True):
        key = profile.roles[role]
        told = profile.args.get(key, profile.defaults.get(f"{key}.{device}", profile.defaults.get(key)))
        assert told is not None, key
        assert key in profile.args or told == value
