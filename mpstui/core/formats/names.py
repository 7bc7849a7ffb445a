"""What a printed name means: a counter, the training loss, the learning rate, the throughput, or some other value.

A name is split into lower-case words (at camel case, ``_``, ``/``, ``.``, ``-`` and spaces). Words that only say
*whose* value it is (train, avg, step ...) are set aside, and the rest must be known words (`vocabulary`). An unknown
word makes the name "some other value": nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import lru_cache
from itertools import pairwise

from .vocabulary import (
    AVERAGE_WORDS,
    BATCH_WORDS,
    BESIDE_A_COUNTER,
    CRITERION_WORDS,
    EPOCH_PLURALS,
    EPOCH_WORDS,
    EVAL_WORDS,
    FILLER_WORDS,
    GENERATION_WORDS,
    LOSS_WORDS,
    NEVER_A_LOSS,
    NEVER_A_RATE,
    NOT_THE_EPOCH,
    PIXEL_WORDS,
    PLAN_WORDS,
    RATE_PAIRS,
    RATE_WORDS,
    STEP_WORDS,
    TRAIN_WORDS,
    WHOLE_WORDS,
)


class Role(IntEnum):
    """The kind of value that a name stands for."""

    EPOCH = auto()
    EPOCHS = auto()
    STEP = auto()
    STEPS = auto()
    BATCH = auto()
    BATCHES = auto()
    LOSS = auto()
    LEARNING_RATE = auto()
    THROUGHPUT = auto()
    OTHER = auto()


class NameScope(IntEnum):
    """Whether a value is of training or of an evaluation, as far as the name says."""

    NONE = auto()
    TRAIN = auto()
    EVAL = auto()


PART = 5
"""From this rank on, a loss is one of several parts, or a word in a sentence."""


@dataclass(frozen=True, slots=True)
class Name:
    """A classified name. ``rank`` orders rival training losses: the lowest is charted."""

    role: Role
    scope: NameScope = NameScope.NONE
    rank: int = 0


_THROUGHPUT = re.compile(
    r"(?i)^(?:(?:train[_/ ]?)?"
    r"(?:tok|toks|tokens?|samples?|it|its|iters?|iterations?|updates?|steps?|env[_ ]steps?|img|imgs|images?|ex|"
    r"examples?|words?|frames?|batch(?:es)?|seqs?|sequences?)"
    r"(?:/s(?:ec)?|/second|[_ ]per[_ ]sec(?:ond)?|ps)(?:[_/ ].*)?|tps|wps|fps|throughput.*|ips|it/sec)$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPLIT = re.compile(r"[\s_/.\-:|()\[\]*#\"'`@%]+")
_FACTOR = re.compile(r" [*×] [\d.e+-]{1,16}\Z")
_SCRIPTS = re.compile(r"(?<=[\u2e80-\u9fff])(?=[A-Za-z])|(?<=[A-Za-z])(?=[\u2e80-\u9fff])")
_VOCABULARY = TRAIN_WORDS.union(
    *(EVAL_WORDS, EPOCH_WORDS, STEP_WORDS, BATCH_WORDS, PLAN_WORDS),
    *(LOSS_WORDS, AVERAGE_WORDS, FILLER_WORDS, NEVER_A_LOSS, RATE_WORDS),
)
# Chinese, Japanese and Korean names may have no space between words: the longest known words are cut out.
_UNSPACED = re.compile("|".join(sorted((w for w in _VOCABULARY if w[0] >= "\u2e80"), key=len, reverse=True)))
_PER_UNIT = re.compile(
    r"(?i)(?<![a-z])(?:bits|nats)(?:[_ -]per[_ -]| ?/ ?)(?:sub)?(?:dim(?:ension)?|pixel|char(?:acter)?|byte)s?(?![a-z])"
)
"""How many bits describe a number, pixel or letter of the data, one measure whatever its spelling: ``bits/dim``."""
_DIGITS = re.compile(r"\d+$")
_VALUE_OF_GROUP = re.compile(r"(?i)loss(?:es)?(?:/value(?![a-z])| \(value\))")
"""The loss of the value function in a group of losses (``loss/value_avg``)."""
_PAST = re.compile(r"(?i)trained|sampled|seen|done\Z")
"""In the name of a counter: ``num_steps_trained`` is no total."""
_ORDINALS = ("i", "id", "idx", "index", "no", "number", "nr", "progress")
_GLUED_LOSS = re.compile(r"(?!f|stop)[^\W\d_]{1,12}(?=loss\Z)")
_SO_MANY = ("数", "數", "수")
"""Words for "number of" that follow the thing counted."""
_OF_CLASSES = frozenset(("weighted", "category", "categorical", "sparse", "softmax"))
"""Words in front of the cross entropy over all classes."""
_TIMES = frozenset(("time", "seconds", "sec", "s", "ms"))
_JOINING = ("d", "de", "di", "do", "der", "des")
_MAX_NAME = 80
_EPOCH = sorted("epoch")
_RETRIEVAL = re.compile(
    r"(?:[Rr]ank|[RP])[-@][1-9]\d?|(?:[rph]|pass)@[1-9]\d{0,2}|CMC[-@ ]?[1-9]\d?|HR(?:@\d{1,3})?"
    r"|(?:[Mm]ean|[Mm]ed|Median)R|M[nd]R"
)
_MEAN_RANK = re.compile(r"(?i)(?:\A|[\s_/-])(?:mean|median)[\s_](?:reciprocal[\s_])?rank\Z")
DETECTION = re.compile(r"m?A[PR](?:\d\d)?[sml]?(?:@\d{1,4})?")
"""The name of an average precision or recall."""


def words_of(text: str) -> list[str]:
    """Return the lower-case words of a name: ``train/CrossEntropyLoss`` gives train, cross, entropy, loss."""
    text = _PER_UNIT.sub("bpd", text) if "ts" in text or "TS" in text else text
    text = _CAMEL.sub(" ", text.replace("IoU", "iou").replace("mAP", "map").replace("R^2", "r2")).lower()
    if not text.isascii():
        text = _UNSPACED.sub(r" \g<0> ", _SCRIPTS.sub(" ", text))
    parts: list[str] = []
    for word in filter(None, _SPLIT.split(text)):
        # ``closs`` and ``trainloss`` are two words each; ``stoploss`` is not the loss of a model.
        glued = _GLUED_LOSS.match(word) if word.endswith("loss") and word not in _VOCABULARY else None
        if word not in _VOCABULARY and (word.startswith("itera") or sorted(word) == _EPOCH):
            word = "iteration" if word[0] == "i" else "epoch"  # typos: ``iteraction``, ``eopch``
        parts += [word] if glued is None else [glued.group(), "loss"]
    return parts


def is_retrieval(text: str) -> bool:
    """Whether a name is a hit rate or rank in retrieval (``Rank-5``, ``MedR``), not of a process (``rank 5``)."""
    return _RETRIEVAL.fullmatch(text) is not None or _MEAN_RANK.search(text) is not None


@lru_cache(maxsize=4096)
def classify(text: str) -> Name:
    """Return the meaning of a name as printed."""
    text = _FACTOR.sub("", text.strip())
    if not text or len(text) > _MAX_NAME:
        return Name(Role.OTHER)
    words = words_of(text)
    scope = scope_of(words)
    own = [word for word in words if word not in TRAIN_WORDS and word not in EVAL_WORDS]
    if _THROUGHPUT.match(text):
        return Name(Role.THROUGHPUT, scope)
    if _VALUE_OF_GROUP.match(text):
        return Name(Role.LOSS, scope, PART)
    if scope is NameScope.NONE and (is_retrieval(text) or (text[0] == "A" and DETECTION.fullmatch(text))):
        return Name(Role.OTHER, NameScope.EVAL)
    loss = _loss(own, scope)
    loss = None if loss and loss.rank == PART and "_" in text and text.isupper() else loss  # ``LOSS_ALPHA``
    return _counter(own, text, scope) or _rate(words, scope) or loss or Name(Role.OTHER, scope)


def scope_of(words: list[str]) -> NameScope:
    """Return whether words mean training, an evaluation or neither; if both are named, an evaluation."""
    if any(word in EVAL_WORDS for word in words):
        return NameScope.EVAL
    return NameScope.TRAIN if any(word in TRAIN_WORDS for word in words) else NameScope.NONE


def _counter(words: list[str], text: str, scope: NameScope) -> Name | None:
    """Recognise an epoch, step or batch, or the total of one (``num_epochs``, ``Total optimization steps``)."""
    if not words or len(words) > 4:
        return None
    if words == ["i"] and text == "i":
        return Name(Role.BATCH, scope)
    if len(words) == 1 and words[0] in GENERATION_WORDS:
        return Name(Role.STEP, scope)
    if text.startswith("n/"):
        return None  # how many are collected at a time
    if len(words) == 3 and words[1:] == ["in", "epoch"] and words[0] in STEP_WORDS:
        return Name(Role.BATCH, scope)
    if words in (["batch", "step"], ["batch", "iter"]):
        return Name(Role.BATCH, scope)
    if words in (["num", "updates"], ["acc", "iter"], ["total", "t"]):
        return Name(Role.STEP, scope)  # counts of steps done in fairseq, OpenPCDet and TD3
    if words[0] in ("start", "begin") and "_" in text:
        return None  # ``START_EPOCH: 1`` is a setting, "Start epoch 1" a heading
    if words[-1] == "total":
        words = ["total", *words[:-1]]  # ``timesteps_total``
    if words[-1] in ("needed", "required") and not (PLAN_WORDS | EPOCH_PLURALS).isdisjoint(words):
        words = words[:-1]  # ``Total epochs needed``
    if len(words) == 3 and words[:2] == ["end", "of"]:
        words = words[2:]  # ``End of epoch 3 / 200``; an "end epoch" is a setting
    head, last = [word for word in words[:-1] if word not in _JOINING], words[-1]
    if last in _SO_MANY and head:
        head, last = ["num", *head[:-1]], head[-1]  # ``総ステップ数``, ``총 스텝 수``
    elif last == "num" or (len(words) == 2 and last in _ORDINALS and head[0] in BATCH_WORDS | STEP_WORDS | EPOCH_WORDS):
        head, last = (["num"] if last == "num" else []), words[0]
    elif words == ["batch", "count"]:
        head, last = [], "batch"
    current = [w for w in head if w not in BESIDE_A_COUNTER and not (w in STEP_WORDS and last in STEP_WORDS)]
    current = [] if current == ["of"] else current  # ``Training of Epoch 3``
    planned = bool(current) and all(word in PLAN_WORDS for word in current)
    if last == "epoch" and NOT_THE_EPOCH.isdisjoint(head) and not planned:
        return Name(Role.EPOCH, scope)  # of any stage: ``Distill Epoch 3``
    if current and not planned:
        return None
    for vocabulary, now, plan in (
        (EPOCH_WORDS, Role.EPOCH, Role.EPOCHS),
        (STEP_WORDS, Role.STEP, Role.STEPS),
        (BATCH_WORDS, Role.BATCH, Role.BATCHES),
    ):
        if last in vocabulary:
            planned = (planned or last in EPOCH_PLURALS) and not _PAST.search(text)
            if last == "ep" and (planned or (text != text.lower() and text not in ("Ep", "EP"))):
                return None  # ``n_ep`` is as often a number of episodes
            return Name(plan if planned else now, scope)
    return None


def _rate(words: list[str], scope: NameScope) -> Name | None:
    if words == ["lr0"]:
        return None  # the initial rate among a program's settings
    names = [_DIGITS.sub("", word) for word in words]
    bare = [word.removeprefix("d'") for word in words if word not in ("de", "di", "d")]
    if not LOSS_WORDS.isdisjoint(words):
        return None  # of the left and right image: ``LR loss``
    is_rate = "lr" in names or any(w in RATE_WORDS for w in words) or any(pair in RATE_PAIRS for pair in pairwise(bare))
    return Name(Role.LEARNING_RATE, scope) if is_rate and NEVER_A_RATE.isdisjoint(names) else None


def _loss(words: list[str], scope: NameScope) -> Name | None:
    """Recognise a loss; its rank is lowest for the whole: 0 plain or total, 1 average, 2 a criterion, 5 a part."""
    if words[:1] == ["l"] and len(words) > 1 and all(word in PIXEL_WORDS for word in words[1:]):
        return Name(Role.LOSS, scope, 0 if words[1:] == ["total"] else PART)
    if words == ["l"] and scope is not NameScope.NONE:
        return Name(Role.LOSS, scope)  # ``L_train``
    own = [word for word in words if word not in TRAIN_WORDS | EVAL_WORDS]
    if own[-2:] == ["cross", "entropy"] and _OF_CLASSES.issuperset(own[:-2]):
        return Name(Role.LOSS, scope, 2)
    if not any(word in LOSS_WORDS for word in words):
        return None
    if any(word in NEVER_A_LOSS for word in words) and not (
        _is_of_value_function(words)
        or (is_loss_of_durations(words) and NEVER_A_LOSS.intersection(words) == {"duration"})
    ):
        return None
    rest = [word for word in words if word not in LOSS_WORDS]
    if _is_of_value_function(words):
        return Name(Role.LOSS, scope, PART)
    unknown = [w for w in rest if w not in AVERAGE_WORDS and w not in FILLER_WORDS and w not in WHOLE_WORDS]
    if not unknown:
        rank = 0 if not rest or any(w in WHOLE_WORDS for w in rest) else 1
    elif all(word in CRITERION_WORDS for word in unknown) and ("entropy" not in unknown or "cross" in unknown):
        rank = 2
    else:
        rank = PART
    return Name(Role.LOSS, scope, rank)


def is_loss_of_durations(words: list[str]) -> bool:
    """Whether a name is a loss of predicted durations, in speech synthesis those of sounds: ``loss_duration``."""
    return "duration" in words and any(word in LOSS_WORDS for word in words) and _TIMES.isdisjoint(words)


def _is_of_value_function(words: list[str]) -> bool:
    """Whether a loss is that of a value function: ``value loss``, ``mean value function loss``, not ``loss value``."""
    return "value" in words and any(word in LOSS_WORDS for word in words[words.index("value") + 1 :])
