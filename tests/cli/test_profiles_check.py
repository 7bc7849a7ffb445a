"""`mpstui profiles check` also warns of what will go wrong, and exits with 0 for that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpstui.cli.main import main


def test_a_doubtful_profile_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    path = tmp_path / "p.toml"
    path.write_text('command = ["{python}", "train.py"]\n[env]\nPYTORCH_ENABLE_MPS_FALLBACK = "true"\n')
    assert main(["profiles", "check", str(path)]) == 0
    assert "doubtful: PYTORCH_ENABLE_MPS_FALLBACK=true ends `import torch`" in capsys.readouterr().out
    assert main(["profiles", "check", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"]
    assert any("FALLBACK" in warning for warning in found["warnings"])
