"""Turns readings into points: decides the run, the counters in effect, and which series is the training loss.

Everything that needs memory of earlier lines is here: several launches in one file, counters on a line above the
values, bars that are redrawn, the banner of an evaluation, rival series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .bare_values import BareValues
from .bars import BarBook
from .ends import Ends, PlannedTotals
from .epoch_passes import EpochPasses
from .epoch_steps import EpochSteps
from .evaluations import Banner, Evaluated, as_validation
from .facts import Fact
from .groups import Groups
from .launches import Launches
from .learning_rates import LearningRates
from .loss_series import LossBook, LossSeries, first_known, follows, or_zero
from .metric_names import MetricNames
from .notices import Announcement
from .points import Counters, LineReading, MetricPoint, Number, ParsedLog, Phase, Standing
from .under_way import DrawnEvaluation, UnderWay


class Tracker:
    """Places readings in runs and keeps the state of the current one."""

    def __init__(
        self, *, from_zero: bool = False, steps: int | None = None, epoch_length: Number | None = None
    ) -> None:
        self._banner, self._drawn = Banner(), DrawnEvaluation()
        self.current = self._line = Counters()
        self._headed = False
        """True if the newest line with counters has nothing else on it: a heading of the lines below."""
        self._plan, self._ends = PlannedTotals(), Ends(from_zero=from_zero)
        self._rates = LearningRates()
        self._throughput: float | None = None
        self._losses = LossBook()
        self._launches = Launches(self._losses)
        self.names = MetricNames()
        self._late: list[MetricPoint] = []
        """Points of values that were held back until they proved to be metrics."""
        self._evaluated, self._under_way, self._bars = Evaluated(), UnderWay(), BarBook()
        self._passes, self._bare, self._groups = EpochPasses(), BareValues(), Groups()
        self._epoch_steps = EpochSteps(steps, epoch_length)
        self._moves = self._epochs_announced = 0
        self._trained = self._of_samples = self._reports_validation = False

    def place(self, reading: LineReading) -> MetricPoint | None:
        """Return the point of a reading; None if it is a plan, a redraw of known values, or has to wait."""
        found = self._groups.as_meant(reading)
        if reading.bare:
            found = [*found[:-1], *self._bare.as_meant(reading, trained=self._trained)]
        self._late += filter(None, map(self._place, found[:-1]))
        return self._place(found[-1]) if found else None

    def _place(self, reading: LineReading) -> MetricPoint | None:
        reading = as_validation(reading) if self._reports_validation else reading
        series = self._losses.begun(reading.series)
        reading = self._drawn.of(reading, series)
        below, self._banner = self._banner.over(
            reading, self._evaluated.trained_at(reading, series), self.current, trained=self._trained
        )
        below = self.names.not_shown(below, self._banner.repeats) if self._banner.repeats else below
        reading = self._under_way.of(self._as_meant(self._evaluated.of(below)), self.current)
        if reading.brief:
            self._forget_bar(reading)
            return None
        if reading.bar and reading.loss is None and self._banner.is_evaluation and not self._trains_by_bars:
            return None  # a bar of the announced evaluation
        if reading.plan:
            if not (counted := self._plan.as_counted(reading, self._moves)):
                if not self._trained:
                    self._rates.plan(reading)
                return None
            *before, reading = counted
            self._late += filter(None, map(self._place, before))
        if reading.bar and not self._bars.is_news(reading):
            self._bars.draw(reading)
            return self._evaluated_anew(self.names.of(reading, self._moves, self.current))
        if reading.bar and reading.counters.shown_step == 0 and self._is_cleared(reading):
            return None
        reading = self._launches.as_placed(reading)
        if self._begins_run(reading):
            self._begin_run(reading)
            reading = self._as_meant(self._evaluated.of(below))  # anew: what the previous run said no longer applies
        self._evaluated.learn(reading)
        said, reading = reading, self.names.of(reading, self._moves, self.current)
        self._remember(reading)
        if reading.loss is not None and not self._count(reading):
            return self._evaluated_anew(reading)
        self._evaluated.is_new(reading)
        if said is not reading and reading.says_nothing:
            return None
        once = self._under_way.without_repeated(reading)
        if once is not reading and replace(once, counters=Counters()).says_nothing:
            return None
        reading, point = once, self.point(once)
        if reading.phase is Phase.EVAL and reading.under_way is not None and reading.eval_metrics:
            self._late += self._under_way.keep(reading, point)
            return None
        self._late += self._under_way.hear(reading)
        self._late += self.names.late(point)
        return point

    def end(self) -> None:
        """Handle the end of the log: release what was waiting for an evaluation to finish or for another group."""
        self._late += [*filter(None, map(self._place, self._groups.release())), *self._under_way.end()]
        self._late += self.names.left(self.point(LineReading("key-value")))

    def take_late(self) -> list[MetricPoint]:
        """Return the points that were held back until now, each only once."""
        late, self._late = self._late, []
        return late

    def _evaluated_anew(self, reading: LineReading) -> MetricPoint | None:
        """Return the point of an evaluation that a redrawn line has added, as in the last frame of Keras; else None."""
        if not self._evaluated.is_new(reading):
            return None
        return self.point(replace(reading, loss=None, series="", metrics={}))

    def place_run(
        self, first: LineReading, last: LineReading, losses: Sequence[float], steps: Sequence[float] | None
    ) -> MetricPoint | None:
        """Place many readings of one series at once and return the last point; None, placing none, if that is not safe.

        ``losses`` and ``steps`` are in order, from the values of ``first`` to those of ``last``; steps increase.
        """
        series = self._losses.begun(first.series)
        evaluates = Phase.EVAL in (self._banner.phase, self._under_way.of(first, self.current).phase)
        evaluates = evaluates or self._evaluated.is_behind_training or self._reports_validation
        if series is None or evaluates or not self._groups.lets_by(first):
            return None
        first, last = self._as_meant(first), self._as_meant(last, max(1, len(losses) - 1))
        if self._begins_run(first) or not follows(first.counters, series.counters):
            return None
        if first.bar and (first.running or steps is None or not self._bars.is_news(first)):
            return None
        self._late += self._under_way.hear(last)
        self._evaluated.learn(last)
        last = self.names.of(last, self._moves, self.current)
        self._remember(last)
        at = self._placed(last)
        series.extend(losses, at, first_known(at.epoch, self.current.epoch), self._epochs_announced)
        if not first.bar:
            self._bars.vote(len(losses))
        return self.point(last)

    def banner(self, told: Announcement) -> None:
        """Take in a line that announces an evaluation, or that training goes on."""
        self._reports_validation = self._reports_validation or told.lasting
        if not told.lasting and (self._trained or not told.of_samples):
            whose = self._evaluated.told_apart(told.whose)
            self._banner = Banner(told.phase, told.sure, told.epoch, repeats=told.repeats, whose=whose)

    def learn(self, fact: Fact) -> None:
        """Take in what a line says about the run as a whole."""
        if fact.done and not fact.faint:
            self._evaluated.training_over()
        self._ends.learn(fact, self.current, self._at_end())
        self._launches.learn(fact)

    # -- what holds now ------------------------------------------------------------------------------------------

    @property
    def primary(self) -> str | None:
        """The name of the series to chart, as known so far; empty if several rival each other."""
        return self._losses.leading

    @property
    def epoch_length(self) -> Number | None:
        """Steps of an epoch, if each epoch counts from its start and no line gives the total."""
        return self._epoch_steps.of_each

    @property
    def standing(self) -> Standing:
        """The state of the newest run as a whole."""
        return self._ends.standing(self._at_end())._replace(planned_steps=self._plan.steps_of_run)

    def _at_end(self) -> bool | None:
        now, bar = self._plan.at(self.current), self._bars.best()
        if bar is not None and bar.step is not None:
            # A total that the plan does not confirm may be an epoch's.
            now = now._replace(step=bar.step, steps=bar.steps if bar.steps == self._plan.steps else None)
        return self._ends.at_end(now)

    def summary(self) -> ParsedLog:
        """Return what the log says so far."""
        main = self._losses.primary
        own = main.counters if main else Counters()
        if main is None and self.current == Counters() and not self.names.shown:
            return ParsedLog(standing=self.standing)
        step, steps = self._shown_steps(main, own)
        epoch = first_known(self.current.epoch, own.epoch)
        if own.epoch is not None and or_zero(epoch) < own.epoch:
            epoch = own.epoch  # evaluations after training may go through earlier epochs
        planned = self._plan.at(Counters(epoch=epoch, step=step)).epochs
        return ParsedLog(
            format=main.format if main else self._losses.first_format or "key-value",
            epoch=epoch,
            epochs=first_known(own.epochs, self.current.epochs, planned),
            step=step,
            steps=steps,
            train_loss=main.summary if main else None,
            metrics=tuple(self.names.shown),
            learning_rate=self._rates.newest,
            throughput=self._throughput,
            runs=self._losses.run + 1,
            of_samples=self._of_samples,
            standing=self.standing,
        )

    def _shown_steps(self, main: LossSeries | None, own: Counters) -> tuple[Number | None, Number | None]:
        """Return the main series' own counter, else the training bar's, else the last one seen."""
        bar = self._bars.best()
        if own.shown_step is not None and not (main is not None and main.bar):
            shown = self._line if own.step is not None and or_zero(self._line.step) > own.step else own
        elif bar is not None and self._is_behind(bar, main):
            shown = self._line
        elif bar is not None and bar.shown_step is not None:
            shown = bar
        else:
            shown = self.current
        step, whole = shown.shown_step, self._bars.total_at(shown.shown_step, self.current.epoch)
        return step, first_known(shown.shown_steps, whole, self._plan.at(Counters(step=step)).steps)

    @property
    def _trains_by_bars(self) -> bool:
        """True if a bar may continue the training: something was trained, and not only lines count its steps."""
        return self._trained and (self._bars.best() is not None or self._line.shown_step is None)

    def _is_behind(self, bar: Counters, main: LossSeries | None) -> bool:
        """True if lines show a later step than the bar, which is too short or no longer drawn."""
        too_short = main is None and bool(bar.steps) and or_zero(self._line.step) > or_zero(bar.steps)
        later = bar.epoch is not None and or_zero(self._line.epoch) > bar.epoch
        return too_short or (later and self._line.step is not None) or self._trains_by_lines

    @property
    def _trains_by_lines(self) -> bool:
        """True if a line has values and their step, in a log whose bars show no training."""
        return not self.primary and self._line.step is not None and not (self._headed or self._bars.is_of_training)

    # -- runs ----------------------------------------------------------------------------------------------------

    def _is_cleared(self, bar: LineReading) -> bool:
        """True if a bar was reset for the next epoch but still shows the title and loss of the last one."""
        series = self._losses.begun(bar.series)
        return series is not None and (series.last, series.counters.epoch) == (bar.loss, bar.counters.epoch)

    def _forget_bar(self, bar: LineReading) -> None:
        """Discard a bar that filled in an instant before anything was trained: it was not training."""
        if not self._trained and self._bars.forget(bar):
            self.current = self.current._replace(step=None, steps=None)

    def _begins_run(self, reading: LineReading) -> bool:
        return self._evaluated.begins_anew(reading) or self._launches.begins(
            reading, self.current, self._epochs_announced
        )

    def _begin_run(self, reading: LineReading) -> None:
        self.current, self._line = self._launches.begin(reading, self.current), Counters()
        self._rates.begin_run(reading)
        self._reports_validation = False
        for part in (self._ends, self._bars, self._passes, self._plan):
            part.begin_run()
        self._epoch_steps.forget_place()
        self._banner = Banner()

    def _as_meant(self, reading: LineReading, lines: int = 1) -> LineReading:
        """Return the reading with a step that restarts each epoch as a step of its epoch; see `EpochSteps.watch`."""
        if reading.plan or reading.phase is Phase.EVAL or (reading.bar and reading.rank < 1):
            return reading
        if reading.unnamed:
            reading = self._epoch_steps.counted_so(reading)
        if self._ends_epoch(reading):
            return replace(reading, counters=Counters(reading.counters.step, reading.counters.steps))
        if reading.counters.epoch is None and reading.counters.shown_step is not None and not self._launches.in_rounds:
            now, place = self._epoch_steps.beside_the_run(reading.counters), "bar" if reading.bar else reading.series
            counters, restart = self._passes.as_meant(now, self._plan.steps, place, self._epochs_announced)
            if counters is not reading.counters:
                reading = replace(reading, counters=counters, restart=reading.restart or restart)
        if reading.bar:
            return reading
        self._epoch_steps.watch(reading.counters, lines)
        # The field names of a record tell steps of the run from those of the epoch.
        is_record = reading.certain and reading.loss is not None and not reading.series.partition("@")[2]
        as_told = is_record and not self._epoch_steps.anew
        meant = reading.counters if as_told else self._epoch_steps.read(reading.counters)
        return reading if meant is reading.counters else replace(reading, counters=meant)

    def _ends_epoch(self, reading: LineReading) -> bool:
        """True if a count such as ``[2/3] mean total = 0.5`` is that of the epoch whose bar is full."""
        now, held = reading.counters, self.current
        if reading.bar or now.step is None or not now.steps or now != Counters(step=now.step, steps=now.steps):
            return False
        full = held.epoch_step is not None and held.epoch_step == held.epoch_steps
        return full and held.epoch == now.step and held.epochs in (None, now.steps)

    def _remember(self, reading: LineReading) -> None:
        self._moves += reading.loss is not None or reading.counters.positioned
        if reading.loss is not None or reading.counters.positioned or reading.eval_metrics:
            self._ends.survive()
        if reading.of_trainings:
            self._plan.begin_round()
        if isinstance(reading.counters.epoch, int) and reading.counters.epochs is None:
            self._plan.take(Counters(epochs=self._bars.epochs_at(reading.counters.epoch)))
        if reading.bar:
            self._bars.draw(reading)
            if reading.counters.shown_step is None:  # a bar of epochs: bars drawn below it count their steps
                self._passes.tell(reading.counters, self._plan.steps, None)
        elif self._passes.tell(reading.counters, self._plan.steps, self._bars.best()):
            self._bars.turn(reading.counters)
        if reading.phase is Phase.EVAL:
            now = reading.counters
            self._ends.evaluate(self.current.epoch, self._bars.best() or self.current, now)
            # An evaluation may announce an epoch, unless it is earlier than the one of training.
            if now.epoch is not None and now.epoch >= or_zero(self.current.epoch):
                epochs = first_known(now.epochs, self.current.epochs)
                self._epochs_announced += now.epoch != self.current.epoch
                self.current = self.current._replace(epoch=now.epoch, epochs=epochs)
            self._rates.learn(reading, moved=True)  # a rate among the results
            return
        self._ends.train(reading, self.current)
        self._of_samples = reading.of_samples or (self._of_samples and reading.counters.shown_step is None)
        self._advance(reading)
        self._rates.learn(reading, moved=self._moves > 0)
        if reading.throughput is not None:
            self._throughput = reading.throughput

    def _advance(self, reading: LineReading) -> None:
        """Update the counters in effect; those of a bar that is not the training loop's are ignored."""
        now = reading.counters
        if reading.bar and now.shown_step is not None and not self._bars.leads(reading):
            return
        if now == Counters():
            return
        if not reading.bar:
            self._line, self._headed = now, replace(reading, counters=Counters()).says_nothing
        new_epoch = now.epoch is not None and now.epoch != self.current.epoch
        if new_epoch:
            self._epochs_announced += 1
            # If a step of the epoch is held too, the other is one of the run.
            goes_on = now.step is not None or self._epoch_steps.through or self.current.epoch_step is not None
            step = self.current.step if goes_on else None
            self.current = self.current._replace(step=step, epoch_step=None, epoch_steps=None)
        if now.epoch_step is not None and now.step is None:
            self.current = self.current._replace(step=None, steps=None)
        self.current = now.or_else(self.current)

    def _count(self, reading: LineReading) -> bool:
        """Add the loss to its series; False if this very reading is already counted."""
        redrawn, at = not self._bars.reopened, self._placed(reading)
        if not self._losses.count(reading, at, self.current.epoch, self._epochs_announced, redrawn=redrawn):
            return False
        if self._headed and (series := self._losses.begun(reading.series)) is not None:
            series.headed = True
        self._trained = True
        if not reading.bar:
            self._bars.vote()
        return True

    def _placed(self, reading: LineReading) -> Counters:
        """Return the reading's own counters; if it has none at all, those in effect, without the steps."""
        return reading.counters if reading.counters != Counters() else self.current._replace(step=None, epoch_step=None)

    def point(self, reading: LineReading) -> MetricPoint:
        """Return the point of a placed reading, missing counters filled in from those in effect."""
        reading = self._as_meant(reading)
        own, held = reading.counters, self.current
        bar = None if own.shown_step is not None or reading.bar or self._trains_by_lines else self._bars.best()
        if bar is not None:
            held = held._replace(step=bar.step, steps=bar.steps, epoch_step=bar.epoch_step, epoch_steps=bar.epoch_steps)
        counters = self._epoch_steps.beyond_doubt(self._plan.at(own.or_else(held)))
        counters = counters._replace(step=first_known(reading.told_step, counters.step))
        self._ends.learn_first_epoch(counters.epoch, reading)
        return MetricPoint(
            run=self._losses.run,
            counters=counters,
            phase=reading.phase,
            loss=reading.loss,
            learning_rate=reading.learning_rate if self._trained or counters.positioned else None,  # not a setting
            throughput=reading.throughput,
            metrics=reading.metrics,
            eval_metrics=reading.eval_metrics,
            series=reading.series,
            of_samples=reading.of_samples,
            of_trainings=self._launches.in_rounds,
            acts=self.names.act,
            format=reading.grammar,
            part=reading.part,
            undescribed=reading.bar and reading.rank < 2,
            first_epoch=0 if self._ends.zeroth_epoch else 1,
            epoch_done=counters.epoch is not None and counters.epoch == self._ends.epoch,
            epoch_length=first_known(self._epoch_steps.length, self._passes.length),
            passes=self._passes.before if counters.epoch is None and counters.step is None else 0,
        )
