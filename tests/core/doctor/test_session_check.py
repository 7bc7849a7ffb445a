"""Lingering, as systemd tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.doctor.machine_check import judge_linger, lingers, parse_linger
from mpstui.core.doctor.report import Status


@pytest.mark.parametrize(("text", "linger"), [("yes\n", True), ("no\n", False), ("", None), ("Linger=what", None)])
def test_only_yes_and_no_are_answers(text: str, linger: bool | None) -> None:
    assert parse_linger(text) is linger


def test_without_systemd_nothing_is_said(tmp_path: Path) -> None:
    assert lingers(tmp_path) is None
    assert list(judge_linger(None)) == []


def test_no_linger_is_a_warning_with_the_command() -> None:
    (result,) = judge_linger(False)
    assert (result.status, result.advice) == (Status.WARNING, "loginctl enable-linger")
