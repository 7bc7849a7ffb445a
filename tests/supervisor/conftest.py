"""Runs that clean up after themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .kit import Run


@pytest.fixture
def make_run(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Builds runs in a home of their own; whatever they leave alive is killed afterwards."""
    made: list[Run] = []

    def build(*arguments: Any, **named: Any) -> Run:
        run = Run(tmp_path / "home", *arguments, **named)
        made.append(run)
        return run

    (tmp_path / "home").mkdir()
    yield build
    for run in made:
        run.clean_up()
