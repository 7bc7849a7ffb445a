"""Lines of a program that only end it if there is no accelerator: assertions, and an ``if`` that raises or exits."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

_ENDS = {"exit", "quit", "_exit"}


def answering(
    original: Any, hidden: Any, there: Any, torch_folder: Path, tell: Callable[[str], None]
) -> Callable[..., Any]:
    """A function that answers ``hidden``, except to lines that would only end the program, which get ``there``.

    Args:
        original: what it stands for. torch's own modules look for what that has besides its answer.
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
    for name in ("__wrapped__", "cache_info", "cache_parameters"):  # where its answer is cached
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
    if isinstance(node, ast.Assert) and not any(isinstance(one, ast.Not) for one in ast.walk(node.test)):
        yield from range(node.test.lineno, (node.test.end_lineno or node.test.lineno) + 1)
    elif isinstance(node, ast.If) and not node.orelse and isinstance(node.test, ast.UnaryOp):
        alone = isinstance(node.test.op, ast.Not) and isinstance(node.test.operand, ast.Call)
        if alone and _ends(node.body[-1]):
            yield from range(node.test.lineno, (node.test.end_lineno or node.test.lineno) + 1)


def _ends(last: ast.stmt) -> bool:
    if isinstance(last, ast.Raise):
        return True
    call = last.value if isinstance(last, ast.Expr) else None
    called = call.func if isinstance(call, ast.Call) else None
    return (called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")) in _ENDS
