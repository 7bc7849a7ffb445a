"""Whether a training script may be imported: DataLoader workers on macOS do just that."""

from __future__ import annotations

import ast

_HARMLESS_CALLS = frozenset(
    {
        "getLogger",
        "set_start_method",
        "manual_seed",
        "filterwarnings",
        "simplefilter",
        "basicConfig",
        "append",
        "insert",
    }
)


def starts_work_on_import(source: str) -> bool:
    """Return whether importing a script would run its main part; ``False`` when the source cannot be parsed.

    A script is at fault when it has no ``if __name__ == "__main__":`` and its top level calls something as a statement,
    or loops. Imports, definitions and assignments are what a module may do.
    """
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    if any(_is_guard(statement) for statement in module.body):
        return False
    return any(_does_work(statement) for statement in module.body)


def _is_guard(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.If) or not isinstance(statement.test, ast.Compare):
        return False
    sides = [statement.test.left, *statement.test.comparators]
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)


def _does_work(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.For | ast.While | ast.With):
        return True
    if isinstance(statement, ast.If | ast.Try):
        return any(_does_work(inner) for inner in statement.body)
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name not in _HARMLESS_CALLS
