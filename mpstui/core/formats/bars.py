"""Progress bars: what a frame says, and whether the bar is the training loop's.

tqdm: ``[desc: ]NN%|bar| n/total [elapsed<remaining, rate, postfix]``, or ``n it [elapsed, rate]`` without a total.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .numbers import parse_count
from .points import Number

_BAR = re.compile(
    r"(?P<percent>\d{1,3})%\|(?P<bar>[^|\[\]{}]{0,400})\|\s{0,8}(?P<n>[\d.,]{1,20})(?P<nk>[kKMGTP]?)\s?/\s?(?P<total>[\d.,]{1,20})(?P<tk>[kKMGTP]?)"
    r"(?P<unit>[A-Za-z]{0,3})\s{0,4}"
    r"\[(?P<elapsed>[\d:]{1,12})(?:<(?P<left>[\d:?]{1,12}| ?\d{1,4} days?, [\d:]{1,9}))?"
    r"(?:,\s{0,8}(?P<rate>[\d.?]{1,20})\s?(?P<rateunit>[^\s,\]]{1,24}(?: [^\s,\]]{1,16})?))?"
)
_OTHER_WORK = re.compile(
    r"(?i)\b(?:map|mapping|load\w{0,3}|generat\w{0,3}|download\w{0,3}|fetch\w{0,3}|sav\w{0,3}|tokeni\w{0,5}|format\w{0,4}|filter\w{0,3}|"
    r"cach\w{0,3}|scan\w{0,4}|convert\w{0,3}|extract\w{0,4}|process\w{0,3}|preprocess\w{0,3}|prepar\w{0,3}|sanity|predict\w{0,3}|"
    r"sampl\w{0,3}|calculat\w{0,3}|comput\w{0,3}|upload\w{0,3}|read\w{0,3}|writ\w{0,3}|shards?|weights|files?|vocab\w{0,5}|applying|adding|packing|truncating|"
    r"encod\w{0,3}|decod\w{0,3}|index\w{0,3}|build\w{0,3}|creat\w{0,3}|split\w{0,4}|extracting|inferenc\w{0,3}|rollouts?|collecting|model\.\w+|class|find\w{0,3}|warm.?up|compil\w{0,3}|install\w{0,3})\b"
    r"|\.(?:safetensors|bin|pt|pth|zip|gz|tar|json|parquet|jpg|png|mp4)\b"
)
_EVALUATION = re.compile(
    r"(?i)(?<![^\W\d_])(?:val|valid|validation|validating|validate|eval|evals|evaluation|evaluating|evaluate|test|testing|dev|holdout)(?![^\W\d_])|验证|検証|测试|評価|评估|검증|평가"
)
_TRAINING = re.compile(
    r"(?i)(?<![a-z])(?:train\w{0,4}|epochs?|steps?|iters?|iterations?|ep|update\w{0,2}|sft|fit|fine.?tun\w{0,4})(?![a-z])|训练|学習|훈련|エポック|轮"
)
_EPOCH_NUMBER = re.compile(r"(?i)(?:epoch|エポック|轮)\W{0,3}\d")
_BYTES = re.compile(r"(?i)^(?:[kmgt]i?b|b|bytes|examples?|files?|docs?|rows?)(?:/s)?$")


@dataclass(frozen=True, slots=True)
class BarFrame:
    """One drawing of a bar."""

    start: int
    end: int
    """Where the bar's own text ends: the postfix follows."""
    description: str
    n: Number | None
    total: Number | None
    rate: float | None
    """Iterations per second."""
    postfix: str
    closed: bool
    counts_epochs: bool
    """The bar's unit is an epoch: ``3.1s/epoch``."""
    rank: int
    """0 not training, -1 evaluation, 1 undescribed, 2 described as training."""


def find_bars(text: str) -> list[BarFrame]:
    """Every tqdm frame in a piece of text; several may be glued together."""
    frames: list[BarFrame] = []
    end = 0
    position = text.find("%|")
    while position >= 0:
        match = _BAR.search(text, max(end, position - 4))
        if match is None:
            break
        frame = _frame(text, match, end)
        frames.append(frame)
        end = frame.end
        position = text.find("%|", end)
    return frames


def _frame(text: str, match: re.Match[str], previous_end: int) -> BarFrame:
    description = text[max(previous_end, match.start() - 300) : match.start()].strip().rstrip(":").strip()
    description = description.removeprefix("^M")  # a carriage return, as an editor shows it, in a pasted log
    close = text.find("]", match.end())
    closed = close >= 0 and (close - match.end()) < 2000
    end = close + 1 if closed else len(text)
    postfix = text[match.end() : close if closed else len(text)].strip(" ,")
    unit = match["rateunit"] or ""
    return BarFrame(
        start=match.start(),
        end=end,
        description=description,
        n=parse_count(match["n"], match["nk"]),
        total=parse_count(match["total"], match["tk"]),
        rate=_rate(match["rate"], unit),
        postfix=postfix,
        closed=closed,
        counts_epochs="epoch" in unit.lower(),
        rank=rank_of(description, match["unit"] or unit),
    )


@lru_cache(maxsize=1024)
def rank_of(description: str, unit: str) -> int:
    """How far a bar's description shows that it is the training loop's."""
    if _BYTES.match(unit):
        return 0
    # Metrics may be part of the description: the words before the first number tell what the loop does.
    if _EVALUATION.search(description) and not re.search(r"(?i)train", description):
        return -1
    if _OTHER_WORK.search(description) and not _EPOCH_NUMBER.search(description):
        return 0
    return 2 if _TRAINING.search(description) else 1


def _rate(number: str | None, unit: str) -> float | None:
    if not number or "?" in number:
        return None
    try:
        value = float(number)
    except ValueError:
        return None
    if unit.startswith("s/"):
        return 1.0 / value if value else None
    return value if unit.endswith("/s") else None
