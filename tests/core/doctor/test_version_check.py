"""Versions against the table of what works where."""

from __future__ import annotations

import pytest

from mpstui.core.doctor.report import Status
from mpstui.core.doctor.torch_check import judge_versions


def mac(release: str) -> dict[str, str]:
    return {"system": "Darwin", "release": release}


LINUX = {"system": "Linux", "release": "6.1"}


def found(torch: str, system: dict[str, str], python: str = "3.11.4", numpy: str | None = "1.26.4") -> dict[str, str]:
    facts = {"version": torch, "python": python, "numpy": numpy}
    return {result.id: result.text for result in judge_versions(facts, system)}


def test_versions_that_fit_are_one_line() -> None:
    assert found("2.13.0", mac("15.1"), "3.14.0", "2.3.1") == {
        "versions": "torch 2.13.0 works with Python 3.14.0 and NumPy 2.3.1"
    }
    assert found("2.8.0+cpu", LINUX, numpy=None) == {"versions": "torch 2.8.0+cpu works with Python 3.11.4"}


def test_what_mps_lacks_is_listed() -> None:
    (text,) = found("2.4.1", mac("14.5")).values()
    assert text == (
        "on MPS, torch 2.4.1 on macOS 14.5 has no fp16 autocast, no bfloat16 autocast, "
        "no torch.compile (usable from 2.8 on), no GradScaler"
    )
    (text,) = found("2.8.0", mac("13.6")).values()
    assert "no fp16" not in text
    assert "no bfloat16 autocast" in text


@pytest.mark.parametrize(
    ("torch", "release", "told"), [("2.15.0", "14.7", True), ("2.15.0", "15.0", False), ("2.9.1", "13.6", True)]
)
def test_a_macos_that_torch_has_left_behind_is_a_warning(torch: str, release: str, told: bool) -> None:
    facts = {"version": torch, "python": "3.12.1", "numpy": "2.1"}
    statuses = {result.id: result.status for result in judge_versions(facts, mac(release))}
    assert (statuses.get("versions_macos_too_old") is Status.WARNING) is told


@pytest.mark.parametrize(("torch", "python", "needed"), [("2.3.1", "3.12.2", "2.4"), ("2.5.1", "3.13.0", "2.6")])
def test_a_python_that_torch_cannot_compile_on(torch: str, python: str, needed: str) -> None:
    facts = {"version": torch, "python": python, "numpy": None}
    (result,) = judge_versions(facts, LINUX)
    assert result.id == "versions_compile"
    assert f"torch {needed}" in result.advice


def test_numpy_2_under_an_old_torch() -> None:
    assert "versions_numpy" in found("2.2.2", LINUX, numpy="2.0.1")


def test_without_torch_nothing_is_said() -> None:
    assert list(judge_versions(None, LINUX)) == []
