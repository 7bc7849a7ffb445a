"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("mpstui", "trainer")
FORBIDDEN_NAMES = re.compile(r"(?:^|_)(?:utils?|helpers?|managers?|misc|common)(?:_|\.|$)")
LONGEST_FUNCTION_LINES = 50
LONGEST_FILE_LINES = 400


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_stays_readable(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE_LINES
    too_long = [node.name for node in functions(path) if lines_of(node) > LONGEST_FUNCTION_LINES]
    assert not too_long
    assert not FORBIDDEN_NAMES.search(path.name)


def test_functions_are_short_on_the_whole() -> None:
    lengths = sorted(lines_of(node) for path in sources() for node in functions(path))
    assert lengths[len(lengths) // 2] < 10
    assert lengths[int(len(lengths) * 0.95)] <= 30


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_shell_stands_between_us_and_a_program(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "shell=True" not in text
    assert "os.system(" not in text


def test_nothing_listens_on_a_port() -> None:
    listening = [path for path in sources() if re.search(r"\.listen\(|http\.server|socketserver", path.read_text())]
    assert not listening
