"""An empty home, and a monitor of it whose clock a test turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.model.home import Home
from mpstui.core.runs.monitor import Monitor
from tests.core.runs.build import FakeClock, make_home, make_monitor


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def monitor(home: Home, clock: FakeClock) -> Monitor:
    return make_monitor(home, clock)
