"""A machine of our making, and profiles from a text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mpstui.core.machine import Machine
from mpstui.core.profiles.model import Profile
from mpstui.core.profiles.parse import parse_profile


@dataclass
class FakeInterpreter:
    """Answers as told, and remembers what it was asked."""

    usable: Mapping[str, bool] = field(default_factory=dict)
    importable: Mapping[str, bool] = field(default_factory=dict)
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def devices(self, python: str, env: Mapping[str, str]) -> Mapping[str, bool]:
        self.asked.append((python, env))
        return self.usable

    def modules(self, python: str, env: Mapping[str, str], names: tuple[str, ...]) -> Mapping[str, bool]:
        self.asked.append((python, env))
        return self.importable


def linux(*, nvidia: bool = False, interpreter: FakeInterpreter | None = None) -> Machine:
    return Machine("Linux", "x86_64", nvidia, 8, sys.executable, interpreter or FakeInterpreter())


def mac() -> Machine:
    return Machine("Darwin", "arm64", False, 10, sys.executable, FakeInterpreter())


@pytest.fixture
def profile_of(tmp_path: Path) -> Callable[[str], Profile]:
    """A profile from a TOML text, with a script ``train.py`` beside it."""
    (tmp_path / "train.py").write_text("print('hello')\n")

    def build(text: str) -> Profile:
        path = tmp_path / "p.toml"
        path.write_text(text)
        return parse_profile(text, path=path, default_cwd=tmp_path)

    return build
