"""The position of the training from the counters on one line: ``Epoch [1][50/930]``, ``[1/25][10/1583]``,
``[1,  2000]``, ``step 14/20``, ``iter: 19``, ``Completed 340/5000 steps``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from .loss_series import first_known, or_zero
from .measures import is_measure
from .names import NameScope, Role, words_of
from .pairs import Pair
from .points import Counters, Number
from .vocabulary import (
    BATCH_WORDS,
    EPOCH_PLURALS,
    EPOCH_WORDS,
    EVAL_WORDS,
    GENERATION_WORDS,
    NOT_THE_STEP,
    STEP_WORDS,
    TRAIN_WORDS,
)

COUNTING = frozenset((Role.EPOCH, Role.EPOCHS, Role.STEP, Role.STEPS, Role.BATCH))
"""The roles of counters and totals."""
PLANNED = frozenset((Role.EPOCHS, Role.STEPS))
"""The roles of totals."""
_MAY_COUNT = (Role.OTHER, Role.STEP, Role.BATCH)
_PADDED_COUNTER = 12
"""The last column at which a counter in brackets may open a line: ``[     500] loss 0.5``."""
_OPENED = len("[  ")
_MOST_EPOCHS = 10_000
"""An unnamed counter with at least this total counts steps, even beside values of an evaluation."""
_PLURALS = (
    "steps",
    "iters",
    "itrs",
    "iterations",
    "updates",
    "batches",
    "timesteps",
    "numsteps",
    "次数",
    "步数",
    "шагов",
)
_SCOPE_WORDS = TRAIN_WORDS | EVAL_WORDS
_COUNTED = re.compile(
    r"(?i)\s?(?:(?P<epoch_step>batch(?:es)?)|(?P<step>steps|iterations|iters|updates)|(?P<epoch>epochs))\b(?!\s?[:=/]?\s?\d)"
)
"""The unit after a count: ``Completed 340/5000 steps``."""
_THINGS = re.compile(r"\s([^\W\d_]{3,20})(?=\s?(?:\Z|[(,;|\[]))")
_STEPS = STEP_WORDS | BATCH_WORDS | EPOCH_WORDS
_TRAINED = _STEPS | TRAIN_WORDS
_PART = re.compile(r"[\])】]\s{1,4}([^\W\d_]{3,30}[^\n]{0,120})")
_LETTERS = re.compile(r"[^\W\d_]{1,40}")
_SHARE = re.compile(r"\d{1,3}(?:\.\d{1,3})?\s?%")
_RULES = ("--", "==", "**", "##")
"""Rules in front of a heading: ``---- batch: 010 ----``."""
_HEADING = re.compile(r":\s{1,3}[^\W\d_]{2}")
_SPAN = re.compile(r"-\d{1,9}\]")
"""The rest of a range, ``Minibatch[1-11]``: the values are those of the whole range."""
_DONE = re.compile(r"(?i)(?: (?:steps|iterations|iters|updates|epochs))? (?:completed|done|finished|performed|taken)\b")
_OF_EPOCH = re.compile(r"(?i) (?:of|in) epochs?\b")
"""After a count and its total: the steps are those of an epoch."""
_SO_FAR = ("progress", "progress on", "completed", "done", "finished")


def read_counters(pairs: Sequence[Pair], line: str, *, has_loss: bool) -> tuple[Counters, bool]:
    """Return the counters of a line, and whether it is only a plan (totals without a position)."""
    counters = Counters()
    plan = False
    episode = next((at for at, pair in enumerate(pairs) if pair.key.lower() == "episode"), len(pairs))
    for index, pair in enumerate(pairs):
        so_many = pair.total or pair.key.lower() == "after"
        counted = _COUNTED.match(line, pair.end) if so_many and pair.name.role not in COUNTING else None
        if counted is not None and counted.lastgroup is not None and pair.scope is not NameScope.EVAL:
            field = counted.lastgroup
            if getattr(counters, field) is None and or_zero(pair.counted) <= (pair.planned or math.inf):
                counters = counters._replace(**{field: pair.counted, f"{field}s": pair.planned})
            continue
        if index > episode and not pair.total and _is_length(pair):
            continue
        trained = not pair.marked and pair.key.lower() in TRAIN_WORDS  # ``[Train 10/200]``
        so_far = pair.key.lower().endswith(_SO_FAR) or trained
        so_far = so_far and bool(pair.total) and not counters.positioned
        if pair.total and has_loss and counters.shown_step is None and (field := _field_of(pair, line)):
            counters = counters._replace(**{field: pair.counted, f"{field}s": pair.planned})
            continue
        if pair.key and pair.name.role not in COUNTING and not pair.bracketed and not so_far:
            continue
        if pair.scope is NameScope.EVAL and pair.name.role is not Role.EPOCH and not has_loss:
            continue  # batches of an evaluation
        if (len(pairs) == 1 and _is_no_place(line, pair)) or (pair.bracketed and _SPAN.match(line, pair.end)):
            continue
        if _counts_nothing(pairs, index, has_loss=has_loss):
            continue
        before = counters
        if pair.name.role is Role.STEPS and pair.marked and not pair.total and _DONE.match(line, pair.end):
            counters = counters._replace(step=pair.counted)  # ``Total iterations: 12238 iterations completed``
            continue
        if _is_total_of_epoch(pair, line, has_loss=has_loss):
            counters = counters._replace(epoch=pair.counted)
            continue
        if so_far:
            outer = has_loss and _counts_within(pairs[index + 1 : index + 2])
            told = pair.counted, pair.planned
            counters = Counters(*told) if outer else Counters(step=told[0], steps=told[1])
            continue
        first, nested = pairs[0], index == 1 and pair.name.role in (Role.STEP, Role.BATCH)
        unnamed = not first.key or (_is_tag(first) and has_loss)
        if nested and pair.planned and first.planned and first.bracketed and unnamed:
            counters = Counters(first.counted, first.planned)  # ``[2/10] step 3/20``, ``Train: [2/10] step 3/20``
        named = pair.key and not _is_tag(pair)
        counters = _keyed(counters, pair, pairs, has_loss) if named else _bare(counters, pairs, index, has_loss, line)
        plan = plan or (counters != before and counters.epoch is None and counters.shown_step is None)
    counters = _epochs_beside_a_loss(counters, pairs) if has_loss and counters.epoch is None else counters
    return counters, plan and not counters.positioned


def _is_total_of_epoch(pair: Pair, line: str, *, has_loss: bool) -> bool:
    """Whether a total is that of one epoch: ``Total epoch 3 finished in 5 s``, ``Total epoch 3 loss: 0.5``.

    The number of epochs planned has a sign or the plural: ``Total epoch: 200``, ``Total epochs 200``.
    """
    if pair.name.role is not Role.EPOCHS or pair.marked or pair.total or not isinstance(pair.counted, int):
        return False
    done = _DONE.match(line, pair.end) is not None
    return done or (has_loss and EPOCH_PLURALS.isdisjoint(words_of(pair.key)))


def _is_length(pair: Pair) -> bool:
    """Whether steps after an episode are its length: ``Steps: 6``, ``Number of Steps: 6``, but not total steps."""
    words = words_of(pair.key)
    return words[-1:] != [] and words[-1] in _PLURALS and not {"total", "global"} & set(words)


def batches_seen(pairs: Sequence[Pair]) -> tuple[Number, Number] | None:
    """Return the batches an evaluation has done and their total: ``Test: [20/157]``, ``Valid | Epoch 3 | 2/6 | ..``.

    A named step with a total (``val step 500/9000``) may be the position of the training. After the epoch it is a
    batch, as it is after a separate word for the evaluation: ``Valid: [ 3/50] Step 010/390``, ``Valid  Iter: [2/6]``.
    One without a total (``Valid Epoch 3 Iteration 20``) is a batch if training is beyond it, see `UnderWay`.
    """
    tagged = len(pairs) > 1 and _is_tag(pairs[0]) and pairs[0].scope is NameScope.EVAL and pairs[0].total
    if tagged and pairs[1].name.role in (Role.STEP, Role.BATCH) and pairs[1].total:
        return or_zero(pairs[1].counted), or_zero(pairs[1].planned)
    for index, pair in enumerate(pairs):
        inner = index > 0 and _is_epoch(pairs[index - 1]) and pair.name.role in (Role.STEP, Role.BATCH)
        if inner and pair.said and pair.scope is NameScope.EVAL and pair.counted is not None and not pair.total:
            return pair.counted, math.inf
        of_run = pair.name.role is Role.STEP and not (pair.said and pair.total)
        if of_run or pair.name.role is Role.LOSS or (pair.key and is_measure(pair.key)):
            return None  # after a value it is part of that: ``acc 97.1% (971/1000)``
        bare = not pair.key or pair.bracketed or pair.name.role in (Role.BATCH, Role.STEP)
        if bare and pair.scope is NameScope.EVAL and pair.name.role is not Role.EPOCH and pair.total:
            return None if pair.counted is None or pair.planned is None else (pair.counted, pair.planned)
    return None


def _counts_nothing(pairs: Sequence[Pair], index: int, *, has_loss: bool) -> bool:
    """Whether what looks like a counter is a setting, a length, or a counter of something else than the line."""
    pair = pairs[index]
    following = pairs[index + 1] if index + 1 < len(pairs) else None
    opens_list = pair.key and pair.bracketed and following is not None and not following.key
    if opens_list and following and not following.bracketed and following.start - pair.end <= 2:
        return True  # ``step=[8, 11]``: a setting
    one = index == 1 and pairs[0].text == "1" and not pairs[0].key
    if one and pair.marked and pair.name.role is Role.EPOCH and pair.start - pairs[0].end <= len(pair.key) + 4:
        return True  # ``1 epoch = 2640 batches``: how long an epoch is
    if pair.key.lower() in GENERATION_WORDS:
        return pair.bracketed or not (has_loss or any(is_measure(other.key) for other in pairs if "." in other.text))
    if pair.name.role is Role.BATCH and not (pair.total or has_loss):
        # ``epochs=30, imgsz=640, batch=4``
        return any(other.name.role is Role.EPOCHS and other.marked and not other.total for other in pairs)
    # ``Epoch 19 | loss 0.5 | best 0.4 (Epoch 18)``
    return pair.name.role is Role.EPOCH and any(map(_is_epoch, pairs[:index]))


def _counts_within(following: Sequence[Pair]) -> bool:
    """Whether an inner counter follows ``Overall Progress: [2/16]``: ``Batch [20/50]``."""
    return any(pair.total and (pair.name.role in (Role.STEP, Role.BATCH) or not pair.key) for pair in following)


def _field_of(pair: Pair, line: str) -> str:
    """Return the field that ``Finished training it 20/500 of epoch 3`` sets beside a loss; "" if none.

    The last word of the name decides, or the words after the count.
    """
    word = _last_counter(pair.key) if pair.name.role in _MAY_COUNT else ""
    if not word or pair.scope is NameScope.EVAL:
        return ""
    if not isinstance(pair.counted, int) or pair.counted > or_zero(pair.planned):
        return ""
    if word in BATCH_WORDS or _OF_EPOCH.match(line, pair.end):
        return "epoch_step"
    return "step" if pair.name.role is Role.OTHER else ""


@lru_cache(maxsize=4096)
def _last_counter(key: str) -> str:
    """Return the last word of a name if it means a step or a batch and no other word changes that; else ""."""
    words = words_of(key)
    return words[-1] if words and words[-1] in STEP_WORDS | BATCH_WORDS and NOT_THE_STEP.isdisjoint(words) else ""


def _epochs_beside_a_loss(counters: Counters, pairs: Sequence[Pair]) -> Counters:
    """Take ``epochs: 3`` beside a loss for the epoch; only called if no other number is the epoch."""
    counts = [(pair, set(words_of(pair.key)) - TRAIN_WORDS) for pair in pairs if pair.name.role is Role.EPOCHS]
    plurals = [pair for pair, own in counts if len(own) == 1 and own <= EPOCH_PLURALS]
    if len(plurals) != 1 or plurals[0].planned:
        return counters
    told = plurals[0].counted
    return counters._replace(epoch=told, epochs=None if counters.epochs == told else counters.epochs)


def _is_no_place(line: str, pair: Pair) -> bool:
    """Whether the only number on a line is the size of a batch (``batch = 405``) or numbers a part of the program."""
    if pair.name.role is Role.STEP:
        return _HEADING.match(line, pair.end) is not None  # ``Step 7: Writing the model``
    return pair.name.role is Role.BATCH and pair.marked and not pair.total and not line.startswith(_RULES)


def _is_epoch(pair: Pair) -> bool:
    """Whether a pair is surely an epoch: ``ep 12`` may count episodes."""
    return pair.name.role is Role.EPOCH and len(pair.key) > 2 and not pair.unit


def _is_tag(pair: Pair) -> bool:
    """Whether a name only says whose counters follow: ``Train: [3/300][10/1251]``, ``ctdet train: [1][0/90]``."""
    last = pair.key.lower().rpartition(" ")[2]
    return pair.bracketed and pair.name.role is Role.OTHER and last in _SCOPE_WORDS


def _keyed(counters: Counters, pair: Pair, pairs: Sequence[Pair], has_loss: bool) -> Counters:
    role = pair.name.role
    if role not in COUNTING:
        return counters
    count, planned = pair.counted, pair.planned
    if count is None or count < 0 or pair.unit == "%":
        return counters
    if planned is None and pair.key.lower().endswith("progress"):
        return counters  # a share of the whole
    elsewhere = pair.key.lower().startswith(("at ", "in ", "from ", "since "))  # ``best: 0.5 at epoch 2``
    if role is Role.EPOCH and (counters.epoch is None or (len(pair.key) > 2 and not elsewhere)):
        return counters._replace(epoch=count, epochs=first_known(planned, counters.epochs))
    if role is Role.STEP and planned is None and counters.epoch_steps is not None and pair.unit in ("k", "K"):
        return counters  # ``Epoch: 1/5 (14/20) | Step: 0k``: the same in thousands
    if role is Role.STEP and counters.step is None and not (pair.unit.endswith("s") or pair.is_rate):
        bare = planned is None and counters.epoch is None and not has_loss and not any(map(_is_epoch, pairs))
        if bare and pair.key.lower().endswith(_PLURALS):
            measured = any(p.marked and p.name.role not in COUNTING and is_measure(p.key) for p in pairs)
            return counters._replace(step=count) if measured else counters._replace(steps=count)
        return counters._replace(step=count, steps=first_known(planned, counters.steps))
    behind = role is Role.STEP and planned is None and counters.steps is not None and counters.epoch_step is None
    if behind and (_is_of_run(pair) or (not pairs[0].key and count > (counters.steps or math.inf))):
        return counters._replace(step=count, steps=None, epoch_step=counters.step, epoch_steps=counters.steps)
    if role is Role.STEP and planned and counters.steps is counters.epoch is None and counters.epoch_step is None:
        return counters._replace(epoch=counters.step, step=count, steps=planned)  # ``iteration: 1 step: 100/2319``
    if role is Role.BATCH and counters.epoch_step is None and "size" not in pair.key.lower():
        return counters._replace(epoch_step=count, epoch_steps=planned)
    if role in (Role.EPOCHS, Role.STEPS) and not count:
        return counters  # no total is 0: ``"training_epochs": 0`` counts the epochs done
    if role is Role.EPOCHS and not pair.unit:
        if planned is not None and counters.epoch is None:
            return counters._replace(epoch=count, epochs=planned)
        return counters._replace(epochs=first_known(counters.epochs, count))
    if role is Role.STEPS and planned and counters.step is None:
        return counters._replace(step=count, steps=planned)  # ``total num timesteps 300/90000``
    if role is Role.STEPS and not pair.unit:
        return counters._replace(steps=first_known(counters.steps, count))
    return counters


def _is_of_run(pair: Pair) -> bool:
    """Whether a step is named as one of the whole run: ``STEP: 24/36 -- GLOBAL_STEP: 1000025``."""
    return not {"global", "total"}.isdisjoint(words_of(pair.key))


def _bare(counters: Counters, pairs: Sequence[Pair], index: int, has_loss: bool, line: str) -> Counters:
    """Add a number without a name: ``[50/930]`` after an epoch, ``[1/25][10/1583]``, ``[1,  2000]``, ``128/128 -``."""
    pair = pairs[index]
    count, planned = pair.counted, pair.planned
    if not isinstance(count, int) or count < 0 or pair.unit or (planned is not None and count > planned):
        return counters
    behind_a_bar = planned is not None and pair.start > 2 and not counters.positioned
    before = _SHARE.sub("", line[: pair.start]) if behind_a_bar else ""
    words = [word.lower() for word in _LETTERS.findall(before)]
    drawn = not any(map(str.isdigit, before)) and (not words or (index > 0 and TRAIN_WORDS.issuperset(words)))
    if behind_a_bar and drawn and (has_loss or not _is_of_things(line[pair.end :])):
        return Counters(step=count, steps=planned)
    if index > 0:
        has_epoch, in_epoch = counters.epoch is not None, counters._replace(epoch_step=count, epoch_steps=planned)
        behind_epoch = pairs[index - 1].name.role is Role.EPOCH and (planned is not None or pair.bracketed)
        second = index == 1 and (pair.bracketed or not pairs[0].key)
        if has_epoch and counters.epoch_step is None and (behind_epoch or second):
            return in_epoch
        last = index == len(pairs) - 1 and not pair.key
        batches = (pair.bracketed or last) and planned is not None and has_loss and counters.shown_step is None
        return in_epoch if batches else counters
    if planned is None and has_loss and line.startswith(f"#{pair.text} "):
        return Counters(step=count)
    padded = planned is None and pair.text[:1] == "0" < pair.text[1:]
    if padded and line[pair.end : pair.end + 2] == "][" and pairs[1:] and pairs[1].name.role is Role.EPOCH:
        return counters  # ``[000660][Epoch 01/50]``: a label; ``[0005] Epoch 3`` is a step
    alone = planned is not None and len(line) <= pair.end + 2 and pair.start <= 2
    if alone or (pair.bracketed and _opens_pair(pairs)):
        return Counters(epoch=count, epochs=planned)
    if planned is None and has_loss and pair.start == 0 and (_stands_alone(pairs) or _tells_both(pairs)):
        return Counters(epoch=count)
    heads = pair.start == 0 or (pair.bracketed and pair.start == 1)
    if planned is None and heads and not has_loss and _tells_both(pairs) and _tells_rate(pairs):
        return Counters(epoch=count)  # ``[3] lr 0.001 3d_train 951.5 3d_valid 1174.8``
    measured = any("." in p.text and is_measure(p.key) and (p.marked or p.name.role is Role.LOSS) for p in pairs)
    has_loss = has_loss or (pair.bracketed and measured)
    if planned is None and has_loss and pair.start <= (_PADDED_COUNTER if pair.bracketed else 0):
        return Counters(step=count)
    of_epochs = planned is not None and planned < _MOST_EPOCHS
    if of_epochs and pair.bracketed and pair.start <= _OPENED and has_loss and _tells_both(pairs):
        return Counters(epoch=count, epochs=planned)  # ``[01/20] train_loss=0.5 | val_loss=0.6``
    heads = pair.bracketed and not (measured or any(p.marked for p in pairs)) and _is_heading_of_part(line[pair.end :])
    return Counters(step=count, steps=planned) if planned is not None and pair.start <= 3 and not heads else counters


def _is_heading_of_part(behind: str) -> bool:
    """Whether a count numbers a part of a program: ``[2/3] Loading the buffers``, but not ``[20/300] steps done``."""
    found = _PART.match(behind)
    return found is not None and not _TRAINED.intersection(words_of(found[1]))


def _is_of_things(behind: str) -> bool:
    """Whether a count is of something other than steps: ``[###---] 64/1180 frames (5.4%)``."""
    found = _THINGS.match(behind)
    return found is not None and found[1].lower() not in _STEPS and not is_measure(found[1])


def _stands_alone(pairs: Sequence[Pair]) -> bool:
    """Whether the second number is a bare count right after the first: ``12 3400 loss=0.5``."""
    if len(pairs) < 2 or (len(pairs) > 2 and not pairs[2].key):
        return False
    pair = pairs[1]
    bare = not (pair.key or pair.total or pair.unit or pair.bracketed) and isinstance(pair.value, int)
    return bare and pair.start - pairs[0].end <= 2


def _tells_both(pairs: Sequence[Pair]) -> bool:
    """Whether a line names values of both training and an evaluation: as a rule it sums up an epoch."""
    return {NameScope.TRAIN, NameScope.EVAL} <= {pair.scope for pair in pairs if pair.key}


def _tells_rate(pairs: Sequence[Pair]) -> bool:
    """Whether a line has a learning rate, which only training has."""
    return any(pair.name.role is Role.LEARNING_RATE and not pair.total for pair in pairs)


def _opens_pair(pairs: Sequence[Pair]) -> bool:
    """Whether a line opens with two counters: ``[1/25][10/1583]`` or ``[1,  2000]``."""
    if len(pairs) < 2 or pairs[1].key or not any(map(_is_loss_or_measure, pairs)):
        return False
    first, second = pairs[0], pairs[1]
    near = (first.start <= 3 or _is_tag(first)) and second.start - first.end <= 6
    alike = bool(first.total) == bool(second.total) or (second.total and second.bracketed)
    return near and bool(alike) and second.unit == ""


def _is_loss_or_measure(pair: Pair) -> bool:
    return pair.name.role is Role.LOSS or (pair.marked and "." in pair.text and is_measure(pair.key))
