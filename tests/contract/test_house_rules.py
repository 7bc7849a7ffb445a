"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

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


def test_files_and_functions_stay_readable() -> None:
    found = []
    for path in sources():
        name = str(path.relative_to(ROOT))
        length = len(path.read_text(encoding="utf-8").splitlines())
        if length > LONGEST_FILE_LINES:
            found.append(f"{name} has {length} lines")
        found += [f"{name}: {node.name} is long" for node in functions(path) if lines_of(node) > LONGEST_FUNCTION_LINES]
    assert not found


def test_a_name_says_what_lives_there() -> None:
    assert not [path for path in sources() if FORBIDDEN_NAMES.search(path.name)]


def test_functions_are_short_on_the_whole() -> None:
    lengths = sorted(lines_of(node) for path in sources() for node in functions(path))
    assert lengths[len(lengths) // 2] < 10
    assert lengths[int(len(lengths) * 0.95)] <= 30


def test_no_shell_stands_between_us_and_a_program() -> None:
    assert not [path for path in sources() if re.search(r"shell=True|os\.system\(", path.read_text(encoding="utf-8"))]


def test_nothing_listens_on_a_port() -> None:
    listening = [path for path in sources() if re.search(r"\.listen\(|http\.server|socketserver", path.read_text())]
    assert not listening
