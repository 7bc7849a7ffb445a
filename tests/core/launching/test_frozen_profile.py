"""What is frozen into a run's record is the whole profile but for its secrets, and can be launched again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mpstui.core.launching.editing import frozen_text, profile_toml, thaw
from mpstui.core.profiles.model import Profile, profile_of_command
from mpstui.wire.records import RestartRule, StopRule

Build = Callable[[str], Profile]
BASE = 'command = ["a"]  # stays\n'


@pytest.mark.parametrize(
    "env",
    [
        '[env]\nHF_TOKEN = "s3cr3t-value"\n',
        "[env]\nHF_TOKEN = 's3cr3t-value'\n",
        '[env]\n"HF_TOKEN"="s3cr3t-value" # s3cr3t-value\n',
        'env.HF_TOKEN = "s3cr3t-value"\n',
        'env = {A = "1", HF_TOKEN = "s3cr3t-value"}\n',
        '[env]\nHF_TOKEN = """s3cr3t-\\\n   value"""\n',
        '[env]\nHF_TOKEN = "\\u0073\\u0033cr3t-value"\n',
        '[env]\nHF_TOKEN = "s3"\n',
    ],
)
def test_no_spelling_of_a_secret_survives(profile_of: Build, env: str) -> None:
    profile = profile_of(BASE + env)
    text = frozen_text(profile)
    assert text is not None
    assert "cr3t-" not in text
    assert '"s3"' not in text
    thawed = thaw(text, path=None, cwd=Path("/"))
    assert "HF_TOKEN" not in thawed.env
    assert thawed.command == ("a",)


def test_comments_survive(profile_of: Build) -> None:
    assert "# stays" in str(frozen_text(profile_of(BASE + '[env]\nHF_TOKEN = "s3cr3t-value"\n')))


def test_a_profile_without_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    profile = replace(
        profile_of_command(("python", 'odd "word"\n', "{run_dir}"), cwd=tmp_path, agent=True),
        env={"A": "tab\there"},
        args={"lr": 0.1, "flag": True, "list": (1, 2), "model.x": "ü"},
        arg_style="hydra",
        launcher="torchrun",
        processes=3,
        resume_args=("--resume", "{checkpoint}"),
        checkpoints="*.pt",
        device_args={"cpu": ("--device", "cpu")},
        stop=StopRule("int", 3.0),
        restart=RestartRule(on=["mps_oom"], device="cpu"),
        watch={"log": "x.log"},
        roles={"batch_size": "bs"},
    )
    back = thaw(profile_toml(profile), path=None, cwd=tmp_path)
    assert replace(back, text="", slug=profile.slug) == profile
