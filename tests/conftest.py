"""One seam that shuts the developer's own machine out of every test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the developer's runs, profiles or settings."""
    home: Path = tmp_path_factory.mktemp("mpstui-home")
    monkeypatch.setenv("MPSTUI_HOME", str(home))
    for name in ("MPSTUI_RUN_ID", "MPSTUI_RUN_DIR", "MPSTUI_ATTEMPT", "NO_COLOR", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
