"""The learning rate of one log, as planned and as reported."""

from __future__ import annotations

from .loss_series import first_known
from .names import words_of
from .points import NOWHERE, Counters, LineReading
from .vocabulary import AVERAGE_WORDS, RATE_WORDS, TRAIN_WORDS

_PLAIN = RATE_WORDS | TRAIN_WORDS | AVERAGE_WORDS | {"learning", "learn", "rate", "initial", "init", "base", "start"}


class LearningRates:
    """What is known of the newest run's learning rate."""

    def __init__(self) -> None:
        self._planned: float | None = None
        self._is_plain = False
        """True if the planned rate's name says only that it is the rate; other names are those of parts."""
        self._part = ""
        """The name of the newest planned rate."""
        self._told: float | None = None
        self._ahead: Counters | None = None
        """The counters of the line with ``_told``, if no loss has come since."""
        self._names: set[str] = set()
        """The names of the rates reported since the run began."""
        self._first = False
        """True if ``_told`` was the first rate of its name."""

    @property
    def newest(self) -> float | None:
        """The rate that holds: the last one reported, or before any, the planned one."""
        return first_known(self._told, self._planned)

    def plan(self, reading: LineReading) -> None:
        """Take in an argument or a setting, before anything is trained."""
        plain, rate = _PLAIN.issuperset(words_of(reading.rate_name)), reading.learning_rate
        if rate is None or (self._is_plain and not plain):
            return
        differs = not plain and self._part not in ("", reading.rate_name) and self._planned != rate
        # ``sgd_lr 0.1``, ``adam_lr 0.001``: nothing says which one is in use.
        self._planned, self._is_plain, self._part = None if differs else rate, plain, reading.rate_name

    def learn(self, reading: LineReading, *, moved: bool) -> None:
        """Take in a line of training or of an evaluation; ``moved`` if training has been seen to move on."""
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
        """Begin another run with a reading.

        A rate reported just before for its epoch belongs to it, and so does one from a heading above it
        (``Training with lr=0.01``) if the previous run reported no rate by that name.
        """
        epoch, ahead = first.counters.epoch, self._ahead
        of_epoch = ahead is not None and epoch is not None and ahead.epoch == epoch
        if not of_epoch and not (ahead == NOWHERE and self._first):
            self._told = None
        self._names.clear()
