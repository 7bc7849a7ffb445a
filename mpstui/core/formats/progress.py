"""Which of the bars in a log is the training loop's, and which of its frames say something new."""

from __future__ import annotations

from dataclasses import dataclass

from .points import Counters, Number, Reading

_MAX_BARS = 64


@dataclass(slots=True)
class Bar:
    """One entry of the book."""

    counters: Counters
    rank: int
    loss: float | None = None
    epoch: Number | None = None
    votes: int = 0
    order: int = 0


class BarBook:
    """The bars of a log, one entry per total, ranked by how surely each is the training loop's.

    A bar that shows a training loss is; so is one that was being drawn when records of training were printed (they
    vote for it); then one that is described as training, then the longest of those without a description.
    """

    def __init__(self) -> None:
        self._bars: dict[tuple[Number | None, bool], Bar] = {}
        self._latest: Bar | None = None
        self._drawn = 0
        self.reopened = False
        """Whether the frame drawn last belongs to a new bar that looks like a finished one."""

    def is_news(self, reading: Reading) -> bool:
        """False when the frame repeats a loss that an earlier frame showed, or shows none and counts nothing new.

        tqdm redraws with the old postfix when the counter moves, and again, with the counter unmoved, when the program
        sets a new one: an unchanged value is a new reading only in the second case (and not on the closing frame).
        """
        bar = self._bars.get(_key(reading))
        if bar is None or reading.loss is None or bar.loss is None:
            return True
        now, before = reading.counters, bar.counters
        step, steps = _position(now)
        if reading.loss == bar.loss and step == _position(before)[0] != steps and now.epoch != bar.epoch:
            return False  # only the epoch in the description is new: the bar counts epochs itself
        if now.epoch != bar.epoch or self._opens_again(bar) or _less(now, before):
            return True
        if reading.loss != bar.loss:
            return True
        return step == _position(before)[0] and step != steps

    def draw(self, reading: Reading) -> None:
        """Note a frame."""
        if reading.rank < 1:
            return
        key = _key(reading)
        bar = self._bars.get(key)
        if bar is None:
            if len(self._bars) >= _MAX_BARS:
                return
            bar = self._bars[key] = Bar(reading.counters, reading.rank)
        self.reopened = self._opens_again(bar)
        self._drawn += 1
        bar.counters, bar.epoch, bar.order = reading.counters, reading.counters.epoch, self._drawn
        bar.rank = max(bar.rank, reading.rank)
        if reading.loss is not None:
            bar.loss = reading.loss
        self._latest = bar

    def _opens_again(self, bar: Bar) -> bool:
        """Whether a bar that was full is drawn after another one: of those that name no epoch it is the next one."""
        step, steps = _position(bar.counters)
        return bar is not self._latest and self._latest is not None and bar.epoch is None and step == steps

    def vote(self, count: int = 1) -> None:
        """A record of training was printed: the bar drawn last is the loop that it belongs to."""
        if self._latest is not None:
            self._latest.votes += count

    def leads(self, reading: Reading) -> bool:
        """Whether a frame belongs to the bar that counts as the training loop's."""
        best = self._best()
        return best is not None and self._bars.get(_key(reading)) is best

    def best(self) -> Counters | None:
        """The counters of the training loop's bar."""
        bar = self._best()
        return None if bar is None else bar.counters

    def _best(self) -> Bar | None:
        counting = [bar for bar in self._bars.values() if bar.counters.shown_step is not None]
        return max(counting or self._bars.values(), key=_standing, default=None)


def _standing(bar: Bar) -> tuple[bool, int, int, float]:
    total = _position(bar.counters)[1]
    return bar.loss is not None, bar.votes, bar.rank, float(total or 0)


def _key(reading: Reading) -> tuple[Number | None, bool]:
    counters = reading.counters
    return counters.shown_steps if counters.shown_step is not None else counters.epochs, counters.shown_step is None


def _position(counters: Counters) -> tuple[Number | None, Number | None]:
    if counters.shown_step is not None:
        return counters.shown_step, counters.shown_steps
    return counters.epoch, counters.epochs


def _less(now: Counters, before: Counters) -> bool:
    a, b = _position(now)[0], _position(before)[0]
    return a is not None and b is not None and a < b
