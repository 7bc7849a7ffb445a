"""From the named numbers of a line to a reading: counters, the training loss, the rest.

This is the part that all grammars of the ``key value`` kind share. It knows what disqualifies a line; `places` reads
its counters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping, Sequence

from .bare_values import bare_loss
from .evaluations import is_evaluation
from .loss_series import or_zero
from .measures import is_measure, is_never_a_metric, is_plain_measure
from .names import PART, NameScope, Role, words_of
from .notices import is_remark
from .pairs import Pair
from .places import COUNTING, PLANNED, batches_seen, read_counters
from .points import Counters, LineReading, Phase, series_name
from .settings import are_options, are_settings, arguments, is_member, planned_alone, planned_among
from .vocabulary import EPISODES, EVAL_WORDS, GENERATION_WORDS, LOSS_WORDS, RATE_WORDS, TRAIN_WORDS

_WORD = re.compile(r"[^\W\d_]{2,}")
_RULED = re.compile(r"\s{0,9}(?P<rule>[-=*#~])(?P=rule){1,99} (?P<within>\S.{0,60}\S) (?P=rule){2,99}\s{0,9}")
"""``---- mAP 0.0126 ----``"""
_LABEL = re.compile(r"[A-Z]\w{0,20}(?: [A-Z]\w{0,20}){1,4}")
"""``Meta Valid Accuracy``: in a sentence not every word begins with a capital."""
_ASIDE = re.compile(r"\[[^\[\]\d]{0,80}\]|\([^()\d]{0,80}\)|(?:\A|\|)[^|\d]{0,80}(?=\|)")
"""Words in brackets, or in a cell of their own."""
_MAX_STRAY_WORDS = 9
"""Of a line that name none of its numbers; with more it is a sentence."""
_FEWEST_IN_A_ROW, _SIGN = 3, len(" / ")
_LONGEST_NAME = 4
"""Words in the name of a metric that stands by itself; "For debugging consider passing X=1" is advice."""
_WORDS_BESIDE_A_COUNTER = 4
_GOES_ON = (
    *(" of", " for", " on", " at", " in", " in top", " the", " to", " by", " from", " than", " least", " most"),
    *(" en", " em"),
)
"""A name that ends so, with no sign behind it, goes on in a sentence: "the loss of 3 engineers", "at least 2"."""
_STANDS_IN = ("at ", "in ", "on ", "for ", "from ", "after ", "since ", "until ")
"""A name that begins so, with no sign behind it, is where something was: "0.9 at thresh 23"."""
_STEPS = (Role.STEP, Role.STEPS)
_RATES = RATE_WORDS | TRAIN_WORDS | {"learning", "rate"}
_SCOPE_WORDS = TRAIN_WORDS | EVAL_WORDS
_VALUES = frozenset((Role.OTHER, Role.LOSS, Role.LEARNING_RATE, Role.THROUGHPUT))
_OF_MACHINE = frozenset(
    ("it", "ms", "us", "µs", "ns", "s", "sec", "secs", "seconds", "min", "mins", "minutes", "h", "hr")
)
_OF_MACHINE |= {"hrs", "hours", "GiB", "MiB", "KiB", "GB", "MB", "KB", "TB"}
_SECONDS = ("s", "sec", "secs", "seconds")
_BITS = frozenset(("8", "16", "32", "64"))
_TIMES = re.compile(
    r"(?i)\W{0,8}(?:times?|timers?|timings?|elapsed|latency)\s?\((?:ms|s|secs?|seconds|us)\)\s{0,3}[|:]"
)
"""In front of values that are all times: ``time (ms) | forward: 350.9 | backward: 858.6``."""
_CLOCK = re.compile(r"1[3-9]\d{8}(?:\.\d{1,9})?\Z")
"""Seconds since 1970, where no sign joins them to a name: ``trainer 1560936205.667 (main.py:25) loss: 0.5``."""
_IS_FILE = re.compile(r"(?i)\.(?:py|cpp|cc|cu|cuh|h|hpp|mm|metal|json|ya?ml|toml|txt|log|pth?|ckpt|safetensors|so)\Z")


def assemble(grammar: str, line: str, pairs: Sequence[Pair], *, strict: bool = True) -> LineReading | None:
    """The reading of a line, or None when the line is no record.

    ``strict``: it also has to look like a record, not like a sentence; a grammar that knows its lines turns that off.
    """
    told = arguments(line, pairs) if "(" in line and "=" in line else ()
    loss = training_loss([pair for pair in pairs if pair not in told] if told else pairs)
    stray_words = strict and len(_WORD.findall(line[:2000])) - sum(len(_WORD.findall(pair.key)) for pair in pairs)
    if strict and _is_sentence(line, pairs, loss, stray_words):
        return planned_among(grammar, line, pairs)
    if loss is None and is_member(line, pairs):
        return planned_alone(grammar, pairs[0])
    bare = bare_loss(line, pairs) if strict and loss is None else None
    if strict and not _evolves(pairs) and is_remark(line, loss or bare or _evaluated_loss(pairs)):
        return _best(grammar, pairs)
    options = loss is None and are_options(line, pairs)
    has_loss = loss is not None or (not options and any(map(_is_part, pairs)))
    counters, is_plan = read_counters(_counting(pairs, told), line, has_loss=has_loss)
    loss = _in_place(loss, pairs, counters, strict=strict) or (bare if counters.positioned else None)
    named = _values_of(line, pairs, told, of_item=loss is None and _is_item(counters))
    in_a_row = strict and _are_in_a_row(named, pairs, line, stray_words)
    named = _of_one_evaluation(named) if in_a_row and counters == Counters() else named
    says_more = in_a_row or _is_split(named) or any(_is_said(pair, line) for pair in named)
    if loss is None and not (says_more or _counts_alone(counters, stray_words) or is_evaluation(line, pairs)):
        return planned_among(grammar, line, pairs)
    speed = _first(named, Role.THROUGHPUT) or next((pair for pair in pairs if pair.is_rate), None)
    no_metrics = _TIMES.match(line) is not None or (not counters.positioned and are_settings(named))
    rate = _rate_of(named, counters)
    metrics, eval_metrics = _metrics_of(() if options or (loss is None and no_metrics) else named)
    evaluated = line.startswith("* ") or (bool(eval_metrics) and all(pair.scope is NameScope.EVAL for pair in named))
    return LineReading(
        grammar=grammar,
        counters=counters,
        phase=Phase.EVAL if evaluated and (loss is None or not counters.positioned) else Phase.TRAIN,
        under_way=batches_seen(pairs) if evaluated and loss is None else None,
        loss=None if loss is None else loss.measured,
        loss_name=loss.key if loss else "",
        learning_rate=None if rate is None else rate.measured,
        rate_name="" if rate is None else rate.key,
        throughput=speed.measured if speed else None,
        throughput_unit=(speed.unit if speed.is_rate else speed.key) if speed else "",
        metrics=metrics,
        eval_metrics=eval_metrics,
        series=series_name(loss.key, counters) if loss else "",
        plan=is_plan and loss is None,
        steps_name=_steps_name(pairs, counters) if is_plan and loss is None else "",
        bare=loss is not None and loss is bare,
        certain=loss.scope is NameScope.TRAIN if loss is not None else _is_of_training(named, eval_metrics),
        of_samples="%)]" in line and _are_samples(line, counters),
    )


def _steps_name(pairs: Sequence[Pair], counters: Counters) -> str:
    """What a line that plans calls its steps."""
    return next((pair.key for pair in pairs if pair.name.role in _STEPS and pair.counted == counters.steps), "")


def _counting(pairs: Sequence[Pair], told: Container[Pair]) -> Sequence[Pair]:
    """What may count on a line with the arguments ``told``: of these, what is planned."""
    return [pair for pair in pairs if pair not in told or pair.name.role in PLANNED]


def _evolves(pairs: Sequence[Pair]) -> bool:
    """Whether a line is of a generation, whose record is of the best in it."""
    return bool(pairs) and pairs[0].key.lower() in GENERATION_WORDS


def _counts_alone(now: Counters, stray_words: int) -> bool:
    """Whether a line has counters and hardly a word beside them; two counters may have one more."""
    two = now.epoch is not None and now.shown_step is not None
    return now != Counters() and stray_words <= _WORDS_BESIDE_A_COUNTER + two


def sums_up(pairs: Sequence[Pair]) -> bool:
    """Whether a solver tells with what it began and ended: ``Iterations: 20, Initial cost: 3.5, Final cost: 1.25``."""
    known = [set(words_of(pair.key)) for pair in pairs if pair.marked and not LOSS_WORDS.isdisjoint(words_of(pair.key))]
    began = [words - {"initial"} for words in known if "initial" in words]
    return any("final" in words and words - {"final"} in began for words in known)


def _rate_of(named: Sequence[Pair], counters: Counters) -> Pair | None:
    """The learning rate of a line; of settings for several groups, ``embed_lr:0.05 matrix_lr:0.04``, none is that."""
    rates = [pair for pair in named if pair.name.role is Role.LEARNING_RATE]
    plain = any(_RATES.issuperset(words_of(pair.key)) for pair in rates)
    if not counters.positioned and not plain and len({pair.measured for pair in rates}) > 1:
        return None
    return rates[0] if rates else None


def _is_sentence(line: str, pairs: Sequence[Pair], loss: Pair | None, stray_words: int) -> bool:
    """Whether a line has more words than a record, or any beside a broken loss: ``Loss is nan, stopping training``."""
    if len(line) >= 40 and stray_words > _MAX_STRAY_WORDS + 2 * len(pairs):
        return True
    if loss is None or math.isfinite(loss.measured) or any(not one.key or one.name.role in COUNTING for one in pairs):
        return False
    return stray_words > sum(one.text[-1:].isalpha() for one in pairs)  # "nan" and "inf" are no keys, and words too


def _in_place(loss: Pair | None, pairs: Sequence[Pair], counters: Counters, *, strict: bool) -> Pair | None:
    """The loss of a line with these counters: what sums up a fold is none, a total beside a place may be one."""
    if strict and not counters.positioned and any(pair.key.lower() == "fold" for pair in pairs):
        return None  # ``Fold 2: loss 0.5``: the epochs of it have told their own
    return _whole(pairs) if loss is None and (counters.positioned or not strict) else loss


def _values_of(line: str, pairs: Sequence[Pair], told: Container[Pair], *, of_item: bool) -> list[Pair]:
    """What a line measures, by name; ``told`` are the arguments on it, ``of_item`` says that it lists one of many."""
    return [
        pair
        for at, pair in enumerate(pairs)
        if pair.key and pair.name.role in _VALUES and pair not in told and not _opens_list(pairs[at : at + 4])
        if not of_item or "." in pair.text or is_measure(pair.key)
        if not (pair.bracketed and pair.marked and _goes_on_below(line, pair))
        if pair.bracketed or not _counts_a_phase(pair)
    ]


def _goes_on_below(line: str, pair: Pair) -> bool:
    """Whether a value is the first of a list or a matrix that is printed over several lines: ``grad = [[ 0.25]``."""
    behind = line[pair.end :]
    opened = line[: pair.start].rstrip()
    return opened.endswith("[[") and behind.count("]") - behind.count("[") < len(opened) - len(opened.rstrip("["))


def _is_item(now: Counters) -> bool:
    """Whether a bare number is all that a line counts: ``i = 3, guess = 7`` is one of a list as well as of batches."""
    return now.epoch_step is not None and now == Counters(epoch_step=now.epoch_step)


def _is_of_training(named: Sequence[Pair], eval_metrics: Mapping[str, float]) -> bool:
    """Whether the names of measures say that they are of training: of several losses none is the loss."""
    return not eval_metrics and any(pair.scope is NameScope.TRAIN and is_measure(pair.key) for pair in named)


def _is_said(pair: Pair, line: str) -> bool:
    """Whether a sign joins a value to its short name; that of a measure which is all of the line may be long, and needs
    no sign if it is plain, a label or between two rules."""
    known = pair.name.role is Role.LEARNING_RATE or is_measure(pair.key)
    if not pair.marked and known and "." in pair.text and (ruled := _RULED.fullmatch(line)) is not None:
        return ruled["within"] == f"{pair.key} {pair.text}{pair.unit}"
    alone = known and line.startswith(pair.key) and pair.end >= len(line) - 1
    if alone and "." in pair.text and line[-1:] != ":" and len(_WORD.findall(line)) == len(_WORD.findall(pair.key)):
        is_statement = pair.key == "return"  # of a program whose source stands in its log
        said = (is_plain_measure(pair.key) and not is_statement) or _LABEL.fullmatch(pair.key) is not None
        return pair.marked or said or pair.name.role is Role.LEARNING_RATE
    return pair.marked and (pair.key.count(" ") < _LONGEST_NAME or alone)


def _is_split(named: Sequence[Pair]) -> bool:
    """Whether a line has a value of training and one of an evaluation, by these words alone: ``train 4.2 val 4.3``."""
    bare = {pair.name.scope for pair in named if "." in pair.text and pair.key.lower() in _SCOPE_WORDS}
    return bare == {NameScope.TRAIN, NameScope.EVAL}


def _are_in_a_row(named: Sequence[Pair], pairs: Sequence[Pair], line: str, stray_words: int) -> bool:
    """Whether names and values alternate with one sign between them: ``kl_loss 0.67 / prior_ent 1.92 / length 151``.

    A counter may be one of them, ``Iter 25 | Test Loss 5.9 | NFE 14``. No sign is needed where the line is nothing but
    names of one word and their numbers, one of them that of a measure: ``Episode 3 reward -16.0 eps 0.99``. Other words
    stand in brackets or in a cell of their own: ``[Test seq (all points)] | Loss 0.5 | MSE 0.4 | NLL 1.2``.
    """
    scopes = len({pair.said for pair in pairs} - {""})
    if stray_words > scopes:
        stray_words -= sum(len(_WORD.findall(remark)) for remark in _ASIDE.findall(line))
    if stray_words > scopes:
        return False
    measured = any("." in pair.text for pair in named)
    for row in (named, pairs):
        between = {line[pair.end : pair.end + _SIGN] for pair in row[:-1]}
        if len(row) >= _FEWEST_IN_A_ROW and len(between) == 1 and measured and not between.pop()[1].isalnum():
            return True
    known = len(named) > 1 and any("." in pair.text and is_measure(pair.key) for pair in named)
    return known and line.split() == [word for pair in pairs for word in (pair.key, f"{pair.text}{pair.unit}")]


def _of_one_evaluation(named: list[Pair]) -> list[Pair]:
    """Where a line without a place has measures of one evaluation alone, what else it has is of that as well:
    ``| End of training | test loss 49.0 | n100 0.40 |``."""
    measures = [pair for pair in named if is_measure(pair.key)]
    words = {word for pair in measures for word in words_of(pair.key) if word in EVAL_WORDS}
    if len(words) != 1 or any(pair.scope is not NameScope.EVAL for pair in measures):
        return named
    unclaimed = (pair.scope is NameScope.NONE and pair.name.role is Role.OTHER for pair in named)
    said = words.pop()
    return [
        pair._replace(scope=NameScope.EVAL, said=said) if free else pair
        for pair, free in zip(named, unclaimed, strict=True)
    ]


def _are_samples(line: str, counters: Counters) -> bool:
    return or_zero(counters.epoch_steps) >= _FEWEST_SAMPLES and _SAMPLES.search(line) is not None


_SHORT = {"evaluating": "val", "validating": "val", "testing": "test"}


def _metrics_of(named: Sequence[Pair]) -> tuple[dict[str, float], dict[str, float]]:
    """The values of training and those of an evaluation; ``v_loss`` beside ``loss`` is one of an evaluation."""
    metrics = {p.key: p.measured for p in named if _is_named(p) and not _of_evaluation(p)}
    eval_metrics = {
        f"{_SHORT.get(p.said.lower(), p.said)} {p.key}".strip(): p.measured
        for p in named
        if _is_named(p) and _of_evaluation(p)
    }
    twins = [name for name in metrics if name.lower().startswith("v_")]
    if not any(name[2:] in metrics for name in twins):
        twins = [name for name in metrics if _is_twin(name, metrics)]
    eval_metrics.update((name, metrics.pop(name)) for name in twins)
    return metrics, eval_metrics


def _is_twin(name: str, names: Container[str]) -> bool:
    """Whether a name is that of an evaluation, by that of training beside it: ``vloss`` with ``loss`` or ``tloss``."""
    return name[:1] in ("v", "V") and (name[1:] in names or f"{_TRAINED[name[0]]}{name[1:]}" in names)


_TRAINED = {"v": "t", "V": "T"}
_LONGEST_VALUES = 80
"""Characters of three values of a list, with all their decimals."""


def _opens_list(pairs: Sequence[Pair]) -> bool:
    """Whether a value is the first of many (``IoU: 42.6 0.0 11.5 3.2``, ``[0.2 0.3 0.4]``), of a class or a shape."""
    rest = pairs[1:]
    if rest and _is_range(pairs[0], rest[0]):
        return True
    if rest and pairs[0].bracketed and pairs[0].text.isdigit() and rest[0].text.isdigit() and not rest[0].key:
        return rest[0].start - pairs[0].end <= len(", ")  # ``'output': (16, 8, 400)``, ``Conv2d(64, 64, ..``
    fewest = 2 if pairs[0].bracketed and pairs[0].marked else 3
    rest = rest[:fewest]
    unit = pairs[0].unit
    bare = len(rest) == fewest and not any(p.key or p.bracketed or p.total or p.unit not in ("", unit) for p in rest)
    return bare and pairs[0].name.role is Role.OTHER and rest[-1].end - pairs[0].end <= _LONGEST_VALUES


def _is_range(first: Pair, second: Pair) -> bool:
    """Whether two values stand in one pair of brackets: ``Pred range: [-2.7, 3.1]``."""
    unknown = first.name.role is Role.OTHER and not is_measure(first.key)
    beside = first.bracketed and first.marked and not (second.key or second.bracketed or first.total or second.total)
    return unknown and beside and second.start - first.end <= len(", ")


def _is_named(pair: Pair) -> bool:
    """Whether what stands in front of a value is its name, not a sentence that goes on: "finished in 12 s".

    A count out of a count (``Correct: 970/1000``) is nobody's value, two losses beside each other are; the number of an
    episode says that the values beside it are of training.
    """
    counts = pair.total and pair.name.role is Role.OTHER and pair.key.lower() not in EPISODES
    if pair.text in _BITS and not pair.unit and words_of(pair.key)[-1:] == ["precision"]:
        return False  # of numbers in the machine: ``precision: 16``
    if counts or _IS_FILE.search(pair.key) or (pair.unit and pair.key.lower() == "rate"):
        return False
    if pair.name.role is Role.OTHER and (pair.unit in _OF_MACHINE or pair.is_rate):
        return False  # a time, an amount of memory, a speed
    if (not pair.marked and _CLOCK.match(pair.text)) or _counts_a_phase(pair):
        return False
    if pair.name.role is Role.LOSS and pair.unit in _SECONDS:
        return False  # ``Cost: 715.7 sec``
    key = pair.key.lower()
    if key == "total" and pair.text.isdigit():
        return False  # ``17079 triplets (total: 22056)``
    if key.endswith(" to") and key.count(" ") > 1:
        return False  # ``setting loss scale to: 64.0``
    return pair.marked or not (key.endswith(_GOES_ON) or key.startswith(_STANDS_IN) or pair.counts_things)


def _counts_a_phase(pair: Pair) -> bool:
    """``Training: 720 samples``, ``Training [2][ 5/23]``: a whole number behind the phase alone is no measure of it."""
    counts = pair.text.replace(",", "").isdigit() and not pair.total and pair.unit != "%"
    return counts and bool(pair.key) and (_SCOPE_WORDS | {"set"}).issuperset(words_of(pair.key))


def _of_evaluation(pair: Pair) -> bool:
    """Whether a value belongs to an evaluation; a rate behind "val loss" does not, unless its own name says so."""
    return pair.scope is NameScope.EVAL and (
        pair.name.scope is NameScope.EVAL or pair.name.role in (Role.OTHER, Role.LOSS)
    )


def training_loss(pairs: Sequence[Pair]) -> Pair | None:
    """The pair that is the training loss: the first of the best rank; None when rivals leave no main one."""
    losses = [
        pair
        for pair in pairs
        if pair.name.role is Role.LOSS and pair.scope is not NameScope.EVAL and not (pair.total or pair.unit)
        if pair.marked or ((pair.name.rank < PART or "_" in pair.key) and _is_named(pair))
    ]
    keys = {pair.key for pair in losses}
    losses = [pair for pair in losses if not _is_twin(pair.key, keys)]
    best = min(losses, key=lambda pair: pair.name.rank, default=None)
    if best is None or best.name.rank < PART or len({pair.key for pair in losses}) == 1:
        return best
    # ``actor/loss`` among ``actor/pg_loss`` and ``actor/kl_loss`` is their whole, where no other group has a loss.
    whole = [pair for pair in losses if pair.key.lower().endswith("/loss")]
    of_one_group = len(whole) == 1 and all(pair.key.startswith(whole[0].key[: -len("loss")]) for pair in losses)
    return whole[0] if of_one_group else None


def _whole(pairs: Sequence[Pair]) -> Pair | None:
    """The loss of a line with a place that calls it ``total`` and nothing else a loss that stands for all."""
    found = [
        p for p in pairs if p.marked and p.key.lower() in ("total", "tot") and "." in p.text and not (p.unit or p.total)
    ]
    return found[0] if len(found) == 1 and found[0].scope is not NameScope.EVAL else None


def _is_part(pair: Pair) -> bool:
    return pair.marked and pair.name.role is Role.LOSS and pair.scope is not NameScope.EVAL


_SAMPLES = re.compile(r"\[\s*\d{1,9}/ {0,8}\d{1,7}00 \(\s*\d{1,3}%\)\]")
"""``[640/60000 (1%)]``: samples, as the examples of PyTorch count them; of batches there are rarely hundreds even."""
_FEWEST_SAMPLES = 1000


def _evaluated_loss(pairs: Sequence[Pair]) -> Pair | None:
    """The loss of an evaluation that a line begins with: ``dev loss: 0.5, best: True`` is no remark.

    A measure at its beginning is as good: ``psnr: 26.5  Best: 27.0 @ 5000 iter``.
    """
    first = next((pair for pair in pairs if pair.name.role not in COUNTING and pair.key), pairs[0])
    if (first.marked or first.said) and is_measure(first.key) and not first.total and "best" not in words_of(first.key):
        return first
    losses = (pair for pair in pairs if (pair.marked or pair.said) and pair.name.role is Role.LOSS)
    return next((pair for pair in losses if pair.scope is NameScope.EVAL), None)


def _best(grammar: str, pairs: Sequence[Pair]) -> LineReading | None:
    """The best value so far, which is a metric of its own: ``Best validation accuracy: 16.5 %``."""
    found = [pair for pair in pairs if pair.marked and "best" in words_of(pair.key) and not is_never_a_metric(pair.key)]
    found = found if any(is_measure(pair.key) for pair in found) else []
    metrics, eval_metrics = _metrics_of(found)
    evaluates = Phase.TRAIN if metrics else Phase.EVAL
    return LineReading(grammar, phase=evaluates, metrics=metrics, eval_metrics=eval_metrics) if found else None


def _first(pairs: Sequence[Pair], role: Role) -> Pair | None:
    chosen = [p for p in pairs if p.name.role is role and p.name.scope is not NameScope.EVAL]
    if role is Role.LEARNING_RATE:
        chosen = [p for p in chosen if not p.total and (p.value or 0) < 1e3]
    return chosen[0] if chosen else None
