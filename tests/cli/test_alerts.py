"""`mpstui alerts` shows and tests what is set, never the webhook's address."""

from __future__ import annotations

import json
import sys

import pytest

from mpstui.cli.main import main
from tests.cli.programs import write_settings


def test_what_is_set_is_shown_without_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    write_settings('[alerts]\nhook = ["say", "{text}"]\nwebhook = "https://example.org/s3cret"\n')
    assert main(["alerts"]) == 0
    shown = capsys.readouterr().out
    assert "say '{text}'" in shown
    assert "s3cret" not in shown
    assert main(["alerts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["webhook"] is True


def test_a_mistake_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    write_settings("[alerts]\nbel = true\n")
    assert main(["alerts"]) == 2
    assert "did you mean `bell`" in capsys.readouterr().err


def test_a_test_runs_the_hook_and_says_what_came_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "test"]) == 1
    write_settings(
        f"[alerts]\nhook = {json.dumps([sys.executable, '-c', 'import sys; print(sys.argv[1])', '{event}'])}\n"
    )
    assert main(["alerts", "test"]) == 0
    out = capsys.readouterr().out
    assert "hook: exit code 0" in out
    assert out.rstrip().endswith("test")


def test_the_test_says_that_it_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(
        f"[alerts]\nhook = {json.dumps([sys.executable, '-c', 'import sys; print(sys.argv[1])', '{text}'])}\n"
    )
    assert main(["alerts", "test"]) == 0
    said = capsys.readouterr().out.rstrip().splitlines()[-1]
    assert said.startswith("mpstui alerts arrive here: this is the test that `mpstui alerts test` sends")


def test_a_test_fails_by_what_happened_and_not_by_what_a_hook_says(capsys: pytest.CaptureFixture[str]) -> None:
    for code, says in ((0, "0 failed"), (1, "all well")):
        program = f"print({says!r}); raise SystemExit({code})"
        write_settings(f"[alerts]\nhook = {json.dumps([sys.executable, '-c', program])}\n")
        assert main(["alerts", "test"]) == code
        assert says in capsys.readouterr().out
