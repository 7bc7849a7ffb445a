"""The learning rate of one log, as a plan has it and as lines tell it."""

from __future__ import annotations

from .loss_series import first_known
from .names import words_of
from .points import NOWHERE, Counters, LineReading
from .vocabulary import AVERAGE_WORDS, RATE_WORDS, TRAIN_WORDS

_PLAIN = RATE_WORDS | TRAIN_WORDS | AVERAGE_WORDS | {"learning", "learn", "rate", "initial", "init", "base", "start"}


class LearningRates:
    """What was told of it in the newest run."""

    def __init__(self) -> None:
        self._planned: float | None = None
        self._is_plain = False
        """Whether its name says nothing but that it is the rate: others are those of parts."""
        self._part = ""
        """The name of the newest that is planned."""
        self._told: float | None = None
        self._ahead: Counters | None = None
        """Where ``_told`` was told, if no loss has come since."""
        self._names: set[str] = set()
        """What those were called that lines have told since the run began."""
        self._first = False
        """Whether ``_told`` was the first of its name."""

    @property
    def newest(self) -> float | None:
        """The one that holds; before any was told the one that is planned."""
        return first_known(self._told, self._planned)

    def plan(self, reading: LineReading) -> None:
        """An argument or a setting, before anything was trained."""
        plain, rate = _PLAIN.issuperset(words_of(reading.rate_name)), reading.learning_rate
        if rate is None or (self._is_plain and not plain):
            return
        differs = not plain and self._part not in ("", reading.rate_name) and self._planned != rate
        # ``sgd_lr 0.1``, ``adam_lr 0.001``: nothing says which is in use.
        self._planned, self._is_plain, self._part = None if differs else rate, plain, reading.rate_name

    def learn(self, reading: LineReading, *, moved: bool) -> None:
        """A line of training or of an evaluation; ``moved``: training was seen to move on until now."""
        if reading.learning_rate is not None:
            if moved or reading.counters != NOWHERE:
                self._told, self._ahead = reading.learning_rate, reading.counters
                self._first = reading.rate_name not in self._names
                self._names.add(reading.rate_name)
            else:
                self.plan(reading)
        if reading.loss is not None:
            self._ahead = None

    def begin_run(self, first: LineReading) -> None:
        """Another run begins with a reading.

        A rate that was told for its epoch just before is its own, and so is one of a heading above it
        (``Training with lr=0.01``): nothing like it was told while the run before went on.
        """
        epoch, ahead = first.counters.epoch, self._ahead
        of_epoch = ahead is not None and epoch is not None and ahead.epoch == epoch
        if not of_epoch and not (ahead == NOWHERE and self._first):
            self._told = None
        self._names.clear()
