"""Tasks are found by themselves: the modules of the package, and what other packages offer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trainer.running import command
from trainer.tasks import find, shipped_tasks, task_names

PLUGIN = """
from trainer.tasks.cifar import Cifar

class Pictures(Cifar):
    HELP = "pictures of another package"
"""


def offer(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that offers a task of this name."""
    info = folder / "pictures-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pictures\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mpstui.training_tasks]\n{name} = pictures_plugin:Pictures\n")
    (folder / "pictures_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(folder)


def test_every_task_of_the_package_is_found_under_its_module_s_name() -> None:
    assert {name: find(name).__module__ for name in shipped_tasks()} == {
        name: f"trainer.tasks.{name}" for name in shipped_tasks()
    }
    assert "cifar" in shipped_tasks()
    assert not any("gsdiff_" in name for name in task_names())


def test_a_task_of_another_package_is_called_like_the_shipped_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(tmp_path, "pictures", monkeypatch)
    assert "pictures" in task_names()
    assert find("pictures").HELP == "pictures of another package"
    with pytest.raises(SystemExit):
        command("pictures", "--help")
    assert "pictures of another package" in capsys.readouterr().out


def test_another_package_does_not_replace_a_shipped_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, "cifar", monkeypatch)
    assert find("cifar").__module__ == "trainer.tasks.cifar"


def test_an_unknown_task_is_told_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("cifra") == 2
    assert "did you mean cifar" in capsys.readouterr().err
