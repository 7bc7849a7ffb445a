"""Turn values of our own types into plain JSON and back, by their annotations: dataclasses, named tuples, their fields.

One rule serves every class. Fields that equal their defaults are left out, so that a value's size depends on its
content. Both directions accept what was encoded or decoded before: unchanged parts remain the same objects, which
makes small changes cheap to encode, to compare and to decode. Whatever does not fit its annotation is refused, with an
error that names the place.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ...wire.heartbeat import CheckpointNote, Heartbeat
from ...wire.records import Ack, Request
from ..model.snapshot import UNIX, Moment, SeriesView
from ..series.pyramid import debiased_average
from .forms import (
    SCALARS,
    Choice,
    Form,
    Known,
    Malformed,
    MomentForm,
    Plain,
    Rules,
    Scalar,
    Text,
    Tree,
    number,
    short,
    told,
)

DERIVED: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    SeriesView: {"smooth": lambda view: debiased_average(view.mean, view.smoothing)}
}
"""Fields that are not sent but computed from the others: they would change completely with each new point."""
MOMENTS: Mapping[type, frozenset[str]] = {one: frozenset({"time"}) for one in (Heartbeat, CheckpointNote, Ack, Request)}
"""Moments in records of ``wire``, whose annotations cannot say so: ``wire`` must not import ``core``."""
NAMED: dict[str, Any] = {}
"""Types that a module names in its annotations without importing them, by name."""
FIELD = "."
"""Prefix of field names. It distinguishes a record, in which the order of keys means nothing, from a table."""
_MISSING: Any = object()


@lru_cache(None)
def form_of(kind: Any) -> Form[Any]:
    """The form of a type, derived from the type alone.

    Raises:
        TypeError: its values cannot be encoded.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return MomentForm() if UNIX in arguments else form_of(arguments[0])
    if kind in SCALARS:
        return Scalar(kind)
    if kind in (Any, object):
        return Plain()
    if origin is Literal:
        return Choice(arguments, {one: one for one in arguments})
    if origin in (Union, UnionType):
        return _union(arguments)
    if isinstance(kind, type):
        if issubclass(kind, Enum):
            return Choice(tuple(kind), {one.value: one for one in kind})
        if issubclass(kind, Path):
            return Text(Path, str, Path)
        if kind is bytes:
            return Text(bytes, lambda data: data.decode("latin-1"), lambda text: text.encode("latin-1"))
        if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
            return _Record(kind)
    if origin is tuple and (len(arguments) != 2 or arguments[1] is not ...):
        return _Tuple(arguments)
    if origin in (tuple, list, set, frozenset) or (isinstance(origin, type) and issubclass(origin, Sequence)):
        of = form_of(arguments[0])
        made = origin if origin in (list, set, frozenset) else tuple
        return _Floats(of) if isinstance(of, Scalar) and of.kind is float and made is tuple else _Many(of, made)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _Table(form_of(arguments[0]), form_of(arguments[1]))
    raise TypeError(f"no rule says how {kind} travels")


def _union(arguments: tuple[Any, ...]) -> Form[Any]:
    some = tuple(one for one in arguments if one is not NoneType)
    forms = [form_of(one) for one in some]
    if len(forms) == 1:
        return _Optional(forms[0])
    plain = all(one in SCALARS for one in some)
    return _Union(tuple(forms), tagged=not plain, optional=len(some) < len(arguments))


class _Optional(Form[Any]):
    def __init__(self, of: Form[Any]) -> None:
        self._of = of

    def accepts(self, value: object) -> bool:
        return value is None or self._of.accepts(value)

    def _encode(self, value: Any, rules: Rules, known: Known[Any] | None) -> Tree:
        return None if value is None else self._of.encode(value, rules, _worth(known))

    def _decode(self, tree: Tree, rules: Rules, known: Known[Any] | None) -> Any:
        return None if tree is None else self._of.decode(tree, rules, _worth(known))


def _worth(known: Known[Any] | None) -> Known[Any] | None:
    return None if known is None or known.value is None else known


class _Union(Form[Any]):
    """One of several types: the first that fits. If JSON cannot tell them apart, its index is sent before the value."""

    def __init__(self, forms: tuple[Form[Any], ...], *, tagged: bool, optional: bool) -> None:
        # What is written as text precedes a float, and a bool precedes an int: each also counts as the latter.
        self._forms, self._tagged, self._optional = forms, tagged, optional

    def accepts(self, value: object) -> bool:
        return (self._optional and value is None) or any(form.accepts(value) for form in self._forms)

    def _encode(self, value: Any, rules: Rules, known: Known[Any] | None) -> Tree:
        if value is None and self._optional:
            return None
        exact = [type(value) is getattr(form, "kind", None) for form in self._forms]
        order = sorted(range(len(self._forms)), key=lambda place: not exact[place])
        place = next((place for place in order if self._forms[place].accepts(value)), None)
        if place is None:
            raise Malformed(f"of no type that is known here: {short(value)}")
        tree = self._forms[place].encode(value, rules)
        if self._tagged or (isinstance(value, float) and not math.isfinite(value)):
            return [place, tree]
        return float(value) if isinstance(value, float) else tree

    def _decode(self, tree: Tree, rules: Rules, known: Known[Any] | None) -> Any:
        if tree is None and self._optional:
            return None
        if self._tagged or isinstance(tree, list):
            if not (isinstance(tree, list) and len(tree) == 2 and tree[0] in range(len(self._forms))):
                raise Malformed(f"of no type that is known here: {short(tree)}")
            return self._forms[tree[0]].decode(tree[1], rules)
        if any(form.accepts(tree) for form in self._forms):
            return tree
        raise Malformed(f"of no type that is known here: {short(tree)}")


class _Record(Form[Any]):
    """A dataclass or a named tuple: its fields by name, except those that equal their defaults."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._derive = DERIVED.get(kind, {})
        self._forms: dict[str, Form[Any]] | None = None
        """Created when first needed: a class may contain itself."""
        if dataclasses.is_dataclass(kind):
            told_fields = [one for one in dataclasses.fields(kind) if one.init]
            self._names = tuple(one.name for one in told_fields)
            self._defaults = {FIELD + one.name: _default(one) for one in told_fields}
        else:
            self._names = kind._fields
            self._defaults = {FIELD + name: kind._field_defaults.get(name, _MISSING) for name in kind._fields}

    @property
    def _fields(self) -> Mapping[str, Form[Any]]:
        if self._forms is None:
            hints = get_type_hints(self._kind, localns=NAMED, include_extras=True)
            hints |= dict.fromkeys(MOMENTS.get(self._kind, ()), Moment | None)
            self._forms = {FIELD + name: form_of(hints[name]) for name in self._names if name not in self._derive}
        return self._forms

    def accepts(self, value: object) -> bool:
        return isinstance(value, self._kind)

    def _encode(self, value: Any, rules: Rules, known: Known[Any] | None) -> Tree:
        if not isinstance(value, self._kind):
            raise Malformed(f"no {self._kind.__name__}: {short(value)}")
        out: dict[str, Tree] = {}
        old = known.tree if known is not None else {}
        for name, form in self._fields.items():
            item, usual = getattr(value, name[1:]), self._defaults[name]
            if item is usual or (usual is not _MISSING and type(item) is type(usual) and item == usual):
                continue
            before = Known(getattr(known.value, name[1:]), old[name]) if known is not None and name in old else None
            try:
                out[name] = form.encode(item, rules, before)
            except Malformed as error:
                raise Malformed(f"{name[1:]}: {error}") from None
        return out

    def _decode(self, tree: Tree, rules: Rules, known: Known[Any] | None) -> Any:
        if not isinstance(tree, dict) or not tree.keys() <= self._fields.keys():
            raise Malformed(f"no {self._kind.__name__}: {short(tree)}")
        values: dict[str, Any] = {}
        old = known.tree if known is not None else {}
        for name, item in tree.items():
            before = Known(getattr(known.value, name[1:]), old[name]) if known is not None and name in old else None
            try:
                values[name[1:]] = self._fields[name].decode(item, rules, before)
            except Malformed as error:
                raise Malformed(f"{name[1:]}: {error}") from None
        missing = [name[1:] for name in self._fields if name not in tree and self._defaults[name] is _MISSING]
        if missing:
            raise Malformed(f"{self._kind.__name__} without {missing[0]}")
        if self._derive:
            bare = self._kind(**values, **dict.fromkeys(self._derive, ()))
            values |= {name: derive(bare) for name, derive in self._derive.items()}
        return self._kind(**values)


def _default(one: dataclasses.Field[Any]) -> Any:
    if one.default_factory is not dataclasses.MISSING:
        return one.default_factory()
    return _MISSING if one.default is dataclasses.MISSING else one.default


class _Tuple(Form[Any]):
    """A tuple of fixed length, each value of its own type."""

    def __init__(self, kinds: tuple[Any, ...]) -> None:
        self._forms = [form_of(one) for one in kinds]

    def accepts(self, value: object) -> bool:
        return isinstance(value, tuple) and len(value) == len(self._forms)

    def _encode(self, value: Any, rules: Rules, known: Known[Any] | None) -> Tree:
        return [form.encode(item, rules) for form, item in zip(self._forms, value, strict=True)]

    def _decode(self, tree: Tree, rules: Rules, known: Known[Any] | None) -> Any:
        if not isinstance(tree, list) or len(tree) != len(self._forms):
            raise Malformed(f"not {len(self._forms)} values: {short(tree)}")
        return tuple(form.decode(item, rules) for form, item in zip(self._forms, tree, strict=True))


class _Many(Form[Any]):
    """Any number of values of one type; a set is sent sorted, so that it is the same each time."""

    def __init__(self, of: Form[Any], made: Callable[[Any], Any]) -> None:
        self._of, self._made = of, made

    def accepts(self, value: object) -> bool:
        return isinstance(value, (list, tuple, set, frozenset))

    def _encode(self, value: Any, rules: Rules, known: Known[Any] | None) -> Tree:
        if isinstance(value, (set, frozenset)):
            return sorted(self._of.encode(item, rules) for item in value)
        old = _pairs(known)
        return [self._of.encode(item, rules, old(place)) for place, item in enumerate(value)]

    def _decode(self, tree: Tree, rules: Rules, known: Known[Any] | None) -> Any:
        if not isinstance(tree, list):
            raise Malformed(f"no list: {short(tree)}")
        old = _pairs(known) if self._made not in (set, frozenset) else _pairs(None)
        return self._made([self._of.decode(item, rules, old(place)) for place, item in enumerate(tree)])


def _pairs(known: Known[Any] | None) -> Callable[[int], Known[Any] | None]:
    if known is None or isinstance(known.value, (set, frozenset)):
        return lambda place: None
    values, trees = known.value, known.tree
    return lambda place: Known(values[place], trees[place]) if place < len(trees) else None


class _Floats(Form[Sequence[float]]):
    """A sequence of floats, whatever its class."""

    def __init__(self, of: Form[float]) -> None:
        self._of = of

    def accepts(self, value: object) -> bool:
        return isinstance(value, Sequence)

    def _encode(self, value: Sequence[float], rules: Rules, known: Known[Sequence[float]] | None) -> Tree:
        digits = rules.digits
        return [told(one, digits) for one in map(float, value)]

    def _decode(self, tree: Tree, rules: Rules, known: Known[Sequence[float]] | None) -> Sequence[float]:
        if not isinstance(tree, list):
            raise Malformed(f"no list: {short(tree)}")
        return tuple(map(float, tree)) if set(map(type, tree)) <= {int, float} else tuple(map(number, tree))


class _Table(Form[Mapping[Any, Any]]):
    def __init__(self, key: Form[Any], of: Form[Any]) -> None:
        self._key, self._of = key, of
        self._text_keys = isinstance(key, Scalar) and key.kind is str

    def accepts(self, value: object) -> bool:
        return isinstance(value, Mapping)

    def _encode(self, value: Mapping[Any, Any], rules: Rules, known: Known[Mapping[Any, Any]] | None) -> Tree:
        if not self._text_keys:
            return [[self._key.encode(key, rules), self._of.encode(item, rules)] for key, item in value.items()]
        before = known.value if known is not None else {}
        return {
            key: self._of.encode(item, rules, Known(before[key], known.tree[key]) if known and key in before else None)
            for key, item in value.items()
        }

    def _decode(self, tree: Tree, rules: Rules, known: Known[Mapping[Any, Any]] | None) -> Mapping[Any, Any]:
        if not self._text_keys:
            if not isinstance(tree, list) or any(not isinstance(item, list) or len(item) != 2 for item in tree):
                raise Malformed(f"no pairs: {short(tree)}")
            return {self._key.decode(key, rules): self._of.decode(item, rules) for key, item in tree}
        if not isinstance(tree, dict):
            raise Malformed(f"no table: {short(tree)}")
        before = known.value if known is not None else {}
        out: dict[Any, Any] = {}
        for key, item in tree.items():
            old = Known(before[key], known.tree[key]) if known is not None and key in before else None
            try:
                out[key] = self._of.decode(item, rules, old)
            except Malformed as error:
                raise Malformed(f"{key}: {error}") from None
        return out
