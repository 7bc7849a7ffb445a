"""Finds the lines of a program that only end it if there is no accelerator.

They are assertions, an ``if`` that raises or exits, and an ``if`` whose ``else`` only says so and exits.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

_ENDS = {"exit", "quit", "_exit"}
_SAYS = {"print", "info", "warning", "error", "critical", "log", "warn", "write", "echo"}


def answering(
    original: Any, hidden: Any, there: Any, torch_folder: Path, tell: Callable[[str], None]
) -> Callable[..., Any]:
    """Return a function that answers ``hidden``, except to lines that would only end the program, which get ``there``.

    Args:
        original: the function it replaces, whose attributes torch's own modules use as well.
        torch_folder: where torch's own code is, which always gets ``hidden``.
        tell: called with a sentence, once for each such line.
    """
    told = set[str]()

    def answer(*args: Any, **kwargs: Any) -> Any:
        place = _insisting(sys._getframe(1), torch_folder)
        if not place:
            return hidden
        if place not in told:
            told.add(place)
            tell(f"the program ends without an accelerator: that check was passed ({place})")
        return there

    functools.update_wrapper(answer, original)
    vars(answer).pop("__wrapped__")
    for name in ("__wrapped__", "cache_info", "cache_parameters"):  # if its answer is cached
        if hasattr(original, name):
            vars(answer)[name] = getattr(original, name)
    vars(answer)["cache_clear"] = lambda: None
    return answer


def _insisting(frame: FrameType | None, torch_folder: Path) -> str:
    name = frame.f_code.co_filename if frame is not None else "<"
    if frame is None or name.startswith(("<", str(torch_folder))) or frame.f_lineno not in _lines(name):
        return ""
    return f"{Path(name).name}:{frame.f_lineno}"


@functools.lru_cache(maxsize=256)
def _lines(name: str) -> frozenset[int]:
    try:
        tree = ast.parse(Path(name).read_bytes())
    except (OSError, ValueError, SyntaxError):
        return frozenset()
    return frozenset(line for node in ast.walk(tree) for line in _of(node))


def _of(node: ast.AST) -> Iterator[int]:
    if not isinstance(node, (ast.Assert, ast.If)):
        return
    asserts = isinstance(node, ast.Assert) and not any(isinstance(one, ast.Not) for one in ast.walk(node.test))
    if asserts or (isinstance(node, ast.If) and _only_ends_without(node)):
        yield from range(node.test.lineno, (node.test.end_lineno or node.test.lineno) + 1)


def _only_ends_without(node: ast.If) -> bool:
    """Return whether it is ``if not there(): ... exit()``, or ``if there(): ... else: print(...); exit()``."""
    if isinstance(node.test, ast.UnaryOp):
        denied = isinstance(node.test.op, ast.Not) and isinstance(node.test.operand, ast.Call)
        return denied and not node.orelse and _ends(node.body[-1])
    # An else that does more than print before it ends may be another way to do the work.
    return (
        isinstance(node.test, ast.Call) and bool(node.orelse) and _ends(node.orelse[-1]) and _speaks(node.orelse[:-1])
    )


def _speaks(statements: list[ast.stmt]) -> bool:
    calls = [one.value if isinstance(one, ast.Expr) else None for one in statements]
    return all(isinstance(call, ast.Call) and _name(call.func) in _SAYS for call in calls)


def _ends(last: ast.stmt) -> bool:
    if isinstance(last, ast.Raise):
        return True
    call = last.value if isinstance(last, ast.Expr) else None
    return isinstance(call, ast.Call) and _name(call.func) in _ENDS


def _name(called: ast.expr) -> str:
    return called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
