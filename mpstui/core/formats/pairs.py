"""Named numbers on a line, in any notation: ``loss: 0.5``, ``loss=0.5``, ``loss 0.5``, ``'loss': '0.5'``, ``[3/25]``.

The line is scanned once for numbers; the text between two numbers names the second. Every pattern is bounded, so the
cost is linear in the length of the line whatever it holds.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .labels import is_indexed, named, named_once, of_group, of_heading, of_row, of_symbol, part_of, told_apart
from .measures import is_measure, is_never_a_metric
from .names import Name, NameScope, Role, classify, words_of
from .namings import named_by
from .points import Number, parse_count, parse_number
from .scopes import Scope, scopes_of
from .side_by_side import NUMBER
from .spelling import respelt
from .vocabulary import EVAL_WORDS, NOT_THE_STEP

_SPECIAL = r"[-+]?(?:nan|NaN|NAN|inf|Inf|INF|infinity|Infinity)"
_RATE_UNIT = (
    r"[kKM]?\s?(?i:it|its|tok|toks|tokens?|samples?|steps?|img|imgs|images?|examples?|ex|words?|frames?|batch(?:es)?|seqs?|"
    r"sequences|updates|iters?|iterations)(?:/s(?:ec(?:ond)?)?| per sec(?:ond)?)(?:/[A-Za-z]{2,8})?+"
)
_IS_RATE = re.compile(_RATE_UNIT)
_THOUSANDS = {"k": 1e3, "K": 1e3, "M": 1e6}
_UNIT = (
    r"(?:%|ms/\w{1,8}|us/\w{1,8}|s/\w{1,8}|GiB|MiB|KiB|GB|MB|KB|TB|"
    r"dB|ms|us|µs|ns|sec|secs|seconds|min|mins|hrs?|it|x|st|nd|rd|th|[skKMBGmhdG])"
)


def _token(first: str, number: str) -> re.Pattern[str]:
    """Return the pattern of a number with its total and unit; ``first``: what it begins with, a cheap lookahead."""
    return re.compile(
        rf"(?=[{first}])(?<![\w.@/\\+\x2d])(?:"
        r"(?P<skip>\d{1,4}:\d{2}(?::\d{2})?(?:[.,]\d{1,9})?|\d{4}[-/]\d{2}[-/]\d{2}|\d{1,3}\.\d{1,3}\.\d[\w.]{0,20}|"
        r"0x[0-9a-fA-F]{1,16}|\d{1,4}(?:[dhDH]\d{1,2}[hm]|m\d{1,2}s|s\d{1,3}ms)(?:\d{1,2}[ms])?(?!\w))"
        rf"|(?P<number>{number})"
        rf"(?:(?P<times>[kKMB](?=\s?/\s?\d))?\s{{0,8}}(?:/|／|\b(?:of|out of|de|di|sur|von|из)\b)\s{{0,12}}"
        rf"(?P<total>\d{{1,3}}(?:,\d{{3}}){{1,6}}(?!,?\d)|\d{{1,30}}(?:\.0{{1,2}}|(?:\.\d{{1,3}})?[kKMB])?(?!\w|\.\d)))?"
        rf"(?P<unit>\s?%|\s?(?:{_RATE_UNIT}|(?:ms|us|µs|s|sec)/[a-z]{{2,8}})(?![\w/]|\s{{0,2}}[:=：＝])|"
        rf"{_UNIT}(?![\w])|/s(?:ec)?(?:/[a-z]{{2,8}})?(?![\w/])|\s(?:secs?|seconds|ms|minutes|hours?|hrs|[GMK]i?B)(?![\w.]|\s?[:=\d])|\ss(?=\s{{1,4}}(?:[\d|]|[A-Z][a-z])|[,;)]|\s{{0,4}}\Z)"
        rf"|\smins?(?=\s{{0,4}}(?:[,;)|]|\Z)))?"
        r")(?![\w@]|\.\d|:\d|/\d{1,12}(?!\d|\.\d)|-[A-Za-z]{3})"
    )


_TOKEN = _token(r"-+−.\dnNiI", rf"{NUMBER}|{_SPECIAL}")
_DIGITS_TOKEN = _token(r"-+−.\d", NUMBER)
_SPELT = re.compile(r"[nN][aA][nN]|[iI][nN][fF]")
_REACH = 100
_VALUE_BEHIND = re.compile(r"\s{1,8}[-+]?\.?\d")
_COUNTED = re.compile(r" [a-z]{2,20}s\b(?!\s{0,2}[:=]|\s-?[\d.])")
"""After a whole number: the things it counts."""
_DECIMALS_BEHIND = re.compile(r" {1,3}-?\d{1,12}\.\d")
_VALUES_BEHIND = re.compile(r":\s{1,4}[^\W\d][\w@ ]{0,40}[:=]\s{0,4}[-+]?\.?\d")
_VALUE_OF_NAME = re.compile(r"(?: [a-z]{3,12}\)|[)\]]?)\s{0,4}[:=：＝]\s{0,24}[-+]?\.?\d")
_LABELLED = re.compile(
    r"(?i)(?!best|last|max|min|per|every|warm|start|end|stop|save|eval|log|num|total|patience|decay)"
    r"[a-z][\w-]{1,20} (epoch|step|iter) \d"
)
_THINGS = re.compile(r"\s[^\W\d_]{3,20}\s?(?:\Z|[|,;).…])")
_SHARES = re.compile(r"(?i)\bacc|correct")
_VALUE_BESIDE = re.compile(r"/\s?[-+]?[\d.]")
_VALUES_BESIDE = re.compile(r"(?:/[-+]?\d{0,12}\.\d{1,20}(?:e[-+]?\d{1,3})?){2,12}(?![\w./])")
"""After a value: the values of other parts, ``PDE: 2.9e-03/2.6e-04/3.9e-04``."""
_MOST_PADDED = len(" (   ")
_ROUNDED = 0.006
"""Just more than the rounding error of a share with two decimals."""
_SHORTEST_RATIO = len("s/it")
_SPEEDS = ("speed", "rate", "velocity", "ips")
_MEASURED = (Role.OTHER, Role.LOSS)
_TWO_NAMES = re.compile(r"([^()]{2,40}) \(([^()]{2,20})\)")
_OF_SOMETHING = re.compile(r" of (?:the|an?|all|its|our|your|this|that|every)\b")
"""After a percentage that measures nothing: ``15% of the price``."""
_CURRENCIES = ("$", "€", "£")
_OF_TIME = ({"B", "D"}, {"T", "D"})
"""Names side by side that are the times of a batch and of its data; beside G, D is a discriminator."""
_ABBREVIATED = ("L", "l")
"""Short for a loss, after a word for training or an evaluation: ``Train(L=0.695 | A=0.497)``."""


class Pair(NamedTuple):
    """One number on a line, with the name in front of it (empty if there is none)."""

    key: str
    name: Name
    scope: NameScope
    said: str
    """The word on the line that gives the scope, if the name itself does not."""
    text: str
    total: str
    unit: str
    marked: bool
    """True if a sign (``:``, ``=``) joins name and value, False for ``loss 0.5``."""
    bracketed: bool
    """True if the number comes right after an opening bracket."""
    start: int
    end: int
    counts_things: bool = False
    """True for ``Generating 100 games``: the things counted follow the number and end that part of the line."""

    @property
    def value(self) -> Number | None:
        """The value as printed; a percentage is not converted (``81.2%`` is 81.2)."""
        return parse_number(self.text)

    @property
    def counted(self) -> Number | None:
        """The value as a counter (``1K`` is 1000)."""
        return parse_count(self.text, self.unit if self.unit in "kKMBG" else "")

    @property
    def is_rate(self) -> bool:
        """Whether the unit is a rate per second."""
        return len(self.unit) >= _SHORTEST_RATIO and _IS_RATE.match(self.unit) is not None

    @property
    def measured(self) -> float:
        """The value as a measurement: ``41k`` per second is 41,000; other units are not converted."""
        value = parse_number(self.text)
        if value is None:
            return math.nan
        # The M of a throughput in ``12.5MB`` belongs to the unit and is no multiplier.
        counts = self.is_rate or (self.name.role is Role.THROUGHPUT and self.unit in _THOUSANDS)
        return float(value) * _THOUSANDS.get(self.unit[:1], 1.0) if counts else float(value)

    @property
    def planned(self) -> Number | None:
        """The total: the 25 of ``3/25``."""
        suffix = self.total[-1:] if self.total[-1:] in "kKMB" else ""
        return parse_count(self.total.removesuffix(suffix), suffix) if self.total else None


def read_pairs(line: str) -> list[Pair]:
    """Return every number on ``line`` with its name and scope."""
    return pairs_of(respelt(line))


def pairs_of(line: str) -> list[Pair]:
    """Like `read_pairs`, for a line that has been through `respelt`: positions are those in that text."""
    scopes = scopes_of(line)
    pairs: list[Pair] = []
    end, part = 0, ""
    for match in (_TOKEN if _SPELT.search(line) else _DIGITS_TOKEN).finditer(line):
        if match["number"]:
            if line[match.start() - 1 : match.start()] in _CURRENCIES:
                end = match.end()
                continue  # a price
            if match["unit"] == "%" and _OF_SOMETHING.match(line, match.end()) is not None:
                end = match.end()
                continue
            pair = _pair(line, match, end, scopes)
            if part:
                pair, part = _of_part(pair, part), ""
            elif part := part_of(line, pair):
                end = match.end()
                continue
            elif is_indexed(line, pair):
                end, part = match.end(), f"{pair.key}[{pair.text}]"
                continue
            if line[pair.end : pair.end + 1] == "/" and (beside := _VALUES_BESIDE.match(line, pair.end)) is not None:
                end = beside.end()
                continue  # three or more values side by side have no common value
            if _is_in_name(line, pair) or _is_index(line, pair):
                end = match.end() if pair.marked else end
                continue
            if len(pair.unit) >= _SHORTEST_RATIO and _names_what_follows(line, pair):
                pair = pair._replace(unit="", end=match.end("number"))
                pairs.append(pair)
                end = pair.end
                continue
            if pair.name.role is Role.LOSS and not pair.unit and pair.text.isdigit() and _counts(line, pair):
                continue
            if pair.text[-1] in "nNfFyY" and not pair.marked and pair.name.role is Role.OTHER:
                continue  # the word "nan" or "inf" within a name: "number of nan iterations"
            pairs.append(pair)
        end = match.end()
    pairs = _without_counts_of(pairs) if "/" in line else pairs
    pairs = _of_the_whole(pairs) if scopes and "(" in line else pairs
    pairs = named_once(pairs) if len(scopes) > 1 else pairs
    pairs = _side_by_side(pairs) if "(" in line else pairs
    pairs = _times(pairs) if "D " in line else pairs
    pairs = of_symbol(line, pairs) if line[:2].strip("[").isupper() else pairs
    pairs = of_row(line, pairs) if len(pairs) > 1 or "#" in line else pairs
    pairs = of_group(line, pairs) if " --" in line else pairs
    pairs = of_heading(line, pairs) if "]: " in line and pairs and pairs[-1].key == "" else pairs
    names = [pair.key for pair in pairs if pair.key]
    return told_apart(line, pairs) if len(set(names)) < len(names) else pairs


def _of_part(pair: Pair, part: str) -> Pair:
    """Return a pair named after the part that it measures: ``class 3 accuracy``, ``loss[0]``."""
    if part.endswith("]"):
        return pair if pair.key else named(pair, part)._replace(marked=True, bracketed=False)
    return named(pair, f"{part} {pair.key}") if pair.key and pair.name.role in _MEASURED else pair


def _side_by_side(pairs: list[Pair]) -> list[Pair]:
    """Give two names to two values: ``Critic Accuracy (Loss): 0.5 (1.5)``."""
    found = list(pairs)
    for at, (pair, behind) in enumerate(pairwise(pairs)):
        both = _TWO_NAMES.fullmatch(pair.key) if pair.marked and pair.key.endswith(")") else None
        if both is None or not behind.bracketed or behind.key or behind.start - pair.end > _MOST_PADDED:
            continue
        first, second = both[1], both[2]
        if is_measure(first) and is_measure(second):
            whose = first.rpartition(" ")[0]
            found[at] = named(pair, first)
            found[at + 1] = named(behind, f"{whose} {second}".strip())._replace(marked=True, bracketed=False)
    return found


def _times(pairs: list[Pair]) -> list[Pair]:
    """Give a unit to ``B 0.12 (0.13) D 0.01 (0.02)``: the time of a batch, and of loading its data."""
    named = [at for at, pair in enumerate(pairs) if not pair.bracketed]
    for at, behind in pairwise(named):
        if {pairs[at].key, pairs[behind].key} in _OF_TIME and "." in pairs[at].text and "." in pairs[behind].text:
            pairs = [pair._replace(unit="s") if place in (at, behind) else pair for place, pair in enumerate(pairs)]
    return pairs


def _is_in_name(line: str, pair: Pair) -> bool:
    """Whether a number is part of the name of the next one: ``loss * 1000: 3.5``, ``top 5: 91.2``, ``class 3: 0.5``."""
    if not pair.key or pair.marked or pair.total or pair.unit or pair.name.role not in _MEASURED:
        return False
    if pair.name.role is Role.LOSS and "." in pair.text:
        return False  # ``loss 6.8 = 6.5 + 0.3``: the value and its summands
    return line[pair.start - 1] == "#" or _VALUE_OF_NAME.match(line, pair.end) is not None


def _counts(line: str, pair: Pair) -> bool:
    """Whether a whole number after the name of a loss is not it: ``Softmax loss: 3 vectors``, ``train loss 1 0.25``."""
    return _COUNTED.match(line, pair.end) is not None or (
        not pair.marked and _DECIMALS_BEHIND.match(line, pair.end) is not None
    )


def _is_index(line: str, pair: Pair) -> bool:
    """Whether a number is an index for the values after it: ``k=20: recall = 0.25``."""
    short = len(pair.key) == 1 and pair.marked and pair.name.role is Role.OTHER and pair.text.isdigit()
    return short and _VALUES_BEHIND.match(line, pair.end) is not None


def _without_counts_of(pairs: list[Pair]) -> list[Pair]:
    """Replace counts by their share: ``Accuracy: 970/1000 (97%)`` and ``97% (970/1000)`` are 97 %, ``970/1000=0.97``
    is 0.97."""
    kept: list[Pair] = []
    for pair in pairs:
        before = kept[-1] if kept else None
        if before is not None and before.total and before.name.role is Role.OTHER and _is_quotient(before, pair):
            kept[-1] = before._replace(text=pair.text, total="", unit=pair.unit, end=pair.end)
            continue
        beside = before is not None and pair.bracketed and not pair.key and pair.start - before.end <= 2
        if before is None or not beside or not before.key or before.bracketed or before.name.role not in _MEASURED:
            kept.append(pair)
        elif before.total and pair.unit == "%" and len(kept) == 1 and _is_place(before, pair, pairs):
            kept[-1] = before._replace(key="progress", name=classify("progress"), end=pair.end)
        elif before.total and pair.unit == "%":
            kept[-1] = before._replace(text=pair.text, total="", unit="%", end=pair.end)
        elif pair.total and before.unit == "%":
            kept[-1] = before._replace(end=pair.end)
        else:
            kept.append(pair)
    for index, pair in enumerate(kept):
        if pair.marked and pair.total and pair.name.role is Role.OTHER and _SHARES.search(pair.key):
            done, whole = pair.counted, pair.planned
            if done is not None and whole and done <= whole:  # ``Accuracy: 970/1000``
                kept[index] = pair._replace(text=f"{100 * done / whole:g}", total="", unit="%")
    return kept


def _is_quotient(count: Pair, pair: Pair) -> bool:
    """Whether a value without a name is the quotient of the count and total in front of it."""
    done, whole, said = count.counted, count.planned, pair.value
    if pair.key or pair.bracketed or pair.start - count.end > len("  ~  ") or done is None or not whole or said is None:
        return False
    return abs(done / whole - said / (100 if pair.unit == "%" else 1)) < _ROUNDED


def _is_place(pair: Pair, share: Pair, pairs: Sequence[Pair]) -> bool:
    """Whether a count with its percentage is a position: ``Process 100/3161(3.2%) average objf: -0.69``."""
    done, whole, said = pair.counted, pair.planned, share.value
    if is_measure(pair.key) or _SHARES.search(pair.key) or is_never_a_metric(pair.key) or pair.marked:
        return False
    if done is None or not whole or said is None or abs(100 * done / whole - said) > 1:
        return False
    return pair.scope is not NameScope.EVAL and any(p.marked and "." in p.text and not p.unit for p in pairs)


def _of_the_whole(pairs: list[Pair]) -> list[Pair]:
    """Keep the averages of an evaluation, not the newest batch: of ``Test: [6/8] Loss 0.05 (3.1)`` the 3.1."""
    kept: list[Pair] = []
    counted = any(pair.total for pair in pairs)
    for pair in pairs:
        before = kept[-1] if kept else None
        behind = before is not None and pair.bracketed and not pair.key and pair.start - before.end <= _MOST_PADDED
        if (
            counted
            and before is not None
            and behind
            and before.scope is NameScope.EVAL
            and before.name.role in _MEASURED
            and before.key
            and "." in before.text
            and "." in pair.text
            and not pair.total
        ):
            kept[-1] = before._replace(text=pair.text, end=pair.end)
        else:
            kept.append(pair)
    return kept


def _pair(line: str, match: re.Match[str], previous: int, scopes: list[Scope]) -> Pair:
    start, end = match.span()
    named = named_by(line[max(previous, start - _REACH) : start])
    if not previous and named.name.role is Role.OTHER and (labelled := _LABELLED.match(line)) is not None:
        if NOT_THE_STEP.isdisjoint(words_of(named.key)):  # ``adam epoch 5 ...``: a label in front of the epoch
            named = named._replace(key=labelled[1], name=classify(labelled[1]))
    elif (
        named.key.endswith(" of")
        and "." in match["number"]
        and is_measure(named.key)
        and not (match["total"] or "est" in named.key)
    ):
        named = named_by(f"{named.key[:-3]}: ")  # ``Inception score of 4.5``
    name, (text, total, unit) = named.name, match.group("number", "total", "unit")
    unit = unit or match["times"]
    if named.of_two and (other := _VALUE_BESIDE.match(line, end)) is not None:
        total = other.group()[1:]  # two losses side by side, ``G/D loss: 0.5/-0.2``: neither is the loss
    scope, said = name.scope, ""
    if scope is not NameScope.TRAIN and scopes and (before := bisect_left(scopes, (start,))):
        _, nearest, word, heads = scopes[before - 1]  # the nearest word in front of the number
        if scope is NameScope.EVAL:  # by the measure (``HR@10``) or by a word in the name
            said = word if nearest is scope and EVAL_WORDS.isdisjoint(words_of(named.key)) else ""
        elif heads or nearest is NameScope.TRAIN or name.role is not Role.OTHER or is_measure(named.key):
            scope, said = nearest, word
            if heads and named.key in _ABBREVIATED and "." in text:
                name = classify("loss")
    unit = unit.strip() if unit else ""
    things = not named.marked and text.isdigit() and not unit and _THINGS.match(line, end) is not None
    things = things and not is_measure(named.key)
    return Pair(
        named.key, name, scope, said, text, total or "", unit, named.marked, named.bracketed, start, end, things
    )


def _names_what_follows(line: str, pair: Pair) -> bool:
    """Whether the unit after a number is the name of the next: ``lr 0.1 tok/s 41000``, not ``| 41000 tok/s 12 ms``."""
    if line[pair.end - len(pair.unit) - 1] != " ":
        return False
    named = bool(pair.key) and pair.name.role is not Role.THROUGHPUT and not pair.key.lower().endswith(_SPEEDS)
    return named and _VALUE_BEHIND.match(line, pair.end) is not None
