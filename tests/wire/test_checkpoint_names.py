"""Names of checkpoints."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpstui.wire import checkpoints
from mpstui.wire.checkpoints import earlier_best, earlier_number, is_best, is_earlier_best, matching


@pytest.mark.parametrize("stem", ["best", "model_best", "best-epoch=3", "modelBest", "bestmodel", "checkpoint.best"])
def test_what_is_called_the_best(stem: str) -> None:
    assert is_best(stem)


@pytest.mark.parametrize("stem", ["last", "asbestos", "step-00000001", "best-earlier-1", earlier_best(12)])
def test_what_is_not(stem: str) -> None:
    assert not is_best(stem)


def test_the_best_of_an_earlier_training_is_told_by_its_name() -> None:
    assert is_earlier_best(earlier_best(3))
    assert not is_earlier_best("best")
    assert [earlier_number(stem) for stem in (earlier_best(12), "best-earlier-x", "step-3")] == [12, 0, 0]


@pytest.fixture(name="tree")
def _tree(tmp_path: Path) -> Path:
    for name in ("a/b/c/x.pt", "a/x.pt", "a/.hidden.pt", "b/step-1.pt", "b/[1].pt", "x.pt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "dead.pt").symlink_to("nowhere")
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    [
        *("*.pt", "x.pt", "**/*.pt", "*/*.pt", "link/*.pt", "a/**/x.pt", "**/b/**/*.pt", "b/[[]1].pt", "b/step-?.pt"),
        *("a/../x.pt", "none/*", "**/*", "*", "a/b/c/x.pt/*", "**/**/**/*.pt", "[", "a/./x.pt", "dead.pt"),
    ],
)
def test_a_pattern_finds_what_a_glob_finds(tree: Path, pattern: str) -> None:
    found = list(matching(tree, pattern))
    assert set(found) == {path for path in tree.glob(pattern) if path.exists()}
    assert len(found) == len(set(found))
    assert set(matching(Path("/"), f"{tree}/{pattern}")) == set(found)


@pytest.mark.parametrize(
    "pattern", ["", ".", "/", "a\0b", "\ud800", "x" * 300, "~nobody-there/x", "**/" * 3000 + "x", "../" * 3000]
)
def test_a_pattern_that_nobody_can_follow_finds_nothing(tree: Path, pattern: str) -> None:
    assert [path for path in matching(tree, pattern) if path.suffix == ".pt"] == []


def test_a_pattern_looks_into_a_folder_once_for_each_of_its_parts(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    look = checkpoints._inside

    def inside(folder: str) -> list[os.DirEntry[str]]:
        looked_at.append(folder)
        return look(folder)

    monkeypatch.setattr(checkpoints, "_inside", inside)
    list(matching(tree, "**/*/**/*/**/*/**/*/**/*.pt"))
    assert len(looked_at) <= 10 * len([tree, *tree.rglob("*")])
    looked_at.clear()
    monkeypatch.setattr(checkpoints, "MOST_ENTRIES", 3)
    list(matching(tree, "**/*.pt"))
    assert len(looked_at) == 1
