"""Lines that announce what comes: "Validating ...", "***** Running training *****"."""

from __future__ import annotations

import re

from .names import words_of
from .points import Phase
from .vocabulary import EVAL_WORDS, TRAIN_WORDS

_HINT = re.compile(r"(?i)val|eval|test|train|验证|検証|测试|評価|评估|训练|学習|검증|평가|훈련|valid|тест|обуч|entra")
_DONE = re.compile(
    r"(?i)\b(?:done|finish\w{0,3}|complet\w{0,4}|end(?:ed|s)? of|took|saved|set|size|samples|"
    r"dataset|data|loader|images?)\b"
)
_MAX_LENGTH = 90


def announced(line: str) -> Phase | None:
    """The phase that a line without values announces, or None."""
    if len(line) > _MAX_LENGTH or not _HINT.search(line):
        return None
    words = words_of(line)
    if len(words) > 8 or _DONE.search(line):
        return None
    evaluation = any(word in EVAL_WORDS for word in words)
    training = any(word in TRAIN_WORDS for word in words)
    if evaluation and not training:
        return Phase.EVAL
    return Phase.TRAIN if training and not evaluation else None
