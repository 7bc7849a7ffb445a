"""Extensions of other packages, as real distributions on the import path."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.model.plugins import plugin_modules


def install(folder: Path, group: str, **modules: str) -> None:
    """A distribution in ``folder`` whose entry points name its modules, each with its source."""
    about = folder / "extras-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: extras\nVersion: 1.0\n")
    lines = "".join(f"{name} = {name}\n" for name in modules)
    (about / "entry_points.txt").write_text(f"[{group}]\n{lines}")
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)


def test_modules_of_other_packages_are_found_in_the_order_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "mpstui.tests_found", second_plugin="VALUE = 2", first_plugin="VALUE = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [module.VALUE for module in plugin_modules("mpstui.tests_found")] == [1, 2]


def test_a_module_that_cannot_be_imported_takes_no_other_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "mpstui.tests_broken", broken_plugin="raise SystemError('x')", whole_plugin="VALUE = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [module.VALUE for module in plugin_modules("mpstui.tests_broken")] == [1]
