"""Which data the values of a line belong to: standalone words such as "train" and "val" in front of the names."""

from __future__ import annotations

import re
from typing import NamedTuple

from .names import NameScope
from .vocabulary import EVAL_WORDS, TRAIN_WORDS

_SCOPE_WORDS = TRAIN_WORDS | EVAL_WORDS
_TAG = re.compile(r"\W{0,4}\[[^\]\d]{2,40}\]")
_HEADS = re.compile(
    r"(?i)(?: (?:set|data|results?|metrics?|summary|loop|phase))?\s{0,3}[^\w\s]|\s{1,3}(?:epoch|step|iter\w{0,6})\b"
)
"""What follows a word that applies to the whole rest of the line: ``Test: ..``, ``[Val]``, ``Test set: ..``."""
_LABEL = re.compile(r"\s?:\s{0,3}([A-Z][A-Za-z-]{0,14})\s?:(?=\s{0,3}[A-Za-z])")
"""A second label after the word that a line starts with: ``RAW`` in ``VAL: RAW : MAE 49.5; RMSE 65.5``."""
_PHASE_OPTION = re.compile(r"(?i)(?:\A|[\s\[(,;|])(?:phase|mode|split|stage|subset|val(?:id)?|dev)=\Z")
"""An option whose value is a train or eval word: ``mode=val loss=0.5``."""
_WORD = re.compile(r"[^\W\d_]{2,14}")
_CJK_SCOPE = re.compile("训练|訓練|学習|학습|훈련|验证|驗證|検証|测试|測試|评估|評価|テスト|검증|평가|테스트")


class Scope(NamedTuple):
    """A word such as "train" or "val" that says what the values after it belong to."""

    start: int
    scope: NameScope
    word: str
    heads: bool
    """True if it applies to the whole rest of the line; one inside a name (``Val loss``) applies only to measures."""


def scopes_of(line: str) -> list[Scope]:
    """Find standalone words such as "train" and "val"; joined ones (``val_loss``) apply to their own value only."""
    found: list[Scope] = []
    said = map(str.lower, _WORD.findall(line))
    for match in () if line.isascii() and _SCOPE_WORDS.isdisjoint(said) else _WORD.finditer(line):
        if match.group().lower() not in _SCOPE_WORDS:
            continue
        before, after = line[match.start() - 1 : match.start()], line[match.end() : match.end() + 1]
        ends = after in ("_", "/", "-", "=") or (after == "." and not line[match.end() + 1 : match.end() + 2].isspace())
        ends = ends or (before == "=" and _PHASE_OPTION.search(line[max(0, match.start() - 9) : match.start()]) is None)
        if before not in ("_", "/", ".", "-") and not ends:
            heads = _HEADS.match(line, match.end()) is not None
            label = None if found or line[: match.start()].strip() else _LABEL.match(line, match.end())
            word = match.group() if label is None else f"{match.group()} {label[1]}"
            found.append(Scope(match.start(), _scope_word(match.group()), word, heads))
    tag = _TAG.match(line) if "[" in line[:6] else None
    words = [] if tag is None else [word for word in _WORD.findall(tag.group()) if word.lower() in EVAL_WORDS]
    if words:  # in a tag, words joined to others count too: ``[Diff-Val(Test)] Epoch 1: loss = 0.5``
        found.insert(0, Scope(0, NameScope.EVAL, words[0], heads=True))
    if not found or not line.isascii():
        found += [Scope(m.start(), _scope_word(m.group()), m.group(), True) for m in _CJK_SCOPE.finditer(line)]
        found.sort()
    return found


def _scope_word(word: str) -> NameScope:
    return NameScope.EVAL if word.lower() in EVAL_WORDS else NameScope.TRAIN
