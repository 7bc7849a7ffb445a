"""The search language for finding runs among many: words, conditions and days, all of which must match.

``resnet lr>=0.01 failed today -test``: a word is searched for in all names and labels of a run; a condition compares
an argument, a metric or a time; ``-`` before either means that it must not match; ``a|b`` matches one or the other.
"""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any

from ..model.checks import nearest
from ..model.snapshot import RunSnapshot, State
from ..present import NAN_LOSS, NOT_FINITE, badge, day, epoch_shown, legend
from .run_settings import settings_of

_TERM = re.compile(r'(?P<no>-(?!-)|)(?:--)?(?:(?P<key>[\w.][\w.\-/]*)(?P<sign>>=|<=|!=|=|>|<))?(?P<text>"[^"]*"?|\S*)')
_SPACED = re.compile(r"\s*(>=|<=|!=|=|>|<)[ \t]*(?=\S)")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
    "!=": operator.ne,
}
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_DAYS = {"today": 0, "yesterday": 1}
_TIMES = ("age", "took")
"""Keys whose values are seconds: since the start of a run, and from its start to its end."""
Value = str | float | None


@dataclass(frozen=True)
class Findable:
    """What a run can be found by."""

    words: tuple[str, ...]
    """Its names, labels and state: id, name, state, profile, device, tags, note."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """Its arguments and metrics, by folded name; None means not finite."""
    started: float | None = None
    ended: float | None = None
    seen: float = 0.0

    @cached_property
    def text(self) -> str:
        return "\n".join(self.words).casefold()


@dataclass(frozen=True, slots=True)
class Term:
    """One word or condition."""

    negated: bool
    key: str
    """Folded; empty for a word."""
    sign: str
    text: str
    """Case-folded."""

    def holds(self, run: Findable) -> bool:
        return self._found(run) != self.negated

    def _found(self, run: Findable) -> bool:
        if self.key:
            if self.sign in ("=", "!=") and f"{self.key}={self.text}" in run.text:  # a sweep puts settings into names
                return self.sign == "="
            return self._compares(_value(run, self.key))
        if self.text in _DAYS:
            wanted = day(run.seen - _DAYS[self.text] * _UNITS["d"])
            return wanted in [day(one) for one in (run.started, run.ended) if one is not None]
        return any(word in run.text for word in self.text.split("|") if word)

    def _compares(self, value: Value) -> bool:
        if value is None:
            return False
        wanted, number = _number(self.text, self.key in _TIMES), _number(str(value))
        if wanted is not None and number is not None:
            return _COMPARE[self.sign](number, wanted)
        return self.sign in ("=", "!=") and _COMPARE[self.sign](str(value).casefold(), self.text)


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query; an empty one matches everything."""

    terms: tuple[Term, ...] = ()
    mistake: str = ""
    """What is wrong with a condition (it may be half typed), which is then not applied."""

    def matches(self, run: Findable) -> bool:
        return all(term.holds(run) for term in self.terms)


def parse_query(text: str) -> Query:
    """Parse what was typed; this never fails, whatever the text."""
    terms, mistake = [], ""
    for found in _TERM.finditer(_SPACED.sub(r"\1", text)):
        key, sign, wanted = _folded(found["key"] or ""), found["sign"] or "", found["text"].strip('"').casefold()
        if not wanted:
            mistake = f"{key}{sign} compares with nothing yet" if key else mistake
        elif sign in (">=", "<=", ">", "<") and _number(wanted, key in _TIMES) is None:
            such = "a time such as 30m, 2h or 3d" if key in _TIMES else "a number"
            mistake = f"{key}{sign}{wanted}: {wanted!r} is not {such}"
        elif key == "state" and wanted not in (known := _states()):
            near = nearest(wanted, known)
            such = f"did you mean {near}?" if near else f"there are {', '.join(sorted(known))}"
            mistake = f"{key}{sign}{wanted}: there is no such state; {such}"
        else:
            terms.append(Term(bool(found["no"]), key, sign, wanted))
    return Query(tuple(terms), mistake)


@cache
def _states() -> frozenset[str]:
    """Return every word for a state, in the list and in ``--json``."""
    return frozenset({*(one.word.casefold() for one in legend()), *(str(state) for state in State)})


def findable(snapshot: RunSnapshot) -> Findable:
    """Return what a run in the list can be found by."""
    numbers, look = snapshot.numbers, badge(snapshot)
    settings = settings_of(snapshot)
    told = (snapshot.run, snapshot.name, str(snapshot.state), look.word, *map(settings.get, ("profile", "device")))
    live = ("live",) if snapshot.is_live else ()
    odd = () if numbers.loss_is_finite else ("nan", "loss=nan", NOT_FINITE)
    odd = (*odd, "training") if look is NAN_LOSS else odd
    measured = {name: getattr(numbers, name) for name in ("loss", "lr", "epochs", "step", "steps")}
    measured["epoch"] = epoch_shown(numbers)
    measured = {**{name: value for name, value in measured.items() if value is not None}, **numbers.metrics}
    # Settings take precedence over current values: a schedule takes every learning rate down to nothing.
    state = f"state={snapshot.state}"  # as in --json, besides the word that is shown
    called = {"run": snapshot.run, "id": snapshot.run, "name": snapshot.name, "state": look.word}
    values = {_folded(name): value for name, value in {**called, **measured, **settings}.items()}
    return Findable(
        words=tuple(word for word in (*told, state, *live, *odd, *snapshot.tags, snapshot.note) if word),
        values=values,
        started=snapshot.started,
        ended=snapshot.ended,
        seen=snapshot.seen or time.time(),
    )


def _value(run: Findable, key: str) -> Value:
    """Return the value of that name, or of the only name that ends with it: ``lr`` matches ``optim.lr``."""
    if key in _TIMES:
        until = run.seen if key == "age" or run.ended is None else run.ended
        return until - run.started if run.started is not None else None
    if key in run.values:
        return run.values[key]
    ends = [name for name in run.values if name.rpartition(".")[2] == key or name == f"{key}_loss"]
    return run.values[ends[0]] if len(ends) == 1 else None


def _number(text: str, is_time: bool = False) -> float | None:
    """Parse ``3e-4``, ``1_000`` or, for a time, also ``2h``; None if it is not a number."""
    unit = text[-1:] if is_time and text[-1:] in _UNITS else ""
    try:
        return float(text[: len(text) - len(unit)]) * _UNITS[unit]
    except ValueError:
        return None


@lru_cache(1 << 14)
def _folded(name: str) -> str:
    return name.strip("-").replace("-", "_").casefold()
