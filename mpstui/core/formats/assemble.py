"""Turn the named numbers of a line into a reading: counters, the training loss and the rest.

All grammars of the ``key value`` kind share this part. It decides which lines are no records; `places` reads their
counters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping, Sequence

from .bare_values import bare_loss
from .evaluations import is_evaluation
from .line_values import SCOPE_WORDS, is_named, is_twin, metrics_of, of_one_evaluation, values_of
from .loss_series import or_zero
from .measures import bare_name, is_measure, is_never_a_metric, is_plain_measure
from .names import PART, NameScope, Role, words_of
from .notices import is_remark
from .pairs import Pair
from .places import COUNTING, PLANNED, batches_seen, read_counters
from .points import Counters, LineReading, Phase, series_name
from .settings import are_options, are_settings, arguments, is_member, planned_alone, planned_among
from .vocabulary import GENERATION_WORDS, LOSS_WORDS, RATE_WORDS, TRAIN_WORDS, word_set

_WORD = re.compile(r"[^\W\d_]{2,}")
_RULED = re.compile(r"\s{0,9}(?P<rule>[-=*#~])(?P=rule){1,99} (?P<within>\S.{0,60}\S) (?P=rule){2,99}\s{0,9}")
"""``---- mAP 0.0126 ----``"""
_LABEL = re.compile(r"[A-Z]\w{0,20}(?: [A-Z]\w{0,20}){1,4}")
"""``Meta Valid Accuracy``: a label has a capital on every word, a sentence does not."""
_ASIDE = re.compile(r"\[[^\[\]\d]{0,80}\]|\([^()\d]{0,80}\)|(?:\A|\|)[^|\d]{0,80}(?=\|)")
"""Words in brackets or in a cell of their own."""
_MAX_STRAY_WORDS = 9
"""The most words that name no number; a line with more is a sentence."""
_FEWEST_IN_A_ROW, _SIGN = 3, len(" / ")
_LONGEST_NAME = 4
"""The most words in the name of a metric that stands alone; "For debugging consider passing X=1" is advice."""
_WORDS_BESIDE_A_COUNTER = 4
_STEPS = (Role.STEP, Role.STEPS)
_RATES = RATE_WORDS | TRAIN_WORDS | {"learning", "rate"}
_TIMES = re.compile(
    r"(?i)\W{0,8}(?:times?|timers?|timings?|elapsed|latency)\s?\((?:ms|s|secs?|seconds|us)\)\s{0,3}[|:]"
)
"""The start of a line whose values are all times: ``time (ms) | forward: 350.9 | backward: 858.6``."""
_HEADED = re.compile(r"([A-Z][A-Za-z0-9]{1,11}) [Tt]raining\s?:")
"""One of several training loops: ``CF Training: Epoch 1 Iter 5 / 26``, then ``KG Training: Epoch 1 Iter 5 / 34``."""
_NO_LOOP = word_set("start begin model the network epoch pre post fine continue resume during end")


def assemble(grammar: str, line: str, pairs: Sequence[Pair], *, strict: bool = True) -> LineReading | None:
    """Return the reading of a line, or None if it is no record; if ``strict``, a sentence is not taken for one."""
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
    named = values_of(line, pairs, told, of_item=loss is None and _is_item(counters))
    in_a_row = strict and _are_in_a_row(named, pairs, line, stray_words)
    named = of_one_evaluation(named) if in_a_row and counters == Counters() else named
    says_more = in_a_row or _is_split(named) or any(_is_said(pair, line) for pair in named)
    if loss is None and not (says_more or _counts_alone(counters, stray_words) or is_evaluation(line, pairs)):
        return planned_among(grammar, line, pairs)
    speed = _first(named, Role.THROUGHPUT) or next((pair for pair in pairs if pair.is_rate), None)
    no_metrics = _TIMES.match(line) is not None or (not counters.positioned and are_settings(named))
    rate = _rate_of(named, counters)
    metrics, eval_metrics = metrics_of(() if options or (loss is None and no_metrics) else named)
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
        series=series_name(_told_apart(line, loss.key), counters) if loss else "",
        plan=is_plan and loss is None,
        steps_name=_steps_name(pairs, counters) if is_plan and loss is None else "",
        bare=loss is not None and loss is bare,
        certain=loss.scope is NameScope.TRAIN if loss is not None else _is_of_training(named, eval_metrics),
        of_samples="%)]" in line and _are_samples(line, counters),
        unnamed=_is_unnamed(pairs[0], counters),
    )


def _is_unnamed(first: Pair, counters: Counters) -> bool:
    """True if a line's only counter is an epoch that is not called one: ``[3/20] train_loss=0.5 val_loss=0.6``."""
    return not first.key and bool(first.total) and counters == Counters(first.counted, first.planned)


def _told_apart(line: str, name: str) -> str:
    """Return the loss's name, prefixed with the word for its loop (the ``CF`` of `_HEADED`) if there are several."""
    headed = _HEADED.match(line)
    return name if headed is None or headed[1].lower() in _NO_LOOP else f"{headed[1]} {name}"


def _steps_name(pairs: Sequence[Pair], counters: Counters) -> str:
    """Return what a line that states a plan calls its steps."""
    return next((pair.key for pair in pairs if pair.name.role in _STEPS and pair.counted == counters.steps), "")


def _counting(pairs: Sequence[Pair], told: Container[Pair]) -> Sequence[Pair]:
    """Return the pairs that may be counters; of the line's arguments (``told``), only planned totals."""
    return [pair for pair in pairs if pair not in told or pair.name.role in PLANNED]


def _evolves(pairs: Sequence[Pair]) -> bool:
    """True if a line reports a generation: its record is of the best individual."""
    return bool(pairs) and pairs[0].key.lower() in GENERATION_WORDS


def _counts_alone(now: Counters, stray_words: int) -> bool:
    """True if a line has counters and few other words; an epoch beside a step allows one word more."""
    two = now.epoch is not None and now.shown_step is not None
    return now != Counters() and stray_words <= _WORDS_BESIDE_A_COUNTER + two


def sums_up(pairs: Sequence[Pair]) -> bool:
    """True if a solver sums up its start and end: ``Iterations: 20, Initial cost: 3.5, Final cost: 1.25``."""
    if not any("nitial" in pair.key or "NITIAL" in pair.key for pair in pairs):
        return False
    known = [set(words_of(pair.key)) for pair in pairs if pair.marked and not LOSS_WORDS.isdisjoint(words_of(pair.key))]
    began = [words - {"initial"} for words in known if "initial" in words]
    return any("final" in words and words - {"final"} in began for words in known)


def _rate_of(named: Sequence[Pair], counters: Counters) -> Pair | None:
    """Return a line's learning rate, or None if it sets those of several groups: ``embed_lr:0.05 matrix_lr:0.04``."""
    rates = [pair for pair in named if pair.name.role is Role.LEARNING_RATE]
    plain = any(_RATES.issuperset(words_of(pair.key)) for pair in rates)
    if not counters.positioned and not plain and len({pair.measured for pair in rates}) > 1:
        return None
    return rates[0] if rates else None


def _is_sentence(line: str, pairs: Sequence[Pair], loss: Pair | None, stray_words: int) -> bool:
    """True if a line has too many words, or any at all beside a NaN or infinite loss: ``Loss is nan, stopping``."""
    if len(line) >= 40 and stray_words > _MAX_STRAY_WORDS + 2 * len(pairs):
        return True
    if loss is None or math.isfinite(loss.measured) or any(not one.key or one.name.role in COUNTING for one in pairs):
        return False
    return stray_words > sum(one.text[-1:].isalpha() for one in pairs)  # "nan" and "inf" count as words, not as keys


def _in_place(loss: Pair | None, pairs: Sequence[Pair], counters: Counters, *, strict: bool) -> Pair | None:
    """Return the loss, now that the counters are known: none in a fold's summary, maybe ``total`` beside a position."""
    if strict and not counters.positioned and any(pair.key.lower() == "fold" for pair in pairs):
        return None  # ``Fold 2: loss 0.5`` sums up epochs that had records of their own
    return _whole(pairs) if loss is None and (counters.positioned or not strict) else loss


def _is_item(now: Counters) -> bool:
    """True if a bare number is the only counter: ``i = 3, guess = 7`` may number list items as well as batches."""
    return now.epoch_step is not None and now == Counters(epoch_step=now.epoch_step)


def _is_of_training(named: Sequence[Pair], eval_metrics: Mapping[str, float]) -> bool:
    """True if a measure's name says that it is of training, which matters on lines without a main loss."""
    return not eval_metrics and any(pair.scope is NameScope.TRAIN and is_measure(pair.key) for pair in named)


def _is_said(pair: Pair, line: str) -> bool:
    """True if a sign joins a value to its short name.

    A measure that fills its line may have a long name, and needs no sign if it is plain, a label or between two rules.
    """
    known = pair.name.role is Role.LEARNING_RATE or is_measure(pair.key)
    if not pair.marked and known and "." in pair.text and (ruled := _RULED.fullmatch(line)) is not None:
        return ruled["within"] == f"{pair.key} {pair.text}{pair.unit}"
    alone = known and line.startswith(pair.key) and pair.end >= len(line) - 1
    if alone and "." in pair.text and line[-1:] != ":" and len(_WORD.findall(line)) == len(_WORD.findall(pair.key)):
        is_statement = pair.key == "return"  # in a program whose source is in its log
        said = (is_plain_measure(pair.key) and not is_statement) or _LABEL.fullmatch(pair.key) is not None
        return pair.marked or said or pair.name.role is Role.LEARNING_RATE
    return pair.marked and (bare_name(pair.key).count(" ") < _LONGEST_NAME or alone)


def _is_split(named: Sequence[Pair]) -> bool:
    """True if a line has a training and an evaluation value, named by just these words: ``train 4.2 val 4.3``."""
    bare = {pair.name.scope for pair in named if "." in pair.text and pair.key.lower() in SCOPE_WORDS}
    return bare == {NameScope.TRAIN, NameScope.EVAL}


def _are_in_a_row(named: Sequence[Pair], pairs: Sequence[Pair], line: str, stray_words: int) -> bool:
    """True if names and values alternate, with one sign between them: ``kl_loss 0.67 / prior_ent 1.92 / length 151``.

    A counter may be among them: ``Iter 25 | Test Loss 5.9 | NFE 14``. No sign is needed if the line holds only one-word
    names and their numbers, at least one of them a measure: ``Episode 3 reward -16.0 eps 0.99``. Other words may stand
    in brackets or in a cell of their own: ``[Test seq (all points)] | Loss 0.5 | MSE 0.4 | NLL 1.2``.
    """
    scopes = len({pair.said for pair in pairs} - {""})
    if stray_words > scopes and len(pairs) < _FEWEST_IN_A_ROW:
        return False
    if stray_words > scopes + sum(len(_WORD.findall(remark)) for remark in _ASIDE.findall(line)):
        return False
    measured = any("." in pair.text for pair in named)
    for row in (named, pairs):
        between = {line[pair.end : pair.end + _SIGN] for pair in row[:-1]}
        if len(row) >= _FEWEST_IN_A_ROW and len(between) == 1 and measured and not between.pop()[1].isalnum():
            return True
    known = len(named) > 1 and any("." in pair.text and is_measure(pair.key) for pair in named)
    return known and line.split() == [word for pair in pairs for word in (pair.key, f"{pair.text}{pair.unit}")]


def _are_samples(line: str, counters: Counters) -> bool:
    return or_zero(counters.epoch_steps) >= _FEWEST_SAMPLES and _SAMPLES.search(line) is not None


def training_loss(pairs: Sequence[Pair]) -> Pair | None:
    """Return the pair with the training loss: the first of the best rank, or None if rivals leave no main loss."""
    losses = [
        pair
        for pair in pairs
        if pair.name.role is Role.LOSS and pair.scope is not NameScope.EVAL and not (pair.total or pair.unit)
        if pair.marked or ((pair.name.rank < PART or "_" in pair.key) and is_named(pair))
    ]
    keys = {pair.key for pair in losses}
    losses = [pair for pair in losses if not is_twin(pair.key, keys)]
    best = min(losses, key=lambda pair: pair.name.rank, default=None)
    if best is None or best.name.rank < PART or len({pair.key for pair in losses}) == 1:
        return best
    # ``actor/loss`` is the whole of ``actor/pg_loss`` and ``actor/kl_loss``, unless another group has losses too.
    whole = [pair for pair in losses if pair.key.lower().endswith("/loss")]
    of_one_group = len(whole) == 1 and all(pair.key.startswith(whole[0].key[: -len("loss")]) for pair in losses)
    return whole[0] if of_one_group else None


def _whole(pairs: Sequence[Pair]) -> Pair | None:
    """Return the value called ``total`` on a line that has a position but no other main loss."""
    found = [
        p for p in pairs if p.marked and p.key.lower() in ("total", "tot") and "." in p.text and not (p.unit or p.total)
    ]
    return found[0] if len(found) == 1 and found[0].scope is not NameScope.EVAL else None


def _is_part(pair: Pair) -> bool:
    return pair.marked and pair.name.role is Role.LOSS and pair.scope is not NameScope.EVAL


_SAMPLES = re.compile(r"\[\s*\d{1,9}/ {0,8}\d{1,7}00 \(\s*\d{1,3}%\)\]")
"""``[640/60000 (1%)]``: samples, as in PyTorch's examples; a number of batches is rarely a round hundred."""
_FEWEST_SAMPLES = 1000


def _evaluated_loss(pairs: Sequence[Pair]) -> Pair | None:
    """Return the evaluation loss that makes a line a record: ``dev loss: 0.5, best: True`` is no remark.

    A leading measure does so too: ``psnr: 26.5  Best: 27.0 @ 5000 iter``.
    """
    first = next((pair for pair in pairs if pair.name.role not in COUNTING and pair.key), pairs[0])
    if (first.marked or first.said) and is_measure(first.key) and not first.total and "best" not in words_of(first.key):
        return first
    losses = (pair for pair in pairs if (pair.marked or pair.said) and pair.name.role is Role.LOSS)
    return next((pair for pair in losses if pair.scope is NameScope.EVAL), None)


def _best(grammar: str, pairs: Sequence[Pair]) -> LineReading | None:
    """Read the best value so far, which is a metric of its own: ``Best validation accuracy: 16.5 %``."""
    found = [pair for pair in pairs if pair.marked and "best" in words_of(pair.key) and not is_never_a_metric(pair.key)]
    found = found if any(is_measure(pair.key) for pair in found) else []
    metrics, eval_metrics = metrics_of(found)
    evaluates = Phase.TRAIN if metrics else Phase.EVAL
    return LineReading(grammar, phase=evaluates, metrics=metrics, eval_metrics=eval_metrics) if found else None


def _first(pairs: Sequence[Pair], role: Role) -> Pair | None:
    chosen = [p for p in pairs if p.name.role is role and p.name.scope is not NameScope.EVAL]
    if role is Role.LEARNING_RATE:
        chosen = [p for p in chosen if not p.total and (p.value or 0) < 1e3]
    return chosen[0] if chosen else None
