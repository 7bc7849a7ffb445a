"""Lines that announce what comes: "Validating ...", "***** Running training *****"."""

from __future__ import annotations

import re
from typing import NamedTuple

from .names import words_of
from .points import Phase
from .vocabulary import EVAL_WORDS, TRAIN_WORDS

_WORDS = "val test train 验证 検証 测试 評価 评估 训练 学習 검증 평가 훈련 тест обуч entra"
_HINTS = tuple(_WORDS.split())
_DONE = re.compile(
    r"(?i)\b(?:done|finish\w{0,3}|complet\w{0,4}|end(?:ed|s)? of|took|saved|size|load\w{0,3}|creat\w{0,3})\b"
)
_DATA = re.compile(r"(?i)\b(?:set|samples|dataset|data|loader|images?)\b")
_EVALUATING = re.compile(r"(?i)\b(?:evaluat|validat|test)ing\b")
_SETTING = re.compile(r"[\w.-]{1,60}\s{0,4}(?:=(?!=)|:\s{0,8}\S)")
_VALUE = re.compile(r"[:=]\s{0,8}[-+]?\d")
_UNDER_WAY = re.compile(r"(?i)\b(?:\w{2,12}ing|begins?|starts?|started)\b|\.\.\.|…|开始|開始|시작|中")
_MAX_LENGTH = 90


class Announcement(NamedTuple):
    """A phase, and whether the line says that it is under way (a bare ``eval:`` may head a list of settings)."""

    phase: Phase
    sure: bool


def announced(line: str) -> Announcement | None:
    """The phase that a line without values announces, or None."""
    if (
        len(line) > _MAX_LENGTH
        or not any(map(line.lower().__contains__, _HINTS))
        or _SETTING.match(line)
        or _VALUE.search(line)
    ):
        return None
    words = words_of(line)
    if len(words) > 8 or _DONE.search(line) or (_DATA.search(line) and not _EVALUATING.search(line)):
        return None
    evaluation = any(word in EVAL_WORDS for word in words)
    training = any(word in TRAIN_WORDS for word in words)
    if evaluation == training:
        return None
    return Announcement(Phase.EVAL if evaluation else Phase.TRAIN, _UNDER_WAY.search(line) is not None)
