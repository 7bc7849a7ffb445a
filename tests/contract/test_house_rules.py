"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("mpstui", "trainer")
FORBIDDEN_NAMES = re.compile(r"(?:^|_)(?:utils?|helpers?|managers?|misc|common)(?:_|\.|$)")
LONGEST_FUNCTION_LINES = 50
LONGEST_FILE_LINES = 400
LONGEST_LINES_ALONE = {"mpstui/reporting.py": 1000}
"""One file that people copy into their programs cannot be two."""


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache
def functions(path: Path) -> list[tuple[str, int]]:
    """The name of each function of a file, and how many lines it has."""
    found = [
        node
        for node in statements(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [(node.name, (node.end_lineno or node.lineno) - node.lineno + 1) for node in found]


def statements(inside: ast.AST) -> Iterator[ast.AST]:
    """All of a module, however deep; not the expressions, of which there are twenty times as many."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(inside, part, ()):
            yield node
            yield from statements(node)


def test_files_and_functions_stay_readable() -> None:
    found = []
    for path in sources():
        name = str(path.relative_to(ROOT))
        length = len(path.read_text(encoding="utf-8").splitlines())
        if length > LONGEST_LINES_ALONE.get(name, LONGEST_FILE_LINES):
            found.append(f"{name} has {length} lines")
        found += [f"{name}: {called} is long" for called, lines in functions(path) if lines > LONGEST_FUNCTION_LINES]
    assert not found


def test_a_name_says_what_lives_there() -> None:
    assert not [path for path in sources() if FORBIDDEN_NAMES.search(path.name)]


def test_functions_are_short_on_the_whole() -> None:
    lengths = sorted(lines for path in sources() for _, lines in functions(path))
    assert lengths[len(lengths) // 2] < 10
    assert lengths[int(len(lengths) * 0.95)] <= 30


def test_no_shell_stands_between_us_and_a_program() -> None:
    assert not [path for path in sources() if re.search(r"shell=True|os\.system\(", path.read_text(encoding="utf-8"))]


SENTENCES = ("sentence", "hint", "reason", "note", "health_note", "why", "message")
PARSING = (
    "startswith",
    "endswith",
    "find",
    "index",
    "partition",
    "rpartition",
    "split",
    "removeprefix",
    "removesuffix",
)
PREDICATES = {"is_out_of_memory", "_holds_objects"}
"""MPS and numpy tell these in their message alone; one named function reads it."""


def parsed_sentences(tree: ast.AST) -> Iterator[ast.AST]:
    """Where a program decides by what one of our sentences, or an exception, says."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name in PREDICATES:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PARSING:
            if isinstance(node.func.value, ast.Attribute) and node.func.value.attr in SENTENCES:
                yield node
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            read = node.comparators[0]
            if ast.unparse(read) == "str(error)" or (isinstance(read, ast.Attribute) and read.attr in SENTENCES):
                yield node
        yield from parsed_sentences(node)


def test_no_sentence_is_parsed() -> None:
    """Sentences are for people and may change: a state or an error carries a field or a code to decide by."""
    found = []
    may = re.compile(rf"\.(?:{'|'.join(SENTENCES)})\b|str\s*\(\s*error")
    for path in sources():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text if may.search(text) else "")
        found += [f"{path.relative_to(ROOT)}: {ast.unparse(node)}" for node in parsed_sentences(tree)]
    assert not found


def test_nothing_listens_on_a_port() -> None:
    listening = [path for path in sources() if re.search(r"\.listen\(|http\.server|socketserver", path.read_text())]
    assert not listening


def test_the_page_about_the_architecture_shows_the_layers_of_core() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    held = next(one["layers"] for one in contracts if one.get("containers") == ["mpstui.core"])
    page = (ROOT / "docs" / "architecture.md").read_text()
    block = page.partition("`core` is built in layers")[2].split("```")[1]
    shown = [set(re.findall(r"\w+", line.partition("   ")[0])) for line in block.strip().splitlines()]
    assert shown == [set(re.findall(r"\w+", layer)) for layer in held]
