"""How single values are encoded: numbers, moments, words, members of an enumeration; and the rules common to all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Tree = Any
"""What JSON can hold: None, bool, int, float, str, list, dict."""
SCALARS: frozenset[Any] = frozenset({NoneType, bool, int, float, str})
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Malformed(ValueError):
    """A value does not match its annotation; the message says where."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """How values are encoded."""

    digits: int | None = None
    """Significant digits of a float; None: all of them."""
    ahead: float = 0.0
    """Seconds by which the other side's clock is ahead of ours: its moments are converted to our time, ours to its."""


EXACT = Rules()


@dataclasses.dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A value and its tree, as previously encoded or decoded."""

    value: T
    tree: Tree


class Form(Generic[T]):
    """How values of one type become trees and back."""

    def encode(self, value: T, rules: Rules, known: Known[T] | None = None) -> Tree:
        """The tree of a value; if it is the known value itself, the known tree itself."""
        if known is not None and value is known.value:
            return known.tree
        return self._encode(value, rules, known)

    def decode(self, tree: Tree, rules: Rules, known: Known[T] | None = None) -> T:
        """The value of a tree; if it is the known tree itself, the known value itself.

        Raises:
            Malformed: it is not a tree of this type.
        """
        if known is not None and tree is known.tree:
            return known.value
        return self._decode(tree, rules, known)

    def accepts(self, value: object) -> bool:
        """True if a value has this type, checked only as far as a union needs."""
        raise NotImplementedError

    def _encode(self, value: T, rules: Rules, known: Known[T] | None) -> Tree:
        raise NotImplementedError

    def _decode(self, tree: Tree, rules: Rules, known: Known[T] | None) -> T:
        raise NotImplementedError


def told(value: float, digits: int | None) -> Tree:
    """A float for JSON: without a decimal point if it is whole, and with no more digits than wanted."""
    if not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    if digits is not None:
        value = float(f"{value:.{digits}g}") if abs(value) < 10**digits else round(value, 3)
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def number(tree: Tree) -> float:
    """Decode a number, or the word for one that is not finite; raise :class:`Malformed` for anything else."""
    if isinstance(tree, str) and tree in _NOT_FINITE:
        return _NOT_FINITE[tree]
    if isinstance(tree, (int, float)) and not isinstance(tree, bool):
        return float(tree)
    raise Malformed(f"no number: {short(tree)}")


class Scalar(Form[Any]):
    """A value that JSON can hold as it is, and numbers that are not finite."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def accepts(self, value: object) -> bool:
        if self.kind is float:
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        return isinstance(value, self.kind) and not (self.kind is int and isinstance(value, bool))

    def _encode(self, value: Any, rules: Rules, known: Known[Any] | None) -> Tree:
        if not self.accepts(value):
            raise Malformed(f"no {self.kind.__name__}: {short(value)}")
        return told(float(value), rules.digits) if self.kind is float else value

    def _decode(self, tree: Tree, rules: Rules, known: Known[Any] | None) -> Any:
        if self.kind is float:
            return number(tree)
        if not self.accepts(tree):
            raise Malformed(f"no {self.kind.__name__}: {short(tree)}")
        return tree


class MomentForm(Form[float]):
    """Unix seconds: three decimals, converted from one clock to the other."""

    def accepts(self, value: object) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def _encode(self, value: float, rules: Rules, known: Known[float] | None) -> Tree:
        moved = value + rules.ahead
        return told(moved if rules.digits is None or not math.isfinite(moved) else round(moved, 3), None)

    def _decode(self, tree: Tree, rules: Rules, known: Known[float] | None) -> float:
        return number(tree) - rules.ahead


class Plain(Form[Any]):
    """A value that is JSON already, such as the details of an event."""

    def accepts(self, value: object) -> bool:
        return True

    def _encode(self, value: Any, rules: Rules, known: Known[Any] | None) -> Tree:
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, Mapping):
            return {str(key): self._encode(item, rules, None) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._encode(item, rules, None) for item in value]
        raise Malformed(f"not plain: {short(value)}")

    def _decode(self, tree: Tree, rules: Rules, known: Known[Any] | None) -> Any:
        return tree


class Choice(Form[Any]):
    """One of a few values: the members of an enumeration, the values of a Literal."""

    def __init__(self, values: tuple[Any, ...], by_tree: Mapping[Any, Any]) -> None:
        self._values, self._by_tree = values, by_tree
        self._trees = {value: tree for tree, value in by_tree.items()}

    def accepts(self, value: object) -> bool:
        return any(value is one or (type(value) is type(one) and value == one) for one in self._values)

    def _encode(self, value: Any, rules: Rules, known: Known[Any] | None) -> Tree:
        if not self.accepts(value):
            raise Malformed(f"none of the choices: {short(value)}")
        return self._trees[value]

    def _decode(self, tree: Tree, rules: Rules, known: Known[Any] | None) -> Any:
        if isinstance(tree, (list, dict)) or tree not in self._by_tree:
            raise Malformed(f"none of the choices: {short(tree)}")
        return self._by_tree[tree]


class Text(Form[T]):
    """A value that is sent as text, such as a path."""

    def __init__(self, kind: type[T], write: Callable[[T], str], read: Callable[[str], T]) -> None:
        self._kind, self._write, self._read = kind, write, read

    def accepts(self, value: object) -> bool:
        return isinstance(value, self._kind)

    def _encode(self, value: T, rules: Rules, known: Known[T] | None) -> Tree:
        return self._write(value)

    def _decode(self, tree: Tree, rules: Rules, known: Known[T] | None) -> T:
        if not isinstance(tree, str):
            raise Malformed(f"no text: {short(tree)}")
        return self._read(tree)


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
