"""tqdm bars of training loops, with the loss in the postfix or the description.

torchtune's description is ``epoch|step|Loss: value``; its log file has ordinary lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..assemble import assemble
from ..bars import BarFrame
from ..names import NameScope, Role, classify
from ..pairs import Pair, read_pairs
from ..points import Counters, LineReading, Number, Priority, series_name
from . import Example, LineGrammar

_EPOCH_LOOP = re.compile(
    r"(?i)^(?:training |train |overall |total )?(?:epochs?|エポック|轮次?|epochs? progress)(?: loop)?:?"
    r"(?:\s{0,2}[(\[{|,;-]\s{0,2}[a-z][a-z _/.]{0,30}[=:]?\s?[-+]?\d[^\n]{0,200})?$"
)
"""A description of a loop over epochs, perhaps with values after it: ``Epoch (Loss=0.3)``."""
_MAX_EPOCHS = 2000
_TORCHTUNE = re.compile(r"(\d{1,6})\|(\d{1,9})\|[Ll]oss: ?(?:\d[\d.]{0,20}(?:e[-+]?\d{1,3})?|nan|inf)\Z")


_TAG = re.compile(r"<([A-Za-z][A-Za-z _-]{0,24})>")
"""``<VAE> | training loss: 0.5``; not square brackets, which rather hold the stage of a training (``[warmup]``)."""
_OF_WHAT = re.compile(r"(?<![\w./-])(\d{1,6})\s?/\s?(\d{1,6})(?![\w./])")
_NO_EPOCHS = re.compile(
    r"(?i)(?:fold|stage|phase|trial|seed|gpu|rank|client|batch|step|iter\w{0,6}|round|part|task|worker|run)s?[\s:#\[(]{0,3}\d{1,6}\s?/"
)

_EPOCH_NAMED = re.compile(r"(?i)epochs?[\s:#\[(]{0,3}(\d{1,6})\b(?!\s?[/\d])")
_COUNTED = re.compile(r"(?i)(?:batch(?:es)?|steps?|iter\w{0,6})\b")
"""A description that only counts, as that of an evaluation may do too."""


class Tqdm(LineGrammar):
    """Progress bars whose description and postfix are free text."""

    name = "tqdm"
    priority = Priority.SHARED
    needles = ("%|",)
    examples = (
        Example(
            "Epoch 2/3:  50%|█████     | 5/10 [00:01<00:01,  4.0it/s, loss=0.5, lr=1e-4]\n"
            "Validation: 100%|██████████| 2/2 [00:01<00:00, 4.0it/s, loss=9.5]\n",
            0.5,
            epoch=2,
            epochs=3,
            step=5,
            steps=10,
            learning_rate=1e-4,
        ),
        Example("2|15|Loss: 1.05:  40%|████      | 5/10 [00:01<00:01,  4.0it/s]\n", 1.05, epoch=2, step=15),
    )

    def __init__(self) -> None:
        self._named: dict[Number, tuple[int, Number]] = {}
        """For each total of a bar, the epoch that its description named last, and its count there."""
        self._epochs: set[Number] = set()
        """The totals of bars that have proven to count epochs."""

    def _of_epochs(self, frame: BarFrame) -> Counters | None:
        """Return the counters of a bar around all epochs, which names each: ``Epoch: 3 | acc 91.2:  30%|..| 3/10``.

        It does not begin anew when the next epoch is named.
        """
        named = _EPOCH_NAMED.match(frame.description)
        if named is None or frame.n is None or frame.total is None or not 1 < frame.total <= _MAX_EPOCHS:
            return None
        epoch, (before, n) = int(named[1]), self._named.get(frame.total, (-2, 0))
        self._named[frame.total] = epoch, frame.n
        if epoch == before + 1 and 0 < n <= frame.n < frame.total and epoch - 1 <= frame.n <= epoch:
            self._epochs.add(frame.total)
        return Counters(epoch=frame.n, epochs=frame.total) if frame.total in self._epochs else None

    def read(self, line: str) -> Sequence[LineReading] | None:
        """Return None: bars are cut out of a line before grammars see it."""
        return None

    def read_bar(self, frame: BarFrame) -> LineReading | None:
        """Return the counters of the loop and the metrics shown with it."""
        epochs = self._of_epochs(frame)
        if epochs is not None:
            frame = replace(frame, rank=max(frame.rank, 1))  # measures of an evaluation beside it are the last epoch's
        if frame.n is None or frame.rank == 0:
            return None
        if frame.total is not None and frame.total <= 1 and not frame.postfix:
            return None  # a bar with a single step counts nothing
        values = read_pairs(f"{frame.description} , {frame.postfix}")
        if frame.rank > 0 and not any(pair.name.role is Role.LOSS for pair in values):
            values = [pair._replace(name=classify("loss")) if _is_short(pair) else pair for pair in values]
        if frame.rank < 0:
            values = [pair._replace(scope=NameScope.EVAL) for pair in values]
        shown = assemble(self.name, "", values, strict=False) or LineReading(self.name)
        counters = epochs or _counters(frame, shown.counters)
        series = series_name(f"bar {shown.loss_name}", Counters())
        if (tag := _TAG.match(frame.description)) is not None:
            series += tag[1].lower()  # several networks trained at once have a bar each
        if frame.rank <= 1 or _COUNTED.match(frame.description):
            series += str(frame.total)  # an unlabelled bar: its length tells it from an evaluation's
        rank = 3 if shown.loss is not None else frame.rank
        if frame.n == 0 and shown.loss == 0:
            shown = _without_zeros(shown)
        return replace(
            shown,
            counters=counters if frame.rank > 0 else Counters(),
            bar=True,
            rank=rank,
            under_way=(frame.n, frame.total) if frame.rank < 0 and frame.total is not None else None,
            told_step=_told_step(shown.counters, counters) if frame.rank > 0 else None,
            brief=frame.brief and rank == 1 and not frame.postfix,
            plan=False,
            loss=shown.loss if frame.rank > 0 else None,
            throughput=shown.throughput if shown.throughput is not None else frame.rate,
            throughput_unit=shown.throughput_unit or ("samples/s" if frame.counts_samples else "it/s"),
            of_samples=frame.counts_samples and counters.shown_step is not None,
            series=series if shown.loss is not None else "",
        )


def _without_zeros(shown: LineReading) -> LineReading:
    """Return the reading without placeholders shown before anything is measured: ``loss: 0.0000`` at 0 of 94.

    Other values at 0 are kept: if the counter moves after a batch, the first batch's loss is shown at 0.
    """
    measured = {name: value for name, value in shown.metrics.items() if value}
    return replace(shown, loss=None, loss_name="", metrics=measured)


def _is_short(pair: Pair) -> bool:
    """True if the single letter L names a loss: ``Epoch 1 L: 22.14``; without decimals it is a length."""
    return pair.key in ("L", "l") and pair.marked and "." in pair.text


def _told_step(named: Counters, counted: Counters) -> Number | None:
    """Return the step of the run named after an epoch's bar; None if, in a later epoch, it is just the bar's count."""
    step, of_epoch = named.step, counted.epoch_step
    if step is None or of_epoch is None:
        return None
    return step if step > of_epoch + 1 or (counted.epoch or 0) <= 1 else None


def _counters(frame: BarFrame, shown: Counters) -> Counters:
    """Return the counters of a bar: its count is of the epoch if the description names an epoch, else of the run."""
    if match := _TORCHTUNE.match(frame.description):
        # The step is of the run but the total is of an epoch, so it only holds in the first epoch.
        epoch, step = int(match[1]), int(match[2])
        return Counters(epoch=epoch, step=step, steps=frame.total if epoch == 1 else None)
    if frame.counts_epochs or (_EPOCH_LOOP.match(frame.description) and (frame.total or 0) <= _MAX_EPOCHS):
        return Counters(epoch=frame.n, epochs=frame.total)
    if shown.epoch is None and (of := _OF_WHAT.findall(frame.description)) and not _NO_EPOCHS.search(frame.description):
        (epoch, epochs), *more = of
        if not more and int(epoch) <= int(epochs):
            shown = shown._replace(epoch=int(epoch), epochs=int(epochs))  # ``Train 3/20:  50%|..``
    if shown.epoch is not None:
        return shown._replace(step=None, steps=None, epoch_step=frame.n, epoch_steps=frame.total)
    return shown._replace(step=frame.n, steps=frame.total, epoch_step=None, epoch_steps=None)


GRAMMAR = Tqdm
