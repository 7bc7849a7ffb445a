"""What an install puts into site-packages, asked of the builder itself."""

from __future__ import annotations

import pytest

from tests.contract.test_house_rules import ROOT


@pytest.fixture(scope="module")
def installed() -> set[str]:
    """The files of the wheel, without those of its metadata."""
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    return {file.distribution_path for file in builder.recurse_included_files()}


def test_nothing_of_ours_is_called_as_a_package_of_others(installed: set[str]) -> None:
    assert {path.partition("/")[0] for path in installed} == {"mpstui", "mpstui_trainer"}


def test_everything_that_runs_is_inside(installed: set[str]) -> None:
    ours = {f"mpstui/{path.relative_to(ROOT / 'mpstui')}" for path in (ROOT / "mpstui").rglob("*.py")}
    trainer = {f"mpstui_trainer/{path.relative_to(ROOT / 'trainer')}" for path in (ROOT / "trainer").rglob("*.py")}
    profiles = {f"mpstui/profiles/{path.name}" for path in (ROOT / "profiles").iterdir()}
    assert {*ours, *trainer, *profiles, "mpstui/py.typed"} <= installed


def test_an_installed_trainer_finds_itself_under_its_other_name() -> None:
    """A module that imported ``trainer`` by name would find another package of that name, or none."""
    absolute = [
        f"{path}:{number}"
        for path in (ROOT / "trainer").rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.strip().startswith(("import trainer", "from trainer")) or '"trainer.' in line
    ]
    assert absolute == []
