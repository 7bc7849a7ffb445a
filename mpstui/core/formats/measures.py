"""What a name alone says about its value: a measure of the model, a figure of the machine, a setting, or nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from .names import DETECTION, NameScope, Role, classify, is_loss_of_durations, is_retrieval, scope_of, words_of
from .vocabulary import (
    BATCH_WORDS,
    BESIDE_A_MEASURE,
    BEST_WORDS,
    COUNTED,
    DURATIONS,
    EARLIER_WORDS,
    EPOCH_WORDS,
    EVAL_WORDS,
    MACHINE_WORDS,
    MEASURES,
    NEVER_A_METRIC,
    NO_MEASURE,
    NO_NAME,
    NUMBERED,
    PLAIN_WORDS,
    RANKED,
    SETTING_WORDS,
    SPELLINGS,
    SPELT_OUT,
    STEP_WORDS,
    TEST_WORDS,
    TRAIN_WORDS,
)

_TOLD = ("cfg.", "CFG.", "config.", "args.", "opt.", "hparams.", "hyp.", "params.")
"""Prefixes of settings: ``cfg.max_len``."""
_PARAMETER = re.compile(r"\w\.(?:weight|bias)(?![a-z])")
"""A parameter of the model: ``encoder.rnn.weight_hh_l0``."""
_OF_DATA = TRAIN_WORDS | EVAL_WORDS
_ABBREVIATIONS = ("PER", "IS")
"""An error rate and the inception score, which are also common words in a sentence."""
_ABBREVIATED = re.compile(r"(?:\A|[\W_])EM\Z")
"""Exact match, the share of answers that are exactly right; in lower case it is a Portuguese word."""
_AT_A_RANK = re.compile(r"(?:\A|[\s_/])(?![CGNT]PU)[A-Z]{1,4}@\d{1,4}\Z")
"""Measures of the top results: ``H@10``, ``P@5``, ``HR@20``; ``GPU@0`` is a device."""
_OF_TIME = re.compile(r"\((?:ms|us|µs|s|secs?|seconds)\)\Z")
"""At the end of the name of a time: ``bwd(ms)``."""
_T_OF_WORK = re.compile(
    r"[tT]_(?:sampl|updat|eval|forward|backward|fwd|bwd|data|batch|load|iter|total|infer|fetch|optim|comm|rollout|env)[a-z]{0,8}"
)
"""The time that a kind of work takes: ``T_sample``, ``t_forward``; ``t_loss`` is a loss."""
_GROUP_OF_TIMES = re.compile(r"(?:time|timer|timing)s?(?:_\w{1,20})?/")
"""Prefixes of times: ``timing_s/reward``."""
_OF_TWO_WORDS = frozenset(
    {
        ("correlation", "coefficient"),
        ("exact", "match"),
        ("f", "measure"),
        ("med", "ae"),
        ("min", "ade"),
        ("min", "dcf"),
        ("min", "fde"),
        ("success", "rate"),
        ("win", "rate"),
    }
)
"""Measures whose words are no measures by themselves."""
_SO_FAR = ("so", "far")
"""By itself, ``far`` is the false acceptance rate."""
_SECONDS_PER = re.compile(r"(?i)(?:\A|[\s_(])(?:m?s|secs?|seconds)/[a-z]{1,8}\)?\Z")
"""At the end of the name of a time: ``s/b``, ``ms/batch``."""
_UNITS = (" in nats", " in bits")
_PER_SECOND = re.compile(r"(?i)(?:/|[ _]per[ _]?|Per)s(?:ec(?:ond)?)?\b")


@lru_cache(maxsize=4096)
def is_measure(text: str) -> bool:
    """Whether a name is a measure of a model (``test_acc``), not a setting (``acc_threshold``)."""
    words = [word for before, word in pairwise(["", *words_of(text)]) if word != "best" and (before, word) != _SO_FAR]
    own = [word for word in words if word not in _OF_DATA]
    ranked = bool(own) and own[0] in RANKED and (len(own) > 1 or own[0] not in NUMBERED)
    if text.startswith("rewards/"):
        return True  # one of several reward functions
    if is_retrieval(text) or text.endswith("PER") or DETECTION.fullmatch(text.rpartition(" ")[2]):
        return True
    if ranked and all(word.isdigit() for word in own[1:]):
        return True  # ``mAP@50``, ``Test hits@10``, ``top 5``, but not ``feature_map`` or ``top_k``
    measures = MEASURES.intersection(words) or MEASURES.intersection(map(_without_number, words))
    if not _OF_TWO_WORDS.isdisjoint(pairwise(words)) or words[-1:] == ["exact"]:
        return True
    if _ABBREVIATED.search(text) is not None or _AT_A_RANK.search(text) is not None:
        return True
    recorded = measures == {"rec"} and words[-1] in COUNTED  # ``rec_iter``: how often something is recorded
    return bool(measures) and not recorded and NO_MEASURE.isdisjoint(words)


def _without_number(word: str) -> str:
    """Return ``recall`` for ``recall5``."""
    return word.rstrip("0123456789")


@lru_cache(maxsize=4096)
def is_duration(text: str) -> bool:
    """Whether a name is the time that something takes."""
    words = words_of(text)
    return not DURATIONS.isdisjoint(words) and not is_loss_of_durations(words)


@lru_cache(maxsize=4096)
def quantity(text: str) -> tuple[str, str]:
    """Return the data that a name is of (``val``, ``test``, "" for training) and the quantity, in one spelling."""
    words = words_of(text)
    kind = "val" if scope_of(words) is NameScope.EVAL else ""
    own = [word for word in words if word not in TRAIN_WORDS and word not in EVAL_WORDS]
    if own and own[-1] in ("lr", "rate") and classify(text).role is Role.LEARNING_RATE:
        return kind, "lr"
    known = _in_one_spelling(own)
    bare = [word for word in known if word not in BESIDE_A_MEASURE] if {"loss", "acc"} & set(known) else known
    return "test" if kind and not TEST_WORDS.isdisjoint(words) else kind, " ".join(bare) or text.lower()


@lru_cache(maxsize=4096)
def is_never_a_metric(text: str) -> bool:
    """Whether a name is no metric whatever its values: a count, the time left, a seed, an option, half a sentence."""
    words = words_of(text)
    counted = bool(words) and words[-1] in COUNTED
    # Even with a measure in its name, a "final" count only repeats, and "params" are those of what computes it.
    counts = counted and (not is_measure(text) or "final" in words or words[-1] in ("params", "parameters"))
    unknown = not NEVER_A_METRIC.isdisjoint(words) and not is_retrieval(text)
    own = [word for word in words if word not in TRAIN_WORDS and word not in EVAL_WORDS]
    told = text.startswith(_TOLD)
    piece = bool(own) and all(word in NO_NAME for word in own) and not text.endswith(_ABBREVIATIONS)
    # ``The loss of this prediction is 0.69``; the loss of this epoch is a metric.
    said = any(pair == ("of", "this") for pair in pairwise(words)) and _REPEATED.isdisjoint(words)
    parameter = "." in text and _PARAMETER.search(text) is not None
    return counts or unknown or not words or piece or told or parameter or said


@lru_cache(maxsize=4096)
def is_count_of_evaluation(text: str) -> bool:
    """Whether a name is the epoch, step or data size of an evaluation: ``val/epoch``, ``val/num_samples``."""
    words = words_of(text)
    own = [word for word in words if word not in EVAL_WORDS]
    counted = bool(own) and own[-1] in _PLACES_AND_AMOUNTS
    return counted and len(own) < len(words) and all(word in _PLACES_AND_AMOUNTS | _NUMBER_OF for word in own)


_REPEATED = EPOCH_WORDS | STEP_WORDS | BATCH_WORDS | {"round", "run", "fold", "episode", "phase", "stage"}
_PLACES_AND_AMOUNTS = EPOCH_WORDS | STEP_WORDS | BATCH_WORDS | {"samples", "examples", "images", "tokens"}
_NUMBER_OF = {"num", "n", "number", "of", "count", "total", "global"}


@lru_cache(maxsize=4096)
def is_of_machine(text: str) -> bool:
    """Whether a name is a time, a speed or an amount of memory: it describes the machine, not the model."""
    words = words_of(text)
    if _GROUP_OF_TIMES.match(text) or _T_OF_WORK.fullmatch(text):
        return True
    if is_measure(text) or (words and words[-1] in MEASURES and words[-1] != "cost"):
        return False  # ``mem avg. loss`` is a loss, ``Time cost`` is a time
    told = classify(text).role is Role.THROUGHPUT or _PER_SECOND.search(text) is not None
    told = told or (_OF_TIME.search(text) or _SECONDS_PER.search(text)) is not None
    return told or is_duration(text) or not MACHINE_WORDS.isdisjoint(words)


@lru_cache(maxsize=4096)
def is_setting(text: str) -> bool:
    """Whether a word in a name makes it a setting: ``weight decay``, ``train batch size``."""
    return not (SETTING_WORDS | NEVER_A_METRIC).isdisjoint(words_of(text)) and not is_measure(text)


@lru_cache(maxsize=4096)
def is_plain_measure(text: str) -> bool:
    """Whether a name is a measure and nothing else: ``Test accuracy``, but not ``shipping cost``."""
    return is_measure(text) and all(
        word in PLAIN_WORDS or word.isdigit() or len(word) == 1 or word in RANKED for word in words_of(bare_name(text))
    )


def bare_name(text: str) -> str:
    """Return a name without the unit at its end: ``Log likelihood in nats``."""
    return text.removesuffix(_UNITS[0]).removesuffix(_UNITS[1])


@lru_cache(maxsize=4096)
def best_of(text: str) -> frozenset[str] | None:
    """Return the words of the quantity of a best value, ``acc`` for ``New best val acc``; None if it is not a best.

    Whose value it is does not matter: ``best accuracy of the student``. A previous value (``prev_loss``) is treated
    alike: it gets no curve of its own either.
    """
    words = words_of(text)
    if (BEST_WORDS | EARLIER_WORDS).isdisjoint(words):
        return None
    at = words.index("of") if "of" in words else len(words)
    return _bare(words[:at] if MEASURES.intersection(words[:at]) else words)


@lru_cache(maxsize=4096)
def bare_words(text: str) -> frozenset[str]:
    """Return the words of a quantity, without those for the data that it was measured on."""
    return _bare(words_of(text))


def _bare(words: list[str]) -> frozenset[str]:
    known = _in_one_spelling(words)
    beside = BEST_WORDS | EARLIER_WORDS | BESIDE_A_MEASURE | TRAIN_WORDS | EVAL_WORDS | {"score", "so", "far"}
    return frozenset(word for word in known if word not in beside)


def _in_one_spelling(words: list[str]) -> list[str]:
    """Unify spellings: ``acc1``, ``Acc@1`` and ``top-1 accuracy``, ``loss`` and ``cost``, ``loss_G`` and ``G loss``."""
    text = f" {' '.join(words)} "
    for spelt_out, short in SPELT_OUT:
        text = text.replace(f" {spelt_out} ", f" {short} ")
    parts = list[str]()
    for word in (SPELLINGS.get(word, word) for word in text.split()):
        base = _without_number(word)
        numbered = base != word and (base in MEASURES or base in RANKED)
        parts += (SPELLINGS.get(base, base), word[len(base) :]) if numbered else (word,)
    if parts[:1] == ["loss"]:
        parts = [*parts[1:], "loss"]
    if parts[-2:] in (["0", "5"], ["0", "75"]) and parts[0] in RANKED:
        parts[-2:] = [f"{parts[-1]:0<2}"]  # ``mAP@0.5`` is ``mAP50``
    if "top" in parts and "acc" in parts:
        ranks = [word for word in parts if word.isdigit()]
        return [word for word in parts if word != "top" and not word.isdigit()] + ranks
    return parts


def decimals_of(number: float) -> int:
    """Return how many decimals a number was printed with, apart from trailing zeros; 0 if it has an exponent."""
    decimals = repr(number).partition(".")[2]
    return len(decimals) if decimals.isdigit() else 0


def is_rounded(full: float, printed: float) -> bool:
    """Whether ``printed`` is ``full`` rounded, to enough decimals to rule out coincidence."""
    decimals = decimals_of(printed)
    return decimals > 1 and abs(full - printed) <= 0.51 * 10.0**-decimals


def is_same(now: float, before: float | None) -> bool:
    """Whether two values are the same, but for the number of decimals printed."""
    return before is not None and (is_rounded(now, before) or is_rounded(before, now))


def looks_measured(value: float) -> bool:
    """Whether a value has more digits than people type: settings are round numbers."""
    digits = f"{abs(value):.6g}".partition("e")[0].replace(".", "").strip("0")
    return not value.is_integer() and len(digits) >= _MEASURED_DIGITS


_MEASURED_DIGITS = 2
