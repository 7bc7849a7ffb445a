"""Progress bars: what a frame says, which bar is the training loop's, and which of its frames say something new.

tqdm: ``[desc: ]NN%|bar| n/total [elapsed<remaining, rate, postfix]``, or ``n it [elapsed, rate]`` without a total.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from .points import Counters, LineReading, Number, as_float, parse_count

_PLACE = r"\d{1,12}/\d{1,12} \[[\d:]{4,12}<"
"""Follows the percentage where the bar's format leaves out the bar itself: `` 50% 4/8 [00:01<00:01, 3.9it/s]``."""
_DRAWN = re.compile(rf"%(?:\|| {{1,2}}{_PLACE})")
_BAR = re.compile(
    rf"(?P<percent>\d{{1,3}})%(?:\|[^|\[\]{{}}]{{0,400}}\|\s{{0,8}}| {{1,2}}(?={_PLACE}))"
    r"(?P<n>[\d.,]{1,20})(?P<nk>[kKMGTP]?)\s?/\s?(?P<total>[\d.,]{1,20})(?P<tk>[kKMGTP]?)"
    r"(?P<unit>[A-Za-z]{0,3})\s{0,4}"
    r"\[(?P<elapsed>[\d:]{1,12})(?:<(?P<left>[\d:?]{1,12}| ?\d{1,4} days?, [\d:]{1,9}))?"
    r"(?:,\s{0,8}(?P<rate>[\d.?]{1,20})\s?(?P<rateunit>[^\s,\]]{1,24}(?: [^\s,\]]{1,16})?))?"
)
_OPEN_BAR = re.compile(
    r"(?<![\w.,/-])(?P<n>\d{1,12})(?:it|steps?|batch(?:es)?) \[(?P<elapsed>\d{1,4}(?::\d\d){1,2})"
    r"(?:, {0,8}(?P<rate>[\d.?]{1,20})\s?(?P<rateunit>[^\s,\]]{1,24}))?"
)
_COUNT = re.compile(r"(?<![\w.,/])(\d{1,9})\s?/\s?(\d{1,9})(?![\w,/]|\.\d)")
_NAMES_A_STEP = re.compile(r"(?i)(?:step|iter|update)s?\s{0,3}[:=]")
_OTHER_WORK = re.compile(
    r"(?i)\b(?:map|mapping|load\w{0,3}|generat\w{0,12}|download\w{0,3}|fetch\w{0,3}|sav\w{0,3}|tokeni\w{0,5}|format\w{0,4}|filter\w{0,3}|"
    r"cach\w{0,3}|scan\w{0,4}|convert\w{0,3}|extract\w{0,4}|process\w{0,3}|preprocess\w{0,3}|preload\w{0,3}|prepar\w{0,3}|sanity|predict\w{0,3}|"
    r"sampl\w{0,3}|calculat\w{0,3}|comput\w{0,3}|upload\w{0,3}|read\w{0,3}|writ\w{0,3}|shards?|weights|files?|vocab\w{0,5}|applying|adding|packing|truncating|"
    r"resiz\w{0,3}|pars(?:e|ing)|copy\w{0,3}|transferring|featuri\w{0,5}|standardi\w{0,5}|verify\w{0,3}|checking|counting|augmenting|"
    r"merging|analy\w{0,4}|rendering|crawling|shuffling|"
    r"encod\w{0,3}|decod\w{0,3}|index\w{0,3}|build\w{0,3}|creat\w{0,3}|split\w{0,4}|extracting|inferenc\w{0,3}|rollouts?|collecting|model\.\w+|class|find\w{0,3}|warm.?up|compil\w{0,3}|install\w{0,3})\b"
    r"|\.(?:safetensors|bin|pt|pth|zip|gz|tar|json|parquet|jpg|png|mp4)\b"
)
_EVALUATION = re.compile(
    r"(?i)(?<![^\W\d_])(?:val|valid|validation|validating|validate|eval|evals|evaluation|evaluating|evaluate|test|testing|dev|holdout|k-?nn)(?![^\W\d_])|验证|検証|测试|評価|评估|검증|평가"
)
_TRAINING = re.compile(
    r"(?i)(?<![a-z])(?:train\w{0,4}|epochs?|steps?|batch(?:es)?|iters?|iterations?|ep|update\w{0,2}|sft|fit|fine.?tun\w{0,4})(?![a-z])|训练|学習|훈련|エポック|轮"
)
_EVALUATED = re.compile(
    r"(?i)(?<![^\W\d_])(?:val|valid|validation|eval|test|dev)[ _./-]"
    r"(?:loss|acc\w{0,5}|f1|auc|m?iou|dice|psnr|mae|r?mse|ppl|error)\s{0,3}[:=]"
)
"""A measure whose own name says evaluation: a training bar may show the latest one beside its loss."""
_OWN_LOSS = re.compile(r"(?i)(?<![\w./-])loss\s{0,3}[:=]")
_EPOCH_NUMBER = re.compile(r"(?i)(?:epoch|エポック|轮)\W{0,3}\d")
_BYTES = re.compile(r"(?i)^(?:[kmgt]i?b|b|ba|ex|bytes|examples?|files?|docs?|rows?)(?:/s)?$")

_A_MOMENT = ("00:00", "00:01")
_SAMPLES = re.compile(
    r"(?i)^(?:s/)?(?:im|img|image|pic|sample|seq|sequence|sent|sentence|token|tok|frame|clip|utt)s?(?:/s)?$"
)


@dataclass(frozen=True, slots=True)
class BarFrame:
    """One drawing of a bar."""

    end: int
    """Where the bar's own text ends: the postfix follows."""
    description: str
    n: Number | None
    total: Number | None
    rate: float | None
    """Iterations per second."""
    postfix: str
    counts_epochs: bool
    """True if the bar's unit is an epoch: ``3.1s/epoch``."""
    counts_samples: bool
    """True if the bar's unit is a sample: ``13 img/s``."""
    rank: int
    """0: not training, -1: evaluation, 1: unknown, 2: described as training."""
    brief: bool = False
    """True if the bar was full within a moment: too short for a training loop."""


def is_drawn(text: str) -> bool:
    """True if a piece of text contains a frame of a bar."""
    return _has_share(text) or (" [" in text and bool(_open_bars(text)))


def find_bars(text: str) -> list[BarFrame]:
    """Return every tqdm frame in a piece of text; several may be glued together."""
    return _full_bars(text) if _has_share(text) else _open_bars(text)


def _has_share(text: str) -> bool:
    return "%|" in text or ("% " in text and "<" in text and _DRAWN.search(text) is not None)


def _open_bars(text: str) -> list[BarFrame]:
    """Return the frame of a bar without a total, or past it: ``Epoch 1: 15it [04:02, 18.8s/it, loss=0.5]``.

    It counts only with a word or a loss of training. If its postfix names a step, ``env_step=2048``, that is the run's
    position, and the bar's own count is ignored.
    """
    match = _OPEN_BAR.search(text, 0, 300)
    if match is None:
        return []
    description = text[: match.start()].strip().rstrip(":").strip()
    close = text.find("]", match.end(), match.end() + 2000)
    postfix = text[match.end() : close if close >= 0 else len(text)].strip(" ,")
    unit = match["rateunit"] or ""
    rank, has_loss = rank_of(description, unit), _OWN_LOSS.search(postfix) is not None
    n = int(match["n"])
    total = _total_beside(description, n)
    if rank < 1 or not (has_loss or (rank > 1 and (n or total))) or _NAMES_A_STEP.search(postfix) is not None:
        return []
    return [
        BarFrame(
            end=close + 1 if close >= 0 else len(text),
            description=description,
            n=n,
            total=total,
            rate=_rate(match["rate"], unit),
            postfix=postfix,
            counts_epochs="epoch" in unit.lower(),
            counts_samples=False,
            rank=rank,
        )
    ]


def _total_beside(description: str, n: int) -> int | None:
    """Return the total that a description names with the bar's own count: 45 in ``Batch (7/45) | Acc (31/64)`` at 8."""
    counts = ((int(count[1]), int(count[2])) for count in _COUNT.finditer(description))
    return next((total for done, total in counts if abs(done - n) <= 1 and max(done, n) <= total), None)


def _full_bars(text: str) -> list[BarFrame]:
    frames: list[BarFrame] = []
    end = 0
    while (drawn := _DRAWN.search(text, end)) and (match := _BAR.search(text, max(end, drawn.start() - 4))):
        description = text[max(end, match.start() - 300) : match.start()].strip().rstrip(":").strip()
        description = description.removeprefix("^M")  # a carriage return as an editor shows it, in a pasted log
        close = text.find("]", match.end(), match.end() + 2000)
        postfix = text[match.end() : close if close >= 0 else len(text)].strip(" ,")
        end = close + 1 if close >= 0 else len(text)
        unit = match["rateunit"] or ""
        frame = BarFrame(
            end=end,
            description=description,
            n=_whole(parse_count(match["n"], match["nk"])),
            total=_whole(parse_count(match["total"], match["tk"])),
            rate=_rate(match["rate"], unit),
            postfix=postfix,
            counts_epochs="epoch" in unit.lower(),
            counts_samples=_SAMPLES.match(match["unit"] or unit) is not None,
            rank=rank_of(description, match["unit"] or unit),
            brief=match["elapsed"] in _A_MOMENT and match["n"] == match["total"] and match["nk"] == match["tk"],
        )
        frames.append(frame)
    return frames


def _whole(count: Number | None) -> Number | None:
    """Return ``50.0``, as printed by a bar with a scaled unit, as 50."""
    return int(count) if isinstance(count, float) and count.is_integer() else count


@lru_cache(maxsize=1024)
def rank_of(description: str, unit: str) -> int:
    """Rate how surely a description is that of the training loop (see ``BarFrame.rank``)."""
    if _BYTES.match(unit) and not _EPOCH_NUMBER.search(description):
        return 0
    # The description may contain metrics: the other words tell what the loop does.
    beside = _EVALUATED.sub("", description)
    words = beside if _OWN_LOSS.search(beside) else description
    if _EVALUATION.search(words) and not re.search(r"(?i)train", description):
        return -1
    if _OTHER_WORK.search(description) and not _EPOCH_NUMBER.search(description):
        return 0
    return 2 if _TRAINING.search(description) else 1


def _rate(number: str | None, unit: str) -> float | None:
    value = as_float(number)
    if value is not None and unit.startswith("s/"):
        return 1.0 / value if value else None
    return value if unit.endswith("/s") else None


_MAX_BARS = 64


@dataclass(slots=True)
class TrackedBar:
    """One entry of a `BarBook`."""

    counters: Counters
    rank: int
    loss: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    """What the bar shows instead of a loss."""
    told_step: Number | None = None
    votes: int = 0
    told: Number | None = None
    """Its step when a line last named an epoch."""
    agreed: int = 0
    """How often in a row its step has moved along with the epoch."""
    again: bool = False
    """True if the last frame had the same step and values as the one before."""
    redrawn: bool = False
    """True if such frames have proven to be redrawn for other reasons (a new description): new values came later."""

    def stands_still(self, reading: LineReading) -> bool:
        """True if a frame has the same step as the one before and is not the closing one."""
        (step, steps), (before, _) = _position(reading.counters), _position(self.counters)
        return step == before and step != steps

    def is_elsewhere(self, reading: LineReading) -> bool:
        """True if a frame belongs to another epoch."""
        return self.counters.epoch != reading.counters.epoch

    def watch(self, reading: LineReading) -> None:
        """Learn from a frame what redraws at an unchanged step mean."""
        stands_still, repeats = self.stands_still(reading), self.is_repeated_by(reading)
        self.redrawn = self.redrawn or (self.again and stands_still and repeats is False)
        self.again = stands_still and repeats is True

    def is_repeated_by(self, reading: LineReading) -> bool | None:
        """True if a frame shows the same values as the one before; None if either shows none to compare.

        A step of the run in the postfix, ``env_step=120``, is one of the values.
        """
        if reading.told_step is not None and reading.told_step != self.told_step:
            return False
        if reading.loss is not None:
            return None if self.loss is None else reading.loss == self.loss
        if not (reading.metrics and self.values) or self.loss is not None:
            return None
        return all(reading.metrics.get(name) == value for name, value in self.values.items())  # others are ignored


_AGREED_NEEDED = 3


class BarBook:
    """The bars of a log, one entry per total, ranked by how surely each is the training loop's.

    First comes a bar that shows a training loss, then one that was being drawn when training records were printed (they
    vote for it), then one described as training, then the longest.
    """

    def __init__(self) -> None:
        self._bars: dict[tuple[Number | None, bool], TrackedBar] = {}
        self._latest: TrackedBar | None = None
        self.reopened = False
        """True if the frame drawn last opens a new bar with the same total as a finished one."""

    def is_news(self, reading: LineReading) -> bool:
        """False if a frame repeats what an earlier one showed: the loss, or the other values of a bar without one.

        tqdm redraws the old postfix when the counter moves, and redraws at the same count when the program sets a new
        postfix: an unchanged value is a new reading only in the second case (and not on the closing frame).
        """
        bar = self._bars.get(self._key(reading))
        repeats = bar is not None and bar.is_repeated_by(reading)
        if bar is None or repeats is None:
            return True
        (step, _), (before, _) = _position(reading.counters), _position(bar.counters)
        stands_still, new_epoch = bar.stands_still(reading), reading.counters.epoch != bar.counters.epoch
        if repeats and stands_still and new_epoch:
            return False  # only the epoch in the description is new: the bar itself counts epochs
        goes_back = step is not None and before is not None and step < before
        set_again = stands_still and not bar.redrawn
        return new_epoch or goes_back or not repeats or set_again or self._opens_again(bar)

    def draw(self, reading: LineReading) -> None:
        if reading.rank < 1:
            return
        key = self._key(reading)
        bar = self._bars.get(key)
        if bar is None:
            if len(self._bars) >= _MAX_BARS:
                return
            bar = self._bars[key] = TrackedBar(reading.counters, reading.rank)
        self.reopened = self._opens_again(bar)
        bar.watch(reading)
        bar.counters, bar.rank = reading.counters, max(bar.rank, reading.rank)
        if reading.loss is not None:
            bar.loss = reading.loss
        bar.values, bar.told_step = reading.metrics or bar.values, reading.told_step
        self._latest = bar

    def _key(self, reading: LineReading) -> tuple[Number | None, bool]:
        """Return the key of a frame's bar; a bar past its total, which it then stops showing, is the one drawn last."""
        (step, steps), latest = _position(reading.counters), self._latest
        if (
            steps is None
            and step is not None
            and latest is not None
            and latest.counters.epoch == reading.counters.epoch
        ):
            key = next((key for key, bar in self._bars.items() if bar is latest), None)
            if key is not None and key[0] is not None and not key[1] and step > key[0]:
                return key
        return _total_of(reading)

    def forget(self, reading: LineReading) -> bool:
        """Drop a bar that has turned out not to be of training; return True if it was known."""
        bar = self._bars.get(self._key(reading))
        if bar is None or bar.loss is not None or bar.votes:
            return False
        self._latest = None if bar is self._latest else self._latest
        return self._bars.pop(self._key(reading)) is bar

    def _opens_again(self, bar: TrackedBar) -> bool:
        """True if a full bar is drawn again after another one: if it names no epoch, it is the next bar of its kind."""
        step, steps = _position(bar.counters)
        return bar is not self._latest and self._latest is not None and bar.counters.epoch is None and step == steps

    def vote(self, count: int = 1) -> None:
        """Count training records for the bar drawn last, whose loop they belong to."""
        if self._latest is not None:
            self._latest.votes += count

    def leads(self, reading: LineReading) -> bool:
        """True if a frame belongs to the bar that counts as the training loop's."""
        best = self._best()
        return best is not None and self._bars.get(self._key(reading)) is best

    def best(self) -> Counters | None:
        """Return the counters of the training loop's bar."""
        bar = self._best()
        return None if bar is None else bar.counters

    def total_at(self, step: Number | None, epoch: Number | None) -> Number | None:
        """Return the total of a bar around the whole loop, if that bar is at ``step`` and lines name no epoch.

        A fractional epoch above 1 is allowed: a bar at the run's step in mid-epoch cannot be a single epoch's.
        """
        bar = self._best()
        if bar is None or bar.counters.step is None or step is None:
            return None
        if epoch is not None and not (isinstance(epoch, float) and epoch > 1):
            return None
        return bar.counters.steps if abs(bar.counters.step - step) <= 1 else None

    @property
    def is_of_training(self) -> bool:
        """True if a loss, a vote or its description shows that the leading bar really is the training loop's."""
        bar = self._best()
        return bar is not None and (bar.loss is not None or bar.votes > 0 or bar.rank > 1)

    def begin_run(self) -> None:
        """Begin another run: only the bar being drawn may belong to it."""
        self._bars = {key: bar for key, bar in self._bars.items() if bar is self._latest}
        if self._latest is not None:
            self._latest.votes = 0

    def epochs_at(self, epoch: int) -> Number | None:
        """Return the total of the bar drawn last, if it has turned out to count the epochs that lines name."""
        bar = self._latest
        if bar is None or bar.counters.epoch is not None or not bar.counters.steps:
            return None
        step, moved = bar.counters.step, bar.counters.step != bar.told
        bar.agreed = bar.agreed + moved if step is not None and step in (epoch - 1, epoch) else 0
        bar.told = step
        return bar.counters.steps if bar.agreed >= _AGREED_NEEDED else None

    def turn(self, told: Counters) -> None:
        """Make the training loop's bar count the steps of the epoch that a line has named (``told``)."""
        bar = self._best()
        if bar is not None:
            bar.counters = Counters(told.epoch, told.epochs, None, None, bar.counters.step, bar.counters.steps)

    def _best(self) -> TrackedBar | None:
        def standing(bar: TrackedBar) -> tuple[bool, int, int, Number]:
            return bar.loss is not None, bar.votes, bar.rank, _position(bar.counters)[1] or 0

        counting = [bar for bar in self._bars.values() if bar.counters.shown_step is not None]
        # A bar that has moved with the epochs counts epochs; another one counts the steps.
        counting = [bar for bar in counting if bar.agreed < _AGREED_NEEDED] or counting
        return max(counting or self._bars.values(), key=standing, default=None)


def _total_of(reading: LineReading) -> tuple[Number | None, bool]:
    counters = reading.counters
    return counters.shown_steps if counters.shown_step is not None else counters.epochs, counters.shown_step is None


def _position(counters: Counters) -> tuple[Number | None, Number | None]:
    if counters.shown_step is not None:
        return counters.shown_step, counters.shown_steps
    return counters.epoch, counters.epochs
